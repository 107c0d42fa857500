"""The outcome of a reformulated query: nine outcomes, by how well it retrieves and how far its answers lean.

The first word of a name is about effectiveness (better, same, worse), the second about lean (less, same, more), so
that the two cannot be mistaken for each other: ``same-less`` retrieves as well and leans less.

Gains come from ``Direction.gain``, where positive is better whatever the measure. Two scores are the same when they
differ by no more than the tolerance, which is 0 unless set. Of several measures on one side, the side is better when
one is better and none is worse, the same when all are the same, and otherwise worse: what helps one measure and hurts
another is not passed off as help.

This is the one place that decides: selectors, reports, datasets, the explorer and its pages all ask here. A value that
is not there, such as the effectiveness of a query without judgements, has no verdict.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError
from askew.core.measure import Direction
from askew.core.ranking import Floats

Signs = npt.NDArray[np.int8]
# What stands for a sign, or the code of an outcome, where there is no score.
UNKNOWN_SIGN, UNKNOWN = -2, -1


class Verdict(enum.Enum):
    """How one value changed, whatever the measure."""

    BETTER = "better"
    SAME = "same"
    WORSE = "worse"

    @property
    def lean(self) -> str:
        """As an outcome calls it on the side of lean."""
        return {"better": "less", "same": "same", "worse": "more"}[self.value]


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


def verdicts(old: Floats, new: Floats, direction: Direction, tolerance: float = 0.0) -> Signs:
    """The signs of what is gained from the old to the new values."""
    return signs(direction.gain(old, new), tolerance)


def verdict(old: float | None, new: float | None, direction: Direction, tolerance: float = 0.0) -> Verdict | None:
    """How one value changed; None where there is none before or after."""
    if old is None or new is None:
        return None
    sign = int(verdicts(np.array([old]), np.array([new]), direction, tolerance)[0])
    return None if sign == UNKNOWN_SIGN else tuple(Verdict)[1 - sign]


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


def outcome_of(effectiveness: float | None, lean: float | None, tolerance: float = 0.0) -> Outcome | None:
    """The outcome of one pair of gains; None where one of them is not known."""
    if effectiveness is None or lean is None:
        return None
    code = int(outcome_codes([np.array([effectiveness])], [np.array([lean])], tolerance)[0])
    return None if code == UNKNOWN else Outcome(OUTCOMES[code])
