"""The inputs of measures: ranked lists with scores, and the judgements of their queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.ranking import Floats, Hits, Ints, Rankings, order_by_score
from askew.plugins.kinds import Judgements


@dataclass(frozen=True)
class ScoredLists:
    """Ranked lists: list i has the documents ``docs[offsets[i]:offsets[i + 1]]``, in the order of their source.

    ``docs`` are ordinals in a list of document ids. ``queries`` has the query id of each list (default: ``ids``). It
    determines the judgements and the background of the list.
    """

    ids: pa.Array
    offsets: Ints
    docs: Ints
    scores: Floats
    queries: pa.Array | None = None
    may_repeat: bool = False

    @classmethod
    def of(cls, hits: Hits, ids: pa.Array, queries: pa.Array | None = None) -> ScoredLists:
        """The results of a ranker."""
        return cls(ids, hits.offsets, hits.docs.astype(np.int64), hits.scores.astype(np.float64), queries)

    def order(self, id_ranks: Ints | None = None) -> Ints:
        """The order of the entries by score, with ties as in trec_eval. ``id_ranks``: None if ordinals rank the ids."""
        rows = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        return order_by_score(rows, self.scores, self.docs if id_ranks is None else id_ranks[self.docs])

    def ranked(self, order: str, id_ranks: Ints | None = None) -> Rankings:
        """The lists as rankings, sorted by score (``order="score"``) or in the order of their source."""
        docs = self.docs[self.order(id_ranks)] if order == "score" else self.docs
        return Rankings(self.ids, self.offsets, docs, self.may_repeat)


@dataclass(frozen=True)
class JudgedQueries:
    """The judgements of a collection by query; row i of ``judgements`` belongs to ``query_ids[i]``."""

    query_ids: pa.Array
    judgements: Judgements

    @classmethod
    def of(cls, queries: pa.Array | pa.ChunkedArray, docs: Ints, relevance: Ints) -> JudgedQueries:
        """From parallel arrays with one entry per judgement. ``docs`` are ordinals."""
        query_ids = pc.unique(queries)
        row = pc.index_in(queries, value_set=query_ids).to_numpy()
        order = np.lexsort((docs, row))
        sizes = np.bincount(row, minlength=len(query_ids))
        return cls(query_ids, Judgements(_offsets(sizes), docs[order], relevance[order], sizes > 0))

    def of_queries(self, queries: pa.Array) -> Judgements:
        """The judgements of these queries, row by row; a query may appear in several rows."""
        every = self.judgements
        row = pc.fill_null(pc.index_in(queries, value_set=self.query_ids), -1).to_numpy()
        # A query without judgements has the index -1, which is the appended empty row.
        sizes = np.append(np.diff(every.offsets), 0)[row]
        offsets = _offsets(sizes)
        at = np.arange(offsets[-1]) + np.repeat(every.offsets[row] - offsets[:-1], sizes)
        return Judgements(offsets, every.docs[at], every.relevance[at], row >= 0)


def _offsets(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
