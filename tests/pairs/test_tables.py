"""The tables of the papers, by hand on small pairs."""

import polars as pl
import pytest
from selection_toys import TWO, scored

from askew.core.errors import DataError
from askew.measures.statistics.intervals import wilson
from askew.pairs.gains import make_pairs
from askew.pairs.summary import summarize
from askew.pairs.tables import (
    EVERY,
    cross_table,
    extreme_pairs,
    method_table,
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


def test_extreme_pairs_are_one_for_a_query_and_really_gain_or_lose():
    best = extreme_pairs(pairs(), [TF, RR], 5)
    assert best["variant_id"].to_list() == ["b-2", "a-1"]
    worst = extreme_pairs(pairs(), [TF, RR], 1, worst=True)
    assert worst["variant_id"].to_list() == ["a-2"]
    assert extreme_pairs(pairs(), [RR], 5, worst=True)["query_id"].to_list() == ["c"]
