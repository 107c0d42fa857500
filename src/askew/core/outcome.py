"""What became of a query asked otherwise: nine outcomes, by how well it retrieves and how far its answers lean.

The first word of a name is about effectiveness (better, same, worse), the second about lean (less, same, more), so
that the two cannot be mistaken for each other: ``same-less`` retrieves as well and leans less.

Gains come from ``Direction.gain``, where positive is better whatever the measure. Two scores are the same when they
differ by no more than the tolerance, which is 0 unless set. Of several measures on one side, the side is better when
one is better and none is worse, the same when all are the same, and otherwise worse: what helps one measure and hurts
another is not passed off as help.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError
from askew.core.ranking import Floats

Signs = npt.NDArray[np.int8]
# What stands for a sign, or the code of an outcome, where there is no score.
UNKNOWN_SIGN, UNKNOWN = -2, -1


class Outcome(enum.Enum):
    """Effectiveness, then lean."""

    BETTER_LESS = "better-less"
    BETTER_SAME = "better-same"
    BETTER_MORE = "better-more"
    SAME_LESS = "same-less"
    SAME_SAME = "same-same"
    SAME_MORE = "same-more"
    WORSE_LESS = "worse-less"
    WORSE_SAME = "worse-same"
    WORSE_MORE = "worse-more"


# The name of each code.
OUTCOMES: tuple[str, ...] = tuple(outcome.value for outcome in Outcome)


def check_tolerance(tolerance: float) -> float:
    """The tolerance, which must be a finite number of zero or more."""
    if not 0 <= tolerance < math.inf:
        raise ConfigError(f"tolerance: expected a finite number of zero or more, found {tolerance}")
    return tolerance


def signs(gains: Floats, tolerance: float = 0.0) -> Signs:
    """1 for better, 0 for the same, -1 for worse, and ``UNKNOWN_SIGN`` where the gain is NaN."""
    check_tolerance(tolerance)
    found = (gains > tolerance).astype(np.int8) - (gains < -tolerance).astype(np.int8)
    return np.where(np.isnan(gains), np.int8(UNKNOWN_SIGN), found)


def joint_signs(gains: Sequence[Floats], tolerance: float = 0.0) -> Signs:
    """The sign of one side that several measures look at; unknown where one of them is."""
    if not gains:
        raise ConfigError("outcome: expected one measure or more on each side, found none")
    each = np.stack([signs(gain, tolerance) for gain in gains])
    worst, best = each.min(axis=0), each.max(axis=0)
    # The unknown sign is below all others, so that the least of them tells of it.
    return np.asarray(np.where(worst < 0, worst, best), np.int8)


def outcome_codes(effectiveness: Sequence[Floats], lean: Sequence[Floats], tolerance: float = 0.0) -> Signs:
    """The place of each pair's outcome in ``OUTCOMES``; ``UNKNOWN`` where a gain is NaN."""
    first, second = joint_signs(effectiveness, tolerance), joint_signs(lean, tolerance)
    known = (first != UNKNOWN_SIGN) & (second != UNKNOWN_SIGN)
    return np.where(known, 3 * (1 - first) + (1 - second), np.int8(UNKNOWN))


def outcome_of(effectiveness: float, lean: float, tolerance: float = 0.0) -> Outcome:
    """The outcome of one pair of gains."""
    code = int(outcome_codes([np.array([effectiveness])], [np.array([lean])], tolerance)[0])
    if code == UNKNOWN:
        raise ConfigError(f"outcome: expected two gains, found {effectiveness} and {lean}")
    return Outcome(OUTCOMES[code])
