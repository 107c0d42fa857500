"""How good a classifier is on texts it has not seen: accuracy, F1 of each class, calibration, each with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from askew.core.errors import DataError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
RESAMPLES = 2000
BINS = 15


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval over resampled texts."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True)
class ClassifierScores:
    """Of n texts. ``ece`` is the expected calibration error with equal bins of the highest probability.

    Drawn texts can only add to an error of calibration, so its interval lies to the right of a small one.
    """

    n: int
    accuracy: Estimate
    f1: dict[str, Estimate]
    macro_f1: Estimate
    ece: Estimate


def classifier_scores(
    probabilities: Floats, labels: Ints, classes: Sequence[str], seed: int = 0, resamples: int = RESAMPLES
) -> ClassifierScores:
    """All scores of probabilities (texts by classes) against the right classes."""
    if probabilities.shape != (len(labels), len(classes)) or not len(labels):
        raise DataError(f"scores: expected {len(labels)} rows of {len(classes)}, found {probabilities.shape}")
    chosen = probabilities.argmax(1)
    weights = np.vstack([np.ones(len(labels)), _draws(len(labels), seed, resamples)])
    accuracy = weights @ (chosen == labels) / len(labels)
    f1 = np.stack([_f1(chosen == c, labels == c, weights) for c in range(len(classes))])
    ece = _ece(probabilities.max(1), chosen == labels, weights)
    return ClassifierScores(
        len(labels), _estimate(accuracy), {name: _estimate(f1[c]) for c, name in enumerate(classes)},
        _estimate(f1.mean(0)), _estimate(ece),
    )  # fmt: skip


def _draws(n: int, seed: int, resamples: int) -> Floats:
    rng = np.random.default_rng([seed, n])
    return rng.multinomial(n, np.full(n, 1.0 / n), size=resamples).astype(np.float64)


def _f1(said: npt.NDArray[np.bool_], true: npt.NDArray[np.bool_], weights: Floats) -> Floats:
    """2 TP / (said + true) for each row of weights; 0 where there is neither."""
    both, total = weights @ (said & true), weights @ (said.astype(np.float64) + true)
    return np.asarray(2 * both / np.where(total > 0, total, 1.0))


def _ece(sure: Floats, right: npt.NDArray[np.bool_], weights: Floats) -> Floats:
    """The weighted mean over bins of |share that is right - mean probability|."""
    bins = np.minimum((sure * BINS).astype(np.int64), BINS - 1)
    gaps = np.zeros((len(sure), BINS))
    gaps[np.arange(len(sure)), bins] = right - sure
    return np.asarray(np.abs(weights @ gaps).sum(1) / weights.sum(1))


def _estimate(values: Floats) -> Estimate:
    low, high = np.quantile(values[1:], [0.025, 0.975])
    return Estimate(float(values[0]), float(low), float(high))
