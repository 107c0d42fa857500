"""Logistic regression on a few features, out-of-fold predictions, and the area under the ROC curve."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata

Floats = npt.NDArray[np.float64]
FOLDS = 5


def fit_logistic(x: Floats, y: Any, penalty: float) -> tuple[Floats, float]:
    """The weights for the unscaled features, and the bias; the L2 penalty applies to standardized features."""
    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-9
    z = (x - mean) / scale

    def loss(flat: Floats) -> tuple[float, Floats]:
        logit = z @ flat[:-1] + flat[-1]
        wrong = expit(logit) - y
        value = (np.logaddexp(0, logit) - y * logit).sum() + penalty * (flat[:-1] ** 2).sum() / 2
        return float(value), np.append(z.T @ wrong + penalty * flat[:-1], wrong.sum())

    found = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B").x
    weights = found[:-1] / scale
    return weights, float(found[-1] - weights @ mean)


def probabilities(x: Floats, weights: Floats, bias: float) -> Floats:
    """The probability of each row."""
    return np.asarray(expit(x @ weights + bias))


def fold_of(query: str) -> int:
    """The fold of a query; all rows of a query are in the same fold."""
    return int(hashlib.sha256(query.encode()).hexdigest(), 16) % FOLDS


def out_of_fold(x: Floats, y: Any, folds: Any, penalty: float) -> Floats:
    """The probability of each row by the regression that was fit on the other folds."""
    found = np.zeros(len(y))
    for fold in np.unique(folds):
        here = folds == fold
        found[here] = probabilities(x[here], *fit_logistic(x[~here], y[~here], penalty))
    return found


def roc_area(scores: Any, right: Any) -> float:
    """The area under the ROC curve; NaN if there is only one class."""
    positive = int(right.sum())
    if positive in (0, len(right)):
        return float("nan")
    above = rankdata(scores)[right > 0].sum() - positive * (positive + 1) / 2
    return float(above / (positive * (len(right) - positive)))
