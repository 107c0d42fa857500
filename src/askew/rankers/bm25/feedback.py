"""Pseudo-relevance feedback as Anserini does it: RM3 and Rocchio.

The terms of a query's top-ranked documents are added to the query. Both methods use terms of 2 to 20 UTF-16 code units
that occur in at most a tenth of the documents, not counting documents with a blank text.

RM3 uses only terms of the letters a-z and digits, and the ``terms`` most frequent ones of each document. Their counts
are normalized to sum 1 (L1), multiplied by the score of the document and summed over documents. The best terms are
normalized to sum 1 and mixed with the query: weight = original * query share + (1 - original) * feedback share.
Rocchio uses all terms of each document. Documents are normalized to length 1 (L2) and averaged, and the ``terms`` best
terms of the mean are normalized again: weight = alpha * query (length 1) + beta * mean.

Weights are rounded to 32-bit floats where Anserini rounds them. In the second search, Lucene also rounds the product of
weight and idf to 32 bits, which askew does not: in one of a hundred lists of 1000, documents with scores that differ
only in the last digit are swapped (``benchmarks/lucene.py``). If a run is shorter than ``documents``, Anserini's
SimpleSearcher gives Rocchio only as many documents as the run has; here the length of the run has no such effect.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from askew.core.errors import ConfigError
from askew.core.feedback import (
    SINGLE,
    Numbers,
    Weights,
    best,
    has_usable_length,
    is_common,
    mean_vector,
    relevance_model,
    to_length_one,
    to_sum_one,
)
from askew.core.ranking import Hits
from askew.rankers.bm25.ranker import Bm25Ranker

_LETTERS_AND_DIGITS = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class Rm3:
    """RM3's settings; the defaults are Anserini's."""

    documents: int = 10
    terms: int = 10
    original: float = 0.5

    def __post_init__(self) -> None:
        if self.documents < 1 or self.terms < 1 or not 0 <= self.original <= 1:
            raise ConfigError(f"rm3: expected documents >= 1, terms >= 1 and 0 <= original <= 1; found {self}")

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

    def __post_init__(self) -> None:
        if self.documents < 1 or self.terms < 1 or min(self.alpha, self.beta) < 0:
            raise ConfigError(f"rocchio: expected documents >= 1, terms >= 1, alpha >= 0 and beta >= 0; found {self}")

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


def expand(ranker: Bm25Ranker, texts: Sequence[str], method: Rm3 | Rocchio) -> list[Weights]:
    """Expand each query to weighted terms. A query without results keeps its own terms."""
    first = ranker.search(texts, method.documents)
    expanded = []
    for i, text in enumerate(texts):
        query: Weights = {term: float(count) for term, count in Counter(ranker.analyzer.terms(text)).items()}
        part = slice(int(first.offsets[i]), int(first.offsets[i + 1]))
        found = zip(first.docs[part].tolist(), first.scores[part].tolist(), strict=True)
        documents = [(method.read(_usable_terms(ranker, doc)), score) for doc, score in found]
        expanded.append(method.mix(query, documents) if documents else query)
    return expanded


def search_with_feedback(ranker: Bm25Ranker, texts: Sequence[str], k: int, method: Rm3 | Rocchio) -> Hits:
    """Search, expand, search again."""
    return ranker.search_weighted(expand(ranker, texts, method), k)


def _usable_terms(ranker: Bm25Ranker, doc: int) -> Weights:
    """The terms of a document that are allowed for feedback, with their frequencies."""
    index = ranker.index
    numbers, counts = index.document_terms(doc)
    rare = ~is_common(index.offsets[numbers + 1] - index.offsets[numbers], index.with_text)
    names = index.terms.take(pa.array(numbers[rare])).to_pylist()
    found = zip(names, counts[rare].tolist(), strict=True)
    return {name: float(count) for name, count in found if has_usable_length(name)}
