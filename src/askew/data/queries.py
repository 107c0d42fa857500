"""Read queries from ``id TAB text``, JSON Lines, Parquet, or the published labeled queries (``id,query,label``)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from askew.core.errors import DataError, place
from askew.core.files import check_file
from askew.data.columns import id_column, json_id, json_rows, json_text, parquet_names, parquet_table, text_column
from askew.data.files import WHITE, listing, no_value, numbered, suffix_of, text_blocks

SCHEMA = pa.schema([("query_id", pa.string()), ("text", pa.string()), ("label", pa.string())])
_WITH_CONTEXT = SCHEMA.append(pa.field("context", pa.string()))
# The rows that are Python objects at a time.
_AT_ONCE = 1 << 14
_ID_NAMES = ("query_id", "qid", "_id", "id")
_TEXT_NAMES = ("text", "query")

# The user and the time of a query in a query log. Only JSON Lines and Parquet files have these fields.
_CONTEXT = (("user", "user_id"), ("time", "timestamp"))

# Line number, id, text, label and context of a query.
Row = tuple[int, str, str, str | None, str | None]
# Blocks of whole lines as text, each with the number of its first line.
Blocks = Iterable[tuple[int, str]]


def read_queries(path: Path) -> pa.Table:
    """Columns query_id, text and label (null if the file has none), and context if the file has users or times."""
    if suffix_of(path) == ".parquet":
        columns = parquet_names(check_file(path, "queries"), "queries")
        used = [*names_in(columns), "label", *(name for names in _CONTEXT for name in names)]
        table = parquet_table(path, "queries", [name for name in columns if name in used] or columns)
        return queries_of(query_rows(table, path), path)
    read = {".jsonl": _json, ".ndjson": _json, ".json": _json, ".csv": _annotated}.get(suffix_of(path), _tsv)
    return queries_of(read(text_blocks(path, "queries"), path), path)


def queries_of(given_rows: Iterable[Row], path: Path) -> pa.Table:
    """Check queries that are given as rows, and convert them to a table. Error messages name ``path``."""
    rows, tables = _distinct(given_rows, path), []
    while some := list(islice(rows, _AT_ONCE)):
        _, *columns = zip(*some, strict=True)
        tables.append(pa.table([pa.array(column, pa.string()) for column in columns], _WITH_CONTEXT))
    if not tables:
        message = f"queries {path}: the file has no queries; expected lines with a query id, a TAB and the text"
        raise DataError(message, code="empty")
    table = pa.concat_tables(tables).combine_chunks()
    return table.drop_columns("context") if table["context"].null_count == len(table) else table


def _distinct(rows: Iterable[Row], path: Path) -> Iterator[Row]:
    seen: set[str] = set()
    for row in rows:
        if row[1] in seen:
            raise DataError(f"{place(path, row[0])}: the query id {row[1]!r} occurs more than once; keep one")
        seen.add(row[1])
        yield row


def names_in(columns: Container[str]) -> tuple[str | None, str | None]:
    """The names of the id and of the text; None for a missing one."""
    return next((n for n in _ID_NAMES if n in columns), None), next((n for n in _TEXT_NAMES if n in columns), None)


def are_queries(columns: list[str]) -> bool:
    """Whether these columns are certainly those of queries. An ``_id`` with a text may also be a document."""
    return any(name in columns for name in _ID_NAMES[:2]) and any(name in columns for name in _TEXT_NAMES)


def _tsv(blocks: Blocks, path: Path) -> Iterator[Row]:
    for number, line in numbered(blocks):
        # A line with a TAB is a query even if its id and its text are blank.
        if "\t" not in line and not line.strip(WHITE):
            continue
        fields = line.split("\t")
        if len(fields) != 2:
            # The line itself is not shown: queries are private, and messages end up in logs.
            hint = "put an id and a TAB before each text" if len(fields) == 1 else "the text must not contain a TAB"
            expected = f"expected 2 columns (query id, TAB, text), found {len(fields)}"
            raise DataError(f"{place(path, number)}: {expected}; {hint}", code="bad-width")
        yield number, _id(fields[0], path, number), fields[1], None, None


def _json(blocks: Blocks, path: Path) -> Iterator[Row]:
    expected = "an object with the fields 'query_id' and 'text'"
    for number, row in json_rows(blocks, path, expected):
        id_name, text_name = names_in(row)
        if id_name is None or text_name is None:
            message = f"{place(path, number)}: expected {expected}; found the keys {listing(row)}"
            raise DataError(message, code="missing-column", line=number)
        query_id = json_id(row[id_name], id_name, path, number)
        label = row.get("label")
        label = None if label is None else json_text(label, "label", path, number)
        values = [row[name] for names in _CONTEXT for name in names if row.get(name) is not None]
        yield number, query_id, json_text(row[text_name], text_name, path, number), label, _context(values)


def query_rows(table: pa.Table, path: Path) -> Iterator[Row]:
    """The queries of a table, of a Parquet file or in memory. Error messages name ``path``."""
    columns = table.column_names
    id_name, text_name = names_in(columns)
    if id_name is None or text_name is None:
        raise DataError(f"queries {path}: expected the columns query_id and text; found {listing(columns)}")
    context_names = [name for names in _CONTEXT for name in names if name in columns]
    names = [text_name, *(name for name in ("label",) if name in columns)]
    ids = id_column(table, id_name, path, "queries").to_pylist()
    texts, *labels = (text_column(table, name, path, "queries").to_pylist() for name in names)
    context_columns = [table[name].to_pylist() for name in context_names]
    for number, (query_id, text) in enumerate(zip(ids, texts, strict=True), start=1):
        if text is None:
            raise no_value(path, number, text_name)
        context = _context([values[number - 1] for values in context_columns if values[number - 1] is not None])
        yield number, query_id, text, labels[0][number - 1] if labels else None, context


def _annotated(blocks: Blocks, path: Path) -> Iterator[Row]:
    """Read the published list of labeled queries. It has no quoting: the id is first, the label last."""
    for number, line in numbered(blocks):
        if not line.strip(WHITE):
            continue
        fields = line.split(",")
        if len(fields) < 3:
            message = f"{place(path, number)}: expected id,query,label, found {len(fields)} fields"
            raise DataError(message, code="bad-width", line=number, found=len(fields))
        yield number, _id(fields[0], path, number), ",".join(fields[1:-1]), fields[-1].strip(WHITE), None


def _context(values: list[object]) -> str | None:
    return " ".join(" ".join(str(value).split()) for value in values) or None


def _id(field: str, path: Path, number: int) -> str:
    query_id = field.strip(WHITE)
    if not query_id:
        raise DataError(f"{place(path, number)}: the query has no id; every line needs one")
    return query_id
