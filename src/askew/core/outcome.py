"""The nine outcomes of a reformulated query: how its effectiveness and the lean (bias) of its results changed.

The first word of a name is about effectiveness (better, same, worse), the second about lean (less, same, more), so
that the two cannot be confused: ``same-less`` is as effective as the original query and leans less.

Gains come from ``Direction.gain``: for every measure a positive gain is better. Two scores are the same if they
differ by no more than the tolerance (default 0). Several measures of effectiveness, or of lean, are combined: the
result is better if one is better and none is worse, the same if all are the same, and otherwise worse. If one measure
improves and another worsens, the result is therefore worse.

Selectors, reports, datasets and the explorer all take outcomes from this module. If a value is missing, such as the
effectiveness of a query without judgements, there is no verdict.
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
# The sign, and the code of an outcome, if a score is missing.
UNKNOWN_SIGN, UNKNOWN = -2, -1


class Verdict(enum.Enum):
    """How a score changed: better, same or worse, for any direction of the measure."""

    BETTER = "better"
    SAME = "same"
    WORSE = "worse"

    @property
    def lean(self) -> str:
        """The word for this verdict in the second part of an outcome's name."""
        return {"better": "less", "same": "same", "worse": "more"}[self.value]


class Outcome(enum.Enum):
    """How effectiveness changed, then how lean changed."""

    BETTER_LESS = "better-less"
    BETTER_SAME = "better-same"
    BETTER_MORE = "better-more"
    SAME_LESS = "same-less"
    SAME_SAME = "same-same"
    SAME_MORE = "same-more"
    WORSE_LESS = "worse-less"
    WORSE_SAME = "worse-same"
    WORSE_MORE = "worse-more"


# The name of each outcome; its position is the outcome's code.
OUTCOMES: tuple[str, ...] = tuple(outcome.value for outcome in Outcome)


def check_tolerance(tolerance: float) -> float:
    """Return the tolerance if it is a finite number of zero or more, otherwise raise ``ConfigError``."""
    if not 0 <= tolerance < math.inf:
        raise ConfigError(f"tolerance: expected a finite number of zero or more, found {tolerance}")
    return tolerance


def signs(gains: Floats, tolerance: float = 0.0) -> Signs:
    """1 for better, 0 for the same, -1 for worse, and ``UNKNOWN_SIGN`` where the gain is NaN."""
    check_tolerance(tolerance)
    gain_signs = (gains > tolerance).astype(np.int8) - (gains < -tolerance).astype(np.int8)
    return np.where(np.isnan(gains), np.int8(UNKNOWN_SIGN), gain_signs)


def verdicts(old: Floats, new: Floats, direction: Direction, tolerance: float = 0.0) -> Signs:
    """The signs of the gains from the old to the new values."""
    return signs(direction.gain(old, new), tolerance)


def verdict(old: float | None, new: float | None, direction: Direction, tolerance: float = 0.0) -> Verdict | None:
    """How one value changed; None if the old or the new value is missing."""
    if old is None or new is None:
        return None
    sign = int(verdicts(np.array([old]), np.array([new]), direction, tolerance)[0])
    return None if sign == UNKNOWN_SIGN else tuple(Verdict)[1 - sign]


def joint_signs(gains: Sequence[Floats], tolerance: float = 0.0) -> Signs:
    """The combined sign of several measures for each pair; ``UNKNOWN_SIGN`` if the gain of one of them is NaN."""
    if not gains:
        raise ConfigError(
            "outcome: expected at least one measure of effectiveness and one of lean, found one kind only"
        )
    gain_signs = np.stack([signs(gain, tolerance) for gain in gains])
    worst, best = gain_signs.min(axis=0), gain_signs.max(axis=0)
    # The unknown sign is below all others, so the minimum is unknown if one sign is unknown.
    return np.asarray(np.where(worst < 0, worst, best), np.int8)


def outcome_codes(effectiveness: Sequence[Floats], lean: Sequence[Floats], tolerance: float = 0.0) -> Signs:
    """The position of each pair's outcome in ``OUTCOMES``; ``UNKNOWN`` if a gain is NaN."""
    first, second = joint_signs(effectiveness, tolerance), joint_signs(lean, tolerance)
    defined = (first != UNKNOWN_SIGN) & (second != UNKNOWN_SIGN)
    return np.where(defined, 3 * (1 - first) + (1 - second), np.int8(UNKNOWN))


def outcome_of(effectiveness: float | None, lean: float | None, tolerance: float = 0.0) -> Outcome | None:
    """The outcome of one pair of gains; None if one of them is missing."""
    if effectiveness is None or lean is None:
        return None
    code = int(outcome_codes([np.array([effectiveness])], [np.array([lean])], tolerance)[0])
    return None if code == UNKNOWN else Outcome(OUTCOMES[code])
