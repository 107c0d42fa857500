"""The measures of effectiveness and lean that decide about a reformulation, and the verdict on their gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from askew.core.outcome import OUTCOMES, UNKNOWN, UNKNOWN_SIGN, Outcome, Verdict, joint_signs, outcome_codes
from askew.core.ranking import Floats

Gains = Mapping[str, float | None]


@dataclass(frozen=True)
class Sides:
    """The measures of effectiveness and of lean that a selection decides by, and its tolerance.

    The verdicts are the same as in the dataset: effectiveness or lean is worse if one of its measures is worse.
    """

    effectiveness: tuple[str, ...]
    lean: tuple[str, ...]
    tolerance: float = 0.0

    def outcome(self, gains: Gains) -> Outcome | None:
        """Return the outcome of both sides; None if a gain is missing, for instance without judgements."""
        if not self.effectiveness or not self.lean:
            return None
        code = int(outcome_codes(_columns(self.effectiveness, gains), _columns(self.lean, gains), self.tolerance)[0])
        return None if code == UNKNOWN else Outcome(OUTCOMES[code])

    def lean_verdict(self, gains: Gains) -> str | None:
        """Return the change of lean alone: less, same or more."""
        if not self.lean:
            return None
        sign = int(joint_signs(_columns(self.lean, gains), self.tolerance)[0])
        return None if sign == UNKNOWN_SIGN else tuple(Verdict)[1 - sign].lean


def _columns(measures: Sequence[str], gains: Gains) -> list[Floats]:
    values = (gains.get(name) for name in measures)
    return [np.array([np.nan if value is None else value]) for value in values]
