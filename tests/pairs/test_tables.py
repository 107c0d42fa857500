"""The tables of the papers, by hand on small pairs."""

import math

import numpy as np
import polars as pl
import pytest
from selection_toys import TWO, scored

from askew.core.errors import DataError
from askew.core.measure import Direction
from askew.measures.statistics.intervals import wilson
from askew.pairs.gains import make_pairs, parts_of
from askew.pairs.summary import summarize
from askew.pairs.tables import (
    EVERY,
    against_effectiveness,
    against_table,
    cross_table,
    extreme_pairs,
    hard_table,
    method_table,
    named_uses,
    outcome_table,
    query_gains,
    refined_table,
    share_interval,
    shares_of,
)

NAMES = list(TWO)
RR, TF = NAMES
# Originals first. Chosen: a-1, b-2 (and b-1), not of c.
ROWS = {
    "a": [(0.5, 2.0), (0.5, -1.0), (1.0, 3.0)],
    "b": [(0.25, -1.0), (1.0, 0.5), (0.5, 0.0)],
    "c": [(1.0, 0.5), (0.5, 0.5), (0.5, 1.0)],
}


def pairs(rows=ROWS, chosen=(True, False, True, True, False, False)):
    return make_pairs(scored(rows, NAMES), TWO).table.with_columns(chosen=pl.Series(chosen))


def test_a_share_of_pairs_is_as_wide_as_its_queries_allow():
    assert share_interval(np.ones(6, np.int64), np.array([1, 1, 1, 0, 0, 0])) == wilson(3, 6)
    # The pairs of a query are all alike: it is as if there were two.
    low, high = share_interval(np.array([3, 3]), np.array([3, 0]))
    assert (low, high) == wilson(1, 2)
    assert share_interval(np.array([2, 2]), np.array([0, 0])) == wilson(0, 2)
    assert share_interval(np.array([2, 2]), np.array([2, 2])) == wilson(2, 2)


def test_against_effectiveness_alone_by_hand():
    rows = against_effectiveness(pairs(), "chosen", RR, TWO)
    # The best by RR is a-2 and b-1; chosen are a-1, and both of b with their mean.
    assert rows["query_id"].to_list() == ["a", "b"]
    assert rows["other_RR_10"].to_list() == [1.0, 1.0]
    assert rows["other_ARaB_tf_10"].to_list() == [3.0, 0.5]
    assert rows["chosen_RR_10"].to_list() == [0.5, 0.75]
    assert rows["chosen_ARaB_tf_10"].to_list() == [1.0, 0.25]
    assert rows["old_ARaB_tf_10"].to_list() == [2.0, 1.0]
    assert rows["agree"].to_list() == [False, True]
    lean = against_table(rows, TWO).row(1, named=True)
    assert (lean["queries"], lean["old_mean"], lean["other_mean"], lean["chosen_mean"]) == (2, 1.5, 1.75, 0.625)
    assert lean["change"] == pytest.approx(100 * (0.625 / 1.75 - 1))
    assert lean["low"] <= lean["change"]
    assert lean["of"] == "distance from zero"


def test_ties_of_effectiveness_go_to_the_first_candidate():
    rows = against_effectiveness(pairs(chosen=[False] * 4 + [False, True]), "chosen", RR, TWO)
    assert (rows["query_id"].to_list(), rows["other_ARaB_tf_10"].to_list()) == (["c"], [0.5])


def test_nothing_chosen_gives_no_means():
    found = against_table(against_effectiveness(pairs(chosen=[False] * 6), "chosen", RR, TWO), TWO)
    assert found["queries"].to_list() == [0, 0]
    assert found["change"].to_list() == [None, None]


def under_another():
    """Another ranker has the original and one variant of a, only a variant of b, and all of c."""
    table = scored(ROWS, NAMES).filter(pl.col("variant_id").is_in(["a-0", "a-1", "b-1", "b-2", "c-0", "c-1", "c-2"]))
    return table.with_columns(pl.when(method="toy").then(pl.col("RR_10") / 2).otherwise("RR_10").alias("RR_10"))


