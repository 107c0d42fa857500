"""A release without the texts of the original queries (``query_text: false``), for queries that may not be passed on.

The column ``original_text`` stays, with nulls: every release has the same columns and types, so that
``datasets.load_dataset`` reads both kinds alike and the texts can be joined by query id. What would give a text away
in another column is left out: who asked it, and reformulations in the words of an original query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from askew.core.errors import DataError
from askew.publish.facts import Facts
from askew.publish.pairs import check_withheld
from askew.publish.repair import ORIGINAL, Tables
from askew.publish.splits import normals

_SAME = "same words as an original query (query_text = false)"


def no_texts(where: object) -> DataError:
    """The error of a reader that needs the texts of the original queries."""
    return DataError(
        f"{where}: the texts of the original queries are not there (published with query_text = false); join them by "
        "query_id from the queries of the collection: pairs.drop('original_text').join(queries, on='query_id')"
    )


def withhold(
    pairs: pl.DataFrame, tables: Tables | None, facts: Facts
) -> tuple[pl.DataFrame, Tables | None, Facts]:  # fmt: skip
    """The pairs and RePair's tables without the texts, and the facts with the number of those left out."""
    own = normals(pairs["original_text"])
    named = int((normals(pairs["query_id"]) == own).sum())
    if named:
        raise DataError(f"pairs: {named} query ids are the texts of their queries; give the queries other ids")
    aggregated = {} if tables is None else tables.aggregated
    originals = pl.concat([own, *(normals(_originals(table)) for table in aggregated.values())]).unique().implode()
    kept = pairs.filter(~normals(pairs["text"]).is_in(originals))
    kept = kept.drop("context", strict=False).with_columns(original_text=pl.lit(None, pl.String))
    check_withheld(kept, facts)
    left_out = {f"publish: {_SAME}": pairs.height - kept.height}
    if tables is not None:
        ours = {kind: _without_texts(table, originals) for kind, table in aggregated.items()}
        left_out |= {f"agg.{kind}: {_SAME}": table.height - ours[kind].height for kind, table in aggregated.items()}
        tables = replace(tables, aggregated=ours)
    return kept, tables, _counted(facts, left_out)


def _originals(table: pl.DataFrame) -> pl.Series:
    return table.filter(pl.col("order") == ORIGINAL)["query"].alias("original_text")


def _without_texts(table: pl.DataFrame, originals: pl.Series) -> pl.DataFrame:
    """An aggregated table whose originals have no text."""
    is_original = pl.col("order") == ORIGINAL
    kept = table.filter(is_original | ~normals(table["query"]).is_in(originals))
    return kept.with_columns(query=pl.when(is_original).then(pl.lit("")).otherwise("query"))


def _counted(facts: Facts, left_out: Mapping[str, int]) -> Facts:
    found = {reason: count for reason, count in left_out.items() if count}
    return replace(facts, stated={**facts.stated, "dropped": {**facts.mapping("dropped"), **found}})
