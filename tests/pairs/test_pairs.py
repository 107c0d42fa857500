"""From scored variants to pairs: what is compared, what is left out, and that nothing is lost."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selection_toys import DIRECTIONS, MEASURES, TWO, scored, tables

from askew.core.errors import ConfigError, DataError, UnknownName
from askew.core.measure import Direction
from askew.pairs.gains import (
    NO_EFFECTIVENESS,
    SAME,
    UNSCORED_ORIGINAL,
    best_rows,
    find_measures,
    make_pairs,
    measure_texts,
)

NAMES = list(TWO)


def two(rows, texts=None):
    table = scored({"q": rows}, NAMES)
    return table if texts is None else table.with_columns(text=pl.Series(texts))


def test_a_pair_has_old_new_and_gain_of_each_measure():
    pairs = make_pairs(two([(0.5, -2.0), (1.0, 0.5)]), TWO)
    row = pairs.table.row(0, named=True)
    assert (row["query_id"], row["variant_id"], row["original_text"]) == ("q", "q-1", "q asked as 0")
    assert (row["old_RR_10"], row["new_RR_10"], row["gain_RR_10"]) == (0.5, 1.0, 0.5)
    # Nearer to zero is better: from 2 to the one side to 0.5 to the other is a gain of 1.5.
    assert (row["old_ARaB_tf_10"], row["new_ARaB_tf_10"], row["gain_ARaB_tf_10"]) == (-2.0, 0.5, 1.5)
    assert row["outcome"] == "better-less"


@given(tables([(0.0, 0.5, float("nan")), (-1.0, 0.0, 2.0)], NAMES))
def test_a_query_alone_has_the_pairs_that_it_has_among_others(table):
    together = make_pairs(table, TWO)
    alone = [make_pairs(one, TWO).table for _, one in table.group_by("query_id", maintain_order=True)]
    assert pl.concat(alone).sort("variant_id").equals(together.table.sort("variant_id"), null_equal=True)


def test_the_direction_tells_what_is_a_gain():
    table = two([(0.5, -2.0), (1.0, 0.5)])
    down = make_pairs(table, {**TWO, "ARaB(tf)@10": Direction.DOWN}).table
    assert down["gain_ARaB_tf_10"].to_list() == [-2.5]
    assert down["outcome"].to_list() == ["better-more"]


def test_the_original_may_stand_anywhere_and_queries_may_be_mixed():
    table = scored({"a": [(0.1, 0.0), (0.2, 0.0)], "b": [(0.3, 0.0), (0.4, 0.0)]}, NAMES)
    pairs = make_pairs(table[[1, 3, 2, 0]], TWO)
    assert pairs.table.select("query_id", "old_RR_10", "new_RR_10").rows() == [("a", 0.1, 0.2), ("b", 0.3, 0.4)]
    assert (pairs.queries, len(set(pairs.query.tolist()))) == (2, 2)


def test_the_original_words_are_left_out_and_counted_whatever_their_blanks():
    texts = ["who  was\tshe", " who was she ", "who was he", "Who was she"]
    pairs = make_pairs(two([(0.5, 1.0)] * 4, texts), TWO)
    assert pairs.table["text"].to_list() == texts[2:]
    assert pairs.dropped == {SAME: 1}


def test_of_a_repeated_text_the_first_is_kept_within_a_query_only():
    table = scored({"a": [(0.5, 1.0)] * 4, "b": [(0.5, 1.0)] * 2}, NAMES)
    table = table.with_columns(text=pl.Series(["one", "two", "two ", "three", "uno", "two"]))
    pairs = make_pairs(table, TWO)
    assert pairs.table["variant_id"].to_list() == ["a-1", "a-3", "b-1"]
    assert pairs.dropped == {"repeated text": 1}


def test_of_a_repeated_text_without_a_score_the_scored_one_is_kept():
    pairs = make_pairs(two([(0.5, 1.0), (math.nan, 1.0), (0.7, 1.0)], ["one", "two", "two"]), TWO)
    assert pairs.table["variant_id"].to_list() == ["q-2"]
    assert pairs.dropped == {"no score": 1}


def test_every_text_is_kept_on_request():
    pairs = make_pairs(two([(0.5, 1.0)] * 3, ["one", "one", "one"]), TWO, keep_same=True)
    assert len(pairs.table) == 2
    assert not pairs.dropped


@pytest.mark.parametrize("missing", [math.nan, None])
def test_a_missing_score_is_counted_and_never_equal(missing):
    pairs = make_pairs(two([(0.5, 1.0), (missing, 1.0), (0.5, missing), (0.5, 1.0)]), TWO)
    assert pairs.table["variant_id"].to_list() == ["q-3"]
    assert pairs.dropped == {"no score": 2}


def test_an_original_without_a_score_takes_its_variants_with_it():
    rows = {"a": [(math.nan, 1.0), (1.0, 1.0)], "b": [(0.5, 1.0), (1.0, 1.0)], "c": [(0.5, math.nan), (1.0, 1.0)]}
    pairs = make_pairs(scored(rows, NAMES), TWO)
    assert pairs.table["query_id"].to_list() == ["b"]
    assert pairs.dropped == {NO_EFFECTIVENESS: 1, UNSCORED_ORIGINAL: 1}


def test_a_measure_that_is_only_reported_may_be_missing():
    table = scored({"q": [(0.5, 1.0, 3.0), (1.0, 0.0, math.nan)]}, [*NAMES, "LexiconShare@10"])
    pairs = make_pairs(table, {**TWO, "LexiconShare@10": Direction.DOWN})
    assert len(pairs.table) == 1
    assert math.isnan(pairs.table["gain_LexiconShare_10"][0])


def test_what_else_is_known_of_a_variant_travels_with_it():
    table = two([(0.5, 1.0), (1.0, 0.0)]).with_columns(user=pl.Series(["u1", "u2"]))
    assert make_pairs(table, TWO).table["user"].to_list() == ["u2"]


def test_a_query_without_an_original_is_named():
    table = scored({"a": [(0.5, 1.0)] * 2, "lost": [(0.5, 1.0)] * 2}, NAMES)
    table = table.filter(pl.col("variant_id") != "lost-0")
    with pytest.raises(DataError, match=r"query 'lost': expected exactly one .*found none"):
        make_pairs(table, TWO)


def test_a_query_with_two_originals_is_named():
    table = scored({"a": [(0.5, 1.0)] * 2, "twice": [(0.5, 1.0)] * 3}, NAMES)
    table = table.with_columns(method=pl.Series(["original", "x", "original", "original", "x"]))
    with pytest.raises(DataError, match=r"query 'twice': expected exactly one .*found 2"):
        make_pairs(table, TWO)


def test_wrong_tables_are_refused():
    good = two([(0.5, 1.0), (1.0, 0.0)])
    with pytest.raises(DataError, match="column 'method'"):
        make_pairs(good.drop("method"), TWO)
    with pytest.raises(DataError, match=r"'RR_10' .*RR@10, found nothing"):
        make_pairs(good.drop("RR_10"), TWO)
    with pytest.raises(DataError, match=r"'RR_10' .*RR@10, found String"):
        make_pairs(good.with_columns(pl.col("RR_10").cast(pl.String)), TWO)
    with pytest.raises(DataError, match=r"column 'text' .*row 1"):
        make_pairs(good.with_columns(text=pl.Series(["a", None])), TWO)
    with pytest.raises(DataError, match=r"query 'q': .*RR@10, found inf"):
        make_pairs(good.with_columns(pl.Series("RR_10", [0.5, math.inf])), TWO)
    with pytest.raises(DataError, match="column 'outcome'"):
        make_pairs(good.with_columns(outcome=pl.lit("x")), TWO)
    with pytest.raises(ConfigError, match=r"AP@10|ARaB"):
        make_pairs(good, {"RR@10": Direction.UP})
    with pytest.raises(ConfigError, match="found none"):
        make_pairs(good, TWO, (), ())


def test_an_empty_table_gives_no_pairs():
    pairs = make_pairs(scored({}), DIRECTIONS)
    assert (len(pairs.table), pairs.queries, len(pairs.query)) == (0, 0, 0)
    assert {"old_RR_10", "gain_AP_10", "outcome"} <= set(pairs.table.columns)


messy = tables([[0.0, 0.5, 1.0, math.nan], [0.0, -1.0, 1.0, math.nan]], NAMES)


@given(messy, st.data())
def test_every_row_is_an_original_a_pair_or_counted(table, data):
    words = st.sampled_from(["a", "a ", "b", "c"])
    texts = data.draw(st.lists(words, min_size=len(table), max_size=len(table)))
    table = table.with_columns(text=pl.Series(texts, dtype=pl.String))
    pairs = make_pairs(table, TWO)
    assert len(table) == pairs.queries + len(pairs.table) + sum(pairs.dropped.values())
    plain = pairs.table.select("query_id", pl.col("text").str.strip_chars())
    assert not plain.is_duplicated().any()
    assert (
        pairs.table.select(pl.col("text").str.strip_chars() == pl.col("original_text").str.strip_chars()).sum().item()
        == 0
    )
    assert pairs.table["outcome"].null_count() == 0


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 1.0, 2.0]), st.sampled_from([0.0, 1.0]), st.booleans()))
)
def test_the_best_row_is_the_first_of_the_highest(rows):
    query, first, second, eligible = (
        (np.array(column) for column in zip(*rows, strict=True)) if rows else [np.zeros(0, int)] * 4
    )
    found = best_rows(query.astype(np.int64), 4, [first, second], eligible.astype(bool))
    expected = set()
    for number in range(4):
        mine = [i for i in range(len(rows)) if query[i] == number and eligible[i]]
        if mine:
            expected.add(max(mine, key=lambda i: (first[i], second[i], -i)))
    assert set(np.flatnonzero(found).tolist()) == expected


def test_a_column_is_found_by_its_text_or_its_measure():
    assert find_measures(["ARaB( 'tf' )@10", "RR@10"], DIRECTIONS, "x") == ("ARaB(tf)@10", "RR@10")
    with pytest.raises(UnknownName, match=r"unknown measure 'RR@100'.*did you mean 'RR@10'"):
        find_measures(["RR@100"], DIRECTIONS, "effectiveness")
    with pytest.raises(ConfigError, match="each measure once"):
        measure_texts("ARaB(tf)@10 ARaB('tf')@10", "bias")
    assert measure_texts(" ".join(MEASURES), "x") == tuple(MEASURES)
