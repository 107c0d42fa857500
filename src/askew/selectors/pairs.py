"""Pairs of an original and another variant of the same query, with the gain of the variant.

``make_pairs`` reads one row per variant (``query_id``, ``variant_id``, ``text``, ``method`` and one column per measure,
named by ``column_of``: ``ARaB_tf_10``) and gives one row per pair, in the order of the rows:

``query_id variant_id text method``   of the variant, and every other column of it that is not a measure
``original_text``                     the text of the original query
``old_RR_10 new_RR_10 gain_RR_10``    for each measure: the original's score, the variant's score, and the gain
``outcome``                           one of ``askew.core.outcome.OUTCOMES``, by the named measures; null if unscored

Only the named measures determine the selection. Other measures are kept for reports, and may be missing for some
variants.
"""

from __future__ import annotations

import re
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
UNSCORED_ORIGINAL = "no score for the original query"
# A judged query without any relevant document has no effectiveness, so nothing can be gained or lost on it.
NO_EFFECTIVENESS = "no effectiveness for the query (no relevant document)"


# Up to this number of rows, Python is faster than polars with its threads: a query of the explorer has few variants.
_FEW = 1000
# White space as polars defines it.
_BLANKS = re.compile("[\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+")


@dataclass(frozen=True)
class PairTable:
    """Pairs as a table; ``query`` numbers the query of each row.

    ``dropped`` counts the variants left out, by reason; ``queries`` is the number of input queries. Every input row is
    an original, a pair or dropped. ``left_out`` has the query and the reason of each dropped row.
    """

    table: pl.DataFrame
    query: Ints
    queries: int
    directions: Mapping[str, Direction]
    dropped: Counter[str] = field(default_factory=Counter)
    left_out: tuple[Ints, Ints] = (np.zeros(0, np.int64), np.zeros(0, np.int64))

    def dropped_of(self, query: int) -> Counter[str]:
        """Count the variants of one query that were left out, by reason."""
        queries, reasons = self.left_out
        return _count(reasons[queries == query])

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
            raise DataError(
                f"selection: the selection adds a column {taken[0]!r}, but the table of pairs already has a column of "
                "this name; rename the column in the table"
            )
        return replace(self, table=self.table.hstack(added))


def make_pairs(
    scored: pl.DataFrame,
    directions: Mapping[str, Direction],
    effectiveness: Sequence[str] = ("RR@10",),
    bias: Sequence[str] = ("ARaB(tf)@10",),
    tolerance: float = 0.0,
    keep_same: bool = False,
    needed: Sequence[str] | None = None,
) -> PairTable:
    """Return one row per variant that can be compared with its original.

    These variants are left out and counted: variants with the text of the original (white space is ignored), variants
    without a score, and variants that repeat the text of an earlier scored variant of the query. With ``keep_same``
    only variants without a score are left out. ``needed`` are the measures that must have a score; the default is all
    named measures.
    """
    check_tolerance(tolerance)
    if not effectiveness and not bias:
        raise ConfigError("selection: expected at least one measure to select by, found none")
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
    text = take_texts(originals.get_column("text"), query[kept]).alias("original_text")
    replaced = {text.name, *(column.name for column in columns), *map(column_of, directions)}
    rest = pl.DataFrame([column for column in variants.get_columns() if column.name not in replaced])
    table = rest[kept].hstack([text, *columns])
    gone = np.flatnonzero(reasons)
    left_out = query[gone], reasons[gone].astype(np.int64)
    pairs = PairTable(table, query[kept], len(originals), dict(directions), _count(reasons), left_out)
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
            raise DataError(f"selection: expected a value in the column {name!r} of every row, found none in row {row}")
    for name in measures:
        column = column_of(name)
        if column not in scored.columns or not scored.schema[column].is_numeric():
            found = scored.schema.get(column, "nothing")
            raise DataError(f"selection: expected a column {column!r} of numbers for the measure {name}, found {found}")
        if name not in directions:
            raise ConfigError(
                f"selection: expected a direction for the measure {name} (which values are better), found none"
            )


