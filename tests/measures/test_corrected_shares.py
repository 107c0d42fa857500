"""Shares corrected for the errors of a classifier, against shares that are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.measures.statistics.intervals import corrected, drawn_confusions

# Of 1,000 items of each class: the first is taken for the second 300 times, the second never mistaken.
CONFUSION = np.array([[70_000.0, 30_000.0], [0.0, 100_000.0]])


def test_known_shares_come_back_from_what_a_classifier_with_known_errors_finds():
    # 600 of the first and 400 of the second: 420 are taken for the first, 180 + 400 for the second.
    assert corrected(np.array([420.0, 580.0]), CONFUSION) == pytest.approx([600, 400], abs=0.5)


def test_a_classifier_without_errors_is_believed():
    found = np.array([3.0, 5.0, 2.0])
    assert corrected(found, np.eye(3) * 1e6) == pytest.approx(found, abs=1e-3)


def test_each_row_may_have_a_confusion_of_its_own():
    found = np.array([[420.0, 580.0], [420.0, 580.0]])
    both = np.stack([CONFUSION, np.eye(2) * 1e6])
    assert corrected(found, both) == pytest.approx(np.array([[600, 400], [420, 580]]), abs=0.5)


def test_nothing_found_stays_nothing():
    assert corrected(np.zeros((1, 2)), CONFUSION).tolist() == [[0.0, 0.0]]


@given(
    st.lists(st.floats(0, 1e4), min_size=3, max_size=3),
    st.lists(st.lists(st.integers(0, 500), min_size=3, max_size=3), min_size=3, max_size=3),
)
def test_amounts_stay_positive_and_keep_their_sum(found, confusion):
    result = corrected(np.array([found]), np.array(confusion, float))
    assert (result >= 0).all()
    assert result.sum() == pytest.approx(sum(found), rel=1e-6, abs=1e-6)


def test_drawn_confusions_spread_less_the_more_items_were_labeled():
    rng = np.random.default_rng(1)
    few = drawn_confusions(np.array([[7.0, 3.0], [1.0, 9.0]]), 400, rng)
    many = drawn_confusions(np.array([[700.0, 300.0], [100.0, 900.0]]), 400, rng)
    assert (few[:, 0, 0] / 10).std() > 3 * (many[:, 0, 0] / 1000).std()
    assert few.sum(axis=2) == pytest.approx(10)
