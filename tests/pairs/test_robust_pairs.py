"""Variants that help several rankers, and what all selectors share."""

import inspect
import json

import polars as pl
import pytest
from selection_toys import DIRECTIONS, TWO, scored

from askew.pairs.boxes import Boxes
from askew.pairs.gains import make_pairs
from askew.pairs.publish import robust
from askew.pairs.refairmulate import RefairmulatePaper, RefairmulateRepo

NAMES = list(TWO)

# --- several rankers -----------------------------------------------------------------------------------------------


def rankers(**scores):
    """Each ranker's pairs for variants of one query whose original has 0.5 and 2."""
    made = {}
    for name, rows in scores.items():
        made[name] = make_pairs(scored({"q": [(0.5, 2.0), *rows]}, NAMES), TWO).table
    return made


def robust_ones(tables_of, measures=NAMES, **more):
    return dict(robust(tables_of, measures, **more).select("variant_id", "robust").iter_rows())


def test_robust_variants_are_worse_under_no_ranker():
    tables_of = rankers(
        bm25=[(1.0, 1.0), (1.0, 1.0), (0.5, 2.0), (1.0, 1.0)], dense=[(0.5, 1.0), (0.25, 0.0), (0.5, 2.0), (0.5, 2.0)]
    )
    assert robust_ones(tables_of) == {"q-1": True, "q-2": False, "q-3": False, "q-4": True}
    assert robust_ones(tables_of, ["ARaB(tf)@10"]) == {"q-1": True, "q-2": True, "q-3": False, "q-4": True}


def test_a_variant_that_a_ranker_has_no_score_for_is_not_known_to_be_robust():
    tables_of = rankers(bm25=[(1.0, 1.0), (1.0, 1.0)], dense=[(1.0, 1.0), (None, 1.0)])
    assert robust_ones(tables_of) == {"q-1": True, "q-2": None}


def test_robust_knows_a_tolerance():
    tables_of = rankers(bm25=[(1.0, 1.0)], dense=[(0.49, 2.0)])
    assert robust_ones(tables_of) == {"q-1": False}
    assert robust_ones(tables_of, tolerance=0.02) == {"q-1": True}


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
