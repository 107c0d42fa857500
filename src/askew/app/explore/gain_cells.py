"""Bin the gains of pairs in lean and effectiveness into cells of a chart, for any number of pairs.

Each cell has the mean gains and the number of its pairs. Gains, losses and unchanged values are in different cells,
even if the differences are small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from askew.app.explore.pairs import ShownPairs, Wanted
from askew.core.measure import gain_column
from askew.core.outcome import Signs, signs
from askew.core.ranking import Floats, Ints

# The numbers of cells along lean and effectiveness; two more on each axis, because signs next to zero are separate.
ACROSS, UPRIGHT = 46, 30
MOST_CELLS = (ACROSS + 2) * (UPRIGHT + 2)
Ends = tuple[float, float]


@dataclass(frozen=True)
class PairCells:
    """Cells of pairs: mean gains, numbers of pairs, and the signs of the gains by the tolerance of the selector."""

    x: Floats
    y: Floats
    counts: Ints
    x_signs: Signs
    y_signs: Signs


@dataclass(frozen=True)
class GainCells:
    """The cells of the matching pairs (``fitting``) and of all pairs (``every``); ``span`` has the ends of the axes.

    ``span`` is that of all pairs, so that the axes do not depend on the filters. ``lean`` (horizontal) and
    ``effectiveness`` (vertical) are the measures. ``unknown`` is the number of matching pairs without a gain.
    """

    lean: str
    effectiveness: str
    fitting: PairCells
    every: PairCells
    span: tuple[Ends, Ends]
    unknown: int


def gain_cells(table: ShownPairs, wanted: Wanted) -> GainCells | None:
    """Bin the pairs that match the filters, ignoring bounds on gains.

    None if the selector does not have measures of both effectiveness and lean.
    """
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
    """Return the gains of the pairs that have both, and the number of the other pairs."""
    x, y = (frame.to_series(side).to_numpy() for side in (0, 1))
    known = ~(np.isnan(x) | np.isnan(y))
    return (x[known], y[known]), int((~known).sum())


def _ends(values: Floats) -> Ends:
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)


def _cells(x: Floats, y: Floats, span: tuple[Ends, Ends], tolerance: float) -> PairCells:
    # One number for each cell: its bin and sign on the horizontal axis, then on the vertical axis.
    keys = 3 * UPRIGHT * _places(x, span[0], ACROSS, tolerance) + _places(y, span[1], UPRIGHT, tolerance)
    every = np.bincount(keys, minlength=9 * ACROSS * UPRIGHT)
    found = np.flatnonzero(every)
    counts = every[found]
    means = [np.bincount(keys, values, len(every))[found] / counts for values in (x, y)]
    x_signs, y_signs = found // (3 * UPRIGHT) % 3 - 1, found % 3 - 1
    return PairCells(means[0], means[1], counts, x_signs.astype(np.int8), y_signs.astype(np.int8))


def _places(values: Floats, ends: Ends, count: int, tolerance: float) -> Ints:
    """Return the bin of each value; each of the ``count`` equal bins is split by sign into three."""
    return 3 * _bins(values, ends, count) + signs(values, tolerance).astype(np.int64) + 1


def _bins(values: Floats, ends: Ends, count: int) -> Ints:
    wide = (ends[1] - ends[0]) / count or 1.0
    return np.clip(((values - ends[0]) / wide).astype(np.int64), 0, count - 1)
