"""Percentile bootstrap intervals of means over queries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from askew.core.ranking import Floats

RESAMPLES = 2000
# Beyond so many queries, whole random blocks of them are resampled instead of single ones.
_MOST_UNITS = 5000


@dataclass(frozen=True)
class Mean:
    """A mean over the n queries that have a value, and its interval."""

    mean: float
    low: float
    high: float
    n: int


def mean_with_interval(values: Floats, seed: int = 0, level: float = 0.95) -> Mean:
    """The mean of the values that are there, with a bootstrap interval. The same seed gives the same interval."""
    present = values[~np.isnan(values)]
    if len(present) == 0:
        return Mean(float("nan"), float("nan"), float("nan"), 0)
    low, high = np.quantile(bootstrap_means(present, seed), [(1 - level) / 2, (1 + level) / 2])
    mean = float(present.mean())
    # Rounding in the last place must not put a constant outside its own interval.
    return Mean(mean, min(float(low), mean), max(float(high), mean), len(present))


def bootstrap_means(values: Floats, seed: int = 0) -> Floats:
    """The means of resampled queries."""
    sums, sizes = units(values, seed)
    weights = _weights(len(sums), seed)
    return np.asarray((weights @ sums) / (weights @ sizes))


def units(values: Floats, seed: int) -> tuple[Floats, Floats]:
    """What is resampled: the queries, or where there are very many, the sums of random blocks; and their sizes."""
    if len(values) <= _MOST_UNITS:
        return values, np.ones(len(values))
    shuffled = np.random.default_rng([seed, 1]).permutation(values)
    cuts = np.linspace(0, len(values), _MOST_UNITS + 1).astype(np.int64)[:-1]
    return np.add.reduceat(shuffled, cuts), np.diff(np.append(cuts, len(values))).astype(np.float64)


@lru_cache(maxsize=4)
def _weights(n: int, seed: int) -> Any:
    """How often each of n units is drawn in each resample; shared by all measures of the same n."""
    draws = np.random.default_rng([seed, n]).multinomial(n, np.full(n, 1.0 / n), size=RESAMPLES)
    return draws.astype(np.float64)