def test_pairs_under_another_ranker_by_hand():
    found = cross_table(pairs(chosen=[True] * 6), {"other": under_another()}, TWO, ["chosen"])
    rr = found.row(0, named=True)
    assert (rr["ranker"], rr["subset"], rr["chosen"], rr["no_original"], rr["no_variant"]) == (
        "other", "chosen", 6, 2, 1)  # fmt: skip
    # a-1: 0.5 -> 0.25, c-1 and c-2: 1 -> 0.25.
    assert (rr["pairs"], rr["old_mean"], rr["new_mean"], rr["worsened_pairs"]) == (3, pytest.approx(2.5 / 3), 0.25, 3)


def test_under_its_own_ranker_the_table_is_that_of_the_summary():
    chosen = pairs()
    found = cross_table(chosen, {"same": scored(ROWS, NAMES)}, TWO, ["chosen"])
    assert found.drop("ranker", "chosen", "no_original", "no_variant").equals(summarize(chosen, TWO, ["chosen"]))


def test_scores_that_miss_a_column_or_have_a_variant_twice_are_refused():
    with pytest.raises(DataError, match="expected a column 'method'"):
        cross_table(pairs(), {"other": under_another().drop("method")}, TWO, ["chosen"])
    with pytest.raises(DataError, match=r"scores of other: .*two rows"):
        cross_table(pairs(), {"other": pl.concat([under_another()] * 2)}, TWO, ["chosen"])


def test_no_other_ranker_makes_no_table():
    assert cross_table(pairs(), {}, TWO, ["chosen"]).is_empty()


def test_queries_gain_stay_and_lose_by_hand():
    table = pairs(chosen=[True] * 6)
    # Means of RR gains: a (0, 0.5), b (0.75, 0.25), c (-0.5, -0.5).
    assert query_gains(table, "chosen", RR).tolist() == [0.25, 0.5, -0.5]
    row = shares_of({name: query_gains(table, "chosen", name) for name in NAMES}).row(0, named=True)
    assert (row["queries"], row["improved_queries"], row["unchanged_queries"], row["worsened_queries"]) == (3, 2, 0, 1)
    assert row["improved_queries_share"] == pytest.approx(2 / 3)
    assert (row["improved_queries_low"], row["improved_queries_high"]) == wilson(2, 3)
    within = shares_of({RR: query_gains(table, "chosen", RR)}, 0.3).row(0, named=True)
    assert (within["improved_queries"], within["unchanged_queries"], within["worsened_queries"]) == (1, 1, 1)


def test_a_query_without_a_score_is_in_no_share():
    rows = {"a": [(0.5, 1.0), (1.0, math.nan)], "b": [(0.5, 1.0), (1.0, 2.0)]}
    table = make_pairs(scored(rows, NAMES), TWO, (RR,), (), needed=(RR,)).table.with_columns(chosen=pl.lit(True))
    assert shares_of({TF: query_gains(table, "chosen", TF)}).row(0, named=True)["queries"] == 1


def test_methods_are_named_by_what_tells_their_settings_apart():
    table = pl.DataFrame({
        "method": ["replay", "replay-2", "rm3"],
        "settings": ['{"file": "f", "where": {"method": "x", "model": "m"}}',
                     '{"file": "f", "where": {"method": "y", "model": "m"}}', '{"terms": 10}'],
    })  # fmt: skip
    assert named_uses(parts_of(table))["name"].to_list() == ["replay (method=x)", "replay-2 (method=y)", "rm3"]
    odd = pl.DataFrame({"method": ["a", "a", "b"], "settings": [None, "not json", None]})
    assert named_uses(parts_of(odd))["name"].to_list() == ["a", "a (settings=not json)", "b"]


def test_what_methods_do_by_hand():
    table = pairs().with_columns(method=pl.Series(["x", "y", "x", "y", "x", "y"]))
    found = method_table(table, "chosen", TWO)
    assert found["method"].unique(maintain_order=True).to_list() == ["x", "y"]
    x = found.filter(method="x", subset=EVERY, measure=RR).row(0, named=True)
    # Candidates a-1, b-1, c-1: 0.5 -> 0.5, 0.25 -> 1, 1 -> 0.5; two of three queries have a chosen one.
    assert (x["pairs"], x["method_queries"], x["won"]) == (3, 3, 2)
    assert (x["old_mean"], x["new_mean"]) == pytest.approx((1.75 / 3, 2 / 3))
    assert (x["won_low"], x["won_high"]) == wilson(2, 3)
    chosen = found.filter(method="y", subset="chosen", measure=RR).row(0, named=True)
    assert (chosen["pairs"], chosen["old_mean"], chosen["new_mean"]) == (1, 0.25, 0.5)


