"""What all rules of a release share: a broken one is one line with the number of pairs and the first of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from askew.core.ranking import Flags, Floats

# Gains and scores are sums of two or three numbers; anything beyond rounding is an error.
CLOSE = 1e-9
_SHOWN = 60


@dataclass(frozen=True)
class Broken:
    """How many pairs break a rule, of how many that it is about, and the first of them."""

    said: str
    wrong: int
    of: int
    first: str = ""

    def __str__(self) -> str:
        return f"{self.said}: broken by {self.wrong} of {self.of} pairs; first: {self.first}"

    def __add__(self, other: Broken) -> Broken:
        return Broken(self.said, self.wrong + other.wrong, self.of + other.of, self.first or other.first)


def broken(pairs: pl.DataFrame, wrong: Flags | pl.Expr | pl.Series, said: str, *shown: str) -> Iterator[Broken]:
    """Which pairs are wrong; ``shown`` are the columns of which the first one's values are told."""
    mask = pl.Series(wrong) if isinstance(wrong, np.ndarray) else wrong
    rows = pairs.filter(mask)
    where = ""
    if rows.height:
        first = rows.row(0, named=True)
        names = {"query_id": "query", "variant_id": "variant"}
        where = ", ".join(f"{names.get(name, name)} {_short(first[name])}" for name in (*names, *shown))
    yield Broken(said, rows.height, pairs.height, where)


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."


def values(pairs: pl.DataFrame, name: str) -> Floats:
    """A column with NaN for what is missing."""
    return pairs[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()


def once(pairs: pl.DataFrame, subset: str, shown: str) -> Iterator[Broken]:
    """A query has one pair of the subset at most."""
    chosen = pairs.filter(subset)
    yield from broken(chosen, pl.col("query_id").is_duplicated(), f"a query has one {shown} pair at most")
