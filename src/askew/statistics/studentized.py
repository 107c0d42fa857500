"""The mean of values without bounds: Student's t, corrected for skewness (Hall 1992).

It is an approximation: it uses the variance and skewness of the sample as those of all queries. If most values are zero
and few queries were observed, the interval is too short; docs/statistics.md gives the simulated coverage. It is
therefore not used to claim that there is no loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from askew.core.ranking import Floats


@dataclass(frozen=True)
class StudentizedMean:
    """The mean of values between ``low`` and ``high``, of which at least one is infinite."""

    values: Floats
    low: float = -math.inf
    high: float = math.inf

    @cached_property
    def mean(self) -> float:
        """The mean of the sample."""
        return math.fsum(self.values.tolist()) / len(self.values)

    @cached_property
    def _shape(self) -> tuple[float, float]:
        """Standard deviation and skewness, for any order of the values; 0 and 0 if the values are equal."""
        away = np.sort(self.values) - self.mean
        n = len(away)
        spread = math.sqrt(float(away @ away) / (n - 1)) if n > 1 else 0.0
        # The spread of equal values is only a rounding error.
        if spread <= 1e-12 * max(1.0, abs(self.mean)):
            return 0.0, 0.0
        return spread, float((away**3).mean()) / spread**3

    @property
    def known(self) -> bool:
        """Whether the values show a spread. Equal values do not."""
        return self._shape[0] > 0

    def _p(self, t: float) -> float:
        from scipy.special import stdtr

        _, skewness = self._shape
        n = len(self.values)
        hall = t + skewness * t * t / 3 + skewness**2 * t**3 / 27 + skewness / (6 * n)
        return float(stdtr(n - 1, -math.sqrt(n) * hall))

    def p_at_most(self, m: float) -> float:
        """The p of the null hypothesis that the mean is at most m; NaN if the values are equal."""
        return self._p((self.mean - m) / self._shape[0]) if self.known else math.nan

    def p_at_least(self, m: float) -> float:
        """The p of the null hypothesis that the mean is at least m; NaN if the values are equal."""
        return 1.0 - self._p((self.mean - m) / self._shape[0]) if self.known else math.nan

    def lower(self, alpha: float) -> float:
        """The approximate lower bound of the mean with a confidence of 1 - alpha; NaN if the values are equal."""
        return max(self.low, self._end(1 - alpha)) if self.known else math.nan

    def upper(self, alpha: float) -> float:
        """The approximate upper bound of the mean with a confidence of 1 - alpha; NaN if the values are equal."""
        return min(self.high, self._end(alpha)) if self.known else math.nan

    def _end(self, level: float) -> float:
        from scipy.special import stdtrit

        spread, skewness = self._shape
        n = len(self.values)
        straight = float(stdtrit(n - 1, level)) / math.sqrt(n) - skewness / (6 * n)
        if abs(skewness) < 1e-6:
            return self.mean - spread * straight
        # The inverse of Hall's transformation.
        return self.mean - spread * 3 * (float(np.cbrt(1 + skewness * straight)) - 1) / skewness
