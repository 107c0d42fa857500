"""Readers for every format of a run. Each returns the columns line, query_id, doc_id, score and rank.

A fast columnar parser reads regular files. Irregular blocks go through a slower line-by-line reader, which either
parses them or raises an error that names the file and the line.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from askew.core.errors import DataError, place
from askew.corpora.jsonl import json_id, json_rows
from askew.corpora.lines import (
    WHITE,
    careful_columns,
    fast_columns,
    first_line,
    listing,
    no_value,
    shown,
    split_columns,
    tab_columns,
    words,
)
from askew.corpora.parquet import id_column, parquet_names, parquet_table

_QUERY_NAMES = ("query_id", "qid", "query-id", "topic")
_DOC_NAMES = ("doc_id", "docid", "docno", "pid", "did", "corpus-id")
_ROW = {"line": pl.Int64(), "query_id": pl.String(), "doc_id": pl.String(), "value": pl.String()}
_SCORED = {
    "line": pl.Int64(), "query_id": pl.String(), "doc_id": pl.String(), "score": pl.Float64(), "rank": pl.String(),
}  # fmt: skip
_NO_RANK = pl.lit(None, pl.String).alias("rank")


class _Names(NamedTuple):
    """The names that the required columns have in a file."""

    query: str
    doc: str
    value: str
    is_rank: bool


def read_lines(blocks: Iterable[tuple[int, str]], path: Path, only_trec: bool = False) -> pl.DataFrame:
    """Read TREC's six columns, three columns, or columns named by a header. The first line decides which.

    ``blocks`` are pairs of a line number and the whole lines that start there. ``only_trec`` accepts only six columns.
    """
    left = iter(blocks)
    for number, text in left:
        if (found := first_line(text)) is None:
            continue
        line, after, first = number - 1 + found[0], found[1], found[2]
        if _is_header(first) and not only_trec:
            return _named(chain([(line + 1, text[after:])], left), path, first)
        return _unnamed(chain([(number, text)], left), path, (line, first), (6,) if only_trec else (3, 6))
    return pl.DataFrame(schema=_SCORED)


def _unnamed(
    blocks: Iterable[tuple[int, str]], path: Path, first: tuple[int, str], widths: tuple[int, ...]
) -> pl.DataFrame:
    """Read a file without a header. All lines must have as many columns (six or three) as the first line."""
    # Test for six columns first, because a TREC run may mix blanks and TABs.
    width = 6 if len(words(first[1])) == 6 else len(split_columns(first[1], (3, 6)))
    if width not in widths:
        raise _wrong_width(path, first[0], width, first[1])
    separator = "\t" if "\t" in first[1] else " "
    wrong = _wrong_width if width == 6 else _wrong_three
    frames = []
    for number, text in blocks:
        odd = any(other in text for other in WHITE if other not in (separator, "\n"))
        frame = None if odd else fast_columns(text, separator, width, number)
        if frame is None:
            split = partial(split_columns, widths=(width,))
            frame = careful_columns(text, split, width, partial(wrong, path), number)
        frames.append(frame if width == 3 else trec_columns(frame, path))
    whole = pl.concat(frames, rechunk=True)
    return _three_columns(whole, path) if width == 3 else whole


def trec_columns(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Rename the six TREC columns. The rank is kept because it may disagree with the score."""
    score = as_numbers(frame["column_5"], frame["line"], path, "score")
    return frame.select("line", query_id="column_1", doc_id="column_3", score=score, rank="column_4")


def as_numbers(values: pl.Series, lines: pl.Series, path: Path, name: str) -> pl.Series:
    """Convert the values to numbers. NaN is refused because it would make the order arbitrary."""
    numbers = values.cast(pl.Float64, strict=False)
    bad = (numbers.is_null() | numbers.is_nan()).arg_true()
    if len(bad):
        at = int(bad[0])
        raise DataError(f"{place(path, lines[at])}: expected a number as the {name}, found {shown(values[at])}")
    return numbers


def _wrong_width(path: Path, line: int, found: int, text: str) -> DataError:
    return DataError(
        f"{place(path, line)}: expected the 6 columns of a TREC run (query Q0 document rank score tag), "
        f"found {found} in {shown(text)}; other columns need a header line with query_id, doc_id and score or rank"
    )


def _wrong_three(path: Path, line: int, found: int, text: str) -> DataError:
    return DataError(f"{place(path, line)}: expected 3 columns as on the lines before, found {found} in {shown(text)}")


