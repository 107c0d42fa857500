"""Weights of terms in relevance feedback, computed as Anserini's RM3 and Rocchio do.

The rankers and the reformulators of these names share these rules. A feedback term has 2 to 20 UTF-16 code units (a
character outside the Basic Multilingual Plane counts as two) and is in at most a tenth of the documents. Terms with
equal weights are ordered by their code units.

Anserini computes in 32-bit floats and adds the documents up in the order of their ranks, so its rounding decides
between terms with almost equal weights. ``SINGLE`` rounds in the same places. ``EXACT`` does not round, and the
order of the documents does not change a weight.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Weights = dict[str, float]
# The characters that Java's String.trim removes. Anserini skips a document of only these, and does not count it.
BLANK = "".join(map(chr, range(0x21)))
_SHORTEST, _LONGEST = 2, 20


@dataclass(frozen=True)
class Numbers:
    """How a value is rounded, and how values are added up."""

    rounded: Callable[[float], float]
    total: Callable[[Iterable[float]], float]


def to_single(value: float) -> float:
    """A value rounded to a 32-bit float."""
    return float(np.float32(value))


def _add_in_order(values: Iterable[float]) -> float:
    total = 0.0
    for value in values:
        # A sum of two 32-bit floats, rounded from 64 bits, is their 32-bit sum.
        total = to_single(total + value)
    return total


EXACT = Numbers(float, math.fsum)
SINGLE = Numbers(to_single, _add_in_order)


def has_usable_length(term: str) -> bool:
    """Whether a term has 2 to 20 UTF-16 code units, which is how Java measures a string."""
    return _SHORTEST <= (len(term) if term.isascii() else len(_units(term)) // 2) <= _LONGEST


def is_common(frequency: Any, documents: int, share: float = 0.1) -> Any:
    """Whether a term (or each of an array of terms) is in more than this share of the documents, in 32-bit floats."""
    return np.asarray(frequency, np.float32) / np.float32(max(documents, 1)) > np.float32(share)


def best(values: Mapping[str, float], most: int) -> Weights:
    """The terms with the highest values, highest first. Ties are ordered by their UTF-16 code units."""
    return dict(sorted(values.items(), key=lambda item: (-item[1], _units(item[0])))[:most])


def to_sum_one(values: Mapping[str, float], numbers: Numbers = EXACT) -> Weights:
    """Values divided by their sum (L1)."""
    total = math.fsum(values.values())
    return {term: numbers.rounded(value / total) for term, value in values.items()} if total else {}


def to_length_one(values: Mapping[str, float], numbers: Numbers = EXACT) -> Weights:
    """Values divided by the length of their vector (L2)."""
    length = _length(values)
    return {term: numbers.rounded(value / length) for term, value in values.items()} if length else {}


def relevance_model(
    documents: Sequence[Mapping[str, float]], counted: Sequence[float], terms: int, numbers: Numbers = EXACT
) -> Weights:
    """RM3's feedback: the weights of the best terms. A document's term shares are multiplied by its weight."""
    parts: dict[str, list[float]] = {}
    for counts, weight in zip(documents, counted, strict=True):
        total = math.fsum(counts.values())
        for term, count in counts.items():
            parts.setdefault(term, []).append(numbers.rounded(numbers.rounded(count / total) * weight))
    sums = {term: numbers.total(values) for term, values in parts.items()}
    return to_sum_one(best({term: value for term, value in sums.items() if value > 0}, terms), numbers)


def mean_vector(documents: Sequence[Mapping[str, float]], numbers: Numbers = EXACT) -> Weights:
    """Rocchio's feedback: the mean of the document vectors, each normalized to length 1."""
    parts: dict[str, list[float]] = {}
    for counts in documents:
        length = numbers.rounded(_length(counts))
        for term, count in counts.items():
            parts.setdefault(term, []).append(numbers.rounded(count / length))
    return {term: numbers.rounded(numbers.total(values) / len(documents)) for term, values in parts.items()}


def _length(values: Mapping[str, float]) -> float:
    return math.sqrt(math.fsum(value * value for value in values.values()))


def _units(term: str) -> bytes:
    return term.encode("utf-16-be")


_LETTERS_AND_DIGITS = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class Rm3:
    """RM3's settings; the defaults are Anserini's."""

    documents: int = 10
    terms: int = 10
    original: float = 0.5

    def read(self, usable: Weights) -> Weights:
        """The most frequent terms of letters and digits among the usable terms of a document."""
        return best({term: n for term, n in usable.items() if _LETTERS_AND_DIGITS.fullmatch(term)}, self.terms)

    def mix(self, query: Weights, documents: Sequence[tuple[Weights, float]], numbers: Numbers = SINGLE) -> Weights:
        """Mix the query with the terms of its top-ranked documents. ``documents`` are pairs of terms and score."""
        own = to_sum_one(query, numbers)
        model = relevance_model([terms for terms, _ in documents], [s for _, s in documents], self.terms, numbers)
        original, rounded = numbers.rounded(self.original), numbers.rounded
        return {
            term: rounded(rounded(original * own.get(term, 0.0)) + (1 - original) * model.get(term, 0.0))
            for term in {**own, **model}
        }


@dataclass(frozen=True)
class Rocchio:
    """Rocchio's settings; the defaults are Anserini's (without negative documents)."""

    documents: int = 10
    terms: int = 10
    alpha: float = 1.0
    beta: float = 0.75

    def read(self, usable: Weights) -> Weights:
        """All usable terms of a document."""
        return usable

    def mix(self, query: Weights, documents: Sequence[tuple[Weights, float]], numbers: Numbers = SINGLE) -> Weights:
        """Mix the query with the mean of its top-ranked documents."""
        own = to_length_one(query, numbers)
        mean = to_length_one(best(mean_vector([terms for terms, _ in documents], numbers), self.terms), numbers)
        alpha, beta, rounded = numbers.rounded(self.alpha), numbers.rounded(self.beta), numbers.rounded
        return {
            term: rounded(rounded(alpha * own.get(term, 0.0)) + rounded(beta * mean.get(term, 0.0)))
            for term in {**own, **mean}
        }
