"""The selector refairmulate: whatever it chooses leans less, by enough, by more than one measure, and harms nothing."""

import inspect
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selection_toys import BIAS, EFFECTIVENESS, SIGNED, scored, tables

from askew.core.errors import ConfigError
from askew.core.measure import gain_column, old_column
from askew.pairs.refairmulate import RESOLVED, Refairmulate, RefairmulatePaper

NAMES = ["RR@10", "ARaB(tf)@10", "ARaB(tc)@10"]
WAYS = {name: SIGNED[name] for name in NAMES}
FIRST = "ARaB(tf)@10"
ALL_BIAS = " ".join([FIRST, *(name for name in BIAS if name != FIRST)])


def simple(rows, **settings):
    selector = Refairmulate(bias="ARaB(tf)@10 ARaB(tc)@10", **settings)
    return selector.select(scored({"q": rows}, NAMES), WAYS)


def accepted(rows, **settings):
    return simple(rows, **settings)["accepted"].to_list()


def test_a_pair_that_leans_less_by_two_measures_is_accepted_in_every_group_that_leans():
    assert accepted([(0.5, 2.0, 2.0), (0.5, 1.0, 1.0)]) == [True]
    assert accepted([(1.0, 2.0, 2.0), (1.0, 1.0, 1.0)]) == [True]
    assert accepted([(0.5, 0.0, 0.0), (1.0, 0.0, 0.0)]) == [False]
    # The paper accepts the last one: group 3 gains effectiveness and leans no more.
    paper = RefairmulatePaper(bias=FIRST)
    assert paper.select(scored({"q": [(0.5, 0.0, 0.0), (1.0, 0.0, 0.0)]}, NAMES), WAYS)["accepted"].all()


def test_a_reduction_below_the_least_effect_is_not_accepted():
    rows = [(1.0, 2.0, 2.0), (1.0, 1.875, 1.0), (1.0, 1.75, 1.0)]
    assert accepted(rows) == [False, True]
    assert accepted(rows, least_effect=0.0) == [True, True]
    assert accepted(rows, least_effect=0.125) == [False, True]
    assert accepted(rows, least_effect=0.5) == [False, False]


def test_an_original_without_lean_cannot_be_improved():
    rows = [(0.5, 0.0, 2.0), (1.0, 0.0, 1.0)]
    assert accepted(rows) == [False]
    assert accepted(rows, agreeing=1, least_effect=0.0, accept="4: 0 1 2 3") == [False]


def test_as_many_measures_as_named_must_agree_and_none_may_be_worse():
    assert accepted([(1.0, 2.0, 1.0), (1.0, 1.0, 1.0)]) == [False]
    assert accepted([(1.0, 2.0, 1.0), (1.0, 1.0, 1.0)], agreeing=1) == [True]
    assert accepted([(1.0, 2.0, 1.0), (1.0, 1.0, 1.5)], agreeing=1) == [False]


def test_effectiveness_may_not_be_lower_in_any_measure_that_is_named():
    rows = [(1.0, 0.5, 2.0, 2.0), (1.0, 0.25, 1.0, 1.0), (1.0, 0.5, 1.0, 1.0)]
    names = ["RR@10", "AP@10", *NAMES[1:]]
    table, ways = scored({"q": rows}, names), {name: SIGNED[name] for name in names}
    bias = " ".join(["ARaB(tf)@10", "ARaB(tc)@10"])
    both = Refairmulate("RR@10 AP@10", bias).select(table, ways)
    assert both["accepted"].to_list() == [False, True]
    assert Refairmulate("RR@10", bias).select(table, ways)["accepted"].all()


