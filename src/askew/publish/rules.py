"""Functions that the rules of a release share. A broken rule is one line: the number of pairs and the first pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from askew.core.ranking import Flags, Floats

# Gains and scores are sums of two or three numbers; a difference larger than the rounding error breaks a rule.
CLOSE = 1e-9
_SHOWN = 60


@dataclass(frozen=True)
class Broken:
    """How many pairs break a rule, how many pairs the rule applies to, and the first pair that breaks it."""

    said: str
    wrong: int
    of: int
    first: str = ""

    def __str__(self) -> str:
        return f"{self.said}: broken by {self.wrong} of {self.of} pairs; first: {self.first}"

    def __add__(self, other: Broken) -> Broken:
        return Broken(self.said, self.wrong + other.wrong, self.of + other.of, self.first or other.first)


def broken(pairs: pl.DataFrame, wrong: Flags | pl.Expr | pl.Series, said: str, *shown: str) -> Iterator[Broken]:
    """Count the pairs that break a rule; ``shown`` names the columns to report for the first of these pairs."""
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
    """A column as floats, with NaN for missing values."""
    return pairs[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()


def once(pairs: pl.DataFrame, subset: str) -> Iterator[Broken]:
    """Check that a query has at most one pair of the subset."""
    chosen = pairs.filter(subset)
    yield from broken(
        chosen, pl.col("query_id").is_duplicated(), f"a query has at most one pair that is marked {subset}"
    )
