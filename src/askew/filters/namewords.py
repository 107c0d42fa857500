"""Which words of an English query belong to a name, without the use of capitals: most queries are typed without them.

The features of a linear model are, for each word, how often it and its neighbors have a capital inside the sentences of
BoolQ, SQuAD and GAP, how frequent it is there, and the last letters of rare words. All features are classes, so a word
needs only a few table lookups. ``tools/make_name_table.py`` makes ``data/names/table.npz``; the README in that folder
reports the quality.

The model is for English. ``askew.filters.names`` does not use it for a text that is clearly in another language.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from askew.core.shipped import DATA
from askew.filters.words import FUNCTION_WORDS

TABLE = DATA / "names" / "table.npz"
# Upper bounds of the classes of a word: its share of capitals (add-one-half estimate), and how often it was counted.
RATE_BOUNDS = (0.02, 0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99)
COUNT_BOUNDS = (2, 4, 10, 50, 300)
_RATES, _COUNTS = len(RATE_BOUNDS) + 1, len(COUNT_BOUNDS) + 1
UNSEEN = _RATES * _COUNTS
LETTER, NUMBER, MIXED, BOUNDARY = UNSEEN + 1, UNSEEN + 2, UNSEEN + 3, UNSEEN + 4
_FUNCTIONS = {word: BOUNDARY + 1 + i for i, word in enumerate(sorted(FUNCTION_WORDS))}
CLASSES = BOUNDARY + 1 + len(_FUNCTIONS)
# A coarser class: the share of capitals without the count, and one class for each kind of word outside the table.
GROUPS = _RATES + 6
_GROUP = [code // _COUNTS for code in range(UNSEEN)] + [_RATES + i for i in range(5)] + [GROUPS - 1] * len(_FUNCTIONS)
# A single letter is as often a typing error as an initial, and a word that never has a capital is no name.
_MAY_NAME = [_COUNTS <= code <= UNSEEN or code == MIXED for code in range(CLASSES)]
# The number of classes of word pairs by how often both words had a capital: never, a few times, often.
PAIRS = 3
# Where each kind of feature begins among the weights.
BEFORE = CLASSES
AFTER = BEFORE + GROUPS * CLASSES
BEFORE_2 = AFTER + GROUPS * CLASSES
AFTER_2 = BEFORE_2 + GROUPS * GROUPS
PAIR_BEFORE = AFTER_2 + GROUPS * GROUPS
PAIR_AFTER = PAIR_BEFORE + PAIRS
ENDING = PAIR_AFTER + PAIRS
# Words counted fewer than four times have a feature for their last letters.
_RARE = frozenset([UNSEEN, *(code for code in range(UNSEEN) if code % _COUNTS < 2)])
ENDING_LETTERS = 3


def rate_class(capitals: int, count: int) -> int:
    """The class of a word by how often it was counted, and how often with a capital."""
    share = (capitals + 0.5) / (count + 1)
    rate = sum(share >= bound for bound in RATE_BOUNDS)
    return rate * _COUNTS + sum(count >= bound for bound in COUNT_BOUNDS)


@dataclass(frozen=True)
class NameTable:
    """Classes of words and of pairs of words ("new york"), and the weights of the model; ``ends`` are last letters."""

    words: dict[str, int]
    pairs: dict[str, int]
    ends: dict[str, int]
    weights: list[float]
    bias: float

    def code(self, word: str) -> int:
        """The class of a word in lower case, without accents."""
        found = self.words.get(word)
        if found is None:
            found = _FUNCTIONS.get(word)
        if found is not None:
            return found
        if not word.isalpha():
            return NUMBER if word[0].isdigit() else MIXED
        return LETTER if len(word) == 1 else UNSEEN

    def is_rare(self, word: str) -> bool:
        """Whether a word was counted fewer than four times, or is not in the table."""
        return self.code(word) in _RARE

    def codes(self, words: Sequence[str]) -> list[int]:
        """The classes of words, with two boundaries before and after."""
        get, code = self.words.get, self.code
        inside = [found if (found := get(word)) is not None else code(word) for word in words]
        return [BOUNDARY, BOUNDARY, *inside, BOUNDARY, BOUNDARY]

    def features(self, words: Sequence[str]) -> list[list[int]]:
        """Return the indices of the features of each word; none for words that cannot belong to a name."""
        codes = self.codes(words)
        found: list[list[int]] = [[] for _ in words]
        for i, word in enumerate(words):
            before_2, before, code, after, after_2 = codes[i : i + 5]
            if not _MAY_NAME[code]:
                continue
            group = _GROUP[code]
            found[i] = [
                code, BEFORE + group * CLASSES + before, AFTER + group * CLASSES + after,
                BEFORE_2 + group * GROUPS + _GROUP[before_2], AFTER_2 + group * GROUPS + _GROUP[after_2],
                PAIR_BEFORE + (self.pairs.get(f"{words[i - 1]} {word}", 0) if _MAY_NAME[before] else 0),
                PAIR_AFTER + (self.pairs.get(f"{word} {words[i + 1]}", 0) if _MAY_NAME[after] else 0),
            ]  # fmt: skip
            if code in _RARE and (end := self.ends.get(word[-ENDING_LETTERS:])) is not None:
                found[i].append(ENDING + end)
        return found

    def scores(self, words: Sequence[str]) -> list[float]:
        """Return the log odds that each word (in lower case, without accents) belongs to a name.

        These are the sums of the weights of ``features``, computed without lists of indices, which would take most of
        the time.
        """
        codes, weights, pair, bias = self.codes(words), self.weights, self.pairs.get, self.bias
        before, after, before_2, after_2 = self._by_group
        found = [-math.inf] * len(words)
        for i, word in enumerate(words):
            code = codes[i + 2]
            if not _MAY_NAME[code]:
                continue
            group, last, follows = _GROUP[code], codes[i + 1], codes[i + 3]
            score = (
                bias + weights[code] + before[group][last] + after[group][follows]
                + before_2[group][_GROUP[codes[i]]] + after_2[group][_GROUP[codes[i + 4]]]
                + weights[PAIR_BEFORE + (pair(f"{words[i - 1]} {word}", 0) if _MAY_NAME[last] else 0)]
                + weights[PAIR_AFTER + (pair(f"{word} {words[i + 1]}", 0) if _MAY_NAME[follows] else 0)]
            )  # fmt: skip
            if code in _RARE and (end := self.ends.get(word[-ENDING_LETTERS:])) is not None:
                score += weights[ENDING + end]
            found[i] = score
        return found

    @cached_property
    def _by_group(self) -> tuple[list[list[float]], ...]:
        """The weights of the neighboring words, as a list for each group of words."""
        starts = (BEFORE, AFTER, BEFORE_2, AFTER_2, PAIR_BEFORE)
        stretches = [self.weights[start:end] for start, end in pairwise(starts)]
        return tuple(np.reshape(stretch, (GROUPS, -1)).tolist() for stretch in stretches)

    def names(self, words: Sequence[str], certainty: float) -> list[str]:
        """The words that belong to a name with at least this probability."""
        least = math.log(certainty / (1 - certainty)) if certainty < 1 else math.inf
        return [word for word, score in zip(words, self.scores(words), strict=True) if score >= least]


def write_table(path: Path, table: NameTable) -> None:
    """Write a table to one small file."""
    words, pairs = sorted(table.words), sorted(table.pairs)
    scale = max(map(abs, table.weights)) / 127
    np.savez_compressed(
        path, words=_bytes(words), word_codes=np.array([table.words[w] for w in words], np.uint8),
        pairs=_bytes(pairs), pair_codes=np.array([table.pairs[p] for p in pairs], np.uint8),
        ends=_bytes(list(table.ends)), weights=np.round(np.array(table.weights) / scale).astype(np.int8),
        scale=np.float64(scale), bias=np.float64(table.bias),
    )  # fmt: skip


@cache
def read_table(path: Path = TABLE) -> NameTable:
    """Read a table that ``write_table`` wrote; each file is read once."""
    with np.load(path, allow_pickle=False) as stored:
        weights = (stored["weights"] * stored["scale"]).tolist()
        ends = {end: i for i, end in enumerate(_texts(stored["ends"]))}
        words = dict(zip(_texts(stored["words"]), stored["word_codes"].tolist(), strict=True))
        pairs = dict(zip(_texts(stored["pairs"]), stored["pair_codes"].tolist(), strict=True))
        return NameTable(words, pairs, ends, weights, float(stored["bias"]))


def _bytes(texts: list[str]) -> np.ndarray:
    return np.frombuffer("\n".join(texts).encode(), np.uint8)


def _texts(stored: np.ndarray) -> list[str]:
    return stored.tobytes().decode().split("\n") if len(stored) else []
