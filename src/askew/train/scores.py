"""Evaluate a classifier on held-out texts: accuracy, F1 of each class and calibration, each with an interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from askew.core.errors import DataError
from askew.core.measure import Bounds
from askew.core.ranking import Floats, Ints
from askew.measures.statistics.intervals import LEVEL, RESAMPLES, bca_interval, mean_with_interval

BINS = 15


@dataclass(frozen=True)
class ScoreInterval:
    """A value with its 95% interval over texts."""

    value: float
    low: float
    high: float

    @classmethod
    def of_mean(cls, values: Floats, bounds: Bounds, limits: Bounds, level: float = LEVEL) -> ScoreInterval:
        """The mean of values within ``bounds``; its interval is within ``limits``."""
        found = mean_with_interval(values, bounds, level)
        low, high = (limit if end is None else end for limit, end in zip(limits, (found.low, found.high), strict=True))
        return cls(found.mean, max(low, limits[0]), min(high, limits[1]))

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True)
class ClassifierScores:
    """The scores of a classifier on n texts. ``ece`` is the expected calibration error: the highest probability of a
    text is assigned to one of 15 bins of equal width.

    The interval of the accuracy is exact. The intervals of F1 and calibration are from a BCa bootstrap.
    """

    n: int
    accuracy: ScoreInterval
    f1: dict[str, ScoreInterval]
    macro_f1: ScoreInterval
    ece: ScoreInterval


def classifier_scores(
    probabilities: Floats, labels: Ints, classes: Sequence[str], resamples: int = RESAMPLES
) -> ClassifierScores:
    """All scores of probabilities (texts by classes) against the true classes; text order has no effect."""
    if probabilities.shape != (len(labels), len(classes)) or not len(labels):
        raise DataError(
            f"scores: expected {len(labels)} rows of {len(classes)} probabilities, found shape {probabilities.shape}"
        )
    order = np.lexsort((*probabilities.T, labels))
    probabilities, labels = probabilities[order], labels[order]
    chosen, sure = probabilities.argmax(1), probabilities.max(1)

    def estimate(statistic: Callable[[Floats], Floats]) -> ScoreInterval:
        return ScoreInterval(*bca_interval(statistic, len(labels), 0, resamples=resamples))

    def f1(weights: Floats, c: int) -> Floats:
        """2 TP / (predicted + true) for each row of weights; 0 if both are zero."""
        predicted, true = chosen == c, labels == c
        both, total = weights @ (predicted & true), weights @ (predicted.astype(np.float64) + true)
        return np.asarray(2 * both / np.where(total > 0, total, 1.0))

    def ece(weights: Floats) -> Floats:
        """The weighted mean over bins of |accuracy - mean probability|."""
        gaps = np.zeros((len(sure), BINS))
        gaps[np.arange(len(sure)), np.minimum((sure * BINS).astype(np.int64), BINS - 1)] = (chosen == labels) - sure
        return np.asarray(np.abs(weights @ gaps).sum(1) / weights.sum(1))

    return ClassifierScores(
        len(labels),
        ScoreInterval.of_mean((chosen == labels).astype(np.float64), (0.0, 1.0), (0.0, 1.0)),
        {name: estimate(partial(f1, c=c)) for c, name in enumerate(classes)},
        estimate(lambda weights: np.stack([f1(weights, c) for c in range(len(classes))]).mean(0)),
        estimate(ece),
    )
