"""What ``measure`` found: a value for every run, measure and query, and their means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from askew.core.ranking import Floats
from askew.measures.catalogue import Asked
from askew.statistics.intervals import Mean, interval_method, mean_with_interval


@dataclass(frozen=True)
class RunScores:
    """What every measure says of every query of one run. NaN: left out for a reason given in the notes."""

    name: str
    query_ids: list[str]
    values: dict[str, Floats]


@dataclass
class MeasureReport:
    """The answer of ``measure``."""

    asked: list[Asked]
    runs: list[RunScores]
    notes: list[str] = field(default_factory=list)
    mean_digits: int | None = None

    def mean(self, run: RunScores, asked: Asked) -> Mean:
        """The mean of a measure over the queries of a run, with its interval."""
        found = mean_with_interval(run.values[asked.text], asked.bounds)
        if self.mean_digits is None:
            return found
        return replace(found, mean=round(found.mean, self.mean_digits))

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """The report as JSON values."""
        runs = []
        for run in self.runs:
            entry: dict[str, Any] = {"run": run.name, "measures": {}}
            for asked in self.asked:
                found = self.mean(run, asked)
                entry["measures"][asked.text] = {
                    "mean": found.mean,
                    "low": found.low, "high": found.high, "n": found.n,
                    "interval": interval_method(asked.bounds),
                    "signature": asked.signature,
                }  # fmt: skip
            if per_query:
                entry["per_query"] = _per_query(run, self.asked)
            runs.append(entry)
        return {"runs": runs}


def _per_query(run: RunScores, asked: Sequence[Asked]) -> dict[str, dict[str, float]]:
    columns = {a.text: run.values[a.text].tolist() for a in asked}
    return {
        query: {text: column[row] for text, column in columns.items() if not math.isnan(column[row])}
        for row, query in enumerate(run.query_ids)
    }