def test_outcomes_add_up_and_keep_their_places():
    found = outcome_table(pairs(), "chosen")
    every, chosen = found.partition_by("of", maintain_order=True)
    assert (len(every), every["pairs"].sum(), chosen["pairs"].sum()) == (9, 6, 3)
    assert every["share"].sum() == pytest.approx(1)
    counts = dict(zip(every["outcome"], every["pairs"], strict=True))
    # a-1 same-less, a-2 better-more, b-1 and b-2 better-less, c-1 worse-same, c-2 worse-more.
    assert {name: count for name, count in counts.items() if count} == {
        "same-less": 1, "better-more": 1, "better-less": 2, "worse-same": 1, "worse-more": 1}  # fmt: skip
    assert outcome_table(pairs().with_columns(outcome=pl.lit(None, pl.String)), "chosen").is_empty()


def test_extreme_pairs_are_one_for_a_query_and_really_gain_or_lose():
    best = extreme_pairs(pairs(), [TF, RR], 5)
    assert best["variant_id"].to_list() == ["b-2", "a-1"]
    worst = extreme_pairs(pairs(), [TF, RR], 1, worst=True)
    assert worst["variant_id"].to_list() == ["a-2"]
    assert extreme_pairs(pairs(), [RR], 5, worst=True)["query_id"].to_list() == ["c"]


def test_boxes_are_counted_by_the_best_candidate_of_each_original():
    table = pairs().with_columns(platinum=pl.Series([False, True, True, True, False, False]))
    originals = np.array([0.5, 0.25, 1.0, 0.25, math.nan])
    row = refined_table(table, originals, ["platinum"], RR, Direction.UP).row(0, named=True)
    assert (row["originals"], row["all_mean"], row["refined"]) == (4, 0.5, 2)
    assert (row["refined_low"], row["refined_high"]) == wilson(2, 4)
    # a-2 and b-1: 0.5 and 0.25 become 1 and 1.
    assert (row["old_mean"], row["new_mean"], row["oracles"]) == (0.375, 1.0, 2)
    assert row["change"] == pytest.approx(100 * (1 / 0.375 - 1))
    assert row["mean_words"] == 4.0
    empty = refined_table(table, originals, ["chosen"], RR, Direction.UP)
    assert empty.row(0, named=True)["refined"] == 2


def test_hard_queries_and_what_another_ranker_makes_of_them():
    rows = {**ROWS, "d": [(0.5, 0.0), (0.5, 1.0), (0.25, 1.0)]}
    table = pairs(rows, [False] * 8)
    other = scored({"c": [(0.25, 0.0), (0.5, 0.0)], "d": [(0.5, 0.0), (0.5, 0.0)]}, NAMES)
    strict, loose = hard_table(table, {"dense": other}, RR).iter_rows(named=True)
    # c is worse with every candidate; d is as good with its best one.
    assert (strict["which"], strict["queries"], strict["hard"], loose["hard"]) == ("original better", 4, 1, 2)
    assert (strict["ranker"], strict["scored"], strict["improved"]) == ("dense", 1, 1)
    means = [strict[f"{name}_mean"] for name in ("old", "other_old", "new", "other_new")]
    assert means == [1.0, 0.25, 0.5, 0.5]
    assert (loose["improved"], loose["improved_share"]) == (1, 0.5)
    alone = hard_table(table, {}, RR)
    assert (alone["hard"].to_list(), "ranker" in alone.columns) == ([1, 2], False)


def test_a_hard_query_that_the_other_ranker_does_not_know_is_not_in_its_means():
    other = scored({"a": [(1.0, 0.0), (1.0, 0.0)]}, NAMES)
    (strict, _) = hard_table(pairs(), {"dense": other}, RR).iter_rows(named=True)
    assert (strict["hard"], strict["scored"], strict["old_mean"], strict["improved_share"]) == (1, 0, None, None)
