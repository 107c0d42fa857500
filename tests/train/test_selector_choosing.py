"""How a selector chooses: examples worked out by hand, laws, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askew.core.errors import ConfigError
from askew.train.selector import (
    KEEP_ORIGINAL,
    PRESETS,
    SelectorSettings,
    best_candidate,
    kept_share,
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


def test_the_least_leaning_of_those_that_keep_enough_is_taken():
    query = np.array([0, 0, 0, 1, 1])
    lean, old = np.array([0.1, 0.3, 0.2, 0.5, 0.6]), np.array([0.4, 0.5])
    kept = np.array([0.2, 0.9, 0.8, 0.99, 0.99])
    # Query 0: the first leans least and keeps too little; the third comes next. Query 1: none leans less than before.
    assert least_leaning(query, 2, lean, old, kept, 0.5).tolist() == [2, KEEP_ORIGINAL]
    assert least_leaning(query, 2, lean, old, kept, 0.0).tolist() == [0, KEEP_ORIGINAL]
    assert least_leaning(query, 2, lean, old, kept, 1.01).tolist() == [KEEP_ORIGINAL, KEEP_ORIGINAL]


def test_of_equal_leans_the_one_that_keeps_most_is_taken():
    chosen = least_leaning(np.zeros(3, int), 1, np.full(3, 0.1), np.ones(1), np.array([0.6, 0.9, 0.7]), 0.5)
    assert chosen.tolist() == [1]


ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from([0.0, 0.1, 0.5]), st.floats(0, 1)), min_size=1, max_size=20
)


@settings(max_examples=80)
@given(ROWS, st.lists(st.sampled_from([0.0, 0.2, 0.6]), min_size=5, max_size=5), st.floats(0, 1), st.floats(0, 1))
def test_a_higher_threshold_never_leans_less_and_nothing_leans_more_than_before(rows, old, first, second):
    query = np.array([one for one, _, _ in rows])
    lean, kept = (np.array([row[k] for row in rows]) for k in (1, 2))
    before = np.array(old)

    def leans(threshold):
        chosen = least_leaning(query, 5, lean, before, kept, threshold)
        taken = chosen[chosen != KEEP_ORIGINAL]
        assert (query[taken] == np.flatnonzero(chosen != KEEP_ORIGINAL)).all() and (kept[taken] >= threshold).all()
        return np.where(chosen == KEEP_ORIGINAL, before, lean[chosen])

    low, high = leans(min(first, second)), leans(max(first, second))
    assert (low <= high).all() and (high <= before).all()


def test_the_share_kept_is_of_what_the_original_found():
    old = np.array([[1, 2, 3, -1], [1, 2, 3, 4], [-1, -1, -1, -1]])
    new = np.array([[3, 9, 1, -1], [5, 6, -1, -1], [1, 2, -1, -1]])
    assert kept_share(old, new).tolist() == pytest.approx([2 / 3, 0.0, 0.0])
