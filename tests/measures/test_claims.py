"""Which claim a change of lean supports."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.measure import Direction
from askew.measures.claims import Claim, ClaimedChange, claims_table

VALUES = st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=2, max_size=30)


@given(VALUES)
def test_all_claims_have_the_same_means_and_only_the_delivered_one_has_no_interval(pairs):
    old, new = np.array(pairs).T
    found = [ClaimedChange.of(one, "ARaB(tf)@10", old, new, Direction.ZERO) for one in Claim]
    assert len({(one.old, one.new, one.queries, one.change) for one in found}) == 1
    assert found[0].old == pytest.approx(np.abs(old).mean())
    assert (found[0].low, found[0].high) == (None, None)


def test_queries_without_a_value_are_left_out_of_both_means():
    old, new = np.array([1.0, np.nan, 3.0]), np.array([0.5, 1.0, 1.5])
    found = ClaimedChange.of(Claim.NEW_QUERIES, "LexiconShare@10", old, new, Direction.DOWN)
    assert (found.queries, found.old, found.new, found.change) == (2, 2.0, 1.0, -50.0)
    (row,) = claims_table([("greedy", found)]).rows
    assert row[:4] == ["greedy", "new queries", "LexiconShare@10", 2]
