"""Search bags of weighted terms in several threads. Equal bags are searched once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from askew.compiled import compiled
from askew.core import machine
from askew.core.errors import ConfigError
from askew.core.ranking import Hits
from askew.rankers.blocks import CheckedArray
from askew.rankers.bm25.bounds import KTH, Weights
from askew.rankers.bm25.search import search_bags

MOST = 1000
# Searching this many postings takes a millisecond or two.
_SMALL = 500_000


@dataclass(frozen=True)
class Bags:
    """The weighted terms of distinct bags, and in ``which`` the bag of each query."""

    offsets: np.ndarray[Any, np.dtype[np.int64]]
    terms: np.ndarray[Any, np.dtype[np.int64]]
    weights: np.ndarray[Any, np.dtype[np.float64]]
    which: np.ndarray[Any, np.dtype[np.int64]]


class BagSearcher:
    """Searches weighted postings. The data of a term is compared with its checksums at its first search."""

    def __init__(
        self, offsets: CheckedArray, docs: CheckedArray, weights: Weights, documents: int, threads: int | None = None
    ) -> None:
        self.offsets, self.docs, self.weights, self.documents = offsets, docs, weights, documents
        self._checked = np.zeros(max(len(offsets) - 1, 0), np.bool_)
        self.threads = threads or machine.threads()
        self._pool = ThreadPoolExecutor(self.threads)
        self._own = threading.local()
        self._stamp, self._lock = 1, threading.Lock()

    def _stamps(self, count: int) -> int:
        """Reserve ``count`` numbers that no earlier query had, and return the first."""
        with self._lock:
            if self._stamp + count >= 1 << 31:
                self._own, self._stamp = threading.local(), 1
            self._stamp += count
            return self._stamp - count

    def _seen(self) -> Any:
        """The array of this thread, kept between searches."""
        if not hasattr(self._own, "seen"):
            self._own.seen = np.zeros(self.documents + 1, np.int32)
        return self._own.seen

    def _check(self, terms: Any) -> None:
        """Check all data that a search of these terms may read, for terms that were not searched before."""
        if self._checked[terms].all():
            return
        new = np.unique(terms[~self._checked[terms]])
        self.offsets.check(new, new + 2)
        starts, stops = self.offsets.raw[new], self.offsets.raw[new + 1]
        self.docs.check(starts, stops)
        self.weights.impacts.check(starts, stops)
        self.weights.check(new, stops - starts, self.documents)
        self._checked[new] = True

    def search(self, bags: Bags, k: int) -> Hits:
        """Search the distinct bags in several threads, and return the results of every query."""
        if not 1 <= k <= MOST:
            raise ConfigError(f"k must be from 1 to {MOST}, found {k}")
        self._check(bags.terms)
        count = len(bags.offsets) - 1
        docs, scores = np.zeros((count, k), np.int32), np.zeros((count, k), np.float32)
        found = np.zeros(count, np.int64)
        w = self.weights
        kth = w.kth[min(size for size in KTH if size >= k)].raw

        stamp = self._stamps(2 * count)

        def work(part: Any) -> None:
            search_bags(
                part, bags.offsets, bags.terms, bags.weights, k, self.offsets.raw, self.docs.raw,
                w.impacts.raw, w.block_offsets.raw, w.block_max.raw, w.term_max.raw, kth, w.range_offsets.raw,
                w.ranges.raw, w.bit_offsets.raw, w.bits.raw, w.ranks.raw, docs, scores, found, self._seen(), stamp,
            )  # fmt: skip

        parts = np.array_split(np.arange(count), max(1, min(count, self._parts(bags))))
        if len(parts) == 1:
            work(parts[0])
        else:
            list(self._pool.map(work, parts))
        return _spread(bags.which, docs, scores, found)

    def _parts(self, bags: Bags) -> int:
        """The number of parts of a search. A small search has one part: it ends before other threads would start."""
        starts = self.offsets.raw
        small = int((starts[bags.terms + 1] - starts[bags.terms]).sum()) < _SMALL
        return 1 if small or self.threads == 1 else 8 * self.threads


def distinct_bags(offsets: Any, terms: Any, weights: Any) -> Bags:
    """Merge equal bags."""
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
    offsets = np.concatenate([[0], np.cumsum(found[which])]).astype(np.int64)
    all_docs, all_scores = np.empty(int(offsets[-1]), np.int32), np.empty(int(offsets[-1]), np.float32)
    _copy_rows(which, offsets, docs, scores, all_docs, all_scores)
    return Hits(offsets, all_docs, all_scores)


@compiled
def _copy_rows(which: Any, offsets: Any, docs: Any, scores: Any, all_docs: Any, all_scores: Any) -> None:
    for query in range(len(which)):
        row, start = which[query], offsets[query]
        for i in range(offsets[query + 1] - start):
            all_docs[start + i], all_scores[start + i] = docs[row, i], scores[row, i]
