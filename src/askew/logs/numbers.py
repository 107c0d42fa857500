"""Shares, medians, ratios and correlations of events, with 95% intervals that know that users repeat themselves.

Events of one user are alike. So an interval never treats them as independent: the spread of the sums over users takes
the place of the spread of the events (the design effect of surveys; it is never taken for less than 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from askew.core.shares import wilson

Floats = npt.NDArray[np.float64]
Z = 1.959963984540054
_TINY = 1e-300
_NEAR = 1e-14
_LEAST_FOR_MEDIAN = 6


@dataclass(frozen=True)
class Estimate:
    """A number from n events, with its interval. NaN where there is nothing to say."""

    value: float
    low: float
    high: float
    n: int


NOTHING = Estimate(math.nan, math.nan, math.nan, 0)


def total(values: Any) -> float:
    """A sum that does not depend on the order: users come in the order of their numbers, which differ in every run."""
    return float(np.sort(values).sum())


def share(hits: Any, users: Any) -> Estimate:
    """The share of events that are hits: Wilson's interval on the effective number of events."""
    n = len(hits)
    if n == 0:
        return NOTHING
    x = np.asarray(hits, np.float64)
    p = float(x.mean())
    sums = np.bincount(users, weights=x - p)
    counts = np.bincount(users)
    return share_of(p, n, total(sums[counts > 0] ** 2), int((counts > 0).sum()))


def share_of(p: float, n: int, squares: float, users: int) -> Estimate:
    """A share from what is left of its events: their number, and the sum over users of squared distances from it."""
    worth = effective(p, n, squares, users)
    low, high = wilson(p * worth, worth)  # what events are worth need not be a whole number
    return Estimate(p, low, high, n)


def effective(p: float, n: int, squares: float, users: int) -> float:
    """How many independent events the events of these users are worth."""
    if users < 2:
        return 1.0
    plain = n * p * (1 - p)
    if plain <= 0:
        # All alike: nothing is known of how alike a user's events are, so a user counts once.
        return float(users)
    return n / max(1.0, squares * users / (users - 1) / plain)


def median(values: Any, users: Any) -> Estimate:
    """The median, with Woodruff's interval (1952): that of the share below it, read off the values.

    Of fewer than six users no interval holds the median with 95%: all may lie on one side of it.
    """
    n = len(values)
    if n == 0:
        return NOTHING
    x = np.asarray(values, np.float64)
    middle = float(np.median(x))
    if len(np.unique(users)) < _LEAST_FOR_MEDIAN:
        return Estimate(middle, math.nan, math.nan, n)
    below = share(x < middle, users)
    at_most = share(x <= middle, users)
    # Of many equal values the middle share may lie anywhere among them.
    low, high = 0.5 - (below.value - below.low), 0.5 + (at_most.high - at_most.value)
    edges = np.quantile(x, [min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)])
    return Estimate(middle, min(float(edges[0]), middle), max(float(edges[1]), middle), n)


def mean(values: Any, users: Any) -> Estimate:
    """The mean, with an interval from the sums over users."""
    x = np.asarray(values, np.float64)
    if not len(x):
        return NOTHING
    m = total(x) / len(x)
    spread = _spread(np.bincount(users, weights=x - m), users)
    half = Z * math.sqrt(spread) / len(x) if math.isfinite(spread) else math.nan
    return Estimate(m, m - half, m + half, len(x))


def ratio(before: Any, after: Any, users: Any) -> Estimate:
    """The mean after over the mean before, of the same events; the interval is that of its logarithm."""
    x, y = np.asarray(before, np.float64), np.asarray(after, np.float64)
    first, second = total(x), total(y)
    if not len(x) or first <= 0 or second <= 0:
        return Estimate(math.nan, math.nan, math.nan, len(x))
    pull = np.bincount(users, weights=y / second - x / first)
    return ratio_of(second / first, _spread(pull, users), len(x))


def ratio_of(value: float, variance: float, n: int) -> Estimate:
    """A ratio whose logarithm has this variance; one user alone tells nothing of it."""
    if not math.isfinite(variance):
        return Estimate(value, math.nan, math.nan, n)
    half = Z * math.sqrt(variance)
    return Estimate(value, value * math.exp(-half), value * math.exp(half), n)


