"""Select the k best documents from blocks of scores, for any number of queries at once.

A 64-bit key has the score, as an integer of the same order, in its high half and the reversed document number in its
low half. So one comparison of keys orders by score and, for equal scores, by the order of the collection.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from askew.compiled import compiled
from askew.core.ranking import Hits
from askew.sorting import sort_ascending

_SIGN = np.uint32(0x80000000)


class TopK:
    """Collects the k best documents of each query."""

    def __init__(self, queries: int, k: int) -> None:
        self.k = k
        self._keys = np.zeros((queries, 2 * k), np.uint64)
        self._held = np.zeros(queries, np.int64)
        self._floor = np.zeros(queries, np.uint64)

    def offer(self, scores: Any, first: int = 0) -> None:
        """Add the scores of the documents ``first, first + 1, ...``, with one row per query."""
        bits = np.ascontiguousarray(scores, np.float32).view(np.uint32)
        _offer(bits, first, self.k, self._keys, self._held, self._floor)

    def hits(self) -> Hits:
        """The k best documents of each query, best first."""
        sizes = np.minimum(self._held, self.k)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        docs, bits = np.empty(int(offsets[-1]), np.int32), np.empty(int(offsets[-1]), np.uint32)
        _finish(self._keys, self._held, offsets, docs, bits)
        return Hits(offsets, docs, bits.view(np.float32))


@compiled(parallel=True)
def _offer(bits: Any, first: int, k: int, keys: Any, held: Any, floor: Any) -> None:
    for query in prange(len(bits)):
        size, least = held[query], floor[query]
        row = keys[query]
        for i in range(bits.shape[1]):
            raw = bits[query, i]
            ordered = ~raw if raw & _SIGN else raw | _SIGN
            key = np.uint64(ordered) << np.uint64(32) | np.uint64(0xFFFFFFFF - (first + i))
            if key > least:
                row[size] = key
                size += 1
                if size == 2 * k:
                    sort_ascending(row)
                    for j in range(k):
                        row[j] = row[k + j]
                    size, least = k, row[0]
        held[query], floor[query] = size, least


@compiled(parallel=True)
def _finish(keys: Any, held: Any, offsets: Any, docs: Any, bits: Any) -> None:
    for query in prange(len(held)):
        ordered, last = keys[query, : held[query]], held[query] - 1
        sort_ascending(ordered)
        for i in range(offsets[query + 1] - offsets[query]):
            high = np.uint32(ordered[last - i] >> np.uint64(32))
            docs[offsets[query] + i] = np.int32(np.uint64(0xFFFFFFFF) - (ordered[last - i] & np.uint64(0xFFFFFFFF)))
            bits[offsets[query] + i] = high ^ _SIGN if high & _SIGN else ~high
