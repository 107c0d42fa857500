"""The subsets Optimal, Effective and Fair of pairs: the selection of the Refairmulate paper with stricter acceptance.

Groups, labels, score and subsets are those of ``askew.pairs.refairmulate``. A pair is accepted only if
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
import polars as pl

from askew.core.errors import ConfigError, one_of
from askew.core.measure import Direction, gain_column, old_column
from askew.core.outcome import Signs, check_tolerance, joint_signs, signs
from askew.core.ranking import Flags, Floats, Ints
from askew.pairs.gains import (
    PairTable,
    Selector,
    best_rows,
    find_measures,
    finite,
    measure_texts,
    parts,
    whole_numbers,
)

# The selection of the Refairmulate paper: groups, labels, acceptance, score and subsets.

GROUPS, LABELS = (1, 2, 3, 4), (0, 1, 2, 3, 4)
SUBSETS = ("optimal", "effective", "fair", "negative")
NEGATIVES = ("any", "both", "effectiveness")


def all_met(effectiveness: Sequence[Floats], threshold: float) -> Flags:
    """Mark the rows where every effectiveness score reaches the threshold."""
    return np.asarray(np.all([values >= threshold for values in effectiveness], axis=0))


def all_near_zero(bias: Sequence[Floats], threshold: float) -> Flags:
    """Mark the rows where every bias score is no further from zero than the threshold."""
    return np.asarray(np.all([np.abs(values) <= threshold for values in bias], axis=0))


# The labels of Eq. 1. Rows: effectiveness worse, same, better; columns: bias worse, same, better.
_PAPER_LABELS = np.array([[4, 4, 4], [4, 3, 2], [4, 1, 0]])


def is_accepted(group: Ints, label: Ints, accept: Mapping[int, frozenset[int]], labels: Sequence[int]) -> Flags:
    """Mark the rows whose label is accepted for their group."""
    table = np.array([[one in accept.get(each, ()) for one in labels] for each in GROUPS])
    return np.asarray(table[group - 1, label], np.bool_)


def worsens(effectiveness: Flags, bias: Flags, negative: str) -> Flags:
    """Mark the negative samples, given the variants with worse effectiveness and those with worse bias."""
    if negative == "effectiveness":
        return effectiveness
    return effectiveness | bias if negative == "any" else effectiveness & bias


def read_accept(text: str) -> dict[int, frozenset[int]]:
    """Read ``1: 0 1 2 3; 2: 0 2``: the labels accepted for each group."""
    read = parts(text, "accept")
    unknown = [group for group in read if group not in map(str, GROUPS)]
    if unknown:
        raise ConfigError(
            f"accept: expected the labels of groups 1 to 4, as in '1: 0 2; 4: 0'; found the group {unknown[0]!r}"
        )
    return {int(group): whole_numbers(labels, LABELS, f"accept, group {group}") for group, labels in read.items()}


class RefairmulatePaper(Selector):
    """Groups, labels and subsets (Optimal, Effective, Fair, negative) as the Refairmulate paper defines them."""

    name = "refairmulate-paper"
    subsets = SUBSETS

    def __init__(
        self,
        effectiveness: str = "RR@10",
        bias: str = "ARaB(tf)@10 ARaB(tc)@10 ARaB(bool)@10 LexiconShare@10",
        theta_eff: float = 1.0,
        theta_bias: float = 0.0,
        weight_eff: float = 1.0,
        weight_bias: float = 1.0,
        tolerance: float = 0.0,
        accept: str = "1: 0 1 2 3; 2: 0 2; 3: 0 1; 4: 0",
        optimal_groups: str = "2 3 4",
        negative: str = "any",
    ) -> None:
        self._effectiveness = measure_texts(effectiveness, "effectiveness")
        self._bias = measure_texts(bias, "bias")
        self._theta = finite(theta_eff, "theta_eff"), finite(theta_bias, "theta_bias", 0.0)
        self._weights = finite(weight_eff, "weight_eff", 0.0), finite(weight_bias, "weight_bias", 0.0)
        if not any(self._weights):
            both = "weight_eff and weight_bias"
            raise ConfigError(f"{both}: expected at least one of them above zero, found zero for both")
        self._tolerance, self._accept = check_tolerance(tolerance), read_accept(accept)
        self._optimal_groups = whole_numbers(optimal_groups, GROUPS, "optimal_groups")
        self._negative = one_of(negative, NEGATIVES, "negative")

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the scores that determines the selection."""
        return {
            "effectiveness": list(self._effectiveness), "bias": list(self._bias),
            "theta_eff": self._theta[0], "theta_bias": self._theta[1],
            "weight_eff": self._weights[0], "weight_bias": self._weights[1], "tolerance": self._tolerance,
            "accept": {str(group): sorted(labels) for group, labels in sorted(self._accept.items())},
            "optimal_groups": sorted(self._optimal_groups), "negative": self._negative,
        }  # fmt: skip

    def measures(self) -> tuple[str, ...]:
        """Return the measures that determine the selection."""
        return (*self._effectiveness, *self._bias)

    def sides(self, directions: Mapping[str, Direction]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the measures of both sides by their names in the scores.

        Measures without meaningful thresholds are refused: effectiveness must be best when high, bias when near zero.
        """
        effectiveness = find_measures(self._effectiveness, directions, "effectiveness")
        bias = find_measures(self._bias, directions, "bias")
        for name in effectiveness:
            if directions[name] is not Direction.UP:
                raise ConfigError(
                    f"refairmulate: expected an effectiveness measure for which higher is better, found {name}"
                )
        for name in bias:
            if directions[name] not in (Direction.ZERO, Direction.DOWN):
                raise ConfigError(
                    f"refairmulate: expected a bias measure that is best at zero, found {name}; "
                    "the selector 'boxes' accepts any measure of bias"
                )
        return effectiveness, bias

    def choose(self, pairs: PairTable) -> dict[str, Any]:
        """Return the columns that the module describes."""
        effectiveness, bias = self.sides(pairs.directions)
        group, effective, unbiased = self._states(pairs, effectiveness, bias)
        perfect = effective & unbiased
        gains = pairs.values(gain_column(effectiveness[0])), pairs.values(gain_column(bias[0]))
        sides = signs(gains[0], self._tolerance), signs(gains[1], self._tolerance)
        label = _PAPER_LABELS[sides[0] + 1, sides[1] + 1]
        accepted = is_accepted(group, label, self._accept, LABELS) & self._holds(pairs, effectiveness, bias)
        score = self._weights[0] * gains[0] + self._weights[1] * gains[1]
        can_be_optimal = perfect & np.isin(group, list(self._optimal_groups))
        best, optimal, other = (
            best_rows(pairs.query, pairs.queries, [score], eligible)
            for eligible in (accepted, accepted & can_be_optimal, accepted & ~can_be_optimal)
        )
        return {
            "group": group.astype(np.int8), "label": label.astype(np.int8), "accepted": accepted, "score": score,
            "perfect": perfect, "is_best": best, "optimal": optimal, "effective": other, "fair": optimal | other,
            "negative": worsens(sides[0] < 0, sides[1] < 0, self._negative),
            "optimal_score": pl.Series(np.where(optimal, score, np.nan)).fill_nan(None),
        }  # fmt: skip

    def _states(self, pairs: PairTable, effectiveness: Sequence[str], bias: Sequence[str]) -> tuple[Ints, Flags, Flags]:
        """The group of each original, and whether its candidate meets the thresholds of effectiveness and of lean."""
        met, near = self._theta
        old, new = (
            (all_met(pairs.each(when, effectiveness), met), all_near_zero(pairs.each(when, bias), near))
            for when in ("old", "new")
        )
        return 4 - 2 * old[0].astype(np.int64) - old[1], *new

    def _holds(self, pairs: PairTable, effectiveness: Sequence[str], bias: Sequence[str]) -> Flags:
        """Whether each pair meets the conditions of acceptance other than the label; the paper has none."""
        return np.ones(len(pairs.query), np.bool_)


# The selection of the Refairmulate repository (``selection.py``), which differs from its paper.

REPO_LABELS = tuple(range(8))
REPO_ACCEPT = {1: frozenset({3}), 2: frozenset({1}), 3: frozenset({2}), 4: frozenset({0})}
_MIXED = 2


def side_of(gains: Sequence[Floats], tolerance: float) -> Signs:
    """Return 1, 0 or -1 if the gains of all measures of a side have this sign; 2 if the signs differ."""
    each = np.stack([signs(gain, tolerance) for gain in gains])
    return np.where((each == each[0]).all(axis=0), each[0], np.int8(_MIXED))


# The eight labels. Rows: effectiveness all worse, same, better, mixed; columns: bias likewise.
_REPO_LABELS = np.array([[6, 7, 4, 7], [7, 3, 1, 7], [5, 2, 0, 7], [7, 7, 7, 7]])


class RefairmulateRepo(RefairmulatePaper):
    """Eight labels over all measures, acceptance and subsets as in the code of the Refairmulate repository."""

    name = "refairmulate-repo"

    def __init__(
        self,
        effectiveness: str = "RR@10 AP@10",
        bias: str = "LexiconShare@10 ARaB(tc)@10 ARaB(tf)@10 ARaB(bool)@10",
        valid_bias: str = "ARaB(tc)@10 ARaB(tf)@10 ARaB(bool)@10",
        theta_eff: float = 1.0,
        theta_bias: float = 0.0,
        weight_eff: float = 1.0,
        weight_bias: float = 1.0,
        tolerance: float = 0.0,
        negative: str = "any",
    ) -> None:
        super().__init__(
            effectiveness, bias, theta_eff, theta_bias, weight_eff, weight_bias, tolerance, negative=negative
        )
        self._valid_bias = measure_texts(valid_bias, "valid_bias")

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the scores that determines the selection."""
        shared = {name: value for name, value in super().settings().items() if name not in ("accept", "optimal_groups")}
        return {**shared, "valid_bias": list(self._valid_bias)}

    def measures(self) -> tuple[str, ...]:
        """Return the measures that determine the selection."""
        return tuple(dict.fromkeys([*self._effectiveness, *self._bias, *self._valid_bias]))

    def choose(self, pairs: PairTable) -> dict[str, Any]:
        """Return the columns that the module describes."""
        effectiveness, bias = self.sides(pairs.directions)
        valid_bias = find_measures(self._valid_bias, pairs.directions, "valid_bias")
        if not set(valid_bias) <= set(bias):
            raise ConfigError(
                f"valid_bias: expected only measures of bias ({', '.join(bias)}), found {', '.join(valid_bias)}"
            )
        group, effective, every_unbiased = self._states(pairs, effectiveness, bias)
        gains = pairs.each("gain", effectiveness), pairs.each("gain", bias)
        sides = side_of(gains[0], self._tolerance), side_of(gains[1], self._tolerance)
        label, perfect = _REPO_LABELS[sides[0] + 1, sides[1] + 1], effective & every_unbiased
        accepted = is_accepted(group, label, REPO_ACCEPT, REPO_LABELS)
        unbiased = all_near_zero(pairs.each("new", valid_bias), self._theta[1])
        # The variants that may become Effective: mostly those that are not perfect.
        may = [np.ones(len(group), np.bool_), ~unbiased, ~effective, ~(effective & unbiased)]
        valid = np.choose(group - 1, may)
        score = self._weights[0] * _total(gains[0]) + self._weights[1] * _total(gains[1])
        best = best_rows(pairs.query, pairs.queries, [score], accepted & valid)
        optimal = best_rows(pairs.query, pairs.queries, [], accepted & perfect, last=True)
        return {
            "group": group.astype(np.int8), "label": label.astype(np.int8), "accepted": accepted, "score": score,
            "perfect": perfect, "valid": valid, "is_best": best, "optimal": optimal, "effective": best,
            "fair": optimal | best, "negative": worsens(sides[0] == -1, sides[1] == -1, self._negative),
            "optimal_score": pl.Series(np.where(optimal, 1.0, np.nan)).fill_nan(None),
        }  # fmt: skip


def _total(gains: Sequence[Floats]) -> Floats:
    """Add the gains one after the other, as the repository does: another order could round to another best variant."""
    total = np.zeros_like(gains[0])
    for gain in gains:
        total = total + gain
    return total


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
