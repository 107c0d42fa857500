"""What logits say: accuracy of each cell, whose version of a document wins, and intervals over queries.

A cell is a training category and a test category; its rows are those of the test category. Of each query the relevant
document has three versions. The version with the highest logit wins; the query counts where that logit is above zero
(it is retrieved, and rightly) and where the male and the female version do not have the same logit.

Intervals are over queries, with the trained models as they are. An accuracy is a mean of one value for each query, so
its interval inverts the test for bounded means. M - F is a mean of shares of the queries that count, |M - F| takes
absolute values of it, the distance is a root: none of them is a mean over queries. Their intervals are from the
corrected bootstrap, which is approximate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from askew.core.ranking import Flags, Floats, Ints
from askew.statistics.intervals import mean_with_interval
from askew.statistics.resampling import bca_interval
from askew.trainers.scores import ScoreInterval

GENDERS = ("M", "F", "N")
NO_WINNER = -1


@dataclass(frozen=True)
class RowIndex:
    """Where things stand among the rows: the category of each row and query, and the versions of each query.

    ``versions`` are queries by M, F, N: rows of the relevant document. ``query_of`` is the query of each row.
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
    """The places of rows and queries; a query without all three versions of its relevant document is in no triple."""
    queries, query_of = np.unique(query, return_inverse=True)
    versions = np.full((len(queries), len(GENDERS)), -1, np.int64)
    for row in np.flatnonzero(relevant & np.isin(gender, GENDERS)):
        versions[query_of[row], GENDERS.index(str(gender[row]))] = row
    row_category = np.array([list(names).index(str(one)) for one in category], np.int64)
    query_category = np.zeros(len(queries), np.int64)
    query_category[query_of] = row_category
    return RowIndex(tuple(names), row_category, query_category, versions, query_of.astype(np.int64), relevant)


def right_rows(logits: Floats, groups: RowIndex) -> Flags:
    """Whether each row is told rightly; ``logits`` are anything whose last axis are the rows."""
    return np.asarray((logits > 0) == groups.relevant)


def cell_accuracy(logits: Floats, groups: RowIndex) -> Floats:
    """Trainings by test categories, from trainings by rows."""
    right = right_rows(logits, groups)
    return np.stack([right[:, groups.row_category == c].mean(1) for c in range(len(groups.names))], axis=1)


def winners(logits: Floats, groups: RowIndex) -> Ints:
    """Whose version wins for each training and query: 0 M, 1 F, 2 N; -1 where the query does not count."""
    whole = (groups.versions >= 0).all(1)
    z = logits[:, np.maximum(groups.versions, 0)]
    best = z.argmax(2)
    counts = (z.max(2) > 0) & (z[:, :, 0] != z[:, :, 1]) & whole
    return np.where(counts, best, NO_WINNER)


def cell_fractions(won: Ints, groups: RowIndex) -> Floats:
    """Trainings by test categories by M, F, N; not a number where no query counts."""
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
    """M - F of each training; fractions are averaged over all test categories, its own among them (as published)."""
    averages = nan_mean(fractions, 1)
    return np.asarray(averages[:, 0] - averages[:, 1])


def nan_mean(values: Floats, axis: int) -> Floats:
    """The mean of what is there; 0 where nothing is."""
    there = ~np.isnan(values)
    return np.asarray(np.where(there, values, 0.0).sum(axis) / np.maximum(there.sum(axis), 1))


@dataclass(frozen=True)
class Summary:
    """A method on all cells: means over seeds and trainings, intervals over queries.

    ``zero_shot``  accuracy on the other categories.
    ``gap``        mean over trainings of |M - F|. Drawn queries can only widen it: the interval is approximate.
    ``lean``       mean over trainings of M - F with its sign, which has no such pull.
    ``distance``   root mean squared difference between the logits of the male and the female version of a relevant
                   document of another category, in standard deviations of the logits.
    ``fitted``     accuracy on the training category itself, its training rows (as published).
    ``inside``     accuracy on held-out queries of the training category.
    """

    zero_shot: ScoreInterval
    gap: ScoreInterval
    lean: ScoreInterval
    distance: ScoreInterval
    fitted: ScoreInterval
    inside: ScoreInterval | None
    by_seed: tuple[tuple[float, float], ...]


