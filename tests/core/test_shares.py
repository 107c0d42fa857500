"""Intervals of shares."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError
from askew.measures.statistics.intervals import wilson


def test_wilson_as_newcombe_prints_it():
    # Newcombe, Statistics in Medicine 17 (1998), Table I, method 3.
    for count, n, low, high in [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611),
                                (1, 29, 0.0061, 0.1718)]:  # fmt: skip
        assert wilson(count, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 200), st.integers(0, 200))
def test_wilson_holds_its_share_and_is_the_same_from_the_other_side(yes, no):
    low, high = wilson(yes, yes + no)
    if yes + no == 0:
        assert math.isnan(low) and math.isnan(high)
        return
    assert 0 <= low <= yes / (yes + no) <= high <= 1
    assert wilson(no, yes + no) == pytest.approx((1 - high, 1 - low))


def test_more_than_all_is_no_share():
    with pytest.raises(ConfigError):
        wilson(3, 2)
