"""The selection of the Refairmulate paper: groups, labels, acceptance, score and subsets.

Groups, by the original (all measures of a side, effectiveness or bias, must meet its threshold)
    1 effective and unbiased   2 effective only   3 unbiased only   4 neither
Labels (Eq. 1), by the gains of the first measure named on each side
    0 both better   1 effectiveness better, bias the same   2 effectiveness the same, bias better
    3 both the same   4 anything else
Accepted
    group 1: labels 0 1 2 3   group 2: 0 2   group 3: 0 1   group 4: 0

Columns added to the pairs
    group      1 to 4
    label      0 to 4
    accepted   whether the label is accepted for the group
    score      weight_eff * gain of the first effectiveness measure + weight_bias * gain of the first bias measure
    perfect    the variant itself is effective and unbiased
    is_best    the accepted variant of its query with the highest score; of equal scores, the first
    optimal    the best accepted perfect variant of its query, if the query's group is one of ``optimal_groups``
    effective  the best accepted variant of its query that cannot be optimal
    fair       optimal or effective; the two subsets have no pair in common, and no other pairs are added
    negative   a variant that worsens: one side or the other ("any"), both sides ("both"), or "effectiveness"
    optimal_score  the score written with an optimal pair (here: its score)

Deviations from the paper, and the reasons
    * Eq. 4 as printed adds the difference new - old of bias, which rewards more bias. Here gains are added, so that
      larger is better on both sides, as in the public code.
    * The text says of label 4 "worse on both"; Eq. 1 says "otherwise", and Eq. 1 is followed. ``negative="both"`` is
      the other reading.
    * The paper gives no thresholds; 1 and 0 are those of the public code. "Effective" is >= and "unbiased" is
      |score| <=, which is the same at 1 and 0 and also makes sense at other thresholds.
    * The paper says "Fair combines both with additional pairs"; by the published counts and means nothing was added.
    * Published Optimal files contain only groups 2 to 4, and Effective files groups 1 to 4: an original that is perfect
      already has nothing to gain. ``optimal_groups="1 2 3 4"`` allows optimal pairs in group 1 too.
    * The abstract describes Effective as "higher effectiveness and lower bias" (label 0), section 4 as labels 0 and 2.
      The published files contain the labels accepted for each group, as here. ``accept`` can restrict the labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from askew.core.errors import ConfigError, one_of
from askew.core.measure import Direction, gain_column
from askew.core.outcome import Signs, check_tolerance, signs
from askew.core.ranking import Flags, Floats, Ints
from askew.selectors.pairs import PairTable, best_rows, make_pairs
from askew.selectors.settings import find_measures, finite, measure_texts, parts, whole_numbers

GROUPS, LABELS = (1, 2, 3, 4), (0, 1, 2, 3, 4)
SUBSETS = ("optimal", "effective", "fair", "negative")
NEGATIVES = ("any", "both", "effectiveness")


def all_met(effectiveness: Sequence[Floats], threshold: float) -> Flags:
    """Mark the rows where every effectiveness score reaches the threshold."""
    return np.asarray(np.all([values >= threshold for values in effectiveness], axis=0))


def all_near_zero(bias: Sequence[Floats], threshold: float) -> Flags:
    """Mark the rows where every bias score is no further from zero than the threshold."""
    return np.asarray(np.all([np.abs(values) <= threshold for values in bias], axis=0))


def group_of(effective: Flags, unbiased: Flags) -> Ints:
    """The group of each original."""
    return 4 - 2 * effective.astype(np.int64) - unbiased


def paper_labels(effectiveness: Signs, bias: Signs) -> Ints:
    """Return the labels of Eq. 1, from the signs of the gains of both sides."""
    # Rows: effectiveness worse, same, better; columns: bias worse, same, better.
    table = np.array([[4, 4, 4], [4, 3, 2], [4, 1, 0]])
    return table[effectiveness + 1, bias + 1]


def is_accepted(group: Ints, label: Ints, accept: Mapping[int, frozenset[int]], labels: Sequence[int]) -> Flags:
    """Mark the rows whose label is accepted for their group."""
    table = np.array([[one in accept.get(each, ()) for one in labels] for each in GROUPS])
    return np.asarray(table[group - 1, label], np.bool_)


def worsens(effectiveness: Flags, bias: Flags, negative: str) -> Flags:
    """Mark the negative samples, given the variants with worse effectiveness and those with worse bias."""
    if negative == "effectiveness":
        return effectiveness
    return effectiveness | bias if negative == "any" else effectiveness & bias


def check_directions(effectiveness: Sequence[str], bias: Sequence[str], directions: Mapping[str, Direction]) -> None:
    """Refuse measures without meaningful thresholds: effectiveness must be best when high, bias when near zero."""
    for name in effectiveness:
        if directions[name] is not Direction.UP:
            raise ConfigError(
                f"refairmulate: expected an effectiveness measure for which higher is better, found {name}"
            )
    for name in bias:
        if directions[name] not in (Direction.ZERO, Direction.DOWN):
            raise ConfigError(
                f"refairmulate: expected a bias measure that is best at zero, found {name}; "
                "the selectors 'pareto' and 'epsilon' accept any measure"
            )


def read_accept(text: str) -> dict[int, frozenset[int]]:
    """Read ``1: 0 1 2 3; 2: 0 2``: the labels accepted for each group."""
    read = parts(text, "accept")
    unknown = [group for group in read if group not in map(str, GROUPS)]
    if unknown:
        raise ConfigError(
            "the parameter 'accept' lists the accepted labels of each group of queries, as in '1: 0 2; 4: 0'. The "
            f"number before a colon is the number of a group and should be one of {', '.join(map(str, GROUPS))}, found "
            f"{unknown[0]!r}"
        )
    return {int(group): whole_numbers(labels, LABELS, f"accept, group {group}") for group, labels in read.items()}


def check_weights(effectiveness: float, bias: float) -> tuple[float, float]:
    """The weights of the score: of zero or more, and not both zero."""
    found = finite(effectiveness, "weight_eff", 0.0), finite(bias, "weight_bias", 0.0)
    if not any(found):
        raise ConfigError("weight_eff and weight_bias: expected at least one of them above zero, found zero for both")
    return found


class RefairmulatePaper:
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
        self._weights = check_weights(weight_eff, weight_bias)
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

    def select(self, scored: pl.DataFrame, directions: Mapping[str, Direction]) -> pl.DataFrame:
        """Return the pairs with the columns that the module describes."""
        return self.select_counted(scored, directions).table

    def select_counted(self, scored: pl.DataFrame, directions: Mapping[str, Direction]) -> PairTable:
        """As ``select``, with the counts of the variants that were left out."""
        effectiveness = find_measures(self._effectiveness, directions, "effectiveness")
        bias = find_measures(self._bias, directions, "bias")
        check_directions(effectiveness, bias, directions)
        pairs = make_pairs(scored, directions, effectiveness, bias, self._tolerance)
        return pairs.with_columns(**self._choose(pairs, effectiveness, bias))

    def _choose(self, pairs: PairTable, effectiveness: Sequence[str], bias: Sequence[str]) -> dict[str, Any]:
        group = group_of(self._effective(pairs, "old", effectiveness), self._unbiased(pairs, "old", bias))
        perfect = self._effective(pairs, "new", effectiveness) & self._unbiased(pairs, "new", bias)
        gains = pairs.values(gain_column(effectiveness[0])), pairs.values(gain_column(bias[0]))
        sides = signs(gains[0], self._tolerance), signs(gains[1], self._tolerance)
        label = paper_labels(*sides)
        accepted = is_accepted(group, label, self._accept, LABELS) & self._holds(pairs, effectiveness, bias)
        score = self._weights[0] * gains[0] + self._weights[1] * gains[1]
        best = [
            best_rows(pairs.query, pairs.queries, [score], eligible)
            for eligible in _eligible(accepted, perfect & np.isin(group, list(self._optimal_groups)))
        ]
        return {
            "group": group.astype(np.int8), "label": label.astype(np.int8), "accepted": accepted, "score": score,
            "perfect": perfect, "is_best": best[0], "optimal": best[1], "effective": best[2], "fair": best[1] | best[2],
            "negative": worsens(sides[0] < 0, sides[1] < 0, self._negative),
            "optimal_score": pl.Series(np.where(best[1], score, np.nan)).fill_nan(None),
        }  # fmt: skip

    def _holds(self, pairs: PairTable, effectiveness: Sequence[str], bias: Sequence[str]) -> Flags:
        """Whether each pair meets the conditions of acceptance other than the label; the paper has none."""
        return np.ones(len(pairs.query), np.bool_)

    def _effective(self, pairs: PairTable, when: str, measures: Sequence[str]) -> Flags:
        return all_met(pairs.each(when, measures), self._theta[0])

    def _unbiased(self, pairs: PairTable, when: str, measures: Sequence[str]) -> Flags:
        return all_near_zero(pairs.each(when, measures), self._theta[1])


def _eligible(accepted: Flags, can_be_optimal: Flags) -> tuple[Flags, Flags, Flags]:
    """Return which rows may be the best, the optimal and the effective variant of their query."""
    return accepted, accepted & can_be_optimal, accepted & ~can_be_optimal
