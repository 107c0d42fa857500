"""Kendall's tau-b between many orders: by hand, as SciPy has it, and its laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from askew.measures.statistics.significance import pair_signs, tau_b

ROWS = arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(2, 7)), elements=st.integers(-3, 3).map(lambda n: n / 4)
)


def test_tau_by_hand():
    # Of three pairs, two have the same order and one the other: (2 - 1) / 3.
    assert tau_b(pair_signs(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]])))[0, 1] == pytest.approx(1 / 3)
    # The second order has one tie: 2 / sqrt(3 * 2).
    assert tau_b(pair_signs(np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 3.0]])))[0, 1] == pytest.approx(2 / math.sqrt(6))


def test_values_that_differ_by_rounding_only_are_equal():
    assert pair_signs(np.array([[0.1 + 0.2, 0.3, 0.4]])).tolist() == [[0, 1, 1]]


@given(ROWS)
def test_the_matrix_is_symmetric_and_every_order_agrees_with_itself(values):
    tau = tau_b(pair_signs(values))
    assert np.array_equal(tau, tau.T, equal_nan=True)
    equal = np.ptp(values, axis=1) == 0
    assert np.array_equal(np.diag(tau), np.where(equal, np.nan, 1.0), equal_nan=True)
    assert np.nanmax(np.abs(tau), initial=0.0) <= 1.0


@given(ROWS)
def test_each_tau_is_that_of_scipy(values):
    from scipy.stats import kendalltau

    tau = tau_b(pair_signs(values))
    for i, one in enumerate(values):
        for j, other in enumerate(values):
            assert tau[i, j] == pytest.approx(kendalltau(one, other).statistic, abs=1e-12, nan_ok=True)
