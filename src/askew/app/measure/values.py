"""The report of ``measure``: a value for every run, measure and query, and their means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import polars as pl

from askew.app.scoring.decompose import Decomposition
from askew.core.errors import ConfigError
from askew.core.measure import Measure
from askew.core.ranking import Floats
from askew.core.text_tables import html_table, text_table, with_interval
from askew.measures.catalogue import MeasureRequest
from askew.statistics.intervals import Mean, mean_with_interval


@dataclass(frozen=True)
class RunScores:
    """The values of every measure for every query of one run. NaN: left out for a reason given in the notes."""

    name: str
    query_ids: list[str]
    values: dict[str, Floats]


@dataclass(repr=False)
class MeasureReport:
    """The report of ``measure``.

    ``runs`` has the value of each query for each run and measure. ``notes`` says which queries or documents were left
    out, and why. With ``decompose=True``, ``parts`` divides the mean of a measure of lean in two ways: by why a group
    is mentioned in the results, and by who is mentioned.
    """

    asked: list[MeasureRequest]
    runs: list[RunScores]
    notes: list[str] = field(default_factory=list)
    mean_digits: int | None = None
    parts: list[Decomposition] = field(default_factory=list)

    def mean(self, run: RunScores, asked: MeasureRequest) -> Mean:
        """The mean of a measure over the queries of a run, with its interval."""
        found = mean_with_interval(run.values[asked.text], asked.bounds)
        if self.mean_digits is None:
            return found
        return replace(found, mean=round(found.mean, self.mean_digits))

    def __getitem__(self, key: str | Measure | tuple[str, str | Measure]) -> Mean:
        """The mean of a measure over the queries of a run: ``report["bm25.run", "nDCG@10"]``.

        If there is only one run, its name may be left out: ``report["nDCG@10"]``.
        """
        name, wanted = key if isinstance(key, tuple) else (self.runs[0].name if len(self.runs) == 1 else "", key)
        text = wanted.text if isinstance(wanted, Measure) else wanted
        for run in self.runs:
            for one in self.asked:
                if (run.name, one.text) == (name, text):
                    return self.mean(run, one)
        raise ConfigError(
            f"report: there is no run {name!r} with the measure {text!r}; the runs of the report are "
            f"{', '.join(run.name for run in self.runs)}, and the measures are "
            f"{', '.join(one.text for one in self.asked)}"
        )

    def to_polars(self) -> pl.DataFrame:
        """One row per run and measure: mean, 95% interval, n, and the method of the interval."""
        rows = [
            {"run": run.name, "measure": one.text, **asdict(self.mean(run, one)), "signature": one.signature}
            for run in self.runs
            for one in self.asked
        ]
        return pl.DataFrame(rows, schema_overrides={"low": pl.Float64, "high": pl.Float64}).rename(
            {"method": "interval"}
        )

    def to_pandas(self) -> Any:
        """As ``to_polars``, for pandas, which must be installed."""
        return self.to_polars().to_pandas()

    def per_query(self) -> pl.DataFrame:
        """One row for each run and query, one column for each measure; null where a measure is not defined."""
        parts = [
            pl.DataFrame({"run": [run.name] * len(run.query_ids), "query_id": run.query_ids, **run.values})
            for run in self.runs
        ]
        return pl.concat(parts).fill_nan(None)

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        means = [[self.mean(run, one) for one in self.asked] for run in self.runs]
        cells = [[f"{with_interval(m.mean, m.low, m.high)} n={m.n}" for m in row] for row in means]
        names = [run.name for run in self.runs]
        return ["run", *(one.text for one in self.asked)], [[n, *row] for n, row in zip(names, cells, strict=True)]

    def __repr__(self) -> str:
        return text_table(*self._rows())

    def _repr_html_(self) -> str:
        return html_table(*self._rows())

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
                    "interval": found.method,
                    "signature": asked.signature,
                }  # fmt: skip
            if per_query:
                entry["per_query"] = _per_query(run, self.asked)
            runs.append(entry)
        return {"runs": runs, **({"parts": [one.to_dict() for one in self.parts]} if self.parts else {})}


def _per_query(run: RunScores, asked: Sequence[MeasureRequest]) -> dict[str, dict[str, float]]:
    columns = {a.text: run.values[a.text].tolist() for a in asked}
    return {
        query: {text: column[row] for text, column in columns.items() if not math.isnan(column[row])}
        for row, query in enumerate(run.query_ids)
    }
