"""Make a polars table of the few rows of some queries without its thread pool, which would cost more than the work."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pyarrow as pa

from askew.core.ranking import Floats, Ints

_KINDS = {pa.string(): pl.String, pa.float64(): pl.Float64, pa.bool_(): pl.Boolean}


def frame_of(table: pa.Table, queries: Ints, numbers: Mapping[str, Floats]) -> pl.DataFrame:
    """Convert a table of texts, numbers and flags, and add columns of numbers. The ids of queries are their numbers."""
    known = [pl.Series(one.name, table[one.name].to_pylist(), _KINDS[one.type]) for one in table.schema]
    frame = pl.DataFrame([*known, *(pl.Series(name, values) for name, values in numbers.items())])
    return frame.with_columns(pl.Series("query_id", [str(query) for query in queries.tolist()]))
