"""Code that lean measures share: parameters, the handling of documents without text, and the choice of groups."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from askew.core.defaults import TOKENIZER
from askew.core.errors import ConfigError, DataError, check_names
from askew.core.groups import ANY
from askew.core.measure import Bounds, Direction, Measure
from askew.core.protocols import DocMentions, Inputs, Parameter
from askew.core.ranking import ORDERS, Floats, Rankings

MISSING = ("error", "zero", "drop", "skip")
READING = Parameter(
    "strict",
    "how to treat a malformed line of an input file: 'strict' stops with an error, 'published' treats the line as the "
    "published scripts of the papers do",
    ("strict", "published"),
    quiet=True,
)

# A 64-bit float has no more significant decimals.
MOST_DIGITS = 15
TARGETS = Parameter("equal", "the target share of each group, such as 'female:0.5,male:0.5'")
DIGITS = Parameter(
    None, "the number of decimals that the value of each query is rounded to", number="whole", least=0, most=MOST_DIGITS
)


# Describes the parameter ``groups`` of measures that are a difference of two groups.
DIFFERENCE = (
    "the groups to compare: 'male-female' is the value of male minus the value of female; 'auto' is 'male-female' if "
    "the lexicon has these groups, and otherwise the first of its two groups minus the second"
)


# The value of the parameter ``excess`` for the plain value.
NONE = "none"
EXCESS = {
    "excess": Parameter(
        NONE,
        "'none' is the value itself; otherwise its excess over the value expected by chance, if the direction of each "
        "article were drawn with the shares of the groups in the 'collection', in the 'retrieved' articles, in the "
        "'relevant' articles, or given ones, such as 'female:0.4,male:0.6'",
        quiet=True,
    ),
    "units": Parameter(
        "articles",
        "what has one direction, if the parameter 'excess' is used: 'articles' (passages of one article, and "
        "near-duplicates, together) or 'documents'",
        ("articles", "documents"),
        quiet=True,
    ),
}


def lean_parameters(lexicon: str) -> dict[str, Parameter]:
    """The parameters that every lean measure has."""
    return {
        **EXCESS,
        "lexicon": Parameter(lexicon, "the lexicon that says which words name which group"),
        "tokens": Parameter(TOKENIZER, "the name of the tokenizer"),
        "overlap": Parameter(
            "all",
            "a term of several groups: 'all' counts it for all these groups, 'first' only for the first of them",
            ("all", "first"),
        ),
        "who": Parameter(
            ANY,
            "which mentions count: 'any' counts all; 'real', 'fictional', 'generic', 'name' and 'other' each count one "
            "class of mentions, as estimated by a model, and can be joined, as in 'real+name'",
            quiet=True,
        ),
        "resolver": Parameter(
            "auto",
            "the model that estimates the class of a mention (see the parameter 'who'): 'neural', or 'auto', the best "
            "one, which is 'neural'",
            quiet=True,
        ),
        "missing": Parameter(
            "error",
            "a ranked document without a text: 'error' stops with an error, 'zero' counts it as naming no group, "
            "'drop' removes it before the cutoff so that the next documents move up, 'skip' removes it after the "
            "cutoff",
            MISSING,
        ),
        "order": Parameter(
            "score",
            "the order of the documents of a query: 'score' orders by score as in trec_eval, 'file' keeps the order of "
            "the lines in the run file",
            ORDERS,
        ),
        "digits": DIGITS,
        "reading": READING,
        "fields": Parameter(
            "",
            "the fields that form the text of a document, such as 'title+text'; by default, the text field of the "
            "collection",
            quiet=True,
        ),
    }


def relevance_parameters() -> dict[str, Parameter]:
    """The parameters of measures that can be limited to relevant documents."""
    return {
        "on": Parameter(
            "any", "which documents count: 'any' counts all documents, 'judged' counts documents that are judged "
            "relevant, 'relevant' counts these documents and also unjudged documents that a model estimates to be "
            "relevant; a document that does not count keeps its rank and is treated as naming no group",
            ("any", "judged", "relevant"), quiet=True,
        ),
        "rel": Parameter(
            1, "the lowest relevance grade that counts as relevant, if the parameter 'on' is 'judged' or 'relevant'",
            number="whole", least=1, quiet=True,
        ),
    }  # fmt: skip


def text(measure: Measure, key: str) -> str:
    """The value of a parameter as a text."""
    return str(measure.param(key))


def number(measure: Measure, key: str) -> float:
    """The value of a parameter that must be a number."""
    value = measure.param(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"measure {measure}: expected the parameter '{key}' to be a number, found {value!r}")
    return float(value)


def rounded(measure: Measure, values: Floats) -> Floats:
    """The values, rounded if the measure has the parameter ``digits``."""
    digits = measure.param("digits")
    return values if digits is None else np.round(values, int(number(measure, "digits")))


def mentions_for(measure: Measure, inputs: Inputs) -> DocMentions:
    """The mentions that a measure needs, by its lexicon, tokenizer, overlap and classes of mentions."""
    who = str(measure.param("who", ANY))
    told = () if who == ANY else (who, text(measure, "resolver"))
    return inputs.mentions(text(measure, "lexicon"), text(measure, "tokens"), text(measure, "overlap"), *told)


def known_to(measure: Measure, mentions: DocMentions) -> npt.NDArray[np.bool_]:
    """Which documents have a text. With ``malformed=missing``, a document with a malformed line has none."""
    if mentions.malformed is None or measure.param("malformed") != "missing":
        return mentions.known
    return mentions.known & ~mentions.malformed


def way_of_reading(measure: Measure) -> tuple[object, ...]:
    """A key of the documents that a measure reads: measures with the same key read the same documents."""
    named = (measure.param(key) for key in ("background", "order", "depth"))
    return measure.cutoff, measure.param("missing") == "drop", *named


def documents_read(measure: Measure, inputs: Inputs) -> npt.NDArray[np.bool_]:
    """Which documents a lean measure reads, those of its background included."""
    background = measure.param("background")
    whole = background == "self" or measure.param("missing") == "drop"
    order = text(measure, "order")
    read = np.zeros(len(inputs.doc_ids), np.bool_)
    read[inputs.ranked(order).cut(None if whole else measure.cutoff).docs] = True
    run = inputs.background_ranked(order) if background == "run" else None
    if run is not None:
        depth = measure.param("depth")
        read[run.cut(None if depth is None else int(number(measure, "depth"))).docs] = True
    return read


def with_texts(
    measure: Measure, inputs: Inputs, rankings: Rankings, known: npt.NDArray[np.bool_], k: int | None
) -> Rankings:
    """The rankings cut at k. Documents without text are treated as the parameter ``missing`` says."""
    policy = text(measure, "missing")
    if policy == "drop":
        return rankings.keep(known[rankings.docs]).cut(k)
    cut = rankings.cut(k)
    if policy == "skip":
        return cut.keep(known[cut.docs])
    unknown = np.flatnonzero(~known[cut.docs])
    if policy == "error" and len(unknown):
        row = int(np.searchsorted(cut.offsets, unknown[0], side="right")) - 1
        doc = inputs.doc_ids[int(cut.docs[unknown[0]])].as_py()
        rank = int(unknown[0] - cut.offsets[row]) + 1
        share = len(np.unique(cut.docs[unknown]))
        raise DataError(
            f"{inputs.run_name}: {share} ranked documents that {measure.name} reads have no text, the first is "
            f"document {doc!r} at rank {rank} of query {cut.query_ids[row].as_py()!r}; "
            "give the missing documents, or set ⟨missing⟩ to 'zero', 'drop' or 'skip'"
        )
    return cut


def counted_lists(measure: Measure, inputs: Inputs) -> tuple[DocMentions, Rankings]:
    """The mentions that a measure counts, and the documents that it reads, up to its cutoff."""
    mentions = mentions_for(measure, inputs)
    ranked = inputs.ranked(text(measure, "order"))
    return mentions, with_texts(measure, inputs, ranked, mentions.known, measure.cutoff)


def on_relevant(measure: Measure, inputs: Inputs, rankings: Rankings) -> Rankings:
    """The rankings with -1 in place of documents that do not count by the parameter ``on``. -1 has a lean of zero."""
    on = measure.param("on", "any")
    if on == "any":
        return rankings
    resolver = text(measure, "resolver") if on == "relevant" else None
    relevance = inputs.relevance(rankings, int(number(measure, "rel")), resolver)
    return replace(rankings, docs=np.where(relevance >= 0.5, rankings.docs, -1))


def pick_groups(measure: Measure, groups: tuple[str, ...]) -> tuple[int, int | None]:
    """The columns of the groups: two for ``male-female``, one for ``female``.

    ``auto`` is male minus female if the lexicon has both, otherwise the first of two groups minus the second.
    """
    asked = text(measure, "groups")
    if asked == "auto":
        if set(groups) >= {"female", "male"}:
            asked = "male-female"
        elif len(groups) == 2:
            asked = f"{groups[0]}-{groups[1]}"
        else:
            lexicon = text(measure, "lexicon").partition("@")[0]
            raise ConfigError(
                f"measure {measure.name}: the lexicon {lexicon!r} has the groups {', '.join(groups)}; name the two "
                f"groups to compare, as in groups='{lexicon}:{groups[0]},{groups[-1]}' or "
                f"{measure.name}(groups='{groups[0]}-{groups[-1]}')"
            )
    parts = asked.split("-")
    check_names("group", parts, groups, f"measure {measure.name}")
    if len(parts) > 2:
        raise ConfigError(
            f"measure {measure.name}: the parameter 'groups' takes one group, or two groups joined by '-', as in "
            f"'male-female'; found {asked!r}"
        )
    return groups.index(parts[0]), groups.index(parts[1]) if len(parts) == 2 else None


def lean_of(measure: Measure, per_group: Floats, groups: tuple[str, ...]) -> Floats:
    """The lean of each document: the value of one group, or of the first group minus that of the second."""
    first, second = pick_groups(measure, groups)
    return per_group[:, first] if second is None else per_group[:, first] - per_group[:, second]


class GroupDifference:
    """The base class of measures that are a difference of two groups, signed or absolute.

    The signed value of a list is the sum over its documents of ``lean`` times ``weights``.
    """

    positional: tuple[str, ...] = ()
    reads = frozenset({"mentions"})

    def lean(self, measure: Measure, mentions: DocMentions) -> Floats:
        """The lean of each document."""
        raise NotImplementedError

    def weights(self, measure: Measure, rankings: Rankings) -> Floats:
        """The weight of each ranked document in the value of its list."""
        raise NotImplementedError

    def read(self, measure: Measure, inputs: Inputs) -> tuple[Rankings, Floats]:
        """The documents that count, and the lean by document; the last value is that of the padding, document -1."""
        mentions, rankings = counted_lists(measure, inputs)
        return on_relevant(measure, inputs, rankings), np.append(self.lean(measure, mentions), 0.0)

    def direction(self, measure: Measure) -> Direction:
        """A signed lean is best at zero. For an absolute lean, lower is better."""
        return Direction.ZERO if text(measure, "sign") == "signed" else Direction.DOWN

    def bounds(self, measure: Measure) -> Bounds:
        """The presence of a group is at most 1 per document. Counts have no bound, and shares no useful one."""
        most = 1.0 if measure.param("kind") == "bool" else math.inf
        one_sided = text(measure, "sign") != "signed" or "-" not in text(measure, "groups")
        return (0.0 if one_sided else -most), most


def directions_of(counts: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """The group that each document names most; -1 if it names none, or several equally often."""
    most = counts.max(axis=1, keepdims=True, initial=0)
    single = ((counts == most).sum(axis=1) == 1) & (most[:, 0] > 0)
    return np.where(single, counts.argmax(axis=1), -1)


def even_shares(counts: npt.NDArray[np.integer[Any]] | Floats) -> Floats:
    """The counts as shares; equal shares if all counts are 0."""
    total = counts.sum()
    return np.asarray(counts / total if total else np.full(len(counts), 1.0 / len(counts)), np.float64)


def target_shares(measure: Measure, groups: tuple[str, ...], key: str = "targets") -> Floats:
    """The share of each group in a parameter: by default, the share that it should have."""
    asked = text(measure, key)
    if asked == "equal":
        return np.full(len(groups), 1.0 / len(groups))
    try:
        shares = {name.strip(): float(share) for name, _, share in (part.partition(":") for part in asked.split(","))}
    except ValueError:
        raise ConfigError(
            f"measure {measure.name}: the parameter '{key}' has the form 'female:0.5,male:0.5', found {asked!r}"
        ) from None
    even = all(0 <= share <= 1 for share in shares.values()) and abs(sum(shares.values()) - 1.0) <= 1e-9
    if set(shares) != set(groups) or not even:
        raise ConfigError(
            f"measure {measure.name}: the parameter '{key}' needs a share for each of the groups "
            f"{', '.join(groups)}, and the shares must sum to 1; found {asked!r}"
        )
    return np.array([shares[group] for group in groups])


def chosen_groups(measure: Measure, groups: tuple[str, ...]) -> tuple[str, ...]:
    """The groups of the lexicon that a measure of several groups uses."""
    asked = text(measure, "groups")
    chosen = groups if asked == "all" else tuple(asked.split("+"))
    check_names("group", chosen, groups, f"measure {measure.name}")
    if len(chosen) < 2 or len(set(chosen)) < len(chosen):
        raise ConfigError(f"measure {measure.name}: expected two groups or more, each named once; found {asked!r}")
    return chosen


def discount(rank: int) -> float:
    """The weight of a rank: 1 / log2(rank + 1)."""
    return 1.0 / math.log2(rank + 1)
