"""Queries: ``id TAB text``, JSON Lines, and the published annotated list (``id,query,label``)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from askew.core.errors import DataError, place
from askew.corpora.files import read_text, suffix_of

SCHEMA = pa.schema([("query_id", pa.string()), ("text", pa.string()), ("label", pa.string())])


def read_queries(path: Path) -> pa.Table:
    """Columns query_id, text and label (null where the file has none)."""
    text = read_text(path, "queries")
    suffix = suffix_of(path)
    parse = {".jsonl": _json, ".ndjson": _json, ".csv": _annotated}.get(suffix, _tsv)
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            rows.append(parse(line, path, number))
    if not rows:
        raise DataError(f"queries {path}: the file has no queries")
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    ids = table["query_id"].to_pylist()
    if len(set(ids)) < len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise DataError(f"queries {path}: the query id {twice!r} stands there more than once")
    return table


def _tsv(line: str, path: Path, number: int) -> dict[str, str | None]:
    fields = line.split("\t")
    if len(fields) != 2 or not fields[0].strip():
        raise DataError(f"{place(path, number)}: expected 2 columns (query id, TAB, text), found {len(fields)}")
    return {"query_id": fields[0].strip(), "text": fields[1], "label": None}


def _json(line: str, path: Path, number: int) -> dict[str, str | None]:
    try:
        row = json.loads(line)
        query_id = next(row[name] for name in ("query_id", "qid", "_id", "id") if name in row)
        text = next(row[name] for name in ("text", "query") if name in row)
    except (json.JSONDecodeError, StopIteration, TypeError):
        raise DataError(f"{place(path, number)}: expected an object with query_id and text") from None
    return {"query_id": str(query_id), "text": str(text), "label": row.get("label")}


def _annotated(line: str, path: Path, number: int) -> dict[str, str | None]:
    """The published file has no quoting: the first field is the id, the last the label."""
    fields = line.split(",")
    if len(fields) < 3:
        raise DataError(f"{place(path, number)}: expected id,query,label, found {len(fields)} fields")
    return {"query_id": fields[0].strip(), "text": ",".join(fields[1:-1]), "label": fields[-1].strip()}
