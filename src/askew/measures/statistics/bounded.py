"""The mean of bounded values: a test and an interval, conjectured to be valid for every distribution in the bounds.

Per-query differences of RR or nDCG are mostly zero with a few large losses. A test that assumes symmetry, or that the
sample shows the spread, then reports a loss as "no loss" far too often: the queries with a loss may not be in the
sample. The test here (Gaffke 2005; as an interval Learned-Miller and Thomas 2019) adds one value at the bound to the n
observed values and gives all n + 1 values random weights that sum to 1:

    p of "the mean is at most m" = P(sum of E_i (x_i - m) + E_0 (low - m) < 0),  E_i independent and exponential.

It assumes only that queries are independent and that the bounds hold. For values of 0 and 1 it is the exact binomial
test (Clopper and Pearson 1934). For other values its level is a conjecture: it is proven in special cases, and
``benchmarks/significance.py`` found no counterexample. A betting test, which that program also has, is proven, but its
intervals are up to 50% wider (docs/decisions/0007-tests-for-bounded-means.md).

The probability is computed without sampling, by integration along the line through the saddle point of the sum's
generating function. There is no seed, and the order of the values does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from askew.core.ranking import Floats


def studentized_ends(values: Floats, alpha: float) -> tuple[float, float]:
    """The interval of the mean of values without bounds, of confidence 1 - 2 alpha; NaN if the values are equal.

    It is that of Student's t, corrected for skewness (Hall 1992), and approximate.
    """
    from scipy.special import stdtrit

    n, mean = len(values), math.fsum(values.tolist()) / len(values)
    away = np.sort(values) - mean
    spread = math.sqrt(float(away @ away) / (n - 1)) if n > 1 else 0.0
    # The spread of equal values is only a rounding error.
    if spread <= 1e-12 * max(1.0, abs(mean)):
        return math.nan, math.nan
    skewness = float((away**3).mean()) / spread**3
    straight = stdtrit(n - 1, np.array([1 - alpha, alpha])) / math.sqrt(n) - skewness / (6 * n)
    # The inverse of Hall's transformation.
    hall = 3 * (np.cbrt(1 + skewness * straight) - 1) / skewness if abs(skewness) >= 1e-6 else straight
    return float(mean - spread * hall[0]), float(mean - spread * hall[1])


# If there are more distinct values than this, adjacent values in the middle are replaced by their mean, which does not
# change the mean of all values. The lowest and the highest values, which matter most, are kept.
_MOST_VALUES, _ENDS = 4096, 1024
_NORMAL = NormalDist()
# Settings of the integration: the first step, the nodes added at a time, the most blocks of nodes and the most halvings
# of the step. Then the size below which a term is ignored, and that below which a change is.
_STEP, _BLOCK, _MOST_BLOCKS, _MOST_HALVINGS = 0.25, 8, 32, 8
_TINY, _SAME = 1e-15, 1e-9
# Nodes times values that are computed at a time: they fit into a processor's cache.
_ELEMENTS = 1 << 16


@dataclass(frozen=True)
class BoundedMean:
    """The mean of values that are always between ``low`` and ``high``."""

    values: Floats
    low: float
    high: float

    @cached_property
    def mean(self) -> float:
        """The mean of the sample."""
        return math.fsum(self.values.tolist()) / len(self.values)

    @cached_property
    def _from_low(self) -> tuple[Floats, Floats]:
        return _counted(self.values - self.low)

    @cached_property
    def _from_high(self) -> tuple[Floats, Floats]:
        return _counted(self.high - self.values)

    def p_at_most(self, m: float) -> float:
        """The p of the null hypothesis that the mean is at most m. It is small if the values suggest a higher mean."""
        return _p(*self._from_low, m - self.low)

    def p_at_least(self, m: float) -> float:
        """The p of the null hypothesis that the mean is at least m. It is small if the values suggest a lower mean."""
        return _p(*self._from_high, self.high - m)

    def lower(self, alpha: float) -> float:
        """The mean is above this with a confidence of 1 - alpha."""
        return min(self.mean, self.low + _bound(*self._from_low, alpha))

    def upper(self, alpha: float) -> float:
        """The mean is below this with a confidence of 1 - alpha."""
        return max(self.mean, self.high - _bound(*self._from_high, alpha))


def _counted(distances: Floats) -> tuple[Floats, Floats]:
    """The distinct distances from a bound and their counts. A distance of 0, the bound itself, is added once."""
    found, counts = np.unique(np.maximum(distances, 0.0), return_counts=True)
    if len(found) > _MOST_VALUES:
        middle = np.arange(len(found) - 2 * _ENDS) * (_MOST_VALUES - 2 * _ENDS) // (len(found) - 2 * _ENDS)
        last = _ENDS + int(middle[-1]) + 1
        cell = np.concatenate([np.arange(_ENDS), _ENDS + middle, last + np.arange(_ENDS)])
        sums, counts = np.bincount(cell, found * counts), np.bincount(cell, counts)
        found = sums / counts
    return np.append(found, 0.0), np.append(counts, 1).astype(np.float64)


def _p(distances: Floats, counts: Floats, m: float) -> float:
    return probability_below_zero(distances - m, counts) if m >= 0 else 0.0


def _bound(distances: Floats, counts: Floats, alpha: float) -> float:
    """The distance of the confidence bound from the value bound: the mean distance at which p is alpha."""
    n = float(counts.sum()) - 1
    mean = float(distances @ counts) / n
    if mean <= 0:
        return 0.0
    variance = max(float(distances * distances @ counts) / n - mean * mean, 0.0)
    error = math.sqrt(variance / n)
    return solve(lambda m: _p(distances, counts, m), 0.0, mean, alpha, max(mean - 2 * error, 0.5 * mean))


def solve(p: Callable[[float], float], low: float, high: float, alpha: float, guess: float) -> float:
    """The point between low and high at which p, which increases, equals alpha.

    Uses secants on normal quantiles of p, which are almost linear, and bisection if a secant leaves the bracket.
    """
    target = _NORMAL.inv_cdf(alpha)

    def height(m: float) -> float:
        return _NORMAL.inv_cdf(min(max(p(m), 1e-300), 1 - _TINY)) - target

    span = high - low
    old, old_height = high, height(high)
    if old_height <= 0:
        return high
    at = guess
    for _ in range(100):
        found = height(at)
        low, high = (low, at) if found > 0 else (at, high)
        if abs(found) < 1e-8 or high - low <= 1e-12 * span:
            break
        slope = (found - old_height) / (at - old) if at != old else 0.0
        old, old_height = at, found
        at = at - found / slope if slope > 0 else low
        if not low < at < high:
            at = 0.5 * (low + high)
    return at


def probability_below_zero(weights: Floats, counts: Floats) -> float:
    """P(sum of weights * E < 0) with independent exponential E. Each weight occurs as often as its count."""
    used = weights != 0
    weights, counts = weights[used], counts[used]
    if not (weights > 0).any():
        return 1.0
    if not (weights < 0).any():
        return 0.0
    # Only the ratios of the weights matter. Without scaling, squares of tiny weights would underflow.
    weights = weights / np.abs(weights).max()
    # The smaller of the two tails is computed, so that a tiny p keeps its digits.
    if float(weights @ counts) < 0:
        return 1.0 - _tail(weights, counts)
    return _tail(-weights, counts)


def _tail(b: Floats, counts: Floats) -> float:
    """P(sum of b * E > 0) if the expected sum is below zero.

    Uses the trapezoid rule in u with t = width * sinh(u), up to the point where terms are negligible. The step is
    halved until the sum no longer changes.
    """
    x, ratio, peak = _saddle(b, counts)
    width = 1.0 / math.sqrt(float(counts @ (ratio * ratio)) + 1.0 / (x * x))

    def heights(u: Any) -> Floats:
        t = width * np.sinh(u)
        squares, imaginary = np.zeros(len(t)), np.zeros(len(t))
        step = max(1, _ELEMENTS // len(t))
        for start in range(0, len(ratio), step):
            turned, some = np.multiply.outer(t, ratio[start : start + step]), counts[start : start + step]
            # log(1 - b (x + i t)) - log(1 - b x), as real and imaginary part: twice as fast as a complex logarithm.
            imaginary += np.arctan(turned) @ some
            squares += np.log1p(np.multiply(turned, turned, out=turned), out=turned) @ some
        return np.asarray(np.exp(-0.5 * squares) * np.cosh(u) * (np.exp(1j * imaginary) * x / (x + 1j * t)).real)

    terms = [0.5 * heights(np.zeros(1))]
    while np.abs(terms[-1]).max() > _TINY and len(terms) < _MOST_BLOCKS:
        start = _STEP * (1 + _BLOCK * (len(terms) - 1))
        terms.append(heights(start + _STEP * np.arange(_BLOCK)))
    end, step = _STEP * _BLOCK * (len(terms) - 1), _STEP
    total = float(np.concatenate(terms).sum())
    for _ in range(_MOST_HALVINGS):
        between = float(heights(step * (0.5 + np.arange(round(end / step)))).sum())
        before, step, total = 2 * total, 0.5 * step, total + between
        if abs(before - total) < _SAME * abs(total):
            break
    return min(max(math.exp(peak) * width * step * total / math.pi, 0.0), 1.0)


def _saddle(b: Floats, counts: Floats) -> tuple[float, Floats, float]:
    """The minimum point x of exp(K(x)) / x between 0 and the first pole, b / (1 - x b), and log(exp(K(x)) / x)."""
    left, right = 0.0, 1.0 / float(b.max())
    x = min(0.5 * right, 1.0 / math.sqrt(float(counts @ (b * b))))
    for _ in range(200):
        ratio = b / (1.0 - x * b)
        slope = float(counts @ ratio) - 1.0 / x
        left, right = (left, x) if slope > 0 else (x, right)
        step = x - slope / (float(counts @ (ratio * ratio)) + 1.0 / (x * x))
        step = step if left < step < right else 0.5 * (left + right)
        done = abs(step - x) <= 1e-9 * x
        x = step
        if done:
            break
    return x, b / (1.0 - x * b), -float(counts @ np.log1p(-x * b)) - math.log(x)
