"""The columns of the table of pairs: their order, types and meaning.

One row is one pair: the original query (``original_text``) and a reformulation of it (``text``). For each measure there
are three columns, for instance ``old_RR_10``, ``new_RR_10`` and ``gain_RR_10``, as in the store of the build; the facts
map these names to measures. A gain is positive if the new value is better. If a value could not be measured, it and
every column that depends on it are null. Measures by which pairs were chosen may have a fourth column,
``held_out_gain_RR_10``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from askew.core.errors import ConfigError, DataError
from askew.core.measure import held_out_gain_column, pair_columns
from askew.pairs.boxes import Boxes
from askew.pairs.dataset.facts import GROUPS, REFAIRMULATE, Facts
from askew.pairs.holding import ALL, CHANCE, DOCUMENTS, LEAST, REFUSED

TEXTS = ("query_id", "variant_id", "original_text", "text", "method", "outcome")
# In the order of ``pair_columns``.
_SIDES = (
    "{} of the original query",
    "{} of the reformulation",
    "gain of {}: how much better the value of the reformulation is than the value of the original query",
)
_HELD_OUT_GAIN = (
    "gain of {} on held-out documents. The documents are split at random into two halves, several times. For each half "
    "of each split, pairs are selected with the documents of this half. Their gain is computed with the documents of "
    "the other half. In both steps, the cutoff of the measure is halved. The value is the mean of these gains over all "
    "selections that contain this pair. The value is null if no selection contains this pair, or if the measure has no "
    "value on the other half, such as a measure of effectiveness for a query with one relevant document. The mean of "
    "this column over the pairs of a subset is too optimistic, because these pairs were selected with all documents"
)
_FOR_MEASURES = ("old_", "new_", "gain_", held_out_gain_column(""))
_ABOUT = {
    "query_id": "the id of the query in its collection",
    "variant_id": "the id of the reformulation; unique among the reformulations of the same original query",
    "original_text": "the original query",
    "text": "the reformulation",
    "method": "the method that made the reformulation",
    "group": "1 if the effectiveness and the lean of the original query meet the thresholds of the selector, 2 if only "
    "the effectiveness does, 3 if only the lean does, 4 if neither does",
    "label": "the label by which the selector states how effectiveness and lean change from the original query "
    "to the reformulation",
    "outcome": "the changes of effectiveness (better, same or worse) and of lean (less, same or more) from the "
    "original query to the reformulation, such as better-less",
    "score": "the score by which the selector ranks pairs; larger is better",
}
_OF_GROUPS = ("group", "label", "score")
_MAYBE = {
    "doc_id": "the document that the reformulation was made from, if any",
    "context": "who sent the query and when, as stated in its collection",
}
_MADE = {
    "kind": "the kind of the reformulation, if its method makes reformulations of several kinds",
    "p_same": "the probability that the original query and the reformulation have the same meaning, if the filter "
    "named equivalence was used",
    "p_natural": "the probability that the reformulation is natural (that a person could type it as a query), "
    "if the filter named equivalence was used",
    "source_judged": "whether the reformulation was made from a document that is judged relevant to the original query",
}
_HELD = {
    CHANCE: "the probability that the results of the original query lean as much by chance, corrected for all queries",
    ALL: "how much less the results of the reformulation lean by all mentions",
    LEAST: "how much less the results of the reformulation lean, by people in general and by all mentions, if the "
    "article that matters most is left out; above zero if less lean is not owed to one document",
    DOCUMENTS: "the ids of the documents by which the results of the reformulation lean less, as JSON, those that "
    "matter most first",
    REFUSED: "why the pair could not be chosen; null if it could",
}
_SUBSETS = {
    "optimal": "whether the pair is in the subset 'optimal', whose reformulations meet all thresholds of the selector",
    "effective": "whether the pair is in the subset 'effective'",
    "fair": "whether the pair is in the subset 'fair', that is, in 'optimal' or in 'effective'",
    "negative": "whether the pair is a negative sample for training",
}
_FURTHER = {
    "accepted": "whether the selector accepts the pair; only accepted pairs can be in the subsets 'optimal' or "
    "'effective'",
    "valid": "whether the selector allows the pair in the subset 'effective'. For each query, this subset has the pair "
    "with the highest score (column 'score') among the pairs whose columns 'valid' and 'accepted' are both true",
    "perfect": "whether the reformulation reaches the thresholds of the selector for effectiveness and lean",
    "is_best": "whether the pair is the one that the selector ranks first for its query",
    "optimal_score": "the value of the column 'score' for a pair in the subset 'optimal', null for other pairs. With "
    "the selector 'refairmulate-repo', it is always 1",
}
_WITHHELD = (
    "the original query; null in every row, because this dataset does not have the texts of the original queries. Get "
    "the texts from the collection, by 'query_id'"
)
_ROBUST = (
    "whether the reformulation is better than the original query with at least one ranker and not worse with any "
    "ranker, by the measures of the selection; null if a ranker has no value for the pair"
)
_FIRST = ("query_id", "variant_id", "original_text", "text", "method")
# At most this many rows of each split are in memory while a file is written.
_ROW_GROUP = 1 << 14
_ARROW: dict[Any, Any] = {
    pl.String: pa.large_string(), pl.Boolean: pa.bool_(), pl.Float64: pa.float64(), pl.Int32: pa.int32(),
    pl.Int64: pa.int64(),
}  # fmt: skip
_PLAIN = (pl.String, pl.Boolean)
_NAMES = (pl.String, pl.Categorical, pl.Enum, pl.Null)


def columns_of(facts: Facts) -> dict[str, str]:
    """The columns that every release with these facts has, with their meaning."""
    grouped = facts.scheme == REFAIRMULATE
    about = {name: text for name, text in _ABOUT.items() if grouped or name not in _OF_GROUPS}
    if not facts.query_text:
        about["original_text"] = _WITHHELD
    selector = facts.selection.selector
    boxes = selector.settings()["boxes"] if isinstance(selector, Boxes) else {}
    for subset in facts.subsets:
        if grouped:
            about[subset] = _SUBSETS[subset]
        elif subset in boxes:
            about[subset] = f"whether the pair meets the criterion of the subset {subset}: {boxes[subset]}"
        else:
            about[subset] = _FURTHER.get(subset, f"whether the pair is in the subset {subset}")
    if facts.robust_rankers:
        about["robust"] = _ROBUST
    return about | measure_columns(facts)


def measure_columns(facts: Facts) -> dict[str, str]:
    """The three columns of each measure and the held-out gains, with their meaning."""
    found = {
        column: words.format(one.name)
        for one in facts.measures
        for column, words in zip(pair_columns(one.name), _SIDES, strict=True)
    }
    return found | {held_out_gain_column(name): _HELD_OUT_GAIN.format(name) for name in facts.held_out_gains}


def about_columns(facts: Facts) -> dict[str, str]:
    """The meaning of every known column, including the optional ones."""
    return _FURTHER | _MAYBE | _MADE | _HELD | columns_of(facts)


def canonical(pairs: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """The pairs with columns in the order and types of a release, sorted by query and variant."""
    missing = [name for name in columns_of(facts) if name not in pairs.columns]
    if missing:
        found = ", ".join(pairs.columns)
        raise DataError(f"pairs: expected the column {missing[0]!r} ({len(missing)} missing); found {found}")
    if "split" in pairs.columns:
        raise DataError("pairs: remove the column 'split'; it is added when the pairs are published")
    stated = measure_columns(facts)
    for name in pairs.columns:
        if name.startswith(_FOR_MEASURES) and name not in stated:
            raise ConfigError(f"facts: the pairs have the column {name!r}, but 'measures' lacks its measure; add it")
    named = [name for name in _MAYBE if name in pairs.columns]
    known = [*_FIRST, *named, *(name for name in columns_of(facts) if name not in _FIRST)]
    others = [name for name in pairs.columns if name not in known]
    typed = pairs.select(_typed(pairs, name, facts) for name in [*known, *others])
    _check_values(typed, facts)
    if not facts.query_text:
        check_withheld(typed, facts)
    return typed.sort("query_id", "variant_id", maintain_order=True)


def _typed(pairs: pl.DataFrame, name: str, facts: Facts) -> pl.Expr:
    found, column = pairs.schema[name], pl.col(name)
    grouped = facts.scheme == REFAIRMULATE
    if name in TEXTS or name in _MAYBE:
        right, expr = found.base_type() in _NAMES, column.cast(pl.String)
    elif name in facts.subsets or (name == "robust" and facts.robust_rankers):
        right, expr = found == pl.Boolean, column
    elif name in measure_columns(facts) or (grouped and name == "score"):
        right, expr = found.is_numeric() or found == pl.Null, column.cast(pl.Float64).fill_nan(None)
    elif grouped and name == "group":
        right, expr = found.is_integer(), column.cast(pl.Int32, strict=False)
    elif grouped and name == "label":
        right, expr = found.is_integer() or found == pl.String, _other(name, found)
    else:
        right, expr = found in _PLAIN or found.is_numeric(), _other(name, found)
    if not right:
        raise DataError(
            f"pairs, column {name!r}: the type {found} is not allowed; expected String for texts, Boolean for subsets, "
            "a number for measures"
        )
    return expr


def _other(name: str, found: pl.DataType) -> pl.Expr:
    """Keep a column without a fixed type; integers become Int64 and other numbers Float64."""
    if found in _PLAIN:
        return pl.col(name)
    return pl.col(name).cast(pl.Int64 if found.is_integer() else pl.Float64)


def _check_values(pairs: pl.DataFrame, facts: Facts) -> None:
    # A pair with a missing measure has no outcome. Refairmulate chooses by all measures, so it needs an outcome always.
    free = {"robust", *measure_columns(facts), *(() if facts.scheme == REFAIRMULATE else ("outcome",))}
    free |= set() if facts.query_text else {"original_text"}
    for name in columns_of(facts):
        empty = pairs[name].null_count() if name not in free else 0
        if empty:
            raise DataError(f"pairs, column {name!r}: expected a value in every row, found {empty} rows without one")
    for name in TEXTS:
        empty = int((pairs[name].str.strip_chars() == "").sum())
        if empty:
            raise DataError(f"pairs, column {name!r}: expected a text in every row, found {empty} empty texts")
    numbers = pairs.select(pl.selectors.float().is_infinite().any())
    infinite = [name for name in numbers.columns if numbers[name][0]]
    if infinite:
        raise DataError(f"pairs, column {infinite[0]!r}: expected finite numbers, found infinite ones")
    wrong = pairs.filter(~pl.col("group").is_in(GROUPS)) if facts.scheme == REFAIRMULATE else pairs.clear()
    if wrong.height:
        raise DataError(f"pairs, column 'group': must be a number from 1 to 4, found {wrong['group'][0]}")


def check_withheld(pairs: pl.DataFrame, facts: Facts) -> None:
    """Raise if a pair has the text of an original query, or if an unknown text column might contain one."""
    told = pairs["original_text"].count()
    if told:
        raise DataError(
            "pairs, column 'original_text': expected null in every row, because 'query_text' is false for this "
            f"dataset; found {told} rows with a text"
        )
    known = {*about_columns(facts), "split"} - {"context"}
    for name, kind in pairs.schema.items():
        if kind == pl.String and name not in known:
            raise DataError(
                f"pairs, column {name!r}: the column may contain the text of a query, but 'query_text' is false; "
                "remove the column"
            )


class PairFile:
    """A Parquet file that is written in blocks; with the same pyarrow version, the same rows give the same bytes."""

    def __init__(self, path: Path | pa.NativeFile) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pl.DataFrame] = []

    def add(self, pairs: pl.DataFrame) -> None:
        """Add pairs. The size of the row groups does not depend on the size of the blocks."""
        self._waiting.append(pairs)
        rows = pl.concat(self._waiting) if len(self._waiting) > 1 else pairs
        full = rows.height - rows.height % _ROW_GROUP
        self._write(rows[:full])
        self._waiting = [rows[full:]]

    def _write(self, pairs: pl.DataFrame) -> None:
        schema = pa.schema([(name, _ARROW[kind]) for name, kind in pairs.schema.items()])
        table = pairs.rechunk().to_arrow().cast(schema).combine_chunks().replace_schema_metadata(None)
        if self._writer is None:
            # The Arrow schema is not stored, so that large_string and string are the same type in the file.
            self._writer = pq.ParquetWriter(
                self._path, table.schema, version="2.6", data_page_version="1.0", compression="zstd",
                compression_level=3, use_dictionary=True, write_statistics=True, write_page_checksum=True,
                store_schema=False,
            )  # fmt: skip
        # The package datasets fails at an empty row group, but can read a file without row groups.
        if table.num_rows:
            self._writer.write_table(table, row_group_size=_ROW_GROUP)

    def close(self) -> None:
        """Write the remaining rows and close the file."""
        waiting, self._waiting = self._waiting, []
        for rows in waiting:
            self._write(rows)
        if self._writer is not None:
            self._writer.close()
