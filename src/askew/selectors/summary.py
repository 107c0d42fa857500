"""What a selection amounts to: means before and after per subset, improved and worsened pairs, and RePair's counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from askew.core.errors import ConfigError, DataError
from askew.core.measure import UNBOUNDED, Bounds, Direction, new_column, old_column
from askew.core.outcome import check_tolerance, verdicts
from askew.core.ranking import Floats, Ints
from askew.selectors.boxes import best_candidates
from askew.statistics.intervals import LEVEL, change_interval, known, size_bounds

_SCHEMA = {
    "subset": pl.String, "measure": pl.String, "of": pl.String, "pairs": pl.Int64, "queries": pl.Int64,
    "old_mean": pl.Float64, "new_mean": pl.Float64, "change": pl.Float64, "low": pl.Float64, "high": pl.Float64,
    **dict.fromkeys(("improved_pairs", "unchanged_pairs", "worsened_pairs"), pl.Int64),
}  # fmt: skip


def summarise(
    selected: pl.DataFrame,
    directions: Mapping[str, Direction],
    subsets: Sequence[str],
    bounds: Mapping[str, Bounds] | None = None,
    level: float = LEVEL,
    tolerance: float = 0.0,
) -> pl.DataFrame:
    """Table 1: for each subset (a column of flags) and measure, the means before and after.

    ``pairs`` and ``queries`` have a score on both sides. ``change`` is the change of the means relative to the old mean
    in percent, between ``low`` and ``high`` (over queries, see ``change_interval``; ``bounds`` of the measures); null
    where the old mean is zero or the data cannot tell. ``of`` says what the means are of: of scores, or for a signed
    measure that is best at zero, of the distance from zero, because lean to both sides would cancel out.
    ``improved_pairs`` and ``worsened_pairs`` gained and lost more than the tolerance; ``unchanged_pairs`` neither.
    """
    if not 0 < level < 1:
        raise ConfigError(f"level: expected a number between 0 and 1, found {level}")
    check_tolerance(tolerance)
    _check(selected, directions, subsets)
    rows = []
    for subset in subsets:
        table = selected.filter(pl.col(subset))
        query = table.get_column("query_id").rank("dense").to_numpy().astype(np.int64) - 1
        for measure, direction in directions.items():
            limits = (bounds or {}).get(measure, UNBOUNDED)
            old, new = (table.get_column(name(measure)).to_numpy() for name in (old_column, new_column))
            rows.append({"subset": subset, "measure": measure, **_row(query, old, new, direction, tolerance),
                         **_change(query, old, new, direction, limits, level)})  # fmt: skip
    return pl.DataFrame(rows, schema=_SCHEMA)


def _check(selected: pl.DataFrame, directions: Mapping[str, Direction], subsets: Sequence[str]) -> None:
    needed = ["query_id", *subsets, *(name(one) for one in directions for name in (old_column, new_column))]
    missing = [name for name in needed if name not in selected.columns]
    if missing:
        raise DataError(f"summary: expected a column {missing[0]!r}, found {', '.join(selected.columns)}")


def _present(old: Floats, new: Floats) -> Any:
    return ~(np.isnan(old) | np.isnan(new))


def _row(query: Ints, old: Floats, new: Floats, direction: Direction, tolerance: float) -> dict[str, Any]:
    there = _present(old, new)
    sign = verdicts(old[there], new[there], direction, tolerance)
    named = (("improved_pairs", 1), ("unchanged_pairs", 0), ("worsened_pairs", -1))
    counts = {name: int((sign == value).sum()) for name, value in named}
    return {"pairs": int(there.sum()), "queries": len(np.unique(query[there])), **counts}


def _change(
    query: Ints, old: Floats, new: Floats, direction: Direction, bounds: Bounds, level: float
) -> dict[str, Any]:
    there = _present(old, new)
    if direction is Direction.ZERO:
        old, new, bounds = np.abs(old), np.abs(new), size_bounds(bounds)
    means = {"of": "distance from zero" if direction is Direction.ZERO else "score"}
    if not there.any():
        return means
    before, after = float(old[there].mean()), float(new[there].mean())
    low, high = change_interval(query[there], old[there], new[there], bounds, level)
    change = known(100 * (after - before) / before if before else math.nan)
    return {**means, "old_mean": before, "new_mean": after, "change": change, "low": low, "high": high}


def buckets(table: pl.DataFrame, count: int = 10) -> pl.DataFrame:
    """RePair's buckets: originals by value in groups of equal size, and the mean of them and of their best candidates.

    Of an aggregated table; originals without a candidate are left out. Where the size does not divide, the first
    buckets hold one more.
    """
    if count < 1:
        raise ConfigError(f"buckets: expected one or more, found {count}")
    best = best_candidates(table).sort("value", maintain_order=True)
    size, more = divmod(len(best), count)
    number = np.repeat(np.arange(count), [size + (i < more) for i in range(count)]) + 1
    return (
        best.with_columns(bucket=pl.Series(number, dtype=pl.Int64))
        .group_by("bucket", maintain_order=True)
        .agg(queries=pl.len(), old_mean=pl.col("value").mean(), new_mean=pl.col("value_").mean())
    )
