"""What the measures of lean share: parameters, missing documents, magnitudes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from askew.core.defaults import RESOLVER, TOKENIZER
from askew.core.errors import ConfigError, DataError, check_names
from askew.core.measure import Measure
from askew.core.ranking import ORDERS, Floats, Rankings
from askew.core.who import ANY
from askew.plugins.kinds import DocMentions, Inputs, Parameter

MISSING = ("error", "zero", "drop", "skip")
READING = Parameter(
    "strict",
    "how files are read: what cannot be understood is an error, or as the published scripts read",
    ("strict", "published"),
    quiet=True,
)

# More decimals than a 64-bit number has would only add noise.
MOST_DIGITS = 15
TARGETS = Parameter("equal", "the share each group should have, such as 'female:0.5,male:0.5'")
DIGITS = Parameter(None, "round the value of each query to so many decimals", number="whole", least=0, most=MOST_DIGITS)


def lean_parameters(lexicon: str) -> dict[str, Parameter]:
    """The parameters that every measure of lean has."""
    return {
        "lexicon": Parameter(lexicon, "which words name which group"),
        "tokens": Parameter(TOKENIZER, "tokenizer by name"),
        "overlap": Parameter("all", "a term of several groups counts for all of them or the first", ("all", "first")),
        "who": Parameter(
            ANY, "which mentions count, by estimate: real, fictional, generic, name, other, joined by +", quiet=True
        ),
        "resolver": Parameter(RESOLVER, "what tells who a mention points to: light or neural", quiet=True),
        "missing": Parameter(
            "error",
            "a ranked document without text: an error; counts as naming no group (zero); taken out before "
            "the cutoff so that later ones move up (drop); or taken out after the cutoff (skip)",
            MISSING,
        ),
        "order": Parameter("score", "by score as trec_eval does, or as the lines come in the file", ORDERS),
        "digits": DIGITS,
        "reading": READING,
        "fields": Parameter(
            "", "the fields that make up a text, such as title+text; by default the one that holds the text", quiet=True
        ),
    }


def relevance_parameters() -> dict[str, Parameter]:
    """The parameters of measures that can be limited to relevant documents."""
    return {
        "on": Parameter(
            "any", "which documents count: any, those judged relevant (judged), or those judged or, without a "
            "judgement, estimated to be relevant (relevant); others keep their rank and count as naming no group",
            ("any", "judged", "relevant"), quiet=True,
        ),
        "rel": Parameter(1, "with on: the lowest grade that is relevant", number="whole", least=1, quiet=True),
    }  # fmt: skip


def text(measure: Measure, key: str) -> str:
    """A parameter that is a text."""
    return str(measure.param(key))


def number(measure: Measure, key: str) -> float:
    """A parameter that must be a number."""
    value = measure.param(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"measure {measure}: {key} must be a number, found {value!r}")
    return float(value)


def rounded(measure: Measure, values: Floats) -> Floats:
    """Rounded where the measure says so."""
    digits = measure.param("digits")
    return values if digits is None else np.round(values, int(number(measure, "digits")))


def mentions_for(measure: Measure, inputs: Inputs) -> DocMentions:
    """The mentions a measure asks for."""
    who = str(measure.param("who", ANY))
    told = () if who == ANY else (who, text(measure, "resolver"))
    return inputs.mentions(text(measure, "lexicon"), text(measure, "tokens"), text(measure, "overlap"), *told)


def known_to(measure: Measure, mentions: DocMentions) -> npt.NDArray[np.bool_]:
    """Which documents have a text, as this measure sees it."""
    if mentions.malformed is None or measure.param("malformed") != "missing":
        return mentions.known
    return mentions.known & ~mentions.malformed


def way_of_reading(measure: Measure) -> tuple[object, ...]:
    """Measures with the same way of reading look up the texts of the same documents."""
    named = (measure.param(key) for key in ("background", "order", "depth"))
    return measure.cutoff, measure.param("missing") == "drop", *named


def documents_read(measure: Measure, inputs: Inputs) -> npt.NDArray[np.bool_]:
    """Which documents a measure of lean looks up the texts of, those of its background included."""
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
    """The rankings cut at k, ranked documents without text dealt with as the measure says."""
    policy = text(measure, "missing")
    if policy == "drop":
        return rankings.keep(known[rankings.docs]).cut(k)
    cut = rankings.cut(k)
    if policy == "skip":
        return cut.keep(known[cut.docs])
    if policy == "error":
        _refuse_unknown(measure, inputs, cut, known)
    return cut


def on_relevant(measure: Measure, inputs: Inputs, rankings: Rankings) -> Rankings:
    """The rankings with -1 in place of documents that do not count: where -1 points to is a lean of zero."""
    on = measure.param("on", "any")
    if on == "any":
        return rankings
    resolver = text(measure, "resolver") if on == "relevant" else None
    relevance = inputs.relevance(rankings, int(number(measure, "rel")), resolver)
    return replace(rankings, docs=np.where(relevance >= 0.5, rankings.docs, -1))


def _refuse_unknown(measure: Measure, inputs: Inputs, rankings: Rankings, known: npt.NDArray[np.bool_]) -> None:
    unknown = np.flatnonzero(~known[rankings.docs])
    if not len(unknown):
        return
    row = int(np.searchsorted(rankings.offsets, unknown[0], side="right")) - 1
    doc = inputs.doc_ids[int(rankings.docs[unknown[0]])].as_py()
    rank = int(unknown[0] - rankings.offsets[row]) + 1
    share = len(np.unique(rankings.docs[unknown]))
    raise DataError(
        f"{inputs.run_name}: {share} ranked documents that {measure.name} reads have no text, the first is document "
        f"{doc!r} at rank {rank} of query {rankings.query_ids[row].as_py()!r}; "
        "give the missing documents, or say what to do with missing= zero, drop or skip"
    )


def pick_groups(measure: Measure, groups: tuple[str, ...]) -> tuple[int, int | None]:
    """``male-female`` as two columns, ``female`` as one. ``auto`` is male minus female, or second minus first."""
    asked = text(measure, "groups")
    if asked == "auto":
        if set(groups) >= {"female", "male"}:
            asked = "male-female"
        elif len(groups) == 2:
            asked = f"{groups[1]}-{groups[0]}"
        else:
            lexicon = text(measure, "lexicon").partition("@")[0]
            raise ConfigError(
                f"measure {measure.name}: the lexicon {lexicon!r} has the groups {', '.join(groups)}; say which two to "
                f"compare, as in groups='{lexicon}:{groups[0]},{groups[-1]}' or "
                f"{measure.name}(groups='{groups[0]}-{groups[-1]}')"
            )
    parts = asked.split("-")
    check_names("group", parts, groups, f"measure {measure.name}")
    if len(parts) > 2:
        raise ConfigError(f"measure {measure.name}: groups is one group or two joined by '-', found {asked!r}")
    return groups.index(parts[0]), groups.index(parts[1]) if len(parts) == 2 else None


def lean_of(measure: Measure, per_group: Floats, groups: tuple[str, ...]) -> Floats:
    """One number per document from one number per document and group."""
    first, second = pick_groups(measure, groups)
    return per_group[:, first] if second is None else per_group[:, first] - per_group[:, second]


def target_shares(measure: Measure, groups: tuple[str, ...]) -> Floats:
    """The share that each group should have."""
    asked = text(measure, "targets")
    if asked == "equal":
        return np.full(len(groups), 1.0 / len(groups))
    try:
        shares = {name.strip(): float(share) for name, _, share in (part.partition(":") for part in asked.split(","))}
    except ValueError:
        raise ConfigError(
            f"measure {measure.name}: targets are written 'female:0.5,male:0.5', found {asked!r}"
        ) from None
    even = all(0 <= share <= 1 for share in shares.values()) and abs(sum(shares.values()) - 1.0) <= 1e-9
    if set(shares) != set(groups) or not even:
        raise ConfigError(
            f"measure {measure.name}: targets must name {', '.join(groups)} with shares that sum to 1, found {asked!r}"
        )
    return np.array([shares[group] for group in groups])


def chosen_groups(measure: Measure, groups: tuple[str, ...]) -> tuple[str, ...]:
    """The groups that a measure of several groups at once takes, of those of its lexicon."""
    asked = text(measure, "groups")
    chosen = groups if asked == "all" else tuple(asked.split("+"))
    check_names("group", chosen, groups, f"measure {measure.name}")
    if len(chosen) < 2 or len(set(chosen)) < len(chosen):
        raise ConfigError(f"measure {measure.name}: it is about two groups or more, each named once; found {asked!r}")
    return chosen


def discount(rank: int) -> float:
    """How much a rank counts."""
    return 1.0 / math.log2(rank + 1)
