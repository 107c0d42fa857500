"""Scores with binary labels: the precision/recall curve, the area under it, and the choice of a threshold.

An item is kept if its score is at least the threshold. Equal scores are one point of the curve, without an order among
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from askew.core import defaults
from askew.core.errors import ConfigError, DataError
from askew.core.ranking import Floats, Ints
from askew.measures.statistics.intervals import bca_interval

_CHUNK = 4_000_000
RULES = ("f1", "precision")

Scores = Sequence[float] | Floats
Labels = Sequence[int] | npt.NDArray[np.integer | np.floating]


@dataclass(frozen=True)
class Curve:
    """Precision and recall at each distinct score, the highest score first."""

    thresholds: Floats
    precision: Floats
    recall: Floats
    kept: Ints
    n: int
    positives: int

    @property
    def base_rate(self) -> float:
        """The share of positives: the precision of keeping everything."""
        return self.positives / self.n

    def f1(self) -> Floats:
        """The harmonic mean of precision and recall at each point."""
        total = self.precision + self.recall
        return np.asarray(2 * self.precision * self.recall / np.where(total > 0, total, 1.0))


@dataclass(frozen=True)
class Cut:
    """A threshold, the rule that chose it, and its results on the data it was chosen on."""

    threshold: float
    rule: str
    precision: float
    recall: float
    f1: float
    kept: int


@dataclass(frozen=True)
class AveragePrecision:
    """The area under the precision/recall curve, with an interval over resampled queries."""

    value: float
    low: float
    high: float
    queries: int


@dataclass(frozen=True)
class Calibration:
    """The results of labeled scores: the curve, the area under it, and the chosen threshold."""

    curve: Curve
    average_precision: AveragePrecision
    cut: Cut


def calibrate(
    scores: Scores, labels: Labels, queries: Sequence[str],
    rule: str = defaults.THRESHOLD_RULE, least_precision: float = defaults.LEAST_PRECISION, seed: int = 0,
) -> Calibration:  # fmt: skip
    """The curve of scores with labels 0 and 1, its area, and the threshold by a rule (see ``choose_threshold``)."""
    curve = precision_recall(scores, labels)
    area = average_precision(scores, labels, queries, seed)
    return Calibration(curve, area, choose_threshold(curve, rule, least_precision))


def precision_recall(scores: Scores, labels: Labels) -> Curve:
    """Precision and recall at every distinct score as the threshold."""
    values, truth = _checked(scores, labels)
    order = np.argsort(-values, kind="stable")
    values, truth = values[order], truth[order]
    ends = _ends(values)
    kept, right = ends + 1, np.cumsum(truth)[ends]
    positives = int(truth.sum())
    return Curve(values[ends], right / kept, right / positives, kept, len(values), positives)


def average_precision(
    scores: Scores, labels: Labels, queries: Sequence[str], seed: int = 0, level: float = 0.95
) -> AveragePrecision:
    """The area under the curve with a BCa bootstrap interval (``askew.measures.statistics.intervals``).

    The area is the precision of each point, weighted by the recall that it adds. Whole queries are resampled, not
    pairs: the reformulations of one query are similar, so with pairs the interval would be too narrow. Resamples
    without a positive have no area and are left out.
    """
    values, truth = _checked(scores, labels)
    if len(queries) != len(values):
        raise DataError(f"expected a query for each of {len(values)} scores, found {len(queries)} queries")
    names, groups = np.unique(np.asarray(queries, dtype=str), return_inverse=True)
    order = np.argsort(-values, kind="stable")
    truth, groups, ends = truth[order], groups[order], _ends(values[order])

    def area(drawn: Floats) -> Floats:
        step = max(1, _CHUNK // len(values))
        parts = [_areas(drawn[at : at + step, groups], truth, ends) for at in range(0, len(drawn), step)]
        return np.concatenate(parts)

    value, low, high = bca_interval(area, len(names), seed, level)
    return AveragePrecision(value, low, high, len(names))


def _areas(weights: Floats, truth: Floats, ends: npt.NDArray[np.intp]) -> Floats:
    """The area under the curve for each row of weights; NaN if all positives have the weight 0."""
    kept, right = np.cumsum(weights, axis=1)[:, ends], np.cumsum(weights * truth, axis=1)[:, ends]
    gained, total = np.diff(right, axis=1, prepend=0.0), right[:, -1]
    area = (gained * right / np.where(kept > 0, kept, 1.0)).sum(axis=1)
    return np.asarray(np.where(total > 0, area / np.where(total > 0, total, 1.0), np.nan))


def choose_threshold(
    curve: Curve, rule: str = defaults.THRESHOLD_RULE, least_precision: float = defaults.LEAST_PRECISION
) -> Cut:
    """Choose a threshold. ``f1`` takes the one with the highest F1, and the higher threshold if several are equal.
    ``precision`` takes the lowest threshold with a precision of at least ``least_precision``.
    """
    if rule not in RULES:
        raise ConfigError(f"threshold rule: expected the rule {' or '.join(map(repr, RULES))}, found {rule!r}")
    f1 = curve.f1()
    if rule == "f1":
        at, said = int(np.argmax(f1)), "f1"
    else:
        if not 0 < least_precision <= 1:
            raise ConfigError(f"least_precision: expected a number above 0 and at most 1, found {least_precision}")
        enough = np.flatnonzero(curve.precision >= least_precision)
        if not len(enough):
            highest = float(curve.precision.max())
            raise DataError(
                f"no threshold has a precision of {least_precision:g} or more; the highest precision is {highest:.4f}"
            )
        at, said = int(enough[-1]), f"precision>={least_precision:g}"
    precision, recall, best = (float(column[at]) for column in (curve.precision, curve.recall, f1))
    return Cut(float(curve.thresholds[at]), said, precision, recall, best, int(curve.kept[at]))


def _ends(falling: Floats) -> npt.NDArray[np.intp]:
    """The last position of each run of equal scores."""
    return np.append(np.flatnonzero(np.diff(falling)), len(falling) - 1)


def _checked(scores: Scores, labels: Labels) -> tuple[Floats, Floats]:
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if values.ndim != 1 or values.shape != truth.shape:
        raise DataError(
            f"expected one label for each score, found labels of shape {truth.shape} and scores of shape {values.shape}"
        )
    if not np.isfinite(values).all():
        raise DataError(f"every score must be finite, found {int((~np.isfinite(values)).sum())} that are not finite")
    if not np.isin(truth, (0.0, 1.0)).all():
        raise DataError("expected only the labels 0 and 1, found other labels")
    if not truth.any():
        raise DataError("there is no pair with the label 1: precision and recall need at least one such pair")
    return values, truth
