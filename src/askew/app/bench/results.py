"""Results of mitigation methods: means, changes against the base with intervals, corrected tests, Pareto fronts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from askew.app.bench.methods import MitigationMethod
from askew.core.errors import DataError
from askew.core.groups import Groups
from askew.core.measure import Direction
from askew.core.ranking import Floats
from askew.core.text_tables import html_table, text_table
from askew.measures.catalogue import MeasureRequest
from askew.publish.page.numerals import FEWEST
from askew.publish.page.parts import measure_label
from askew.selectors.pareto import pareto_front
from askew.statistics.intervals import change_interval, size_bounds
from askew.statistics.significance import MEAN, NULLS, Paired, holm, paired

# Means that agree to so many decimals are equal: they differ by rounding in a sum.
_DIGITS = 12
# Marks of a table: an upper bound, a Pareto-optimal method, the base.
BOUND, PARETO, BASE = "†", "Pareto", "base"
# The scores of a method: by measure, one value per query.
Values = Mapping[str, Floats]


@dataclass(frozen=True)
class Cell:
    """One method by one measure. ``change`` of the mean against the base in percent, from ``low`` to ``high``.

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

    @property
    def has_interval(self) -> bool:
        """Whether the interval of the change is worth showing: it is known, and of enough queries."""
        return self.low is not None and self.high is not None and self.n >= FEWEST


@dataclass(frozen=True)
class Row:
    """One method. ``pareto`` names the measures of lean for which it is Pareto-optimal; ``empty`` counts the queries
    without results, ``reformulated`` those that were reformulated."""

    method: MitigationMethod
    cells: Mapping[str, Cell]
    pareto: frozenset[str]
    empty: int
    reformulated: int | None
    seconds: float

    @property
    def base(self) -> bool:
        """Whether the others are compared with it."""
        return all(cell.against is None for cell in self.cells.values())

    @property
    def label(self) -> str:
        """The method as tables name it: the base and an upper bound are marked."""
        mark = f" {BOUND}" if self.method.bound else f" ({BASE})" if self.base else ""
        return f"{self.method.text}{mark}"


@dataclass(frozen=True, repr=False)
class BenchReport:
    """The result of ``bench``; the base is the first row. ``values`` are the scores of every query by method.

    ``groups`` are those that were given, None where the defaults of the measures hold.
    """

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
    values: Mapping[str, Values]
    groups: Groups | None = None

    @property
    def tests(self) -> int:
        """Over how many tests p is corrected."""
        return sum(cell.p_holm is not None for row in self.rows for cell in row.cells.values())

    def to_polars(self) -> pl.DataFrame:
        """One row for each method and measure, with every number of the report; changes are in percent."""
        rows = [
            {
                **_method_facts(row), "measure": name, **cell_facts(row.cells[name]),
                "pareto_optimal": name in row.pareto, "signature": signature,
            }
            for row in self.rows
            for name, signature in self._signatures().items()
        ]  # fmt: skip
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_pandas(self) -> Any:
        """As ``to_polars``, for pandas, which must be installed."""
        return self.to_polars().to_pandas()

    def per_query(self) -> pl.DataFrame:
        """One row for each method and query, one column for each measure; null where a measure is not defined."""
        parts = [
            pl.DataFrame({"method": [method] * len(self.query_ids), "query_id": self.query_ids, **values})
            for method, values in self.values.items()
        ]
        return pl.concat(parts).fill_nan(None)

    def _signatures(self) -> dict[str, str]:
        return {one.text: one.signature for one in self.asked}

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            [row.label, *(_summary(cell, name in row.pareto) for name, cell in row.cells.items())] for row in self.rows
        ]
        return ["method", *(measure_label(one.text, one.direction) for one in self.asked)], rows

    def __repr__(self) -> str:
        return text_table(*self._table())

    def _repr_html_(self) -> str:
        return html_table(*self._table())

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        about = {"collection": self.collection, "queries": len(self.query_ids), "k": self.k, "agree": self.agree}
        counted = None if self.groups is None else {"lexicon": self.groups.lexicon.id, "names": list(self.groups.names)}
        return {
            **about, "groups": counted, "base": self.rows[0].method.text, "effectiveness": list(self.effectiveness),
            "leans": list(self.leans), "signatures": self._signatures(), "tests": self.tests,
            "null_hypothesis": NULLS[MEAN], "methods": [_as_json(row) for row in self.rows],
            "rules": list(self.rules), "notes": list(self.notes),
        }  # fmt: skip


def _summary(cell: Cell, pareto: bool) -> str:
    """The mean, its change against the base, and whether the method is Pareto-optimal."""
    change = "" if cell.change is None else f" {cell.change:+.1f}%"
    return f"{cell.mean:.4f}{change}{f' {PARETO}' if pareto else ''}"


