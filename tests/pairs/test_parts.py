"""Tables of pairs in parts are those of the whole, to the last bit."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.measure import Direction
from askew.pairs.gains import PairParts
from askew.pairs.summary import summarize
from askew.pairs.tables import (
    extreme_pairs,
    method_table,
)

WAYS = {"RR@10": Direction.UP, "ARaB(tf)@10": Direction.ZERO}


def pairs_of(seed, queries):
    """Pairs of some queries in an order that is not that of their ids, some without a value."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 6, queries)
    names = [f"q{number}" for number in draw.permutation(queries)]
    ids = [name for name, size in zip(names, sizes, strict=True) for _ in range(size)]
    n = len(ids)
    old, new = draw.normal(size=(2, n)).round(1), draw.normal(size=(2, n)).round(1)
    new[:, draw.random(n) < 0.1] = np.nan
    values = {
        f"{side}_{column}": given
        for column, *both in (("RR_10", np.abs(old[0]), np.abs(new[0])), ("ARaB_tf_10", old[1], new[1]))
        for side, given in zip(("old", "new"), both, strict=True)
    }
    values |= {
        "gain_RR_10": values["new_RR_10"] - values["old_RR_10"],
        "gain_ARaB_tf_10": np.abs(old[1]) - np.abs(new[1]),
    }
    return pl.DataFrame({
        "query_id": ids, "variant_id": [f"{one}:{i}" for i, one in enumerate(ids)], "text": ids, "original_text": ids,
        "method": draw.choice(["a", "b"], n), "settings": draw.choice(['{"k": 1}', '{"k": 2}'], n),
        "outcome": draw.choice(np.array(["better-less", "same-more"], object), n),
        "fair": draw.random(n) < 0.4, **values,
    })  # fmt: skip


def in_parts(pairs, size):
    """The same pairs cut after every few queries."""
    runs = pairs["query_id"].rle_id() // size
    frames = [pairs.filter(runs == part) for part in range(int(runs.max()) + 1)]
    return PairParts(lambda columns: (frame.select(columns) for frame in frames), pairs.columns)


TABLES = {
    "summary": lambda pairs: summarize(pairs, WAYS, ["fair"]),
    "methods": lambda pairs: method_table(pairs, "fair", WAYS),
    "extremes": lambda pairs: extreme_pairs(pairs, list(WAYS), worst=True),
}


@pytest.mark.parametrize("name", TABLES)
@given(seed=st.integers(0, 99), queries=st.integers(1, 30), size=st.integers(1, 30))
def test_a_table_in_parts_is_the_table_of_the_whole(name, seed, queries, size):
    pairs = pairs_of(seed, queries)
    assert TABLES[name](in_parts(pairs, size)).equals(TABLES[name](pairs))


def test_only_the_columns_that_are_named_are_read():
    read = []
    pairs = pairs_of(0, 5)

    def frames(columns):
        read.append(columns)
        yield pairs.select(columns)

    summarize(PairParts(frames, pairs.columns), {"RR@10": Direction.UP}, ["fair"])
    assert {name for columns in read for name in columns} == {"query_id", "fair", "old_RR_10", "new_RR_10"}
