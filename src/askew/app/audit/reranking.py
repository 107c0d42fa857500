"""Estimate how reranking the same results would change the lean, without a further request to the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from askew.app.audit.measures import AuditMeasures, EngineScores, measure_lines, without_judgements
from askew.app.search.rerank import reorder
from askew.core.measure import Direction
from askew.core.ranking import Floats

# Of the methods that need no model, the one with the best trade-off of lean and effectiveness in docs/results.md.
METHOD = "greedy"


@dataclass(frozen=True)
class Reranking:
    """The mean of the measure of lean before and after reranking; of absolute values if zero is the best value."""

    method: str
    before: float
    after: float

    @property
    def reduction(self) -> float | None:
        """The share by which the lean is reduced; None if it was zero."""
        return None if self.before == 0 else 1 - self.after / self.before


def reranking_of(
    name: str, lines: pl.DataFrame, docs: Mapping[str, str], queries: Mapping[str, str], measured: EngineScores,
    measures: AuditMeasures,
) -> Reranking | None:  # fmt: skip
    """Rerank the results with ``greedy`` and measure them; None if a text is missing, as its groups are unknown."""
    if any(doc not in docs for doc in lines["doc_id"].unique().to_list()):
        return None
    ordered = reorder(lines, dict(docs), measures.named, method=METHOD)
    again = measure_lines(name, ordered, docs, queries, without_judgements(measures))
    text, way = measures.lean.text, measures.lean.direction
    return Reranking(METHOD, _size(measured.values[text], way), _size(again.values[text], way))


def _size(values: Floats, way: Direction) -> float:
    known = values[~np.isnan(values)]
    return float(np.abs(known).mean() if way is Direction.ZERO else known.mean())
