"""The points of the figure of effectiveness and lean: sampled, with a sentence that says how many there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from askew.core.measure import gain_column
from askew.publish.page.charts import Points

NOT_CHOSEN = "not chosen"
# So many points of each kind are drawn; more would hide one another and make the page heavy.
MOST_POINTS = 1200


def clouds_of(pairs: pl.DataFrame, main: str, effectiveness: str, lean: str, seed: int) -> tuple[list[Points], str]:
    """The points of both kinds, sampled, and a sentence that says how many there are."""
    gains = [gain_column(lean), gain_column(effectiveness)]
    known = pairs.select(main, *gains).with_columns(pl.col(gains).fill_nan(None)).drop_nulls()
    clouds, said, lot = [], [], ""
    for name, part in ((NOT_CHOSEN, known.filter(~pl.col(main))), (main, known.filter(main))):
        drawn = thinned(len(part), MOST_POINTS, seed)
        x, y = (part.get_column(one).to_numpy()[drawn] for one in gains)
        clouds.append(Points(name, x, y))
        amount = f"all {len(part):,}"
        if len(drawn) < len(part):
            amount, lot = f"{len(drawn):,} of {len(part):,}", f", sampled with seed {seed}"
        said.append(f"{amount} pairs {name if name == NOT_CHOSEN else f'of {name}'}")
    lost = len(pairs) - len(known)
    unscored = f" {lost:,} pairs have no score on one of the two." if lost else ""
    return clouds, f"Drawn: {' and '.join(said)}{lot}.{unscored}"


def thinned(n: int, most: int, seed: int = 0) -> Any:
    """Which of n things are shown: all of them, or so many sampled, in their order."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng([seed, n, 3]).permutation(n)[:most])