def split(scored: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, Ints]:
    """Return the originals, the other variants, and the row of the original of each other variant."""
    if _is_one_query(scored):
        return scored[:1], scored[1:], np.zeros(len(scored) - 1, np.int64)
    is_original = pl.col("method") == ORIGINAL
    originals, variants = scored.filter(is_original), scored.filter(~is_original)
    ids = originals.get_column("query_id")
    if ids.n_unique() < len(ids):
        query = ids.filter(ids.is_duplicated())[0]
        raise DataError(
            f"query {query!r}: expected exactly one row whose method is {ORIGINAL!r} (the original query), found "
            f"{(ids == query).sum()}"
        )
    numbered = originals.select("query_id").with_row_index("_query")
    found = variants.select("query_id").join(numbered, on="query_id", how="left", maintain_order="left")
    missing = found.filter(pl.col("_query").is_null())
    if len(missing):
        raise DataError(
            f"query {missing.item(0, 0)!r}: expected exactly one row whose method is {ORIGINAL!r} (the original "
            "query), found none"
        )
    return originals, variants, found.get_column("_query").to_numpy().astype(np.int64)


def _is_one_query(scored: pl.DataFrame) -> bool:
    """Whether these are the variants of one query, its original first, as in the explorer."""
    if not 0 < len(scored) <= _FEW:
        return False
    methods, ids = scored.get_column("method").to_list(), scored.get_column("query_id").to_list()
    return methods[0] == ORIGINAL and methods.count(ORIGINAL) == 1 and ids.count(ids[0]) == len(ids)


def numbers(table: pl.DataFrame, name: str) -> Floats:
    """Return a measure's column with NaN for missing scores; infinite scores are refused."""
    column = table.get_column(column_of(name))
    # to_numpy converts nulls to NaN. For the few rows of a query, a step in polars costs more than a step in numpy.
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


def take_texts(texts: pl.Series, rows: Ints) -> pl.Series:
    """The texts of some rows."""
    if len(rows) > _FEW:
        return texts.gather(rows)
    every = texts.to_list()
    return pl.Series([every[row] for row in rows.tolist()], dtype=pl.String)


def _words(originals: pl.DataFrame, variants: pl.DataFrame, query: Ints) -> tuple[pl.Series, pl.Series]:
    """Return for each variant the text of its original and its own text, with single blanks."""
    before = take_texts(one_line(originals.get_column("text")), query)
    return before, one_line(variants.get_column("text"))


def one_line(texts: pl.Series) -> pl.Series:
    """Replace every run of white space in the texts by one blank."""
    if len(texts) <= _FEW:
        return pl.Series([_BLANKS.sub(" ", text).strip(" ") for text in texts.to_list()], dtype=pl.String)
    return texts.str.replace_all(r"\s+", " ").str.strip_chars()


def _mark_texts(words: tuple[pl.Series, pl.Series], query: Ints, reasons: Any) -> None:
    before, after = words
    if len(query) <= _FEW:
        _mark_few_texts(before.to_list(), after.to_list(), query.tolist(), reasons)
        return
    reasons[(after == before).to_numpy()] = _REASONS.index(SAME)
    left = np.flatnonzero(reasons == 0)
    texts = pl.DataFrame({"query": query[left], "words": after.gather(left)})
    first = texts.select(pl.struct("query", "words").is_first_distinct()).to_series().to_numpy()
    reasons[left[~first]] = _REASONS.index(REPEATED)


def _mark_few_texts(before: list[str], after: list[str], query: list[int], reasons: Any) -> None:
    seen = set[tuple[int, str]]()
    for row, (old, new) in enumerate(zip(before, after, strict=True)):
        if old == new:
            reasons[row] = _REASONS.index(SAME)
        elif not reasons[row] and (query[row], new) in seen:
            reasons[row] = _REASONS.index(REPEATED)
        elif not reasons[row]:
            seen.add((query[row], new))


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
    """Return the outcome of each pair; null if no measure of effectiveness or no measure of bias was named."""
    if not effectiveness or not bias:
        return pl.Series([None] * rows, dtype=pl.String)
    found = outcome_codes(effectiveness, bias, tolerance)
    if rows <= _FEW:
        return pl.Series([None if code == UNKNOWN else OUTCOMES[code] for code in found.tolist()], dtype=pl.String)
    codes = pl.Series(found, dtype=pl.Int64)
    return pl.Series(OUTCOMES).gather(codes.replace(UNKNOWN, None))


def best_rows(query: Ints, queries: int, keys: Sequence[Floats], eligible: Any, last: bool = False) -> Any:
    """Mark the best eligible row of each query: by the first key, then the next; ties go to the first row.

    With ``last``, ties go to the last row.
    """
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
