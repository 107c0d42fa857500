"""Skew and NDKL by hand; the laws that they share with AWRF are in test_exposure.py."""

from math import log, log2

import pytest

import askew

WORDS = {"female": ["she"], "male": ["he"]}
DOCS = {"f0": "she", "f1": "she", "f2": "she", "m0": "he", "m1": "he", "h": "she he", "x": "rain"}
W2, W3, W4 = 1 / log2(3), 1 / 2, 1 / log2(5)


def score(text, ranking):
    run = {"q": {doc: -float(rank) for rank, doc in enumerate(ranking)}}
    return askew.measure({"r": run}, DOCS, measures=[text], groups=WORDS).runs[0].values[text][0]


def test_skew_is_the_logarithm_of_share_and_target():
    # Three women and a man: ln(0.75 / 0.5) = 0.40547, ln(0.25 / 0.5) = -0.69315.
    ranking = ["f0", "m0", "f1", "f2"]
    assert score("Skew(female)@4", ranking) == pytest.approx(0.40547, abs=1e-5)
    assert score("Skew(male)@4", ranking) == pytest.approx(-0.69315, abs=1e-5)
    assert score("Skew(max)@4", ranking) == score("Skew@4", ranking) == score("Skew(female)@4", ranking)
    assert score("Skew(min)@4", ranking) == score("Skew(male)@4", ranking)


def test_skew_against_other_targets_and_of_documents_of_both_groups():
    # h is half a woman's, half a man's: 1.5 of 2 are of women, which is the target.
    assert score("Skew(female,targets='female:0.75,male:0.25')@3", ["h", "f0", "x"]) == pytest.approx(0)
    # 0.75 of the mentions that are there against 0.25: ln 3.
    assert score("Skew(max,targets='female:0.25,male:0.75')@2", ["h", "f0"]) == pytest.approx(log(3))


def test_the_skew_of_a_group_that_is_not_there_is_that_of_the_floor():
    assert score("Skew(male)@3", ["f0"]) == pytest.approx(log(0.001))
    assert score("Skew(male,floor=0.1)@3", ["f0"]) == pytest.approx(log(0.1))
    assert score("Skew(female)@3", ["f0"]) == pytest.approx(log(2))


def test_ndkl_is_the_weighted_mean_of_the_divergence_at_each_rank():
    # f m f f against halves. Rank 1: (1, 0), ln 2. Rank 2: (1/2, 1/2), 0. Rank 3: (2/3, 1/3),
    # 2/3 ln(4/3) + 1/3 ln(2/3) = 0.05663. Rank 4: (3/4, 1/4), 3/4 ln(3/2) + 1/4 ln(1/2) = 0.13081.
    expected = (log(2) + 0.05663 * W3 + 0.13081 * W4) / (1 + W2 + W3 + W4)
    assert score("NDKL@4", ["f0", "m0", "f1", "f2"]) == pytest.approx(expected, abs=1e-5)


def test_ndkl_begins_at_the_first_document_that_names_a_group_and_keeps_the_ranks():
    # x f m: nothing is known at rank 1; (1, 0) at rank 2, halves at rank 3.
    assert score("NDKL@3", ["x", "f0", "m0"]) == pytest.approx(log(2) * W2 / (W2 + W3))


def test_order_matters_to_ndkl_and_not_to_skew():
    together, mixed = ["f0", "f1", "m0", "m1"], ["f0", "m0", "f1", "m1"]
    assert score("Skew@4", together) == score("Skew@4", mixed) == 0
    assert score("NDKL@4", mixed) < score("NDKL@4", together)


def test_lists_of_different_lengths_do_not_touch_each_other():
    run = {"long": {"f0": 3.0, "m0": 2.0, "f1": 1.0}, "short": {"m1": 1.0}}
    values = askew.measure({"r": run}, DOCS, measures=["NDKL@3"], groups=WORDS).runs[0].values["NDKL@3"].tolist()
    assert values == [score("NDKL@3", ["f0", "m0", "f1"]), score("NDKL@3", ["m1"])]
