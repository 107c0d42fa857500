"""Differences between methods with intervals, and the choice of the headline row of a table.

M - F is the share of queries that the male version of the document wins, minus the share that the female version wins
(see ``scores``). Accuracy and M - F are compared by paired differences of queries with the test for bounded means,
which is valid for every distribution. The interval of a difference of |M - F| is also valid, but wide. The difference
of the distance of logits has an approximate BCa bootstrap interval, with the same resamples for both methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from askew.core.errors import DataError
from askew.core.ranking import Floats
from askew.statistics.bounded import BoundedMean
from askew.statistics.intervals import mean_with_interval
from askew.statistics.resampling import bca_interval
from askew.statistics.significance import holm, two_sided_p
from askew.trainers.card import CardTable
from askew.trainers.grepbias.scores import (
    RowIndex,
    cell_fractions,
    distance_of,
    gap_difference_interval,
    lean_interval,
    nan_mean,
    query_leans,
    query_values,
    right_rows,
    winners,
    zero_shot_rows,
)
from askew.trainers.grepbias.tables import INTERVALS, MethodLogits
from askew.trainers.scores import ScoreInterval

# Accuracies that differ by less than this count as equal: it is the rounding error of a mean.
_SAME = 1e-9
HEADLINE_RULE = (
    "the highest accuracy on held-out queries inside the training categories; of equal ones the smaller |M-F| there; "
    "test categories have no part"
)


@dataclass(frozen=True)
class Headline:
    """The chosen row; ``candidates`` has the method names, held-out accuracies and held-out |M-F|, best first."""

    name: str
    candidates: tuple[tuple[str, float, float], ...]


def headline(results: Sequence[MethodLogits], groups: RowIndex) -> Headline:
    """Pick a row by ``HEADLINE_RULE``. Methods without held-out folds cannot be picked."""
    found = [(one.name, *_held_out(one.inside, groups)) for one in results if one.inside is not None]
    if not found:
        raise DataError(
            "the headline row cannot be chosen, because no method has results on held-out queries of its training "
            "categories"
        )
    ranked = sorted(found, key=lambda one: (-round(one[1] / _SAME), one[2]))
    return Headline(ranked[0][0], tuple(ranked))


def _held_out(inside: Floats, groups: RowIndex) -> tuple[float, float]:
    """Accuracy and |M - F| of held-out logits (seeds by rows): the mean over seeds of the means over categories."""
    values, _ = query_values(right_rows(inside, groups).mean(0), groups)
    shares = nan_mean(cell_fractions(winners(inside, groups), groups), 1)
    return float(values.mean()), float(np.abs(shares[:, 0] - shares[:, 1]).mean())


@dataclass(frozen=True)
class Difference:
    """Differences, new minus old. ``p`` is for the null hypothesis that the mean difference of accuracy is 0."""

    accuracy: ScoreInterval
    p: float
    gap: ScoreInterval
    lean: ScoreInterval
    distance: ScoreInterval


def difference(old: MethodLogits, new: MethodLogits, groups: RowIndex, seed: int = 0) -> Difference:
    """Zero-shot accuracy, |M - F|, M - F and the distance of logits: new minus old, paired by query."""
    values, most = query_values(zero_shot_rows(new.logits, groups) - zero_shot_rows(old.logits, groups), groups)
    found = mean_with_interval(values, (-most, most))
    low, high = (-1.0 if found.low is None else found.low), (1.0 if found.high is None else found.high)
    before, after = distance_of(old.logits, groups), distance_of(new.logits, groups)
    distance = bca_interval(lambda weights: after(weights) - before(weights), len(groups.query_category), seed)
    ours, theirs = query_leans(new.logits, groups), query_leans(old.logits, groups)
    return Difference(
        ScoreInterval(found.mean, max(low, -1.0), min(high, 1.0)),
        two_sided_p(BoundedMean(values, -most, most)) or 0.0, gap_difference_interval(ours, theirs),
        lean_interval(ours.minus(theirs)), ScoreInterval(*distance),
    )  # fmt: skip


def difference_table(title: str, pairs: Sequence[tuple[MethodLogits, MethodLogits]], groups: RowIndex) -> CardTable:
    """One row for each pair of an old and a new method."""
    found = [difference(old, new, groups) for old, new in pairs]
    corrected = holm([one.p for one in found])
    rows = tuple(
        (new.name, _signed(one.accuracy), "< 0.001" if p < 0.001 else f"{p:.3f}",
         *(_signed(value) for value in (one.gap, one.lean, one.distance)))
        for (_, new), one, p in zip(pairs, found, corrected, strict=True)
    )  # fmt: skip
    columns = ("method", "accuracy", "p (Holm)", "|M-F|", "M-F", "M-F distance of logits")
    heading = f"Difference, {title}, {len(groups.query_category)} queries, paired, 95% intervals"
    return CardTable(f"{heading} ({INTERVALS})", columns, rows)


def _signed(one: ScoreInterval) -> str:
    return f"{one.value:+.4f} [{one.low:+.4f}, {one.high:+.4f}]"
