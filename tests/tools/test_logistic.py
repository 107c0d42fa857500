"""Logistic regressions on a few features: what is fit, what is predicted out of fold, and the area of scores."""

import numpy as np
import pytest
from training.logistic import FOLDS, fit_logistic, fold_of, out_of_fold, probabilities, roc_area


def rows(seed=0, n=400):
    chance = np.random.default_rng(seed)
    x = chance.normal(size=(n, 3)) * [1.0, 100.0, 0.01] + [0.0, 5.0, -2.0]
    logit = 2 * x[:, 0] + 0.01 * (x[:, 1] - 5)
    return x, (chance.random(n) < 1 / (1 + np.exp(-logit))).astype(float)


def test_the_weights_that_made_the_labels_are_found():
    x, y = rows(n=20_000)
    weights, bias = fit_logistic(x, y, 0.1)
    assert weights[:2] == pytest.approx([2.0, 0.01], rel=0.1)
    assert probabilities(x, weights, bias).mean() == pytest.approx(y.mean(), abs=1e-3)


def test_the_penalty_is_on_scaled_features():
    x, y = rows()
    weights, bias = fit_logistic(x, y, 10.0)
    scaled, moved = fit_logistic(x * [3.0, 0.5, 1000.0] + 7, y, 10.0)
    assert scaled * [3.0, 0.5, 1000.0] == pytest.approx(weights, rel=1e-3, abs=1e-4)
    assert moved + (scaled * 7).sum() == pytest.approx(bias, rel=1e-2)
    strict, _ = fit_logistic(x, y, 1000.0)
    assert (np.abs(strict) < np.abs(weights)).all()


def test_a_feature_that_never_changes_has_no_effect():
    x, y = rows()
    constant = np.hstack([x, np.ones((len(x), 1))])
    found = probabilities(constant, *fit_logistic(constant, y, 10.0))
    assert found == pytest.approx(probabilities(x, *fit_logistic(x, y, 10.0)), abs=1e-3)


def test_a_row_has_no_part_in_the_regression_that_predicts_it():
    x, y = rows()
    folds = np.arange(len(y)) % FOLDS
    before = out_of_fold(x, y, folds, 10.0)
    flipped = np.where(folds == 2, 1 - y, y)
    after = out_of_fold(x, flipped, folds, 10.0)
    assert after[folds == 2] == pytest.approx(before[folds == 2])
    assert np.abs(after - before)[folds != 2].max() > 0.05


def test_queries_are_spread_over_all_folds_and_each_is_in_one():
    assert {fold_of(str(i)) for i in range(50)} == set(range(FOLDS))
    assert fold_of("red car") == fold_of("red car")


def test_the_area_is_the_share_of_pairs_in_order_and_ties_count_half():
    right = np.array([True, False, True, False])
    assert roc_area(np.array([0.9, 0.1, 0.4, 0.4]), right) == 0.875  # of 4 pairs 3 in order, one equal
    assert roc_area(np.array([0.9, 0.1, 0.4, 0.4]), right.astype(float)) == 0.875
    assert np.isnan(roc_area(np.array([0.9, 0.1]), np.array([True, True])))
