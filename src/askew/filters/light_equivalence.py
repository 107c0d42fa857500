"""Whether a reformulation has the meaning of its query, and whether a person would type it, without a neural model.

Two logistic regressions use the words of a pair: the content words left out and added and how rare they are, the names
and numbers lost or added, the similarity in spelling (``askew.filters.similarity``), and the arrangement of the words
(words that follow the whole query, another order, repeats). The weights in ``data/equivalence-light.json`` are fit by
``benchmarks/equivalence.py``, which also prints their quality. English only. The model cannot distinguish a right
synonym from a wrong one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from askew.filters.names import KeptNames
from askew.filters.namewords import COUNT_BOUNDS, UNSEEN, read_table
from askew.filters.numbers import adds_number, has_numbers, numbers, parts_of_numbers, readings
from askew.filters.similarity import light_similarity, stem
from askew.filters.words import FUNCTION_WORDS, plain_words

if TYPE_CHECKING:
    from askew.core.ranking import Floats

CERTAINTY = 0.5
_QUESTIONS = frozenset(("who", "whom", "whose", "when", "where", "why", "how", "which", "what"))
_NEGATIONS = frozenset(("not", "no", "never", "without", "non", "t", "cannot", "none", "neither", "nor"))
_COMPARED = frozenset(
    ("most", "least", "best", "worst", "more", "less", "only", "all", "any", "every", "same", "other")
)
# The number of frequency classes in the table of names.
_COUNT_CLASSES = len(COUNT_BOUNDS) + 1

# "Left out" are words that only the original query has, and "added" are words that only the reformulation has. "Left
# out and added": there are words of both kinds. "As many left out as added": the numbers of both kinds are equal and
# not 0. "Begins as the query": the first two words of both texts are equal. "Share of pairs kept": the share of the
# pairs of adjacent words in the query that the reformulation also has. Features of one text, such as "ends with
# function word", describe the reformulation.
FEATURES = (
    "similarity", "similarity squared", "left out", "share left out", "none left out", "added", "share added",
    "none added", "left out, rare", "added, rare", "added, names", "names lost", "numbers lost", "numbers added",
    "length ratio", "length", "query length", "follows the query", "begins as the query", "share of pairs kept",
    "order changed", "share of function words", "no function word", "question word lost", "question word added",
    "negation changed", "comparison lost", "function words left out", "function words added", "repeats",
    "left out and added", "as many left out as added", "ends with function word", "ends with added word", "looks alike",
)  # fmt: skip


def pair_features(originals: Sequence[str], candidates: Sequence[str]) -> Floats:
    """Return the features of each pair: a row per pair, a column for each of ``FEATURES``."""
    known = {text: _QuerySide(text) for text in set(originals)}
    similarities = light_similarity(originals, candidates).tolist()
    found = np.empty((len(candidates), len(FEATURES)))
    for i, (one, two, similarity) in enumerate(zip(originals, candidates, similarities, strict=True)):
        found[i] = _row(known[one], _Side(two), similarity)
    return found


class _Side:
    """The words of one text of a pair."""

    __slots__ = ("content", "function", "pairs", "places", "text", "words")

    def __init__(self, text: str) -> None:
        words = plain_words(text)
        self.text, self.words = text, words
        self.content = [word for word in words if word not in FUNCTION_WORDS]
        self.function = FUNCTION_WORDS.intersection(words)
        self.pairs = set(pairwise(words))
        # The position of each content word, by its stem.
        self.places = {_stem(word): i for i, word in enumerate(self.content)}


class _QuerySide(_Side):
    """The words of an original, and the names and numbers that a candidate must keep."""

    __slots__ = ("names", "numbers", "readings", "typed")

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.names = KeptNames(text, CERTAINTY)
        self.typed = parts_of_numbers(self.words)
        self.numbers = numbers(text) if self.typed else self.typed
        self.readings = readings(text) if self.typed else self.typed


def _row(one: _QuerySide, two: _Side, similarity: float) -> list[float]:
    """The features, in the order of their names."""
    lost = [one.content[i] for key, i in one.places.items() if key not in two.places]
    new = [two.content[i] for key, i in two.places.items() if key not in one.places]
    return [
        similarity, similarity * similarity, *_counts(lost, one), *_counts(new, two),
        sum(map(_rarity, lost)), sum(map(_rarity, new)), sum(map(_is_name, new)),
        one.names.lost_in(two.text, two.words),
        not one.typed.issubset(two.words) and not has_numbers(two.text, one.numbers),
        bool(new) and not "".join(new).isalpha() and adds_number(two.text, one.readings),
        *_form(one, two), *_function_words(one.function, two.function, lost),
        len(two.content) > len(two.places), bool(lost and new), len(lost) == len(new) > 0,
        *_end(two.words, new), _alike(lost, new),
    ]  # fmt: skip


def _form(one: _Side, two: _Side) -> list[float]:
    """Return the features of length and word order."""
    size, other_size = len(one.words) or 1, len(two.words) or 1
    order = [one.places[key] for key in two.places if key in one.places]
    return [
        math.log(other_size / size), math.log(other_size), math.log(size), one.words == two.words[: len(one.words)],
        one.words[:2] == two.words[:2], len(one.pairs & two.pairs) / (len(one.pairs) or 1),
        sum([b < a for a, b in pairwise(order)]) / (len(order) or 1),
        1 - len(two.content) / other_size, not two.function,
    ]  # fmt: skip


def _function_words(one: frozenset[str], two: frozenset[str], lost: list[str]) -> list[float]:
    """Return the features of question words, negations, comparisons (who, not, most) and other function words."""
    gone, new = one - two, two - one
    return [
        not gone.isdisjoint(_QUESTIONS), not new.isdisjoint(_QUESTIONS),
        one.isdisjoint(_NEGATIONS) != two.isdisjoint(_NEGATIONS),
        not _COMPARED.isdisjoint(gone) or not _COMPARED.isdisjoint(lost), min(4, len(gone)) / 4, min(4, len(new)) / 4,
    ]  # fmt: skip


def _end(words: list[str], new: list[str]) -> tuple[bool, bool]:
    last = words[-1] if words else ""
    return last in FUNCTION_WORDS, last in new


def _counts(words: list[str], side: _Side) -> tuple[float, float, bool]:
    return min(5, len(words)) / 5, len(words) / (len(side.places) or 1), not words


@lru_cache(maxsize=1 << 16)
def _is_name(word: str) -> bool:
    """Whether a word by itself is taken for a name."""
    return bool(read_table().names([word], CERTAINTY))


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    return stem(word)


@lru_cache(maxsize=1 << 16)
def _rarity(word: str) -> float:
    """0 for the most frequent words, 1 for words that the table of names does not have."""
    code = read_table().code(word)
    return 1.0 - (code % _COUNT_CLASSES + 1) / _COUNT_CLASSES if code < UNSEEN else 1.0


def _alike(lost: list[str], new: list[str]) -> float:
    """Return the share of left-out words with the first four letters of a new word: mostly forms of the same word."""
    heads = {word[:4] for word in new}
    return sum(word[:4] in heads for word in lost) / len(lost) if lost else 0.0