def test_groups_labels_and_scores_are_those_of_the_paper():
    rows = [(0.5, 2.0, 2.0), (1.0, 0.0, 0.0), (1.0, 1.0, 1.0), (0.25, 1.0, 1.0), (0.5, 2.0, 1.0)]
    found = simple(rows)
    paper = RefairmulatePaper(bias="ARaB(tf)@10 ARaB(tc)@10").select(scored({"q": rows}, NAMES), WAYS)
    columns = ["group", "label", "score", "perfect", "negative", "outcome"]
    assert found.select(columns).equals(paper.select(columns))
    assert found["optimal"].to_list() == [True, False, False, False]
    assert found["effective"].to_list() == [False, True, False, False]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"least_effect": -0.1}, "'least_effect' should be from 0 to 1, found -0.1"),
        ({"least_effect": float("nan")}, "'least_effect' should be from 0 to 1"),
        ({"agreeing": 0}, "'agreeing' .* should be from 1 to 3, found 0"),
        ({"bias": FIRST}, "'agreeing' .* should be from 1 to 1, found 2; add measures"),
    ],
)
def test_wrong_settings_are_refused_before_any_work(settings, message):
    with pytest.raises(ConfigError, match=message):
        Refairmulate(**settings)


def test_every_setting_is_part_of_what_names_the_step():
    other = {
        "effectiveness": "AP@10", "bias": "ARaB(tc)@10 ARaB(tf)@10", "least_effect": 0.2, "agreeing": 1,
        "theta_eff": 0.5, "theta_bias": 0.5, "weight_eff": 2.0, "weight_bias": 2.0, "tolerance": 0.5, "accept": "1: 0",
        "optimal_groups": "1", "negative": "both",
    }  # fmt: skip
    assert set(inspect.signature(Refairmulate).parameters) == set(other)
    plain = json.dumps(Refairmulate().settings(), sort_keys=True)
    for key, value in other.items():
        assert json.dumps(Refairmulate(**{key: value}).settings(), sort_keys=True) != plain, key
        assert key in Refairmulate().settings()


def test_lean_about_people_in_general_is_selected_on_unless_another_is_named():
    assert Refairmulate().measures()[1] == RESOLVED.split()[0]


# --- laws ------------------------------------------------------------------------------------------------------------

few = tables([[0.5, 1.0], [0.5, 1.0], *[[0.0, 1.0, -1.0, 0.9375]] * 4], most=8)
CHOSEN = ("optimal", "effective", "fair", "is_best")


@given(table=few, agreeing=st.integers(1, 4), least=st.sampled_from([0.0, 0.0625, 0.1, 0.5]))
def test_every_chosen_pair_leans_less_and_harms_nothing(table, agreeing, least):
    selector = Refairmulate("RR@10 AP@10", ALL_BIAS, agreeing=agreeing, least_effect=least)
    selected = selector.select(table, SIGNED)
    for subset in CHOSEN:
        chosen = selected.filter(subset)
        gain, old = (chosen[name(FIRST)].to_numpy() for name in (gain_column, old_column))
        assert (gain > 0).all()
        assert (gain >= least * np.abs(old)).all()
        assert set(chosen["outcome"]) <= {"better-less", "same-less"}
        better = sum((chosen[gain_column(name)] > 0).cast(pl.Int8) for name in BIAS)
        assert not len(chosen) or (better >= agreeing).all()
        assert not any((chosen[gain_column(name)] < 0).any() for name in [*EFFECTIVENESS, *BIAS])


@given(few)
def test_the_conditions_only_take_away_from_what_the_labels_accept(table):
    found = Refairmulate("RR@10 AP@10", ALL_BIAS).select(table, SIGNED)
    wide = RefairmulatePaper("RR@10 AP@10", ALL_BIAS, accept="1: 0 2; 2: 0 2; 3: 0 2; 4: 0 2").select(table, SIGNED)
    assert not (found["accepted"] & ~wide["accepted"]).any()


@given(few)
def test_fair_is_optimal_and_effective_and_the_best_is_one_of_them(table):
    selected = Refairmulate("RR@10 AP@10", ALL_BIAS).select(table, SIGNED)
    assert selected["fair"].equals(selected["optimal"] | selected["effective"])
    assert not (selected["optimal"] & selected["effective"]).any()
    assert not (selected["is_best"] & ~selected["fair"]).any()
    assert not (selected["negative"] & selected["fair"]).any()
