"""Intervals of statistics other than means, such as F1 or average precision: the BCa bootstrap (Efron 1987).

A statistic is a function that takes rows of weights and returns one value for each row. In each resample the weights
are how often each unit (a text, a query) was drawn. A jackknife over units, or over blocks of units, estimates the
skewness. The interval is approximate: with few units it is too short.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from askew.core.ranking import Floats

RESAMPLES = 2000
_CHUNK = 4_000_000
# The most units or blocks of units that the jackknife leaves out, one at a time.
_MOST_LEFT_OUT = 200
_NORMAL = NormalDist()


def bca_interval(
    statistic: Callable[[Floats], Floats], units: int, seed: int = 0, level: float = 0.95, resamples: int = RESAMPLES
) -> tuple[float, float, float]:
    """The value of a statistic and the ends of its interval. Resamples with an undefined value (NaN) are left out."""
    value = float(statistic(np.ones((1, units)))[0])
    drawn, left_out = _drawn(statistic, units, seed, resamples), _left_out(statistic, units)
    if not len(drawn) or drawn.min() == drawn.max():
        return value, value, value
    below = float((drawn < value).mean() + 0.5 * (drawn == value).mean())
    bias = _NORMAL.inv_cdf(min(max(below, 0.5 / len(drawn)), 1 - 0.5 / len(drawn)))
    away = left_out.mean() - left_out
    spread = float((away**2).sum()) ** 1.5
    skew = float((away**3).sum()) / (6 * spread) if spread > 0 else 0.0
    ends = []
    for share in ((1 - level) / 2, (1 + level) / 2):
        z = bias + _NORMAL.inv_cdf(share)
        ends.append(float(np.quantile(drawn, _NORMAL.cdf(bias + z / (1 - skew * z)))))
    return value, min(ends[0], value), max(ends[1], value)


def _drawn(statistic: Callable[[Floats], Floats], units: int, seed: int, resamples: int) -> Floats:
    rng = np.random.default_rng([seed, units])
    step = max(1, _CHUNK // units)
    parts = []
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        parts.append(statistic(rng.multinomial(units, np.full(units, 1.0 / units), size=size).astype(np.float64)))
    found = np.concatenate(parts)
    return found[~np.isnan(found)]


def _left_out(statistic: Callable[[Floats], Floats], units: int) -> Floats:
    blocks = min(units, _MOST_LEFT_OUT)
    # Each block has units from all positions, because adjacent units may be similar.
    block = np.arange(units) % blocks
    found = statistic((block[None, :] != np.arange(blocks)[:, None]).astype(np.float64))
    return found[~np.isnan(found)]
