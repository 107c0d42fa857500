"""Split the pairs by query into training, development and test parts, and check the parts for leakage.

The part of a query is determined by its normalized text, not by its id, so queries with the same words are in the same
part. A text is normalized by Unicode NFKC and case folding, and by keeping its words only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cached_property

import polars as pl

from askew.core.errors import ConfigError
from askew.core.split import SHARES, part_of
from askew.core.text import word

SALT = "askew-1"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")


def normal(text: str) -> str:
    """The normalized text: texts that differ only in case, blanks or punctuation become equal."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(word(folded)) or " ".join(folded.split())


def check_shares(shares: Mapping[str, float] | None) -> dict[str, float]:
    """Check the shares of the parts and return them; the names of the parts become names of files."""
    parts = dict(SHARES if shares is None else shares)
    for name in parts:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(
                "shares: the name of a split must start with a lowercase letter and have only lowercase letters, "
                f"digits and underscores, as in 'train'; found {name!r}"
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

    @cached_property
    def _parts(self) -> pl.DataFrame:
        return self.table.select("normal", pl.col("split").alias("other")).unique()

    def echoes(self, pairs: pl.DataFrame) -> int:
        """How many pairs have a reformulation that is, normalized, an original query of another part."""
        own = pairs.select(normals(pairs["text"]).alias("normal"), "split")
        # A normalized original is in one part only, so the join adds no rows.
        return own.join(self._parts, on="normal").filter(pl.col("split") != pl.col("other")).height

    def leaks(self) -> Iterable[str]:
        """One line for each kind of leakage between the parts."""
        for key, what in (("query_id", "query ids"), ("normal", "normalized original texts")):
            found = several(self.table.drop_nulls(key), key)
            if found.height:
                first = found.row(0, named=True)
                shown = f"{str(first[key])[:60]!r} in {', '.join(first['split'])}"
                yield f"splits: {found.height} {what} are in more than one split; first: {shown}"


def several(pairs: pl.DataFrame, key: str) -> pl.DataFrame:
    """The values of a column that are in more than one part, with their parts."""
    parts = pairs.group_by(key).agg(pl.col("split").unique().sort())
    return parts.filter(pl.col("split").list.len() > 1).sort(key)


def leaks(pairs: pl.DataFrame) -> Iterable[str]:
    """One line for each kind of leakage between the parts."""
    found = Originals()
    found.look(pairs)
    return found.leaks()
