"""Rows larger than the memory in the order of their queries: the same as sorted at once."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from askew.pairs.publish import QueryBuckets
from askew.pairs.resources import _whole_queries

ids = st.lists(st.sampled_from([f"q{number}" for number in range(12)]), max_size=40)


def frames_of(names, size):
    table = pl.DataFrame({"query_id": names, "row": range(len(names))}, schema={"query_id": pl.String, "row": pl.Int64})
    return table, [table[start : start + size] for start in range(0, max(len(names), 1), size)]


@given(ids, ids, st.integers(1, 9), st.integers(1, 9))
def test_buckets_have_the_rows_of_their_queries_in_order(names, others, size, rows):
    table, frames = frames_of(names, size)
    beside, pieces = frames_of(others, size)
    with QueryBuckets((frame["query_id"] for frame in frames), rows) as buckets:
        buckets.put("pairs", frames)
        buckets.put("beside", pieces)
        found = list(buckets)
    assert pl.concat(one["pairs"].sort("query_id", maintain_order=True) for one in found).equals(
        table.sort("query_id", maintain_order=True)
    )
    for one in found:
        wanted = one["pairs"]["query_id"].unique().implode()
        assert one["beside"].equals(beside.filter(pl.col("query_id").is_in(wanted)))


@given(ids.map(sorted), st.integers(1, 9))
def test_parts_that_end_within_a_query_are_cut_where_it_ends(names, size):
    table, frames = frames_of(names, size)
    found = list(_whole_queries(iter(frames)))
    assert pl.concat([table.clear(), *found]).equals(table)
    seen = [set(frame["query_id"]) for frame in found]
    assert sum(map(len, seen)) == len(set(names))
