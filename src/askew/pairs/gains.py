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

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from askew.core.errors import ConfigError, DataError, UnknownName
from askew.core.measure import Direction, Measure, check_columns, column_of, pair_columns, split_measures
from askew.core.outcome import OUTCOMES, UNKNOWN, check_tolerance, outcome_codes
from askew.core.ranking import Floats, Ints

# Parsing and checking of the settings of selectors.


def measure_texts(text: str, where: str) -> tuple[str, ...]:
    """Return the measures named in a setting; each must be a measure and occur once."""
    texts = tuple(split_measures(text))
    read = [Measure.parse(part) for part in texts]
    if not texts:
        raise ConfigError(f"{where}: expected one or more measures, such as RR@10; found none")
    if len(set(read)) < len(read):
        raise ConfigError(f"{where}: expected each measure once, found {text!r}")
    return texts


def one_measure(text: str, where: str) -> str:
    """The one measure named in a setting."""
    texts = measure_texts(text, where)
    if len(texts) > 1:
        raise ConfigError(f"{where}: expected one measure, found {text!r}")
    return texts[0]


def find_measures(texts: Iterable[str], directions: Mapping[str, Direction], where: str) -> tuple[str, ...]:
    """Return the name of each measure in the scores: the same text, or another text of the same measure."""
    by_measure = {Measure.parse(name): name for name in directions}
    found = []
    for text in texts:
        name = text if text in directions else by_measure.get(Measure.parse(text))
        if name is None:
            raise UnknownName("measure", text, directions, f"{where} (only scored measures can be used)")
        found.append(name)
    return tuple(found)


def parts(text: str, where: str) -> dict[str, str]:
    """Read ``name: value; name: value``; a name without a value has an empty value."""
    found: dict[str, str] = {}
    for part in text.split(";"):
        if not part.strip():
            continue
        name, _, value = (piece.strip() for piece in part.partition(":"))
        if not name or name in found:
            raise ConfigError(f"{where}: expected 'name: value; name: value', each name once, found {text!r}")
        found[name] = value
    if not found:
        raise ConfigError(f"{where}: expected one part or more, found {text!r}")
    return found


def whole_numbers(text: str, allowed: Iterable[int], where: str) -> frozenset[int]:
    """Read ``1 2 3``; each number must be one of the allowed numbers."""
    known = {str(number): number for number in allowed}
    found = text.replace(",", " ").split()
    for word in found:
        if word not in known:
            raise ConfigError(f"{where}: expected some of {', '.join(known)}, found {word!r}")
    return frozenset(known[word] for word in found)


def finite(value: float, where: str, least: float = -math.inf) -> float:
    """Return the value, which must be a finite number and not below ``least``."""
    if not least <= value or not math.isfinite(value):
        floor = f" of {least:g} or more" if math.isfinite(least) else ""
        raise ConfigError(f"{where}: expected a finite number{floor}, found {value}")
    return float(value)


# Tables of pairs that are read part by part, so that memory does not grow with the number of candidates.

Reader = Callable[[list[str]], Iterator[pl.DataFrame]]


