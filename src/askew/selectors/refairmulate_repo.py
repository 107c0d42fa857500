"""The selection of the Refairmulate repository (``selection.py``), which differs from its paper.

Groups as in the paper's scheme. Labels, over all measures of both sides at once:
    0 all better   1 bias all better, effectiveness all the same   2 effectiveness all better, bias all the same
    3 all the same   4 bias all better, effectiveness all worse   5 effectiveness all better, bias all worse
    6 all worse   7 anything else
(In the paper, labels 1 and 2 are exchanged.) Accepted: group 1 label 3, group 2 label 1, group 3 label 2, group 4
label 0.

The columns are those of the paper's scheme, with these differences:
    score      weight_eff * sum of all effectiveness gains + weight_bias * sum of all bias gains, so two equal
               effectiveness measures count twice, and a measure on a larger scale outweighs the others
    valid      whether a variant may become effective: in group 1 always; in group 2 if its ``valid_bias`` are not all
               zero; in group 3 if it is not effective; in group 4 unless it is effective and zero in ``valid_bias``
    is_best, effective   the valid accepted variant with the highest score, the first of several
    optimal    the last accepted perfect variant of the query, in any group
    optimal_score        always 1, as in the repository
    fair       optimal or effective. No repository script writes Fair; in group 1 a pair can be optimal and effective
    negative   "any": all effectiveness measures worse or all bias measures worse; "both": label 6; "effectiveness": all
               effectiveness measures worse. The repository has no negative samples

Deviations from the repository, where its code is fragile. With its own settings and scales they change no result:
    * "Equal to the threshold" is read as >= for effectiveness and |score| <= for bias; ``valid`` and ``perfect`` follow
      the thresholds, where the repository has the constants 1 and 0.
    * A variant is compared with its own row, not by its position in numbered files.
    * Of a repeated text the first is kept and the others are counted; in the repository, the scores of the last one
      overwrite those of the first. The results differ only if the same text has different scores.
    * White space is ignored in the test whether a variant repeats the original.
    * A missing score is counted; the repository prints an exception.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from askew.core.errors import ConfigError, one_of
from askew.core.measure import Direction
from askew.core.outcome import Signs, check_tolerance, signs
from askew.core.ranking import Flags, Floats, Ints
from askew.selectors.pairs import PairTable, best_rows, make_pairs
from askew.selectors.refairmulate_paper import (
    NEGATIVES,
    SUBSETS,
    all_met,
    all_near_zero,
    check_directions,
    check_weights,
    group_of,
    is_accepted,
    worsens,
)
from askew.selectors.settings import find_measures, finite, measure_texts

REPO_LABELS = tuple(range(8))
REPO_ACCEPT = {1: frozenset({3}), 2: frozenset({1}), 3: frozenset({2}), 4: frozenset({0})}
_MIXED = 2


def side_of(gains: Sequence[Floats], tolerance: float) -> Signs:
    """Return 1, 0 or -1 if the gains of all measures of a side have this sign; 2 if the signs differ."""
    each = np.stack([signs(gain, tolerance) for gain in gains])
    return np.where((each == each[0]).all(axis=0), each[0], np.int8(_MIXED))


def repo_labels(effectiveness: Signs, bias: Signs) -> Ints:
    """Return the eight labels, from the common signs of both sides."""
    # Rows: effectiveness all worse, same, better, mixed; columns: bias likewise.
    table = np.array([[6, 7, 4, 7], [7, 3, 1, 7], [5, 2, 0, 7], [7, 7, 7, 7]])
    return table[effectiveness + 1, bias + 1]


def is_valid(group: Ints, effective: Flags, unbiased: Flags) -> Flags:
    """Mark the variants that may become Effective: mostly those that are not perfect."""
    return np.choose(group - 1, [np.ones(len(group), np.bool_), ~unbiased, ~effective, ~(effective & unbiased)])


class RefairmulateRepo:
    """Eight labels over all measures, acceptance and subsets as in the code of the Refairmulate repository."""

    name = "refairmulate-repo"
    subsets = SUBSETS

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
        self._effectiveness = measure_texts(effectiveness, "effectiveness")
        self._bias = measure_texts(bias, "bias")
        self._valid_bias = measure_texts(valid_bias, "valid_bias")
        self._theta = finite(theta_eff, "theta_eff"), finite(theta_bias, "theta_bias", 0.0)
        self._weights = check_weights(weight_eff, weight_bias)
        self._tolerance = check_tolerance(tolerance)
        self._negative = one_of(negative, NEGATIVES, "negative")

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the scores that determines the selection."""
        return {
            "effectiveness": list(self._effectiveness), "bias": list(self._bias), "valid_bias": list(self._valid_bias),
            "theta_eff": self._theta[0], "theta_bias": self._theta[1],
            "weight_eff": self._weights[0], "weight_bias": self._weights[1],
            "tolerance": self._tolerance, "negative": self._negative,
        }  # fmt: skip

    def measures(self) -> tuple[str, ...]:
        """Return the measures that determine the selection."""
        return tuple(dict.fromkeys([*self._effectiveness, *self._bias, *self._valid_bias]))

    def select(self, scored: pl.DataFrame, directions: Mapping[str, Direction]) -> pl.DataFrame:
        """Return the pairs with the columns that the module describes."""
        return self.select_counted(scored, directions).table

    def select_counted(self, scored: pl.DataFrame, directions: Mapping[str, Direction]) -> PairTable:
        """As ``select``, with the counts of the variants that were left out."""
        effectiveness = find_measures(self._effectiveness, directions, "effectiveness")
        bias = find_measures(self._bias, directions, "bias")
        valid_bias = find_measures(self._valid_bias, directions, "valid_bias")
        if not set(valid_bias) <= set(bias):
            raise ConfigError(
                f"valid_bias: expected only measures of bias ({', '.join(bias)}), found {', '.join(valid_bias)}"
            )
        check_directions(effectiveness, bias, directions)
        pairs = make_pairs(scored, directions, effectiveness, bias, self._tolerance)
        return pairs.with_columns(**self._choose(pairs, effectiveness, bias, valid_bias))

    def _choose(self, pairs: PairTable, effectiveness: Sequence[str], bias: Sequence[str], valid_bias: Any) -> Any:
        met, near = self._theta
        old = all_met(pairs.each("old", effectiveness), met), all_near_zero(pairs.each("old", bias), near)
        new = all_met(pairs.each("new", effectiveness), met), all_near_zero(pairs.each("new", bias), near)
        gains = pairs.each("gain", effectiveness), pairs.each("gain", bias)
        sides = side_of(gains[0], self._tolerance), side_of(gains[1], self._tolerance)
        group, label, perfect = group_of(*old), repo_labels(*sides), new[0] & new[1]
        accepted = is_accepted(group, label, REPO_ACCEPT, REPO_LABELS)
        valid = is_valid(group, new[0], all_near_zero(pairs.each("new", valid_bias), near))
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
