"""Means before and after, intervals, and RePair's counts."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selection_toys import TWO, scored

from askew.core.errors import DataError
from askew.core.measure import Direction
from askew.measures.statistics.intervals import change_interval
from askew.pairs.gains import make_pairs
from askew.pairs.summary import summarize

NAMES = list(TWO)


def selected():
    rows = {
        "a": [(0.5, 2.0), (1.0, -1.0), (0.25, 3.0)], "b": [(0.25, -1.0), (0.25, 0.5)], "c": [(0.75, 0.0), (0.5, 0.0)],
    }  # fmt: skip
    table = make_pairs(scored(rows, NAMES), TWO).table
    return table.with_columns(every=pl.lit(True), some=pl.Series([True, False, True, False]), nobody=pl.lit(False))


def row(table, subset, measure):
    return table.filter((pl.col("subset") == subset) & (pl.col("measure") == measure)).row(0, named=True)


def test_means_and_their_change_by_hand():
    found = row(summarize(selected(), TWO, ["every"]), "every", "RR@10")
    assert (found["pairs"], found["queries"]) == (4, 3)
    # Old: 0.5, 0.5, 0.25, 0.75; new: 1, 0.25, 0.25, 0.5.
    assert (found["old_mean"], found["new_mean"], found["change"]) == (0.5, 0.5, 0.0)
    assert (found["improved_pairs"], found["unchanged_pairs"], found["worsened_pairs"]) == (1, 1, 2)
    assert found["low"] is None or found["low"] <= 0
    assert found["of"] == "score"


def test_a_signed_measure_is_summed_up_by_its_distance_from_zero():
    found = row(summarize(selected(), TWO, ["every"]), "every", "ARaB(tf)@10")
    # Old: 2, 2, 1, 0; new: 1, 3, 0.5, 0.
    assert (found["old_mean"], found["new_mean"], found["change"]) == (1.25, 1.125, pytest.approx(-10))
    assert (found["improved_pairs"], found["unchanged_pairs"], found["worsened_pairs"]) == (2, 1, 1)
    assert found["zero_pairs"] == 1
    assert found["of"] == "distance from zero"


def test_each_subset_and_measure_has_a_row():
    found = summarize(selected(), TWO, ["every", "some", "nobody"])
    assert found.select("subset", "measure").rows() == [(s, m) for s in ("every", "some", "nobody") for m in NAMES]
    assert row(found, "some", "RR@10")["change"] == pytest.approx(100 * (1.25 / 0.75 - 1))
    empty = row(found, "nobody", "RR@10")
    assert (empty["pairs"], empty["queries"], empty["old_mean"], empty["change"], empty["low"]) == (
        0,
        0,
        None,
        None,
        None,
    )


def test_a_change_from_zero_is_not_a_percentage():
    table = make_pairs(scored({"a": [(0.5, 0.0), (1.0, 1.0)]}, NAMES), TWO).table.with_columns(every=pl.lit(True))
    found = row(summarize(table, TWO, ["every"]), "every", "ARaB(tf)@10")
    assert (found["new_mean"], found["change"], found["low"], found["high"]) == (1.0, None, None, None)


def test_pairs_without_a_score_are_not_in_the_means():
    rows = {"a": [(0.5, 1.0, 4.0), (1.0, 1.0, 2.0)], "b": [(0.5, 1.0, 4.0), (1.0, 1.0, math.nan)]}
    directions = {**TWO, "LexiconShare@10": Direction.DOWN}
    table = make_pairs(scored(rows, [*NAMES, "LexiconShare@10"]), directions).table.with_columns(every=pl.lit(True))
    found = row(summarize(table, directions, ["every"]), "every", "LexiconShare@10")
    assert (found["pairs"], found["queries"], found["change"], found["improved_pairs"]) == (1, 1, -50.0, 1)


def test_the_tolerance_decides_who_is_helped():
    found = row(summarize(selected(), TWO, ["every"], tolerance=0.3), "every", "RR@10")
    assert (found["improved_pairs"], found["unchanged_pairs"], found["worsened_pairs"]) == (1, 3, 0)


def test_wrong_requests_are_refused():
    with pytest.raises(DataError, match="column 'fair'"):
        summarize(selected(), TWO, ["fair"])


def test_the_interval_is_near_that_of_resampling_whole_queries():
    generator = np.random.default_rng(5)
    query, old, new = np.repeat(np.arange(40), 3), generator.random(120) + 0.2, generator.random(120)
    low, high = change_interval(query, old, new)
    resampled = []
    for _ in range(4000):
        rows = np.concatenate([np.flatnonzero(query == q) for q in generator.integers(0, 40, 40)])
        resampled.append(100 * (new[rows].mean() - old[rows].mean()) / old[rows].mean())
    assert (low, high) == pytest.approx(np.quantile(resampled, [0.025, 0.975]), abs=2.5)


def test_pairs_of_one_query_count_together():
    # Ten times the same pair says no more about queries than the pair alone.
    old, new = np.array([1.0, 1.0, 2.0]), np.array([0.5, 1.0, 1.0])
    once = change_interval(np.arange(3), old, new)
    assert change_interval(np.repeat(np.arange(3), 10), np.repeat(old, 10), np.repeat(new, 10)) == pytest.approx(once)


@given(st.lists(st.floats(0.125, 1), min_size=1, max_size=20), st.sampled_from([0.5, 0.75, 2.0]))
def test_a_constant_factor_says_nothing_about_other_queries(values, factor):
    old = np.array(values)
    assert change_interval(np.arange(len(old)), old, factor * old) == (None, None)
