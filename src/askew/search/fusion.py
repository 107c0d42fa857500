"""Fuse several rankers by reciprocal rank fusion, or by the sum of their scores.

``rrf``      sum of 1 / (constant + rank); the default constant is 60, as in Cormack, Clarke and Buettcher (2009).
``combsum``  sum of scores (Fox and Shaw 1994), scaled to 0..1 within each query (``normalize='minmax'``) or unchanged
             (``'none'``). With minmax, all scores of a list with equal scores become 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import ConfigError, DataError
from askew.core.plugins import Count, OneOf, Positive
from askew.core.protocols import RankerPlugin
from askew.core.ranking import Hits
from askew.search.common import check_k, one_word, query_texts, ranked
from askew.search.disk import places_of

Run = Mapping[str, Mapping[str, float]]


class ReplayRanker:
    """Returns the results of a run for queries with the same text.

    ``run`` is ``{query_id: {doc_id: score}}`` and ``queries`` is ``{query_id: text}``. A text that is not among the
    queries is an error, or has no results if ``unknown`` is "empty". Two queries of the same text must have the same
    results.
    """

    def __init__(
        self,
        run: Run,
        queries: Mapping[str, str],
        name: str = "run",
        unknown: Annotated[str, OneOf(("error", "empty"))] = "error",
    ) -> None:
        missing = [query for query in run if query not in queries]
        if missing:
            raise DataError(f"replay {name}: the query {missing[0]!r} of the run is not in the given queries")
        self.doc_ids = pa.array(sorted({doc for answers in run.values() for doc in answers}), pa.string())
        place = {doc: i for i, doc in enumerate(self.doc_ids.to_pylist())}
        self._answers: dict[str, dict[int, float]] = {}
        for query, answers in run.items():
            placed = {place[doc]: score for doc, score in answers.items()}
            if self._answers.setdefault(queries[query], placed) != placed:
                raise DataError(f"replay {name}: two queries have the text {queries[query]!r} but different results")
        # A query without a line in the run has an empty result.
        for text in queries.values():
            self._answers.setdefault(text, {})
        self._unknown, self._name = unknown, name
        self.id = f"replay-{one_word(name)}"

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The top k documents of the run for each text."""
        check_k(k)
        queries = query_texts(texts)
        if self._unknown == "error":
            for text in queries:
                if text not in self._answers:
                    raise DataError(f"replay {self._name}: no query of the run has the text {text!r}")
        answers = [self._answers.get(text, {}) for text in queries]
        rows = np.repeat(np.arange(len(answers)), [len(answers) for answers in answers])
        docs = np.array([doc for answers in answers for doc in answers], np.int64)
        scores = np.array([score for answers in answers for score in answers.values()], np.float32)
        return ranked(rows, docs, scores, len(queries), k)


class FusionRanker:
    """Fuses the top-ranked documents of its rankers, from each as many as the setting depth."""

    def __init__(
        self,
        rankers: Sequence[RankerPlugin],
        method: Annotated[str, OneOf(("rrf", "combsum"))] = "rrf",
        constant: Positive = 60.0,
        normalize: Annotated[str, OneOf(("minmax", "none"))] = "minmax",
        weights: Sequence[float] | None = None,
        depth: Count = 1000,
    ) -> None:
        if len(rankers) < 2:
            raise ConfigError(f"fusion: expected two rankers or more, found {len(rankers)}", code="too-few-rankers")
        self._weights = list(weights) if weights is not None else [1.0] * len(rankers)
        if len(self._weights) != len(rankers) or min(self._weights) < 0:
            raise ConfigError(f"fusion: expected {len(rankers)} weights, each 0 or more, found {self._weights}")
        self._rankers, self._method, self._constant = list(rankers), method, constant
        self._normalize, self._depth = normalize, depth
        self.doc_ids = pc.unique(pa.concat_arrays([ranker.doc_ids.cast(pa.string()) for ranker in rankers]))
        self._places = [places_of(ranker.doc_ids, self.doc_ids, "fusion") for ranker in rankers]
        self.id = f"{method}-" + "+".join(ranker.id for ranker in rankers)

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k best documents of each text by the fused score."""
        check_k(k)
        queries = query_texts(texts)
        rows, docs, gains = [], [], []
        for ranker, places, weight in zip(self._rankers, self._places, self._weights, strict=True):
            hits = ranker.search(queries, max(self._depth, k))
            rows.append(hits.rows())
            docs.append(places[hits.docs])
            gains.append(weight * self._gain(hits))
        row, doc, gain = np.concatenate(rows), np.concatenate(docs), np.concatenate(gains)
        # Sum the scores of each document, in the order of the rankers.
        order = np.lexsort((doc, row))
        row, doc, gain = row[order], doc[order], gain[order]
        if len(row):
            starts = np.flatnonzero(np.r_[True, (row[1:] != row[:-1]) | (doc[1:] != doc[:-1])])
            row, doc, gain = row[starts], doc[starts], np.add.reduceat(gain, starts)
        return ranked(row, doc, gain, len(queries), k)

    def _gain(self, hits: Hits) -> Any:
        sizes = np.diff(hits.offsets)
        if self._method == "rrf":
            rank = np.arange(len(hits.docs)) - np.repeat(hits.offsets[:-1], sizes) + 1
            return 1.0 / (self._constant + rank)
        scores = hits.scores.astype(np.float64)
        if self._normalize == "none" or not len(scores):
            return scores
        filled = sizes > 0
        # Results are sorted: the first score is the highest, the last the lowest.
        high, low = scores[hits.offsets[:-1][filled]], scores[hits.offsets[1:][filled] - 1]
        span = np.where(high > low, high - low, 1.0)
        high, low, span = (np.repeat(value, sizes[filled]) for value in (high, low, span))
        return np.where(high > low, (scores - low) / span, 1.0)
