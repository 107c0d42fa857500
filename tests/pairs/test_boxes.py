"""RePair's boxes and aggregated tables."""

import math

import polars as pl
import pytest
from hypothesis import given
from selection_toys import TWO, scored, tables

from askew.core.errors import ConfigError, DataError, UnknownName
from askew.core.measure import Direction
from askew.pairs.boxes import Boxes, agg_all, agg_gold, read_boxes
from askew.pairs.gains import NO_EFFECTIVENESS

RR = {"RR@10": Direction.UP}
BOXES = ["gold", "platinum", "diamond"]


def one(**queries):
    """Queries by the scores of their variants, the original first."""
    return scored({name: [(value,) for value in values] for name, values in queries.items()}, ["RR@10"])


def boxes(table, **settings):
    return Boxes(**settings).select(table, RR)


def best_of(selected):
    return {row["query_id"]: row for row in selected.filter(pl.col("is_best")).rows(named=True)}


def test_the_boxes_are_those_published():
    found = best_of(
        boxes(one(tie=[0.5, 0.5], zero=[0, 0], better=[0.25, 0.5], full=[0.5, 1], same=[1, 1], worse=[1, 0.5]))
    )
    inside = {name: [box for box in BOXES if row[box]] for name, row in found.items()}
    assert inside == {
        "tie": ["gold"], "zero": [], "better": ["gold", "platinum"], "full": BOXES, "same": ["gold"], "worse": [],
    }  # fmt: skip


def test_the_equation_of_the_paper_is_strict_where_the_distributed_gold_is_not():
    selected = boxes(one(tie=[0.5, 0.5], better=[0.5, 1]), boxes="gold; eq1")
    assert selected.select("gold", "eq1").rows() == [(True, False), (True, True)]


def test_only_the_best_candidate_is_tested_unless_every_one_is_asked_for():
    table = one(q=[0.25, 0.5, 1.0, 0.5, 1.0])
    assert boxes(table)["platinum"].to_list() == [False, True, False, False]
    assert boxes(table, every=True)["platinum"].to_list() == [True, True, True, True]
    assert boxes(table, every=True)["is_best"].to_list() == [False, True, False, False]


def test_users_write_their_own_boxes():
    table = one(a=[0.25, 0.5], b=[0.25, 0.3])
    selected = boxes(table, boxes="far: refined - original >= 0.2; near: not refined - original >= 0.2")
    assert selected.select("far", "near").rows() == [(True, False), (False, True)]
    assert Boxes(boxes="far: refined > 1; gold").subsets == ("far", "gold")


def test_the_measure_may_be_one_for_which_less_is_better():
    table = scored({"q": [(0.5, 3.0), (0.5, 2.0), (0.5, -1.0), (0.5, 5.0)]}, list(TWO))
    selector = Boxes(measure="ARaB(tf)@10", boxes="less: abs(refined) < abs(original)")
    assert selector.select(table, TWO)["less"].to_list() == [False, True, False]


def test_a_candidate_in_the_original_words_is_in_the_box_only_as_published():
    table = one(q=[0.5, 0.5]).with_columns(text=pl.lit("files"))
    assert len(boxes(table)) == 0
    assert boxes(table, keep_same=True)["gold"].to_list() == [True]


def test_a_missing_score_is_counted_or_zero_as_published():
    table = one(a=[math.nan, 0.5], b=[0.5, math.nan])
    pairs = Boxes().select_counted(table, RR)
    assert pairs.dropped == {"no score": 1, NO_EFFECTIVENESS: 1}
    assert boxes(table, missing="zero").select("old_RR_10", "new_RR_10", "gold").rows() == [
        (0, 0.5, True),
        (0.5, 0, False),
    ]


