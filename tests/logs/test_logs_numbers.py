"""Shares, medians, ratios, correlations: the paper's own figure, values by hand, and intervals that hold."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.logs.definition import LOG_DATA
from askew.logs.numbers import effective, mean, median, ratio, share, spearman, student_p
from askew.measures.statistics.intervals import wilson

TABLE_1 = pl.read_csv(LOG_DATA / "gsqr_table1.csv", comment_prefix="#")


def test_the_correlation_of_the_paper_comes_out_of_its_table():
    topics = TABLE_1.filter(pl.col("topic") != "all topics")
    found = spearman(topics["rate"].to_numpy(), topics["recommended"].to_numpy())
    assert (found.n, round(found.rho, 3), round(found.p, 3)) == (23, 0.586, 0.003)


def test_the_share_of_recommendations_of_the_paper_follows_from_its_groups():
    assert round(0.54 * 14.3 + 0.46 * 11.5) == TABLE_1.filter(topic="all topics")["recommended"][0]


def test_equal_values_share_the_mean_of_their_ranks():
    ranks = [3.5, 1.0, 3.5, 2.0], [1.0, 2.0, 4.0, 3.0]
    assert spearman([3, 1, 3, 2], [0, 5, 7, 6]).rho == pytest.approx(np.corrcoef(*ranks)[0, 1], rel=1e-12)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=4, max_size=30))
def test_a_correlation_turns_its_sign_with_a_column_and_keeps_it_under_any_rising_change(pairs):
    x, y = np.array(pairs, float).T
    found, turned, stretched = spearman(x, y), spearman(x, -y), spearman(x**3, np.exp(y))
    if not math.isnan(found.rho):
        assert abs(found.rho) == 1 or found.low <= found.rho <= found.high
        assert turned.rho == pytest.approx(-found.rho)
        assert stretched.rho == pytest.approx(found.rho)
        assert turned.p == pytest.approx(found.p)


def test_a_constant_column_has_no_correlation():
    assert math.isnan(spearman(np.ones(5), np.arange(5.0)).rho)


def test_columns_that_agree_wholly_have_the_chance_of_one_order_among_all():
    found = spearman(np.arange(5.0), np.arange(5.0))
    assert (found.rho, found.p) == (1.0, pytest.approx(2 / 120))
    assert math.isnan(found.low)


def test_ties_make_a_whole_agreement_more_likely():
    # Of 24 orders of (0, 0, 0, 1) six put the 1 last, and none turns the agreement round.
    assert spearman([0, 0, 0, 1], [5, 5, 5, 9]).p == pytest.approx(6 / 24)
    # (0, 0, 1, 1): four orders agree wholly and four disagree wholly.
    assert spearman([0, 0, 1, 1], [2, 2, 7, 7]).p == pytest.approx(8 / 24)
    assert spearman([0, 0, 1, 1], [7, 7, 2, 2]).p == pytest.approx(8 / 24)


def test_student_has_its_known_values():
    # With one degree of freedom t is Cauchy's: beyond 1 lies one half.
    assert student_p(1.0, 1) == pytest.approx(0.5, rel=1e-12)
    assert student_p(2.228138852, 10) == pytest.approx(0.05)


def test_a_share_of_events_of_different_users_has_wilsons_interval():
    # The spread between ten users is known from nine of them: nine events are what ten are worth.
    found = share(np.arange(10) == 0, np.arange(10))
    assert (found.low, found.high) == pytest.approx(wilson(0.9, 9))
    none = share(np.zeros(10, bool), np.arange(10))
    assert (none.low, none.high) == pytest.approx(wilson(0, 10))


def test_events_of_one_user_are_worth_one_when_they_are_all_alike():
    users = np.repeat(np.arange(50), 4)
    hits = np.repeat(np.arange(50) % 2 == 0, 4)
    alike, single = share(hits, users), share(hits[::4], np.arange(50))
    assert (alike.value, alike.n) == (0.5, 200)
    assert alike.high - alike.low == pytest.approx(single.high - single.low, rel=0.03)


def test_events_are_never_worth_more_than_they_are():
    # Each user once for and once against: less spread than chance, and still no more than n events.
    users = np.repeat(np.arange(50), 2)
    assert effective(0.5, 100, 0.0, 50) == 100
    assert share(np.tile([True, False], 50), users).low == pytest.approx(wilson(50, 100)[0])


def test_nothing_is_said_of_no_events():
    for found in (share([], []), median([], []), mean([], []), ratio([], [], [])):
        assert math.isnan(found.value)
        assert found.n == 0


def test_one_user_tells_nothing_of_others():
    alone = np.zeros(100, np.int64)
    assert share(np.ones(100, bool), alone).low < 0.3
    for found in (ratio(np.ones(100), np.ones(100), alone), mean(np.arange(100.0), alone)):
        assert math.isnan(found.low)
        assert math.isnan(found.high)


def test_intervals_hold_the_truth_about_as_often_as_they_say_though_users_repeat_themselves():
    rng = np.random.default_rng(3)
    held = {"share": 0, "median": 0, "ratio": 0, "mean": 0}
    rounds = 200
    for _ in range(rounds):
        users = rng.integers(0, 150, 500)
        taste = rng.beta(1.2, 2.8, 150)[users]
        found = share(rng.random(500) < taste, users)
        held["share"] += found.low <= 0.3 <= found.high
        pace = rng.normal(0, 0.5, 150)[users]
        found = median(20 * np.exp(pace + rng.normal(0, 0.7, 500)), users)
        held["median"] += found.low <= 20 <= found.high
        found = mean(5 + pace + rng.normal(0, 1, 500), users)
        held["mean"] += found.low <= 5 <= found.high
        found = ratio(rng.random(500) < taste * 0.5, rng.random(500) < taste, users)
        held["ratio"] += found.low <= 2 <= found.high
    assert all(0.90 <= count / rounds <= 0.99 for count in held.values()), held


def test_the_median_lies_within_its_interval_even_among_ties():
    found = median(np.array([5.0] * 50 + [7.0]), np.arange(51))
    assert (found.low, found.value, found.high) == (5.0, 5.0, 5.0)


def test_of_five_users_the_median_has_no_interval():
    found = median(np.arange(20.0), np.arange(20) % 5)
    assert (found.value, found.n) == (9.5, 20)
    assert math.isnan(found.low)
    assert not math.isnan(median(np.arange(20.0), np.arange(20) % 6).low)


def test_a_ratio_is_of_means_and_its_interval_is_even_in_logarithms():
    found = ratio(np.array([1, 0, 1, 0]), np.array([1, 1, 1, 0]), np.arange(4))
    assert found.value == pytest.approx(1.5)
    assert found.low * found.high == pytest.approx(1.5**2)
