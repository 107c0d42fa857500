"""Score a few result lists: only the documents in them are counted, so any collection will do, however large."""

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
# The texts of some documents by their ordinals.
TextsOf = Callable[[Sequence[int]], list[str]]
# All lists are of one query.
_QUERY = pa.scalar("query", pa.string())


class ListScorer:
    """Scores result lists by measures. The values are those of ``askew measure`` for the same lists."""

    def __init__(self, measures: Sequence[str], groups: Groups | None = None) -> None:
        # Without a background run NFaiRR is against the ranking itself, as askew measure has it.
        self._catalogue = Catalogue(None, {"background": "self"}, groups=groups)
        self.asked: list[MeasureRequest] = self._catalogue.complete(list(measures))
        for one in self.asked:
            one.check()
        self.lexicons = self._catalogue.lexicons
        # Compiled although the texts are few: a query is one of many, and the plain loop would be a third of its time.
        known = Counters(threads=1, engine="compiled")
        self._counted = {
            key: CountedOnce(known.of(self.lexicons[key.lexicon], *key[1:])) for key in keys_of(self.asked)
        }

    def those(self, judged: bool) -> list[MeasureRequest]:
        """The measures that can be computed: without judgements, those that read none."""
        return [one for one in self.asked if judged or "judgements" not in one.family.reads]

    def directions(self, judged: bool) -> dict[str, Direction]:
        """Which way each of these is better."""
        return {one.text: one.direction for one in self.those(judged)}

    def score(
        self, hits: Hits, doc_ids: pa.Array, texts: TextsOf, grades: Grades | None, also: Sequence[MeasureRequest] = ()
    ) -> dict[str, Floats]:
        """One value of each measure for each list. ``grades`` are the judgements of the one query behind all lists.

        ``also`` are more measures, of the words that the others count.
        """
        found = self._lists(hits, doc_ids, texts, grades)
        wanted = [*self.those(grades is not None), *also]
        scorer = Scorer(wanted, pa.array(found.ids, pa.string()), found.count, _judged(found.ids, grades))
        return scorer.score(found.lists)

    def decompose(
        self, one: MeasureRequest, hits: Hits, doc_ids: pa.Array, texts: TextsOf, grades: Grades | None, query: str
    ) -> Decomposition:
        """The parts of a measure of one list, as ``askew measure --decompose`` has them, without intervals."""
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
        # The documents are numbered among themselves; those that are only judged come last and have no text.
        have = set(found)
        ids = [*found, *(doc for doc in grades or {} if doc not in have)]
        columns: dict[bytes, pa.Array] = {}

        def column(docs: Ordinals) -> pa.Array:
            # Counters that share work know it by the array, so all keys get the same one.
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
    """Lists whose documents are numbered among themselves, with the texts and the counts of these."""

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
