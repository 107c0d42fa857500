"""How a selector chooses: examples worked out by hand, laws, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError
from askew.train.selector import (
    CLOSE,
    KEEP_ORIGINAL,
    LISTS,
    PRESETS,
    Chance,
    SelectorSettings,
    TopDocuments,
    agreement,
    best_candidate,
    choose_threshold,
    closeness,
    least_leaning,
    sample,
)


def test_the_published_preset_reads_texts_alone_and_the_published_code_adds_passages():
    assert SelectorSettings(**PRESETS["refairmulate2025"]).passages == "none"
    assert SelectorSettings(**PRESETS["refairmulate2025-code"]).passages == "literal"


@pytest.mark.parametrize("wrong", [{"learns": "all"}, {"passages": "some"}, {"most_each": 0}])
def test_a_wrong_setting_is_told(wrong):
    with pytest.raises(ConfigError, match="selector"):
        SelectorSettings(**wrong)


def test_a_query_gives_at_most_so_many_examples_of_a_label():
    query = np.array([0, 0, 0, 0, 1, 1, 1])
    labels = np.array([1, 1, 1, 0, -1, 0, 0])
    rows = sample(query, labels, 2)
    assert 4 not in rows and rows.tolist() == sorted(rows.tolist())
    assert (labels[rows][query[rows] == 0] == 1).sum() == 2 and set(rows) >= {3, 5, 6}


def test_the_highest_worth_is_taken_and_the_first_of_equals():
    query = np.array([0, 0, 0, 2, 2])
    worth = np.array([1.0, 3.0, 3.0, 5.0, 4.0])
    assert best_candidate(query, 3, worth).tolist() == [1, KEEP_ORIGINAL, 3]
    allowed = np.array([True, False, False, False, True])
    assert best_candidate(query, 3, worth, allowed).tolist() == [0, KEEP_ORIGINAL, 4]


def test_the_least_leaning_of_those_with_the_chance_is_taken():
    query = np.array([0, 0, 0, 1, 1])
    lean, old = np.array([0.1, 0.3, 0.2, 0.5, 0.6]), np.array([0.4, 0.5])
    chance = np.array([0.2, 0.9, 0.8, 0.99, 0.99])
    # Query 0: the first leans least and is too unlikely; the third comes next. Query 1: none leans less than before.
    assert least_leaning(query, 2, lean, old, chance, 0.5).tolist() == [2, KEEP_ORIGINAL]
    assert least_leaning(query, 2, lean, old, chance, 0.0).tolist() == [0, KEEP_ORIGINAL]
    assert least_leaning(query, 2, lean, old, chance, 1.01).tolist() == [KEEP_ORIGINAL, KEEP_ORIGINAL]


def test_of_equal_leans_the_likeliest_is_taken():
    chosen = least_leaning(np.zeros(3, int), 1, np.full(3, 0.1), np.ones(1), np.array([0.6, 0.9, 0.7]), 0.5)
    assert chosen.tolist() == [1]


ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from([0.0, 0.1, 0.5]), st.floats(0, 1)), min_size=1, max_size=20
)


@settings(max_examples=80)
@given(ROWS, st.lists(st.sampled_from([0.0, 0.2, 0.6]), min_size=5, max_size=5), st.floats(0, 1), st.floats(0, 1))
def test_a_higher_threshold_never_leans_less_and_nothing_leans_more_than_before(rows, old, first, second):
    query = np.array([one for one, _, _ in rows])
    lean, chance = (np.array([row[k] for row in rows]) for k in (1, 2))
    before = np.array(old)

    def leans(threshold):
        chosen = least_leaning(query, 5, lean, before, chance, threshold)
        taken = chosen[chosen != KEEP_ORIGINAL]
        assert (query[taken] == np.flatnonzero(chosen != KEEP_ORIGINAL)).all() and (chance[taken] >= threshold).all()
        return np.where(chosen == KEEP_ORIGINAL, before, lean[chosen])

    low, high = leans(min(first, second)), leans(max(first, second))
    assert (low <= high).all() and (high <= before).all()


def thresholds(gains, slack, grid=(0.0, 0.5, 0.9, 2.0)):
    """One candidate for each query; that of query i has the chance i / n."""
    gain = np.array(gains)
    chance = np.arange(len(gain)) / len(gain)

    def choose(threshold):
        return np.where(chance >= threshold, np.arange(len(gain)), KEEP_ORIGINAL)

    return choose_threshold(choose, len(gain), gain, slack, np.array(grid))


def test_the_lowest_threshold_that_loses_nothing_by_its_interval_is_chosen():
    # At 0 half of the queries lose 0.1: a mean of -0.05. From 0.5 on none of them does.
    losing = [-0.1] * 50 + [0.0] * 50
    assert thresholds(losing, 0.0) == 0.5
    # Its interval is -0.05 - 1.96 * 0.05 / 10 = -0.0598.
    assert thresholds(losing, 0.0599) == 0.0
    assert thresholds(losing, 0.0597) == 0.5


def test_a_mean_that_might_be_a_loss_is_not_enough():
    # A mean of zero with a spread of one: its interval reaches far below.
    assert thresholds([1.0, -1.0] * 50, 0.0) == 2.0


def test_where_nothing_is_good_enough_nothing_is_taken():
    assert thresholds([-1.0] * 10, 0.0) == 2.0


def test_a_chance_is_learned_and_comes_back_from_its_facts():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(4000, 3)) * [1, 10, 1] + [0, 5, 0]
    truth = rng.random(4000) < 1 / (1 + np.exp(-(2 * columns[:, 0] - 0.1 * columns[:, 1])))
    found = Chance.fit(("a", "b", "c"), columns, truth)
    own = found.weights / found.spread
    assert own == pytest.approx([2.0, -0.1, 0.0], abs=0.15)
    again = Chance.read(found.facts())
    assert again.of(columns).tolist() == found.of(columns).tolist()
    # A logistic regression with a bias meets the share of the label exactly.
    assert found.of(columns).mean() == pytest.approx(truth.mean(), abs=1e-9)


def test_features_that_say_the_same_or_nothing_do_no_harm():
    columns = np.column_stack([np.arange(10.0), np.arange(10.0), np.ones(10)])
    found = Chance.fit(("a", "same", "still"), columns, np.arange(10) > 4)
    assert found.weights[0] == pytest.approx(found.weights[1]) and np.isfinite(found.of(columns)).all()


@pytest.mark.parametrize("labels", [[], [1, 1], [0, 0]])
def test_a_chance_of_one_kind_is_refused(labels):
    with pytest.raises(DataError, match="one of these"):
        Chance.fit(("a",), np.ones((len(labels), 1)), np.array(labels))


def test_a_feature_that_is_no_number_is_refused():
    with pytest.raises(DataError, match="features, found infinite"):
        Chance.fit(("a",), np.array([[np.nan], [1.0]]), np.array([0, 1]))


def test_lists_are_compared_by_rank():
    old = TopDocuments(np.array([[7, 8, 9, -1]] * 3), np.array([[4.0, 3.0, 2.0, 0.0]] * 3))
    new = TopDocuments(
        np.array([[7, 9, 1, 2], [8, 3, 7, -1], [-1, -1, -1, -1]]),
        np.array([[8.0, 2.0, 1.0, 1.0], [5.0, 5.0, 1.0, 0.0], [0.0] * 4]),
    )
    found = agreement(old, new).T
    assert len(found) == len(LISTS)
    assert found[0].tolist() == [1, 0, 0]
    assert found[1].tolist() == [1, 1, 0]
    # 7 stands first, third, nowhere (counted as fifth); the new firsts stood first, second, nowhere.
    assert found[2].tolist() == pytest.approx([1, 1 / 3, 1 / 5])
    assert found[3].tolist() == pytest.approx([1, 1 / 2, 1 / 5])
    assert found[4].tolist() == [0.5, 0.5, 0]
    # The lead of rank 1: of the original, of the original where both have the same first, and of the reformulation.
    assert found[5:8].tolist() == [[0.25] * 3, [0.25, 0, 0], [0.75, 0, 0]]
    assert found[9].tolist() == [8, 5, 0]


def test_nearness_is_compared_between_the_lists():
    similar = np.array([0.9])
    old, new = np.array([[0.5, 0.8]]), np.array([[0.7, -1.0]])
    similar_, _, _, first, new_first, lead, new_lead, best, mean = closeness(similar, old, new)[0].tolist()
    assert len(CLOSE) == 9 and similar_ == 0.9
    assert (lead, new_lead, best) == pytest.approx((0.3, 0.1, -0.1))
    assert first == new_first == 0
    second = 1 / np.log2(3)
    # The document that is not there counts nothing.
    assert mean == pytest.approx((0.7 - 0.5 - 0.8 * second) / (1 + second))
