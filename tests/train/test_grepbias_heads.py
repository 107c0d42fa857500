"""The pairwise penalty, heads on frozen encodings, and the choice of the alphas without the test categories."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch", reason="the extra 'train' is not installed")

import torch

from askew.core.errors import ConfigError, DataError
from askew.train.adapter import (
    CONVERGED,
    KINDS,
    PUBLISHED,
    HeadSettings,
    LabeledRows,
    alpha_grid,
    batch_pairs,
    choose_alphas,
    fit_heads,
    held_out_logits,
    pair_penalty,
    query_folds,
    relative_gap,
    same_query_pairs,
    zero_shot_heads,
)
from askew.train.common import TrainingStopped


def toy_rows(queries=12, gender_weight=1.0, seed=0):
    """Relevance lies in feature 0. Feature 1 tells relevant rows a little and carries the gender."""
    rng = np.random.default_rng(seed)
    rows = []
    for q, relevant, gender in itertools.product(range(queries), (True, False), "MFN"):
        lean = {"M": 1.0, "F": -1.0, "N": 0.0}[gender] * gender_weight
        noise = rng.normal(size=3) * [0.05, 0.3, 0.3]
        rows.append(((1.0 if relevant else -1.0) + noise[0], lean + (0.5 if relevant else -0.5), noise[2], relevant,
                     gender, f"q{q}"))  # fmt: skip
    columns = list(zip(*rows, strict=True))
    return LabeledRows(
        np.array(columns[:3], np.float32).T, np.array(columns[3]), np.array(columns[4]), np.array(columns[5])
    )


def test_the_penalty_of_three_pairs_worked_out_by_hand():
    logits = torch.tensor([2.0, 0.0, 1.0])
    pairs = np.array([[0, 1, 0], [0, 2, 1], [1, 2, 2]])
    # alpha MF 2 * (2-0)^2, MN 0.5 * (2-1)^2, FN 1 * (0-1)^2; over three pairs
    assert float(pair_penalty(logits, pairs, [2.0, 0.5, 1.0])) == pytest.approx((8 + 0.5 + 1) / 3)
    heads = torch.stack([logits, 2 * logits], dim=1)
    found = pair_penalty(heads, pairs, [[2.0, 0.5, 1.0], [0.0, 0.0, 1.0]])
    assert found.tolist() == pytest.approx([9.5 / 3, 4 / 3])


def test_without_pairs_there_is_no_penalty_and_still_a_gradient():
    logits = torch.tensor([1.0, 2.0], requires_grad=True)
    none = np.zeros((0, 3), np.int64)
    loss = pair_penalty(logits, none, [1.0, 1.0, 1.0])
    loss.backward()
    assert loss.item() == 0.0 and logits.grad.tolist() == [0.0, 0.0]


@given(st.lists(st.floats(-5, 5, width=32), min_size=6, max_size=6), st.floats(-3, 3, width=32))
def test_the_penalty_is_never_negative_and_moving_all_logits_together_changes_nothing(values, shift):
    rows = toy_rows(1)
    pairs = same_query_pairs(rows)
    logits = torch.tensor(values)
    found = float(pair_penalty(logits, pairs, [1.0, 2.0, 0.5]))
    assert found >= 0
    assert float(pair_penalty(logits + shift, pairs, [1.0, 2.0, 0.5])) == pytest.approx(found, abs=1e-3, rel=1e-3)


def test_pairs_of_a_query_are_versions_of_one_document():
    rows = toy_rows(2)
    pairs = same_query_pairs(rows)
    assert len(pairs) == 2 * 2 * 3
    for left, right, kind in pairs:
        assert rows.query[left] == rows.query[right] and rows.relevant[left] == rows.relevant[right]
        assert set(KINDS[kind]) == {str(rows.gender[left]), str(rows.gender[right])}
    odd = rows.gender.copy()
    odd[odd == "N"] = "both"
    assert len(same_query_pairs(replace(rows, gender=odd))) == 2 * 2, "'both' is in no pair"


@given(st.lists(st.sampled_from(["M", "F", "N", "both"]), min_size=0, max_size=12), st.integers(0, 99))
def test_pairs_of_a_batch_are_of_different_genders_and_use_a_row_once(genders, seed):
    rows = np.arange(len(genders))
    pairs = batch_pairs(rows, np.array(genders, dtype="U4"), np.random.default_rng(seed))
    used = pairs[:, :2].ravel().tolist()
    assert len(used) == len(set(used))
    for left, right, _ in pairs:
        assert {genders[left], genders[right]} in ({"M", "F"}, {"M", "N"}, {"F", "N"})


def test_the_grid_has_the_published_size_and_begins_without_a_penalty():
    grid = alpha_grid()
    assert grid.shape == (729, 3)
    assert grid[0].tolist() == [0, 0, 0] and grid.max() == 2.0
    assert len(np.unique(grid, axis=0)) == 729


@pytest.mark.parametrize("how", [PUBLISHED, replace(PUBLISHED, pairs="query"), CONVERGED])
def test_a_head_gets_in_company_what_it_gets_alone(how):
    rows = toy_rows(4)
    alphas = np.array([[0, 0, 0], [2, 0, 1], [1, 1, 1]], float)
    together = fit_heads(rows, alphas, how)
    for at, one in enumerate(alphas):
        alone = fit_heads(rows, one[None], how)
        np.testing.assert_allclose(together.weights[at], alone.weights[0], rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(together.bias[at], alone.bias[0], rtol=1e-3, atol=1e-3)


def test_a_penalty_on_pairs_of_a_query_takes_the_gender_out_and_leaves_relevance_in():
    rows = toy_rows()
    heads = fit_heads(rows, np.array([[0, 0, 0], [2, 2, 2]], float), CONVERGED)
    logits = heads.logits(rows.inputs)
    before, after = relative_gap(logits, rows)
    assert after < before / 3
    assert ((logits > 0) == rows.relevant[:, None]).mean(0).min() == 1.0


def test_the_same_seed_gives_the_same_head_and_the_converged_one_needs_none():
    rows = toy_rows(4)
    none = np.zeros((1, 3))
    same = [fit_heads(rows, none, PUBLISHED).weights for _ in range(2)]
    np.testing.assert_array_equal(*same)
    other = fit_heads(rows, none, replace(PUBLISHED, seed=8)).weights
    assert (other != same[0]).any()
    settled = [fit_heads(rows, none, replace(CONVERGED, seed=seed)).weights for seed in (7, 8)]
    np.testing.assert_array_equal(*settled)


def test_a_learning_rate_that_blows_up_is_told():
    rows = toy_rows(3)
    huge = LabeledRows(rows.inputs * 1e30, rows.relevant, rows.gender, rows.query)
    with pytest.raises(TrainingStopped, match="finite loss"):
        fit_heads(huge, np.array([[2.0, 2.0, 2.0]]), replace(PUBLISHED, learning_rate=1e9, epochs=3))


def test_settings_that_make_no_sense_are_told():
    with pytest.raises(ConfigError, match=r"pairs=.* found 'all'"):
        HeadSettings(pairs="all")
    with pytest.raises(ConfigError, match="learning_rate="):
        HeadSettings(epochs=0)


@settings(max_examples=20)
@given(st.integers(5, 20), st.integers(0, 5))
def test_all_rows_of_a_query_are_in_one_fold(queries, seed):
    query = np.repeat([f"q{i}" for i in range(queries)], 3)
    fold = query_folds(query, 5, seed)
    for name in np.unique(query):
        assert len(set(fold[query == name].tolist())) == 1
    assert set(fold.tolist()) == set(range(5))


def test_too_few_queries_for_the_folds_are_told():
    with pytest.raises(DataError, match=r"5 queries.* found 3"):
        query_folds(np.array(["a", "b", "c"]), 5, 0)


def test_held_out_logits_are_of_heads_that_have_not_seen_the_query():
    rows = toy_rows(5, seed=3)
    none = np.zeros((1, 3))
    how = replace(CONVERGED, epochs=30)
    found = held_out_logits(rows, none, how)
    fold = query_folds(rows.query, 5, how.seed)
    by_hand = fit_heads(rows.take(fold != 2), none, how).logits(rows.inputs[fold == 2])
    np.testing.assert_allclose(found[fold == 2], by_hand)


def test_alphas_are_chosen_for_the_least_gap_among_those_that_cost_little():
    rows = toy_rows(10, gender_weight=1.5)
    grid = alpha_grid((0.0, 1.0, 2.0))
    how = replace(CONVERGED, epochs=60)
    found = choose_alphas(rows, how, grid)
    held_out = held_out_logits(rows, np.array([(0.0, 0.0, 0.0), found]), how)
    lean, accuracy = relative_gap(held_out, rows), ((held_out > 0) == rows.relevant[:, None]).mean(0)
    assert found[0] > 0 and lean[1] < lean[0] and accuracy[1] >= accuracy[0] - 0.02
    with pytest.raises(DataError, match=r"zeros.* found"):
        choose_alphas(rows, how, grid[1:])


def test_rows_of_the_test_categories_have_no_part_in_the_choice_of_the_alphas():
    one, other = toy_rows(6, seed=1), toy_rows(6, seed=2)
    category = np.array(["a"] * len(one) + ["b"] * len(one))
    how, grid = replace(CONVERGED, epochs=20), alpha_grid((0.0, 2.0))

    def protocol(second):
        rows = LabeledRows(
            np.vstack([one.inputs, second.inputs]),
            np.concatenate([one.relevant, second.relevant]),
            np.concatenate([one.gender, second.gender]),
            np.concatenate([one.query, np.char.add("z", second.query)]),
        )
        return zero_shot_heads(rows, category, ("a", "b"), how, (7,), grid)

    first = protocol(other)
    flipped = protocol(replace(other, relevant=~other.relevant))
    assert first.chosen[0][0] == flipped.chosen[0][0]
    np.testing.assert_array_equal(first.logits[0, 0], flipped.logits[0, 0])
    assert (first.logits[0, 1] != flipped.logits[0, 1]).any()


def test_on_the_diagonal_the_alphas_of_a_fold_are_chosen_by_the_other_folds():
    rows = toy_rows(10, gender_weight=1.5)
    how, grid = replace(CONVERGED, epochs=20), alpha_grid((0.0, 2.0))
    found = zero_shot_heads(rows, np.full(len(rows), "a"), ("a",), how, (7,), grid).inside[0]
    held_out, fold = held_out_logits(rows, grid, how), query_folds(rows.query, 5, 7)
    for k in range(5):
        others = fold != k
        accuracy = ((held_out[others] > 0) == rows.relevant[others][:, None]).mean(0)
        lean = np.where(accuracy >= accuracy[0] - 0.02, relative_gap(held_out[others], rows.take(others)), np.inf)
        np.testing.assert_array_equal(found[~others], held_out[~others, lean.argmin()])


def test_rows_without_both_genders_cannot_tell_the_gap():
    rows = toy_rows(6)
    with pytest.raises(DataError, match="a female version"):
        relative_gap(np.zeros((len(rows), 1)), replace(rows, gender=np.full(len(rows), "N")))