def test_the_outcome_is_stored_where_a_bias_measure_is_named_and_does_not_select():
    table = scored({"q": [(0.5, 1.0), (1.0, math.nan), (0.5, 2.0)]}, list(TWO))
    selected = Boxes(bias="ARaB(tf)@10").select(table, TWO)
    assert selected.select("outcome", "is_best").rows() == [(None, True), ("same-more", False)]
    assert Boxes().select(table, TWO)["outcome"].to_list() == [None, None]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"boxes": "golden"}, "unknown box 'golden'.*did you mean 'gold'"),
        ({"boxes": "my box: refined > 1"}, "letters, digits and underscores"),
        ({"boxes": "a: refined >"}, "at character 10"),
        ({"boxes": "gold; gold"}, "each name once"),
        ({"measure": "RR@10 AP@10"}, "expected one measure"),
        ({"missing": "nan"}, "missing: expected one of drop, zero"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        Boxes(**settings)


def test_a_box_may_not_take_the_name_of_a_column():
    with pytest.raises(DataError) as error:
        boxes(one(a=[0.5, 1]), boxes="text: refined > original")
    assert (error.value.code, error.value.values) == ("column-taken", {"column": "text"})


def test_unknown_boxes_are_a_wrong_name():
    with pytest.raises(UnknownName):
        read_boxes("silver")


# --- aggregated tables ---------------------------------------------------------------------------------------------


def test_agg_all_has_the_original_first_then_candidates_by_value_with_ties_in_order():
    found, _ = agg_all(one(b=[0.5, 0.25, 1, 0.25, 1], a=[0.0]), "RR@10", "bm25")
    assert found.columns == ["qid", "order", "query", "bm25.RR@10"]
    assert found.select("qid", "order", "bm25.RR@10").rows() == [
        ("b", "-1", 0.5), ("b", "pred.1", 1.0), ("b", "pred.3", 1.0), ("b", "pred.0", 0.25), ("b", "pred.2", 0.25),
        ("a", "-1", 0.0),
    ]  # fmt: skip
    assert found["query"].to_list()[:2] == ["b asked as 0", "b asked as 2"]


def test_agg_gold_keeps_ties_but_not_zeros_and_every_original():
    table = agg_all(one(a=[0.5, 0.25, 0.5, 1], b=[0, 0, 0], c=[1, 0.5]), "RR@10", "bm25")[0]
    assert agg_gold(table).select("qid", "order").rows() == [
        ("a", "-1"),
        ("a", "pred.2"),
        ("a", "pred.1"),
        ("b", "-1"),
        ("c", "-1"),
    ]


def test_agg_counts_what_has_no_value_or_takes_it_for_zero():
    table = one(a=[math.nan, 1, 1], b=[0.5, math.nan, 0.25])
    found, dropped = agg_all(table, "RR@10", "bm25")
    assert found.select("qid", "order").rows() == [("b", "-1"), ("b", "pred.1")]
    assert dropped == {NO_EFFECTIVENESS: 3, "no score": 1}
    zero, dropped = agg_all(table, "RR@10", "bm25", missing="zero")
    assert zero["bm25.RR@10"].to_list() == [0, 1, 1, 0.5, 0.25, 0]
    assert not dropped


def test_the_first_candidates_know_the_direction():
    table = agg_all(one(lost=[1, 2], won=[2, 3, 1]), "RR@10", "bm25", Direction.DOWN)[0]
    assert best_candidates(table)["value_"].to_list() == [2, 1]


def test_an_aggregated_table_must_begin_with_an_original():
    table = agg_all(one(a=[1, 2]), "RR@10", "bm25")[0]
    with pytest.raises(DataError, match=r"aggregated table: .*'-1'"):
        agg_gold(table[1:])
    assert agg_gold(table[:0]).height == 0


def best_candidates(table):
    is_original = pl.col("order") == "-1"
    first = table.filter(~is_original).unique("qid", keep="first", maintain_order=True)
    names = ["qid", "query", "value"]
    both = [part.drop("order").rename(dict(zip(part.drop("order").columns, names, strict=True)))
            for part in (table.filter(is_original), first)]  # fmt: skip
    return both[0].join(both[1], on="qid", suffix="_").sort("qid")


few = tables([[0.0, 0.25, 0.5, 1.0]], ["RR@10"])


@given(few)
def test_gold_holds_platinum_holds_diamond(table):
    for every in (False, True):
        selected = boxes(table, every=every)
        assert selected.filter(pl.col("platinum") & ~pl.col("gold")).height == 0
        assert selected.filter(pl.col("diamond") & ~pl.col("platinum")).height == 0
        if not every:
            assert selected.filter(pl.col("gold"))["query_id"].n_unique() == selected["gold"].sum()


@given(few)
def test_the_box_of_the_best_candidate_agrees_with_the_aggregated_table(table):
    published = agg_all(table, "RR@10", "bm25")[0]
    best = best_candidates(published)
    gold = best.filter((pl.col("value_") >= pl.col("value")) & (pl.col("value_") > 0))
    columns = ("query_id", "original_text", "old_RR_10", "text", "new_RR_10")
    chosen = boxes(table).filter(pl.col("gold")).select(columns)
    assert chosen.sort("query_id").rows() == gold.sort("qid").rows()
    with_gold = agg_gold(published).filter(pl.col("order") != "-1")["qid"].unique().sort()
    assert with_gold.to_list() == gold["qid"].sort().to_list()
