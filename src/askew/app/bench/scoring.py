"""Scores of lists of documents, whoever made them: by the judgements of the query, and by the words of the texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from askew.app.build.resources import Resources
from askew.app.build.scores import Evaluate
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.ranking import Floats, Hits, Ints, Rankings, order_by_score
from askew.measures.catalogue import Catalogue, MeasureRequest
from askew.plugins.kinds import Inputs

DEFAULTS = ("RR@10", "nDCG@10", "ARaB(tf)@10", "NFaiRR@10")


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
        self._catalogue, self._resources = Catalogue(groups=groups), resources
        self.asked = self._catalogue.complete(measures)
        self._query_ids = list(query_ids)
        self._base: dict[str, Rankings] | None = None

    def set_base(self, hits: Hits) -> None:
        """The lists of the base ranker, one for each query."""
        self._base = self._ranked(pa.array(self._query_ids, pa.string()), hits)
        names = {order: found.fingerprint(self._every) for order, found in self._base.items()}
        self.asked = [
            replace(one, background=names[str(one.measure.param("order"))])
            if one.measure.param("background") == "run"
            else one
            for one in self.asked
        ]

    def ordered(self, hits: Hits) -> Hits:
        """The lists as they are measured: by score, equal ones by document id as trec_eval has them."""
        order = order_by_score(hits.rows(), hits.scores.astype(np.float64), self._rank_of_ids[hits.docs])
        return Hits(hits.offsets, hits.docs[order], hits.scores[order])

    def score(self, hits: Hits, query: Ints | None = None, only: Sequence[str] = ()) -> dict[str, Floats]:
        """Every measure, or only some, of each list; ``query`` numbers the query of each, by default one for each.

        An empty list has an effectiveness of zero, and no lean (NaN).
        """
        rows = np.arange(len(self._query_ids)) if query is None else query
        # Lists of the same query are told apart by their number.
        ids = [self._query_ids[i] if query is None else f"{self._query_ids[i]}:{row}" for row, i in enumerate(rows)]
        names = pa.array(ids, pa.string())
        wanted = [one for one in self.asked if not only or one.text in only]
        background = None
        if self._base is not None and any(one.background for one in wanted):
            background = {order: _renamed(found.select(rows), names) for order, found in self._base.items()}
        inputs = Inputs(
            "run", self._every, self._ranked(names, hits), find_mentions=lambda *key: self._mentions[key],
            judgements=self._judged([self._query_ids[i] for i in rows]), background=background,
        )  # fmt: skip
        return {one.text: np.asarray(one.family.score(one.measure, inputs), np.float64) for one in wanted}

    def _ranked(self, names: pa.Array, hits: Hits) -> dict[str, Rankings]:
        return self._rankings(names, hits.offsets, hits.docs.astype(np.int64), hits.scores.astype(np.float64))


def _renamed(found: Rankings, names: pa.Array) -> Rankings:
    return Rankings(names, found.offsets, found.docs, found.may_repeat)
