"""Compute the results of mitigation methods: means, changes with intervals, corrected tests, Pareto fronts."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from askew.core import defaults
from askew.core.errors import DataError, Note
from askew.core.files import parse_json
from askew.core.measure import Bounds, Direction
from askew.core.ranking import Floats
from askew.measures.effects import Effect, effects_table
from askew.measures.statistics.intervals import change_interval, size_bounds
from askew.measures.statistics.significance import NULLS, Paired, holm_by_family, paired
from askew.report.table import CODE, Column, Table, TableView, measure_label, table
from askew.study.bench.methods import MitigationMethod
from askew.study.tables import skew_notes

# Means that agree to this number of decimals are equal: the difference is a rounding error.
_DIGITS = 12
# Marks of a table: an upper bound, a Pareto-optimal method, the base.
BOUND, PARETO, BASE = "†", "Pareto", "base"
# The scores of a method: by measure, one value per query.
Values = Mapping[str, Floats]


@dataclass(frozen=True)
class Cell:
    """The result of one method by one measure.

    ``change`` is the change of the mean against the base in percent, with the interval from ``low`` to ``high``.
    ``against`` is the paired comparison with the base, None for the base itself; ``p_holm`` is its corrected p. If zero
    is the best value of the measure, absolute values are used.
    """

    mean: float
    n: int
    change: float | None = None
    low: float | None = None
    high: float | None = None
    against: Paired | None = None
    p_holm: float | None = None


@dataclass(frozen=True)
class BenchMeasure:
    """A measure of a report; ``effectiveness`` is true if it reads judgements, else it measures lean."""

    text: str
    signature: str
    direction: Direction
    bounds: Bounds
    effectiveness: bool


@dataclass(frozen=True)
class Costs:
    """The costs of a method, and how much it changes.

    ``searches`` and ``model_calls`` are per query, None if unknown.
    ``kept`` is the share of the base's top 10 that is still in the top 10. ``empty`` and ``reformulated`` are the
    numbers of queries without results and of reformulated queries.
    """

    searches: float | None
    model_calls: float | None
    kept: float
    empty: int
    reformulated: int | None


@dataclass(frozen=True)
class Scored:
    """The scores of a method, or of one of its seeds: by measure, one value per query; and its effect on the lists."""

    method: MitigationMethod
    values: Values
    costs: Costs
    effect: Effect | None = None


@dataclass(frozen=True)
class Row:
    """The results of one method.

    ``pareto`` has the measures of lean for which it is Pareto-optimal. ``seeds`` has the means of each measure by seed,
    if there are several seeds.
    """

    method: MitigationMethod
    cells: Mapping[str, Cell]
    pareto: frozenset[str]
    costs: Costs
    seeds: Mapping[str, Sequence[float]] = field(default_factory=dict)
    effect: Effect | None = None

    @property
    def base(self) -> bool:
        """Whether this method is the base."""
        return all(cell.against is None for cell in self.cells.values())

    @property
    def label(self) -> str:
        """The label of the method in tables; the base and an upper bound are marked."""
        mark = f" {BOUND}" if self.method.bound else f" ({BASE})" if self.base else ""
        return f"{self.method.row_text}{mark}"


@dataclass(frozen=True, repr=False)
class BenchReport(TableView):
    """The result of ``bench``.

    ``rows`` has one row for each method; the first row is the base ranker. ``scored`` has the scores of every query
    for each method and each random seed. ``groups`` has the lexicon and the groups that were given to ``bench``. If no
    groups were given, ``groups`` is None, and each measure counts its default groups.
    """

    collection: str
    query_ids: Sequence[str]
    k: int
    agree: float
    asked: Sequence[BenchMeasure]
    rows: Sequence[Row]
    rules: Sequence[str]
    notes: Sequence[str]
    scored: Sequence[Scored]
    groups: Mapping[str, Any] | None = None
    test: str = defaults.TEST

    @property
    def effectiveness(self) -> list[str]:
        """The measures of effectiveness; methods are compared by the first."""
        return [one.text for one in self.asked if one.effectiveness]

    @property
    def leans(self) -> list[str]:
        """The measures of lean."""
        return [one.text for one in self.asked if not one.effectiveness]

    @property
    def values(self) -> dict[str, Values]:
        """The scores of every query by method; the mean over seeds if there are several."""
        return merged_seeds(self.scored, self.asked)

    @property
    def tests(self) -> dict[str, int]:
        """The number of tests of effectiveness, and of those of lean, over which p is corrected."""
        tested = Counter(name for row in self.rows for name, cell in row.cells.items() if cell.p_holm is not None)
        families = {"effectiveness": self.effectiveness, "lean": self.leans}
        return {family: sum(tested[name] for name in names) for family, names in families.items()}

    def to_polars(self) -> pl.DataFrame:
        """Return one row for each method and measure, with every number of the report; changes are in percent."""
        signatures = {one.text: one.signature for one in self.asked}
        rows = [
            {
                **_method_facts(row), "measure": name, **_cell_facts(cell), "pareto_optimal": name in row.pareto,
                "signature": signatures[name],
            }
            for row in self.rows
            for name, cell in row.cells.items()
        ]  # fmt: skip
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_pandas(self) -> Any:
        """Return the table of ``to_polars`` as a pandas data frame; pandas must be installed."""
        return self.to_polars().to_pandas()

    def per_query(self) -> pl.DataFrame:
        """Return one row for each method and query, with a column for each measure; null where it is not defined."""
        parts = [
            pl.DataFrame({"method": [method] * len(self.query_ids), "query_id": self.query_ids, **values})
            for method, values in self.values.items()
        ]
        return pl.concat(parts).fill_nan(None)

    def table(self) -> Table:
        """The mean of each measure for each method, with its change from the base."""
        rows = []
        for row in self.rows:
            rows.append([row.label])
            for name, cell in row.cells.items():
                change = "" if cell.change is None else f" {cell.change:+.1f}%"
                rows[-1].append(f"{cell.mean:.4f}{change}{f' {PARETO}' if name in row.pareto else ''}")
        head = [Column("method", CODE), *(Column(measure_label(one.text, one.direction)) for one in self.asked)]
        return table("bench", self.collection, head, rows)

    def effects(self, name: str = "effects") -> Table | None:
        """What each method does beyond chance and to each group; None if no measure of lean is such a sum."""
        effects = {row.label: row.effect for row in self.rows if row.effect is not None}
        return effects_table(effects, name) if effects else None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        about = {"collection": self.collection, "queries": len(self.query_ids), "k": self.k, "agree": self.agree}
        return {
            **about, "groups": self.groups, "base": self.rows[0].method.text, "effectiveness": self.effectiveness,
            "leans": self.leans, "signatures": {one.text: one.signature for one in self.asked}, "tests": self.tests,
            "test": self.test, "null_hypothesis": NULLS[self.test],
            "methods": [
                _method_facts(row)
                | {"pareto_optimal": sorted(row.pareto)}
                | {"measures": {name: _cell_facts(cell) for name, cell in row.cells.items()}}
                | {"effect": None if row.effect is None else asdict(row.effect) | {"verdict": row.effect.verdict}}
                for row in self.rows
            ],
            "rules": list(self.rules), "notes": list(self.notes),
        }  # fmt: skip


def _method_facts(row: Row) -> dict[str, Any]:
    return {
        "method": row.method.row_text, "kind": row.method.kind, "strength": row.method.strength,
        "upper_bound": row.method.bound, "seeds": max((len(one) for one in row.seeds.values()), default=1),
        "searches": row.costs.searches, "model_calls": row.costs.model_calls,
        "kept_top_10": row.costs.kept, "queries_without_results": row.costs.empty,
        "reformulated_queries": row.costs.reformulated,
    }  # fmt: skip


def _cell_facts(cell: Cell) -> dict[str, Any]:
    found = {} if cell.against is None else asdict(cell.against)
    gains = {name: found.get(key) for name, key in (("gain", "gain"), ("gain_low", "low"), ("gain_high", "high"))}
    counts = {
        name: found.get(name)
        for name in ("p", "p_bounded", "detectable", "nonzero", "improved", "worsened", "unchanged")
    }
    return {
        "mean": cell.mean, "n": cell.n, "change": cell.change, "low": cell.low, "high": cell.high, **gains, **counts,
        "p_holm": cell.p_holm,
    }  # fmt: skip


def make_report(
    collection: str, query_ids: Sequence[str], k: int, agree: float, asked: Sequence[BenchMeasure],
    scored: Sequence[Scored], rules: Sequence[str], notes: Sequence[str], groups: Mapping[str, Any] | None,
    test: str = defaults.TEST,
) -> BenchReport:  # fmt: skip
    """Compute means, intervals, tests and Pareto fronts from the scores; the first method is the base."""
    values = merged_seeds(scored, asked)
    cells = compared(values, asked, test)
    methods = {one.method.row_text: one.method for one in reversed(scored)}
    systems = [text for text in values if not methods[text].bound]
    effect = next(one.text for one in asked if one.effectiveness)
    leans = [one.text for one in asked if not one.effectiveness]
    optimal = pareto_optimal(cells, systems, effect, leans, {one.text: one.direction for one in asked})
    rows = []
    for text in values:
        mine = [one for one in scored if one.method.row_text == text]
        seeds = {
            one.text: [float(np.nanmean(_sizes(each.values[one.text], one.direction))) for each in mine]
            for one in asked
            if len(mine) > 1
        }
        costs = _mean_costs([one.costs for one in mine])
        rows.append(Row(methods[text], cells[text], optimal[text], costs, seeds, mine[0].effect))
    more = [
        Note(
            f"{name}: means are over the {cell.n:,} of {len(query_ids):,} queries for which every method has a value",
            code="fewer-queries",
            measure=name,
            queries=cell.n,
        )
        for name, cell in rows[0].cells.items()
        if cell.n < len(query_ids)
    ]
    for one in asked:
        against = {row.method.row_text: row.cells[one.text].against for row in rows}
        more += skew_notes(one.text, {text: found for text, found in against.items() if found is not None})
    every = list(dict.fromkeys([*notes, *more]))
    return BenchReport(collection, query_ids, k, agree, asked, rows, rules, every, scored, groups, test)


def merged_seeds(scored: Sequence[Scored], asked: Sequence[BenchMeasure]) -> dict[str, Values]:
    """Return the scores of each method; if it has several seeds, the mean over the seeds.

    If zero is the best value of a measure, the mean is of absolute values: signed values of different seeds would
    cancel out, although the results of each seed lean.
    """
    found: dict[str, Values] = {}
    for text in dict.fromkeys(one.method.row_text for one in scored):
        mine = [one.values for one in scored if one.method.row_text == text]
        found[text] = mine[0] if len(mine) == 1 else {
            one.text: np.mean([_sizes(values[one.text], one.direction) for values in mine], axis=0) for one in asked
        }  # fmt: skip
    return found


def _mean_costs(costs: Sequence[Costs]) -> Costs:
    """Return the costs of one method; the mean over seeds if there are several."""
    if len(costs) == 1:
        return costs[0]

    def mean(name: str) -> float | None:
        values = [getattr(one, name) for one in costs]
        return None if None in values else float(np.mean(values))

    reformulated = mean("reformulated")
    return Costs(
        mean("searches"), mean("model_calls"), mean("kept") or 0.0,
        max(one.empty for one in costs), None if reformulated is None else round(reformulated),
    )  # fmt: skip


def compared(
    values: Mapping[str, Values], requests: Sequence[BenchMeasure], test: str = defaults.TEST
) -> dict[str, dict[str, Cell]]:
    """Compare every method with the base (the first) by every measure.

    p is corrected over all methods and all measures of effectiveness, or all measures of lean.

    A mean is over the queries for which every method has a value, so that all means are over the same queries.
    """
    base = next(iter(values))
    cells: dict[str, dict[str, Cell]] = {method: {} for method in values}
    for one in requests:
        without = {method: np.isnan(found[one.text]) for method, found in values.items()}
        there = ~np.any(list(without.values()), axis=0)
        if not there.any():
            worst = max(without, key=lambda method: int(without[method].sum()))
            raise DataError(
                f"{one.text}: there is no query for which every method has a value; {worst!r} has no value for "
                f"{int(without[worst].sum()):,} of {len(there):,} queries: leave this method out, or give a run that "
                "answers more queries",
                code="no-shared-query",
                method=worst,
                missing=int(without[worst].sum()),
                queries=len(there),
            )
        is_zero = one.direction is Direction.ZERO
        way, bounds = (Direction.DOWN, size_bounds(one.bounds)) if is_zero else (one.direction, one.bounds)
        old = _sizes(values[base][one.text][there], one.direction)
        for method, scores in values.items():
            if method == base:
                cells[method][one.text] = Cell(float(old.mean()), len(old))
                continue
            new = _sizes(scores[one.text][there], one.direction)
            found = paired(old, new, way, bounds, test=test)
            change, low, high = None, None, None
            if found.relative is not None:
                change = 100 * found.relative
                low, high = (None, None) if found.sparse else change_interval(np.arange(len(old)), old, new)
            cells[method][one.text] = Cell(found.new, found.n, change, low, high, found)
    ps = {
        (method, name): cell.against.p
        for method, mine in cells.items()
        for name, cell in mine.items()
        if cell.against is not None
    }
    judged = {one.text for one in requests if one.effectiveness}
    fixed = holm_by_family(ps, lambda key: key[1] in judged)
    return {
        method: {name: replace(cell, p_holm=fixed.get((method, name))) for name, cell in mine.items()}
        for method, mine in cells.items()
    }


def _sizes(values: Floats, direction: Direction) -> Floats:
    return np.abs(values) if direction is Direction.ZERO else values


def pareto_optimal(
    cells: Mapping[str, Mapping[str, Cell]], systems: Sequence[str], effectiveness: str, leans: Sequence[str],
    directions: Mapping[str, Direction],
) -> dict[str, frozenset[str]]:  # fmt: skip
    """Return for each method the measures of lean for which it is Pareto-optimal.

    A method is Pareto-optimal if no other system has means that are at least as good in effectiveness and in lean, and
    better in one of them. ``systems`` are the methods that are compared: all except upper bounds.
    """
    found: dict[str, set[str]] = {method: set() for method in cells}
    for lean in leans:
        gains = list[Floats]()
        for name in (effectiveness, lean):
            means = np.round([cells[method][name].mean for method in systems], _DIGITS)
            gains.append(means if directions[name] is Direction.UP else -means)
        effect, less = gains
        # Place i, j: whether system i is at least as good as system j in both gains, and better in one of them.
        as_good = (effect[:, None] >= effect) & (less[:, None] >= less)
        dominates = as_good & ((effect[:, None] > effect) | (less[:, None] > less))
        on = np.logical_not(dominates.any(axis=0))
        for method, is_on in zip(systems, on.tolist(), strict=True):
            found[method] |= {lean} if is_on else set()
    return {method: frozenset(mine) for method, mine in found.items()}


# Write and read the scores of every query, from which a report is recomputed without searching.

SCORES = "tables/scores.parquet"
_ABOUT = b"askew.bench"
_VERSION = 2


def write_scores(report: BenchReport) -> dict[str, bytes]:
    """Return the file by its name: one row for each method, seed and query, and one column for each measure."""
    parts = [
        pa.table({
            "method": pa.array([one.method.text] * len(report.query_ids)).dictionary_encode(),
            "query_id": pa.array(report.query_ids, pa.string()),
            **{text: pa.array(values, pa.float64(), from_pandas=True) for text, values in one.values.items()},
        })
        for one in report.scored
    ]  # fmt: skip
    about = {
        "version": _VERSION, "collection": report.collection, "k": report.k, "agree": report.agree,
        "groups": report.groups, "test": report.test, "rules": list(report.rules), "notes": list(report.notes),
        "measures": [
            {
                **asdict(one), "direction": one.direction.value,
                "bounds": [end if np.isfinite(end) else None for end in one.bounds],
            }
            for one in report.asked
        ],
        "methods": [
            {
                "method": _plain(one.method), "costs": asdict(one.costs),
                "effect": None if one.effect is None else asdict(one.effect),
            }
            for one in report.scored
        ],
    }  # fmt: skip
    table = pa.concat_tables(parts, promote_options="default").unify_dictionaries()
    kept = {**(table.schema.metadata or {}), _ABOUT: json.dumps(about).encode()}
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(kept), out, compression="zstd", compression_level=19)
    return {SCORES: out.getvalue()}


def read_scores(place: str | Path) -> BenchReport:
    """Recompute the report of a bench from its scores; ``place`` is the output folder of the bench, or the file."""
    path = Path(place)
    file = path / SCORES if path.is_dir() else path
    try:
        table = pq.read_table(file)
        about = parse_json((table.schema.metadata or {})[_ABOUT])
        if about["version"] != _VERSION:
            raise DataError(f"{file}: this file was written by another version of askew; run askew bench again")
        return _report_of(pl.DataFrame(pl.from_arrow(table)), about)
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise DataError(f"{file}: expected the scores of askew bench --out ({why})", code="no-scores") from None


def _report_of(table: pl.DataFrame, about: Mapping[str, Any]) -> BenchReport:
    measures = []
    for one in about["measures"]:
        low, high = one["bounds"]
        bounds = -np.inf if low is None else low, np.inf if high is None else high
        measures.append(BenchMeasure(**{**one, "direction": Direction(one["direction"]), "bounds": bounds}))
    scored, ids = [], table.filter(pl.col("method") == about["methods"][0]["method"]["text"])["query_id"].to_list()
    for one in about["methods"]:
        mine = table.filter(pl.col("method") == one["method"]["text"])
        if mine["query_id"].to_list() != ids:
            raise ValueError(
                f"the queries of the method {one['method']['text']} differ from the queries of the base ranker"
            )
        values = {each.text: mine[each.text].fill_null(float("nan")).to_numpy().copy() for each in measures}
        effect = None if one["effect"] is None else Effect.of(one["effect"])
        # Earlier versions also wrote the seconds of each method, which counted shared work several times.
        costs = Costs(**{name: value for name, value in one["costs"].items() if name != "seconds"})
        scored.append(Scored(_method(one["method"]), values, costs, effect))
    return make_report(
        about["collection"], ids, about["k"], about["agree"], measures, scored, about["rules"], about["notes"],
        about["groups"], about.get("test", defaults.TEST),
    )  # fmt: skip


def _plain(method: MitigationMethod) -> dict[str, Any]:
    """Return a method as JSON values, without its settings."""
    first = None if method.first is None else _plain(method.first)
    names = ("text", "kind", "name", "choice", "strength", "seed")
    return {**{name: getattr(method, name) for name in names}, "first": first}


def _method(facts: Mapping[str, Any]) -> MitigationMethod:
    return MitigationMethod(**{**facts, "first": None if facts["first"] is None else _method(facts["first"])})
