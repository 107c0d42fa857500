"""Releases without the texts of the original queries (``query_text: false``), if the texts may not be published.

The column ``original_text`` stays, with nulls. Every release then has the same columns and types,
``datasets.load_dataset`` can read releases with and without texts, and users can join the texts by query id. Other
content that would identify or reveal a query is left out: the column ``context``, and reformulations with the words of
an original query.
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

_SAME = "the reformulation has the same words as an original query (query_text = false)"


def no_texts(where: object) -> DataError:
    """The error for a release without the texts of the original queries, where they are needed."""
    return DataError(
        f"{where}: the texts of the original queries are missing (published with query_text = false); join them by "
        "query_id from the queries of the collection: pairs.drop('original_text').join(queries, on='query_id')"
    )


class Withholding:
    """Removes the texts of original queries from pairs and from RePair's tables.

    Reformulations that have, normalized, the same text as an original query are removed and counted. ``originals``
    are the normalized texts of all original queries.
    """

    def __init__(self, originals: pl.Series, tables: Tables | None) -> None:
        self._aggregated = {} if tables is None else dict(tables.aggregated)
        others = [normals(_originals(table)) for table in self._aggregated.values()]
        self._texts = (
            pl.concat([originals.alias("normal"), *(one.alias("normal") for one in others)]).unique().implode()
        )
        self.left_out = 0

    def pairs(self, pairs: pl.DataFrame, facts: Facts) -> pl.DataFrame:
        """The pairs without the texts of the original queries."""
        kept = pairs.filter(~normals(pairs["text"]).is_in(self._texts))
        self.left_out += pairs.height - kept.height
        kept = kept.drop("context", strict=False).with_columns(original_text=pl.lit(None, pl.String))
        check_withheld(kept, facts)
        return kept

    def tables(self, tables: Tables | None) -> tuple[Tables | None, dict[str, int]]:
        """RePair's tables without the texts of the original queries, and the number of rows removed from each."""
        if tables is None:
            return None, {}
        ours = {kind: _without_texts(table, self._texts) for kind, table in self._aggregated.items()}
        left_out = {
            f"agg.{kind}: {_SAME}": self._aggregated[kind].height - table.height for kind, table in ours.items()
        }
        return replace(tables, aggregated=ours), left_out

    def counted(self, facts: Facts, more: Mapping[str, int]) -> Facts:
        """The facts with the number of removed pairs and rows."""
        found = {f"publish: {_SAME}": self.left_out, **more}
        known = {reason: count for reason, count in found.items() if count}
        return replace(facts, stated={**facts.stated, "dropped": {**facts.mapping("dropped"), **known}})


def named_by_text(pairs: pl.DataFrame) -> int:
    """How many pairs have a query id that is, normalized, the text of their query."""
    return int((normals(pairs["query_id"]) == normals(pairs["original_text"])).sum())


def _originals(table: pl.DataFrame) -> pl.Series:
    return table.filter(pl.col("order") == ORIGINAL)["query"].alias("original_text")


def _without_texts(table: pl.DataFrame, originals: pl.Series) -> pl.DataFrame:
    """An aggregated table without the texts of its originals and without candidates that repeat such a text."""
    is_original = pl.col("order") == ORIGINAL
    kept = table.filter(is_original | ~normals(table["query"]).is_in(originals))
    return kept.with_columns(query=pl.when(is_original).then(pl.lit("")).otherwise("query"))
