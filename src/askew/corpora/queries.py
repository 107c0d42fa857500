"""Queries: ``id TAB text``, JSON Lines, Parquet, and the published annotated list (``id,query,label``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from askew.core.errors import DataError, place
from askew.corpora.files import check_file, suffix_of, text_blocks
from askew.corpora.jsonl import json_id, json_rows, json_text
from askew.corpora.lines import WHITE, listing, no_value, numbered
from askew.corpora.parquet import id_column, parquet_names, parquet_table, text_column

SCHEMA = pa.schema([("query_id", pa.string()), ("text", pa.string()), ("label", pa.string())])
_ID_NAMES = ("query_id", "qid", "_id", "id")
_TEXT_NAMES = ("text", "query")

# Who asked, and when: what a log knows of a query beside its text. JSON Lines and Parquet may have them.
_CONTEXT = (("user", "user_id"), ("time", "timestamp"))

# The number of its line, the id, the text, the label and the context of a query.
Row = tuple[int, str, str, str | None, str | None]
# Whole lines as text, each block with the number of its first line.
Blocks = Iterable[tuple[int, str]]


def read_queries(path: Path) -> pa.Table:
    """Columns query_id, text and label (null where the file has none); context where the file says who or when."""
    if suffix_of(path) == ".parquet":
        return queries_of(_parquet(check_file(path, "queries")), path)
    read = {".jsonl": _json, ".ndjson": _json, ".json": _json, ".csv": _annotated}.get(suffix_of(path), _tsv)
    return queries_of(read(text_blocks(path, "queries"), path), path)


def queries_of(found: Iterable[Row], path: Path) -> pa.Table:
    """Queries that are rows already, with the same checks; ``path`` names them in a message."""
    rows: dict[str, dict[str, str | None]] = {}
    contexts: list[str | None] = []
    for number, query_id, query, label, context in found:
        if query_id in rows:
            raise DataError(f"{place(path, number)}: the query id {query_id!r} occurs more than once; keep one")
        rows[query_id] = {"query_id": query_id, "text": query, "label": label}
        contexts.append(context)
    if not rows:
        raise DataError(f"queries {path}: the file has no queries; expected lines of query id, TAB, text")
    table = pa.Table.from_pylist(list(rows.values()), schema=SCHEMA)
    if all(context is None for context in contexts):
        return table
    return table.append_column("context", pa.array(contexts, pa.string()))


def are_queries(columns: list[str]) -> bool:
    """Whether these are surely the columns of queries. An ``_id`` with a text may be a document as well."""
    return any(name in columns for name in _ID_NAMES[:2]) and any(name in columns for name in _TEXT_NAMES)


def _tsv(blocks: Blocks, path: Path) -> Iterator[Row]:
    for number, line in numbered(blocks):
        # A line with a TAB is a query, though its id and its text be blank.
        if "\t" not in line and not line.strip(WHITE):
            continue
        fields = line.split("\t")
        if len(fields) != 2:
            raise DataError(
                f"{place(path, number)}: expected 2 columns (query id, TAB, text), found {len(fields)}{_hint(fields)}"
            )
        yield number, _id(fields[0], path, number), fields[1], None, None


def _hint(fields: list[str]) -> str:
    """What to do. The line itself is not shown: queries are private, and messages end up in logs."""
    return "; put an id and a TAB before each text" if len(fields) == 1 else "; a text has no TAB in it"


def _json(blocks: Blocks, path: Path) -> Iterator[Row]:
    expected = "an object with query_id and text"
    for number, row in json_rows(blocks, path, expected):
        id_name = next((name for name in _ID_NAMES if name in row), None)
        text_name = next((name for name in _TEXT_NAMES if name in row), None)
        if id_name is None or text_name is None:
            raise DataError(f"{place(path, number)}: expected {expected}; found the keys {listing(row)}")
        query_id = json_id(row[id_name], id_name, path, number)
        label = row.get("label")
        label = None if label is None else json_text(label, "label", path, number)
        said = [row[name] for names in _CONTEXT for name in names if row.get(name) is not None]
        yield number, query_id, json_text(row[text_name], text_name, path, number), label, _context(said)


def _parquet(path: Path) -> Iterator[Row]:
    found = parquet_names(path, "queries")
    id_name = next((name for name in _ID_NAMES if name in found), None)
    text_name = next((name for name in _TEXT_NAMES if name in found), None)
    if id_name is None or text_name is None:
        raise DataError(f"queries {path}: expected query_id and text columns; found {listing(found)}")
    known = [name for names in _CONTEXT for name in names if name in found]
    names = [id_name, text_name, *(name for name in ("label",) if name in found)]
    table = parquet_table(path, "queries", [*names, *known])
    ids = id_column(table, id_name, path, "queries").to_pylist()
    texts, *labels = (text_column(table, name, path, "queries").to_pylist() for name in names[1:])
    said = [table[name].to_pylist() for name in known]
    for number, (query_id, text) in enumerate(zip(ids, texts, strict=True), start=1):
        if text is None:
            raise no_value(path, number, text_name)
        context = _context([values[number - 1] for values in said if values[number - 1] is not None])
        yield number, query_id, text, labels[0][number - 1] if labels else None, context


def _annotated(blocks: Blocks, path: Path) -> Iterator[Row]:
    """The published file has no quoting: the first field is the id, the last the label."""
    for number, line in numbered(blocks):
        if not line.strip(WHITE):
            continue
        fields = line.split(",")
        if len(fields) < 3:
            raise DataError(f"{place(path, number)}: expected id,query,label, found {len(fields)} fields")
        yield number, _id(fields[0], path, number), ",".join(fields[1:-1]), fields[-1].strip(WHITE), None


def _context(said: list[object]) -> str | None:
    """User and time in one line."""
    return " ".join(" ".join(str(value).split()) for value in said) or None


def _id(field: str, path: Path, number: int) -> str:
    query_id = field.strip(WHITE)
    if not query_id:
        raise DataError(f"{place(path, number)}: the query has no id; every line needs one")
    return query_id
