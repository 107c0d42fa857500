"""Convert pairs back to variants that another ranker searches: chosen pairs, and pairs of hard queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.app.build.pairs import ALLOW, without_judged
from askew.app.build.variants import ORIGINAL, SCHEMA
from askew.core.errors import ConfigError
from askew.core.measure import Direction, gain_column
from askew.core.outcome import signs

EVERY = "all"
_SIDES = ("query_id", "variant_id", "text", "original_text", "method")


class ChosenPairs:
    """Converts the pairs of some subsets to variants, to check whether their gains hold with another ranker."""

    name = "chosen"
    version = 1
    together = "query_id"

    def __init__(self, subsets: Sequence[str]) -> None:
        self.subsets = tuple(subsets)

    def settings(self) -> Mapping[str, Any]:
        """Return the subsets."""
        return {"subsets": list(self.subsets)}

    def rows_used(self, table: pa.Table) -> int:
        """Count the variants without the originals: each was a pair."""
        return _candidates(table)

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the variants, grouped by query."""
        pairs = pl.DataFrame(pl.from_arrow(rows))
        wanted = pl.lit(True) if self.subsets == (EVERY,) else pl.any_horizontal(*self.subsets)
        chosen = pairs.filter(wanted)
        left = pairs.height - chosen.height
        return _variants(chosen), {"not chosen": left} if left else {}


class Hard:
    """Selects the queries that no candidate improves, with their best candidates, as RePair does for a dense ranker.

    As published, a query is hard if its original is strictly better than the best candidate; with ``ties``, also if
    they are equal.
    """

    name = "hard"
    version = 1
    together = "query_id"

    def __init__(self, measure: str, direction: Direction, ties: bool = False, judged_sources: str = ALLOW) -> None:
        self.measure, self._direction, self.ties, self._judged_sources = measure, direction, ties, judged_sources

    def settings(self) -> Mapping[str, Any]:
        """Return the measure, whether ties count as hard, and which candidates are used."""
        return {"measure": self.measure, "ties": self.ties, "judged_sources": self._judged_sources}

    def rows_used(self, table: pa.Table) -> int:
        """Count the variants without the originals: each was a pair."""
        return _candidates(table)

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the original and the best candidate of each hard query."""
        every = pl.DataFrame(pl.from_arrow(rows))
        pairs = every if self._judged_sources == ALLOW else without_judged(every)
        gain = pl.col(gain_column(self.measure))
        best = pairs.filter(gain.is_not_nan() & gain.is_not_null()).sort(
            "query_id", gain, descending=[False, True], maintain_order=True
        ).unique("query_id", keep="first", maintain_order=True)  # fmt: skip
        sign = signs(best.get_column(gain_column(self.measure)).to_numpy())
        hard = best.filter(pl.Series(sign <= (0 if self.ties else -1)))
        counts = {
            "made from a document judged relevant": every.height - pairs.height,
            "not the best reformulation of its query": pairs.height - best.height,
            "improved" if self.ties else "not worse than the original query": best.height - hard.height,
        }
        order = pairs.select(pl.col("query_id").unique(maintain_order=True)).with_row_index("place")
        sorted_hard = hard.join(order, on="query_id").sort("place")
        return _variants(sorted_hard), {reason: count for reason, count in counts.items() if count}


def _candidates(table: pa.Table) -> int:
    return int(pc.sum(pc.not_equal(table["method"], ORIGINAL)).as_py() or 0)


def _variants(pairs: pl.DataFrame) -> pa.Table:
    """Convert pairs to variants: the original of each query, then its candidates, in the order of the pairs."""
    candidates = pairs.select(*_SIDES).with_row_index("place")
    nothing = [pl.lit(None, pl.String).alias(name) for name in ("settings", "doc_id")]
    first = candidates.unique("query_id", keep="first", maintain_order=True)
    originals = first.select(
        "query_id", pl.col("query_id").alias("variant_id"), pl.col("original_text").alias("text"),
        pl.lit(ORIGINAL).alias("method"), *nothing, "place", pl.lit(0).alias("after"),
    )  # fmt: skip
    others = candidates.select("query_id", "variant_id", "text", "method", *nothing, "place", pl.lit(1).alias("after"))
    # The pairs of a query are adjacent, so its first position is before all others.
    table = pl.concat([originals, others]).sort("place", "after").select(SCHEMA.names)
    return table.to_arrow().cast(SCHEMA)


def read_subsets(given: Any, known: Sequence[str], section: str) -> list[str]:
    """Check the subsets that a recipe names against those of its selector."""
    allowed = [*known, EVERY]
    if not isinstance(given, list) or not given or not all(one in allowed for one in given):
        raise ConfigError(f"recipe: '{section}.of' should be one or more of {', '.join(allowed)}; found {given!r}")
    return [EVERY] if EVERY in given else given
