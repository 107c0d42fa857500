"""How many pairs gain how much on both sides, as cells of a chart: as many as can be told apart, whatever their number.

Each cell says where its pairs are on average and how many there are. Pairs that gain, lose and keep what they had are
in different cells, however small the difference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from askew.app.explore.pairs import ShownPairs, Wanted
from askew.core.measure import gain_column
from askew.core.outcome import Signs, signs
from askew.core.ranking import Floats, Ints

# Cells along lean and along effectiveness; two more on each side, for the signs that share a cell with zero.
ACROSS, UPRIGHT = 46, 30
MOST_CELLS = (ACROSS + 2) * (UPRIGHT + 2)
Ends = tuple[float, float]


@dataclass(frozen=True)
class PairCells:
    """Cells of pairs: mean gains, how many pairs, and the signs of their gains by the tolerance of the selection."""

    x: Floats
    y: Floats
    counts: Ints
    x_signs: Signs
    y_signs: Signs


@dataclass(frozen=True)
class GainCells:
    """The cells of the pairs that fit, and those of all pairs, whose ends are those of the axes of every selection.

    ``lean`` (across) and ``effectiveness`` (upright) are the measures. ``unknown`` pairs that fit lack a gain.
    """

    lean: str
    effectiveness: str
    fitting: PairCells
    every: PairCells
    span: tuple[Ends, Ends]
    unknown: int


def gain_cells(table: ShownPairs, wanted: Wanted) -> GainCells | None:
    """The pairs that fit, whatever the bounds of their gains; None where the selection names no two sides."""
    effectiveness, lean = table.sides
    if effectiveness is None or lean is None:
        return None
    columns = [pl.col(gain_column(name)).fill_null(np.nan) for name in (lean, effectiveness)]
    free = replace(wanted, sort="", lean_min=None, lean_max=None, effectiveness_min=None, effectiveness_max=None)
    frames = [one.select(columns) for one in (table.selection(Wanted()), table.selection(free))]
    (every, _), (fitting, unknown) = (_known(one) for one in pl.collect_all(frames))
    span = _ends(every[0]), _ends(every[1])
    tolerance = float(table.manifest.settings.get("tolerance", 0.0))
    made = [_cells(x, y, span, tolerance) for x, y in (fitting, every)]
    return GainCells(lean, effectiveness, made[0], made[1], span, unknown)


def _known(frame: pl.DataFrame) -> tuple[tuple[Floats, Floats], int]:
    """The gains of the pairs that have both, and how many have not."""
    x, y = (frame.to_series(side).to_numpy() for side in (0, 1))
    known = ~(np.isnan(x) | np.isnan(y))
    return (x[known], y[known]), int((~known).sum())


def _ends(values: Floats) -> Ends:
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)


def _cells(x: Floats, y: Floats, span: tuple[Ends, Ends], tolerance: float) -> PairCells:
    # One number for each cell: its place and sign across, then its place and sign upright.
    keys = 3 * UPRIGHT * _places(x, span[0], ACROSS, tolerance) + _places(y, span[1], UPRIGHT, tolerance)
    every = np.bincount(keys, minlength=9 * ACROSS * UPRIGHT)
    found = np.flatnonzero(every)
    counts = every[found]
    means = [np.bincount(keys, values, len(every))[found] / counts for values in (x, y)]
    x_signs, y_signs = found // (3 * UPRIGHT) % 3 - 1, found % 3 - 1
    return PairCells(means[0], means[1], counts, x_signs.astype(np.int8), y_signs.astype(np.int8))


def _places(values: Floats, ends: Ends, count: int, tolerance: float) -> Ints:
    """Which of so many equal pieces each value is in, three for each: one for each sign."""
    return 3 * _bins(values, ends, count) + signs(values, tolerance).astype(np.int64) + 1


def _bins(values: Floats, ends: Ends, count: int) -> Ints:
    wide = (ends[1] - ends[0]) / count or 1.0
    return np.clip(((values - ends[0]) / wide).astype(np.int64), 0, count - 1)
