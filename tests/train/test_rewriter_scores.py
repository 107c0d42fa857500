"""How near a written query is to the wanted one: each measure by hand, and what holds for all texts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.train.common import read_published
from askew.train.finetune import (
    MEASURES,
    bleu_counts,
    bleu_mean,
    pair_scores,
    sentence_bleu,
    squad_f1,
)

WANTED, WRITTEN = "red fast cars for sale", "fast red car sale"
TEXTS = st.lists(st.sampled_from(["a", "the", "b", "c", "Dogs", "dog,", "running"]), max_size=7).map(" ".join)


def scores(wanted, written, original=""):
    return {name: float(values[0]) for name, values in pair_scores([wanted], [written], [original]).items()}


def corpus_bleu(wanted, written):
    return float(bleu_mean(bleu_counts(wanted, written).sum(axis=0)))


def test_rouge_and_f1_are_those_of_the_definitions():
    found = scores(WANTED, WRITTEN)
    # Stemmed, four words of five and four are common (cars is car); in order three are.
    assert found["rouge1"] == pytest.approx(8 / 9)
    assert found["rougeL"] == pytest.approx(6 / 9)
    # As they stand, two in order: precision 2/4, recall 2/5, and (1 + 1.44) p r / (r + 1.44 p).
    assert found["rougeL_beta"] == pytest.approx(2.44 * 0.5 * 0.4 / (0.4 + 1.44 * 0.5))
    # As they stand, three are common.
    assert found["f1"] == pytest.approx(6 / 9)
    assert found["exact"] == 0.0


def test_articles_and_punctuation_do_not_count_for_squad():
    assert squad_f1("The peak, of a hill!", "peak of hill") == 1.0
    assert scores("The peak, of a hill!", "peak of hill")["exact"] == 1.0
    assert squad_f1("then", "the n") == 0.0


def test_sentence_bleu_has_smoothing_seven():
    # Right: 3 of 4 words, none of the 3, 2 and 1 longer ones. Smoothing 4 puts ln 4 / (5 * 2^k) for the k-th zero.
    p = [3 / 4, math.log(4) / 10 / 3, math.log(4) / 20 / 2, math.log(4) / 40, 0.0]
    # Smoothing 5: each order is the mean of the one before (smoothed; before the first: p1 + 1), itself, the next.
    before, product = p[0] + 1, 1.0
    for i in range(4):
        before = (before + p[i] + p[i + 1]) / 3
        product *= before
    assert sentence_bleu(WANTED.split(), WRITTEN.split()) == pytest.approx(math.exp(1 - 5 / 4) * product**0.25)
    assert sentence_bleu(["a"], ["b"]) == 0.0
    assert sentence_bleu(["a"], []) == 0.0


def test_sentence_bleu_can_exceed_one_as_published():
    assert sentence_bleu(list("abcdefgh"), list("abcdefgh")) > 1.0


def test_corpus_bleu_is_the_mean_of_four_orders():
    # 4 of 5 words and 2 of 3 pairs are right, 1 of 1 of three; there is none of four, which the published scorer takes
    # for 1e-15 of 1e-9. Written are 5 words, wanted 6.
    wanted, written = ["a b c", "d e f"], ["a b c", "d x"]
    orders = [4 / 5, 2 / 3, 1.0, 1e-6]
    bleus = [math.prod(orders[:n]) ** (1 / n) for n in (1, 2, 3, 4)]
    assert corpus_bleu(wanted, written) == pytest.approx(math.exp(1 - 6 / 5) * sum(bleus) / 4)
    counts = bleu_counts(wanted, written)
    assert counts.sum(axis=0).tolist() == [4, 2, 1, 0, 5, 3, 1, 0, 6, 5]
    assert bleu_mean(np.stack([counts.sum(axis=0)] * 2)).shape == (2,)


def test_a_query_that_comes_back_is_a_copy():
    assert scores("a", "Who is", "who  is")["copies"] == 1.0
    assert scores("a", "who is it", "who is")["copies"] == 0.0


@given(TEXTS, TEXTS)
def test_all_but_sentence_bleu_lie_between_nothing_and_all(wanted, written):
    found = scores(wanted, written)
    assert set(found) == set(MEASURES)
    assert all(0.0 <= value <= 1.0 + 1e-12 for name, value in found.items() if name != "bleu_sentence")
    assert found["bleu_sentence"] >= 0.0
    assert 0.0 <= corpus_bleu([wanted], [written]) <= 1.0


@given(TEXTS)
def test_what_was_wanted_is_near_itself(text):
    found = scores(text, text)
    if text.split():
        assert found["rouge1"] == found["rougeL"] == 1.0
        assert found["rougeL_beta"] == pytest.approx(1.0)
    assert found["exact"] == 1.0


def test_the_published_table_is_whole():
    _, rows = read_published("repair2023")
    assert len(rows) == 9
    assert {row["model"] for row in rows} == {"t5-base", "acg", "hred-qs"}
    assert list(rows[0].values())[2:] == ["0.4296", "0.2115", "0.4191"]
