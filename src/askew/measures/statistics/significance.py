"""Compares two runs on the same queries: how large the difference is, its p, and which losses can be ruled out.

Every p states its null hypothesis. The default test is about the mean gain and assumes no symmetry. The randomization
test that IR papers often report is optional. Its null hypothesis is that the scores of the two runs could as well be
swapped for each query. It can also be rejected if only the spread or the skewness differs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from askew.core import defaults
from askew.core.errors import DataError
from askew.core.measure import UNBOUNDED, Bounds, Direction
from askew.core.outcome import signs
from askew.core.ranking import Floats
from askew.measures.statistics.bounded import BoundedMean, StudentizedMean, solve
from askew.measures.statistics.intervals import BOUNDED, STUDENTIZED, gain_bounds, known, mean_test

# Agreement of rankings: Kendall's tau-b between every two of many rankings of the same items.

Signs = npt.NDArray[np.int8]
# Values with a smaller difference, relative to the largest value of their row, are equal up to rounding.
_ROUNDING = 1e-12


def pair_signs(values: Floats) -> Signs:
    """For each row and each pair of columns i < j: 1 if i is lower, -1 if j is lower, 0 if they are equal."""
    first, second = np.triu_indices(values.shape[1], 1)
    gaps = values[:, second] - values[:, first]
    rounding = _ROUNDING * np.abs(values).max(axis=1, initial=0.0)
    return np.where(np.abs(gaps) <= rounding[:, None], 0, np.sign(gaps)).astype(np.int8)


def tau_b(signs: Signs) -> Floats:
    """Kendall's tau-b between every two rows; NaN if all columns of one of them are equal."""
    # These sums of small integers are exact in 32-bit floats.
    plain = signs.astype(np.float32)
    untied = np.count_nonzero(signs, axis=1).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray((plain @ plain.T) / np.sqrt(np.outer(untied, untied)), np.float64)


MEAN, RANDOMIZATION = defaults.TEST, "randomization"
ALPHA = 0.05
RANDOM_FLIPS = 20_000
_EXACT_UP_TO = 14
_CHUNK = 4_000_000
# With more queries than this, random blocks of queries are flipped instead of single queries.
_MOST_BLOCKS = 5000
# Scores with a smaller difference are equal: such a difference comes from rounding in a sum.
SAME = 1e-12
_Z_POWER = 0.8416212335729143
_ENOUGH = 1e-6


@dataclass(frozen=True)
class Paired:
    """The comparison of an old and a new run on one measure. ``gain`` is positive if the new run is better.

    ``method`` is the kind of interval: "bounded" holds for every distribution, "studentized" is approximate. ``d_z`` is
    the mean gain divided by the standard deviation of the gains. ``smallest_margin`` is the smallest loss that this
    number of queries could rule out if all results were unchanged. ``not_ruled_out`` is the largest loss that these
    results do not rule out (95%, one-sided). ``detectable`` is the gain that would be significant in 4 of 5 samples
    like this one; None if no gain is large enough.
    """

    n: int
    old: float
    new: float
    relative: float | None
    gain: float
    low: float | None
    high: float | None
    method: str
    p: float | None
    d_z: float | None
    improved: int
    worsened: int
    unchanged: int
    smallest_margin: float | None
    not_ruled_out: float | None
    detectable: float | None
    margin: float | None = None
    p_no_loss: float | None = None
    p_equivalent: float | None = None


def paired(
    old: Floats,
    new: Floats,
    direction: Direction,
    bounds: Bounds = UNBOUNDED,
    *,
    test: str = MEAN,
    margin: float | None = None,
    seed: int = 0,
) -> Paired:
    """Compare two columns of scores with the same queries in the same order. ``bounds`` are those of the measure.

    Only the randomization test uses the seed.
    """
    if len(old) == 0:
        raise DataError("there is no query with a value in both runs; nothing can be compared")
    gains = rounded_gains(old, new, direction)
    sign = signs(gains)
    limits = gain_bounds(bounds, direction is Direction.ZERO)
    mean = mean_test(gains, limits)
    spread = float(np.sort(gains).std(ddof=1)) if len(gains) > 1 else 0.0
    before, after = (math.fsum(side.tolist()) / len(side) for side in (old, new))
    low, high = known(mean.lower(ALPHA / 2)), known(mean.upper(ALPHA / 2))
    bounded = isinstance(mean, BoundedMean)
    # Only bounded measures have the p of non-inferiority and of equivalence within a margin.
    no_loss = mean.p_at_most(-margin) if bounded and margin is not None else None
    return Paired(
        n=len(gains),
        old=before,
        new=after,
        relative=None if before == 0 else (after - before) / abs(before),
        gain=mean.mean,
        low=low,
        high=high,
        method=BOUNDED if bounded else STUDENTIZED,
        p=TESTS[test].p(gains, mean, seed),
        d_z=mean.mean / spread if spread > 0 else None,
        improved=int((sign == 1).sum()),
        worsened=int((sign == -1).sum()),
        unchanged=int((sign == 0).sum()),
        smallest_margin=smallest_margin(len(gains), -limits[0]) if bounded else None,
        not_ruled_out=max(0.0, -mean.lower(ALPHA)) if bounded else None,
        detectable=_detectable(mean, spread / math.sqrt(len(gains))),
        margin=margin,
        p_no_loss=no_loss,
        p_equivalent=None if no_loss is None else max(no_loss, mean.p_at_least(margin or 0.0)),
    )


