"""Confidence intervals of means over queries, and of relative changes of means.

If a measure has two finite bounds, the interval of a mean inverts a test that is conjectured to be valid for every
distribution (``askew.measures.statistics.bounded``). Otherwise it is studentized, an approximation. The interval of a
relative change inverts the randomization test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from askew.core.errors import ConfigError
from askew.core.measure import UNBOUNDED, Bounds
from askew.core.ranking import Floats, Ints
from askew.measures.statistics.bounded import BoundedMean, studentized_ends
from askew.measures.statistics.randomization import RandomSets

# Shares of classes from a classifier, corrected for its known errors.

_STEPS = 300
# Half an item is added to each count, because a confusion that was never observed is still possible.
_PRIOR = 0.5


def corrected(found: Floats, confusion: Floats) -> Floats:
    """Correct the amounts that a classifier found for each class (last axis). Their sum does not change.

    ``confusion[i, j]`` is the number of labeled items of class i that were classified as class j. Each row of ``found``
    may have its own confusion matrix (rows x classes x classes).
    """
    likely = confusion + _PRIOR
    likely = likely / likely.sum(axis=-1, keepdims=True)
    total = found.sum(axis=-1, keepdims=True)
    observed = np.divide(found, total, out=np.full(found.shape, 1.0 / found.shape[-1]), where=total > 0)
    shares = np.full(observed.shape, 1.0 / observed.shape[-1])
    for _ in range(_STEPS):
        expected = np.einsum("...i,...ij->...j", shares, likely)
        shares = shares * np.einsum("...j,...ij->...i", observed / np.maximum(expected, 1e-300), likely)
    return np.asarray(shares * total)


def drawn_confusions(confusion: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Random confusion matrices, as other labeled items of the same number might give (draws x classes x classes)."""
    found = np.empty((draws, *confusion.shape))
    for row, counts in enumerate(confusion):
        found[:, row] = rng.dirichlet(counts + _PRIOR, size=draws) * counts.sum()
    return found


# Confidence intervals of shares.


def wilson(count: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval (1927) of the share ``count / n``. It is within 0 and 1; for ``n = 0`` both ends are NaN."""
    if not 0 <= count <= n:
        raise ConfigError(f"share: expected a count from 0 to {n}, found {count}")
    if not n:
        return math.nan, math.nan
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, spread = count / n, z * z / n
    middle = (share + spread / 2) / (1 + spread)
    half = math.sqrt(share * (1 - share) * spread + spread * spread / 4) / (1 + spread)
    # Without these two cases, rounding could put a share of 0 or 1 outside its interval.
    return (middle - half if count else 0.0), (middle + half if count < n else 1.0)


# Intervals of statistics other than means, such as F1 or average precision: the BCa bootstrap (Efron 1987).

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
    rng = np.random.default_rng([seed, units])
    step = max(1, _CHUNK // units)
    parts = []
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        parts.append(statistic(rng.multinomial(units, np.full(units, 1.0 / units), size=size).astype(np.float64)))
    drawn = np.concatenate(parts)
    drawn = drawn[~np.isnan(drawn)]
    # Each block has units from all positions, because adjacent units may be similar.
    blocks = min(units, _MOST_LEFT_OUT)
    block = np.arange(units) % blocks
    left_out = statistic((block[None, :] != np.arange(blocks)[:, None]).astype(np.float64))
    left_out = left_out[~np.isnan(left_out)]
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


LEVEL = 0.95
BOUNDED, STUDENTIZED = "bounded", "studentized"
# How far rounding may move a value beyond the bounds of its measure.
_ROUNDING = 1e-9
# Scores with a smaller difference are equal: such a difference comes from rounding in a sum.
SAME = 1e-12


def bounded_mean(values: Floats, bounds: Bounds) -> BoundedMean | None:
    """The test for bounded means; None if a bound is infinite.

    If a value is outside the bounds, the bounds do not hold for this data (a run that ranks a document twice can have
    an AP above 1), and there is no such test either.
    """
    low, high = bounds
    allowed = _ROUNDING * max(1.0, abs(low), abs(high))
    if not is_bounded(bounds) or (len(values) and (values.min() < low - allowed or values.max() > high + allowed)):
        return None
    return BoundedMean(np.clip(values, low, high), low, high)


def is_bounded(bounds: Bounds) -> bool:
    """Whether both bounds are finite."""
    return math.isfinite(bounds[0]) and math.isfinite(bounds[1])


def gain_bounds(bounds: Bounds, to_zero: bool = False) -> Bounds:
    """The bounds of a difference of two values, or with ``to_zero`` of two distances from zero."""
    low, high = size_bounds(bounds) if to_zero else bounds
    return low - high, high - low


def size_bounds(bounds: Bounds) -> Bounds:
    """The bounds of a value's distance from zero."""
    low, high = bounds
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


@dataclass(frozen=True)
class Mean:
    """A mean over the n queries that have a value, and its interval. An end is None if it cannot be computed."""

    mean: float
    low: float | None
    high: float | None
    n: int
    method: str = BOUNDED


def mean_and_interval(found: Mapping[str, Any]) -> str:
    """The text of a mean and its interval for a table, from the fields mean, low and high of ``found``."""
    ends = found["low"], found["high"]
    return f"{found['mean']:.3f}" + ("" if None in ends else f" [{ends[0]:.3f}, {ends[1]:.3f}]")


def known(value: float) -> float | None:
    """The value, or None if it is not finite."""
    return value if math.isfinite(value) else None


def mean_with_interval(values: Floats, bounds: Bounds = UNBOUNDED, level: float = LEVEL) -> Mean:
    """The mean of the values that are not NaN, with its interval."""
    present = values[~np.isnan(values)]
    if len(present) == 0:
        return Mean(float("nan"), None, None, 0)
    alpha, test = (1 - level) / 2, bounded_mean(present, bounds)
    if test is not None:
        return Mean(test.mean, test.lower(alpha), test.upper(alpha), len(present))
    least, most = UNBOUNDED if is_bounded(bounds) else bounds
    low, high = studentized_ends(present, alpha)
    mean = math.fsum(present.tolist()) / len(present)
    return Mean(mean, known(max(low, least)), known(min(high, most)), len(present), STUDENTIZED)


def change_interval(query: Ints, old: Floats, new: Floats) -> tuple[float | None, float | None]:
    """An interval of the relative change of the means in percent, for values of zero or more.

    It contains every ratio r for which the randomization test does not reject "the mean of new - r old is zero"
    (Fieller 1954); the pairs of a query swap sides together. An end is None if the data do not determine it.
    """
    _, unit = np.unique(query, return_inverse=True)
    before, after = (np.bincount(unit, values).astype(np.float64) for values in (old, new))
    return sums_interval(before, after)


def sums_interval(before: Floats, after: Floats) -> tuple[float | None, float | None]:
    """Like ``change_interval``, but from the sums of each query."""
    apart = np.abs(after * before.sum() - before * after.sum()).max(initial=0.0)
    if not before.sum() > 0 or before.min() < 0 or apart <= _ROUNDING * before.max() * np.abs(after).sum():
        return None, None
    changes = np.where(np.abs(after - before) < SAME, 0.0, after - before)
    low, high = RandomSets(changes, before).ends(1 - LEVEL)
    return 100 * (max(low, -1.0) if after.min() >= 0 else low), known(100 * high)
