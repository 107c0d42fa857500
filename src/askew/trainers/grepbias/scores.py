"""Scores from logits: the accuracy of each cell, the gender of the winning version, and intervals over queries.

A cell is a pair of a training category and a test category; its rows are the rows of the test category. The relevant
document of each query has a male, a female and a neutral version (M, F, N), and the version with the highest logit
wins. A query counts if that logit is above zero (the document is correctly classified) and the male and the female
version have different logits. M - F is the share of counted queries that M wins, minus the share
that F wins, averaged over categories.

Intervals are over queries, with the trained models fixed. Accuracy and M - F are sums of one bounded value for each
query, so their intervals invert the test for bounded means; for M - F, the set of counted queries is taken as fixed.
|M - F| is a mean of absolute values, for which a bootstrap is biased away from zero. Its interval is derived from
simultaneous intervals (Bonferroni) of M - F of all trainings. The distance is the root of a mean of unbounded values;
it has an approximate BCa bootstrap interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from askew.core.errors import DataError
from askew.core.ranking import Flags, Floats, Ints
from askew.statistics.intervals import LEVEL, mean_with_interval
from askew.statistics.resampling import bca_interval
from askew.trainers.scores import ScoreInterval

GENDERS = ("M", "F", "N")
NO_WINNER = -1


@dataclass(frozen=True)
class RowIndex:
    """An index of the rows: the category of each row and query, and the versions of the relevant document.

    ``versions`` has the row of each version, queries by M, F, N. ``query_of`` is the query of each row.
    """

    names: tuple[str, ...]
    row_category: Ints
    query_category: Ints
    versions: Ints
    query_of: Ints
    relevant: Flags


def group_rows(
    names: Sequence[str], category: npt.NDArray[np.str_], query: npt.NDArray[np.str_],
    relevant: Flags, gender: npt.NDArray[np.str_],
) -> RowIndex:  # fmt: skip
    """Index the rows; a version of a relevant document that does not exist is -1 in ``versions``."""
    queries, query_of = np.unique(query, return_inverse=True)
    versions = np.full((len(queries), len(GENDERS)), -1, np.int64)
    for row in np.flatnonzero(relevant & np.isin(gender, GENDERS)):
        versions[query_of[row], GENDERS.index(str(gender[row]))] = row
    row_category = np.array([list(names).index(str(one)) for one in category], np.int64)
    query_category = np.zeros(len(queries), np.int64)
    query_category[query_of] = row_category
    return RowIndex(tuple(names), row_category, query_category, versions, query_of.astype(np.int64), relevant)


def right_rows(logits: Floats, groups: RowIndex) -> Flags:
    """Whether each row is classified correctly; the last axis of ``logits`` is the rows."""
    return np.asarray((logits > 0) == groups.relevant)


def cell_accuracy(logits: Floats, groups: RowIndex) -> Floats:
    """The accuracy, trainings by test categories, from logits, trainings by rows."""
    right = right_rows(logits, groups)
    return np.stack([right[:, groups.row_category == c].mean(1) for c in range(len(groups.names))], axis=1)


def winners(logits: Floats, groups: RowIndex) -> Ints:
    """The winning version for each training and query: 0 M, 1 F, 2 N; -1 if the query does not count."""
    whole = (groups.versions >= 0).all(1)
    z = logits[:, np.maximum(groups.versions, 0)]
    best = z.argmax(2)
    counts = (z.max(2) > 0) & (z[:, :, 0] != z[:, :, 1]) & whole
    return np.where(counts, best, NO_WINNER)


def cell_fractions(won: Ints, groups: RowIndex) -> Floats:
    """The shares of winners, trainings by test categories by M, F, N; NaN if no query counts."""
    shares = []
    for c in range(len(groups.names)):
        inside = won[:, groups.query_category == c]
        counted = (inside != NO_WINNER).sum(1)
        shares.append(
            np.stack(
                [
                    np.where(counted > 0, (inside == g).sum(1) / np.maximum(counted, 1), np.nan)
                    for g in range(len(GENDERS))
                ],
                1,
            )
        )
    return np.stack(shares, axis=1)


def average_zero_shot(accuracy: Floats) -> Floats:
    """Average*: the mean of each row of a square table without its diagonal."""
    size = len(accuracy)
    return np.asarray((accuracy.sum(1) - np.diag(accuracy)) / (size - 1))


def male_minus_female(fractions: Floats) -> Floats:
    """M - F of each training; fractions are averaged over all categories, including the training one (as published)."""
    averages = nan_mean(fractions, 1)
    return np.asarray(averages[:, 0] - averages[:, 1])


def nan_mean(values: Floats, axis: int) -> Floats:
    """The mean of the values that are not NaN; 0 if there are none."""
    there = ~np.isnan(values)
    return np.asarray(np.where(there, values, 0.0).sum(axis) / np.maximum(there.sum(axis), 1))


@dataclass(frozen=True)
class Summary:
    """A method on all cells: means over seeds and trainings, intervals over queries.

    ``zero_shot``  accuracy on the other categories.
    ``gap``        mean over trainings of |M - F|.
    ``lean``       mean over trainings of M - F with its sign.
    ``distance``   root mean squared difference between the logits of the male and the female version of a relevant
                   document of another category, in standard deviations of the logits.
    ``fitted``     accuracy on the training rows (as published).
    ``inside``     accuracy on held-out queries of the training category.
    """

    zero_shot: ScoreInterval
    gap: ScoreInterval
    lean: ScoreInterval
    distance: ScoreInterval
    fitted: ScoreInterval
    inside: ScoreInterval | None
    by_seed: tuple[tuple[float, float], ...]


def summarize(logits: Floats, groups: RowIndex, inside: Floats | None = None, seed: int = 0) -> Summary:
    """Summarize logits, seeds by trainings by rows; ``inside`` has the logits of held-out folds, seeds by rows."""
    fitted = right_rows(logits, groups).mean(0)[groups.row_category, np.arange(len(groups.row_category))]
    held_out = None if inside is None else accuracy_interval(right_rows(inside, groups).mean(0), groups)
    accuracy = [average_zero_shot(cell_accuracy(one, groups)).mean() for one in logits]
    leans = query_leans(logits, groups)
    gaps = np.abs(leans.parts.sum(2)).mean(1)
    distance = bca_interval(distance_of(logits, groups), len(groups.query_category), seed)
    return Summary(
        accuracy_interval(zero_shot_rows(logits, groups), groups), gap_interval(leans), lean_interval(leans),
        ScoreInterval(*distance), accuracy_interval(fitted, groups), held_out,
        tuple((float(a), float(g)) for a, g in zip(accuracy, gaps, strict=True)),
    )  # fmt: skip


def zero_shot_rows(logits: Floats, groups: RowIndex) -> Floats:
    """The share of seeds and trainings on other categories that classify each row correctly."""
    other = np.arange(len(groups.names))[:, None] != groups.row_category
    return np.asarray((right_rows(logits, groups).mean(0) * other).sum(0) / other.sum(0))


def query_values(rows: Floats, groups: RowIndex) -> tuple[Floats, float]:
    """One value for each query, and the upper bound of these values for row values up to 1. The mean of the values is
    the mean over categories of the means over their rows."""
    in_category = np.bincount(groups.row_category, minlength=len(groups.names))[groups.query_category]
    factor = len(groups.query_category) / (len(groups.names) * in_category)
    most = float((factor * np.bincount(groups.query_of)).max())
    return np.asarray(factor * np.bincount(groups.query_of, rows, len(factor)), np.float64), most


def accuracy_interval(rows: Floats, groups: RowIndex) -> ScoreInterval:
    """The mean over categories of row values between 0 and 1, with an interval by the test for bounded means."""
    values, most = query_values(rows, groups)
    found = mean_with_interval(values, (0.0, most))
    return ScoreInterval(found.mean, found.low or 0.0, 1.0 if found.high is None else min(found.high, 1.0))


@dataclass(frozen=True)
class QueryLeans:
    """The contribution of each query to M - F of each seed and training, and its largest possible size (``reach``).

    Both are seeds by trainings by queries. A query that does not count contributes 0.
    """

    parts: Floats
    reach: Floats

    def minus(self, other: QueryLeans) -> QueryLeans:
        """The difference of two methods for each seed; one method may have a single seed."""
        seeds = len(self.parts), len(other.parts)
        if seeds[0] != seeds[1] and 1 not in seeds:
            raise DataError(
                "differences: expected the same number of seeds for both methods, or a single seed for one method; "
                f"found {seeds[0]} and {seeds[1]} seeds"
            )
        return QueryLeans(self.parts - other.parts, self.reach + other.reach)


def query_leans(logits: Floats, groups: RowIndex) -> QueryLeans:
    """The contributions to M - F, which is the mean over categories of (wins of M - wins of F) / counted queries."""
    won = np.stack([winners(one, groups) for one in logits])
    of_category = groups.query_category == np.arange(len(groups.names))[:, None]
    counted = np.einsum("stq,cq->stc", (won != NO_WINNER).astype(np.float64), of_category.astype(np.float64))
    there = np.maximum((counted > 0).sum(2), 1)[:, :, None]
    reach = (won != NO_WINNER) / (there * np.maximum(counted, 1))[:, :, groups.query_category]
    return QueryLeans(reach * ((won == 0).astype(np.float64) - (won == 1)), np.asarray(reach))


def lean_interval(leans: QueryLeans) -> ScoreInterval:
    """The mean of M - F over seeds and trainings."""
    return _sum_interval(leans.parts.mean((0, 1)), leans.reach.mean((0, 1)), LEVEL)


def gap_interval(leans: QueryLeans) -> ScoreInterval:
    """The mean of |M - F|, with an interval from simultaneous intervals of all seeds and trainings."""
    ends = [(abs(one.low), abs(one.high), one.low <= 0 <= one.high) for one in _at_once(leans)]
    low = np.mean([0.0 if zero else min(a, b) for a, b, zero in ends])
    return ScoreInterval(_gap(leans), float(low), float(np.mean([max(a, b) for a, b, _ in ends])))


def gap_difference_interval(new: QueryLeans, old: QueryLeans) -> ScoreInterval:
    """|M - F| of new minus |M - F| of old; an absolute value changes by at most the change of the value."""
    most = float(np.mean([max(abs(one.low), abs(one.high)) for one in _at_once(new.minus(old))]))
    return ScoreInterval(_gap(new) - _gap(old), max(-most, -1.0), min(most, 1.0))


def _gap(leans: QueryLeans) -> float:
    return float(np.abs(leans.parts.sum(2)).mean())


def _at_once(leans: QueryLeans) -> list[ScoreInterval]:
    parts, reach = (one.reshape(-1, one.shape[-1]) for one in (leans.parts, leans.reach))
    level = 1 - (1 - LEVEL) / len(parts)
    return [_sum_interval(own, most, level) for own, most in zip(parts, reach, strict=True)]


def _sum_interval(parts: Floats, reach: Floats, level: float) -> ScoreInterval:
    """The sum of the contributions of queries, each bounded by its reach; queries with a reach of 0 are left out."""
    here = np.flatnonzero(reach > 0)
    limit = math.ceil(float(reach.sum()) - 1e-9)  # 1, or 2 for a difference
    if not len(here):
        return ScoreInterval(0.0, -1.0, 1.0)
    bound = len(here) * float(reach.max())
    found = mean_with_interval(len(here) * parts[here], (-bound, bound), level)
    low, high = (-limit if found.low is None else found.low), (limit if found.high is None else found.high)
    return ScoreInterval(found.mean, max(low, -limit), min(high, limit))


def distance_of(logits: Floats, groups: RowIndex) -> Callable[[Floats], Floats]:
    """A function that returns the distance between the logits of the male and the female version.

    It is the mean over seeds and trainings. The argument of the function is the weights, resamples by queries.
    """
    return lambda weights: np.asarray(np.mean([_distance(one, groups, weights).mean(1) for one in logits], axis=0))


def _distance(logits: Floats, groups: RowIndex, weights: Floats) -> Floats:
    found = []
    whole = (groups.versions >= 0).all(1)
    for t, z in enumerate(logits):
        here = (groups.query_category != t) & whole
        squares = (z[groups.versions[here, 0]] - z[groups.versions[here, 1]]) ** 2
        spread = z[groups.row_category != t].std()
        w = weights[:, here]
        found.append(np.sqrt((w @ squares) / np.maximum(w.sum(1), 1e-12)) / max(float(spread), 1e-12))
    return np.stack(found, 1)