def summarise(logits: Floats, groups: RowIndex, inside: Floats | None = None, seed: int = 0) -> Summary:
    """From logits of seeds by trainings by rows; ``inside`` are logits of seeds by rows, of held-out folds."""
    fitted = right_rows(logits, groups).mean(0)[groups.row_category, np.arange(len(groups.row_category))]
    held_out = None if inside is None else accuracy_interval(right_rows(inside, groups).mean(0), groups)
    accuracy = [average_zero_shot(cell_accuracy(one, groups)).mean() for one in logits]
    gaps = [float(gap_of(one[None], groups)(np.ones((1, len(groups.query_category))))[0]) for one in logits]
    gap, lean, distance = (
        ScoreInterval(*bca_interval(statistic(logits, groups), len(groups.query_category), seed))
        for statistic in (gap_of, lean_of, distance_of)
    )
    return Summary(
        accuracy_interval(zero_shot_rows(logits, groups), groups), gap, lean, distance,
        accuracy_interval(fitted, groups), held_out,
        tuple((float(a), g) for a, g in zip(accuracy, gaps, strict=True)),
    )  # fmt: skip


def zero_shot_rows(logits: Floats, groups: RowIndex) -> Floats:
    """How often each row is right: the share of seeds and trainings on other categories."""
    other = np.arange(len(groups.names))[:, None] != groups.row_category
    return np.asarray((right_rows(logits, groups).mean(0) * other).sum(0) / other.sum(0))


def query_values(rows: Floats, groups: RowIndex) -> tuple[Floats, float]:
    """One value for each query, whose mean is the mean over categories of the means over their rows; and the largest
    that a row's value of 1 can make it."""
    in_category = np.bincount(groups.row_category, minlength=len(groups.names))[groups.query_category]
    factor = len(groups.query_category) / (len(groups.names) * in_category)
    most = float((factor * np.bincount(groups.query_of)).max())
    return np.asarray(factor * np.bincount(groups.query_of, rows, len(factor)), np.float64), most


def accuracy_interval(rows: Floats, groups: RowIndex) -> ScoreInterval:
    """The mean over categories of values of rows between 0 and 1, by the test for bounded means of queries."""
    values, most = query_values(rows, groups)
    found = mean_with_interval(values, (0.0, most))
    return ScoreInterval(found.mean, found.low or 0.0, 1.0 if found.high is None else min(found.high, 1.0))


# Statistics as functions of weights of the queries (draws by queries), the mean over seeds and trainings.
Statistic = Callable[[Floats], Floats]


def gap_of(logits: Floats, groups: RowIndex) -> Statistic:
    """|M - F|: the absolute value for each seed and training first."""
    return _weighted(logits, lambda one, weights: np.abs(_leans(one, groups, weights)))


def lean_of(logits: Floats, groups: RowIndex) -> Statistic:
    """M - F with its sign."""
    return _weighted(logits, lambda one, weights: _leans(one, groups, weights))


def distance_of(logits: Floats, groups: RowIndex) -> Statistic:
    """The distance between the logits of the male and the female version."""
    return _weighted(logits, lambda one, weights: _distance(one, groups, weights))


def _weighted(logits: Floats, by_training: Callable[[Floats, Floats], Floats]) -> Statistic:
    return lambda weights: np.asarray(np.mean([by_training(one, weights).mean(1) for one in logits], axis=0))


def _leans(logits: Floats, groups: RowIndex, weights: Floats) -> Floats:
    """M - F of draws by trainings, of shares averaged over categories."""
    won = winners(logits, groups)
    shares = []
    for c in range(len(groups.names)):
        here = groups.query_category == c
        male, female, neutral = (weights[:, here] @ (won[:, here] == g).T.astype(np.float64) for g in range(3))
        total = male + female + neutral
        shares.append(np.where(total > 0, (male - female) / np.where(total > 0, total, 1.0), np.nan))
    return nan_mean(np.stack(shares, 2), 2)


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
