"""Score ranked lists of any method, by the judgements of the query and by the words of the texts."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from askew.app.build.resources import Resources
from askew.app.build.scores import Evaluate
from askew.app.scoring.lists import ScoredLists
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.ranking import Floats, Hits, Ints
from askew.measures.catalogue import Catalogue, MeasureRequest

DEFAULTS = ("nDCG@10", "RR@10", "ARaB(tf)@10", "NFaiRR@10")


def ask_measures(measures: Sequence[str] | None, groups: Groups | None = None) -> list[MeasureRequest]:
    """Complete and check the measures: at least one of effectiveness and one of lean, each only once."""
    texts = DEFAULTS if measures is None else measures
    asked = Catalogue(groups=groups).complete(texts)
    for one in asked:
        one.check()
    signatures = [one.signature for one in asked]
    for one in asked:
        if signatures.count(one.signature) > 1:
            raise ConfigError(f"measures=: {one.text!r} is given twice; give each measure once")
    if not effectiveness_of(asked) or not leans_of(asked):
        raise ConfigError(
            "measures=: expected at least one measure of effectiveness and one of lean, as in 'RR@10 ARaB(tf)@10'; "
            f"found {', '.join(texts)}"
        )
    return asked


def effectiveness_of(asked: Sequence[MeasureRequest]) -> list[MeasureRequest]:
    """Return the measures that read judgements."""
    return [one for one in asked if one.judged]


def leans_of(asked: Sequence[MeasureRequest]) -> list[MeasureRequest]:
    """Return the measures that read no judgements."""
    return [one for one in asked if "judgements" not in one.family.reads]


class BenchScorer(Evaluate):
    """Scores ranked lists; the results of the base ranker are the background of measures that need one."""

    def __init__(
        self, measures: Sequence[str], resources: Resources, query_ids: Sequence[str], groups: Groups | None = None
    ) -> None:
        # In a build the background is each list itself; here methods are compared, so they share one background.
        super().__init__(measures, resources, catalogue=Catalogue(groups=groups))
        self._query_ids = pa.array(query_ids, pa.string())

    def set_base(self, hits: Hits) -> None:
        """Set the lists of the base ranker, one for each query, as the background."""
        self.scorer.set_background(ScoredLists.of(hits, self._query_ids))
        self.asked = self.scorer.asked

    def ordered(self, hits: Hits) -> Hits:
        """Return the lists in the order in which they are measured: by score, ties by document id as in trec_eval."""
        order = self.scorer.order(ScoredLists.of(hits, self._query_ids))
        return Hits(hits.offsets, hits.docs[order], hits.scores[order])

    def score(self, hits: Hits, query: Ints | None = None, only: Sequence[str] = ()) -> dict[str, Floats]:
        """Score each list by every measure, or ``only`` by some; an empty list has effectiveness 0 and no lean (NaN).

        ``query`` has the number of the query of each list; by default there is one list for each query.
        """
        ids, queries = self._query_ids, None
        if query is not None:
            queries = self._query_ids.take(pa.array(query))
            # Lists of the same query are distinguished by their number.
            ids = pa.array([f"{name}:{row}" for row, name in enumerate(queries.to_pylist())], pa.string())
        return self.scorer.score(ScoredLists.of(hits, ids, queries), only)
