"""The points of the figure of effectiveness and lean: sampled, with a sentence that says how many there are."""

from __future__ import annotations

import numpy as np
import polars as pl

from askew.core.measure import gain_column
from askew.core.ranking import Ints
from askew.publish.page.charts import Points
from askew.selectors.parts import PairParts

NOT_CHOSEN = "not chosen"
# So many points of each kind are drawn; more would hide one another and make the page heavy.
MOST_POINTS = 1200


def clouds_of(pairs: PairParts, main: str, effectiveness: str, lean: str, seed: int) -> tuple[list[Points], str]:
    """The points of both kinds, sampled, and a sentence that says how many there are."""
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
        said.append(f"{amount} pairs {name if name == NOT_CHOSEN else f'of {name}'}")
        lost -= n
    unscored = f" {lost:,} pairs have no score on one of the two." if lost else ""
    return clouds, f"Drawn: {' and '.join(said)}{lot}.{unscored}"


def _rows_at(pairs: PairParts, columns: list[str], places: Ints) -> pl.DataFrame:
    """Some rows by their places, which are in order."""
    found, start = [], 0
    for frame in pairs.frames(columns):
        first, last = np.searchsorted(places, [start, start + frame.height])
        found.append(frame[places[first:last] - start])
        start += frame.height
    return pl.concat(found)


def thinned(n: int, most: int, seed: int = 0) -> Ints:
    """Which of n things are shown: all of them, or so many sampled, in their order."""
    if n <= most:
        return np.arange(n)
    # The smallest type that holds them: there may be many.
    places = np.arange(n, dtype=np.int32 if n < 1 << 31 else np.int64)
    np.random.default_rng([seed, n, 3]).shuffle(places)
    return np.sort(places[:most]).astype(np.int64)
