"""The relevance of ranked documents: from judgements, or estimated for documents without a judgement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property

import numpy as np
import pyarrow as pa

from askew.app.scoring.lists import JudgedQueries
from askew.core.errors import ConfigError, DataError
from askew.core.ranking import Flags, Floats, Ints, Rankings
from askew.mentions.relevance import Estimator

# Marks unjudged documents. A grade of 0 or below means that a document is judged not relevant.
_LOWEST = -(2**31)


@cache
def open_estimator(name: str) -> Estimator:
    """The estimator of a resolver. It caches its encodings."""
    return Estimator(name)


class RelevanceSource:
    """The relevance of documents to queries. Texts are read when the first estimate is needed."""

    def __init__(
        self,
        judged: JudgedQueries | None,
        queries: Callable[[], Mapping[str, str]],
        texts: Callable[[], pa.Array],
    ) -> None:
        self._judged, self._read_queries, self._read_texts = judged, queries, texts
        self._known: dict[tuple[str, str, int], float] = {}

    @cached_property
    def queries(self) -> Mapping[str, str]:
        """The text of each query by its id."""
        return self._read_queries()

    @cached_property
    def texts(self) -> pa.Array:
        """The text of each document by its ordinal; null if it is missing."""
        return self._read_texts()

    def grades(self, rankings: Rankings, queries: pa.Array) -> tuple[Ints, Flags]:
        """The grade of each ranked document, and whether it is judged. ``queries`` has the query id of each list."""
        rows = np.repeat(np.arange(len(rankings)), rankings.lengths)
        grades = np.full(len(rankings.docs), _LOWEST, np.int64)
        if self._judged is None or not len(rows):
            return grades, grades > _LOWEST
        found = self._judged.of_queries(queries)
        width = int(max(rankings.docs.max(initial=0), found.docs.max(initial=0))) + 1
        known = np.repeat(np.arange(len(rankings)), np.diff(found.offsets)) * width + found.docs
        order = np.argsort(known)
        place = np.minimum(np.searchsorted(known[order], rows * width + rankings.docs), len(known) - 1)
        if len(known):
            same = known[order][place] == rows * width + rankings.docs
            grades[same] = found.relevance[order][place[same]]
        return grades, grades > _LOWEST

    def probabilities(self, rankings: Rankings, queries: pa.Array, level: int, resolver: str | None) -> Floats:
        """The probability that each document is relevant: 1 or 0 if judged, else estimated, or 0 without a resolver."""
        grades, judged = self.grades(rankings, queries)
        found = (judged & (grades >= level)).astype(np.float64)
        if resolver is not None:
            found[~judged] = self._estimated(rankings, queries, ~judged, resolver)
        return found

    def on_topic(self, rankings: Rankings, queries: pa.Array, resolver: str) -> Floats:
        """The probability that each document is on topic: 1 if it is judged relevant, otherwise an estimate.

        A document that is judged not relevant can still be on topic.
        """
        grades, _ = self.grades(rankings, queries)
        found = np.ones(len(rankings.docs))
        found[grades < 1] = self._estimated(rankings, queries, grades < 1, resolver)
        return found

    def _estimated(self, rankings: Rankings, queries: pa.Array, which: Flags, resolver: str) -> Floats:
        """Estimates for the ranked documents marked in ``which``. Each query-document pair is estimated once."""
        rows = np.repeat(np.arange(len(rankings)), rankings.lengths)
        names = queries.to_pylist()
        pairs = [(names[rows[at]], int(rankings.docs[at])) for at in np.flatnonzero(which)]
        new = [pair for pair in dict.fromkeys(pairs) if (resolver, *pair) not in self._known]
        if new:
            texts = [self.texts[doc].as_py() or "" for _, doc in new]
            values = open_estimator(resolver).relevance([self.query(name) for name, _ in new], texts)
            self._known.update(zip(((resolver, *pair) for pair in new), values.tolist(), strict=True))
        return np.array([self._known[resolver, query, doc] for query, doc in pairs])

    def query(self, name: str) -> str:
        """The text of a query."""
        if not self.queries:
            raise ConfigError(
                "the texts of the queries are missing; they are needed to estimate the relevance of documents without "
                "a judgement. Give queries= (a file with lines of query id, TAB, text), or a collection that has them"
            )
        if name not in self.queries:
            raise DataError(f"queries: expected the text of query {name!r}, which is in the run; found none")
        return self.queries[name]
