"""Pairs that come in blocks are published as the same bytes as pairs in one table."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_choices import boxed_facts, boxed_pairs, own_facts, own_pairs, repair_tables
from toy_release import contents, facts, toy_pairs

from askew.core.errors import DataError
from askew.pairs.dataset import columns as pairs
from askew.pairs.dataset import numbers as distinct
from askew.pairs.dataset.numbers import distinct_texts
from askew.pairs.dataset.release import publish

SCHEMES = {
    "refairmulate": (toy_pairs, facts, lambda: None),
    "without texts": (toy_pairs, lambda: {**facts(), "query_text": False}, lambda: None),
    "boxes": (boxed_pairs, boxed_facts, repair_tables),
    "plain": (own_pairs, own_facts, lambda: None),
}


def one_query_at_a_time(table):
    return lambda: iter(table.sort("query_id").partition_by("query_id", maintain_order=True))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_blocks_are_published_as_the_same_bytes(tmp_path, monkeypatch, scheme):
    # Small enough that row groups end within blocks, and that texts are read in several passes.
    monkeypatch.setattr(pairs, "_ROW_GROUP", 3)
    monkeypatch.setattr(distinct, "_HELD", 4)
    made, stated, tables = SCHEMES[scheme]
    whole = publish(made(), stated(), tmp_path / "whole", repair=tables())
    blocks = publish(one_query_at_a_time(made()), stated(), tmp_path / "blocks", repair=tables())
    assert (whole.splits, whole.subsets, whole.left_out) == (blocks.splits, blocks.subsets, blocks.left_out)
    assert contents(tmp_path / "whole") == contents(tmp_path / "blocks")


def test_a_broken_rule_is_told_with_the_pairs_of_all_blocks(tmp_path):
    table = toy_pairs().with_columns(gain_RR_10=pl.lit(0.123))
    told = []
    for given_pairs in (table, one_query_at_a_time(table)):
        with pytest.raises(DataError) as error:
            publish(given_pairs, facts(), tmp_path / "out")
        told.append(str(error.value))
    assert told[0] == told[1]


@given(st.lists(st.sampled_from(["a", "b@c.d", "1234567", "x", None]), max_size=36))
def test_different_texts_are_counted_once_in_one_pass_and_in_several(texts):
    known = set(texts) - {None}
    rows = pl.DataFrame({"one": texts, "two": texts[::-1]}, schema={"one": pl.String, "two": pl.String}).lazy()
    for held in (1 << 18, 4):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(distinct, "_HELD", held)
            counted = distinct_texts(rows, ["one", "two"], "@", r"\d{7}")
        assert counted == (len(known), "b@c.d" in known, "1234567" in known)
