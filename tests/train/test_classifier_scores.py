"""Accuracy, F1 and calibration by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import DataError
from askew.train.scores import classifier_scores


def test_scores_of_five_texts_worked_out_by_hand():
    probabilities = np.array([[0.8, 0.2], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7], [0.9, 0.1]])
    labels = np.array([0, 1, 1, 0, 0])
    found = classifier_scores(probabilities, labels, ("x", "y"))
    assert found.accuracy.value == pytest.approx(3 / 5)
    assert found.f1["x"].value == pytest.approx(2 * 2 / (3 + 3))
    assert found.f1["y"].value == pytest.approx(2 * 1 / (2 + 2))
    assert found.macro_f1.value == pytest.approx((2 / 3 + 1 / 2) / 2)
    # Bins of width 1/15: 0.6 | 0.7 | 0.8 0.8 | 0.9; |sums| of (right - sure): 0.4, 0.7, |0.2 - 0.8|, 0.1
    assert found.ece.value == pytest.approx((0.4 + 0.7 + 0.6 + 0.1) / 5)


def test_a_classifier_that_is_as_sure_as_it_is_right_has_no_error_of_calibration():
    probabilities = np.array([[0.75, 0.25]] * 4)
    found = classifier_scores(probabilities, np.array([0, 0, 0, 1]), ("x", "y"))
    assert found.ece.value == pytest.approx(0.0)


@given(st.integers(0, 50), st.integers(4, 40))
def test_intervals_hold_their_value_and_stay_within_zero_and_one(seed, n):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(3), n)
    found = classifier_scores(probabilities, rng.integers(0, 3, n), ("a", "b", "c"), resamples=200)
    for one in (found.accuracy, found.macro_f1, *found.f1.values()):
        assert 0 <= one.low <= one.high <= 1
    assert found.accuracy.low <= found.accuracy.value <= found.accuracy.high


def test_rows_that_do_not_fit_the_labels_are_told():
    with pytest.raises(DataError, match=r"expected 2 rows of 2 probabilities, found shape \(3, 2\)"):
        classifier_scores(np.ones((3, 2)), np.array([0, 1]), ("x", "y"))
