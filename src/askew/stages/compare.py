"""Compare two runs query by query: differences with intervals, corrected tests, and what was lost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

import numpy as np

from askew.analysis.significance import Paired, holm, paired
from askew.core.errors import ConfigError, DataError
from askew.core.ranking import Floats
from askew.measures.catalogue import Asked
from askew.stages.measure import measure
from askew.stages.report import MeasureReport, RunScores
from askew.stages.texts import Progress
from askew.stages.universe import RunLike, named_runs

Delta: TypeAlias = float | Mapping[str, float] | None


@dataclass
class CompareReport:
    """One comparison per measure; ``p_holm`` is corrected for the number of measures.

    So are ``p_no_loss_holm`` and ``p_equivalent_holm``, for the number of measures that have a delta.
    """

    old: str
    new: str
    asked: list[Asked]
    results: dict[str, Paired]
    p_holm: dict[str, float]
    p_no_loss_holm: dict[str, float]
    p_equivalent_holm: dict[str, float]
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        measures = {
            a.text: {
                **asdict(self.results[a.text]),
                "p_holm": self.p_holm[a.text],
                "p_no_loss_holm": self.p_no_loss_holm.get(a.text),
                "p_equivalent_holm": self.p_equivalent_holm.get(a.text),
                "signature": a.signature,
            }
            for a in self.asked
        }
        return {"old": self.old, "new": self.new, "measures": measures}


def compare(
    old: RunLike,
    new: RunLike,
    docs: object = None,
    *,
    test: str = "permutation",
    delta: Delta = None,
    unpaired: str = "error",
    seed: int = 0,
    names: tuple[str, str] | None = None,
    testing: Progress | None = None,
    **options: Any,
) -> CompareReport:
    """Compare ``new`` with ``old``; ``options`` are those of ``measure``.

    ``delta`` is the largest loss that would not matter: a number for all measures of effectiveness, or
    one per measure text. With it comes a test of "no loss beyond delta". ``testing`` is told how many measures are
    compared, of how many.
    """
    if test not in ("permutation", "bootstrap"):
        raise ConfigError(f"--test: test must be permutation or bootstrap, found {test!r}")
    if unpaired not in ("error", "drop"):
        raise ConfigError(f"--unpaired: unpaired must be error or drop, found {unpaired!r}")
    _refuse_meaningless(delta)
    if names is None:
        runs = named_runs([old, new], others=("old", "new"))
    elif names[0] == names[1]:
        raise ConfigError(f"both runs are called {names[0]!r}: give them different names")
    else:
        runs = {names[0]: old, names[1]: new}

    def check(asked: list[Asked]) -> None:
        _refuse_unused(asked, delta)

    report = measure(runs, docs, seed=seed, before_scoring=check, **options)
    rows_a, rows_b, notes = _pair(report, unpaired)
    results = {}
    for number, asked in enumerate(report.asked):
        if testing:
            testing(number, len(report.asked))
        a, b = report.runs[0].values[asked.text][rows_a], report.runs[1].values[asked.text][rows_b]
        there = ~np.isnan(a) & ~np.isnan(b)
        if not there.any():
            raise DataError(f"{asked.text} is not defined in both runs for any query they share")
        limit = _delta_for(asked, delta)
        results[asked.text] = paired(a[there], b[there], asked.direction, test=test, delta=limit, seed=seed)
    old_name, new_name = (run.name for run in report.runs)
    by_p, by_no_loss, by_equivalent = (_corrected(results, name) for name in ("p", "p_no_loss", "p_equivalent"))
    told = [*report.notes, *notes]
    return CompareReport(old_name, new_name, report.asked, results, by_p, by_no_loss, by_equivalent, told)


def _corrected(results: Mapping[str, Paired], name: str) -> dict[str, float]:
    """Holm over the measures that have this p."""
    ps = {text: getattr(found, name) for text, found in results.items() if getattr(found, name) is not None}
    return dict(zip(ps, holm(list(ps.values())), strict=True))


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
    alone = set(a.query_ids) ^ set(b.query_ids)
    return next(query for query in [*a.query_ids, *b.query_ids] if query in alone)


def _delta_for(asked: Asked, delta: Delta) -> float | None:
    if isinstance(delta, Mapping):
        return delta.get(asked.text)
    return delta if "judgements" in asked.family.reads else None


def _refuse_meaningless(delta: Delta) -> None:
    values = delta.values() if isinstance(delta, Mapping) else [] if delta is None else [delta]
    for value in values:
        if not (math.isfinite(value) and value > 0):
            raise ConfigError(f"--delta: delta is the largest loss that would not matter, above 0; found {value!r}")


def _refuse_unused(asked: list[Asked], delta: Delta) -> None:
    """A delta that no measure uses was meant for something else."""
    texts = [one.text for one in asked]
    for text in delta if isinstance(delta, Mapping) else ():
        if text not in texts:
            raise ConfigError(
                f"--delta: delta names the measure {text!r}, which is not among those compared: {', '.join(texts)}"
            )
    if delta is not None and all(_delta_for(one, delta) is None for one in asked):
        raise ConfigError(
            "--delta: a delta without a measure is for measures of effectiveness, and none is compared; "
            f"for another measure name it, such as --delta '{texts[0]}=0.01'"
        )
