"""Means over queries with their intervals, and relative changes of means with theirs.

Where a measure has two finite bounds, the interval inverts a test that holds whatever the distribution
(``askew.statistics.bounded``); else it is studentized, an approximation (``askew.statistics.studentized``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from askew.core.measure import UNBOUNDED, Bounds
from askew.core.ranking import Floats, Ints
from askew.statistics.bounded import BoundedMean, solve
from askew.statistics.studentized import StudentizedMean

LEVEL = 0.95
BOUNDED, STUDENTIZED = "bounded", "studentized"
# How far rounding may carry a value past the bounds of its measure.
_ROUNDING = 1e-9
_MOST_RATIO = 1e6


def mean_test(values: Floats, bounds: Bounds) -> BoundedMean | StudentizedMean:
    """What can be said of the mean of values within bounds.

    Where a value lies outside, the bounds do not hold for this data (a run that ranks a document twice can have an AP
    above 1), and the values are taken as without bounds.
    """
    low, high = bounds
    if not is_bounded(bounds):
        return StudentizedMean(values, low, high)
    allowed = _ROUNDING * max(1.0, abs(low), abs(high))
    if len(values) and (values.min() < low - allowed or values.max() > high + allowed):
        return StudentizedMean(values)
    return BoundedMean(np.clip(values, low, high), low, high)


def is_bounded(bounds: Bounds) -> bool:
    """Whether both bounds are finite."""
    return math.isfinite(bounds[0]) and math.isfinite(bounds[1])


def gain_bounds(bounds: Bounds, to_zero: bool = False) -> Bounds:
    """The bounds of a difference of two values; ``to_zero`` where the distances from zero are compared."""
    low, high = size_bounds(bounds) if to_zero else bounds
    return low - high, high - low


def size_bounds(bounds: Bounds) -> Bounds:
    """The bounds of the distance from zero."""
    low, high = bounds
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


@dataclass(frozen=True)
class Mean:
    """A mean over the n queries that have a value, and its interval; None where none can be given."""

    mean: float
    low: float | None
    high: float | None
    n: int
    method: str = BOUNDED


def mean_and_interval(found: Mapping[str, Any]) -> str:
    """A mean and its interval, kept as JSON values, for a table."""
    ends = found["low"], found["high"]
    return f"{found['mean']:.3f}" + ("" if None in ends else f" [{ends[0]:.3f}, {ends[1]:.3f}]")


def known(value: float) -> float | None:
    """A number, or None where there is none."""
    return value if math.isfinite(value) else None


def mean_with_interval(values: Floats, bounds: Bounds = UNBOUNDED, level: float = LEVEL) -> Mean:
    """The mean of the values that are there, with its interval."""
    present = values[~np.isnan(values)]
    if len(present) == 0:
        return Mean(float("nan"), None, None, 0)
    test, alpha = mean_test(present, bounds), (1 - level) / 2
    method = BOUNDED if isinstance(test, BoundedMean) else STUDENTIZED
    return Mean(test.mean, known(test.lower(alpha)), known(test.upper(alpha)), len(present), method)


def change_interval(
    query: Ints, old: Floats, new: Floats, bounds: Bounds = UNBOUNDED, level: float = LEVEL
) -> tuple[float | None, float | None]:
    """An interval of the relative change of the means in percent, for values of zero or more.

    It holds every ratio r for which "the mean of new - r old is zero" is not rejected (Fieller 1954): by the test for
    bounded values where each query has one pair, by the studentized one where it has several, on their sums. An end is
    None where the data cannot tell it.
    """
    _, unit, sizes = np.unique(query, return_inverse=True, return_counts=True)
    before, after = (np.bincount(unit, values).astype(np.float64) for values in (old, new))
    return sums_interval(before, after, int(sizes.max()) == 1, bounds, level)


def sums_interval(
    before: Floats, after: Floats, single: bool, bounds: Bounds = UNBOUNDED, level: float = LEVEL
) -> tuple[float | None, float | None]:
    """As ``change_interval``, from the sums of each query; ``single``: each query has one pair."""
    if not before.sum() > 0:
        return None, None
    low, high = bounds if single and bounds[0] >= 0 else UNBOUNDED

    def test(ratio: float) -> BoundedMean | StudentizedMean:
        return mean_test(after - ratio * before, (low - ratio * high, high - ratio * low))

    ratio, alpha = math.fsum(after.tolist()) / math.fsum(before.tolist()), (1 - level) / 2
    if math.isnan(test(ratio).p_at_most(0.0)):
        return None, None
    start = solve(lambda r: test(r).p_at_most(0.0), 0.0, ratio, alpha, 0.9 * ratio) if ratio > 0 else 0.0
    end = _upper_ratio(lambda r: test(r).p_at_least(0.0), ratio, alpha)
    return 100 * (start - 1), None if end is None else 100 * (end - 1)


def _upper_ratio(p: Callable[[float], float], ratio: float, alpha: float) -> float | None:
    """The largest ratio that is not rejected; None where any ratio, however large, is not."""
    low, high = ratio, 1.5 * ratio + 0.1
    while p(high) > alpha:
        low, high = high, 2 * high
        if high > _MOST_RATIO:
            return None
    # p falls as the ratio rises: the solver wants it rising.
    return -solve(lambda r: p(-r), -high, -low, alpha, -0.5 * (low + high))
