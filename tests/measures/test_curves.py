"""The precision/recall curve, its area and where to cut: by hand, by another way, and by law."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError
from askew.measures.statistics.curves import (
    average_precision,
    calibrate,
    choose_threshold,
    precision_recall,
)

SCORES = [0.9, 0.8, 0.8, 0.6, 0.4]
LABELS = [1, 0, 1, 0, 1]

scored = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1)), min_size=1, max_size=30).filter(
    lambda pairs: any(label for _, label in pairs)
)


def area_of(scores, labels):
    return average_precision(scores, labels, ["q"] * len(labels)).value


def test_the_curve_has_one_point_for_each_distinct_score():
    curve = precision_recall(SCORES, LABELS)
    assert curve.thresholds.tolist() == [0.9, 0.8, 0.6, 0.4]
    assert curve.kept.tolist() == [1, 3, 4, 5]
    assert curve.precision == pytest.approx([1, 2 / 3, 1 / 2, 3 / 5])
    assert curve.recall == pytest.approx([1 / 3, 2 / 3, 2 / 3, 1])
    assert (curve.n, curve.positives, curve.base_rate) == (5, 3, 0.6)


def test_the_area_weighs_each_precision_by_the_recall_it_adds():
    # 1 * 1/3 + 2/3 * 1/3 + 1/2 * 0 + 3/5 * 1/3
    assert area_of(SCORES, LABELS) == pytest.approx((1 + 2 / 3 + 3 / 5) / 3)


def test_the_highest_f1_is_chosen_and_the_higher_threshold_if_equal():
    # F1 is 1/2, 2/3, 4/7 and 3/4.
    cut = choose_threshold(precision_recall(SCORES, LABELS))
    assert (cut.threshold, cut.rule, cut.kept) == (0.4, "f1", 5)
    assert cut.f1 == pytest.approx(0.75)
    # Both points have an F1 of 2/3: precision 1 and recall 1/2, precision 1/2 and recall 1.
    assert choose_threshold(precision_recall([0.9, 0.5, 0.5, 0.5], [1, 1, 0, 0])).threshold == 0.9


def test_a_wanted_precision_keeps_as_much_as_it_can():
    curve = precision_recall(SCORES, LABELS)
    assert choose_threshold(curve, "precision", 0.9).threshold == 0.9
    assert choose_threshold(curve, "precision", 0.6).threshold == 0.4
    cut = choose_threshold(curve, "precision", 0.65)
    assert (cut.threshold, cut.rule, cut.kept) == (0.8, "precision>=0.65", 3)
    with pytest.raises(DataError, match=r"precision of 0\.9.*0\.5"):
        choose_threshold(precision_recall([2, 1], [0, 1]), "precision", 0.9)


@pytest.mark.parametrize(("rule", "least"), [("recall", 0.9), ("precision", 0.0), ("precision", 1.5)])
def test_a_wrong_rule_is_refused(rule, least):
    with pytest.raises(ConfigError, match="expected"):
        choose_threshold(precision_recall(SCORES, LABELS), rule, least)


@pytest.mark.parametrize(
    ("scores", "labels", "said"),
    [
        ([1.0, 2.0], [1], "one label for each score"),
        ([1.0, float("nan")], [1, 0], "every score must be finite, found 1"),
        ([1.0, 2.0], [1, 2], "labels 0 and 1"),
        ([1.0, 2.0], [0, 0], "no pair with the label 1"),
        ([], [], "no pair with the label 1"),
    ],
)
def test_wrong_input_is_refused(scores, labels, said):
    with pytest.raises(DataError, match=said):
        precision_recall(scores, labels)


def test_a_query_is_needed_for_each_score():
    with pytest.raises(DataError, match="5 scores, found 1"):
        average_precision(SCORES, LABELS, ["q"])


@given(scored)
def test_the_area_is_that_of_counting_each_threshold_anew(pairs):
    scores, labels = np.array(pairs, float).T
    area, before = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        kept = scores >= threshold
        recall = labels[kept].sum() / labels.sum()
        area, before = area + (recall - before) * labels[kept].mean(), recall
    assert area_of(scores, labels) == pytest.approx(area)


@given(scored, st.randoms(use_true_random=False))
def test_neither_order_nor_scale_of_the_scores_matters(pairs, random):
    shuffled = list(pairs)
    random.shuffle(shuffled)
    once = area_of(*zip(*pairs, strict=True))
    other = [(3.5 * score - 7, label) for score, label in shuffled]
    assert area_of(*zip(*other, strict=True)) == pytest.approx(once)


def test_the_interval_holds_the_value_and_is_the_same_for_the_same_seed():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 400)
    scores = labels + rng.normal(0, 1.5, 400)
    queries = [f"q{i // 8}" for i in range(400)]
    found = average_precision(scores, labels, queries)
    assert found == average_precision(scores, labels, queries)
    assert found != average_precision(scores, labels, queries, seed=1)
    assert found.low < found.value < found.high
    assert found.queries == 50


def test_whole_queries_are_drawn():
    """Eight copies of each pair in one query are worth no more than one: the interval must not shrink."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 40)
    scores = labels + rng.normal(0, 1.0, 40)
    queries = [f"q{i}" for i in range(40)]
    once = average_precision(scores, labels, queries)
    copied = average_precision(np.repeat(scores, 8), np.repeat(labels, 8), np.repeat(queries, 8).tolist())
    assert (copied.low, copied.value, copied.high) == pytest.approx((once.low, once.value, once.high))
    apart = average_precision(np.repeat(scores, 8), np.repeat(labels, 8), [str(i) for i in range(320)])
    assert apart.high - apart.low < 0.6 * (once.high - once.low)


def test_a_single_query_has_no_spread_and_perfect_scores_have_none_either():
    alone = average_precision(SCORES, LABELS, ["q"] * 5)
    assert alone.low == pytest.approx(alone.value) == pytest.approx(alone.high)
    perfect = average_precision([3, 2, 1, 0], [1, 1, 0, 0], ["a", "b", "c", "d"])
    assert (perfect.low, perfect.value, perfect.high) == (1.0, 1.0, 1.0)


def test_calibrate_puts_curve_area_and_threshold_together():
    found = calibrate(SCORES, LABELS, ["a", "a", "b", "b", "c"], rule="precision", least_precision=0.65)
    assert found.cut.threshold == 0.8
    assert found.average_precision.value == pytest.approx(area_of(SCORES, LABELS))
