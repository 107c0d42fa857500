"""The order of run lines: by query, score in 32 bits, and document id descending, whatever order they come in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from askew.core.ranking import order_by_score

LINES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([1.0, 1.0 + 1e-12, 2.0, -0.5, 1e300, np.nan]), st.integers(0, 50)),
    max_size=30,
)


@given(LINES, st.booleans())
def test_lines_that_are_in_order_but_for_ties_come_out_as_any_others_do(lines, ready):
    if ready:
        lines = sorted(lines, key=lambda line: (line[0], -np.float64(line[1])))
    query, score, doc = (np.array([line[i] for line in lines], kind) for i, kind in enumerate((int, float, int)))
    with np.errstate(over="ignore"):
        expected = np.lexsort((-doc, -score.astype(np.float32), query))
    found = order_by_score(query, score, doc)
    assert found.tolist() == expected.tolist()


def test_only_the_tie_is_turned():
    query, score, doc = np.array([0, 0, 0, 1]), np.array([3.0, 2.0, 2.0, 5.0]), np.array([1, 2, 9, 4])
    assert order_by_score(query, score, doc).tolist() == [0, 2, 1, 3]
