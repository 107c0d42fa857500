"""What levers come to: means, changes against the base with intervals, tests corrected for all of them, the front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from askew.app.bench.methods import Lever
from askew.core.errors import DataError
from askew.core.measure import Direction
from askew.core.ranking import Floats
from askew.measures.catalogue import MeasureRequest
from askew.selectors.pareto import pareto_front
from askew.statistics.intervals import change_interval, size_bounds
from askew.statistics.significance import MEAN, NULLS, Paired, holm, paired

# Means this near are the same: it is what is left of rounding in a sum.
_DIGITS = 12
# What every query of a lever scores: by measure, one value a query.
Values = Mapping[str, Floats]


@dataclass(frozen=True)
class Cell:
    """One lever by one measure. ``change`` is that of the means against the base in percent, from ``low`` to ``high``.

    ``against`` is the comparison with the base, None for the base itself; ``p_holm`` is its corrected p. A measure that
    is best at zero counts by its distance from zero.
    """

    mean: float
    n: int
    change: float | None = None
    low: float | None = None
    high: float | None = None
    against: Paired | None = None
    p_holm: float | None = None


@dataclass(frozen=True)
class Row:
    """One lever. ``front`` names the measures of lean for which no other lever beats it; ``nothing`` counts the queries
    that find nothing, ``otherwise`` those that were asked in other words."""

    lever: Lever
    cells: Mapping[str, Cell]
    front: frozenset[str]
    nothing: int
    otherwise: int | None
    seconds: float

    @property
    def base(self) -> bool:
        """Whether the others are compared with it."""
        return all(cell.against is None for cell in self.cells.values())


@dataclass(frozen=True)
class BenchReport:
    """The answer of ``bench``; the base is the first row. ``values`` are the scores of every query by lever."""

    collection: str
    query_ids: Sequence[str]
    k: int
    agree: float
    asked: Sequence[MeasureRequest]
    effectiveness: Sequence[str]
    leans: Sequence[str]
    rows: Sequence[Row]
    rules: Sequence[str]
    notes: Sequence[str]
    values: Mapping[str, Values] = field(repr=False)

    @property
    def tests(self) -> int:
        """Over how many tests p is corrected."""
        return sum(cell.p_holm is not None for row in self.rows for cell in row.cells.values())

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        about = {"collection": self.collection, "queries": len(self.query_ids), "k": self.k, "agree": self.agree}
        return {
            **about, "base": self.rows[0].lever.text, "effectiveness": list(self.effectiveness),
            "leans": list(self.leans), "signatures": {one.text: one.signature for one in self.asked},
            "tests": self.tests, "null_hypothesis": NULLS[MEAN], "levers": [_as_json(row) for row in self.rows],
            "rules": list(self.rules), "notes": list(self.notes),
        }  # fmt: skip


def _as_json(row: Row) -> dict[str, Any]:
    return {
        "lever": row.lever.text, "kind": row.lever.kind, "upper_bound": row.lever.bound, "seconds": row.seconds,
        "found_nothing": row.nothing, "asked_otherwise": row.otherwise, "front": sorted(row.front),
        "measures": {name: cell_facts(cell) for name, cell in row.cells.items()},
    }  # fmt: skip


def cell_facts(cell: Cell) -> dict[str, Any]:
    """One cell as JSON values."""
    found = {} if cell.against is None else asdict(cell.against)
    gains = {name: found.get(key) for name, key in (("gain", "gain"), ("gain_low", "low"), ("gain_high", "high"))}
    counts = {name: found.get(name) for name in ("p", "improved", "worsened", "unchanged")}
    return {
        "mean": cell.mean, "n": cell.n, "change": cell.change, "low": cell.low, "high": cell.high, **gains, **counts,
        "p_holm": cell.p_holm,
    }  # fmt: skip


def compared(values: Mapping[str, Values], asked: Sequence[MeasureRequest]) -> dict[str, dict[str, Cell]]:
    """Every lever by every measure, against the first; p corrected over all levers and measures together.

    A measure is over the queries for which every lever has a value, so that all means are of the same queries.
    """
    base, *others = values
    cells: dict[str, dict[str, Cell]] = {lever: {} for lever in values}
    for one in asked:
        there = _defined(values, one.text)
        sizes = {lever: _sizes(found[one.text][there], one.direction) for lever, found in values.items()}
        cells[base][one.text] = Cell(float(sizes[base].mean()), int(there.sum()))
        for lever in others:
            cells[lever][one.text] = _cell(sizes[base], sizes[lever], one)
    return _corrected(cells)


def _defined(values: Mapping[str, Values], measure: str) -> npt.NDArray[np.bool_]:
    without = {lever: np.isnan(found[measure]) for lever, found in values.items()}
    there: npt.NDArray[np.bool_] = ~np.any(list(without.values()), axis=0)
    if not there.any():
        worst = max(without, key=lambda lever: int(without[lever].sum()))
        raise DataError(
            f"{measure}: there is no query for which every lever has a value; {worst!r} lacks "
            f"{int(without[worst].sum()):,} of {len(there):,}: leave it out, or give a run that answers more queries"
        )
    return there


def _sizes(values: Floats, direction: Direction) -> Floats:
    return np.abs(values) if direction is Direction.ZERO else values


def _cell(old: Floats, new: Floats, asked: MeasureRequest) -> Cell:
    way, bounds = asked.direction, asked.bounds
    if way is Direction.ZERO:
        way, bounds = Direction.DOWN, size_bounds(bounds)
    found = paired(old, new, way, bounds)
    low, high = change_interval(np.arange(len(old)), old, new, bounds)
    change = None if found.relative is None else 100 * found.relative
    return Cell(found.new, found.n, change, low, high, found)


def _corrected(cells: dict[str, dict[str, Cell]]) -> dict[str, dict[str, Cell]]:
    ps = {
        (lever, name): cell.against.p
        for lever, mine in cells.items()
        for name, cell in mine.items()
        if cell.against is not None and cell.against.p is not None
    }
    fixed = dict(zip(ps, holm(list(ps.values())), strict=True))
    return {
        lever: {
            name: Cell(c.mean, c.n, c.change, c.low, c.high, c.against, fixed.get((lever, name)))
            for name, c in mine.items()
        }
        for lever, mine in cells.items()
    }


def fronts(
    cells: Mapping[str, Mapping[str, Cell]], systems: Sequence[str], effectiveness: str, leans: Sequence[str],
    directions: Mapping[str, Direction],
) -> dict[str, frozenset[str]]:  # fmt: skip
    """For each lever the measures of lean for which no other system is as good in both means and better in one.

    ``systems`` are the levers that can be on a front: an upper bound is none, and beats none.
    """
    found: dict[str, set[str]] = {lever: set() for lever in cells}
    for lean in leans:
        gains = [_upward(cells, systems, name, directions[name]) for name in (effectiveness, lean)]
        on = pareto_front(np.zeros(len(systems), np.int64), *gains)
        for lever, is_on in zip(systems, on.tolist(), strict=True):
            found[lever] |= {lean} if is_on else set()
    return {lever: frozenset(mine) for lever, mine in found.items()}


def _upward(cells: Mapping[str, Mapping[str, Cell]], systems: Sequence[str], name: str, way: Direction) -> Floats:
    means = np.round([cells[lever][name].mean for lever in systems], _DIGITS)
    return means if way is Direction.UP else -means
