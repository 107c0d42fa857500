"""Expansion by divergence from randomness, after He and Ounis (2007) and ReQue's onfields.

The Bose-Einstein weight (Bo1) of a term that occurs tf times in the top-ranked passages is

    w = tf * log2((1 + P) / P) + log2(1 + P),     P = frequency in the collection / documents of the collection

where a frequency of 0 counts as 1. The published method sums tf over title, body and anchor texts with a weight for
each; here a passage is one field.

    AvICTF = mean over the terms of the query of log2(tokens of the collection / frequency in the collection)

predicts before the search how specific a query is. The published adaptive method expands from this collection, from
another one, or not at all, whichever has the best prediction. With one collection, a query is expanded if its AvICTF is
``limit`` or more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from askew.core.errors import ConfigError
from askew.plugins.methods import Candidates, CollectionStatistics, QueryBatch
from askew.reformulators.passages import Reading, Weights, add_expanded, append_terms, best_first, positive

NOT_TELLING = "no expansion preferred"


class OnFields:
    """Appends the words of the top-ranked passages with the highest Bose-Einstein weight (Bo1, ReQue's onfields)."""

    method = "onfields"
    reads = frozenset({"passages", "statistics"})

    def __init__(self, documents: int = 3, words: int = 10) -> None:
        positive(self.method, documents=documents, words=words)
        self.mixes, self._words = documents, words

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates."""
        return {"documents": self.mixes, "words": self._words}

    def weighted(self, asked: QueryBatch) -> list[Weights]:
        """The best terms of the top-ranked passages of each query with their weights."""
        return self._weigh(Reading(asked, self.method, self.mixes))

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return the query followed by its new words, by decreasing weight."""
        reading = Reading(asked, self.method, self.mixes)
        weights = self._weigh(reading)
        return append_terms(asked, reading, lambda row: weights[row])

    def _weigh(self, reading: Reading) -> list[Weights]:
        counts = [_summed(reading, row) for row in range(len(reading))]
        known = _collection_frequency(reading.statistics, sorted({term for one in counts for term in one}))
        documents = max(1, reading.statistics.documents)
        found = []
        for one in counts:
            weights = {term: bose_einstein(tf, known[term] / documents) for term, tf in one.items()}
            found.append({term: weights[term] for term in best_first(weights)[: self._words]})
        return found


class AdaptiveOnFields(OnFields):
    """Appends the words of onfields to queries with rare terms, and does not expand other queries (adaponfields)."""

    method = "adaponfields"

    def __init__(self, documents: int = 3, words: int = 10, limit: float = 10.0) -> None:
        super().__init__(documents, words)
        if not 0 <= limit < math.inf:
            raise ConfigError(f"adaponfields: expected limit= to be 0 or more, found {limit}")
        self._limit = limit

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates."""
        return {**super().settings(), "limit": self._limit}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return the expanded query if its AvICTF is ``limit`` or more; other queries are counted as rejected."""
        reading = Reading(asked, self.method, self.mixes)
        weights, telling = self._weigh(reading), rarity(reading)
        found = Candidates()
        for row, text in enumerate(asked.texts):
            if reading.query(row).counts and telling[row] < self._limit:
                found.reject(NOT_TELLING)
            else:
                add_expanded(found, row, text, reading.new_words(row, weights[row]))
        return found


def bose_einstein(tf: float, mean: float) -> float:
    """Return the Bo1 weight of a term that occurs ``tf`` times in the passages and ``mean`` times per document."""
    return tf * math.log2((1 + mean) / mean) + math.log2(1 + mean)


def rarity(reading: Reading) -> list[float]:
    """Return the AvICTF of each query; 0 for a query without terms."""
    terms = sorted({term for row in range(len(reading)) for term in reading.query(row).counts})
    known, tokens = _collection_frequency(reading.statistics, terms), max(1, reading.statistics.tokens)
    found = []
    for row in range(len(reading)):
        counts = reading.query(row).counts
        total = math.fsum(n * math.log2(tokens / known[term]) for term, n in counts.items())
        found.append(total / counts.total() if counts else 0.0)
    return found


def _summed(reading: Reading, row: int) -> Counter[str]:
    total: Counter[str] = Counter()
    for bag in reading.bags(row):
        total.update({term: n for term, n in bag.counts.items() if term.isalnum()})
    return total


def _collection_frequency(statistics: CollectionStatistics, terms: Sequence[str]) -> dict[str, int]:
    found = statistics.collection_frequency(terms).tolist() if terms else []
    return {term: max(1, n) for term, n in zip(terms, found, strict=True)}
