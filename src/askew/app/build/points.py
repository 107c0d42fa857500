"""Sample the points of the chart of effectiveness against lean."""

from __future__ import annotations

import numpy as np
import polars as pl

from askew.core.measure import gain_column
from askew.core.ranking import Ints
from askew.publish.page.charts import Points
from askew.selectors.parts import PairParts

NOT_CHOSEN = "not chosen"
# The most points of each kind that are drawn; more would overlap and make the page large.
MOST_POINTS = 1200


def clouds_of(pairs: PairParts, main: str, effectiveness: str, lean: str, seed: int) -> tuple[list[Points], str]:
    """Return sampled points of chosen and other pairs, and a sentence that states their numbers."""
    gains = [gain_column(lean), gain_column(effectiveness)]
    known = pairs.filter(pl.all_horizontal(pl.col(one).fill_nan(None).is_not_null() for one in gains))
    clouds, said, lot, lost = [], [], "", pairs.height
    for name, part in ((NOT_CHOSEN, known.filter(~pl.col(main))), (main, known.filter(main))):
        n = part.height
        drawn = thinned(n, MOST_POINTS, seed)
        points = _rows_at(part, gains, drawn)
        x, y = (points.get_column(one).to_numpy() for one in gains)
        clouds.append(Points(name, x, y))
        amount = f"all {n:,}"
        if len(drawn) < n:
            amount, lot = f"{len(drawn):,} of {n:,}", f", sampled with seed {seed}"
        said.append(
            f"{amount} pairs that were not chosen" if name == NOT_CHOSEN else f"{amount} pairs of the subset {name!r}"
        )
        lost -= n
    unscored = f" {lost:,} pairs have no score on one of the two measures." if lost else ""
    return clouds, f"The figure shows {' and '.join(said)}{lot}.{unscored}"


def _rows_at(pairs: PairParts, columns: list[str], places: Ints) -> pl.DataFrame:
    """Return the rows at the given positions, which must be sorted."""
    found, start = [], 0
    for frame in pairs.frames(columns):
        first, last = np.searchsorted(places, [start, start + frame.height])
        found.append(frame[places[first:last] - start])
        start += frame.height
    return pl.concat(found)


def thinned(n: int, most: int, seed: int = 0) -> Ints:
    """Return the positions of all n items, or of a sample of ``most``, in order."""
    if n <= most:
        return np.arange(n)
    # Without a permutation of all positions, which would take memory: there may be many.
    return np.sort(np.random.default_rng([seed, n, 3]).choice(n, most, replace=False, shuffle=False))
