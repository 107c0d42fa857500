"""Summaries of a selection: means before and after per subset, improved and worsened pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from askew.core.errors import DataError
from askew.core.measure import Direction, new_column, old_column
from askew.core.outcome import check_tolerance, verdicts
from askew.measures.statistics.intervals import known, sums_interval
from askew.pairs.gains import PairParts, parts_of

# All rows, as a subset.
EVERY = "all candidates"
_SCHEMA = {
    "subset": pl.String, "measure": pl.String, "of": pl.String, "pairs": pl.Int64, "queries": pl.Int64,
    "old_mean": pl.Float64, "new_mean": pl.Float64, "change": pl.Float64, "low": pl.Float64, "high": pl.Float64,
    **dict.fromkeys(("improved_pairs", "unchanged_pairs", "worsened_pairs", "zero_pairs"), pl.Int64),
}  # fmt: skip


def summarize(
    selected: pl.DataFrame | PairParts, directions: Mapping[str, Direction], subsets: Sequence[str],
    tolerance: float = 0.0,
) -> pl.DataFrame:  # fmt: skip
    """Table 1: for each subset (a column of flags, or ``EVERY``) and measure, the means before and after.

    ``pairs`` and ``queries`` count those with an old and a new score. ``change`` is the change of the mean relative to
    the old mean in percent, with the interval from ``low`` to ``high`` (over queries, see
    ``change_interval``). It is null if the old mean is zero or the data do not determine it. ``of``
    names what is averaged: scores, or the distance from zero for a signed measure that is best at zero, because lean to
    both sides would cancel out. ``improved_pairs`` and ``worsened_pairs`` gained and lost more than the tolerance;
    ``unchanged_pairs`` did neither. ``zero_pairs`` have the score zero before and after.
    """
    check_tolerance(tolerance)
    pairs = parts_of(selected)
    flags = [subset for subset in subsets if subset != EVERY]
    needed = ["query_id", *flags, *(name(one) for one in directions for name in (old_column, new_column))]
    if missing := [name for name in needed if name not in pairs.columns]:
        raise DataError(f"summary: expected a column {missing[0]!r}, found {', '.join(pairs.columns)}")
    found: dict[tuple[str, str], dict[str, Any]] = {}
    # One measure at a time, so that only a few numbers for each query are in memory.
    for measure, direction in directions.items():
        sums = pairs.map(
            ["query_id", *flags, old_column(measure), new_column(measure)],
            partial(_sums, measure=measure, direction=direction, subsets=subsets, tolerance=tolerance),
        )
        for subset in subsets:
            of_subset = sums.filter(subset=subset) if sums.width else sums
            found[subset, measure] = _row(of_subset, direction)
    rows = [{"subset": key[0], "measure": key[1], **found[key]} for key in product(subsets, directions)]
    return pl.DataFrame(rows, schema=_SCHEMA)


_COUNTS = ("improved_pairs", "unchanged_pairs", "worsened_pairs", "zero_pairs")


def _sums(
    frame: pl.DataFrame, measure: str, direction: Direction, subsets: Sequence[str], tolerance: float
) -> pl.DataFrame:
    """The sums of the values before and after and the counts, for each subset and query of some whole queries."""
    ids, query = frame["query_id"].unique().sort(), frame["query_id"].rank("dense").to_numpy().astype(np.int64) - 1
    old, new = (frame[name(measure)].to_numpy() for name in (old_column, new_column))
    sign = verdicts(old, new, direction, tolerance)
    columns = {"pairs": np.ones(len(old)), "before": old, "after": new}
    if direction is Direction.ZERO:
        columns |= {"before": np.abs(old), "after": np.abs(new)}
    columns |= dict(zip(_COUNTS, (sign > 0, sign == 0, sign < 0, (old == 0) & (new == 0)), strict=True))
    parts = []
    for subset in subsets:
        there = ~(np.isnan(old) | np.isnan(new))
        kept = np.flatnonzero(there if subset == EVERY else there & frame[subset].to_numpy())
        sums = {name: np.bincount(query[kept], values[kept], len(ids)) for name, values in columns.items()}
        of_queries = pl.DataFrame({"query_id": ids, **sums}, schema_overrides=dict.fromkeys(sums, pl.Float64))
        parts.append(of_queries.with_columns(subset=pl.lit(subset)).filter(pl.col("pairs") > 0))
    return pl.concat(parts)


def _row(sums: pl.DataFrame, direction: Direction) -> dict[str, Any]:
    """The row of the table, from the sums of each query."""
    told: dict[str, Any] = {"of": "distance from zero" if direction is Direction.ZERO else "score"}
    told |= {"queries": len(sums)} | {name: int(sums[name].sum()) if sums.width else 0 for name in ("pairs", *_COUNTS)}
    if not told["pairs"]:
        return told
    before, after = (sums.sort("query_id")[name].to_numpy() for name in ("before", "after"))
    old, new = (float(side.sum()) / told["pairs"] for side in (before, after))
    low, high = sums_interval(before, after)
    change = known(100 * (new - old) / old if old else math.nan)
    return {**told, "old_mean": old, "new_mean": new, "change": change, "low": low, "high": high}
