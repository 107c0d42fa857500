"""Nine outcomes, by name."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError
from askew.core.outcome import OUTCOMES, UNKNOWN, Outcome, joint_signs, outcome_codes, outcome_of, signs

finite = st.floats(-10, 10)


def test_the_names_are_stable():
    assert OUTCOMES == (
        "better-less", "better-same", "better-more",
        "same-less", "same-same", "same-more",
        "worse-less", "worse-same", "worse-more",
    )  # fmt: skip


def test_each_pair_of_signs_has_its_own_outcome_effectiveness_first():
    words = {1.0: ("better", "less"), 0.0: ("same", "same"), -1.0: ("worse", "more")}
    for effectiveness, lean in itertools.product(words, words):
        assert outcome_of(effectiveness, lean).value == f"{words[effectiveness][0]}-{words[lean][1]}"


def test_gains_within_the_tolerance_are_the_same():
    assert signs(np.array([0.1, 0.11, -0.1, -0.11, 0.0]), 0.1).tolist() == [0, 1, 0, -1, 0]


def test_without_a_tolerance_equality_is_exact():
    assert signs(np.array([5e-324, -5e-324, 0.0, -0.0])).tolist() == [1, -1, 0, 0]


def test_a_missing_score_is_never_equal():
    codes = outcome_codes([np.array([math.nan, 1.0, 1.0])], [np.array([0.0, math.nan, 0.0])], 100.0)
    assert codes.tolist() == [UNKNOWN, UNKNOWN, OUTCOMES.index("same-same")]
    assert outcome_of(math.nan, 0.0, 100.0) is None and outcome_of(0.0, math.nan, 100.0) is None


def test_several_measures_are_better_only_when_none_is_worse():
    first, second = np.array([1.0, 1.0, 1.0, 0.0, 0.0, -1.0]), np.array([1.0, 0.0, -1.0, 0.0, -1.0, -1.0])
    assert joint_signs([first, second]).tolist() == [1, 1, -1, 0, -1, -1]
    assert joint_signs([second, first]).tolist() == [1, 1, -1, 0, -1, -1]


@pytest.mark.parametrize("tolerance", [-0.1, math.nan, math.inf])
def test_a_tolerance_must_be_zero_or_more(tolerance):
    with pytest.raises(ConfigError, match="tolerance: expected"):
        signs(np.zeros(1), tolerance)


def test_a_side_needs_a_measure():
    with pytest.raises(ConfigError, match="one kind only"):
        outcome_codes([], [np.zeros(1)])


@given(finite, finite, st.floats(0, 1))
def test_turning_both_gains_round_turns_the_outcome_round(effectiveness, lean, tolerance):
    there = list(Outcome).index(outcome_of(effectiveness, lean, tolerance))
    back = list(Outcome).index(outcome_of(-effectiveness, -lean, tolerance))
    assert there + back == len(OUTCOMES) - 1


@given(st.lists(st.tuples(finite, finite), min_size=1), st.floats(0, 1))
def test_many_at_once_are_as_each_alone(gains, tolerance):
    effectiveness, lean = np.array(gains).T
    together = [OUTCOMES[code] for code in outcome_codes([effectiveness], [lean], tolerance)]
    assert together == [outcome_of(*pair, tolerance).value for pair in gains]
