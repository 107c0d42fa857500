"""Measure runs as ``askew measure`` does, per query, and compare two of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from askew.core.errors import ConfigError, DataError, Note
from askew.core.measure import Bounds, Direction
from askew.core.outcome import signs
from askew.core.ranking import Floats
from askew.data.judgements import QrelsFile
from askew.data.runs import Run
from askew.measures.catalogue import MeasureRequest
from askew.measures.measure import MeasureReport, measure
from askew.measures.statistics.intervals import gain_bounds, is_bounded
from askew.measures.statistics.significance import rounded_gains
from askew.study.compare import CompareReport, compare
from askew.ui.explorer.counting import WITH_JUDGEMENTS
from askew.ui.explorer.explorer import Explorer

# A difference is significant if its p, corrected for the number of measures, is below this value.
SIGNIFICANT = 0.05
# The defaults: a ranked document without a text is an error, a judged query without results counts as zero.
MISSING_TEXT: Final = "error"
UNANSWERED: Final = "zero"


@dataclass(frozen=True)
class Worst:
    """A query with a bad value in a run: its value, and its gain over the other run."""

    query_id: str
    text: str | None
    value: float
    gain: float | None


@dataclass(frozen=True)
class Audit:
    """The values of the measures, and the comparison of two runs; None for one run."""

    report: MeasureReport
    comparison: CompareReport | None
    texts: Mapping[str, str]

    def asked(self, text: str) -> MeasureRequest:
        """Return a measure of the table by its text."""
        found = next((one for one in self.report.asked if one.text == text), None)
        if found is None:
            raise ConfigError(
                f"audit: the measure {text!r} is not in this audit; choose one of {', '.join(self.measures)}",
                code="unknown-measure", measure=text,
            )  # fmt: skip
        return found

    @property
    def measures(self) -> list[str]:
        """The measures of the table."""
        return [one.text for one in self.report.asked]

    def values(self, measure_text: str, run: int) -> Floats:
        """Return the defined values of a run, in ascending order."""
        return np.sort(np.array(list(self._by_query(measure_text, run).values()), np.float64))

    def scale(self, measure_text: str) -> tuple[Bounds, Bounds]:
        """Return the axis ranges of values and of gains: the bounds of the measure, so that pages can be compared.

        For a measure without bounds, the ranges are those of the values of all runs.
        """
        one = self.asked(measure_text)
        if is_bounded(one.bounds):
            return one.bounds, gain_bounds(one.bounds, one.direction is Direction.ZERO)
        sorted_values = [self.values(measure_text, run) for run in range(len(self.report.runs))]
        every = np.concatenate([np.zeros(1), *sorted_values])
        most = float(np.abs(every).max())
        return (float(every.min()), float(every.max())), (-most, most)

    def gains(self, measure_text: str) -> tuple[list[str], Floats]:
        """Return the gain of the second run over the first for each query; positive is better."""
        old, new = (self._by_query(measure_text, run) for run in (0, 1))
        shared = [query for query in old if query in new]
        before, after = (np.array([side[query] for query in shared], np.float64) for side in (old, new))
        return shared, rounded_gains(before, after, self.asked(measure_text).direction)

    def _by_query(self, measure_text: str, run: int) -> dict[str, float]:
        scores = self.report.runs[run]
        pairs = zip(scores.query_ids, scores.values[self.asked(measure_text).text].tolist(), strict=True)
        return {query: value for query, value in pairs if not np.isnan(value)}

    def worst(self, measure_text: str, run: int, count: int = 10) -> list[Worst]:
        """Return the worst queries of a run by a measure; for the second run, those that lose most to the first."""
        values, direction = self._by_query(measure_text, run), self.asked(measure_text).direction
        gains: dict[str, float] = {}
        badness = {query: direction.gain(0.0, value) for query, value in values.items()}
        if run == 1:
            queries, found = self.gains(measure_text)
            gains = dict(zip(queries, found.tolist(), strict=True))
            badness = {query: gains[query] for query, sign in zip(queries, signs(found), strict=True) if sign == -1}
        chosen = sorted(badness, key=lambda query: (badness[query], query))[:count]
        return [Worst(query, self.texts.get(query), values[query], gains.get(query)) for query in chosen]


def audit(
    runs: Mapping[str, Run], explorer: Explorer | None, *, qrels: QrelsFile | None = None, missing: str = MISSING_TEXT,
    unanswered: str = UNANSWERED,
) -> Audit:  # fmt: skip
    """Measure one or several runs; if there are two or more, compare the second run with the first run."""
    queries = set().union(*(run.lines["query_id"].unique().to_list() for run in runs.values()))
    judged: pl.DataFrame | Mapping[str, Mapping[str, int]] | None = None if qrels is None else qrels.lines
    grades = {} if qrels is not None or explorer is None else explorer.searched.known.grades
    if judged is None and queries & grades.keys():
        # A query that only other runs answer counts as zero; the other queries of the collection are not asked here.
        judged = {query: grades[query] for query in grades if query in queries}
    ranked = pl.concat([run.lines["doc_id"] for run in runs.values()]).unique().to_list()
    docs = None if explorer is None else explorer.texts_by_id(ranked)
    if docs is not None and not docs:
        raise DataError(
            "audit: none of the documents of these runs is in the collection of this explorer; choose runs on this "
            "collection",
            code="other-collection",
        )
    # The measures of the explorer for which the input exists.
    if explorer is not None:
        wanted = [one.text for one in explorer.scorer.those(judged is not None)]
    else:
        wanted = [] if judged is None else list(WITH_JUDGEMENTS)
    if not wanted:
        raise DataError(
            "audit: nothing can be measured, because there are neither judgements nor texts of documents",
            code="nothing-to-measure",
        )
    groups = None if explorer is None else explorer.counting.groups
    options: dict[str, Any] = {"qrels": judged, "groups": groups, "missing": missing if docs is not None else None,
                               "unjudged": "absent" if judged is not None else None,
                               "unanswered": unanswered if judged is not None else None}  # fmt: skip
    report = measure(runs, docs, wanted, undefined="drop", **options)
    compared = None
    if len(runs) > 1:
        (old, first), (new, second), *_ = runs.items()
        measured = [one.text for one in report.asked]
        compared = compare(first, second, docs, names=(old, new), unpaired="drop", measures=measured, **options)
    measured_queries = set().union(*(run.query_ids for run in report.runs))
    if left := len(grades.keys() - queries):
        words = f"{left:,} judged queries of the collection have no results in any of these runs: left out"
        report.notes.append(Note(words, code="no-results", queries=left))
    known = {} if explorer is None else explorer.searched.known.texts
    return Audit(report, compared, {query: text for query, text in known.items() if query in measured_queries})
