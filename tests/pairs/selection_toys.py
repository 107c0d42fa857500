"""Small scored tables for the tests of selection."""

from collections.abc import Sequence

import polars as pl
from hypothesis import strategies as st

from askew.core.measure import Direction, column_of

EFFECTIVENESS = ["RR@10", "AP@10"]
BIAS = ["LexiconShare@10", "ARaB(tc)@10", "ARaB(tf)@10", "ARaB(bool)@10"]
MEASURES = [*EFFECTIVENESS, *BIAS]
DIRECTIONS = {**dict.fromkeys(EFFECTIVENESS, Direction.UP), **dict.fromkeys(BIAS, Direction.DOWN)}
SIGNED = {**DIRECTIONS, **dict.fromkeys(BIAS, Direction.ZERO)}
TWO = {"RR@10": Direction.UP, "ARaB(tf)@10": Direction.ZERO}


def scored(queries: dict[str, Sequence[Sequence[float]]], measures: Sequence[str] = MEASURES) -> pl.DataFrame:
    """Of each query the scores of its variants, the original first; texts are all different."""
    rows = [
        {
            "query_id": query, "variant_id": f"{query}-{i}", "text": f"{query} asked as {i}",
            "method": "original" if i == 0 else "toy", **dict(zip(map(column_of, measures), scores, strict=True)),
        }
        for query, variants in queries.items()
        for i, scores in enumerate(variants)
    ]  # fmt: skip
    floats = dict.fromkeys(map(column_of, measures), pl.Float64)
    return pl.DataFrame(
        rows, schema={**dict.fromkeys(["query_id", "variant_id", "text", "method"], pl.String), **floats}
    )


def tables(values: Sequence[Sequence[float]], measures: Sequence[str] = MEASURES, most: int = 6):
    """Tables of a few queries whose scores are drawn from few values, so that ties are common."""
    row = st.tuples(*(st.sampled_from(list(options)) for options in values))
    queries = st.lists(st.lists(row, min_size=1, max_size=most), min_size=1, max_size=4)
    return queries.map(lambda found: scored({f"q{i}": rows for i, rows in enumerate(found)}, measures))
