"""Train query generators: models that write the query that a passage answers, or the passage that answers a query.

These are the stages pair, finetune and predict of RePair. A pair is a query and a passage that is judged relevant to
it. A query with several passages gives one pair for each (``replicate``), or one pair with all passages, joined by a
blank (``concatenate``). For prediction, use the reformulator ``docquery`` (sequence-to-sequence) or ``local`` (adapter)
with the same prompt as in training.

RePair trains and tests on the same pairs (``split="none"``), which only measures memorization. By default pairs are
split so that no query and no passage is in two parts (``apart``). With ``query`` only queries are separated; use it if
passages connect so many queries that ``apart`` would put nearly all pairs into one part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError, DataError, one_of
from askew.core.fingerprint import fingerprint
from askew.core.ranking import Ints
from askew.core.split import SHARES, part_of
from askew.core.text import word
from askew.models.prompts import from_passage
from askew.trainers.common import Progress, Schedule
from askew.trainers.rewriting.finetune import TextModel, TextSettings, fit_texts, kind_of

DIRECTIONS, JOINS, SPLITS = ("passage-query", "query-passage"), ("replicate", "concatenate"), ("apart", "query", "none")
DOMAIN = "{domain}"
NO_QUERY, NO_PASSAGE = "a query that is too short", "a passage that is too short"
_MOST_QUERY_WORDS = 40


@dataclass(frozen=True)
class GeneratorSettings:
    """How pairs become examples. ``context`` puts the user of the query before the input ("USER: "), if it is known.

    ``prefix`` is put before the input of sequence-to-sequence models; ``{domain}`` in it is replaced by the name of the
    collection. Queries with fewer than ``least_query`` characters and passages with fewer than ``least_passage``
    characters are left out.
    """

    direction: str = "passage-query"
    join: str = "replicate"
    split: str = "apart"
    context: bool = False
    lower: bool = False
    prefix: str = ""
    least_query: int = 1
    least_passage: int = 1

    def __post_init__(self) -> None:
        one_of(self.direction, DIRECTIONS, "generator, direction")
        one_of(self.join, JOINS, "generator, join")
        one_of(self.split, SPLITS, "generator, split")


PACE = Schedule(3.0, 16, 1e-4, 1, 0.05, 0.01, "linear", 1000)
ADAPTER_PACE = Schedule(1.5, 16, 4e-4, 1, 0.05, 0.0, "cosine", 1000)
# RePair (CIKM 2023) as released: T5-base, from all passages of a query to the query, lower-cased, 4,000 steps (the
# paper calls them epochs) in batches of 128 at a constant 0.001. Its files cut the input to 32 tokens and the output to
# 256. One of its scripts has 512 and 64 for this direction; the limits 512 and 64 are the defaults of docquery.
_REPAIR = GeneratorSettings("passage-query", "concatenate", lower=True, prefix=f"{DOMAIN}_cf question: ")
_T5 = TextSettings("google-t5/t5-base", "seq2seq", 32, 256, optimizer="adafactor", steps=4000)
_REPAIR_PACE = Schedule(1.0, 128, 1e-3, 1, 0.0, 0.0, "constant", 500)
PRESETS: dict[str, tuple[GeneratorSettings, TextSettings, Schedule]] = {
    "repair2023": (_REPAIR, _T5, _REPAIR_PACE),
    # For AOL, queries of one character and documents of fewer than ten are dropped; the user precedes the document.
    "repair2023-aol": (replace(_REPAIR, context=True, least_query=2, least_passage=10), _T5, _REPAIR_PACE),
}


@dataclass(frozen=True)
class RelevantPassages:
    """Relevant passages of queries: pair i is query ``query[i]`` and passage ``doc[i]``."""

    query_ids: Sequence[str]
    queries: Sequence[str]
    contexts: Sequence[str | None]
    doc_ids: Sequence[str]
    passages: Sequence[str]
    query: Ints
    doc: Ints


@dataclass(frozen=True)
class TextPairs:
    """Input texts, target texts and the part of each pair, and the number of omitted pairs by reason."""

    read: list[str]
    written: list[str]
    part: npt.NDArray[np.str_]
    left_out: Counter[str]

    def of(self, part: str) -> tuple[list[str], list[str]]:
        """The pairs of a part; without a split, every part has all pairs."""
        rows = np.flatnonzero((self.part == part) | (self.part == "")).tolist()
        return [self.read[row] for row in rows], [self.written[row] for row in rows]

    def data(self) -> str:
        """A fingerprint of the content."""
        return fingerprint([self.read, self.written, self.part.tolist()])


def make_pairs(
    judged: RelevantPassages, settings: GeneratorSettings, shares: Mapping[str, float] | None = None
) -> TextPairs:
    """The examples of a collection, without prompts or prefixes."""
    left_out: Counter[str] = Counter()
    long_query = np.array([len(text.strip()) >= settings.least_query for text in judged.queries], np.bool_)
    long_passage = np.array([len(text.strip()) >= settings.least_passage for text in judged.passages], np.bool_)
    good = long_query[judged.query] & long_passage[judged.doc]
    left_out[NO_QUERY] = int((~long_query[judged.query]).sum())
    left_out[NO_PASSAGE] = int((long_query[judged.query] & ~long_passage[judged.doc]).sum())
    if not good.any():
        raise DataError(
            f"generator: each of the {len(good)} pairs has a query of fewer than {settings.least_query} characters or "
            f"a passage of fewer than {settings.least_passage}; give longer texts"
        )
    query, doc = judged.query[good], judged.doc[good]
    names = _part_names(judged, query, doc, settings.split)
    read, written, part = [], [], []
    for rows in _groups(query, settings.join):
        asked = judged.queries[query[rows[0]]]
        passage = " ".join(judged.passages[doc[row]].strip() for row in rows)
        who = judged.contexts[query[rows[0]]] if settings.context else None
        left, right = (passage, asked) if settings.direction == "passage-query" else (asked, passage)
        left, right = (f"{who}: {left}" if who else left), right.strip()
        read.append(left.lower() if settings.lower else left)
        written.append(right.lower() if settings.lower else right)
        name = names[rows[0]]
        part.append("" if name is None else part_of(name, shares or SHARES))
    return TextPairs(read, written, np.array(part), Counter({why: count for why, count in left_out.items() if count}))


def _groups(query: Ints, join: str) -> list[list[int]]:
    """The rows of each example, in the order of their first row."""
    if join == "replicate":
        return [[row] for row in range(len(query))]
    found: dict[int, list[int]] = {}
    for row, one in enumerate(query.tolist()):
        found.setdefault(one, []).append(row)
    return list(found.values())


def _part_names(judged: RelevantPassages, query: Ints, doc: Ints, split: str) -> list[str | None]:
    """The name that determines the part of each row; rows that must be in the same part have the same name."""
    if split == "none":
        return [None] * len(query)
    words = [question(text) for text in judged.queries]
    if split == "query":
        return [words[one] for one in query.tolist()]
    _, same = np.unique(np.array(words, dtype=object).astype(str), return_inverse=True)
    together = components(same[query], doc)
    first: dict[int, str] = {}
    for one, passage in zip(together.tolist(), doc.tolist(), strict=True):
        name = judged.doc_ids[passage]
        first[one] = min(first.get(one, name), name)
    return [first[one] for one in together.tolist()]


def question(text: str) -> str:
    """The normalized words of a query; queries that differ only in case, blanks or punctuation become equal."""
    return " ".join(word(text.casefold())) or " ".join(text.split())


def components(left: Ints, right: Ints) -> Ints:
    """The connected component of each row; rows with the same left or the same right value are connected."""
    label = np.arange(len(left))
    while True:
        lower = _least(right, _least(left, label))
        if (lower == label).all():
            return label
        label = lower


def _least(group: Ints, label: Ints) -> Ints:
    """The least label of each row's group."""
    least = np.full(int(group.max()) + 1, len(label))
    np.minimum.at(least, group, label)
    return np.asarray(least[group])


