"""The measures of effectiveness and lean that decide about a reformulation, and the verdict on their gains."""

from __future__ import annotations

from collections.abc import Mapping
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
        (found,) = self.outcomes(_columns(gains), 1)
        return None if found is None else Outcome(found)

    def lean_verdict(self, gains: Gains) -> str | None:
        """Return the change of lean alone: less, same or more."""
        return self.lean_verdicts(_columns(gains), 1)[0]

    def outcomes(self, gains: Mapping[str, Floats], rows: int) -> list[str | None]:
        """As ``outcome``, for ``rows`` pairs whose gains are columns with NaN for a missing gain."""
        if not self.effectiveness or not self.lean:
            return [None] * rows
        first, second = ([_column(gains, name, rows) for name in side] for side in (self.effectiveness, self.lean))
        codes = outcome_codes(first, second, self.tolerance).tolist()
        return [None if code == UNKNOWN else OUTCOMES[code] for code in codes]

    def lean_verdicts(self, gains: Mapping[str, Floats], rows: int) -> list[str | None]:
        """As ``lean_verdict``, for ``rows`` pairs whose gains are columns with NaN for a missing gain."""
        if not self.lean:
            return [None] * rows
        signs = joint_signs([_column(gains, name, rows) for name in self.lean], self.tolerance)
        return [None if sign == UNKNOWN_SIGN else tuple(Verdict)[1 - sign].lean for sign in signs.tolist()]


def _columns(gains: Gains) -> dict[str, Floats]:
    return {name: np.array([np.nan if value is None else value]) for name, value in gains.items()}


def _column(gains: Mapping[str, Floats], name: str, rows: int) -> Floats:
    return gains[name] if name in gains else np.full(rows, np.nan)
