"""Intervals, paired tests, corrections: checked against scipy-free facts and laws."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.analysis import significance
from askew.analysis.intervals import mean_with_interval
from askew.analysis.significance import holm, least_p, paired, sign_flip_p
from askew.core.measure import Direction

values = st.lists(st.floats(-5, 5, allow_nan=False).map(lambda x: round(x, 3)), min_size=1, max_size=10)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(5)
    covered = 0
    for i in range(400):
        found = mean_with_interval(rng.exponential(2.0, 60), seed=i)
        covered += found.low <= 2.0 <= found.high
    assert 0.90 <= covered / 400 <= 0.97


def test_the_interval_of_many_queries_is_that_of_the_normal_law():
    sample = np.random.default_rng(1).normal(3.0, 2.0, 50_000)
    found = mean_with_interval(sample)
    half = 1.96 * sample.std() / np.sqrt(len(sample))
    assert found.high - found.low == pytest.approx(2 * half, rel=0.1)


def test_the_same_seed_gives_the_same_interval():
    sample = np.arange(30.0)
    assert mean_with_interval(sample, seed=3) == mean_with_interval(sample, seed=3)
    assert mean_with_interval(sample, seed=3) != mean_with_interval(sample, seed=4)


def test_queries_without_a_value_are_left_out():
    found = mean_with_interval(np.array([1.0, np.nan, 3.0]))
    assert (found.mean, found.n) == (2.0, 2)


@given(values)
def test_the_mean_lies_within_its_interval(sample):
    found = mean_with_interval(np.array(sample))
    assert found.low <= found.mean <= found.high


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_the_permutation_test_of_few_queries_is_exact(sample):
    array = np.array(sample, float)
    sums = [
        sum(s * x for s, x in zip(signs, sample, strict=True))
        for signs in itertools.product((-1, 1), repeat=len(sample))
    ]
    assert sign_flip_p(array) == sum(abs(s) >= abs(sum(sample)) for s in sums) / len(sums)
    assert sign_flip_p(array, "greater") == sum(s >= sum(sample) for s in sums) / len(sums)


def test_the_permutation_test_of_many_queries_is_honest_under_no_difference():
    rng = np.random.default_rng(2)
    ps = [sign_flip_p(rng.normal(0, 1, 40), seed=i) for i in range(150)]
    assert 0.01 <= np.mean(np.array(ps) < 0.05) <= 0.11


@given(values)
def test_swapping_old_and_new_turns_every_sign(sample):
    old, new = np.array(sample), np.array(sample)[::-1].copy()
    there, back = paired(old, new, Direction.UP), paired(new, old, Direction.UP)
    assert there.gain == pytest.approx(-back.gain)
    assert (there.helped, there.hurt) == (back.hurt, back.helped)
    assert there.p == pytest.approx(back.p)


@given(values, st.sampled_from(list(Direction)))
def test_helped_hurt_and_same_make_up_all_queries(sample, direction):
    found = paired(np.array(sample), np.array(sample[::-1]), direction)
    assert found.helped + found.hurt + found.same == found.n == len(sample)


def test_nothing_changed_is_no_gain_and_p_one():
    same = np.array([0.1, 0.2, 0.3])
    found = paired(same, same, Direction.UP)
    assert (found.gain, found.p, found.same) == (0.0, 1.0, 3)


def test_nearer_zero_is_better_for_a_signed_lean():
    found = paired(np.array([-2.0, 2.0]), np.array([1.0, -3.0]), Direction.ZERO)
    assert (found.helped, found.hurt, found.gain) == (1, 1, 0.0)


def test_no_loss_beyond_delta_is_shown_only_when_it_is_so():
    rng = np.random.default_rng(3)
    old = rng.uniform(0, 1, 200)
    alike = old + rng.normal(0, 0.01, 200)
    worse = old - 0.05 + rng.normal(0, 0.01, 200)
    better = old + 0.05
    assert paired(old, alike, Direction.UP, delta=0.01).p_no_loss < 0.01
    assert paired(old, alike, Direction.UP, delta=0.01).p_equivalent < 0.01
    assert paired(old, worse, Direction.UP, delta=0.01).p_no_loss > 0.9
    assert paired(old, better, Direction.UP, delta=0.01).p_no_loss < 0.01
    assert paired(old, better, Direction.UP, delta=0.01).p_equivalent > 0.9


def test_many_queries_are_flipped_in_blocks_and_the_test_stays_honest():
    rng = np.random.default_rng(6)
    ps = [sign_flip_p(rng.normal(0, 1, 6_000), seed=i) for i in range(12)]
    assert min(ps) > 0.001
    assert np.mean(ps) == pytest.approx(0.5, abs=0.3)
    assert sign_flip_p(rng.normal(0.1, 1, 20_000)) < 0.001


def test_no_p_is_computed_twice(monkeypatch):
    calls = []
    honest = significance.sign_flip_p

    def counted(differences, *args, **named):
        calls.append(differences.tobytes())
        return honest(differences, *args, **named)

    monkeypatch.setattr(significance, "sign_flip_p", counted)
    paired(np.array([0.1, 0.3, 0.2]), np.array([0.2, 0.2, 0.4]), Direction.UP, delta=0.05)
    assert len(calls) == len(set(calls)) == 3


def test_the_gain_of_many_queries_is_that_of_each():
    old, new = np.array([0.5, -0.2, 0.1]), np.array([-0.1, 0.4, 0.1])
    for direction in Direction:
        each = [direction.gain(a, b) for a, b in zip(old.tolist(), new.tolist(), strict=True)]
        assert direction.gain(old, new).tolist() == each


def test_the_bootstrap_test_agrees_with_the_permutation_test_in_the_large():
    rng = np.random.default_rng(4)
    old = rng.normal(0, 1, 300)
    new = old + rng.normal(0.12, 1, 300)
    one, other = paired(old, new, Direction.UP), paired(old, new, Direction.UP, test="bootstrap")
    assert one.p == pytest.approx(other.p, abs=0.03)


def test_holm_corrects_as_in_the_textbook():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.6]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_a_p_and_keeps_the_order(ps):
    corrected = holm(ps)
    assert all(c >= p for c, p in zip(corrected, ps, strict=True))
    ranked = sorted(range(len(ps)), key=lambda i: ps[i])
    assert all(corrected[a] <= corrected[b] + 1e-15 for a, b in itertools.pairwise(ranked))


@pytest.mark.parametrize("n", [3, 14, 15, 40])
def test_when_all_queries_gain_the_same_p_is_the_least_that_can_be_shown(n):
    assert sign_flip_p(np.ones(n)) == pytest.approx(least_p(n), abs=2 / 20_001 if n > 14 else 0)
