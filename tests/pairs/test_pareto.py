"""The Pareto front, the epsilon-constraint, and variants that help several rankers."""

import inspect
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selection_toys import DIRECTIONS, TWO, scored, tables

from askew.core.errors import ConfigError, DataError
from askew.core.measure import Direction
from askew.pairs.boxes import Boxes
from askew.pairs.gains import make_pairs
from askew.pairs.pareto import Epsilon, Pareto, epsilon_best, pareto_front, robust
from askew.pairs.refairmulate import RefairmulatePaper, RefairmulateRepo

NAMES = list(TWO)


def front_of(*rows):
    query, effectiveness, bias = (np.array(column) for column in zip(*rows, strict=True))
    return pareto_front(query, effectiveness, bias).tolist()


def test_the_front_holds_what_nothing_beats_on_both_sides():
    rows = [(0, 0.0, 3.0), (0, 1.0, 2.0), (0, 1.0, 1.0), (0, 2.0, 1.0), (0, 2.0, 0.0), (0, 0.5, 2.0)]
    assert front_of(*rows) == [True, True, False, True, False, False]


def test_each_query_has_its_own_front():
    assert front_of((1, 5.0, 5.0), (0, 1.0, 1.0), (1, 1.0, 1.0), (0, 0.0, 0.0)) == [True, True, False, False]


def test_equal_points_stay_together():
    assert front_of((0, 1.0, 1.0), (0, 1.0, 1.0), (0, 0.0, 1.0)) == [True, True, False]
    assert pareto_front(np.zeros(0, np.int64), np.zeros(0), np.zeros(0)).tolist() == []


gains = st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=30)


@given(gains)
def test_the_front_is_exactly_what_is_not_dominated(rows):
    def dominated(row):
        return any(o[0] == row[0] and o[1] >= row[1] and o[2] >= row[2] and o[1:] != row[1:] for o in rows)

    floats = [(query, float(effectiveness), float(bias)) for query, effectiveness, bias in rows]
    assert front_of(*floats) == [not dominated(row) for row in rows]


def select(selector, rows):
    return selector.select(scored({"q": rows}, NAMES), TWO)


def test_what_the_original_beats_is_not_on_the_front():
    rows = [(0.5, 1.0), (0.25, 1.5), (0.5, 1.0)]
    assert select(Pareto(), rows[:2])["front"].to_list() == [False]
    assert select(Pareto(against_original=False), rows[:2])["front"].to_list() == [True]
    assert select(Pareto(), rows)["front"].to_list() == [False, True]


@given(tables([[0.25, 0.5, 1.0], [0.0, 1.0, -2.0]], NAMES))
def test_putting_the_original_among_the_variants_gives_the_same_front(table):
    here = Pareto().select(table, TWO)
    again = table.filter(pl.col("method") == "original").with_columns(
        variant_id=pl.lit("self"), method=pl.lit("self"), text=pl.format("{} again", "text")
    )
    there = Pareto(against_original=False).select(pl.concat([table, again]), TWO)
    kept = [set(each.filter(pl.col("front"))["variant_id"]) - {"self"} for each in (here, there)]
    assert kept[0] == kept[1]


@given(tables([[0.25, 0.5, 1.0], [0.0, 1.0, -2.0]], NAMES), st.data())
def test_the_order_of_the_rows_does_not_change_the_front(table, data):
    order = data.draw(st.permutations(range(len(table))))
    here, there = (set(Pareto().select(t, TWO).filter(pl.col("front"))["variant_id"]) for t in (table, table[order]))
    assert here == there


def test_epsilon_buys_less_lean_with_a_little_effectiveness():
    rows = [(0.5, 4.0), (0.5, 3.0), (0.375, 2.0), (0.125, 0.0)]
    assert select(Epsilon(), rows)["is_best"].to_list() == [True, False, False]
    assert select(Epsilon(epsilon=0.125), rows)["is_best"].to_list() == [False, True, False]
    assert select(Epsilon(epsilon=0.5), rows)["is_best"].to_list() == [False, False, True]


def test_epsilon_breaks_ties_by_effectiveness_then_order():
    rows = [(0.5, 4.0), (0.5, 1.0), (1.0, -1.0), (1.0, 1.0)]
    assert select(Epsilon(), rows)["is_best"].to_list() == [False, True, False]


def test_epsilon_leaves_the_original_only_for_something_better():
    rows = [(0.5, 1.0), (0.5, 2.0), (0.5, 1.0)]
    assert select(Epsilon(), rows)["is_best"].to_list() == [False, False]
    assert select(Epsilon(against_original=False), rows)["is_best"].to_list() == [False, True]


@given(gains, st.integers(0, 2))
def test_the_epsilon_choice_is_the_plain_one(rows, epsilon):
    query, effectiveness, bias = (np.array(column) for column in zip(*rows, strict=True))
    found = epsilon_best(query, 4, effectiveness.astype(float), bias.astype(float), epsilon)
    expected = set()
    for number in set(query.tolist()):
        mine = [i for i, row in enumerate(rows) if row[0] == number and row[1] >= -epsilon]
        if mine:
            expected.add(max(mine, key=lambda i: (rows[i][2], rows[i][1], -i)))
    assert set(np.flatnonzero(found).tolist()) == expected


