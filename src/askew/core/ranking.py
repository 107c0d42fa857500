"""Rankings as columns, and the one rule by which they are ordered.

``score``  by score, best first, compared as 32-bit floats; ties by document id, highest first, bytes
           compared. This is what trec_eval does, and it ignores the rank column as trec_eval does.
``file``   as the lines come in the file: what the published bias scripts do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

ORDERS = ("score", "file")
# Queries of one part: the columns of a part stay in the cache, and memory stays flat.
_PART = 1 << 15


@dataclass(frozen=True)
class Rankings:
    """Documents of each query, best first. ``docs`` are ordinals of some list of documents.

    ``may_repeat`` marks rankings in which a document may stand twice: only the published way of reading allows it.
    """

    query_ids: pa.Array
    offsets: Ints
    docs: Ints
    may_repeat: bool = False

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ints:
        """How many documents each query has."""
        return np.diff(self.offsets)

    def keep(self, wanted: Flags) -> Rankings:
        """Without the entries not wanted; what follows them moves up. No query is lost."""
        running = np.concatenate([[0], np.cumsum(wanted)])
        return Rankings(self.query_ids, running[self.offsets].astype(np.int64), self.docs[wanted], self.may_repeat)

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
        if len(rows) == len(self) and (rows == np.arange(len(self))).all():
            return self
        lengths = self.lengths[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        docs = self.docs[np.repeat(self.offsets[:-1][rows], lengths) + within]
        return Rankings(self.query_ids.take(pa.array(rows)), offsets, docs, self.may_repeat)

    def fingerprint(self, doc_ids: pa.Array) -> str:
        """Names the content: which documents, for which queries, in which order."""
        sha = hashlib.sha256(self.offsets.tobytes())
        for ids in (self.query_ids, doc_ids.take(pa.array(self.docs))):
            # The lengths keep two ids apart that together read like two others.
            sha.update(pc.binary_length(ids).to_numpy().tobytes())
            sha.update("".join(ids.to_pylist()).encode())
        return sha.hexdigest()[:12]

    def parts(self) -> Iterator[tuple[slice, Rankings]]:
        """The rankings some thousand queries at a time, each part with the rows it covers."""
        for start in range(0, len(self), _PART):
            rows = slice(start, min(start + _PART, len(self)))
            offsets = self.offsets[rows.start : rows.stop + 1]
            docs = self.docs[offsets[0] : offsets[-1]]
            yield rows, Rankings(self.query_ids[rows.start : rows.stop], offsets - offsets[0], docs, self.may_repeat)

    def columns(self, k: int | None) -> Iterator[tuple[int, Ints, Flags | None]]:
        """Rank by rank: the document of every query at that rank (-1 where the list is over).

        The third value says which queries have one; None means all. Adding up rank by rank makes the last digit of a
        score independent of how the work was cut up.
        """
        lengths, begin = self.lengths, self.offsets[:-1]
        shortest, longest = int(lengths.min(initial=0)), int(lengths.max(initial=0))
        for i in range(longest if k is None else min(k, longest)):
            if shortest == longest:
                yield i + 1, self.docs[i::longest], None
            elif i < shortest:
                yield i + 1, self.docs[begin + i], None
            else:
                there = lengths > i
                docs = np.full(len(self), -1, np.int64)
                docs[there] = self.docs[begin[there] + i]
                yield i + 1, docs, there


@dataclass(frozen=True)
class Hits:
    """The answers of a batch of queries: query i has documents ``docs[offsets[i]:offsets[i + 1]]``, best first.

    ``docs`` are ordinals of the ranker's documents; equal scores stand in the order of the collection.
    """

    offsets: Ints
    docs: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def empty(self) -> int:
        """How many queries found nothing."""
        return int((np.diff(self.offsets) == 0).sum())

    def rows(self) -> Ints:
        """The query of each answer."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


def order_by_score(query: Ints, score: Floats, doc_id_rank: Ints) -> Ints:
    """The order of run lines under the rule ``score``; ``doc_id_rank`` ranks document ids by their bytes."""
    # A score beyond 32 bits is infinite there, as it is for trec_eval: nothing to warn of.
    with np.errstate(over="ignore"):
        compared = -score.astype(np.float32)
    same = query[1:] == query[:-1]
    if not ((query[1:] > query[:-1]) | (same & (compared[1:] >= compared[:-1]))).all():
        return np.lexsort((-doc_id_rank, compared, query)).astype(np.int64)
    # Lines as a ranker writes them, best first: only ties may stand otherwise, and sorting those alone is much less.
    tied = np.concatenate([[False], same & (compared[1:] == compared[:-1])])
    order = np.arange(len(query), dtype=np.int64)
    at = np.flatnonzero(tied | np.concatenate([tied[1:], [False]]))
    order[at] = at[np.lexsort((-doc_id_rank[at], np.cumsum(~tied[at])))]
    return order
