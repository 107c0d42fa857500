"""How a document is assigned to a group, and how far it leans, with any number of groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.protocols import DocMentions
from askew.search.annotated import Counting, compared_groups, document_lean, leaning_groups
from askew.search.mitigation import NEUTRAL

AGES = ("child", "adult", "old")


def mentions(counts, groups=AGES):
    rows = np.atleast_2d(np.asarray(counts, np.int32))
    return DocMentions(groups, rows, rows.sum(axis=1), np.ones(len(rows), np.bool_))


def names_of(found, **more):
    names = ("neutral", *compared_groups(found, **more)[0])
    return [names[one] for one in leaning_groups(found, **more).tolist()]


def test_a_document_belongs_to_the_group_it_mentions_most_and_ties_and_none_are_neutral():
    found = mentions([[3, 2, 2], [0, 0, 1], [3, 3, 0], [2, 2, 2], [0, 0, 0], [1, 1, 2]])
    assert names_of(found) == ["child", "old", "neutral", "neutral", "neutral", "old"]


def test_only_the_groups_that_are_compared_may_be_asked_for():
    found = mentions([[3, 2, 1], [0, 2, 2]])
    assert compared_groups(found, groups="old-adult")[0] == ("old", "adult")
    assert names_of(found, groups="old-adult") == ["adult", "neutral"]


def test_one_group_alone_is_named_or_not():
    assert names_of(mentions([[2], [0]], ("old",))) == ["old", "neutral"]


@given(hnp.arrays(np.int32, st.tuples(st.integers(1, 8), st.integers(3, 5)), elements=st.integers(0, 3)), st.randoms())
def test_the_order_of_the_groups_changes_no_assignment_and_no_lean(counts, random):
    names = tuple(f"g{at}" for at in range(counts.shape[1]))
    order = list(range(len(names)))
    random.shuffle(order)
    other = mentions(counts[:, order], tuple(names[at] for at in order))
    assert names_of(other) == names_of(mentions(counts, names))
    for kind in ("tc", "tf", "bool", "neutrality"):
        np.testing.assert_allclose(document_lean(other, kind), document_lean(mentions(counts, names), kind))


@given(hnp.arrays(np.int32, st.tuples(st.integers(1, 8), st.just(2)), elements=st.integers(0, 3)))
def test_of_two_groups_the_larger_count_decides(counts):
    signs = np.sign(counts[:, 1] - counts[:, 0])
    expected = [{0: "neutral", 1: "male", -1: "female"}[sign] for sign in signs.tolist()]
    assert names_of(mentions(counts, ("female", "male"))) == expected
    assert (
        document_lean(mentions(counts, ("female", "male")), "tc").tolist()
        == np.abs(counts[:, 1] - counts[:, 0]).tolist()
    )


def test_the_lean_of_several_groups_is_the_largest_difference_between_two():
    found = mentions([[3, 1, 0], [2, 2, 2], [0, 0, 0]])
    assert document_lean(found, "tc").tolist() == [3, 0, 0]
    assert document_lean(found, "bool").tolist() == [1, 0, 0]
    # Shares 3/4, 1/4 and 0 are 5/12, 1/12 and 4/12 away from a third, of 4/3 at most.
    assert document_lean(found, "neutrality").tolist() == pytest.approx([(10 / 12) / (4 / 3), 0, 0])


def test_one_group_leans_by_its_magnitude_and_has_no_neutrality():
    found = mentions([[2], [0]], ("old",))
    assert document_lean(found, "tc").tolist() == [2, 0]
    with pytest.raises(ConfigError, match="found old") as error:
        document_lean(found, "neutrality")
    assert error.value.code == "too-few-groups"


def test_counting_names_its_groups_and_refuses_one_called_neutral():
    counting = Counting("bool", Groups({"old": ["elderly"], "young": ["teen"]}, tokens="blank"))
    assert counting.facts()["groups"] == "old-young" and counting.facts()["tokens"] == "blank"
    assert NEUTRAL == 0
    with pytest.raises(ConfigError) as error:
        Counting(groups=Groups({"neutral": ["it"], "old": ["elderly"]}))
    assert error.value.code == "reserved-name"
    with pytest.raises(ConfigError) as error:
        Counting("most")
    assert (error.value.code, error.value.values) == ("bad-choice", {"value": "most"})
