"""Summaries of a selection: means before and after per subset, improved and worsened pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from askew.core.errors import DataError
from askew.core.measure import Direction, new_column, old_column
from askew.core.outcome import check_tolerance, verdicts
from askew.core.ranking import Floats, Ints
from askew.measures.statistics.intervals import known, sums_interval
from askew.pairs.gains import QUERY, PairParts, parts_of

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
        tallies = {subset: _Tally(pairs.queries, direction, tolerance) for subset in subsets}
        names = [old_column(measure), new_column(measure)]
        for frame in pairs.numbered([*flags, *names]):
            for subset, tally in tallies.items():
                part = frame if subset == EVERY else frame.filter(subset)
                tally.add(part[QUERY].to_numpy(), *(part[name].to_numpy() for name in names))
        found |= {(subset, measure): tally.row() for subset, tally in tallies.items()}
    rows = [{"subset": key[0], "measure": key[1], **found[key]} for key in product(subsets, directions)]
    return pl.DataFrame(rows, schema=_SCHEMA)


class _Tally:
    """Collects the means, the counts and the sums of each query for one subset and measure, part by part."""

    def __init__(self, queries: int, direction: Direction, tolerance: float) -> None:
        self._direction, self._tolerance = direction, tolerance
        self._before, self._after = np.zeros(queries), np.zeros(queries)
        self._sizes = np.zeros(queries, np.int32)
        self._counts = {"improved_pairs": 0, "unchanged_pairs": 0, "worsened_pairs": 0, "zero_pairs": 0}

    def add(self, query: Ints, old: Floats, new: Floats) -> None:
        """Add pairs, in the order of the table."""
        there = ~(np.isnan(old) | np.isnan(new))
        query, old, new = query[there], old[there], new[there]
        sign = verdicts(old, new, self._direction, self._tolerance)
        found = (sign > 0, sign == 0, sign < 0, (old == 0) & (new == 0))
        for name, flags in zip(self._counts, found, strict=True):
            self._counts[name] += int(flags.sum())
        if self._direction is Direction.ZERO:
            old, new = np.abs(old), np.abs(new)
        # The sums of this part, added to those of its queries; other parts have other queries.
        unit, place = np.unique(query, return_inverse=True)
        self._before[unit] += np.bincount(place, old, len(unit))
        self._after[unit] += np.bincount(place, new, len(unit))
        self._sizes[unit] += np.bincount(place, minlength=len(unit)).astype(np.int32)

    def row(self) -> dict[str, Any]:
        """Return the row of the table."""
        to_zero, n, known_queries = self._direction is Direction.ZERO, int(self._sizes.sum()), self._sizes > 0
        told: dict[str, Any] = {"pairs": n, "queries": int(known_queries.sum()), **self._counts}
        told["of"] = "distance from zero" if to_zero else "score"
        if not n:
            return told
        sums = self._before[known_queries], self._after[known_queries]
        before, after = (float(side.sum()) / n for side in sums)
        low, high = sums_interval(*sums)
        change = known(100 * (after - before) / before if before else math.nan)
        return {**told, "old_mean": before, "new_mean": after, "change": change, "low": low, "high": high}
