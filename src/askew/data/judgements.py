"""Read judgements (qrels): TREC's four columns, BEIR's three with a header, JSON Lines or Parquet."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import polars as pl
import pyarrow as pa

from askew.core.errors import DataError, Note, place
from askew.core.files import check_file
from askew.data.columns import id_column, json_id, json_rows, parquet_names, parquet_table
from askew.data.files import WHITE, listing, numbered, shown, split_columns, suffix_of, text_blocks, words

_HEADERS = {"query-id", "query_id", "qid", "topic"}
_NAMES = ("query_id", "doc_id", "relevance")
# The names of BEIR and of PyTerrier. A score beside other column names is that of a run, not of a judgement.
_OTHER_NAMES = (("query-id", "corpus-id", "score"), ("qid", "docno", "label"))
_SCHEMA = {"line": pl.Int64(), "query_id": pl.String(), "doc_id": pl.String(), "relevance": pl.Int64()}
_JUDGED = ["query_id", "doc_id", "relevance"]
_AT_ONCE = 1 << 14
_WHOLE = re.compile(r"[+-]?[0-9]{1,10}")
# Judgements are stored as 32-bit numbers, see askew.core.tables.
_LARGEST = 2**31 - 1

Row = tuple[int, str, str, int]


@dataclass
class QrelsFile:
    """Columns query_id, doc_id and relevance, and notes about irregularities in the file."""

    lines: pl.DataFrame
    notes: list[str] = field(default_factory=list)


def read_judgements(path: Path, data: bytes | None = None) -> QrelsFile:
    """Read judgements. Malformed lines and contradictory judgements are errors.

    ``data`` are the lines of judgements that were sent; then ``path`` is only their name in messages.
    """
    if data is not None:
        return _checked(_columns(text_blocks(path, "judgements", data=data), path), path)
    check_file(path, "judgements")
    if suffix_of(path) == ".parquet":
        names = _table_names(parquet_names(path, "judgements"), path)
        rows = _table(parquet_table(path, "judgements", list(names)), path)
    else:
        blocks = text_blocks(path, "judgements")
        rows = _json(blocks, path) if suffix_of(path) in (".jsonl", ".ndjson", ".json") else _columns(blocks, path)
    return _checked(rows, path)


def judgements_of(table: pa.Table, path: Path) -> QrelsFile:
    """Check judgements that are a table in memory as those of a file are checked. Error messages name ``path``."""
    return _checked(_table(table, path), path)


def judgements_of_rows(rows: Iterable[tuple[object, object, object]], path: Path) -> QrelsFile:
    """Check judgements that are rows of (query, document, relevance) in the same way. Error messages name ``path``."""
    return _checked((_row(*row, path, number) for number, row in enumerate(rows, start=1)), path)


def judgement_names(columns: Container[str]) -> tuple[str, str, str] | None:
    """The names of the query, document and relevance columns; None if these are not the columns of judgements."""
    return next((names for names in (_NAMES, *_OTHER_NAMES) if all(name in columns for name in names)), None)


def _row(query: object, doc: object, grade: object, path: Path, number: int) -> Row:
    ids = json_id(query, "query_id", path, number), json_id(doc, "doc_id", path, number)
    return number, *ids, _grade(grade, path, number)


def _checked(rows: Iterable[Row], path: Path) -> QrelsFile:
    frames, repeated, remaining = [pl.DataFrame(schema=_SCHEMA)], 0, iter(rows)
    while some := list(islice(remaining, _AT_ONCE)):
        frame = pl.DataFrame(some, schema=_SCHEMA, orient="row")
        # Remove repeats per block: a small compressed file may expand to any number of them.
        frames.append(frame.unique(_JUDGED, keep="first", maintain_order=True))
        repeated += frame.height - frames[-1].height
    if len(frames) == 1:
        expected = "expected lines 'query iteration document relevance'"
        raise DataError(f"judgements {path}: the file has no judgements; {expected}", code="empty")
    frame = pl.concat(frames)
    distinct = frame.unique(_JUDGED, keep="first", maintain_order=True)
    clash = distinct.select("query_id", "doc_id").is_duplicated()
    if clash.any():
        row = distinct.filter(clash).row(0, named=True)
        pair = f"document {row['doc_id']!r} has two different judgements for query {row['query_id']!r}"
        raise DataError(f"{place(path, row['line'])}: {pair}; keep one of them", code="two-judgements")
    repeated += frame.height - distinct.height
    again = f"{path.name}: {repeated} judgements repeat earlier ones and are not counted again"
    notes: list[str] = [Note(again, code="repeated-judgements", count=repeated)] if repeated else []
    return QrelsFile(distinct.drop("line"), notes)


def _columns(blocks: Iterable[tuple[int, str]], path: Path) -> Iterator[Row]:
    first, tabs, width = True, False, 0
    for number, line in numbered(blocks):
        if not line.strip(WHITE):
            continue
        fields, where = split_columns(line, (3, 4)), place(path, number)
        # A header does not end in a whole number, but a query id may be 'topic'.
        header, first = first and fields[0].lower() in _HEADERS and not _WHOLE.fullmatch(fields[-1]), False
        if header:
            # If TABs separate the header, blanks are part of the ids. Without a header that is not certain.
            tabs = "\t" in line
            continue
        if len(fields) == 3 and len(words(line)) == 4 and not tabs:
            message = f"found TABs and blanks between the columns of {shown(line)}; put a TAB between all columns"
            raise DataError(
                f"{where}: {message}, or add the header line query-id, corpus-id, score", code="mixed-blanks"
            )
        width = width or len(fields)
        if len(fields) not in (3, 4) or len(fields) != width:
            expected = "expected 4 columns (query iteration document relevance) or 3 without the iteration"
            expected += ", the same number in every line"
            raise DataError(f"{where}: {expected}, found {len(fields)} in {shown(line)}", code="bad-width")
        yield number, fields[0], fields[-2], _grade(fields[-1], path, number)


def _grade(value: object, path: Path, line: int) -> int:
    """Convert a relevance to a whole number. JSON and Parquet may have it as 1.0 or as the text "1"."""
    grade = None
    if isinstance(value, str):
        grade = int(value) if _WHOLE.fullmatch(value) else None
    elif isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1:
        grade = int(value) if abs(value) <= _LARGEST else None
    if grade is None or abs(grade) > _LARGEST:
        expected = "expected a whole number as the relevance, such as 0, 1 or 2"
        raise DataError(f"{place(path, line)}: {expected}, found {shown(value)}", code="bad-relevance")
    return grade


def _json(blocks: Iterable[tuple[int, str]], path: Path) -> Iterator[Row]:
    expected = "an object with query_id, doc_id and relevance"
    for number, row in json_rows(blocks, path, expected):
        names = judgement_names(row)
        if names is None:
            message = f"{place(path, number)}: expected {expected}; found the keys {listing(row)}"
            raise DataError(message, code="missing-column", line=number)
        query, doc, grade = (row[name] for name in names)
        yield _row(query, doc, grade, path, number)


def _table_names(columns: list[str], path: Path) -> tuple[str, str, str]:
    names = judgement_names(columns)
    if names is None:
        message = f"judgements {path}: expected the columns {', '.join(_NAMES)}; found {listing(columns)}"
        raise DataError(message, code="missing-column", found=columns)
    return names


def _table(table: pa.Table, path: Path) -> Iterator[Row]:
    names = _table_names(table.column_names, path)
    queries, docs = (id_column(table, name, path, "judgements").to_pylist() for name in names[:2])
    grades = table[names[2]].to_pylist()
    for number, (query, doc, grade) in enumerate(zip(queries, docs, grades, strict=True), start=1):
        yield number, query, doc, _grade(grade, path, number)
