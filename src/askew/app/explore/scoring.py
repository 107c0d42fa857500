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
# All lists belong to one query.
_QUERY = pa.scalar("query", pa.string())


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
        self, hits: Hits, doc_ids: pa.Array, texts: TextsOf, grades: Grades | None, also: Sequence[MeasureRequest] = ()
    ) -> dict[str, Floats]:
        """Return one value of each measure for each list; ``grades`` are the judgements of the query of all lists.

        ``also`` has further measures, which count the same words as the others.
        """
        found = self._lists(hits, doc_ids, texts, grades)
        wanted = [*self.those(grades is not None), *also]
        scorer = Scorer(wanted, pa.array(found.ids, pa.string()), found.count, _judged(found.ids, grades))
        return scorer.score(found.lists)

    def decompose(
        self, one: MeasureRequest, hits: Hits, doc_ids: pa.Array, texts: TextsOf, grades: Grades | None, query: str
    ) -> Decomposition:
        """Return the parts of a measure for one list, as in ``askew measure --decompose``, without intervals."""
        found = self._lists(hits, doc_ids, texts, grades)
        judged = _judged(found.ids, grades)
        scorer = Scorer([one], pa.array(found.ids, pa.string()), found.count, judged)
        source = RelevanceSource(judged, lambda: {str(_QUERY): query}, found.texts)
        lexicon = self.lexicons[str(one.measure.param("lexicon"))]
        inputs = scorer.inputs(found.lists, [one])
        return decompose_run(one, inputs, source, lexicon, resolver_id(RESOLVER), found.lists.queries, draws=0)

    def _lists(self, hits: Hits, doc_ids: pa.Array, texts: TextsOf, grades: Grades | None) -> _Lists:
        places, docs = np.unique(hits.docs, return_inverse=True)
        numbered = replace(hits, docs=docs.astype(np.int32))
        found = [str(one) for one in doc_ids.take(pa.array(places)).to_pylist()]
        # Only these documents are numbered; documents that are judged but not in the lists come last, without texts.
        have = set(found)
        ids = [*found, *(doc for doc in grades or {} if doc not in have)]
        columns: dict[bytes, pa.Array] = {}

        def column(docs: Ordinals) -> pa.Array:
            # Counters that share work identify it by the array, so all keys get the same array.
            if (key := docs.tobytes()) not in columns:
                columns[key] = pa.array(texts(docs.tolist()), pa.large_string())
            return columns[key]

        def count(key: CountKey) -> DocMentions:
            return self._counted[key].of(places, len(doc_ids), column)

        names = pa.array([str(row) for row in range(len(hits))], pa.string())

        def read() -> pa.Array:
            return pa.array(texts(places.tolist()), pa.large_string())

        return _Lists(ids, read, count, ScoredLists.of(numbered, names, pa.repeat(_QUERY, len(hits))))


@dataclass(frozen=True)
class _Lists:
    """Lists with only their own documents numbered, and the texts and counts of these documents."""

    ids: list[str]
    texts: Callable[[], pa.Array]
    count: Callable[[CountKey], DocMentions]
    lists: ScoredLists


def _judged(ids: Sequence[str], grades: Grades | None) -> JudgedQueries | None:
    if grades is None:
        return None
    number = {doc: place for place, doc in enumerate(ids)}
    docs, relevance = (np.array(list(part), np.int64) for part in (map(number.get, grades), grades.values()))
    return JudgedQueries.of(pa.repeat(_QUERY, len(grades)), docs, relevance)