def test_only_the_named_measures_choose():
    names = [*NAMES, "NFaiRR@10"]
    directions = {**TWO, "NFaiRR@10": Direction.UP}
    table = scored({"q": [(0.5, 4.0, 0.5), (0.5, 1.0, 0.1), (0.5, 3.0, 0.9)]}, names)
    assert Epsilon().select(table, directions)["is_best"].to_list() == [True, False]
    assert Epsilon(bias="NFaiRR@10").select(table, directions)["is_best"].to_list() == [False, True]
    assert Pareto(bias="NFaiRR@10").select(table, directions)["front"].to_list() == [False, True]


# --- several rankers -----------------------------------------------------------------------------------------------


def rankers(**scores):
    """Each ranker's pairs for variants of one query whose original has 0.5 and 2."""
    made = {}
    for name, rows in scores.items():
        made[name] = make_pairs(scored({"q": [(0.5, 2.0), *rows]}, NAMES), TWO).table
    return made


def test_robust_variants_are_worse_under_no_ranker():
    tables_of = rankers(
        bm25=[(1.0, 1.0), (1.0, 1.0), (0.5, 2.0), (1.0, 1.0)], dense=[(0.5, 1.0), (0.25, 0.0), (0.5, 2.0), (0.5, 2.0)]
    )
    found = robust(tables_of, NAMES)
    assert found.columns == ["query_id", "variant_id", "rankers", "better", "same", "worse", "robust"]
    assert found["better"].to_list() == [2, 1, 0, 1]
    assert found["worse"].to_list() == [0, 1, 0, 0]
    assert found["robust"].to_list() == [True, False, False, True]
    assert robust(tables_of, ["ARaB(tf)@10"])["robust"].to_list() == [True, True, False, True]


def test_a_variant_that_a_ranker_has_no_score_for_is_not_robust():
    tables_of = rankers(bm25=[(1.0, 1.0), (1.0, 1.0)], dense=[(1.0, 1.0), (None, 1.0)])
    found = robust(tables_of, NAMES)
    assert found.select("variant_id", "rankers", "robust").rows() == [("q-1", 2, True), ("q-2", 1, False)]


def test_robust_knows_a_tolerance():
    tables_of = rankers(bm25=[(1.0, 1.0)], dense=[(0.49, 2.0)])
    assert robust(tables_of, NAMES)["robust"].to_list() == [False]
    assert robust(tables_of, NAMES, tolerance=0.02)["robust"].to_list() == [True]


def test_wrong_inputs_of_robust_are_refused():
    tables_of = rankers(bm25=[(1.0, 1.0)], dense=[(1.0, 1.0)])
    with pytest.raises(ConfigError, match="rankers, found 1"):
        robust({"bm25": tables_of["bm25"]}, NAMES)
    with pytest.raises(DataError, match=r"'bm25' .*'gain_AP_10'"):
        robust(tables_of, ["AP@10"])
    with pytest.raises(DataError, match=r"'dense' .* twice"):
        robust({**tables_of, "dense": pl.concat([tables_of["dense"]] * 2)}, NAMES)


# --- all selectors -------------------------------------------------------------------------------------------------

OTHER = {
    RefairmulatePaper: {
        "effectiveness": "AP@10", "bias": "ARaB(tc)@10", "theta_eff": 0.5, "theta_bias": 0.5, "weight_eff": 2.0,
        "weight_bias": 2.0, "tolerance": 0.5, "accept": "1: 0", "optimal_groups": "1", "negative": "both",
    },
    RefairmulateRepo: {
        "effectiveness": "AP@10", "bias": "ARaB(tc)@10", "valid_bias": "ARaB(tc)@10", "theta_eff": 0.5,
        "theta_bias": 0.5, "weight_eff": 2.0, "weight_bias": 2.0, "tolerance": 0.5, "negative": "both",
    },
    Boxes: {
        "measure": "AP@10", "boxes": "gold", "bias": "ARaB(tc)@10", "every": True, "keep_same": True,
        "missing": "zero", "tolerance": 0.5,
    },
    Pareto: {"effectiveness": "AP@10", "bias": "ARaB(tc)@10", "against_original": False, "tolerance": 0.5},
    Epsilon: {
        "effectiveness": "AP@10", "bias": "ARaB(tc)@10", "epsilon": 0.5, "against_original": False, "tolerance": 0.5,
    },
}  # fmt: skip


@pytest.mark.parametrize("make", OTHER)
def test_every_setting_is_told(make):
    assert set(inspect.signature(make).parameters) == set(OTHER[make])
    plain = json.dumps(make().settings(), sort_keys=True)
    for key, value in OTHER[make].items():
        assert json.dumps(make(**{key: value}).settings(), sort_keys=True) != plain, key
        assert key in make().settings()


@pytest.mark.parametrize("make", OTHER)
def test_every_selector_gives_the_columns_of_its_subsets(make):
    table = scored(
        {"q": [(0.5, 0.5, 1, 1, 1, 1), (1, 1, 0, 0, 0, 0), (0.25, 0.25, 2, 2, 2, 2)], "empty": [(1, 1, 0, 0, 0, 0)]}
    )
    selector = make()
    assert set(selector.measures()) <= set(DIRECTIONS)
    pairs = selector.select_counted(table, DIRECTIONS)
    assert selector.select(table, DIRECTIONS).equals(pairs.table)
    assert len(pairs.table) == 2
    for subset in selector.subsets:
        assert pairs.table.schema[subset] == pl.Boolean
    none = selector.select(table[:0], DIRECTIONS)
    assert none.schema == pairs.table.schema
