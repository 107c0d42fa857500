"""Split the pairs by query into training, development and test parts, and check the parts for leakage.

The part of a query is determined by its normalized text, not by its id, so queries with the same words are in the same
part. A text is normalized by Unicode NFKC and case folding, and by keeping its words only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property

import polars as pl

from askew.core.errors import ConfigError, DataError
from askew.core.tables import part_of
from askew.core.text import SALT, normal
from askew.pairs.boxes import ORIGINAL_ORDER as ORIGINAL
from askew.pairs.dataset.columns import check_withheld
from askew.pairs.dataset.facts import Facts
from askew.pairs.dataset.layouts import Tables

_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")


def check_shares(parts: dict[str, float]) -> dict[str, float]:
    """Check the shares of the parts and return them; the names of the parts become names of files."""
    for name in parts:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(
                f"shares: the name of a split must start with a lowercase letter, as in 'train'; found {name!r}"
            )
    part_of("", parts, SALT)
    return parts


def with_split(pairs: pl.DataFrame, shares: Mapping[str, float]) -> pl.DataFrame:
    """The pairs with the column ``split``."""
    texts = pairs["original_text"].unique()
    parts = pl.Series("split", [part_of(normal(text), shares, SALT) for text in texts], pl.String)
    return pairs.join(pl.DataFrame([texts, parts]), on="original_text", how="left", maintain_order="left")


def normals(texts: pl.Series) -> pl.Series:
    """The normalized form of each text; null stays null. Each distinct text is normalized once."""
    unique = texts.drop_nulls().unique()
    lookup = pl.DataFrame([unique.alias("text"), pl.Series("normal", map(normal, unique), pl.String)])
    return pl.DataFrame([texts.alias("text")]).join(lookup, on="text", how="left", maintain_order="left")["normal"]


class Originals:
    """The original queries of a release: their normalized texts and splits."""

    def __init__(self) -> None:
        self._found: list[pl.DataFrame] = []

    def look(self, pairs: pl.DataFrame) -> None:
        """Add the original queries of pairs. The pairs must have the column ``split``."""
        queries = pairs.select("query_id", "split", "original_text").unique(maintain_order=True)
        self._found.append(
            queries.select("query_id", "split", normals(queries["original_text"]).alias("normal")).unique()
        )

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row for each query; more than one row if a query has several texts, or is in several splits."""
        return pl.concat(self._found)

    @cached_property
    def texts(self) -> pl.Series:
        """The normalized texts."""
        return self.table["normal"].unique()

    def echoes(self, pairs: pl.DataFrame) -> int:
        """How many pairs have a reformulation that is, normalized, an original query of another part."""
        own = pairs.select(normals(pairs["text"]).alias("normal"), "split")
        others = self.table.select("normal", other="split").unique()
        # A normalized original is in one part only, so the join adds no rows.
        return own.join(others, on="normal").filter(pl.col("split") != pl.col("other")).height

    def leaks(self) -> Iterable[str]:
        """One line for each kind of leakage between the parts."""
        for key, what in (("query_id", "query ids"), ("normal", "normalized original texts")):
            parts = self.table.drop_nulls(key).group_by(key).agg(pl.col("split").unique().sort())
            found = parts.filter(pl.col("split").list.len() > 1).sort(key)
            if found.height:
                first = found.row(0, named=True)
                shown = f"{str(first[key])[:60]!r} in {', '.join(first['split'])}"
                yield f"splits: {found.height} {what} are in more than one split; first: {shown}"


def leaks(pairs: pl.DataFrame) -> Iterable[str]:
    """One line for each kind of leakage between the parts."""
    found = Originals()
    found.look(pairs)
    return found.leaks()


# Releases without the texts of the original queries (``query_text: false``), if the texts may not be published.

SAME_WORDS = "the reformulation has the same words as an original query (query_text = false)"


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
        texts = [originals]
        if tables is not None:
            texts.append(normals(tables.every.filter(pl.col("order") == ORIGINAL)["query"]))
        self._texts = pl.concat(one.alias("normal") for one in texts).unique().implode()
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
        is_original = pl.col("order") == ORIGINAL
        every = tables.every.filter(is_original | ~normals(tables.every["query"]).is_in(self._texts))
        kept = replace(tables, every=every.with_columns(query=pl.when(is_original).then(pl.lit("")).otherwise("query")))
        heights = {kind: table.height for kind, table in tables.aggregated.items()}
        return kept, {
            f"agg.{kind}: {SAME_WORDS}": heights[kind] - table.height for kind, table in kept.aggregated.items()
        }

    def counted(self, facts: Facts, more: Mapping[str, int]) -> Facts:
        """The facts with the number of removed pairs and rows."""
        found = {f"publish: {SAME_WORDS}": self.left_out, **more}
        known = {reason: count for reason, count in found.items() if count}
        return replace(facts, stated={**facts.stated, "dropped": {**facts.mapping("dropped"), **known}})


def named_by_text(pairs: pl.DataFrame) -> int:
    """How many pairs have a query id that is, normalized, the text of their query."""
    return int((normals(pairs["query_id"]) == normals(pairs["original_text"])).sum())
