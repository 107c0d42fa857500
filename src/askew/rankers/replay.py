"""Use a run from a file as a ranker: the results of another system wherever askew needs a ranker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from askew.core.errors import ConfigError, DataError
from askew.core.ranking import Hits
from askew.rankers.common import check_k, one_word, query_texts, ranked

Run = Mapping[str, Mapping[str, float]]


class ReplayRanker:
    """Returns the results of a run for queries with the same text.

    ``run`` is ``{query_id: {doc_id: score}}`` and ``queries`` is ``{query_id: text}``. A text that is not among the
    queries is an error, or has no results if ``unknown`` is "empty". Two queries of the same text must have the same
    results.
    """

    def __init__(self, run: Run, queries: Mapping[str, str], name: str = "run", unknown: str = "error") -> None:
        if unknown not in ("error", "empty"):
            raise ConfigError(
                "replay: expected 'error' or 'empty' for unknown= (how to treat a query that is not among the queries "
                f"of the run), found {unknown!r}"
            )
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
        found = [self._answers.get(text, {}) for text in queries]
        rows = np.repeat(np.arange(len(found)), [len(answers) for answers in found])
        docs = np.array([doc for answers in found for doc in answers], np.int64)
        scores = np.array([score for answers in found for score in answers.values()], np.float32)
        return ranked(rows, docs, scores, len(queries), k)
