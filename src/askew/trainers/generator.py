"""Query generators: learn to write the query that a passage answers, or the passage that answers a query.

RePair's stages pair, finetune and predict. A pair is a passage and a query that it was judged relevant to; a query with
several passages gives a pair for each (``replicate``) or one with all of them, joined by a blank (``concatenate``).
Prediction is the reformulator ``docquery`` (sequence-to-sequence) or ``local`` (adapter), which read the same words
before a passage as the training did.

RePair trains and tests on the same pairs (``split="none"``, which measures nothing but memory). Here pairs are split so
that no query and no passage stands on two sides (``apart``), or no query (``query``), where one passage answers so many
queries that all hang together.
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
    """How pairs become examples. ``context`` puts who asked before what is read ("USER: "), where the queries say it.

    ``prefix`` stands before that, for sequence-to-sequence models; in it ``{domain}`` is the name of the collection.
    Queries and passages of fewer than ``least_query`` and ``least_passage`` characters are left out.
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
# RePair (CIKM 2023) as released: T5-base, all passages of a query together to the query, lower-cased, 4,000 steps (the
# paper calls them epochs) in batches of 128 at a constant 0.001. Its files cut what is read to 32 tokens and what is
# written to 256, though a script of theirs names 512 and 64 for this direction; docquery's default is the latter.
_REPAIR = GeneratorSettings("passage-query", "concatenate", lower=True, prefix=f"{DOMAIN}_cf question: ")
_T5 = TextSettings("google-t5/t5-base", "seq2seq", 32, 256, optimizer="adafactor", steps=4000)
_REPAIR_PACE = Schedule(1.0, 128, 1e-3, 1, 0.0, 0.0, "constant", 500)
PRESETS: dict[str, tuple[GeneratorSettings, TextSettings, Schedule]] = {
    "repair2023": (_REPAIR, _T5, _REPAIR_PACE),
    # Of AOL, queries of one letter and documents of fewer than ten are dropped; the user stands before the document.
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
    """What is read and what is to be written, and the part of each; and what was left out by reason."""

    read: list[str]
    written: list[str]
    part: npt.NDArray[np.str_]
    left_out: Counter[str]

    def of(self, part: str) -> tuple[list[str], list[str]]:
        """The pairs of a part; where nothing is held out, all of them are every part."""
        rows = np.flatnonzero((self.part == part) | (self.part == "")).tolist()
        return [self.read[row] for row in rows], [self.written[row] for row in rows]

    def data(self) -> str:
        """Names the content."""
        return fingerprint([self.read, self.written, self.part.tolist()])


def make_pairs(
    judged: RelevantPassages, settings: GeneratorSettings, shares: Mapping[str, float] | None = None
) -> TextPairs:
    """The examples of a collection, without the words that a model wants before them."""
    left_out: Counter[str] = Counter()
    long_query = np.array([len(text.strip()) >= settings.least_query for text in judged.queries], np.bool_)
    long_passage = np.array([len(text.strip()) >= settings.least_passage for text in judged.passages], np.bool_)
    good = long_query[judged.query] & long_passage[judged.doc]
    left_out[NO_QUERY] = int((~long_query[judged.query]).sum())
    left_out[NO_PASSAGE] = int((long_query[judged.query] & ~long_passage[judged.doc]).sum())
    if not good.any():
        raise DataError(f"generator: expected queries with relevant passages, found none of {len(good)} long enough")
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
    """Rows that make one example, in the order of their first row."""
    if join == "replicate":
        return [[row] for row in range(len(query))]
    found: dict[int, list[int]] = {}
    for row, one in enumerate(query.tolist()):
        found.setdefault(one, []).append(row)
    return list(found.values())


def _part_names(judged: RelevantPassages, query: Ints, doc: Ints, split: str) -> list[str | None]:
    """The name by which each row finds its part; the same for rows that must stay together."""
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
    """The words of a query: two that differ in case, blanks or punctuation only are one question."""
    return " ".join(word(text.casefold())) or " ".join(text.split())


def components(left: Ints, right: Ints) -> Ints:
    """A number for each row, the same for rows that share a left or a right value, directly or through others."""
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
    """What the model is shown: as ``docquery`` (with this prefix) and ``local`` show it."""
    if kind == "seq2seq":
        before = settings.prefix.replace(DOMAIN, domain)
        return [before + text for text in read]
    if settings.direction == "passage-query":
        return [from_passage(text) for text in read]
    return [f"Question: {' '.join(text.split()[:_MOST_QUERY_WORDS])}\nPassage:" for text in read]


def check_settings(settings: GeneratorSettings, text: TextSettings) -> str:
    """seq2seq or causal; what cannot be used later is refused before anything is trained."""
    kind = kind_of(text)
    if kind == "causal" and settings.context:
        raise ConfigError(
            "generator: context goes with a sequence-to-sequence model; the reformulator local reads none"
        )
    if kind == "causal" and settings.prefix:
        raise ConfigError("generator: a prefix goes with a sequence-to-sequence model; a causal one has its own prompt")
    return kind


def fit_generator(
    pairs: TextPairs, settings: GeneratorSettings, text: TextSettings, pace: Schedule, work: Path, domain: str = "",
    device: str | None = None, identity: Mapping[str, Any] | None = None, progress: Progress | None = None,
) -> TextModel:  # fmt: skip
    """Train on the pairs of the train part."""
    kind = check_settings(settings, text)
    read, written = pairs.of("train")
    if not read:
        raise DataError(f"generator: expected pairs in the part 'train', found none of {len(pairs.read)}")
    about = {"pairs": pairs.data(), **asdict(settings), "domain": domain, **(identity or {})}
    prompts = prompts_for(read, kind, settings, domain)
    return fit_texts(prompts, written, replace(text, kind=kind), pace, work, device, about, progress)
