"""Bose-Einstein weights by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.protocols import Passage, QueryBatch
from askew.rewrite.feedback import OnFields, bose_einstein
from askew.testing.contracts import ToyStatistics, check_reformulator, toy_asked


def asked(query, *passages, collection):
    found = tuple(Passage(f"d{i}", text, 9.0 - i) for i, text in enumerate(passages))
    return QueryBatch(("q",), (query,), (found,), ToyStatistics(collection))


# Eight documents, 64 tokens: fig once, kiwi four times, plum eight times, the rest fillers that stand once each.
EIGHT = ["fig kiwi kiwi plum plum plum plum plum", "kiwi kiwi plum plum plum z1 z2 z3",
         *(" ".join(f"g{i}{j}" for j in range(8)) for i in range(6))]  # fmt: skip


def weights_of(method, batch):
    return method.weigh(method.read(batch))


def test_the_weight_of_a_term_is_that_computed_by_hand():
    assert bose_einstein(2, 1.0) == pytest.approx(2 * 1 + 1)
    assert bose_einstein(3, 1 / 3) == pytest.approx(3 * 2 + math.log2(4 / 3))
    assert bose_einstein(1, 0.125) == pytest.approx(math.log2(9) + math.log2(1.125))


def test_the_words_of_the_first_passages_come_by_falling_weight():
    one = asked("quark", *EIGHT[:2], collection=EIGHT)
    # fig: P 1/8, tf 1; kiwi: P 1/2, tf 4; plum: P 1, tf 8
    expected = {"plum": 8 + 1, "kiwi": 4 * math.log2(3) + math.log2(1.5), "fig": math.log2(9) + math.log2(1.125)}
    (weights,) = weights_of(OnFields(words=3), one)
    assert weights == pytest.approx(expected)
    assert list(weights) == ["plum", "kiwi", "fig"]
    assert OnFields(words=3).reformulate(one).texts == ["quark plum kiwi fig"]


def test_a_rare_word_outweighs_a_common_one_of_the_same_count():
    one = asked("quark", "fig plum", collection=EIGHT)
    assert OnFields().reformulate(one).texts == ["quark fig plum"]


def test_a_term_unknown_to_the_collection_counts_as_once_in_it():
    one = asked("quark", "fig novel", collection=EIGHT)
    (weights,) = weights_of(OnFields(), one)
    assert weights["novel"] == weights["fig"]


def test_only_the_first_passages_count():
    assert OnFields(documents=1).reformulate(asked("quark", "fig", "kiwi", collection=EIGHT)).texts == ["quark fig"]


def test_words_of_the_query_take_a_place_but_are_not_repeated():
    one = asked("old plums", EIGHT[0], collection=EIGHT)
    assert OnFields(words=2).reformulate(one).texts == ["old plums kiwi"]
    assert OnFields(words=1).reformulate(one).rejected == {"nothing found": 1}


@given(st.integers(1, 20), st.integers(1, 10))
def test_more_words_are_the_fewer_and_others_after_them(words, more):
    one = asked("quark", *EIGHT[:3], collection=EIGHT)
    fewer, longer = (OnFields(words=n).reformulate(one).texts[0] for n in (words, words + more))
    assert longer.startswith(fewer)


@given(st.floats(0.001, 50), st.integers(1, 30))
def test_a_weight_grows_with_the_count_and_is_above_zero(mean, tf):
    assert 0 < bose_einstein(tf, mean) < bose_einstein(tf + 1, mean)


def test_a_blank_query_is_one_for_which_nothing_is_found():
    assert OnFields().reformulate(asked(" ", "plum", collection=EIGHT)).rejected == {"nothing found": 1}


def test_expansion_by_fields_keeps_the_contract_of_reformulators():
    found = check_reformulator(OnFields())
    assert set(found.rows) == {0, 1, 3, 4}
    assert found.texts[1].startswith(f"{toy_asked().texts[1]} ")
