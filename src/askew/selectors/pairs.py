"""Pairs: an original, another variant of the same query, and what was gained between them.

``make_pairs`` reads one row per variant (``query_id``, ``variant_id``, ``text``, ``method`` and one column per measure,
named by ``column_of``: ``ARaB_tf_10``) and gives one row per pair, in the order of the rows:

``query_id variant_id text method``   of the variant, and every other column of it that is not a measure
``original_text``                     the text of the original query
``old_RR_10 new_RR_10 gain_RR_10``    for each measure: the original's score, the variant's, and what is gained
``outcome``                           one of ``askew.core.outcome.OUTCOMES``, by the named measures; null if unscored

Only the named measures select. The others are carried along to be reported, and may be missing for some variants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from askew.core.errors import ConfigError, DataError
from askew.core.measure import Direction, check_columns, column_of, gain_column, pair_columns
from askew.core.outcome import OUTCOMES, UNKNOWN, check_tolerance, outcome_codes
from askew.core.ranking import Floats, Ints

ORIGINAL = "original"
COLUMNS = ("query_id", "variant_id", "text", "method")
SAME, REPEATED, UNSCORED = "same as the original", "repeated text", "no score"
UNSCORED_ORIGINAL = "no score for the original"
# A judged query without any relevant document has no effectiveness, so nothing can be gained or lost on it.
NO_EFFECTIVENESS = "no effectiveness for the query (no relevant document)"


@dataclass(frozen=True)
class PairTable:
    """Pairs as a table; ``query`` numbers the query of each row.

    ``dropped`` counts the variants left out, by reason; ``queries`` is the number of queries that came in. Every row
    that came in is an original, a pair or dropped.
    """

    table: pl.DataFrame
    query: Ints
    queries: int
    directions: Mapping[str, Direction]
    dropped: Counter[str] = field(default_factory=Counter)

    def values(self, column: str) -> Floats:
        """A column of numbers."""
        return self.table.get_column(column).to_numpy()

    def each(self, prefix: str, measures: Sequence[str]) -> list[Floats]:
        """The old, new or gain columns of some measures."""
        return [self.values(f"{prefix}_{column_of(measure)}") for measure in measures]

    def with_columns(self, **columns: Any) -> PairTable:
        """The same pairs with more columns."""
        added = [pl.Series(name, values) for name, values in columns.items()]
        taken = [name for name in columns if name in self.table.columns]
        if taken:
            raise DataError(f"selection: the table has a column {taken[0]!r} already; give it another name")
        return replace(self, table=self.table.with_columns(added))


def make_pairs(
    scored: pl.DataFrame,
    directions: Mapping[str, Direction],
    effectiveness: Sequence[str] = ("RR@10",),
    bias: Sequence[str] = ("ARaB(tf)@10",),
    tolerance: float = 0.0,
    keep_same: bool = False,
    needed: Sequence[str] | None = None,
) -> PairTable:
    """One row per variant that can be compared with its original.

    Left out and counted: variants in the original's words (blanks apart), those without a score, and all but the first
    scored of those that repeat a text within a query. With ``keep_same`` only those without a score are left out.
    ``needed`` are the measures that must have a score, if not all of the named ones.
    """
    check_tolerance(tolerance)
    if not effectiveness and not bias:
        raise ConfigError("selection: expected a measure or more to select by, found none")
    check_columns(directions)
    check_scored(scored, [*directions, *effectiveness, *bias], directions)
    originals, variants, query = split(scored)
    old = {name: numbers(originals, name)[query] for name in directions}
    new = {name: numbers(variants, name) for name in directions}
    must = [*effectiveness, *bias] if needed is None else needed
    reasons = _unscored(old, new, must, effectiveness, len(variants))
    if not keep_same:
        _mark_texts(_words(originals, variants, query), query, reasons)
    kept = np.flatnonzero(reasons == 0)
    columns = _columns(directions, old, new, kept)
    table = variants.drop(map(column_of, directions))[kept].with_columns(
        originals.get_column("text").gather(query[kept]).alias("original_text"), *columns
    )
    pairs = PairTable(table, query[kept], len(originals), dict(directions), _count(reasons))
    gains = [[pairs.values(gain_column(name)) for name in side] for side in (effectiveness, bias)]
    return pairs.with_columns(outcome=_outcomes(gains[0], gains[1], len(kept), tolerance))


def check_scored(scored: pl.DataFrame, measures: Sequence[str], directions: Mapping[str, Direction]) -> None:
    """Refuse a table that lacks a column, or a value where there must be one."""
    for name in COLUMNS:
        if name not in scored.columns:
            raise DataError(f"selection: expected a column {name!r}, found {', '.join(scored.columns)}")
    for name in ("query_id", "text", "method"):
        if scored.get_column(name).null_count():
            row = scored.get_column(name).is_null().arg_max()
            raise DataError(f"selection: expected a {name} in every row, found none in row {row}")
    for name in measures:
        column = column_of(name)
        if column not in scored.columns or not scored.schema[column].is_numeric():
            found = scored.schema.get(column, "nothing")
            raise DataError(f"selection: expected a column {column!r} of numbers for the measure {name}, found {found}")
        if name not in directions:
            raise ConfigError(f"selection: expected to be told which way {name} is better, found nothing")


def split(scored: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, Ints]:
    """The originals, the other variants, and for each of these the row of its original."""
    is_original = pl.col("method") == ORIGINAL
    originals, variants = scored.filter(is_original), scored.filter(~is_original)
    ids = originals.get_column("query_id")
    if len(ids) == 1 and (variants.get_column("query_id") == ids[0]).all():
        # One query, as in the explorer: there is nothing to look up.
        return originals, variants, np.zeros(len(variants), np.int64)
    if ids.n_unique() < len(ids):
        query = ids.filter(ids.is_duplicated())[0]
        raise DataError(
            f"query {query!r}: expected exactly one variant whose method is {ORIGINAL!r}, found {(ids == query).sum()}"
        )
    numbered = originals.select("query_id").with_row_index("_query")
    found = variants.select("query_id").join(numbered, on="query_id", how="left", maintain_order="left")
    missing = found.filter(pl.col("_query").is_null())
    if len(missing):
        raise DataError(
            f"query {missing.item(0, 0)!r}: expected exactly one variant whose method is {ORIGINAL!r}, found none"
        )
    return originals, variants, found.get_column("_query").to_numpy().astype(np.int64)


def numbers(table: pl.DataFrame, name: str) -> Floats:
    """A measure's column with NaN where there is no score. Infinite scores are nobody's."""
    column = table.get_column(column_of(name))
    # A null becomes NaN on the way to numpy. On the few rows of a query each step of polars costs more than numpy's.
    values = (column if column.dtype == pl.Float64 else column.cast(pl.Float64)).to_numpy()
    infinite = np.isinf(values)
    if infinite.any():
        at = int(infinite.argmax())
        query = table.get_column("query_id")[at]
        raise DataError(f"query {query!r}: expected a finite score of {name}, found {values[at]}")
    return values


# The reasons by number; 0 is kept.
_REASONS = ("", SAME, UNSCORED_ORIGINAL, UNSCORED, REPEATED, NO_EFFECTIVENESS)


def _unscored(
    old: Mapping[str, Floats], new: Mapping[str, Floats], needed: Sequence[str], effectiveness: Sequence[str], rows: int
) -> Any:
    reasons = np.zeros(rows, np.int8)
    for name in needed:
        reasons[np.isnan(new[name])] = _REASONS.index(UNSCORED)
    for name in sorted(needed, key=lambda one: one in effectiveness):
        reason = NO_EFFECTIVENESS if name in effectiveness else UNSCORED_ORIGINAL
        reasons[np.isnan(old[name])] = _REASONS.index(reason)
    return reasons


def _words(originals: pl.DataFrame, variants: pl.DataFrame, query: Ints) -> pl.DataFrame:
    before = one_line(originals.get_column("text")).gather(query)
    after = one_line(variants.get_column("text"))
    return pl.DataFrame({"words": after, "same": after == before})


def one_line(texts: pl.Series) -> pl.Series:
    """Texts with one blank where there is white space."""
    return texts.str.replace_all(r"\s+", " ").str.strip_chars()


def _mark_texts(words: pl.DataFrame, query: Ints, reasons: Any) -> None:
    reasons[words.get_column("same").to_numpy()] = _REASONS.index(SAME)
    left = np.flatnonzero(reasons == 0)
    texts = pl.DataFrame({"query": query[left], "words": words.get_column("words").gather(left)})
    first = texts.select(pl.struct("query", "words").is_first_distinct()).to_series().to_numpy()
    reasons[left[~first]] = _REASONS.index(REPEATED)


def _count(reasons: Any) -> Counter[str]:
    counts = np.bincount(reasons, minlength=len(_REASONS)).tolist()
    return Counter({name: count for name, count in zip(_REASONS, counts, strict=True) if name and count})


def _columns(
    directions: Mapping[str, Direction], old: Mapping[str, Floats], new: Mapping[str, Floats], kept: Ints
) -> list[pl.Series]:
    columns = []
    for name, direction in directions.items():
        before, after = old[name][kept], new[name][kept]
        values = before, after, direction.gain(before, after)
        columns += [pl.Series(column, one) for column, one in zip(pair_columns(name), values, strict=True)]
    return columns


def _outcomes(effectiveness: list[Floats], bias: list[Floats], rows: int, tolerance: float) -> pl.Series:
    """A side that nothing was named for has no outcome, which is not the same as an equal one."""
    if not effectiveness or not bias:
        return pl.Series([None] * rows, dtype=pl.String)
    codes = pl.Series(outcome_codes(effectiveness, bias, tolerance), dtype=pl.Int64)
    return pl.Series(OUTCOMES).gather(codes.replace(UNKNOWN, None))


def best_rows(query: Ints, queries: int, keys: Sequence[Floats], eligible: Any, last: bool = False) -> Any:
    """Which row is the best eligible one of its query: by the first key, then the next; ties go to the first row."""
    left = np.flatnonzero(eligible)
    for key in keys:
        highest = np.full(queries, -np.inf)
        np.maximum.at(highest, query[left], key[left])
        left = left[key[left] == highest[query[left]]]
    place = np.full(queries, -1 if last else len(query), np.int64)
    (np.maximum if last else np.minimum).at(place, query[left], left)
    chosen = np.zeros(len(query), np.bool_)
    chosen[place[(place >= 0) & (place < len(query))]] = True
    return chosen
