"""Exact sums of numbers that are added in blocks: equal to ``math.fsum`` of all numbers, in any order."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np

from askew.core.ranking import Floats

_DIGITS = 53
_LOW = 26


class ExactSum:
    """The sum and the number of finite values. Integer mantissas are summed for each exponent, without rounding."""

    def __init__(self) -> None:
        self.n = 0
        self._sums: defaultdict[int, int] = defaultdict(int)

    def add(self, values: Floats) -> None:
        """Add numbers."""
        self.n += len(values)
        parts, exponents = np.frexp(values)
        whole = np.ldexp(parts, _DIGITS).astype(np.int64)
        for exponent in np.unique(exponents):
            some = whole[exponents == exponent]
            # High and low bits are summed separately, so that the sums of a block fit into 64 bits.
            high, low = int((some >> _LOW).sum()), int((some & ((1 << _LOW) - 1)).sum())
            self._sums[int(exponent)] += (high << _LOW) + low

    @property
    def total(self) -> float:
        """The sum, rounded once."""
        exact = sum((Fraction(value) * Fraction(2) ** (at - _DIGITS) for at, value in self._sums.items()), Fraction())
        return float(exact)

    @property
    def mean(self) -> float:
        """The mean; NaN if there are no numbers."""
        return self.total / self.n if self.n else float("nan")