def _three_columns(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Read ``query document rank`` (MS MARCO) or ``query document score``. Whole numbers are taken as ranks."""
    frame = frame.rename({"column_1": "query_id", "column_2": "doc_id", "column_3": "value"})
    is_rank = bool(frame["value"].str.contains(r"^\+?[0-9]+$").all())
    if is_rank:
        _check_ranks(frame, path)
    return _scored(frame, path, is_rank)


def _check_ranks(frame: pl.DataFrame, path: Path) -> None:
    """Raise an error unless every query has the ranks 1 to n or 0 to n - 1, each once: others may be scores."""
    value = pl.col("value").cast(pl.Int64, strict=False)
    spans = frame.group_by("query_id", maintain_order=True).agg(
        line=pl.col("line").first(),
        sure=(value.min() <= 1)
        & (value.max() - value.min() == pl.len() - 1)
        & (value.n_unique() == pl.len())
        & (value.null_count() == 0),
    )
    doubtful = spans.filter(~pl.col("sure").fill_null(False))
    if doubtful.height:
        query, line, _ = doubtful.row(0)
        raise DataError(
            f"run {path}: it is not clear whether the third column has ranks or scores. The column has whole numbers, "
            f"but the numbers of query {shown(query)} (from line {line}) are not the ranks 1 to n. Write the run with "
            "the 6 columns of TREC, or add a header line that names the columns: 'query_id', 'doc_id', and 'rank' or "
            "'score'"
        )


def _scored(frame: pl.DataFrame, path: Path, is_rank: bool) -> pl.DataFrame:
    """Convert the columns line, query_id, doc_id and value to scores. The score of a rank is the negative rank."""
    numbers = as_numbers(frame["value"], frame["line"], path, "rank" if is_rank else "score")
    score = -numbers if is_rank else numbers
    return frame.select("line", "query_id", "doc_id", score.alias("score"), _NO_RANK)


def _is_header(line: str) -> bool:
    """Whether a line is a header: it names a query and a document column and has no number.

    The number matters because a query id may be 'topic'.
    """
    names = [name.lower() for name in (tab_columns(line) if "\t" in line else words(line))]
    if any(name.replace(".", "", 1).lstrip("+-").isdigit() for name in names):
        return False
    return any(n in _QUERY_NAMES for n in names) and any(n in _DOC_NAMES for n in names)


def _find_names(columns: Iterable[str], path: Path) -> _Names:
    """Find the required columns by name, ignoring case."""
    columns = list(columns)
    known = {name.strip(WHITE).lower(): name for name in reversed(columns)}
    query = next((known[n] for n in _QUERY_NAMES if n in known), None)
    doc = next((known[n] for n in _DOC_NAMES if n in known), None)
    value = known.get("score", known.get("rank"))
    if query is None or doc is None or value is None:
        raise DataError(
            f"run {path}: expected the columns query_id, doc_id and score (or rank); found {listing(columns)}"
        )
    return _Names(query, doc, value, "score" not in known)


def _named(blocks: Iterable[tuple[int, str]], path: Path, header: str) -> pl.DataFrame:
    """Read columns under a header. TABs separate them if the header has TABs, otherwise any white space does."""
    split = tab_columns if "\t" in header else words
    columns = split(header)
    names = _find_names(columns, path)

    def column(name: str) -> pl.Expr:
        return pl.col(f"column_{columns.index(name) + 1}").str.strip_chars(WHITE)

    frames = []
    for number, text in blocks:
        frame = fast_columns(text, "\t", len(columns), number) if split is tab_columns else None
        if frame is None:
            frame = careful_columns(text, split, len(columns), partial(_unlike_header, path, header), number)
        frames.append(
            frame.select("line", query_id=column(names.query), doc_id=column(names.doc), value=column(names.value))
        )
    frame = pl.concat(frames, rechunk=True)
    for name, theirs in (("query_id", names.query), ("doc_id", names.doc)):
        empty = (frame[name] == "").arg_true()
        if len(empty):
            raise no_value(path, frame["line"][int(empty[0])], theirs)
    return _scored(frame, path, names.is_rank)


def _unlike_header(path: Path, header: str, line: int, found: int, text: str) -> DataError:
    return DataError(
        f"{place(path, line)}: expected the columns of the header ({shown(header)}), found {found} in {shown(text)}"
    )


def read_json(blocks: Iterable[tuple[int, str]], path: Path) -> pl.DataFrame:
    """Read JSON Lines with query_id, doc_id and score (or rank)."""
    rows = list(json_rows(blocks, path, "an object with query_id, doc_id and score (or rank)"))
    if not rows:
        return pl.DataFrame(schema=_SCORED)
    names = _find_names(dict.fromkeys(key for _, row in rows for key in row), path)
    lines = [
        (
            line,
            json_id(row.get(names.query), names.query, path, line),
            json_id(row.get(names.doc), names.doc, path, line),
            _json_number(row.get(names.value)),
        )
        for line, row in rows
    ]
    return _scored(pl.DataFrame(lines, schema=_ROW, orient="row"), path, names.is_rank)


def _json_number(value: object) -> str | None:
    """Convert a value to text, so that an error can quote it. Lone surrogates are replaced: they cannot be encoded."""
    return None if value is None else str(value).encode("utf-8", "replace").decode("utf-8")


def read_parquet(path: Path) -> pl.DataFrame:
    """Read Parquet with the columns query_id, doc_id and score (or rank)."""
    names = _find_names(parquet_names(path, "run"), path)
    return read_table(parquet_table(path, "run", list(names[:3])), path)


def read_table(table: pa.Table, path: Path) -> pl.DataFrame:
    """Read a table with the columns query_id, doc_id and score (or rank), from a file or from memory."""
    names = _find_names(table.column_names, path)
    value = pl.Series(pl.from_arrow(table[names.value]))
    if not (value.dtype.is_numeric() or value.dtype in (pl.String, pl.Categorical, pl.Null)):
        raise DataError(f"run {path}: expected numbers in the column {names.value}, found {value.dtype}")
    frame = pl.DataFrame({
        "query_id": pl.Series(pl.from_arrow(id_column(table, names.query, path, "run"))),
        "doc_id": pl.Series(pl.from_arrow(id_column(table, names.doc, path, "run"))),
        "value": value.cast(pl.String) if value.dtype == pl.Categorical else value,
    })  # fmt: skip
    lines = frame.with_row_index("line", offset=1).with_columns(pl.col("line").cast(pl.Int64))
    return _scored(lines, path, names.is_rank)
