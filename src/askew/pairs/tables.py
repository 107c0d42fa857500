"""The tables of a report, as data frames: chosen pairs under other rankers, methods, and examples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import polars as pl

from askew.core.errors import DataError
from askew.core.measure import Direction, column_of, gain_column, new_column, old_column
from askew.measures.statistics.intervals import wilson
from askew.pairs.gains import ORIGINAL, PairParts, parts_of
from askew.pairs.summary import EVERY, summarize


def cross_table(
    pairs: pl.DataFrame, rankers: Mapping[str, pl.DataFrame], directions: Mapping[str, Direction],
    subsets: Sequence[str],
) -> pl.DataFrame:  # fmt: skip
    """The chosen pairs under other rankers: the result of ``summarize`` for each ranker, subset and measure.

    ``rankers`` maps names to the scores of variants (``query_id``, ``variant_id``, ``method``, a column for each
    measure). ``chosen`` counts the pairs of the subset. Pairs without a score of the original (``no_original``) or of
    the variant (``no_variant``) under the other ranker are counted, and are in no mean.
    """
    parts = []
    for ranker, scores in rankers.items():
        for subset in subsets:
            chosen = pairs.filter(subset).select("query_id", "variant_id")
            joined = under(chosen, scores, list(directions), ranker).with_columns(pl.lit(True).alias(subset))
            asked, found = joined.get_column("has_original"), joined.get_column("has_variant")
            told = {
                "chosen": len(chosen),
                "no_original": int((~asked).sum()),
                "no_variant": int((asked & ~found).sum()),
            }
            parts.append(_told(summarize(joined, directions, [subset]), ranker=ranker, **told))
    return pl.concat(parts) if parts else pl.DataFrame()


def _told(table: pl.DataFrame, **facts: str | float | None) -> pl.DataFrame:
    kinds = {str: pl.String, int: pl.Int64}
    front = {name: pl.lit(value, kinds.get(type(value), pl.Float64)) for name, value in facts.items()}
    return table.select(**front, **{name: pl.col(name) for name in table.columns})


def under(chosen: pl.DataFrame, scores: pl.DataFrame, measures: Sequence[str], ranker: str) -> pl.DataFrame:
    """Return pairs with the old and new scores of the measures under another ranker; NaN for missing scores."""
    needed = ("query_id", "variant_id", "method", *map(column_of, measures))
    missing = [name for name in needed if name not in scores.columns]
    if missing:
        raise DataError(f"scores of {ranker}: expected a column {missing[0]!r}, found {', '.join(scores.columns)}")
    is_original = pl.col("method") == ORIGINAL
    before, after = (
        [pl.col(column_of(name)).alias(side(name)) for name in measures] for side in (old_column, new_column)
    )
    old = scores.filter(is_original).select("query_id", *before, has_original=pl.lit(True))
    new = scores.filter(~is_original).select("query_id", "variant_id", *after, has_variant=pl.lit(True))
    for table, keys in ((old, ["query_id"]), (new, ["query_id", "variant_id"])):
        twice = table.select(keys).is_duplicated()
        if twice.any():
            raise DataError(
                f"scores of {ranker}: expected one row for each original query and for each reformulation, found two "
                f"rows for {table.filter(twice).row(0)[:2]}"
            )
    joined = chosen.join(old, on="query_id", how="left", maintain_order="left")
    joined = joined.join(new, on=["query_id", "variant_id"], how="left", maintain_order="left")
    values = [
        pl.col(column(name)).cast(pl.Float64).fill_null(math.nan)
        for name in measures
        for column in (old_column, new_column)
    ]
    return joined.with_columns(pl.col("has_original", "has_variant").fill_null(False), *values)


def method_table(pairs: pl.DataFrame | PairParts, subset: str, directions: Mapping[str, Direction]) -> pl.DataFrame:
    """The effect of each method: the result of ``summarize`` for all its candidates and for the chosen ones.

    ``method_queries`` counts the queries with a candidate of the method. ``won`` counts those of them for
    which a candidate of the method was chosen, with the share and its interval.
    """
    every = parts_of(pairs)
    names = every.map(["method"], lambda part: part.unique(maintain_order=True))
    methods = names["method"].unique(maintain_order=True) if names.width else ()
    parts = [_method(every.filter(pl.col("method") == name), name, subset, directions) for name in methods]
    # Without pairs there is no method, and the empty table has the same columns.
    return pl.concat(parts) if parts else _method(every, "", subset, directions).clear()


def _method(own: PairParts, method: str, subset: str, directions: Mapping[str, Direction]) -> pl.DataFrame:
    queries, won = own.queries, own.filter(subset).queries
    low, high = wilson(won, queries) if queries else (None, None)
    share = {"won": won, "won_share": won / queries if queries else None, "won_low": low, "won_high": high}
    return _told(summarize(own, directions, [EVERY, subset]), method=method, method_queries=queries, **share)


def extreme_pairs(
    pairs: pl.DataFrame | PairParts, measures: Sequence[str], count: int = 5, worst: bool = False
) -> pl.DataFrame:
    """Return the pairs that gain most, or with ``worst`` lose most, by the first measure, then the next; one per query.

    Pairs without a gain (with ``worst``: without a loss) are left out. The result has the texts and the values of these
    measures.
    """
    gains = [gain_column(name) for name in measures]
    first = pl.col(gains[0]).fill_nan(None)

    def extreme(part: pl.DataFrame) -> pl.DataFrame:
        kept = part.filter(first < 0 if worst else first > 0)
        ranked = kept.sort(gains, descending=not worst, nulls_last=True, maintain_order=True)
        return ranked.unique("query_id", keep="first", maintain_order=True).head(count)

    sides = [side(name) for name in measures for side in (old_column, new_column)]
    columns = ["query_id", "variant_id", "original_text", "text", "method", *sides, *gains]
    # The most extreme pairs of the table are among the most extreme pairs of each part.
    return extreme(parts_of(pairs).map(columns, extreme))