def prompts_for(read: Sequence[str], kind: str, settings: GeneratorSettings, domain: str = "") -> list[str]:
    """The prompts of the model: the same as in ``docquery`` (with this prefix) and ``local``."""
    if kind == "seq2seq":
        before = settings.prefix.replace(DOMAIN, domain)
        return [before + text for text in read]
    if settings.direction == "passage-query":
        return [from_passage(text) for text in read]
    return [f"Question: {' '.join(text.split()[:_MOST_QUERY_WORDS])}\nPassage:" for text in read]


def check_settings(settings: GeneratorSettings, text: TextSettings) -> str:
    """Return seq2seq or causal; raise before training if the model could not be used later with these settings."""
    kind = kind_of(text)
    if kind == "causal" and settings.context:
        raise ConfigError(
            "generator: the setting 'context' needs a sequence-to-sequence model; a causal model is used with the "
            "reformulator 'local', which does not read the context"
        )
    if kind == "causal" and settings.prefix:
        raise ConfigError(
            "generator: the setting 'prefix' needs a sequence-to-sequence model; a causal model has a fixed prompt"
        )
    return kind


def fit_generator(
    pairs: TextPairs, settings: GeneratorSettings, text: TextSettings, pace: Schedule, work: Path, domain: str = "",
    device: str | None = None, identity: Mapping[str, Any] | None = None, progress: Progress | None = None,
) -> TextModel:  # fmt: skip
    """Train on the pairs of the train part."""
    kind = check_settings(settings, text)
    read, written = pairs.of("train")
    if not read:
        raise DataError(f"generator: expected pairs in the part 'train', found none among {len(pairs.read)} pairs")
    about = {"pairs": pairs.data(), **asdict(settings), "domain": domain, **(identity or {})}
    prompts = prompts_for(read, kind, settings, domain)
    return fit_texts(prompts, written, replace(text, kind=kind), pace, work, device, about, progress)