def _spread(sums: Any, users: Any) -> float:
    """The variance of a total, from its parts by user."""
    count = int((np.bincount(users) > 0).sum())
    return math.inf if count < 2 else total(sums**2) * count / (count - 1)


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation: p by Student's t with n - 2 degrees, the interval as Bonett and Wright (2000)."""

    rho: float
    low: float
    high: float
    p: float
    n: int


def spearman(x: Any, y: Any) -> Correlation:
    """How far two columns agree in rank; equal values share the mean of their ranks. NaN for constants or n < 3."""
    a, b = average_ranks(np.asarray(x, np.float64)), average_ranks(np.asarray(y, np.float64))
    n = len(a)
    if n < 3 or a.std() == 0 or b.std() == 0:
        return Correlation(math.nan, math.nan, math.nan, math.nan, n)
    rho = float(np.clip(np.corrcoef(a, b)[0, 1], -1.0, 1.0))
    if abs(rho) > 1 - _NEAR:
        # Student's t would be infinite.
        return Correlation(math.copysign(1.0, rho), math.nan, math.nan, _whole_agreement(a), n)
    p = student_p(rho * math.sqrt((n - 2) / (1 - rho * rho)), n - 2)
    half = Z * math.sqrt((1 + rho * rho / 2) / (n - 3)) if n > 3 else math.inf
    z = math.atanh(rho)
    return Correlation(rho, math.tanh(z - half), math.tanh(z + half), p, n)


def _whole_agreement(ranks: Floats) -> float:
    """The chance that a column in any order agrees, or disagrees, wholly with these ranks; equal values may swap."""
    n = len(ranks)
    ties = sum(math.lgamma(count + 1) for count in np.unique(ranks, return_counts=True)[1].tolist())
    even = np.array_equal(np.sort(ranks), np.sort(n + 1 - ranks))
    return min(1.0, (2 if even else 1) * math.exp(ties - math.lgamma(n + 1)))


def average_ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2.0)[inverse]


def student_p(t: float, degrees: int) -> float:
    """The chance of a t at least as far from zero."""
    return float(beta_share(degrees / 2.0, 0.5, degrees / (degrees + t * t)))


def coin_p(hits: Any, n: Any) -> Floats:
    """Two-tailed binomial test against one half, for many counts at once."""
    n = np.asarray(n, np.float64)
    fewer = np.minimum(np.asarray(hits, np.float64), n - np.asarray(hits, np.float64))
    # P(X <= k) of a fair coin is a share of the beta function.
    tail = beta_share(n - fewer, fewer + 1.0, np.full(n.shape, 0.5))
    return np.minimum(1.0, 2.0 * np.asarray(tail))


def beta_share(a: Any, b: Any, x: Any) -> Floats:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction."""
    a, b, x = np.broadcast_arrays(*(np.atleast_1d(np.asarray(v, np.float64)) for v in (a, b, x)))
    swap = x > (a + 1) / (a + b + 2)
    p, q, at = np.where(swap, b, a), np.where(swap, a, b), np.where(swap, 1 - x, x)
    logs = _log_gamma(p + q) - _log_gamma(p) - _log_gamma(q)
    with np.errstate(divide="ignore"):
        front = np.exp(logs + p * np.log(at) + q * np.log1p(-at)) / p
    value = np.where(at <= 0, 0.0, front * _fraction(p, q, at))
    return np.where(swap, 1 - value, value)[0] if value.shape == (1,) else np.where(swap, 1 - value, value)


def _fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """Lentz's way through the continued fraction of the beta function."""
    c = np.ones_like(x)
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / np.where(np.abs(d) < _TINY, _TINY, d)
    value = d.copy()
    for m in range(1, 20_000):
        for top in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + top * d
            d = 1 / np.where(np.abs(d) < _TINY, _TINY, d)
            c = 1 + top / c
            c = np.where(np.abs(c) < _TINY, _TINY, c)
            value = value * c * d
        if np.all(np.abs(c * d - 1) < _NEAR):
            break
    return value


def _log_gamma(values: Floats) -> Floats:
    return np.array([math.lgamma(v) for v in values.ravel().tolist()]).reshape(values.shape)
