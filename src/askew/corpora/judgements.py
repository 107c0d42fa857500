"""Judgements (qrels): TREC's four columns, BEIR's three with a header, JSON Lines or Parquet."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from askew.core.errors import DataError, place
from askew.corpora.files import check_file, read_text, suffix_of

_HEADERS = {"query-id", "query_id", "qid", "topic"}


@dataclass
class QrelsFile:
    """Columns query_id, doc_id, relevance; and what was noticed on reading."""

    lines: pl.DataFrame
    notes: list[str] = field(default_factory=list)


def read_judgements(path: Path) -> QrelsFile:
    """Read judgements and refuse what no measure could be trusted on."""
    check_file(path, "judgements")
    if suffix_of(path) == ".parquet":
        frame = _parquet(path)
    else:
        text = read_text(path, "judgements")
        rows = _json(text, path) if suffix_of(path) in (".jsonl", ".ndjson") else _columns(text, path)
        names = ["line", "query_id", "doc_id", "relevance"]
        frame = pl.DataFrame(
            rows, schema=dict(zip(names, (pl.Int64, pl.String, pl.String, pl.Int64), strict=True)), orient="row"
        )
    if frame.height == 0:
        raise DataError(f"judgements {path}: the file has no judgements")
    return _without_repeats(frame, path)


def _columns(text: str, path: Path) -> list[tuple[int, str, str, int]]:
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.split()
        if not fields or (number == 1 and fields[0].lower() in _HEADERS):
            continue
        if len(fields) not in (3, 4):
            raise DataError(
                f"{place(path, number)}: expected 4 columns (query iteration document relevance), found {len(fields)}"
            )
        rows.append((number, fields[0], fields[-2], _grade(fields[-1], path, number)))
    return rows


def _grade(text: object, path: Path, line: int) -> int:
    try:
        return int(str(text))
    except ValueError:
        raise DataError(f"{place(path, line)}: expected a whole number as the relevance, found {text!r}") from None


def _json(text: str, path: Path) -> list[tuple[int, str, str, int]]:
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                row = json.loads(line)
                rows.append((number, str(row["query_id"]), str(row["doc_id"]), _grade(row["relevance"], path, number)))
            except (json.JSONDecodeError, KeyError, TypeError):
                raise DataError(f"{place(path, number)}: expected an object with query_id, doc_id, relevance") from None
    return rows


def _parquet(path: Path) -> pl.DataFrame:
    try:
        frame = pl.read_parquet(path)
        return frame.with_row_index("line", offset=1).select(
            pl.col("line").cast(pl.Int64),
            pl.col("query_id", "doc_id").cast(pl.String),
            pl.col("relevance").cast(pl.Int64),
        )
    except (pl.exceptions.PolarsError, OSError) as error:
        first = str(error).splitlines()[0]
        raise DataError(f"judgements {path}: expected query_id, doc_id, relevance in Parquet ({first})") from None


def _without_repeats(frame: pl.DataFrame, path: Path) -> QrelsFile:
    distinct = frame.unique(["query_id", "doc_id", "relevance"], keep="first", maintain_order=True)
    clash = distinct.select("query_id", "doc_id").is_duplicated()
    if clash.any():
        row = distinct.filter(clash).row(0, named=True)
        raise DataError(
            f"{place(path, row['line'])}: document {row['doc_id']!r} is judged twice, differently, "
            f"for query {row['query_id']!r}"
        )
    result = QrelsFile(distinct.drop("line"))
    if distinct.height < frame.height:
        result.notes.append(f"{path.name}: {frame.height - distinct.height} judgements stand there twice; counted once")
    return result
