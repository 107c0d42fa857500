"""Shares, medians, ratios and correlations of events, with 95% intervals that account for repeated users.

Events of one user are similar, so intervals do not treat them as independent. The variance is computed from sums per
user and not from single events (the design effect of survey statistics, with a lower limit of 1).
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from askew.core.lexicon import load_lexicon
from askew.logs.definition import LOG_DATA, canonical
from askew.measures.statistics.intervals import wilson

# Decide which texts of a log may be shown.

RARE, NAME, SPECULATION = "few users", "a person's name", "speculation about identity"


@dataclass(frozen=True)
class Privacy:
    """A text is shown if at least ``least_users`` users typed it and it contains no name or phrase of the lists.

    ``guesses`` says whether texts with phrases that speculate about a person are withheld. Only some groups have such
    phrases (``speculation``).
    """

    least_users: int
    guesses: bool = True

    def reasons(self, texts: pl.Series, users: pl.Series) -> pl.Series:
        """Why each text is withheld; null if it may be shown. "Few users" comes before the other reasons."""
        # A name also matches next to punctuation: mary's, mary-ann, @mary.
        words = pl.col("text").str.extract_all(r"[\p{L}\p{M}]+")
        named = words.list.eval(pl.element().is_in(list(first_names()))).list.any()
        guessed = speculates(texts) if self.guesses else pl.repeat(False, len(texts), eager=True)
        reason = (
            pl.when(pl.col("users") < self.least_users).then(pl.lit(RARE))
            .when(named).then(pl.lit(NAME))
            .when("guessed").then(pl.lit(SPECULATION))
        )  # fmt: skip
        return pl.DataFrame({"text": texts, "users": users, "guessed": guessed}).select(reason=reason)["reason"]

    def shown(self, frame: pl.DataFrame, columns: Sequence[str], what: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows that may be shown, and the number of withheld rows by reason.

        A row is withheld if the text of any of ``columns`` is withheld. The column ``users`` is the number of users of
        a row. The optional column ``guessed`` marks rows that speculate about a person; it is dropped.
        """
        reasons: dict[str, Any] = {"few": pl.when(pl.col("users") < self.least_users).then(pl.lit(RARE))}
        reasons |= {f"by_{name}": self.reasons(frame[name], frame["users"]) for name in columns}
        if "guessed" in frame.columns:
            reasons["spoken"] = pl.when("guessed").then(pl.lit(SPECULATION))
        reason = frame.select(**reasons).select(reason=pl.coalesce(pl.all()))["reason"]
        return frame.drop("guessed", strict=False).filter(reason.is_null()), self.counted(reason, what)

    @staticmethod
    def counted(reasons: pl.Series, what: str) -> pl.DataFrame:
        """The number of withheld texts by reason."""
        counts = pl.DataFrame({"reason": reasons}).drop_nulls().group_by("reason").agg(n=pl.len().cast(pl.Int64))
        return counts.sort("reason").select(pl.lit(what).alias("what"), pl.col("reason").cast(pl.String), "n")

    @staticmethod
    def left_out(n: int, what: str, reason: str) -> pl.DataFrame:
        """The table of ``counted`` for a given number of texts that were withheld for one reason."""
        return pl.DataFrame({"what": [what], "reason": [reason], "n": [n]}).filter(pl.col("n") > 0)


def speculates(texts: pl.Series) -> pl.Series:
    """Whether each text contains a phrase that speculates about a person's identity."""
    padded = pl.DataFrame({"text": texts}).select(pl.format(" {} ", pl.col("text").fill_null("")).alias("text"))
    return padded["text"].str.contains_any([f" {phrase} " for phrase in speculation()[0]])


@lru_cache(maxsize=1)
def first_names() -> tuple[str, ...]:
    """First names: a text that contains one is withheld."""
    names = load_lexicon(LOG_DATA.parent / "names" / "en.toml")
    return tuple(sorted({canonical(name) for listed in names.groups.values() for name in listed}))


@lru_cache(maxsize=1)
def speculation() -> tuple[tuple[str, ...], frozenset[str]]:
    """Phrases that speculate about a person's identity, and the groups that they are about."""
    data = tomllib.loads((LOG_DATA / "speculation-en.toml").read_text(encoding="utf-8"))
    return tuple(sorted({canonical(phrase) for phrase in data["phrases"]})), frozenset(data["groups"])


Z = 1.959963984540054
_NEAR = 1e-14
_LEAST_FOR_MEDIAN = 6


@dataclass(frozen=True)
class Estimate:
    """An estimate from n events, with its 95% interval. NaN where it is not defined."""

    value: float
    low: float
    high: float
    n: int

    def cells(self, name: str, own: bool = False) -> dict[str, Any]:
        """The value and its interval as columns ``name``, ``low``, ``high`` (``own``: ``name_low``, ``name_high``)."""
        before = f"{name}_" if own else ""
        return {name: self.value, f"{before}low": self.low, f"{before}high": self.high}


NOTHING = Estimate(math.nan, math.nan, math.nan, 0)


def total(values: Any) -> float:
    """A sum that does not depend on the order of the values, because the order of users differs between runs."""
    return float(np.sort(values).sum())


