"""DetConstSort: lists worked out by hand, and the promise about every first k places."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError
from askew.core.protocols import MitigationTask
from askew.core.ranking import Hits
from askew.search.mitigation import DetConstSort, fair_order, read_targets


def order_of(scores, groups, targets):
    return fair_order(np.array([0, len(scores)]), scores, np.array(groups), np.array(targets)).tolist()


def test_two_groups_of_equal_shares_take_turns():
    # floor(k / 2) of each are due at k = 2, 4, 6; of those due together the better score goes first.
    assert order_of([6, 5, 4, 3, 2, 1], [1, 1, 1, 2, 2, 2], [0, 0.5, 0.5]) == [0, 3, 1, 4, 2, 5]


def test_a_better_document_moves_up_as_far_as_the_deadlines_allow():
    # Due: document 3 (score 7) by place 2; documents 0 (9) and 1 (1) by place 4; document 2 (8) by place 8.
    # 0 passes 3, which may stand second; 2 passes 1, which may stand fourth, and not 3, which may not stand third.
    assert order_of([9, 1, 8, 7], [0, 1, 0, 1], [0.25, 0.5, 0.25]) == [0, 3, 2, 1]


def test_a_group_that_has_run_out_leaves_its_places_to_the_others():
    assert order_of([6, 5, 4, 3], [1, 1, 1, 2], [0, 0.5, 0.5]) == [0, 3, 1, 2]


def test_a_list_that_meets_the_shares_already_stays_as_it_is():
    assert order_of([4, 3, 2, 1], [1, 2, 1, 2], [0, 0.5, 0.5]) == [0, 1, 2, 3]


def test_even_targets_keep_the_share_of_neutral_documents():
    counts = np.array([[0, 0], [0, 0], [1, 0], [1, 0], [0, 1], [1, 0]], np.int32)
    first = Hits(np.array([0, 4, 6]), np.arange(6, dtype=np.int32), np.zeros(6, np.float32))
    task = MitigationTask(["1", "2"], ["", ""], first, ("a", "b"), counts)
    assert DetConstSort()._wanted(task)[1].tolist() == [[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]


def test_targets_are_read_by_name_and_must_add_up():
    names = ("neutral", "male", "female")
    assert read_targets("even", names) is None
    assert read_targets("male:0.3, female:0.3,neutral:0.4", names).tolist() == [0.4, 0.3, 0.3]
    for wrong in ("male:0.5", "male:x,female:0,neutral:1", "half", "male:0.9,female:0.9,neutral:-0.8"):
        with pytest.raises(ConfigError, match="targets"):
            read_targets(wrong, names)


def test_a_group_that_nobody_named_is_refused():
    with pytest.raises(DataError) as caught:
        order_of([1.0], [2], [0.5, 0.5])
    assert caught.value.code == "unknown-group" and caught.value.values == {"most": 1, "found": 2}


@settings(max_examples=80)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=25), st.sampled_from([0, 1, 2, 3]))
def test_every_group_has_its_minimum_in_every_first_k_places(documents, which):
    targets = np.array([[0.2, 0.4, 0.4], [0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]][which])
    groups = np.array([group for group, _ in documents], np.int64)
    scores = np.array([score for _, score in documents], float)
    found = fair_order(np.array([0, len(documents)]), scores, groups, targets)
    assert sorted(found.tolist()) == list(range(len(documents)))
    for k in range(1, len(documents) + 1):
        for group, share in enumerate(targets):
            due = min(int(k * share + 1e-9), int((groups == group).sum()))
            assert int((groups[found[:k]] == group).sum()) >= due
    for group in range(3):
        mine = scores[found][groups[found] == group]
        assert (np.diff(mine) <= 0).all()


def test_lists_do_not_touch_each_other():
    offsets = np.array([0, 3, 3, 6])
    scores, groups = np.array([3.0, 2, 1, 3, 2, 1]), np.array([1, 1, 2, 2, 2, 1])
    both = fair_order(offsets, scores, groups, np.array([0, 0.5, 0.5]))
    assert both.tolist() == [0, 2, 1, 3, 5, 4]
