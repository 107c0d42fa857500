"""Ranked lists as columns, and the two rules that can order them.

``score``  by score, highest first, compared as 32-bit floats; ties by document id, highest first, compared
           as bytes. As in trec_eval, the rank column is ignored.
``file``   in the order of the lines in the file, as in the published bias scripts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

ORDERS = ("score", "file")
# The number of queries in one part. It is so small that the columns of a part stay in the CPU cache.
_PART = 1 << 15


@dataclass(frozen=True)
class Rankings:
    """Ranked lists: list i has the documents ``docs[offsets[i]:offsets[i + 1]]``, positions in a list of documents.

    They are best first, unless there are ``scores``: then they are in the order of their source, and ``ordered`` sorts
    them. If a query has several lists, ``query_ids`` are the ids of the lists and ``queries`` their queries.
    ``may_repeat`` marks rankings in which a document may occur twice. This is possible only for runs that are read as
    the published scripts read them.
    """

    query_ids: pa.Array
    offsets: Ints
    docs: Ints
    scores: Floats | None = None
    queries: pa.Array | None = None
    may_repeat: bool = False

    @classmethod
    def of(cls, hits: Hits, ids: pa.Array, queries: pa.Array | None = None) -> Rankings:
        """The results of a ranker."""
        return cls(ids, hits.offsets, hits.docs.astype(np.int64), hits.scores.astype(np.float64), queries)

    def order(self, id_ranks: Ints | None = None) -> Ints:
        """The order of the entries by score, with ties as in trec_eval. ``id_ranks``: None if ordinals rank the ids."""
        assert self.scores is not None
        rows = np.repeat(np.arange(len(self)), self.lengths)
        return order_by_score(rows, self.scores, self.docs if id_ranks is None else id_ranks[self.docs])

    def ordered(self, order: str, id_ranks: Ints | None = None) -> Rankings:
        """The lists best first: sorted by score (``order="score"``) or in the order of their source."""
        docs = self.docs[self.order(id_ranks)] if order == "score" else self.docs
        return Rankings(self.query_ids, self.offsets, docs, may_repeat=self.may_repeat)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ints:
        """How many documents each query has."""
        return np.diff(self.offsets)

    def keep(self, entries: Flags) -> Rankings:
        """The rankings with the wanted entries only. Later entries move up; a query without entries is kept."""
        running = np.concatenate([[0], np.cumsum(entries)])
        scores = None if self.scores is None else self.scores[entries]
        return replace(self, offsets=running[self.offsets].astype(np.int64), docs=self.docs[entries], scores=scores)

    def cut(self, k: int | None) -> Rankings:
        """The top k documents of each query; all documents if k is None."""
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
        return Rankings(self.query_ids.take(rows), offsets, docs, may_repeat=self.may_repeat)

    def fingerprint(self, doc_ids: pa.Array) -> str:
        """A hash of the content: the documents of each query and their order."""
        import pyarrow.compute as pc

        sha = hashlib.sha256(self.offsets.tobytes())
        for ids in (self.query_ids, doc_ids.take(self.docs)):
            # The lengths distinguish different ids with the same concatenation.
            sha.update(pc.binary_length(ids).to_numpy().tobytes())
            sha.update("".join(ids.to_pylist()).encode())
        return sha.hexdigest()[:12]

    def parts(self) -> Iterator[tuple[slice, Rankings]]:
        """The rankings in parts of some thousand queries, each part with the positions of its queries."""
        for start in range(0, len(self), _PART):
            rows = slice(start, min(start + _PART, len(self)))
            offsets = self.offsets[rows.start : rows.stop + 1]
            docs = self.docs[offsets[0] : offsets[-1]]
            ids = self.query_ids[rows.start : rows.stop]
            yield rows, Rankings(ids, offsets - offsets[0], docs, may_repeat=self.may_repeat)

    def columns(self, k: int | None) -> Iterator[tuple[int, Ints, Flags | None]]:
        """For each rank: the rank, the document of every query at this rank (-1 if the list is shorter), and flags.

        The flags say which queries have a document at this rank; None means all. Adding up rank by rank makes the last
        digit of a score independent of how the queries were split into parts.
        """
        lengths, begin = self.lengths, self.offsets[:-1]
        shortest, longest = int(lengths.min(initial=0)), int(lengths.max(initial=0))
        for i in range(longest if k is None else min(k, longest)):
            if shortest == longest:
                yield i + 1, self.docs[i::longest], None
            elif i < shortest:
                yield i + 1, self.docs[begin + i], None
            else:
                has_rank = lengths > i
                docs = np.full(len(self), -1, np.int64)
                docs[has_rank] = self.docs[begin[has_rank] + i]
                yield i + 1, docs, has_rank


@dataclass(frozen=True)
class Hits:
    """The results of a batch of queries: query i has documents ``docs[offsets[i]:offsets[i + 1]]``, best first.

    ``docs`` are positions in the ranker's collection. Documents with equal scores are in the order of the collection.
    """

    offsets: Ints
    docs: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def empty(self) -> int:
        """How many queries have no results."""
        return int((np.diff(self.offsets) == 0).sum())

    def rows(self) -> Ints:
        """The query of each result, as its position in the batch."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


def order_by_score(query: Ints, score: Floats, doc_id_rank: Ints) -> Ints:
    """The order of run lines under the rule ``score``; ``doc_id_rank`` ranks document ids by their bytes."""
    # A score beyond the range of 32-bit floats becomes infinite, as in trec_eval. No warning is needed.
    with np.errstate(over="ignore"):
        compared = -score.astype(np.float32)
    same = query[1:] == query[:-1]
    if not ((query[1:] > query[:-1]) | (same & (compared[1:] >= compared[:-1]))).all():
        return np.lexsort((-doc_id_rank, compared, query)).astype(np.int64)
    # The lines are already sorted by score, so only ties can be in the wrong order. Sorting only these is much faster.
    tied = np.concatenate([[False], same & (compared[1:] == compared[:-1])])
    order = np.arange(len(query), dtype=np.int64)
    at = np.flatnonzero(tied | np.concatenate([tied[1:], [False]]))
    order[at] = at[np.lexsort((-doc_id_rank[at], np.cumsum(~tied[at])))]
    return order
