"""Search a BM25 index. Batches of queries are analyzed together, and equal bags of terms are searched once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core.errors import ConfigError
from askew.core.ranking import Hits
from askew.rankers.bm25.analyze import Analyzer
from askew.rankers.bm25.bags import MOST, Bags, BagSearcher, distinct_bags
from askew.rankers.bm25.index import Index
from askew.rankers.bm25.weights import MODELS, Model


class Bm25Ranker:
    """Searches an index under a model: BM25 with its parameters, or query likelihood."""

    most = MOST

    def __init__(
        self, index: Index | Path | str, model: Model | str = "bm25", threads: int | None = None,
        analyzer: Analyzer | None = None,
    ) -> None:  # fmt: skip
        self.index = index if isinstance(index, Index) else Index.open(index)
        if isinstance(model, str):
            if model not in MODELS:
                raise ConfigError(f"model {model!r}: expected one of {', '.join(MODELS)}")
            model = MODELS[model]
        self.model, self.id, self.doc_ids = model, model.id, self.index.doc_ids
        self.weights = self.index.weights(model)
        self.analyzer = _same_analyzer(analyzer, self.index.header["analyzer"])
        self._searcher = BagSearcher(self.index.offsets, self.index.docs, self.weights, len(self.index), threads)
        self.threads = self._searcher.threads

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k best documents of each query."""
        array = texts if isinstance(texts, pa.Array) else pa.array(list(texts), pa.large_string())
        return self.search_bags(self.bags(array.cast(pa.large_string()).fill_null("")), k)

    def search_bags(self, bags: Bags, k: int) -> Hits:
        """Do the same as ``search`` for queries given as bags of terms."""
        return self._searcher.search(bags, k)

    def search_weighted(self, queries: Sequence[Mapping[str, float]], k: int = 10) -> Hits:
        """Do the same as ``search`` for queries given as analyzed terms with weights."""
        names = sorted({term for query in queries for term in query})
        numbers = dict(zip(names, self.index.term_numbers(names).tolist(), strict=True))
        rows = [[(numbers[t], w) for t, w in query.items() if numbers[t] >= 0 and w > 0] for query in queries]
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        flat = [pair for row in rows for pair in row]
        terms = np.array([t for t, _ in flat], np.int64)
        weights = np.array([w for _, w in flat], np.float64)
        return self.search_bags(Bags(offsets, terms, weights, np.arange(len(rows))), k)

    def bags(self, texts: pa.Array) -> Bags:
        """Analyze queries. Terms that no document has are left out, and equal queries are merged."""
        words, ids, counts = self.analyzer.split(texts)
        known = self._numbers(words)
        terms = known[ids] if len(words) else np.zeros(0, np.int64)
        query = np.repeat(np.arange(len(counts)), counts)
        query, terms = query[terms >= 0], terms[terms >= 0]
        order = np.lexsort((terms, query))
        query, terms = query[order], terms[order]
        new = np.ones(len(terms), np.bool_)
        new[1:] = (terms[1:] != terms[:-1]) | (query[1:] != query[:-1])
        starts = np.flatnonzero(new)
        weights = np.diff(np.append(starts, len(terms))).astype(np.float64)
        sizes = np.bincount(query[starts], minlength=len(counts))
        return distinct_bags(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), terms[starts], weights)

    def _numbers(self, words: list[str]) -> Any:
        terms = self.analyzer.to_terms(words)
        numbers = self.index.term_numbers([term or "" for term in terms])
        numbers[[term is None for term in terms]] = -1
        return numbers


def _same_analyzer(given: Analyzer | None, name: str) -> Analyzer:
    """The analyzer of the index: queries must be analyzed in the same way as documents."""
    if given is None:
        return Analyzer(name)
    if given.name != name:
        raise ConfigError(
            f"analyzer: expected {name!r}, with which the index was built, found {given.name!r}; use {name!r}"
        )
    return given