def rounded_gains(old: Floats, new: Floats, direction: Direction) -> Floats:
    """The gain of each query. Gains that are only rounding errors become 0."""
    gains = direction.gain(old, new)
    return np.where(np.abs(gains) < SAME, 0.0, gains)


def _detectable(mean: BoundedMean | StudentizedMean, error: float) -> float | None:
    """The smallest true mean gain with an 80% chance of p < 0.05, from a sample of this shape.

    The sample is shifted until it is just significant. The result is 0.84 standard errors above the shifted mean.
    """
    if isinstance(mean, StudentizedMean):
        low = known(mean.lower(ALPHA / 2))
        return None if low is None else mean.mean - low + _Z_POWER * error

    def shifted(gain: float) -> BoundedMean:
        return BoundedMean(np.clip(mean.values - mean.mean + gain, mean.low, mean.high), mean.low, mean.high)

    most = shifted(mean.high)
    if most.p_at_most(0.0) > ALPHA / 2:
        return None
    # p decreases as the gain increases, but the solver needs an increasing function.
    found = -solve(lambda g: shifted(-g).p_at_most(0.0), -mean.high, 0.0, ALPHA / 2, -2 * error - _ENOUGH)
    detectable = shifted(found).mean + _Z_POWER * error
    return detectable if detectable <= mean.high else None


def two_sided_p(mean: BoundedMean | StudentizedMean, at: float = 0.0) -> float | None:
    """The p of the null hypothesis that the mean is ``at``. It is below 0.05 if the 95% interval excludes ``at``.

    If all values are equal and unbounded, they say nothing about other queries: p is 1 if they equal ``at``, else None.
    """
    if isinstance(mean, StudentizedMean) and not mean.known:
        return 1.0 if mean.mean == at else None
    return min(1.0, 2 * min(mean.p_at_most(at), mean.p_at_least(at)))


def smallest_margin(n: int, reach: float = 1.0, alpha: float = ALPHA) -> float:
    """The smallest loss that n queries can rule out if all their results are unchanged.

    ``reach`` is the largest loss that one query can have. If a share r of all queries has this loss, n sampled queries
    are all unchanged with probability (1 - r) ** n. No test that holds in general can therefore rule out a smaller
    mean loss.
    """
    return float(reach * (1.0 - alpha ** (1.0 / n)))


def sign_flip_p(differences: Floats, seed: int = 0) -> float:
    """The p of a two-sided randomization test: the chance of as large a mean if the results of queries are swapped.

    The test is exact (all 2^n signs) for few queries. Otherwise signs are random, and the observed signs count as one
    of the samples. With more than 5,000 queries, the queries are divided into 5,000 random blocks, and the signs of a
    block are flipped together. All these arrangements are equally likely under the null hypothesis, so the test stays
    valid, and its time no longer grows with the queries. Differences are sorted first, so that their order in a file
    does not matter.
    """
    differences = np.sort(differences)
    if len(differences) > _MOST_BLOCKS:
        shuffled = np.random.default_rng([seed, 1]).permutation(differences)
        cuts = np.linspace(0, len(differences), _MOST_BLOCKS + 1).astype(np.int64)[:-1]
        differences = np.add.reduceat(shuffled, cuts)
    n = len(differences)
    observed = float(differences.sum())
    tolerance = 1e-12 * max(1.0, float(np.abs(differences).sum()))
    exact = n <= _EXACT_UP_TO
    total = 1 << n if exact else RANDOM_FLIPS
    rng = np.random.default_rng([seed, n, 7])
    as_large, done = 0, 0
    while done < total:
        size = min(total - done, max(1, _CHUNK // n))
        if exact:
            bits = (np.arange(done, done + size)[:, None] >> np.arange(n)) & 1
        else:
            bits = rng.integers(0, 2, (size, n), dtype=np.int8)
        as_large += int((np.abs((2.0 * bits - 1.0) @ differences) >= abs(observed) - tolerance).sum())
        done += size
    return as_large / total if exact else (as_large + 1) / (total + 1)


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's correction for testing several measures at once."""
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    corrected = [0.0] * len(ps)
    highest = 0.0
    for position, i in enumerate(order):
        highest = max(highest, min(1.0, ps[i] * (len(ps) - position)))
        corrected[i] = highest
    return corrected


@dataclass(frozen=True)
class PairedTest:
    """A test of paired runs: its null hypothesis, and a function that computes p.

    The function gets the gain of each query, the test of the mean gain, and a seed.
    """

    null: str
    p: Callable[[Floats, BoundedMean | StudentizedMean, int], float | None]


# To add a test, add a line here. ``askew compare --test NAME`` then finds it.
TESTS = {
    MEAN: PairedTest("the mean gain is 0", lambda gains, mean, seed: two_sided_p(mean)),
    RANDOMIZATION: PairedTest(
        "the two values of each query (old and new run) are exchangeable",
        lambda gains, mean, seed: sign_flip_p(gains, seed),
    ),
}
NULLS = {name: test.null for name, test in TESTS.items()} | {
    "no_loss": "the mean loss is at least the margin",
    "equivalent": "the means differ by the margin or more",
}