class PairParts:
    """A table that is read in parts, as often as needed, and only the requested columns."""

    def __init__(self, read: Reader, columns: Sequence[str]) -> None:
        self._read, self.columns = read, list(columns)

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Some columns of each part."""
        return self._read(list(dict.fromkeys(columns)))

    @cached_property
    def queries(self) -> int:
        """How many queries there are; each is in one part."""
        return sum(frame["query_id"].n_unique() for frame in self.frames(["query_id"]))

    @cached_property
    def height(self) -> int:
        """How many rows there are."""
        return sum(frame.height for frame in self.frames(self.columns[:1]))

    def count(self, *flags: str) -> dict[str, int]:
        """How many rows have each flag."""
        found = dict.fromkeys(flags, 0)
        for frame in self.frames(flags) if flags else ():
            for name in flags:
                found[name] += int(frame[name].sum())
        return found

    def filter(self, wanted: pl.Expr | str) -> PairParts:
        """Return the rows that match."""
        matches = pl.col(wanted) if isinstance(wanted, str) else wanted

        def read(columns: list[str]) -> Iterator[pl.DataFrame]:
            for frame in self.frames([*columns, *matches.meta.root_names()]):
                yield frame.filter(matches).select(columns)

        return PairParts(read, self.columns)

    def map(self, columns: Sequence[str], change: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
        """Apply a function to each part and concatenate the results, which should have few rows per query."""
        found = [_compact(change(frame)) for frame in self.frames(columns)]
        return pl.concat(found) if found else pl.DataFrame()


def _compact(frame: pl.DataFrame) -> pl.DataFrame:
    """Copy a few rows of a part, so that their texts do not keep the whole part in memory."""
    return pl.DataFrame(pl.from_arrow(frame.rechunk().to_arrow())).cast(dict(frame.schema))  # type: ignore[arg-type]


def parts_of(pairs: pl.DataFrame | PairParts) -> PairParts:
    """Return a table in parts; a data frame is one part.

    In a data frame the rows of a query need not be together.
    """
    if isinstance(pairs, PairParts):
        return pairs
    frame = pairs
    return PairParts(lambda columns: iter([frame.select(columns)]), frame.columns)


ORIGINAL = "original"
COLUMNS = ("query_id", "variant_id", "text", "method")
SAME, REPEATED, UNSCORED = "same as the original", "repeated text", "no score"
UNSCORED_ORIGINAL = "no score for the original query"
# A judged query without any relevant document has no effectiveness, so nothing can be gained or lost on it.
NO_EFFECTIVENESS = "no effectiveness for the query (no relevant document)"


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
                "this name; rename the column in the table",
                code="column-taken",
                column=taken[0],
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
    reasons = np.zeros(len(variants), np.int8)
    for name in must:
        reasons[np.isnan(new[name])] = _REASONS.index(UNSCORED)
    for name in sorted(must, key=lambda one: one in effectiveness):
        reason = NO_EFFECTIVENESS if name in effectiveness else UNSCORED_ORIGINAL
        reasons[np.isnan(old[name])] = _REASONS.index(reason)
    if not keep_same:
        original_words, words = (one_line(table.get_column("text")) for table in (originals, variants))
        reasons[(words == original_words.gather(query)).to_numpy()] = _REASONS.index(SAME)
        scored_rows = np.flatnonzero(reasons == 0)
        texts = pl.DataFrame({"query": query[scored_rows], "words": words.gather(scored_rows)})
        first = texts.select(pl.struct("query", "words").is_first_distinct()).to_series().to_numpy()
        reasons[scored_rows[~first]] = _REASONS.index(REPEATED)
    kept = np.flatnonzero(reasons == 0)
    columns = []
    for name, direction in directions.items():
        before, after = old[name][kept], new[name][kept]
        values = before, after, direction.gain(before, after)
        columns += [pl.Series(column, one) for column, one in zip(pair_columns(name), values, strict=True)]
    text = originals.get_column("text").gather(query[kept]).alias("original_text")
    replaced = {text.name, *(column.name for column in columns), *map(column_of, directions)}
    rest = pl.DataFrame([column for column in variants.get_columns() if column.name not in replaced])
    table = rest[kept].hstack([text, *columns])
    gone = np.flatnonzero(reasons)
    left_out = query[gone], reasons[gone].astype(np.int64)
    pairs = PairTable(table, query[kept], len(originals), dict(directions), _count(reasons), left_out)
    return pairs.with_columns(outcome=outcomes(pairs, effectiveness, bias, tolerance))


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


def numbers(table: pl.DataFrame, name: str) -> Floats:
    """Return a measure's column with NaN for missing scores; infinite scores are refused."""
    column = table.get_column(column_of(name))
    # to_numpy converts nulls to NaN.
    values = column.cast(pl.Float64).to_numpy()
    infinite = np.isinf(values)
    if infinite.any():
        at = int(infinite.argmax())
        query = table.get_column("query_id")[at]
        raise DataError(f"query {query!r}: expected a finite score of {name}, found {values[at]}")
    return values


# The reasons by number; 0 is kept.
_REASONS = ("", SAME, UNSCORED_ORIGINAL, UNSCORED, REPEATED, NO_EFFECTIVENESS)


def one_line(texts: pl.Series) -> pl.Series:
    """Replace every run of white space in the texts by one blank."""
    return texts.str.replace_all(r"\s+", " ").str.strip_chars()


def _count(reasons: Any) -> Counter[str]:
    counts = np.bincount(reasons, minlength=len(_REASONS)).tolist()
    return Counter({name: count for name, count in zip(_REASONS, counts, strict=True) if name and count})


def outcomes(pairs: PairTable, effectiveness: Sequence[str], bias: Sequence[str], tolerance: float) -> pl.Series:
    """Return the outcome of each pair; null if no measure of effectiveness or no measure of bias is named."""
    if not effectiveness or not bias:
        return pl.Series([None] * len(pairs.query), dtype=pl.String)
    codes = outcome_codes(pairs.each("gain", effectiveness), pairs.each("gain", bias), tolerance)
    return pl.Series(OUTCOMES).gather(pl.Series(codes, dtype=pl.Int64).replace(UNKNOWN, None))


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


class Selector:
    """What the shipped selectors share: pairs are made from scores, and ``choose`` adds columns to them."""

    name: str
    subsets: tuple[str, ...]
    _tolerance: float

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the scores that determines the selection and the outcome."""
        raise NotImplementedError

    def sides(self, directions: Mapping[str, Direction]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the measures of effectiveness and those of bias, by their names in the scores."""
        raise NotImplementedError

    def choose(self, pairs: PairTable) -> dict[str, Any]:
        """Return the columns of the selection; they depend only on the old and new values and the gains."""
        raise NotImplementedError

    def select(self, scored: pl.DataFrame, directions: Mapping[str, Direction]) -> pl.DataFrame:
        """Return the pairs with the columns of the selection."""
        return self.select_counted(scored, directions).table

    def select_counted(self, scored: pl.DataFrame, directions: Mapping[str, Direction]) -> PairTable:
        """As ``select``, with the counts of the variants that were left out."""
        pairs = make_pairs(scored, directions, *self.sides(directions), self._tolerance)
        return pairs.with_columns(**self.choose(pairs))
