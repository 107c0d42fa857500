"""The subsets Optimal, Effective and Fair of pairs: the selection of the Refairmulate paper with stricter acceptance.

Groups, labels, score and subsets are those of ``askew.selectors.refairmulate_paper``. A pair is accepted only if
    * its label is accepted for its group: by default labels 0 and 2, so that lean is better and effectiveness is
      better or the same by the first measure of each side;
    * the first bias measure decreases by at least ``least_effect`` times the original's absolute value; an original at
      zero cannot be improved;
    * at least ``agreeing`` bias measures are better, the first included, and none of those named is worse;
    * no effectiveness measure is worse.
So every pair of Fair has the outcome better-less or same-less (effectiveness better or the same, less lean). A gain
within the tolerance counts as the same.

The paper accepts pairs with the same lean for groups 1 and 3, decides by the first bias measure alone, and counts a
reduction of any size; ``refairmulate-paper`` follows the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from askew.core.errors import ConfigError
from askew.core.measure import gain_column, old_column
from askew.core.outcome import joint_signs, signs
from askew.core.ranking import Flags
from askew.selectors.pairs import PairTable
from askew.selectors.refairmulate_paper import RefairmulatePaper

LESS_LEAN = "1: 0 2; 2: 0 2; 3: 0 2; 4: 0 2"
RESOLVED = "ARaB(tf,who=generic)@10 ARaB(tc,who=generic)@10 ARaB(bool,who=generic)@10"


class Refairmulate(RefairmulatePaper):
    """Optimal, Effective and Fair as in Refairmulate; every chosen pair has less lean by more than one measure.

    ``least_effect``  the minimum reduction of the first bias measure, as a share of the original's absolute value.
    ``agreeing``      how many of the bias measures must be better, the first included.
    """

    name = "refairmulate"

    def __init__(
        self,
        effectiveness: str = "RR@10",
        bias: str = RESOLVED,
        least_effect: float = 0.1,
        agreeing: int = 2,
        theta_eff: float = 1.0,
        theta_bias: float = 0.0,
        weight_eff: float = 1.0,
        weight_bias: float = 1.0,
        tolerance: float = 0.0,
        accept: str = LESS_LEAN,
        optimal_groups: str = "2 3 4",
        negative: str = "any",
    ) -> None:
        super().__init__(
            effectiveness, bias, theta_eff, theta_bias, weight_eff, weight_bias, tolerance, accept, optimal_groups,
            negative,
        )  # fmt: skip
        if not 0 <= least_effect <= 1:
            raise ConfigError(
                f"the parameter 'least_effect' should be from 0 to 1, found {least_effect}; with 0.1, for example, a "
                "reformulation must reduce the first measure listed in the parameter 'bias' by at least 10%"
            )
        if not 1 <= agreeing <= len(self._bias):
            raise ConfigError(
                "the parameter 'agreeing' (how many of the measures in 'bias' must improve) should be from 1 to "
                f"{len(self._bias)}, found {agreeing}; add measures to 'bias', or set 'agreeing' to another number"
            )
        self._least_effect, self._agreeing = float(least_effect), agreeing

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the scores that determines the selection."""
        return {**super().settings(), "least_effect": self._least_effect, "agreeing": self._agreeing}

    def _holds(self, pairs: PairTable, effectiveness: Sequence[str], bias: Sequence[str]) -> Flags:
        gains = pairs.each("gain", bias)
        less, old = pairs.values(gain_column(bias[0])), pairs.values(old_column(bias[0]))
        large = (less > self._tolerance) & (less >= self._least_effect * np.abs(old))
        agreeing = np.sum([signs(gain, self._tolerance) > 0 for gain in gains], axis=0) >= self._agreeing
        unharmed = joint_signs([*pairs.each("gain", effectiveness), *gains], self._tolerance) >= 0
        return np.asarray(large & agreeing & unharmed, np.bool_)
