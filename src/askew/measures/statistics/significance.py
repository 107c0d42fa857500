"""Compares two runs on the same queries: how large the difference is, its p, and which losses can be ruled out.

Every p states its null hypothesis. The interval, p and the detectable gain of a difference come from one test, by
default the randomization test. It is wrong where gains are skewed and queries are few (``Paired.skewed``). The test for
bounded means, which is conjectured to be valid there too, decides "no loss" and "equivalent".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from askew.core import defaults
from askew.core.errors import DataError
from askew.core.measure import UNBOUNDED, Bounds, Direction
from askew.core.outcome import signs
from askew.core.ranking import Floats
from askew.measures.statistics.bounded import BoundedMean
from askew.measures.statistics.intervals import BOUNDED, SAME, bounded_mean, gain_bounds, known
from askew.measures.statistics.randomization import RandomSets

# Agreement of rankings: Kendall's tau-b between every two of many rankings of the same items.

_Key = TypeVar("_Key", bound=Hashable)
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


ALPHA = 0.05
_Z_POWER = 0.8416212335729143
# A relative change needs this many queries with a nonzero value in one of the runs, and so does an interval with a gain
# other than 0, unless half of the queries have one.
FEWEST_NONZERO = 20
# Gains are skewed beyond this skewness / sqrt(n): there, to the first order (Edgeworth), skewness alone adds 0.025 to
# the probability that one tail of the t and the randomization test rejects, 0.0845 * skewness / sqrt(n).
SKEWED = 0.3


@dataclass(frozen=True)
class Tested:
    """The two-sided p of a mean gain of 0, and the ends of the 95% interval, which is where p is at least 0.05.

    A value is None where the test does not determine it; an infinite end is one that no mean is rejected beyond.
    """

    p: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class PairedTest:
    """A test of paired runs: its null hypothesis, and a function of the gains, the test for bounded means, a seed."""

    null: str
    test: Callable[[Floats, BoundedMean | None, int], Tested]


def _randomization(gains: Floats, bounded: BoundedMean | None, seed: int) -> Tested:
    sets = RandomSets(gains, seed=seed)
    # Equal gains show no spread, and the test would allow no other mean.
    return Tested(sets.p(), *(sets.ends(ALPHA) if np.ptp(gains) > SAME else ()))


def _t(gains: Floats, bounded: BoundedMean | None, seed: int) -> Tested:
    from scipy.special import stdtr, stdtrit

    error = gains.std(ddof=1) / math.sqrt(len(gains)) if np.ptp(gains) > SAME else 0.0
    if not error:
        return Tested(None if gains.any() else 1.0)
    mean, half = float(gains.mean()), float(stdtrit(len(gains) - 1, 1 - ALPHA / 2) * error)
    return Tested(float(2 * stdtr(len(gains) - 1, -abs(mean / error))), mean - half, mean + half)


def _wilcoxon(gains: Floats, bounded: BoundedMean | None, seed: int) -> Tested:
    from scipy.stats import wilcoxon

    # It is a test of ranks, so that no interval of the mean follows from it.
    return Tested(float(wilcoxon(gains).pvalue) if gains.any() else 1.0)


def _bounded(gains: Floats, bounded: BoundedMean | None, seed: int) -> Tested:
    if bounded is None:
        return Tested(None)
    return Tested(two_sided_p(bounded), bounded.lower(ALPHA / 2), bounded.upper(ALPHA / 2))


# To add a test, add a line here. ``askew compare --test NAME`` then finds it. The default is ``askew.core.defaults``.
TESTS = {
    "randomization": PairedTest("the two values of each query (old and new run) are exchangeable", _randomization),
    "t": PairedTest("the mean gain is 0, and gains are normally distributed", _t),
    "wilcoxon": PairedTest("the gains that are not 0 are distributed symmetrically around 0", _wilcoxon),
    BOUNDED: PairedTest("the mean gain is 0", _bounded),
}
NULLS = {name: test.null for name, test in TESTS.items()} | {
    "no_loss": "the mean loss is at least the margin",
    "equivalent": "the means differ by the margin or more",
}


@dataclass(frozen=True)
class Paired:
    """The comparison of an old and a new run on one measure. ``gain`` is positive if the new run is better.

    ``method`` is the test: the interval, ``p`` and ``detectable`` come from it. ``detectable`` is the gain that would
    be significant in 4 of 5 samples like this one. ``d_z`` is the mean gain divided by the standard deviation of the
    gains. ``nonzero`` is the number of queries with a nonzero value in one of the runs; with few, there is no
    ``relative`` change. The other values come from the test for bounded means, and are None for a measure without
    bounds: ``p_bounded``, its p of a mean gain of 0; ``smallest_margin``, the smallest loss that this number of queries
    could rule out if all results were unchanged; ``not_ruled_out``, the largest loss that these results do not rule out
    (95%, one-sided).
    """

    n: int
    nonzero: int
    old: float
    new: float
    relative: float | None
    gain: float
    low: float | None
    high: float | None
    method: str
    p: float | None
    p_bounded: float | None
    skewness: float | None
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

    @property
    def skewed(self) -> bool:
        """Whether the gains are so skewed that the default test can be wrong; see ``SKEWED``."""
        return self.skewness is not None and abs(self.skewness) > SKEWED * math.sqrt(self.n)

    @property
    def sparse(self) -> bool:
        """Whether so few queries differ that the interval would hold the mean too rarely, and is not given."""
        return self.method != BOUNDED and self.improved + self.worsened < min(FEWEST_NONZERO, self.unchanged)


def paired(
    old: Floats, new: Floats, direction: Direction, bounds: Bounds = UNBOUNDED, *, test: str = defaults.TEST,
    margin: float | None = None, seed: int = 0,
) -> Paired:  # fmt: skip
    """Compare two columns of scores with the same queries in the same order. ``bounds`` are those of the measure.

    Only the randomization test uses the seed.
    """
    if len(old) == 0:
        raise DataError("there is no query with a value in both runs; nothing can be compared")
    gains = rounded_gains(old, new, direction)
    sign = signs(gains)
    limits = gain_bounds(bounds, direction is Direction.ZERO)
    bounded, gain = bounded_mean(gains, limits), math.fsum(gains.tolist()) / len(gains)
    away = np.sort(gains) - gain
    spread = float(away.std(ddof=1)) if len(gains) > 1 and np.ptp(gains) > SAME else 0.0
    before, after = (math.fsum(side.tolist()) / len(side) for side in (old, new))
    tested = TESTS[test].test(gains, bounded, seed)
    # The gains of a bounded measure are within its bounds, whatever the test.
    least, most = UNBOUNDED if bounded is None else limits
    low, high = (None if end is None else known(min(max(end, least), most)) for end in (tested.low, tested.high))
    nonzero = int(np.count_nonzero((np.abs(old) >= SAME) | (np.abs(new) >= SAME)))
    is_relative = before != 0 and direction is not Direction.ZERO and nonzero >= FEWEST_NONZERO
    no_loss = None if bounded is None or margin is None else bounded.p_at_most(-margin)
    improved, worsened, unchanged = (int((sign == one).sum()) for one in (1, -1, 0))
    found = Paired(
        len(gains), nonzero, before, after, (after - before) / abs(before) if is_relative else None, gain, low,
        high, test, tested.p, p_bounded=None if bounded is None else two_sided_p(bounded),
        skewness=float((away**3).mean()) / float((away**2).mean()) ** 1.5 if spread > 0 else None,
        d_z=gain / spread if spread > 0 else None, improved=improved, worsened=worsened, unchanged=unchanged,
        smallest_margin=None if bounded is None else smallest_margin(len(gains), -limits[0]),
        not_ruled_out=None if bounded is None else max(0.0, -bounded.lower(ALPHA)),
        # The sample is shifted until it is just significant; in 4 of 5 samples the mean is no lower than this.
        detectable=None if low is None else gain - low + _Z_POWER * spread / math.sqrt(len(gains)),
        margin=margin, p_no_loss=no_loss,
        p_equivalent=None if no_loss is None or bounded is None else max(no_loss, bounded.p_at_least(margin or 0.0)),
    )  # fmt: skip
    return replace(found, low=None, high=None, detectable=None) if found.sparse else found


def rounded_gains(old: Floats, new: Floats, direction: Direction) -> Floats:
    """The gain of each query. Gains that are only rounding errors become 0."""
    gains = direction.gain(old, new)
    return np.where(np.abs(gains) < SAME, 0.0, gains)


def two_sided_p(mean: BoundedMean, at: float = 0.0) -> float:
    """The p of the null hypothesis that the mean is ``at``. It is below 0.05 if the 95% interval excludes ``at``."""
    return min(1.0, 2 * min(mean.p_at_most(at), mean.p_at_least(at)))


def smallest_margin(n: int, reach: float = 1.0, alpha: float = ALPHA) -> float:
    """The smallest loss that n queries can rule out if all their results are unchanged.

    ``reach`` is the largest loss that one query can have. If a share r of all queries has this loss, n sampled queries
    are all unchanged with probability (1 - r) ** n. No test that holds in general can therefore rule out a smaller
    mean loss.
    """
    return float(reach * (1.0 - alpha ** (1.0 / n)))


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's correction for testing several measures at once."""
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    corrected = [0.0] * len(ps)
    highest = 0.0
    for position, i in enumerate(order):
        highest = max(highest, min(1.0, ps[i] * (len(ps) - position)))
        corrected[i] = highest
    return corrected


def holm_by_family(ps: Mapping[_Key, float | None], family: Callable[[_Key], Hashable]) -> dict[_Key, float]:
    """Holm's correction within each family of tests, such as those of lean. What has no p is left out."""
    known_ps = {key: p for key, p in ps.items() if p is not None}
    found = dict(known_ps)
    for one in set(map(family, known_ps)):
        mine = [key for key in known_ps if family(key) == one]
        found |= dict(zip(mine, holm([known_ps[key] for key in mine]), strict=True))
    return found
