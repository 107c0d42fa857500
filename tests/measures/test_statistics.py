"""Intervals, paired tests, corrections: against closed forms, by simulation, and as laws."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from askew.core.measure import Direction
from askew.measures.statistics import bounded
from askew.measures.statistics.bounded import BoundedMean, probability_below_zero, studentized_ends
from askew.measures.statistics.intervals import UNBOUNDED, bca_interval, change_interval, mean_with_interval
from askew.measures.statistics.randomization import SETS, RandomSets
from askew.measures.statistics.significance import TESTS, holm, holm_by_family, paired, smallest_margin, two_sided_p

UNIT = (0.0, 1.0)
values = st.lists(st.floats(-5, 5, allow_nan=False).map(lambda x: round(x, 3)), min_size=1, max_size=10)
shares = st.lists(st.floats(0, 1).map(lambda x: round(x, 3)), min_size=1, max_size=12)


@given(st.integers(1, 60), st.data(), st.floats(0.01, 0.99))
@settings(max_examples=60)
def test_on_zeros_and_ones_the_bounded_test_is_the_exact_binomial_test(n, data, m):
    k = data.draw(st.integers(0, n))
    sample = np.r_[np.ones(k), np.zeros(n - k)]
    mean = BoundedMean(sample, 0.0, 1.0)
    assert mean.p_at_most(m) == pytest.approx(stats.binom.sf(k - 1, n, m), rel=1e-8, abs=1e-300)
    assert mean.p_at_least(m) == pytest.approx(stats.binom.cdf(k, n, m), rel=1e-8, abs=1e-300)
    assert mean.lower(0.025) == pytest.approx(stats.beta.ppf(0.025, k, n - k + 1) if k else 0.0, abs=1e-7)
    assert mean.upper(0.025) == pytest.approx(stats.beta.ppf(0.975, k + 1, n - k) if k < n else 1.0, abs=1e-7)


@given(shares, st.floats(0.05, 0.95))
@settings(max_examples=20)
def test_the_bounded_p_is_the_share_of_random_weightings_whose_mean_is_at_most_m(sample, m):
    weights = np.random.default_rng(1).dirichlet(np.ones(len(sample) + 1), 40_000)
    simulated = float((weights @ np.r_[sample, 0.0] < m).mean())
    assert BoundedMean(np.array(sample), 0.0, 1.0).p_at_most(m) == pytest.approx(simulated, abs=0.015)


def test_the_sum_of_weighted_exponentials_has_the_closed_form_of_two():
    for a, b in ((1.0, 1.0), (0.3, 2.0), (5.0, 0.01)):
        found = probability_below_zero(np.array([a, -b]), np.ones(2))
        assert found == pytest.approx(b / (a + b), rel=1e-9)


@given(shares, st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=50)
def test_a_higher_null_mean_is_never_easier_to_rule_out_from_below(sample, one, other):
    mean = BoundedMean(np.array(sample), 0.0, 1.0)
    assert mean.p_at_most(min(one, other)) <= mean.p_at_most(max(one, other)) + 1e-9


@given(shares)
def test_the_order_of_the_values_changes_nothing(sample):
    there, back = np.array(sample), np.array(sample[::-1])
    assert mean_with_interval(there, UNIT) == mean_with_interval(back, UNIT)
    assert mean_with_interval(there) == mean_with_interval(back)
    one, other = (RandomSets(sample - 0.5, seed=3) for sample in (there, back))
    assert (one.p(), one.ends(0.05)) == (other.p(), other.ends(0.05))


def test_the_order_of_many_values_changes_no_randomization_test():
    sample = np.random.default_rng(8).normal(0.02, 1, 6_000)
    for size in (40, 6_000):
        one, other = RandomSets(sample[:size]), RandomSets(sample[:size][::-1])
        assert (one.p(), one.ends(0.05)) == (other.p(), other.ends(0.05))


@given(values)
def test_the_mean_lies_within_its_interval(sample):
    for bounds in (UNBOUNDED, (-5.0, 5.0)):
        found = mean_with_interval(np.array(sample), bounds)
        assert found.low is None or found.low <= found.mean <= found.high


@given(values)
@settings(max_examples=50)
def test_the_interval_leaves_out_a_mean_exactly_where_the_test_rejects_it(sample):
    test = BoundedMean(np.array(sample), -5.0, 5.0)
    low, high = test.lower(0.025), test.upper(0.025)
    for at in np.linspace(-4.9, 4.9, 9):
        if min(abs(at - low), abs(at - high)) > 1e-6:
            assert (low < at < high) == (two_sided_p(test, at) > 0.05)


def test_queries_without_a_value_are_left_out():
    found = mean_with_interval(np.array([1.0, np.nan, 3.0]))
    assert (found.mean, found.n) == (2.0, 2)


def test_equal_values_without_bounds_have_no_interval_and_prove_nothing():
    for bounds in (UNBOUNDED, (0.0, math.inf)):
        found = mean_with_interval(np.full(6, 0.3), bounds)
        assert (found.low, found.high) == (None, None)


def test_values_outside_the_stated_bounds_are_taken_as_without_bounds():
    found = mean_with_interval(np.array([0.0, 1.5, 0.3]), UNIT)
    assert (found.method, mean_with_interval(np.array([0.0, 0.5]), UNIT).method) == ("studentized", "bounded")
    assert mean_with_interval(np.array([1e9 * (1 + 1e-15), 3.0]), (0.0, 1e9)).method == "bounded"


def test_the_studentized_interval_of_many_values_is_that_of_the_normal_law():
    sample = np.random.default_rng(1).normal(3.0, 2.0, 50_000)
    found = mean_with_interval(sample)
    half = 1.96 * sample.std() / np.sqrt(len(sample))
    assert found.high - found.low == pytest.approx(2 * half, rel=0.01)


def test_the_bounded_interval_of_many_values_is_that_of_the_normal_law():
    sample = np.random.default_rng(1).beta(2, 3, 20_000)
    found = mean_with_interval(sample, UNIT)
    half = 1.96 * sample.std() / np.sqrt(len(sample))
    assert found.high - found.low == pytest.approx(2 * half, rel=0.03)


@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e-12])
def test_taking_neighbors_of_many_different_values_together_keeps_the_interval(monkeypatch, scale):
    rng = np.random.default_rng(2)
    sample = scale * np.r_[rng.beta(2, 5, 6_000), 0.9, 0.95]
    together = mean_with_interval(sample, UNIT)
    monkeypatch.setattr(bounded, "_MOST_VALUES", 1 << 20)
    apart = mean_with_interval(sample, UNIT)
    assert (together.low, together.high) == pytest.approx((apart.low, apart.high), rel=1e-5)


def test_values_so_small_that_their_squares_vanish_have_an_interval():
    found = mean_with_interval(np.array([1e-200, 0.0, 3e-200, 0.0]), UNIT)
    assert 0 <= found.low <= found.mean <= found.high < 0.8
    assert BoundedMean(np.array([1.0, 0.5]), 0.0, 1.0).p_at_most(1e-100) >= 0


# Defects that were there: a symmetric test on asymmetric data.


def _rare_losses(rng, n, delta):
    """Losses that few queries have, of exponential size within 1, with a mean of exactly delta."""
    scale = 0.4
    mean_size = scale * (1 - math.exp(-1 / scale)) - math.exp(-1 / scale) + math.exp(-1 / scale)
    hit = rng.random(n) < delta / mean_size
    return -np.where(hit, np.minimum(rng.exponential(scale, n), 1.0), 0.0)


@pytest.mark.parametrize("n", [30, 200])
def test_a_true_loss_of_delta_is_seldom_called_no_loss_where_losses_are_rare(n):
    rng = np.random.default_rng(n)
    old = np.ones(n)
    called = [
        paired(old, 1.0 + _rare_losses(rng, n, 0.02), Direction.UP, UNIT, margin=0.02).p_no_loss < 0.05
        for _ in range(600)
    ]
    assert np.mean(called) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 600)


def test_six_identical_queries_prove_no_equivalence():
    same = np.full(6, 0.5)
    found = paired(same, same, Direction.UP, UNIT, margin=0.01)
    assert found.p_no_loss > 0.9 and found.p_equivalent > 0.9


def test_unchanged_results_of_299_queries_rule_out_a_loss_of_one_hundredth_and_of_298_do_not():
    for n, ruled_out in ((298, False), (299, True)):
        same = np.full(n, 0.5)
        found = paired(same, same, Direction.UP, UNIT, margin=0.01)
        assert (found.p_no_loss < 0.05) is ruled_out
        assert found.p_no_loss == pytest.approx(0.99**n)
        assert (found.smallest_margin < 0.01) is ruled_out
    assert smallest_margin(43) == pytest.approx(1 - 0.05 ** (1 / 43))


def test_where_losses_are_few_and_large_the_default_test_is_wrong_and_says_so_and_the_bounded_test_is_not():
    rng = np.random.default_rng(7)
    found = []
    for _ in range(400):
        kind = rng.random(30)
        gains = np.where(kind < 0.02, -0.9, np.where(kind < 0.92, 0.02, 0.0))
        found.append(paired(np.full(30, 0.9), 0.9 + gains, Direction.UP, (-1.0, 1.0)))
    assert np.mean([one.p_bounded < 0.05 for one in found]) <= 0.06
    wrong = [one for one in found if one.p < 0.05]
    assert len(wrong) > 0.4 * 400
    assert np.mean([one.skewed for one in wrong]) > 0.8


def test_symmetric_gains_have_no_warning_and_few_large_ones_have():
    rng = np.random.default_rng(1)
    old = np.full(50, 0.5)
    assert not any(paired(old, old + rng.normal(0, 0.1, 50), Direction.UP).skewed for _ in range(200))
    assert paired(old, np.r_[0.0, 0.0, old[2:]], Direction.UP).skewed


def test_intervals_of_few_sparse_values_cover_their_mean():
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(400):
        found = mean_with_interval(rng.random(10) * (rng.random(10) < 0.15), UNIT)
        covered += found.low <= 0.075 <= found.high
    assert covered / 400 >= 0.93


def _every_sum(sample):
    return [
        sum(sign * value for sign, value in zip(signs, sample, strict=True))
        for signs in itertools.product((-1, 1), repeat=len(sample))
    ]


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_the_randomization_test_of_few_queries_is_exact(sample):
    sums = _every_sum(sample)
    assert RandomSets(np.array(sample, float)).p() == sum(abs(s) >= abs(sum(sample)) for s in sums) / len(sums)


@given(st.lists(st.integers(-4, 4).filter(bool), min_size=1, max_size=7), st.integers(20, 400))
@settings(max_examples=30, deadline=None)
def test_the_randomization_test_is_exact_where_few_of_many_queries_differ(sample, unchanged):
    sums = _every_sum(sample)
    p = sum(abs(s) >= abs(sum(sample)) for s in sums) / len(sums)
    assert RandomSets(np.r_[sample, np.zeros(unchanged)].astype(float)).p() == pytest.approx(p)


def test_three_changed_queries_of_54_have_the_exact_p_of_a_quarter():
    new = np.zeros(54)
    new[:3] = 0.3, 0.1, 0.2
    found = paired(np.zeros(54), new, Direction.DOWN)
    assert (found.p, found.nonzero, found.relative) == (0.25, 3, None)
    assert (found.low, found.high, found.detectable) == (None, None, None)


@pytest.mark.parametrize(
    ("differ", "alike", "shown"), [(19, 81, False), (20, 80, True), (9, 10, False), (10, 10, True), (5, 0, True)]
)
def test_an_interval_is_given_where_twenty_or_half_of_the_queries_differ(differ, alike, shown):
    gains = np.r_[np.linspace(0.1, 0.5, differ), np.zeros(alike)]
    for test in ("randomization", "t"):
        found = paired(np.zeros(len(gains)), gains, Direction.UP, UNIT, test=test)
        assert (found.low is not None, found.high is not None, found.detectable is not None) == (shown,) * 3
        assert found.sparse != shown
    found = paired(np.zeros(len(gains)), gains, Direction.UP, UNIT, test="bounded")
    assert found.low < found.gain < found.high


def test_no_interval_is_given_where_it_would_hold_the_mean_of_sparse_differences_too_rarely():
    rng = np.random.default_rng(1)
    shown, held = [], []
    for _ in range(300):
        gains = rng.choice([0, 0.1, -0.7], 100, p=[0.92, 0.07, 0.01])
        low, high = RandomSets(gains).ends(0.05)
        held.append(low <= 0 <= high)
        shown.append(paired(np.zeros(100), gains, Direction.UP, (-1.0, 1.0)).low is not None)
    assert np.mean(held) < 0.8
    assert np.mean(shown) < 0.01


def test_twenty_worsened_and_none_improved_is_a_loss():
    new = np.full(54, 0.6)
    new[:20] -= np.linspace(0.01, 0.4, 20)
    found = paired(np.full(54, 0.6), new, Direction.UP, UNIT)
    assert found.p < 0.001 and found.high < 0
    assert found.p_bounded > 0.05


@given(st.lists(st.integers(-9, 9), min_size=6, max_size=9), st.integers(-30, 30))
@settings(max_examples=60)
def test_the_interval_has_the_means_that_the_same_test_does_not_reject(sample, at):
    m = at / 7
    low, high = RandomSets(np.array(sample, float)).ends(0.05)
    away = np.array(sample) - m
    sums = np.abs(np.array(_every_sum(away.tolist())))
    p = np.mean(sums >= abs(away.sum()) - 1e-9)
    if min(abs(m - low), abs(m - high)) > 1e-9:
        assert (low < m < high) == (p >= 0.05)


@pytest.mark.parametrize("n", [12, 25, 60, 3_000])
def test_p_is_below_the_level_where_the_interval_leaves_out_zero(n):
    rng = np.random.default_rng(n)
    for shift in np.linspace(0, 4, 9):
        gains = (rng.normal(0, 1, n) + shift / math.sqrt(n)) * (rng.random(n) < 0.5)
        low, high = RandomSets(gains).ends(0.05)
        assert (RandomSets(gains).p() < 0.05) == (low > 0 or high < 0)


def test_the_interval_of_the_randomization_test_is_near_that_of_t_where_gains_are_normal():
    gains = np.random.default_rng(3).normal(0.1, 1, 200)
    one, other = (paired(np.zeros(200), gains, Direction.UP, test=test) for test in ("randomization", "t"))
    assert (one.low, one.high, one.detectable) == pytest.approx((other.low, other.high, other.detectable), abs=0.02)
    assert one.p == pytest.approx(other.p, abs=4 * math.sqrt(other.p / SETS) + 0.01)


def test_the_randomization_test_of_many_queries_is_valid_under_no_difference():
    rng = np.random.default_rng(2)
    ps = [RandomSets(rng.normal(0, 1, 40), seed=i).p() for i in range(300)]
    assert 0.02 <= np.mean(np.array(ps) < 0.05) <= 0.09


def test_many_queries_are_flipped_in_blocks_and_the_test_stays_valid():
    rng = np.random.default_rng(6)
    ps = [RandomSets(rng.normal(0, 1, 6_000), seed=i).p() for i in range(12)]
    assert min(ps) > 0.001
    assert np.mean(ps) == pytest.approx(0.5, abs=0.3)
    assert RandomSets(rng.normal(0.1, 1, 20_000)).p() < 0.001


# The same test by another implementation.


@given(st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=3, max_size=40))
@settings(max_examples=60, deadline=None)
def test_t_and_wilcoxon_are_those_of_scipy(sample):
    old = np.linspace(0.1, 0.9, len(sample))
    new = old + np.array(sample)
    if np.ptp(np.array(sample)) < 0.01:
        return
    found = {test: paired(old, new, Direction.UP, test=test) for test in ("t", "wilcoxon")}
    scipy_t = stats.ttest_rel(new, old)
    ends = scipy_t.confidence_interval()
    assert found["t"].p == pytest.approx(scipy_t.pvalue)
    if not found["t"].sparse:
        assert (found["t"].low, found["t"].high) == pytest.approx((ends.low, ends.high))
    gains = new - old
    gains[np.abs(gains) < 1e-12] = 0.0
    assert found["wilcoxon"].p == pytest.approx(stats.wilcoxon(gains).pvalue)
    assert (found["wilcoxon"].low, found["wilcoxon"].detectable) == (None, None)


def test_the_randomization_test_is_that_of_scipy_for_few_queries():
    rng = np.random.default_rng(9)
    for n in (5, 9, 13):
        gains = np.round(rng.normal(0.1, 0.3, n), 2)
        other = stats.permutation_test((gains,), np.mean, permutation_type="samples", n_resamples=np.inf)
        assert RandomSets(gains).p() == pytest.approx(other.pvalue)


@given(values)
def test_swapping_old_and_new_turns_every_sign(sample):
    old, new = np.array(sample), np.array(sample)[::-1].copy()
    for test in TESTS:
        there, back = (paired(*pair, Direction.UP, (-5.0, 5.0), test=test) for pair in ((old, new), (new, old)))
        assert there.gain == pytest.approx(-back.gain)
        assert (there.improved, there.worsened) == (back.worsened, back.improved)
        assert there.p == pytest.approx(back.p)
        assert there.low is back.high is None or there.low == pytest.approx(-back.high, abs=1e-7)


@given(values, st.sampled_from(list(Direction)))
def test_improved_worsened_and_unchanged_make_up_all_queries(sample, direction):
    found = paired(np.array(sample), np.array(sample[::-1]), direction)
    assert found.improved + found.worsened + found.unchanged == found.n == len(sample)


def test_nothing_changed_is_no_gain_and_p_one():
    same = np.array([0.1, 0.2, 0.3])
    for bounds in (UNIT, UNBOUNDED):
        found = paired(same, same, Direction.UP, bounds)
        assert (found.gain, found.p, found.unchanged) == (0.0, 1.0, 3)


def test_nearer_zero_is_better_for_a_signed_lean():
    found = paired(np.array([-2.0, 2.0]), np.array([1.0, -3.0]), Direction.ZERO)
    assert (found.improved, found.worsened, found.gain) == (1, 1, 0.0)


def test_no_loss_beyond_the_margin_is_shown_only_when_it_is_so():
    rng = np.random.default_rng(3)
    old = rng.uniform(0.1, 0.9, 2_000)
    alike = old + rng.normal(0, 0.01, 2_000)
    worse = old - 0.05 + rng.normal(0, 0.01, 2_000)
    better = old + 0.05
    assert paired(old, alike, Direction.UP, UNIT, margin=0.01).p_no_loss < 0.01
    assert paired(old, alike, Direction.UP, UNIT, margin=0.01).p_equivalent < 0.01
    assert paired(old, worse, Direction.UP, UNIT, margin=0.01).p_no_loss > 0.9
    assert paired(old, better, Direction.UP, UNIT, margin=0.01).p_no_loss < 0.01
    assert paired(old, better, Direction.UP, UNIT, margin=0.01).p_equivalent > 0.9


def test_without_bounds_no_loss_is_ever_ruled_out():
    found = paired(np.arange(50.0), np.arange(50.0) + 1, Direction.UP, margin=0.5)
    assert (found.p_bounded, found.p_no_loss, found.p_equivalent) == (None, None, None)
    assert (found.smallest_margin, found.not_ruled_out) == (None, None)


@pytest.mark.parametrize("n", [10, 30, 100])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_detectable_gain_is_found_in_about_four_of_five_samples(n, sparse):
    rng = np.random.default_rng([5, n])
    draws = rng.normal(0, 0.15, (300, n)).clip(-0.5, 0.5) * (rng.random((300, n)) < (0.3 if sparse else 1.0))
    bounds = (-1.0, 1.0)
    said = [paired(np.zeros(n), d, Direction.UP, bounds).detectable for d in draws[:40]]
    if sparse and n < 100:  # of too few queries that differ, nothing is said
        assert said.count(None) > len(said) / 2
        return
    found = [paired(np.zeros(n), np.clip(d + np.median(said), -1, 1), Direction.UP, bounds).p < 0.05 for d in draws]
    # Of ten queries it is a little too optimistic: what is just significant differs much between such samples.
    assert (0.55 if n == 10 else 0.68) <= np.mean(found) <= 0.95


@pytest.mark.parametrize("test", TESTS)
def test_too_few_queries_and_equal_gains_determine_no_interval(test):
    few = paired(np.array([0.5, 0.2]), np.array([1.0, 0.2]), Direction.UP, test=test)
    alike = paired(np.arange(30.0), np.arange(30.0) + 1, Direction.UP, test=test)
    for found in (alike, *([] if test == "t" else [few])):
        assert (found.low, found.high, found.detectable) == (None, None, None)
    assert alike.skewness is None and not alike.skewed


def test_the_gain_of_many_queries_is_that_of_each():
    old, new = np.array([0.5, -0.2, 0.1]), np.array([-0.1, 0.4, 0.1])
    for direction in Direction:
        each = [direction.gain(a, b) for a, b in zip(old.tolist(), new.tolist(), strict=True)]
        assert direction.gain(old, new).tolist() == each


def test_the_interval_of_a_change_covers_the_true_change():
    rng = np.random.default_rng(12)
    covered = 0
    for _ in range(200):
        old = rng.random(60)
        new = old * rng.random(60)
        low, high = change_interval(np.arange(60), old, new)
        covered += low <= -50 <= high
    assert covered >= 180


def test_the_interval_of_a_change_leaves_out_zero_exactly_where_p_does():
    rng = np.random.default_rng(13)
    for n in (12, 40):
        for shift in np.linspace(0, 0.3, 8):
            old = rng.random(n) + 0.5
            new = old + (rng.normal(shift, 0.3, n) * (rng.random(n) < 0.6)).clip(-0.5, 0.5)
            low, high = change_interval(np.arange(n), old, new)
            assert (paired(old, new, Direction.UP).p < 0.05) == (low > 0 or high < 0)


def test_the_interval_of_a_change_knows_that_pairs_of_a_query_are_alike():
    rng = np.random.default_rng(3)
    old, new = rng.random(30), rng.random(30)
    one = change_interval(np.arange(30), old, new)
    repeated = change_interval(np.repeat(np.arange(30), 5), np.repeat(old, 5), np.repeat(new, 5))
    assert repeated == pytest.approx(one)


def test_a_change_from_nothing_has_no_interval():
    assert change_interval(np.arange(3), np.zeros(3), np.ones(3)) == (None, None)


def test_holm_corrects_as_in_the_textbook():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.6]) == [1.0, 1.0]


def test_holm_corrects_each_family_apart():
    ps = {"nDCG": 0.01, "RR": 0.04, "ARaB": 0.03, "NFaiRR": None}
    assert holm_by_family(ps, {"nDCG": 1, "RR": 1, "ARaB": 2}.get) == pytest.approx(
        {"nDCG": 0.02, "RR": 0.04, "ARaB": 0.03}
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_a_p_and_keeps_the_order(ps):
    corrected = holm(ps)
    assert all(c >= p for c, p in zip(corrected, ps, strict=True))
    ranked = sorted(range(len(ps)), key=lambda i: ps[i])
    assert all(corrected[a] <= corrected[b] + 1e-15 for a, b in itertools.pairwise(ranked))


def test_the_corrected_bootstrap_of_a_mean_is_near_the_studentized_interval():
    sample = np.random.default_rng(9).exponential(1.0, 200)
    value, low, high = bca_interval(lambda weights: weights @ sample / weights.sum(1), len(sample))
    assert value == pytest.approx(sample.mean())
    assert (low, high) == pytest.approx(studentized_ends(sample, 0.025), abs=0.05)


def test_the_corrected_bootstrap_leaves_out_draws_without_a_value_and_knows_a_constant():
    assert bca_interval(lambda weights: np.full(len(weights), 0.5), 10) == (0.5, 0.5, 0.5)
    flags = np.array([1.0, 0.0, 0.0])

    def share(weights):
        total = weights @ flags
        return np.where(total > 0, total / weights.sum(1), np.nan)

    value, low, high = bca_interval(share, 3)
    assert value == pytest.approx(1 / 3) and 0 < low <= value <= high <= 1
