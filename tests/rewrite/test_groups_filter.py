"""The filter ``groups`` drops reformulations that name a group which the query does not name."""

import pytest

import askew
from askew.core.errors import AskewError
from askew.rewrite.filters import GROUP_ADDED, GroupFilter

STATE = {"official": ["king", "president"], "public": ["people", "citizens"]}


@pytest.mark.parametrize(
    ("original", "candidate", "is_kept"),
    [
        ("is it legal to escape from prison", "can people escape from prison legally", False),
        ("is it legal to escape from prison", "escape from prison legal", True),
        ("can people escape from prison", "can citizens escape from prison", True),
        ("can people escape from prison", "can a king escape from prison", False),
        ("can people escape from prison", "escape from prison", True),
    ],
)
def test_a_candidate_may_name_only_groups_that_its_query_names(original, candidate, is_kept):
    (reason,) = GroupFilter(groups=STATE).check([original], [candidate], [0])
    assert reason == (None if is_kept else GROUP_ADDED)


def test_without_groups_the_words_for_gender_count():
    found = GroupFilter().check(["who sings"] * 2, ["which woman sings", "singer"], [0, 0])
    assert found == [GROUP_ADDED, None]


def test_no_candidates_have_no_reasons():
    assert GroupFilter().check([], [], []) == []


def test_the_settings_change_with_the_words():
    other = {**STATE, "public": ["people"]}
    assert GroupFilter(STATE).settings() != GroupFilter(other).settings()
    with pytest.raises(AskewError, match="unknown group"):
        GroupFilter("gender:men,female")


def test_the_groups_of_a_build_are_those_of_its_filter(tmp_path):
    pairs = askew.build("demo", groups=STATE, store=tmp_path, until="kept")
    queries = {one["query_id"]: one["text"] for one in pairs.table("neutral").to_dicts()}
    kept = [one for one in pairs.table("kept").to_dicts() if one["method"] != "original"]
    words = {word for words in STATE.values() for word in words}
    added = [words & set(one["text"].split()) - set(queries[one["query_id"]].split()) for one in kept]
    assert added and not any(added)