def _method_facts(row: Row) -> dict[str, Any]:
    return {
        "method": row.method.text, "kind": row.method.kind, "upper_bound": row.method.bound, "seconds": row.seconds,
        "queries_without_results": row.empty, "reformulated_queries": row.reformulated,
    }  # fmt: skip


def _as_json(row: Row) -> dict[str, Any]:
    measures = {name: cell_facts(cell) for name, cell in row.cells.items()}
    return {**_method_facts(row), "pareto_optimal": sorted(row.pareto), "measures": measures}


def cell_facts(cell: Cell) -> dict[str, Any]:
    """One cell as JSON values."""
    found = {} if cell.against is None else asdict(cell.against)
    gains = {name: found.get(key) for name, key in (("gain", "gain"), ("gain_low", "low"), ("gain_high", "high"))}
    counts = {name: found.get(name) for name in ("p", "improved", "worsened", "unchanged")}
    return {
        "mean": cell.mean, "n": cell.n, "change": cell.change, "low": cell.low, "high": cell.high, **gains, **counts,
        "p_holm": cell.p_holm,
    }  # fmt: skip


def compared(values: Mapping[str, Values], requests: Sequence[MeasureRequest]) -> dict[str, dict[str, Cell]]:
    """Every method by every measure, against the first; p corrected over all methods and measures together.

    A mean is over the queries for which every method has a value, so that all means are of the same queries.
    """
    base, *others = values
    cells: dict[str, dict[str, Cell]] = {method: {} for method in values}
    for one in requests:
        there = _defined(values, one.text)
        sizes = {method: _sizes(found[one.text][there], one.direction) for method, found in values.items()}
        cells[base][one.text] = Cell(float(sizes[base].mean()), int(there.sum()))
        for method in others:
            cells[method][one.text] = _cell(sizes[base], sizes[method], one)
    return _corrected(cells)


def _defined(values: Mapping[str, Values], measure: str) -> npt.NDArray[np.bool_]:
    without = {method: np.isnan(found[measure]) for method, found in values.items()}
    there: npt.NDArray[np.bool_] = ~np.any(list(without.values()), axis=0)
    if not there.any():
        worst = max(without, key=lambda method: int(without[method].sum()))
        raise DataError(
            f"{measure}: there is no query for which every method has a value; {worst!r} lacks "
            f"{int(without[worst].sum()):,} of {len(there):,}: leave it out, or give a run that answers more queries"
        )
    return there


def _sizes(values: Floats, direction: Direction) -> Floats:
    return np.abs(values) if direction is Direction.ZERO else values


def _cell(old: Floats, new: Floats, request: MeasureRequest) -> Cell:
    way, bounds = request.direction, request.bounds
    if way is Direction.ZERO:
        way, bounds = Direction.DOWN, size_bounds(bounds)
    found = paired(old, new, way, bounds)
    low, high = change_interval(np.arange(len(old)), old, new, bounds)
    change = None if found.relative is None else 100 * found.relative
    return Cell(found.new, found.n, change, low, high, found)


def _corrected(cells: dict[str, dict[str, Cell]]) -> dict[str, dict[str, Cell]]:
    ps = {
        (method, name): cell.against.p
        for method, mine in cells.items()
        for name, cell in mine.items()
        if cell.against is not None and cell.against.p is not None
    }
    fixed = dict(zip(ps, holm(list(ps.values())), strict=True))
    return {
        method: {
            name: Cell(c.mean, c.n, c.change, c.low, c.high, c.against, fixed.get((method, name)))
            for name, c in mine.items()
        }
        for method, mine in cells.items()
    }


def pareto_optimal(
    cells: Mapping[str, Mapping[str, Cell]], systems: Sequence[str], effectiveness: str, leans: Sequence[str],
    directions: Mapping[str, Direction],
) -> dict[str, frozenset[str]]:  # fmt: skip
    """For each method the measures of lean for which it is Pareto-optimal: no other system has means at least as good
    in effectiveness and in lean, and better in one of them.

    ``systems`` are the methods that take part: an upper bound does not.
    """
    found: dict[str, set[str]] = {method: set() for method in cells}
    for lean in leans:
        gains = [_upward(cells, systems, name, directions[name]) for name in (effectiveness, lean)]
        on = pareto_front(np.zeros(len(systems), np.int64), *gains)
        for method, is_on in zip(systems, on.tolist(), strict=True):
            found[method] |= {lean} if is_on else set()
    return {method: frozenset(mine) for method, mine in found.items()}


def _upward(cells: Mapping[str, Mapping[str, Cell]], systems: Sequence[str], name: str, way: Direction) -> Floats:
    means = np.round([cells[method][name].mean for method in systems], _DIGITS)
    return means if way is Direction.UP else -means
