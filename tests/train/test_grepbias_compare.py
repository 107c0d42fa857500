"""The untrained cosine, differences with their intervals, and the rule that picks the headline of a table."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from askew.core.errors import DataError
from askew.measures.statistics.intervals import mean_with_interval
from askew.models.relevance import combine
from askew.train.adapter import FOLDS, best_threshold, cosines, query_folds, zero_shot_cosine
from askew.train.grepbias import (
    MethodLogits,
    accuracy_interval,
    accuracy_table,
    cell_accuracy,
    cell_fractions,
    difference,
    difference_table,
    fractions_table,
    gap_interval,
    group_rows,
    lean_interval,
    query_leans,
    summarize,
    summary_table,
    winners,
    zero_shot_rows,
)

PROGRAM = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "grepbias.py")))

NAMES = ("a", "b", "c")


def rows(queries=(6, 8, 10), seed=0):
    """Queries of three categories, each with a relevant document in three versions and an irrelevant one."""
    rng = np.random.default_rng(seed)
    query = np.repeat([f"q{i:02}" for i in range(sum(queries))], 4)
    category = np.repeat(NAMES, [4 * n for n in queries])
    relevant = np.tile([True, True, True, False], sum(queries))
    gender = np.tile(["M", "F", "N", "N"], sum(queries))
    cosine = np.where(relevant, 0.6, 0.3) + rng.normal(0, 0.15, len(query))
    return cosine, relevant, query, category, group_rows(NAMES, category, query, relevant, gender)


def method(name, seed, groups, seeds=1):
    rng = np.random.default_rng(seed)
    logits = np.where(groups.relevant, 0.5, -0.5) + rng.normal(size=(seeds, len(NAMES), len(groups.relevant)))
    return MethodLogits(name, logits, logits[:, 0])


def untrained():
    cosine, relevant, query, category, groups = rows()
    found = zero_shot_cosine(cosine, relevant, query, category, NAMES)
    return MethodLogits("cosine, body, untrained", found.logits, found.inside), groups


def test_a_threshold_lies_halfway_between_the_two_sides():
    cosine, relevant = np.array([0.1, 0.2, 0.6, 0.8]), np.array([False, False, True, True])
    assert best_threshold(cosine, relevant) == pytest.approx(0.4)
    assert best_threshold(cosine, ~np.array([False] * 4)) == pytest.approx(-0.9)
    assert best_threshold(cosine, np.array([False] * 4)) == pytest.approx(1.8)


def test_of_equally_good_thresholds_the_middle_one_is_taken():
    # 0.05, 0.25 and 0.45 have two rows on the wrong side, all others three
    cosine = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    relevant = np.array([False, True, False, True, False, True])
    assert best_threshold(cosine, relevant) == pytest.approx(0.25)


def test_the_cosine_is_read_from_the_features_of_two_vectors():
    left, right = np.array([[0.6, 0.8]], np.float32), np.array([[0.8, 0.6]], np.float32)
    np.testing.assert_allclose(cosines(combine(left, right)), [0.96], rtol=1e-6)


def test_the_test_categories_have_no_part_in_the_threshold():
    cosine, relevant, query, category, _ = rows()
    first = zero_shot_cosine(cosine, relevant, query, category, NAMES)
    flipped = zero_shot_cosine(cosine, np.where(category == "a", relevant, ~relevant), query, category, NAMES)
    np.testing.assert_array_equal(first.logits[0, 0], flipped.logits[0, 0])
    assert (first.logits[0, 1] != flipped.logits[0, 1]).any()


def test_on_the_diagonal_a_threshold_is_chosen_by_the_other_folds():
    cosine, relevant, query, category, _ = rows()
    found = zero_shot_cosine(cosine, relevant, query, category, NAMES)
    there = np.flatnonzero(category == "b")
    fold = query_folds(query[there], FOLDS, 7)
    own, others = there[fold == 2], there[fold != 2]
    np.testing.assert_allclose(found.inside[0, own], cosine[own] - best_threshold(cosine[others], relevant[others]))


def test_an_accuracy_counts_categories_alike_and_its_interval_is_that_of_bounded_means():
    cosine, groups = untrained()
    found = summarize(cosine.logits, groups, cosine.inside)
    cells = cell_accuracy(cosine.logits[0], groups)
    assert found.zero_shot.value == pytest.approx((cells.sum() - np.trace(cells)) / 6)
    assert found.fitted.value == pytest.approx(np.trace(cells) / 3)
    _, _, _, _, even = rows((8, 8, 8))
    right = np.random.default_rng(1).random(len(even.relevant))
    by_query = right.reshape(-1, 4).mean(1)
    wanted = mean_with_interval(by_query, (0.0, 1.0))
    told = accuracy_interval(right, even)
    assert (told.value, told.low, told.high) == pytest.approx((wanted.mean, wanted.low, wanted.high))


def test_a_perfect_accuracy_still_has_a_lower_end_below_one():
    _, _, _, _, groups = rows()
    found = accuracy_interval(np.ones(len(groups.relevant)), groups)
    assert found.value == pytest.approx(1.0) and found.high == 1.0 and 0.7 < found.low < 1.0


def test_exchanging_two_methods_flips_the_sign_of_their_difference():
    _, _, _, _, groups = rows()
    one, other = method("one", 1, groups), method("other", 2, groups, seeds=2)
    forth, back = difference(one, other, groups), difference(other, one, groups)
    wanted = summarize(other.logits, groups), summarize(one.logits, groups)
    for name, own in (("accuracy", "zero_shot"), ("gap", "gap"), ("lean", "lean"), ("distance", "distance")):
        a, b = getattr(forth, name), getattr(back, name)
        assert a.value == pytest.approx(-b.value)
        assert a.value == pytest.approx(getattr(wanted[0], own).value - getattr(wanted[1], own).value)
        assert a.low <= a.value <= a.high
    assert (forth.accuracy.low, forth.p) == pytest.approx((-back.accuracy.high, back.p))


def test_m_minus_f_is_the_sum_of_what_each_query_adds():
    _, _, _, _, groups = rows()
    logits = method("one", 3, groups, seeds=2).logits
    found = query_leans(logits, groups)
    for s in range(2):
        wanted = PROGRAM.male_minus_female(cell_fractions(winners(logits[s], groups), groups))
        np.testing.assert_allclose(found.parts[s].sum(1), wanted)
    np.testing.assert_allclose(found.reach.sum(2), 1.0)
    assert (np.abs(found.parts) <= found.reach).all()


def test_the_interval_of_m_minus_f_is_that_of_the_queries_that_count():
    # All queries of three equal categories count; M wins half of them, F none.
    query, category = np.repeat([f"q{i:02}" for i in range(24)], 3), np.repeat(NAMES, 24)
    groups = group_rows(NAMES, category, query, np.ones(72, bool), np.tile(["M", "F", "N"], 24))
    logits = np.tile([3.0, 1.0, 2.0, 2.0, 1.0, 3.0], 12)[None, None].repeat(3, 1)
    found = lean_interval(query_leans(logits, groups))
    wanted = mean_with_interval(np.tile([1.0, 0.0], 12), (-1.0, 1.0))
    assert (found.value, found.low, found.high) == pytest.approx((wanted.mean, wanted.low, wanted.high))
    # Three trainings hold at once, so each has an interval of its own, and longer.
    gap = gap_interval(query_leans(logits, groups))
    assert gap.value == pytest.approx(0.5) and gap.low < found.low and gap.high > found.high


def test_the_interval_of_an_absolute_value_reaches_to_zero_where_the_sign_is_open():
    _, _, _, _, groups = rows()
    leans = query_leans(method("one", 1, groups).logits, groups)
    lean, gap = lean_interval(leans), gap_interval(leans)
    assert lean.low < 0 < lean.high and gap.low == 0.0
    assert gap.high >= max(-lean.low, lean.high)


def test_methods_with_other_numbers_of_seeds_are_compared_where_one_has_a_single_seed():
    _, _, _, _, groups = rows()
    one, two, three = (method(str(n), n, groups, seeds=n) for n in (1, 2, 3))
    assert difference(one, three, groups).gap.high > 0
    with pytest.raises(DataError, match=r"seeds.* found 3 and 2"):
        difference(two, three, groups)


def test_a_method_does_not_differ_from_itself():
    _, _, _, _, groups = rows()
    found = difference(method("one", 1, groups), method("one", 1, groups), groups)
    assert found.accuracy.value == found.gap.value == found.distance.value == 0.0 and found.p == 1.0
    # Equal results of 24 queries do not show that other queries are equal.
    assert found.accuracy.low < -0.05 and found.accuracy.high > 0.05


def test_the_headline_is_the_best_on_held_out_queries_whatever_it_does_on_the_test_categories():
    cosine, groups = untrained()
    sides = np.where(groups.relevant, 1.0, -1.0)
    good_on_test = MethodLogits("test", np.tile(sides, (1, 3, 1)), -sides[None])
    good_inside = MethodLogits("inside", np.tile(-sides, (1, 3, 1)), sides[None])
    without_folds = MethodLogits("no folds", np.tile(sides, (1, 3, 1)))
    found = PROGRAM.headline([good_on_test, good_inside, without_folds, cosine], groups)
    assert found.name == "inside" and [name for name, _, _ in found.candidates][-1] == "test"
    assert "no folds" not in {name for name, _, _ in found.candidates}
    assert zero_shot_rows(good_inside.logits, groups).mean() == 0.0


def test_of_equally_accurate_rows_the_one_with_the_smaller_gap_is_the_headline():
    _, _, _, _, groups = rows()
    sides = np.where(groups.relevant, 1.0, -1.0)
    male = sides + 0.1 * np.tile([1, 0, 0, 0], len(sides) // 4)
    neutral = sides + np.tile([0.01, 0, 0.1, 0], len(sides) // 4)
    logits = np.tile(sides, (1, 3, 1))
    pair = [MethodLogits("male", logits, male[None]), MethodLogits("neutral", logits, neutral[None])]
    assert PROGRAM.headline(pair, groups).name == "neutral"
    found = PROGRAM.headline(pair[::-1], groups).candidates
    assert [one[0] for one in found] == ["neutral", "male"]
    assert [value for one in found for value in one[1:]] == pytest.approx([1.0, 0.0, 1.0, 1.0])
    with pytest.raises(DataError, match="headline row"):
        PROGRAM.headline([MethodLogits("no folds", logits)], groups)


def test_every_table_of_a_method_ends_with_the_untrained_cosine():
    cosine, groups = untrained()
    before, after = method("before", 1, groups), method("after", 2, groups)
    tables = [
        accuracy_table("2", before, groups, cosine),
        fractions_table(before, groups, cosine),
        PROGRAM.before_after_table(before, after, groups, cosine),
    ]
    assert {table.rows[-1][0] for table in tables} == {cosine.name}
    assert all(len(table.rows[-1]) == len(table.columns) for table in tables)
    summary = summarize(cosine.logits, groups)
    assert tables[0].rows[-1][-1] == f"{summary.zero_shot.value:.3f}"
    assert tables[2].rows[-1][-2] == f"{summary.gap.value:.3f}"
    assert summary_table([cosine, before], groups).rows[0][0] == cosine.name


def test_a_table_of_differences_corrects_its_p_for_the_number_of_rows():
    cosine, groups = untrained()
    methods = [method(str(seed), seed, groups) for seed in range(3)]
    alone = difference_table("trained - untrained", [(cosine, methods[0])], groups)
    all_of_them = difference_table("trained - untrained", [(cosine, one) for one in methods], groups)
    assert [row[0] for row in all_of_them.rows] == ["0", "1", "2"]
    assert all_of_them.rows[0][1] == alone.rows[0][1]
    assert float(all_of_them.rows[0][2]) >= float(alone.rows[0][2])
