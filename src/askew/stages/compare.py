"""Compare two runs query by query: differences with intervals, corrected tests, and what was lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from askew.analysis.significance import Paired, holm, paired
from askew.core.errors import ConfigError, DataError
from askew.core.ranking import Floats
from askew.measures.catalogue import Asked
from askew.stages.measure import MeasureReport, RunScores, measure
from askew.stages.universe import RunLike


@dataclass
class CompareReport:
    """One comparison per measure; ``p_holm`` is corrected for the number of measures."""

    old: str
    new: str
    asked: list[Asked]
    results: dict[str, Paired]
    p_holm: dict[str, float]
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        measures = {
            a.text: {**asdict(self.results[a.text]), "p_holm": self.p_holm[a.text], "signature": a.signature}
            for a in self.asked
        }
        return {"old": self.old, "new": self.new, "measures": measures}


def compare(
    old: RunLike,
    new: RunLike,
    docs: object = None,
    *,
    test: str = "permutation",
    delta: float | Mapping[str, float] | None = None,
    unpaired: str = "error",
    seed: int = 0,
    names: tuple[str, str] | None = None,
    **options: Any,
) -> CompareReport:
    """Compare ``new`` with ``old``; ``options`` are those of ``measure``.

    ``delta`` is the largest loss that would not matter: a number for all measures of effectiveness, or
    one per measure text. With it comes a test of "no loss beyond delta".
    """
    if test not in ("permutation", "bootstrap"):
        raise ConfigError(f"test must be permutation or bootstrap, found {test!r}")
    first, second = names or (str(old), str(new))
    report = measure({first: old, second: new}, docs, seed=seed, **options)
    rows_a, rows_b, notes = _pair(report, unpaired)
    results = {}
    for asked in report.asked:
        a, b = report.runs[0].values[asked.text][rows_a], report.runs[1].values[asked.text][rows_b]
        there = ~np.isnan(a) & ~np.isnan(b)
        limit = _delta_for(asked, delta)
        results[asked.text] = paired(a[there], b[there], asked.direction, test=test, delta=limit, seed=seed)
    _refuse_unknown_delta(report.asked, delta)
    texts = [a.text for a in report.asked]
    corrected = dict(zip(texts, holm([results[t].p for t in texts]), strict=True))
    return CompareReport(
        report.runs[0].name, report.runs[1].name, report.asked, results, corrected, [*report.notes, *notes]
    )


def _pair(report: MeasureReport, unpaired: str) -> tuple[Floats, Floats, list[str]]:
    """The rows of both runs for the queries they share."""
    a, b = report.runs
    where = {query: row for row, query in enumerate(b.query_ids)}
    shared = [(row, where[query]) for row, query in enumerate(a.query_ids) if query in where]
    alone = len(a.query_ids) + len(b.query_ids) - 2 * len(shared)
    if not shared:
        raise DataError(f"{a.name} and {b.name} have no query in common")
    notes = []
    if alone:
        only = _first_alone(a, b)
        message = f"{alone} queries are in one run only, such as {only!r}"
        if unpaired == "error":
            raise DataError(f"{message}; compare what both have with --unpaired drop")
        notes.append(f"{message}; left out")
    rows = np.array(shared)
    return rows[:, 0], rows[:, 1], notes


def _first_alone(a: RunScores, b: RunScores) -> str:
    return next(q for q in [*a.query_ids, *b.query_ids] if (q in a.query_ids) != (q in b.query_ids))


def _delta_for(asked: Asked, delta: float | Mapping[str, float] | None) -> float | None:
    if isinstance(delta, Mapping):
        return delta.get(asked.text)
    return delta if "judgements" in asked.family.reads else None


def _refuse_unknown_delta(asked: list[Asked], delta: float | Mapping[str, float] | None) -> None:
    if isinstance(delta, Mapping):
        for text in delta:
            if text not in {a.text for a in asked}:
                raise ConfigError(f"delta names the measure {text!r}, which is not among those compared")
