"""FaiRR and NFaiRR against hand-computed values of the published formulas."""

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import askew
from askew.core.errors import ConfigError, DataError
from askew.measures.fairr import as_written, neutrality

DOCS = {
    "neutral": "the train",
    "one": "he left",
    "even": "he and she",
    "mostly": "he he he she",
    "all": "she her woman",
}
HALF = np.array([0.5, 0.5])


def score(text, ranking, docs=DOCS, background=None, **options):
    run = {"q": {doc: -float(rank) for rank, doc in enumerate(ranking)}}
    if background is not None:
        background = {"q": {doc: -float(rank) for rank, doc in enumerate(background)}}
    report = askew.measure({"r": run}, docs, measures=[text], background=background, **options)
    return report.runs[0].values[text][0]


def p(rank):
    return 1 / log2(rank + 1)


def test_neutrality_is_one_minus_the_distance_from_an_even_share():
    counts = np.array([[0, 0], [1, 0], [1, 1], [1, 3], [3, 0]], np.int32)
    assert neutrality(counts, HALF).tolist() == [1, 1, 1, 0.5, 0]


def test_a_single_word_leaves_a_document_neutral_unless_the_threshold_says_otherwise():
    counts = np.array([[1, 0]], np.int32)
    assert neutrality(counts, HALF, threshold=1) == 1
    assert neutrality(counts, HALF, threshold=0) == 0


def test_faiRR_sums_discounted_neutralities_without_normalising():
    assert score("FaiRR@3", ("mostly", "all", "neutral")) == pytest.approx(0.5 * p(1) + 0 + p(3))


@pytest.mark.parametrize(("cutoff", "published"), [(10, 4.543559), (20, 7.040268)])
def test_an_all_neutral_list_reaches_the_published_sum_of_discounts(cutoff, published):
    docs = {f"d{i:02d}": "x" for i in range(20)}
    assert score(f"FaiRR@{cutoff}", list(docs), docs) == pytest.approx(published, abs=5e-7)


def test_nfairr_divides_by_the_most_neutral_order_of_the_background():
    background = ("all", "neutral", "even", "mostly")
    got = score("NFaiRR@2", ("mostly", "all"), background=background)
    assert got == pytest.approx(0.5 * p(1) / (p(1) + p(2)))


def test_the_background_counts_only_to_its_depth():
    got = score("NFaiRR(depth=2)@2", ("mostly", "all"), background=("all", "mostly", "neutral"))
    assert got == pytest.approx(0.5 * p(1) / (0.5 * p(1)))


def test_without_a_background_the_run_itself_is_the_background_and_the_signature_says_so():
    run = {"q": {"all": 2.0, "neutral": 1.0}}
    report = askew.measure({"r": run}, DOCS, measures=["NFaiRR@10"])
    assert "background='self'" in report.asked[0].signature
    assert report.runs[0].values["NFaiRR@10"][0] == pytest.approx(p(2) / p(1))


def test_asking_for_a_background_run_without_giving_one_is_an_error():
    with pytest.raises(ConfigError, match="background="):
        score("NFaiRR(background=run)@10", ("all",))


def test_a_query_whose_background_has_no_neutrality_is_left_out_counted_and_told():
    run = {"q": {"all": 1.0}, "r": {"neutral": 1.0}}
    report = askew.measure({"r": run}, DOCS, measures=["NFaiRR@10"])
    assert report.mean(report.runs[0], report.asked[0]).n == 1
    assert any("r: NFaiRR@10 " in note and "1 of 2" in note for note in report.notes)


def test_such_a_query_can_have_the_value_zero():
    run = {"q": {"all": 1.0}, "r": {"neutral": 1.0}, "ghost": {"ghost": 1.0}}
    report = askew.measure({"r": run}, DOCS, measures=["NFaiRR(zero_ideal=zero)@10"], missing="drop")
    values = report.to_dict(per_query=True)["runs"][0]["per_query"]
    name = "NFaiRR(zero_ideal=zero)@10"
    assert values == {"q": {name: 0.0}, "r": {name: 1.0}, "ghost": {}}


def test_such_a_query_can_be_an_error():
    with pytest.raises(DataError, match="0/0"):
        score("NFaiRR(zero_ideal=error)@10", ("all",), background=("all",))


@pytest.mark.parametrize("policy", ["drop", "skip"])
@pytest.mark.parametrize("name", ["FaiRR", "NFaiRR", "NFaiRR(zero_ideal=error)"])
def test_a_query_without_any_known_document_is_left_out_rather_than_called_without_neutrality(name, policy):
    run = {"q": {"ghost": 1.0}, "r": {"neutral": 1.0}}
    report = askew.measure({"r": run}, DOCS, measures=[f"{name}@10"], missing=policy)
    assert report.to_dict(per_query=True)["runs"][0]["per_query"] == {"q": {}, "r": {f"{name}@10": 1.0}}


def test_nfairr_exceeds_one_when_the_run_has_documents_the_background_lacks():
    assert score("NFaiRR@1", ("neutral",), background=("mostly",)) == pytest.approx(2.0)


def test_a_query_the_background_lacks_is_an_error_or_left_out():
    run = {"q": {"neutral": 1.0}, "other": {"neutral": 1.0}}
    background = {"q": {"neutral": 1.0}}
    with pytest.raises(DataError, match="'other'"):
        askew.measure({"r": run}, DOCS, measures=["NFaiRR@10"], background=background)
    report = askew.measure({"r": run}, DOCS, measures=["NFaiRR(unmatched=absent)@10"], background=background)
    assert report.mean(report.runs[0], report.asked[0]).n == 1


def test_targets_other_than_even_shares():
    counts = np.array([[3, 1], [1, 1]], np.int32)
    assert neutrality(counts, np.array([0.75, 0.25])).tolist() == pytest.approx([1.0, 1 - 0.5 / 1.5])
    assert score("FaiRR(targets='female:0.25,male:0.75')@1", ("mostly",)) == pytest.approx(1.0)


@pytest.mark.parametrize("targets", ["female:1", "female:0.5,male:0.6", "x", "female:a,male:b"])
def test_targets_that_make_no_sense_are_refused(targets):
    with pytest.raises(ConfigError, match="targets"):
        score(f"FaiRR(targets='{targets}')@1", ("mostly",))


def test_neutralities_come_back_from_six_decimals_as_from_a_file():
    values = np.array([(s - f) / s for s in range(2, 1500) for f in range(0, s, 7)])
    assert as_written(values, 6).tolist() == [float(f"{value:f}") for value in values.tolist()]


def test_three_groups_keep_neutrality_within_zero_and_one():
    third = np.full(3, 1 / 3)
    counts = np.array([[9, 0, 0], [3, 3, 3], [4, 4, 0]], np.int32)
    assert neutrality(counts, third).tolist() == pytest.approx([0, 1, 0.5])


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=15))
def test_neutrality_does_not_care_which_group_is_which(pairs):
    counts = np.array(pairs, np.int32)
    assert neutrality(counts, HALF).tolist() == pytest.approx(neutrality(counts[:, ::-1], HALF).tolist())


@given(st.permutations(list(DOCS)))
def test_no_order_of_the_same_documents_beats_the_ideal(ranking):
    assert 0 <= score("NFaiRR@4", ranking, background=list(DOCS)) <= 1 + 1e-12