def share(hits: Any, users: Any) -> Estimate:
    """The share of events that are marked in ``hits``, with Wilson's interval for the effective number of events."""
    n = len(hits)
    if n == 0:
        return NOTHING
    x = np.asarray(hits, np.float64)
    p = float(x.mean())
    sums = np.bincount(users, weights=x - p)
    counts = np.bincount(users)
    return share_of(p, n, total(sums[counts > 0] ** 2), int((counts > 0).sum()))


def share_of(p: float, n: int, squares: float, users: int) -> Estimate:
    """A share from summary statistics. ``squares`` is the sum over users of the squared sum of deviations from p."""
    worth = effective(p, n, squares, users)
    low, high = wilson(p * worth, worth)  # the effective number need not be a whole number
    return Estimate(p, low, high, n)


def effective(p: float, n: int, squares: float, users: int) -> float:
    """The effective number of independent events."""
    if users < 2:
        return 1.0
    plain = n * p * (1 - p)
    if plain <= 0:
        # All events are equal, so the similarity within users cannot be estimated. Each user counts once.
        return float(users)
    return n / max(1.0, squares * users / (users - 1) / plain)


def median(values: Any, users: Any) -> Estimate:
    """The median with Woodruff's interval (1952): quantiles at the ends of the interval of the share below the median.

    With fewer than six users there is no 95% interval, because all of them may be on one side of the median.
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
    # With ties at the median, the share 0.5 can be anywhere among the equal values.
    low, high = 0.5 - (below.value - below.low), 0.5 + (at_most.high - at_most.value)
    edges = np.quantile(x, [min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)])
    return Estimate(middle, min(float(edges[0]), middle), max(float(edges[1]), middle), n)


def mean(values: Any, users: Any) -> Estimate:
    """The mean, with an interval from sums per user."""
    x = np.asarray(values, np.float64)
    if not len(x):
        return NOTHING
    m = total(x) / len(x)
    spread = _spread(np.bincount(users, weights=x - m), users)
    half = Z * math.sqrt(spread) / len(x) if math.isfinite(spread) else math.nan
    return Estimate(m, m - half, m + half, len(x))


def ratio(before: Any, after: Any, users: Any) -> Estimate:
    """The mean after divided by the mean before, over the same events. The interval is computed on the log scale."""
    x, y = np.asarray(before, np.float64), np.asarray(after, np.float64)
    first, second = total(x), total(y)
    if not len(x) or first <= 0 or second <= 0:
        return Estimate(math.nan, math.nan, math.nan, len(x))
    pull = np.bincount(users, weights=y / second - x / first)
    return ratio_of(second / first, _spread(pull, users), len(x))


def ratio_of(value: float, variance: float, n: int) -> Estimate:
    """A ratio with an interval from the variance of its logarithm; no interval if the variance is not finite."""
    if not math.isfinite(variance):
        return Estimate(value, math.nan, math.nan, n)
    half = Z * math.sqrt(variance)
    return Estimate(value, value * math.exp(-half), value * math.exp(half), n)


def _spread(sums: Any, users: Any) -> float:
    """The variance of a total, from its sums per user; infinite for fewer than two users."""
    count = int((np.bincount(users) > 0).sum())
    return math.inf if count < 2 else total(sums**2) * count / (count - 1)


@dataclass(frozen=True)
class Correlation:
    """Spearman's correlation: p by Student's t (n - 2 degrees of freedom), interval of Bonett and Wright (2000)."""

    n: int
    rho: float
    low: float
    high: float
    p: float


def spearman(x: Any, y: Any) -> Correlation:
    """Spearman's correlation of two columns; ties get the mean rank. NaN for constant columns or n < 3."""
    a, b = (pl.Series(np.asarray(side, np.float64)).rank().to_numpy() for side in (x, y))
    n = len(a)
    if n < 3 or a.std() == 0 or b.std() == 0:
        return Correlation(n, math.nan, math.nan, math.nan, math.nan)
    rho = float(np.clip(np.corrcoef(a, b)[0, 1], -1.0, 1.0))
    if abs(rho) > 1 - _NEAR:
        # Student's t would be infinite. p is the probability that a random order, with the same ties, agrees as much.
        ties = sum(math.lgamma(count + 1) for count in np.unique(a, return_counts=True)[1].tolist())
        orders = 2 if np.array_equal(np.sort(a), np.sort(n + 1 - a)) else 1
        p = min(1.0, orders * math.exp(ties - math.lgamma(n + 1)))
        return Correlation(n, math.copysign(1.0, rho), math.nan, math.nan, p)
    p = student_p(rho * math.sqrt((n - 2) / (1 - rho * rho)), n - 2)
    half = Z * math.sqrt((1 + rho * rho / 2) / (n - 3)) if n > 3 else math.inf
    z = math.atanh(rho)
    return Correlation(n, rho, math.tanh(z - half), math.tanh(z + half), p)


def student_p(t: float, degrees: int) -> float:
    """The two-sided p-value of a t statistic."""
    from scipy.special import stdtr

    return float(2 * stdtr(degrees, -abs(t)))
