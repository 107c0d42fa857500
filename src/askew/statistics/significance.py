"""Two runs, the same queries: how large is the difference, is it real, and what loss can be ruled out?

Every p states its null hypothesis. By default that is about the mean gain, and nothing is assumed to be symmetric. The
randomization test that IR papers often report has another one, "the two results of each query could as well be
swapped", which also fails where only the spread or the skewness differs; it is there on request.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from askew.core import defaults
from askew.core.errors import DataError
from askew.core.measure import UNBOUNDED, Bounds, Direction
from askew.core.outcome import signs
from askew.core.ranking import Floats
from askew.statistics.bounded import BoundedMean, solve
from askew.statistics.intervals import BOUNDED, STUDENTIZED, gain_bounds, known, mean_test
from askew.statistics.studentized import StudentizedMean

MEAN, RANDOMIZATION = defaults.TEST, "randomization"
ALPHA = 0.05
RANDOM_FLIPS = 20_000
_EXACT_UP_TO = 14
_CHUNK = 4_000_000
# Beyond so many queries, whole random blocks of them are flipped instead of single ones.
_MOST_BLOCKS = 5000
# Two scores this near are the same score: it is what is left of rounding in a sum.
SAME = 1e-12
_Z_POWER = 0.8416212335729143
_ENOUGH = 1e-6


@dataclass(frozen=True)
class Paired:
    """Old against new on one measure. ``gain`` is positive where new is better, whatever the direction.

    ``method`` says how the interval was made: "bounded" holds for every distribution, "studentized" is approximate.
    ``d_z`` is the mean gain divided by the standard deviation of the gains. ``smallest_margin`` is the smallest loss
    that so many queries can rule out, were their results all unchanged; ``not_ruled_out`` is the largest loss that
    these results leave open (95%, one-sided). ``detectable`` is the gain that would be significant in 4 of 5 samples
    like this one; None where no gain is large enough.
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
    """Compare two columns of scores, row by row the same query; ``bounds`` are those of the measure.

    The seed is for the randomization test only.
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
        **_margins(mean, margin),
    )


def rounded_gains(old: Floats, new: Floats, direction: Direction) -> Floats:
    """What each query gains; what is left of rounding is 0."""
    gains = direction.gain(old, new)
    return np.where(np.abs(gains) < SAME, 0.0, gains)


def _margins(mean: BoundedMean | StudentizedMean, margin: float | None) -> dict[str, float]:
    """That nothing is lost beyond a margin can be claimed of bounded measures only."""
    if margin is None or not isinstance(mean, BoundedMean):
        return {}
    no_loss = mean.p_at_most(-margin)
    return {"p_no_loss": no_loss, "p_equivalent": max(no_loss, mean.p_at_least(margin))}


def _detectable(mean: BoundedMean | StudentizedMean, error: float) -> float | None:
    """The smallest true mean gain with an 80% chance of p < 0.05, from a sample of this shape.

    The sample is shifted until it is just significant; a true gain must lie 0.84 standard errors above that.
    """
    if isinstance(mean, StudentizedMean):
        low = known(mean.lower(ALPHA / 2))
        return None if low is None else mean.mean - low + _Z_POWER * error

    def shifted(gain: float) -> BoundedMean:
        return BoundedMean(np.clip(mean.values - mean.mean + gain, mean.low, mean.high), mean.low, mean.high)

    most = shifted(mean.high)
    if most.p_at_most(0.0) > ALPHA / 2:
        return None
    # p falls as the gain rises: the solver wants it rising.
    found = -solve(lambda g: shifted(-g).p_at_most(0.0), -mean.high, 0.0, ALPHA / 2, -2 * error - _ENOUGH)
    detectable = shifted(found).mean + _Z_POWER * error
    return detectable if detectable <= mean.high else None


def two_sided_p(mean: BoundedMean | StudentizedMean, at: float = 0.0) -> float | None:
    """The p of the null hypothesis that the mean is ``at``; it is below 0.05 where the 95% interval leaves that out.

    Equal values without bounds say nothing about other queries: p is 1 where they are ``at``, else there is none.
    """
    if isinstance(mean, StudentizedMean) and not mean.known:
        return 1.0 if mean.mean == at else None
    return min(1.0, 2 * min(mean.p_at_most(at), mean.p_at_least(at)))


def smallest_margin(n: int, reach: float = 1.0, alpha: float = ALPHA) -> float:
    """The smallest loss that n queries can rule out where all their results are unchanged.

    ``reach`` is the largest loss that one query can have. A loss of r on a share r of the queries leaves n unchanged
    queries with a chance of (1 - r) ** n: no test that holds in general can see a smaller mean loss.
    """
    return float(reach * (1.0 - alpha ** (1.0 / n)))


def sign_flip_p(differences: Floats, seed: int = 0) -> float:
    """Randomization test, two-sided: the chance of a mean as large when the results of each query are swapped or not.

    Exact (all 2^n signs) for few queries, otherwise random signs with the observed one counted in. Beyond 5,000
    queries the signs of 5,000 fixed random blocks of them are flipped, each block as one: fewer arrangements, of which
    each was as likely, so the test stays valid, and it takes no longer with more queries. Differences are sorted first:
    the order of the lines of a file makes no difference.
    """
    differences = _blocks(np.sort(differences), seed)
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


def _blocks(values: Floats, seed: int) -> Floats:
    if len(values) <= _MOST_BLOCKS:
        return values
    shuffled = np.random.default_rng([seed, 1]).permutation(values)
    cuts = np.linspace(0, len(values), _MOST_BLOCKS + 1).astype(np.int64)[:-1]
    return np.asarray(np.add.reduceat(shuffled, cuts))


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
    """A test of paired runs: its null hypothesis, and p from the gain of each query, the test of their mean, a seed."""

    null: str
    p: Callable[[Floats, BoundedMean | StudentizedMean, int], float | None]


# A new test is one line here; ``askew compare --test NAME`` finds it.
TESTS = {
    MEAN: PairedTest("the mean gain is 0", lambda gains, mean, seed: two_sided_p(mean)),
    RANDOMIZATION: PairedTest(
        "the two results of each query could as well be swapped", lambda gains, mean, seed: sign_flip_p(gains, seed)
    ),
}
NULLS = {name: test.null for name, test in TESTS.items()} | {
    "no_loss": "the mean loss is at least the margin",
    "equivalent": "the means differ by the margin or more",
}
