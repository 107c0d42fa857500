"""Rankings as columns, and the one rule by which they are ordered.

``score``  by score, best first, compared as 32-bit floats; ties by document id, highest first, bytes
           compared. This is what trec_eval does, and it ignores the rank column as trec_eval does.
``file``   as the lines come in the file: what the published bias scripts do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ORDERS = ("score", "file")
# Entries of one block of the padded matrix: keeps memory flat, and the block in the cache.
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Rankings:
    """Documents of each query, best first. ``docs`` are ordinals of some list of documents."""

    query_ids: pa.Array
    offsets: Ints
    docs: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ints:
        """How many documents each query has."""
        return np.diff(self.offsets)

    def keep(self, wanted: npt.NDArray[np.bool_]) -> Rankings:
        """Without the entries not wanted; what follows them moves up. No query is lost."""
        running = np.concatenate([[0], np.cumsum(wanted)])
        return Rankings(self.query_ids, running[self.offsets].astype(np.int64), self.docs[wanted])

    def cut(self, k: int | None) -> Rankings:
        """The first k of each query."""
        if k is None or len(self) == 0 or int(self.lengths.max()) <= k:
            return self
        return self.keep(self.ranks() <= k)

    def ranks(self) -> Ints:
        """The rank of each entry, from 1."""
        return np.arange(len(self.docs)) - np.repeat(self.offsets[:-1], self.lengths) + 1

    def select(self, rows: Ints) -> Rankings:
        """The rankings of some queries, in the order given."""
        lengths = self.lengths[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        docs = self.docs[np.repeat(self.offsets[:-1][rows], lengths) + within]
        return Rankings(self.query_ids.take(pa.array(rows)), offsets, docs)

    def blocks(self, k: int | None) -> Iterator[tuple[slice, Ints]]:
        """The first k of each query as a matrix padded with -1, a block of queries at a time."""
        if len(self) == 0:
            return
        width = max(1, int(self.lengths.max()) if k is None else min(k, int(self.lengths.max())))
        rows = max(1, _BLOCK // width)
        columns = np.arange(width)
        for start in range(0, len(self), rows):
            part = slice(start, min(start + rows, len(self)))
            begin, length = self.offsets[part], self.lengths[part]
            index = begin[:, None] + columns
            inside = columns < length[:, None]
            padded = np.full(index.shape, -1, np.int64)
            padded[inside] = self.docs[index[inside]]
            yield part, padded


def sum_rows(matrix: Floats) -> Floats:
    """Row sums, added from left to right.

    NumPy's own sum and the matrix product add in an order that depends on the width of the block; the last digit
    of a score must not depend on how the work was cut up, nor on what trails in the padding.
    """
    return np.cumsum(matrix, axis=1)[:, -1]


def order_by_score(query: Ints, score: Floats, doc_id_rank: Ints) -> Ints:
    """The order of run lines under the rule ``score``; ``doc_id_rank`` ranks document ids by their bytes."""
    return np.lexsort((-doc_id_rank, -score.astype(np.float32), query)).astype(np.int64)
