"""Score a few result lists; only the documents in them are counted, so the collection can be of any size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from askew.app.explore.counted import CountedOnce, Ordinals
from askew.app.scoring.decompose import Decomposition, decompose_run
from askew.app.scoring.lists import JudgedQueries, ScoredLists
from askew.app.scoring.relevance import RelevanceSource
from askew.app.scoring.requested import CountKey, keys_of
from askew.app.scoring.scorer import Scorer
from askew.core.defaults import RESOLVER
from askew.core.groups import Groups
from askew.core.measure import Direction
from askew.core.ranking import Floats, Hits
from askew.core.who import resolver_id
from askew.measures.catalogue import Catalogue, MeasureRequest
from askew.mentions.resolved import Counters
from askew.plugins.kinds import DocMentions

Grades = Mapping[str, int]
# Returns the texts of some documents by their ordinals.
TextsOf = Callable[[Sequence[int]], list[str]]


@dataclass(frozen=True)
class SearchedLists:
    """The result lists of some queries: the first ``sizes[0]`` lists belong to the first query, and so on.

    ``grades`` has the judgements of each query; None for a query without judgements.
    """

    hits: Hits
    sizes: Sequence[int]
    grades: Sequence[Grades | None]

    @classmethod
    def of_one(cls, hits: Hits, grades: Grades | None) -> SearchedLists:
        """All lists belong to one query."""
        return cls(hits, [len(hits)], [grades])

    @property
    def names(self) -> pa.Array:
        """The query of each list."""
        return pa.array([str(query) for query, size in enumerate(self.sizes) for _ in range(size)], pa.string())


class ListScorer:
    """Scores result lists by measures; the values are the same as those of ``askew measure``."""

    def __init__(self, measures: Sequence[str], groups: Groups | None = None) -> None:
        # Without a background run, the background of NFaiRR is the ranking itself, as in askew measure.
        self._catalogue = Catalogue(None, {"background": "self"}, groups=groups)
        self.asked: list[MeasureRequest] = self._catalogue.complete(list(measures))
        for one in self.asked:
            one.check()
        self.lexicons = self._catalogue.lexicons
        # Compiled even for few texts: without it, counting would take a third of the time of a query.
        known = Counters(threads=1, engine="compiled")
        self._counted = {
            key: CountedOnce(known.of(self.lexicons[key.lexicon], *key[1:])) for key in keys_of(self.asked)
        }

    def those(self, judged: bool) -> list[MeasureRequest]:
        """Return the measures that can be computed; without judgements, only those that read none."""
        return [one for one in self.asked if judged or "judgements" not in one.family.reads]

    def directions(self, judged: bool) -> dict[str, Direction]:
        """Return the better direction of each of these measures."""
        return {one.text: one.direction for one in self.those(judged)}

    def score(
        self, lists: SearchedLists, doc_ids: pa.Array, texts: TextsOf, also: Sequence[MeasureRequest] = ()
    ) -> dict[str, Floats]:
        """Return one value of each measure for each list; NaN where a measure needs judgements and there are none.

        ``also`` has further measures, which count the same words as the others.
        """
        found = self._lists(lists, doc_ids, texts)
        wanted = [*self.those(found.judged is not None), *also]
        scorer = Scorer(wanted, pa.array(found.ids, pa.string()), found.count, found.judged)
        return scorer.score(found.lists)

    def decompose(
        self, one: MeasureRequest, lists: SearchedLists, doc_ids: pa.Array, texts: TextsOf, query: str
    ) -> Decomposition:
        """Return the parts of a measure for one list, as in ``askew measure --decompose``, without intervals."""
        found = self._lists(lists, doc_ids, texts)
        scorer = Scorer([one], pa.array(found.ids, pa.string()), found.count, found.judged)
        source = RelevanceSource(found.judged, lambda: {"0": query}, found.texts)
        lexicon = self.lexicons[str(one.measure.param("lexicon"))]
        inputs = scorer.inputs(found.lists, [one])
        return decompose_run(one, inputs, source, lexicon, resolver_id(RESOLVER), found.lists.queries, draws=0)

    def _lists(self, lists: SearchedLists, doc_ids: pa.Array, texts: TextsOf) -> _Lists:
        places, docs = np.unique(lists.hits.docs, return_inverse=True)
        numbered = replace(lists.hits, docs=docs.astype(np.int32))
        found = [str(one) for one in doc_ids.take(pa.array(places)).to_pylist()]
        # Only these documents are numbered; documents that are judged but not in the lists come last, without texts.
        ids = list(dict.fromkeys([*found, *(doc for grades in lists.grades for doc in grades or {})]))
        columns: dict[bytes, pa.Array] = {}

        def column(docs: Ordinals) -> pa.Array:
            # Counters that share work identify it by the array, so all keys get the same array.
            if (key := docs.tobytes()) not in columns:
                columns[key] = pa.array(texts(docs.tolist()), pa.large_string())
            return columns[key]

        def count(key: CountKey) -> DocMentions:
            return self._counted[key].of(places, len(doc_ids), column)

        def read() -> pa.Array:
            return pa.array(texts(places.tolist()), pa.large_string())

        rows = pa.array([str(row) for row in range(len(numbered))], pa.string())
        return _Lists(ids, read, count, ScoredLists.of(numbered, rows, lists.names), _judged(ids, lists.grades))


@dataclass(frozen=True)
class _Lists:
    """Lists with only their own documents numbered, and the texts and counts of these documents."""

    ids: list[str]
    texts: Callable[[], pa.Array]
    count: Callable[[CountKey], DocMentions]
    lists: ScoredLists
    judged: JudgedQueries | None


def _judged(ids: Sequence[str], grades: Sequence[Grades | None]) -> JudgedQueries | None:
    if all(one is None for one in grades):
        return None
    number = {doc: place for place, doc in enumerate(ids)}
    rows = [(str(query), number[doc], grade) for query, one in enumerate(grades) for doc, grade in (one or {}).items()]
    docs, relevance = (np.array([row[part] for row in rows], np.int64) for part in (1, 2))
    return JudgedQueries.of(pa.array([row[0] for row in rows], pa.string()), docs, relevance)
