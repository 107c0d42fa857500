"""The paired randomization test (sign-flip test) of a mean or a ratio, and the interval that inverts it.

Null hypothesis "the mean is m": the difference of each query from m could as well have the other sign. If the queries
of a set A swap sides, the sum of all differences becomes as large as the observed one exactly if the sum over A is at
most 0, that is, if the mean over A is at most m. The p of every m is therefore a share of the means of random sets of
queries, and the ends of the interval are quantiles of these means (Hartigan 1969). The sets are drawn once.

The same holds for a ratio of two sums, such as the relative change of a mean: A has the ratio of its own two sums.
"""

from __future__ import annotations

import math

import numpy as np

from askew.core.ranking import Floats

# All sets of the queries that differ are enumerated up to this number of them. Above it, this many sets are drawn, the
# empty one among them, so that p is valid: its standard error is the square root of p (1 - p) / SETS, 0.0015 at 0.05.
ENUMERATED = 14
SETS = 20_000
# With more queries, they are divided at random into this many blocks, of which each is as a whole in a set or not.
BLOCKS = 1000


class RandomSets:
    """The ratios of the sums of ``tops`` and ``bottoms`` over random sets of queries.

    ``tops`` are differences and are tested against 0; ``bottoms`` are not negative, and ones for a mean. The queries
    are sorted, so that their order does not matter; to swap the sides of all queries turns every sign.
    """

    def __init__(self, tops: Floats, bottoms: Floats | None = None, seed: int = 0) -> None:
        bottoms = np.ones(len(tops)) if bottoms is None else bottoms
        whole = math.fsum(tops.tolist())
        pairs = np.stack([tops, bottoms])[:, np.lexsort((bottoms, math.copysign(1.0, whole) * tops))]
        rng = np.random.default_rng([seed, len(tops), 7])
        differ = pairs[0] != 0
        if len(tops) <= ENUMERATED:
            differ[:] = True
        elif differ.sum() > ENUMERATED:
            differ[:] = False
        every, rest = pairs[:, differ], pairs[:, ~differ]
        if every.shape[1] + rest.shape[1] > BLOCKS:
            rest = np.add.reduceat(
                rest[:, rng.permutation(rest.shape[1])],
                np.linspace(0, rest.shape[1], BLOCKS - every.shape[1] + 1).astype(np.int64)[:-1],
                axis=1,
            )
        sums = _sums(every, rest, rng)
        # A set and its complement belong to opposite signs: with both, the test has the same error on either side.
        sums = np.concatenate([sums, np.array([[whole], [math.fsum(bottoms.tolist())]]) - sums], axis=1)
        sums[np.abs(sums) <= 1e-12 * np.abs(pairs).sum(axis=1, keepdims=True)] = 0.0
        self._tops, self._bottoms = sums

    def p(self) -> float:
        """The two-sided p of the null hypothesis that the sum of ``tops`` is 0."""
        return float(min(1.0, 2 * min((self._tops <= 0).mean(), (self._tops >= 0).mean())))

    def ends(self, alpha: float) -> tuple[float, float]:
        """The lowest and the highest ratio with a p of at least ``alpha``; infinite if there is none."""
        skipped = max(0, math.ceil(alpha / 2 * len(self._tops) - 1e-9) - 1)
        return float(self._ratios(-1)[skipped]), float(self._ratios(1)[-1 - skipped])

    def _ratios(self, side: int) -> Floats:
        """The ratios in ascending order. A set without a sum agrees with every null hypothesis on this side."""
        tops, bottoms = self._tops, self._bottoms
        beyond = np.where(side * tops >= 0, side, -side) * np.inf
        with np.errstate(over="ignore"):
            return np.sort(np.divide(tops, bottoms, out=beyond, where=bottoms > 0))


def _sums(every: Floats, rest: Floats, rng: np.random.Generator) -> Floats:
    """Both sums of each set: all sets of the columns of ``every``, each with drawn ones of ``rest``; first of none."""
    known = 1 << every.shape[1]
    count = known * math.ceil(SETS / known) if rest.shape[1] else known
    sums = np.zeros((2, count))
    # Eight columns at a time: a byte says which of them are in the set, and a table has the sums of the 256 cases.
    for columns, is_drawn in ((every, False), (rest, True)):
        for start in range(0, columns.shape[1], 8):
            some = columns[:, start : start + 8]
            table = some @ ((np.arange(256) >> np.arange(some.shape[1])[:, None]) & 1)
            chosen = rng.integers(0, 256, count, np.uint8) if is_drawn else (np.arange(count) >> start) & 255
            chosen[0] = 0
            sums += table[:, chosen]
    return sums
