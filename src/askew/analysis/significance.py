"""Two runs, the same queries: is the difference real, how large is it, and is nothing lost?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from askew.analysis.intervals import bootstrap_means, units
from askew.core.errors import DataError
from askew.core.measure import Direction
from askew.core.ranking import Floats

RANDOM_FLIPS = 20_000
_EXACT_UP_TO = 14
_CHUNK = 4_000_000
# Two scores this near are the same score: it is what is left of rounding in a sum.
SAME = 1e-12


def least_p(n: int) -> float:
    """The smallest p that the permutation test can show for so many queries."""
    return 2.0 / 2.0**n if n <= _EXACT_UP_TO else 1.0 / (RANDOM_FLIPS + 1)


@dataclass(frozen=True)
class Paired:
    """Old against new on one measure. ``gain`` is positive where new is better, whatever the direction."""

    n: int
    old: float
    new: float
    relative: float | None
    gain: float
    low: float
    high: float
    p: float
    effect: float | None
    helped: int
    hurt: int
    same: int
    delta: float | None = None
    p_no_loss: float | None = None
    p_equivalent: float | None = None


def paired(
    old: Floats,
    new: Floats,
    direction: Direction,
    *,
    test: str = "permutation",
    delta: float | None = None,
    seed: int = 0,
) -> Paired:
    """Compare two columns of scores, row by row the same query."""
    if len(old) == 0:
        raise DataError("there is no query with a value in both runs; nothing can be compared")
    gains = direction.gain(old, new)
    gains[np.abs(gains) < SAME] = 0.0
    means = bootstrap_means(gains, seed)
    low, high = np.quantile(means, [0.025, 0.975])
    spread = float(gains.std(ddof=1)) if len(gains) > 1 else 0.0
    before, after = float(old.mean()), float(new.mean())
    no_loss = None if delta is None else sign_flip_p(gains + delta, "greater", seed)
    no_rise = None if delta is None else sign_flip_p(delta - gains, "greater", seed)
    return Paired(
        n=len(gains),
        old=before,
        new=after,
        relative=None if before == 0 else (after - before) / abs(before),
        gain=float(gains.mean()),
        low=float(low),
        high=float(high),
        p=sign_flip_p(gains, seed=seed) if test == "permutation" else _bootstrap_p(gains, means),
        effect=float(gains.mean()) / spread if spread > 0 else None,
        helped=int((gains > 0).sum()),
        hurt=int((gains < 0).sum()),
        same=int((gains == 0).sum()),
        delta=delta,
        p_no_loss=no_loss,
        p_equivalent=None if no_loss is None or no_rise is None else max(no_loss, no_rise),
    )


def sign_flip_p(differences: Floats, alternative: str = "two-sided", seed: int = 0) -> float:
    """Paired permutation test: the chance of a mean as large when each difference could have had either sign.

    Exact (all 2^n signs) for few queries, otherwise random signs with the observed one counted in. Beyond 5,000
    queries the signs of 5,000 fixed random blocks of them are flipped, each block as one: fewer arrangements, of which
    each was as likely, so the test stays valid, and it takes no longer with more queries.
    """
    differences, _ = units(differences, seed)
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
        sums = (2.0 * bits - 1.0) @ differences
        if alternative == "greater":
            as_large += int((sums >= observed - tolerance).sum())
        else:
            as_large += int((np.abs(sums) >= abs(observed) - tolerance).sum())
        done += size
    return as_large / total if exact else (as_large + 1) / (total + 1)


def _bootstrap_p(gains: Floats, means: Floats) -> float:
    """Two-sided p from the bootstrap distribution moved to a mean of zero."""
    observed = abs(float(gains.mean()))
    centred = means - means.mean()
    return float((np.sum(np.abs(centred) >= observed - SAME) + 1) / (len(centred) + 1))


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's correction for testing several measures at once."""
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    corrected = [0.0] * len(ps)
    highest = 0.0
    for position, i in enumerate(order):
        highest = max(highest, min(1.0, ps[i] * (len(ps) - position)))
        corrected[i] = highest
    return corrected
