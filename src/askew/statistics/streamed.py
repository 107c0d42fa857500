"""Sums of values that arrive in parts. They equal numpy's sum of the whole array bit by bit, without storing it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from askew.core.ranking import Floats

_BLOCK = 1 << 16


class PairwiseSum:
    """The sum of ``n`` values by the pairwise summation of ``numpy.sum``, which adds the sums of two halves.

    The split into halves depends only on ``n``, so the sums of consecutive blocks are enough.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._sizes = _sizes(n)
        self._wanted = next(self._sizes, 0)
        self._waiting: list[Floats] = []
        self._have = 0
        self._sums: list[np.float64] = []

    def add(self, values: Floats) -> None:
        """Add the next values."""
        self._waiting.append(values)
        self._have += len(values)
        if not self._wanted or self._have < self._wanted:
            return
        pool, at = np.concatenate(self._waiting), 0
        while self._wanted and len(pool) - at >= self._wanted:
            self._sums.append(np.add.reduce(pool[at : at + self._wanted]))
            at += self._wanted
            self._wanted = next(self._sizes, 0)
        self._waiting, self._have = [pool[at:].copy()], len(pool) - at

    @property
    def total(self) -> float:
        """The sum of all ``n`` values."""
        if self._wanted or self._have:
            raise ValueError(f"expected {self.n} values, found {'fewer' if self._wanted else 'more'}")
        return float(_combined(self.n, iter(self._sums))) if self.n else 0.0


def _half(n: int) -> int:
    return n // 2 - n // 2 % 8


def _sizes(n: int) -> Iterator[int]:
    if n > _BLOCK:
        yield from _sizes(_half(n))
        yield from _sizes(n - _half(n))
    elif n:
        yield n


def _combined(n: int, sums: Iterator[np.float64]) -> np.float64:
    if n <= _BLOCK:
        return next(sums)
    first = _combined(_half(n), sums)
    return first + _combined(n - _half(n), sums)
