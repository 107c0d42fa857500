"""Helpers that several rankers share: query texts, joined and sorted results, and names for runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numba import prange

from askew.core.compiled import compiled, sort_ascending
from askew.core.errors import ConfigError
from askew.core.ranking import Hits, Ints

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
        # Beyond the keys that are held, a row may have older ones.
        self._keys[np.arange(self._keys.shape[1]) >= self._held[:, None]] = 0
        best = np.sort(self._keys, axis=1)[:, ::-1][np.arange(self._keys.shape[1]) < sizes[:, None]]
        ordered = (best >> np.uint64(32)).astype(np.uint32)
        bits = np.where(ordered & _SIGN, ordered ^ _SIGN, ~ordered)
        docs = (np.uint64(0xFFFFFFFF) - (best & np.uint64(0xFFFFFFFF))).astype(np.int32)
        return Hits(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), docs, bits.view(np.float32))


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


def query_texts(texts: Sequence[str] | pa.Array) -> list[str]:
    """Convert queries to a list of texts. A null becomes an empty text."""
    return [text or "" for text in (texts.to_pylist() if isinstance(texts, pa.Array | pa.ChunkedArray) else texts)]


def check_k(k: int) -> None:
    """Raise an error if k is less than 1."""
    if k < 1:
        raise ConfigError(f"k must be 1 or more, found {k}")


def join_hits(parts: Sequence[Hits]) -> Hits:
    """Concatenate the results of several batches."""
    sizes = np.concatenate([np.diff(part.offsets) for part in parts]) if parts else np.zeros(0, np.int64)
    return Hits(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([part.docs for part in parts]) if parts else np.zeros(0, np.int32),
        np.concatenate([part.scores for part in parts]) if parts else np.zeros(0, np.float32),
    )


def taken(hits: Hits, rows: Ints) -> Hits:
    """Return the lists of the given rows, in this order."""
    sizes = np.diff(hits.offsets)[rows]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    at = np.arange(offsets[-1]) + np.repeat(hits.offsets[:-1][rows] - offsets[:-1], sizes)
    return Hits(offsets, hits.docs[at], hits.scores[at])


def one_word(text: str) -> str:
    """Convert a name to one word, for the last column of a run."""
    return re.sub(r"[^A-Za-z0-9.@_-]+", "_", text)


def ranked(rows: Any, docs: Any, scores: Any, queries: int, k: int) -> Hits:
    """Sort scored documents by query and score, and keep k per query. Ties follow the order of the collection."""
    scores = np.asarray(scores, np.float32)
    order = np.lexsort((docs, -scores, rows))
    rows, docs, scores = np.asarray(rows)[order], np.asarray(docs)[order], scores[order]
    sizes = np.bincount(rows, minlength=queries).astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    in_top = np.arange(len(rows)) - np.repeat(starts, sizes) < k
    offsets = np.concatenate([[0], np.cumsum(np.minimum(sizes, k))]).astype(np.int64)
    return Hits(offsets, docs[in_top].astype(np.int32), scores[in_top])
