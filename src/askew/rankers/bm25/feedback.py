"""Pseudo-relevance feedback as Anserini does it: RM3 and Rocchio.

The first documents of a query lend it their terms. Both take terms of 2 to 20 letters and digits that are in at most a
tenth of the documents, and at most ``terms`` of each document.

RM3: each document's terms, as shares of the document (L1), count by its score; the best are brought to shares and mixed
with the query's own: weight = original * query share + (1 - original) * feedback share.
Rocchio: the mean of the documents' terms (each brought to length 1, L2), the best of it brought to length 1 again:
weight = alpha * query (length 1) + beta * mean.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from askew.core.errors import ConfigError
from askew.core.ranking import Hits
from askew.rankers.bm25.ranker import Bm25Ranker

_USABLE = re.compile(r"[a-z0-9]{2,20}")
_MOST_COMMON = 0.1
Weighted = dict[str, float]


@dataclass(frozen=True)
class Rm3:
    """RM3's settings; the defaults are Anserini's."""

    documents: int = 10
    terms: int = 10
    original: float = 0.5

    def __post_init__(self) -> None:
        if self.documents < 1 or self.terms < 1 or not 0 <= self.original <= 1:
            raise ConfigError(f"rm3: expected documents and terms of 1 or more and 0 <= original <= 1; found {self}")

    def mix(self, query: Weighted, documents: Sequence[tuple[Weighted, float]]) -> Weighted:
        """The query with the terms of its first documents, given with their scores."""
        feedback: Weighted = {}
        for terms, score in documents:
            total = sum(terms.values())
            for term, count in terms.items():
                feedback[term] = feedback.get(term, 0.0) + count / total * score
        shares, own = _to_sum_one(_best(feedback, self.terms)), _to_sum_one(query)
        return _weighted_sum(own, self.original, shares, 1 - self.original)


@dataclass(frozen=True)
class Rocchio:
    """Rocchio's settings; the defaults are Anserini's (without negative documents)."""

    documents: int = 10
    terms: int = 10
    alpha: float = 1.0
    beta: float = 0.75

    def __post_init__(self) -> None:
        if self.documents < 1 or self.terms < 1 or min(self.alpha, self.beta) < 0:
            raise ConfigError(f"rocchio: expected documents and terms of 1 or more, alpha and beta >= 0; found {self}")

    def mix(self, query: Weighted, documents: Sequence[tuple[Weighted, float]]) -> Weighted:
        """The query with the mean of its first documents."""
        mean: Weighted = {}
        for terms, _ in documents:
            for term, value in _to_length_one(terms).items():
                mean[term] = mean.get(term, 0.0) + value / len(documents)
        return _weighted_sum(_to_length_one(query), self.alpha, _to_length_one(_best(mean, self.terms)), self.beta)


def expand(ranker: Bm25Ranker, texts: Sequence[str], method: Rm3 | Rocchio) -> list[Weighted]:
    """Each query as weighted terms; a query that finds nothing keeps its own."""
    first = ranker.search(texts, method.documents)
    expanded = []
    for i, text in enumerate(texts):
        query: Weighted = {term: float(count) for term, count in Counter(ranker.analyzer.terms(text)).items()}
        part = slice(int(first.offsets[i]), int(first.offsets[i + 1]))
        found = zip(first.docs[part].tolist(), first.scores[part].tolist(), strict=True)
        documents = [(terms, score) for doc, score in found if (terms := _usable_terms(ranker, doc, method.terms))]
        expanded.append(method.mix(query, documents) if documents else query)
    return expanded


def search_with_feedback(ranker: Bm25Ranker, texts: Sequence[str], k: int, method: Rm3 | Rocchio) -> Hits:
    """Search, expand, search again."""
    return ranker.search_weighted(expand(ranker, texts, method), k)


def _usable_terms(ranker: Bm25Ranker, doc: int, most: int) -> Weighted:
    """The most frequent usable terms of a document; equal counts in the order of the alphabet."""
    index = ranker.index
    numbers, counts = index.document_terms(doc)
    limit = _MOST_COMMON * len(index)
    names = index.terms.take(pa.array(numbers)).to_pylist()
    kept = {
        name: float(count)
        for name, number, count in zip(names, numbers.tolist(), counts.tolist(), strict=True)
        if _USABLE.fullmatch(name) and index.offsets[number + 1] - index.offsets[number] <= limit
    }
    return _best(kept, most)


def _best(values: Weighted, most: int) -> Weighted:
    return dict(sorted(values.items(), key=lambda item: (-item[1], item[0]))[:most])


def _to_sum_one(values: Weighted) -> Weighted:
    total = sum(values.values())
    return {term: value / total for term, value in values.items()} if total else {}


def _to_length_one(values: Weighted) -> Weighted:
    length = math.sqrt(sum(value * value for value in values.values()))
    return {term: value / length for term, value in values.items()} if length else {}


def _weighted_sum(one: Weighted, a: float, other: Weighted, b: float) -> Weighted:
    return {term: a * one.get(term, 0.0) + b * other.get(term, 0.0) for term in {**one, **other}}
