"""The mean of values without bounds: Student's t, corrected for skewness (Hall 1992).

An approximation: it takes the sample's variance and skewness for those of all queries. Where most values are zero and
few queries were observed, the interval is too short; docs/statistics.md has the coverage as simulated. So no claim that
nothing is lost is made from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from askew.core.ranking import Floats


@dataclass(frozen=True)
class StudentizedMean:
    """The mean of values that may be anything from ``low`` to ``high``, where one of them or both are infinite."""

    values: Floats
    low: float = -math.inf
    high: float = math.inf

    @cached_property
    def mean(self) -> float:
        """The mean of the sample."""
        return math.fsum(self.values.tolist()) / len(self.values)

    @cached_property
    def _shape(self) -> tuple[float, float]:
        """Standard deviation and skewness, the same whatever the order of the values; 0 and 0 where they are equal."""
        away = np.sort(self.values) - self.mean
        n = len(away)
        spread = math.sqrt(float(away @ away) / (n - 1)) if n > 1 else 0.0
        # What is left of rounding in equal values is no spread.
        if spread <= 1e-12 * max(1.0, abs(self.mean)):
            return 0.0, 0.0
        return spread, float((away**3).mean()) / spread**3

    @property
    def known(self) -> bool:
        """Whether the values say anything about their spread: equal ones do not."""
        return self._shape[0] > 0

    def _p(self, t: float) -> float:
        from scipy.special import stdtr

        _, skewness = self._shape
        n = len(self.values)
        hall = t + skewness * t * t / 3 + skewness**2 * t**3 / 27 + skewness / (6 * n)
        return float(stdtr(n - 1, -math.sqrt(n) * hall))

    def p_at_most(self, m: float) -> float:
        """The p of the null hypothesis that the mean is at most m; nan where the values are equal."""
        return self._p((self.mean - m) / self._shape[0]) if self.known else math.nan

    def p_at_least(self, m: float) -> float:
        """The p of the null hypothesis that the mean is at least m; nan where the values are equal."""
        return 1.0 - self._p((self.mean - m) / self._shape[0]) if self.known else math.nan

    def lower(self, alpha: float) -> float:
        """About so low the mean may be, with a confidence of 1 - alpha; nan where the values are equal."""
        return max(self.low, self._end(1 - alpha)) if self.known else math.nan

    def upper(self, alpha: float) -> float:
        """About so high the mean may be, with a confidence of 1 - alpha; nan where the values are equal."""
        return min(self.high, self._end(alpha)) if self.known else math.nan

    def _end(self, level: float) -> float:
        from scipy.special import stdtrit

        spread, skewness = self._shape
        n = len(self.values)
        straight = float(stdtrit(n - 1, level)) / math.sqrt(n) - skewness / (6 * n)
        if abs(skewness) < 1e-6:
            return self.mean - spread * straight
        # The transformation undone.
        return self.mean - spread * 3 * (float(np.cbrt(1 + skewness * straight)) - 1) / skewness
