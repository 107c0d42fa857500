"""Queries in, rankings out: batches are analysed together, equal bags of terms are searched once."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core.errors import ConfigError
from askew.rankers.bm25.analyze import Analyzer
from askew.rankers.bm25.index import KTH, Index
from askew.rankers.bm25.search import search_bags
from askew.rankers.bm25.weights import MODELS, Model

MOST = 1000


@dataclass(frozen=True)
class Hits:
    """The answers of a batch of queries: query i has documents ``docs[offsets[i]:offsets[i + 1]]``, best first."""

    offsets: np.ndarray[Any, np.dtype[np.int64]]
    docs: np.ndarray[Any, np.dtype[np.int32]]
    scores: np.ndarray[Any, np.dtype[np.float32]]

    @property
    def empty(self) -> int:
        """How many queries found nothing."""
        return int((np.diff(self.offsets) == 0).sum())


@dataclass(frozen=True)
class Bags:
    """Weighted terms of distinct queries, and which of them each query is."""

    offsets: np.ndarray[Any, np.dtype[np.int64]]
    terms: np.ndarray[Any, np.dtype[np.int64]]
    weights: np.ndarray[Any, np.dtype[np.float64]]
    which: np.ndarray[Any, np.dtype[np.int64]]


class Bm25Ranker:
    """Searches an index under a model: BM25 with its parameters, or query likelihood."""

    def __init__(self, index: Index | Path | str, model: Model | str = "bm25", threads: int | None = None) -> None:
        self.index = index if isinstance(index, Index) else Index.open(index)
        if isinstance(model, str):
            if model not in MODELS:
                raise ConfigError(f"model {model!r}: expected one of {', '.join(MODELS)}")
            model = MODELS[model]
        self.model, self.threads = model, threads or os.cpu_count() or 1
        self.weights = self.index.weights(model)
        self.analyzer = Analyzer(self.index.header["analyzer"])
        self._pool = ThreadPoolExecutor(self.threads)
        self._own = threading.local()
        self._stamp = 1

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k best documents of each query."""
        array = texts if isinstance(texts, pa.Array) else pa.array(list(texts), pa.large_string())
        return self.search_bags(self.bags(array.cast(pa.large_string()).fill_null("")), k)

    def search_weighted(self, queries: Sequence[Mapping[str, float]], k: int = 10) -> Hits:
        """As ``search`` for queries given as analysed terms with weights."""
        names = sorted({term for query in queries for term in query})
        numbers = dict(zip(names, self.index.term_numbers(names).tolist(), strict=True))
        rows = [[(numbers[t], w) for t, w in query.items() if numbers[t] >= 0 and w > 0] for query in queries]
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        flat = [pair for row in rows for pair in row]
        terms = np.array([t for t, _ in flat], np.int64)
        weights = np.array([w for _, w in flat], np.float64)
        return self.search_bags(Bags(offsets, terms, weights, np.arange(len(rows))), k)

    def bags(self, texts: pa.Array) -> Bags:
        """Analyse queries; terms that no document has are left out, equal queries are put together."""
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
        return _distinct(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), terms[starts], weights)

    def _numbers(self, words: list[str]) -> Any:
        terms = [self.analyzer.to_term(word) for word in words]
        numbers = self.index.term_numbers([term or "" for term in terms])
        numbers[[term is None for term in terms]] = -1
        return numbers

    def _stamps(self, count: int) -> int:
        """The first of so many numbers that no query before had."""
        if self._stamp + count >= 1 << 31:
            self._own, self._stamp = threading.local(), 1
        self._stamp += count
        return self._stamp - count

    def _seen(self) -> Any:
        """One array for each thread, kept from search to search."""
        if not hasattr(self._own, "seen"):
            self._own.seen = np.zeros(len(self.index) + 1, np.int32)
        return self._own.seen

    def search_bags(self, bags: Bags, k: int) -> Hits:
        """Search distinct bags in several threads, and give every query its answer."""
        if not 1 <= k <= MOST:
            raise ConfigError(f"k must be from 1 to {MOST}, found {k}")
        count = len(bags.offsets) - 1
        docs, scores = np.zeros((count, k), np.int32), np.zeros((count, k), np.float32)
        found = np.zeros(count, np.int64)
        w = self.weights
        kth = w.kth[min(size for size in KTH if size >= k)]

        stamp = self._stamps(count)

        def work(part: Any) -> None:
            search_bags(
                part, bags.offsets, bags.terms, bags.weights, k, self.index.offsets, self.index.docs, w.impacts,
                w.block_offsets, w.block_max, w.term_max, kth, w.range_offsets, w.ranges, docs, scores,
                found, self._seen(), stamp,
            )  # fmt: skip

        parts = np.array_split(np.arange(count), max(1, min(count, 8 * self.threads if self.threads > 1 else 1)))
        if self.threads == 1:
            work(parts[0])
        else:
            list(self._pool.map(work, parts))
        return _spread(bags.which, docs, scores, found)


def _distinct(offsets: Any, terms: Any, weights: Any) -> Bags:
    seen: dict[bytes, int] = {}
    which = np.empty(len(offsets) - 1, np.int64)
    first: list[int] = []
    edges = offsets.tolist()
    for query in range(len(which)):
        a, b = edges[query], edges[query + 1]
        key = terms[a:b].tobytes() + weights[a:b].tobytes()
        which[query] = seen.setdefault(key, len(seen))
        if len(seen) > len(first):
            first.append(query)
    chosen = np.array(first, np.int64)
    sizes = np.diff(offsets)[chosen]
    new = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    take = np.arange(int(new[-1])) - np.repeat(new[:-1], sizes) + np.repeat(offsets[chosen], sizes)
    return Bags(new, terms[take].astype(np.int64), weights[take], which)


def _spread(which: Any, docs: Any, scores: Any, found: Any) -> Hits:
    sizes = found[which]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    within = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], sizes)
    rows = np.repeat(which, sizes)
    return Hits(offsets, docs[rows, within], scores[rows, within])
