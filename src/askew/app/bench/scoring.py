"""Scores of lists of documents, whoever made them: by the judgements of the query, and by the words of the texts."""

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
    """Measures with every parameter: one or more of effectiveness, one or more of lean, each once."""
    texts = DEFAULTS if measures is None else measures
    asked = Catalogue(groups=groups).complete(texts)
    for one in asked:
        one.check()
    signatures = [one.signature for one in asked]
    for one in asked:
        if signatures.count(one.signature) > 1:
            raise ConfigError(f"measures=: {one.text!r} is given twice")
    if not effectiveness_of(asked) or not leans_of(asked):
        raise ConfigError(
            "measures=: expected a measure of effectiveness and one of lean, as in 'RR@10 ARaB(tf)@10'; "
            f"found {', '.join(texts)}"
        )
    return asked


def effectiveness_of(asked: Sequence[MeasureRequest]) -> list[MeasureRequest]:
    """Those that read judgements."""
    return [one for one in asked if "judgements" in one.family.reads]


def leans_of(asked: Sequence[MeasureRequest]) -> list[MeasureRequest]:
    """Those that do not."""
    return [one for one in asked if "judgements" not in one.family.reads]


class BenchScorer(Evaluate):
    """Scores lists of some queries. What is measured against a background is measured against the base's own lists."""

    def __init__(
        self, measures: Sequence[str], resources: Resources, query_ids: Sequence[str], groups: Groups | None = None
    ) -> None:
        # Not against each list itself, as in a build: methods are compared, so they need the same background.
        super().__init__(measures, resources, catalogue=Catalogue(groups=groups))
        self._query_ids = pa.array(query_ids, pa.string())

    def set_base(self, hits: Hits) -> None:
        """The lists of the base ranker, one for each query."""
        self.scorer.set_background(ScoredLists.of(hits, self._query_ids))
        self.asked = self.scorer.asked

    def ordered(self, hits: Hits) -> Hits:
        """The lists as they are measured: by score, equal ones by document id as trec_eval has them."""
        order = self.scorer.order(ScoredLists.of(hits, self._query_ids))
        return Hits(hits.offsets, hits.docs[order], hits.scores[order])

    def score(self, hits: Hits, query: Ints | None = None, only: Sequence[str] = ()) -> dict[str, Floats]:
        """Every measure, or only some, of each list; ``query`` numbers the query of each, by default one for each.

        An empty list has an effectiveness of zero, and no lean (NaN).
        """
        ids, queries = self._query_ids, None
        if query is not None:
            queries = self._query_ids.take(pa.array(query))
            # Lists of the same query are distinguished by their number.
            ids = pa.array([f"{name}:{row}" for row, name in enumerate(queries.to_pylist())], pa.string())
        return self.scorer.score(ScoredLists.of(hits, ids, queries), only)
