"""What logits say: accuracy of each cell, whose version of a document wins, and intervals over queries.

A cell is a training category and a test category; its rows are those of the test category. Of each query the relevant
document has three versions. The version with the highest logit wins; the query counts where that logit is above zero
(it is retrieved, and rightly) and where the male and the female version do not have the same logit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from askew.core.ranking import Flags, Floats, Ints
from askew.trainers.scores import ScoreInterval

RESAMPLES = 2000
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
    """A method on all cells: means over seeds and trainings, intervals over resampled queries.

    ``zero_shot``  accuracy on the other categories.
    ``gap``        mean over trainings of |M - F|. Drawn queries can only widen it, so where there is little of it
                   the interval lies to its right.
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
    weights = np.vstack([np.ones(len(groups.query_category)), _resampled(groups, seed)])
    by_seed = np.stack([_points(one, groups, weights) for one in logits])
    found = [_estimate(points) for points in by_seed.mean(0)]
    held_out = None if inside is None else _estimate(_inside(inside, groups, weights))
    spread = tuple((float(one[0, 0]), float(one[1, 0])) for one in by_seed)
    return Summary(found[0], found[1], found[2], found[3], found[4], held_out, spread)


def _resampled(groups: RowIndex, seed: int) -> Floats:
    """How often each query is drawn: as many of each category as there are."""
    rng = np.random.default_rng([seed, len(groups.query_category)])
    weights = np.zeros((RESAMPLES, len(groups.query_category)))
    for c in range(len(groups.names)):
        places = np.flatnonzero(groups.query_category == c)
        weights[:, places] = rng.multinomial(len(places), np.full(len(places), 1 / len(places)), size=RESAMPLES)
    return weights


def _points(logits: Floats, groups: RowIndex, weights: Floats) -> Floats:
    """Zero-shot accuracy, |M - F|, M - F, distance and fitted accuracy for each row of weights of the queries."""
    accuracy, averages = _weighted_cells(logits, groups, weights)
    fitted = np.einsum("btt->bt", accuracy)
    zero_shot = (accuracy.sum(2) - fitted) / (len(groups.names) - 1)
    lean = averages[:, :, 0] - averages[:, :, 1]
    columns = (zero_shot, np.abs(lean), lean, _distance(logits, groups, weights), fitted)
    return np.stack([column.mean(1) for column in columns])


def _weighted_cells(logits: Floats, groups: RowIndex, weights: Floats) -> tuple[Floats, Floats]:
    """Accuracy of draws by trainings by categories, and the shares of M, F, N averaged over categories."""
    per_query = np.stack([_by_query(one, groups) for one in right_rows(logits, groups).astype(np.float64)])
    rows_of = _by_query(np.ones(len(groups.query_of)), groups)
    won = winners(logits, groups)
    accuracy, shares = [], []
    for c in range(len(groups.names)):
        here = groups.query_category == c
        w = weights[:, here]
        accuracy.append((w @ per_query[:, here].T) / (w @ rows_of[here])[:, None])
        counts = np.stack([w @ (won[:, here] == g).T.astype(np.float64) for g in range(len(GENDERS))], 2)
        total = counts.sum(2, keepdims=True)
        shares.append(np.where(total > 0, counts / np.maximum(total, 1), np.nan))
    return np.stack(accuracy, 2), nan_mean(np.stack(shares, 2), 2)


def _distance(logits: Floats, groups: RowIndex, weights: Floats) -> Floats:
    found = []
    whole = (groups.versions >= 0).all(1)
    for t, z in enumerate(logits):
        here = (groups.query_category != t) & whole
        squares = (z[groups.versions[here, 0]] - z[groups.versions[here, 1]]) ** 2
        spread = z[groups.row_category != t].std()
        w = weights[:, here]
        found.append(np.sqrt((w @ squares) / w.sum(1)) / max(float(spread), 1e-12))
    return np.stack(found, 1)


def _by_query(values: Floats, groups: RowIndex) -> Floats:
    return np.asarray(np.bincount(groups.query_of, values, len(groups.query_category)), np.float64)


def _inside(inside: Floats, groups: RowIndex, weights: Floats) -> Floats:
    """Accuracy on held-out queries of the training category itself: the mean over the categories."""
    right = _by_query(right_rows(inside, groups).mean(0), groups)
    rows_of = _by_query(np.ones(len(groups.query_of)), groups)
    found = []
    for c in range(len(groups.names)):
        here = groups.query_category == c
        found.append((weights[:, here] @ right[here]) / (weights[:, here] @ rows_of[here]))
    return np.asarray(np.mean(found, axis=0))


def _estimate(values: Floats) -> ScoreInterval:
    """The first is of all queries as they are, the others of draws."""
    low, high = np.quantile(values[1:], [0.025, 0.975])
    return ScoreInterval(float(values[0]), float(low), float(high))
