"""The TripClick log (Rekabsaz et al. 2021): JSON Lines, a record for each click.

Fields read: DateCreated (``/Date(milliseconds)/``), SessionId, Keywords, DocumentId (the clicked document) and
Documents (the documents shown). The log has no users, so each session counts as a user.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as paj

from askew.core.errors import place
from askew.logs.tables import refuse_columns, to_batch
from askew.plugins.log_formats import LogBatch, LogFile, LogRows, Rejected

_SCHEMA = pa.schema(
    [
        ("DateCreated", pa.string()),
        ("SessionId", pa.string()),
        ("Keywords", pa.string()),
        ("DocumentId", pa.int64()),
        ("Documents", pa.list_(pa.int64())),
    ]
)
_COLUMNS = frozenset({"session", "time", "query", "click_doc", "click_rank", "results"})
_NOT_JSON = "not a JSON record"


class TripClickFormat:
    """The TripClick log: JSON Lines with a record for each click."""

    name, endings = "tripclick", (".json", ".jsonl")

    def read(self, file: LogFile, columns: Mapping[str, str] | None = None) -> LogRows:
        """The records of a file."""
        refuse_columns(columns, "a TripClick log")
        return LogRows(_COLUMNS, file.lines(), TripClickLog(str(file.path)).parse)


class TripClickLog:
    """Parser of blocks of whole lines of a TripClick log."""

    def __init__(self, where: str) -> None:
        self.where = where

    def parse(self, block: tuple[int, bytes], key: Any) -> LogBatch:
        """The records of some lines."""
        first, text = block
        rejected = Rejected()
        table, lines = _fast(text), None
        if table is None:
            table, lines = self._carefully(first, text, rejected)
        numbers = np.arange(first, first + table.num_rows) if lines is None else np.array(lines, np.int64)
        batch = to_batch(_roles(table, numbers), key, self.where, "line")
        rejected.merge(batch.rejected)
        return LogBatch(batch.table, batch.rows + rejected.counts[_NOT_JSON], rejected)

    def _carefully(self, first: int, text: bytes, rejected: Rejected) -> tuple[pa.Table, list[int]]:
        """Parse line by line, if the columnar reader failed on the block."""
        rows, lines = [], []
        for number, line in enumerate(text.split(b"\n"), start=first):
            if not line.strip():
                continue
            row = _record(line)
            if row is None:
                rejected.add(_NOT_JSON, 1, [place(self.where, number)])
            else:
                rows.append(row)
                lines.append(number)
        return pa.Table.from_pylist(rows, schema=_TEXT_SCHEMA), lines


_TEXT_SCHEMA = pa.schema([(f.name, pa.list_(pa.string()) if f.name == "Documents" else pa.string()) for f in _SCHEMA])


def _fast(text: bytes) -> pa.Table | None:
    """Parse all records of a block at once; None if a record does not fit the schema or a line is blank."""
    if b"\n\n" in text or b"\0" in text or not text.strip():
        return None
    options = paj.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="ignore")
    try:
        table = paj.read_json(io.BytesIO(text), paj.ReadOptions(use_threads=False, block_size=len(text) + 1), options)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    lines = text.count(b"\n") + (not text.endswith(b"\n"))
    return table if table.num_rows == lines else None


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("Documents", []), list | None):
        return None
    row: dict[str, Any] = {}
    for name in _SCHEMA.names:
        value = found.get(name)
        if name == "Documents":
            row[name] = [_plain(one) for one in value or []]
        else:
            row[name] = None if value is None else _plain(value)
    return row


def _plain(value: object) -> str:
    # JSON can contain lone surrogates, which have no UTF-8 bytes. They become question marks.
    return str(value).encode("utf-8", "replace").decode()


def _roles(table: pa.Table, lines: Any) -> pa.Table:
    stamp = pc.extract_regex(table["DateCreated"].fill_null(""), r"^/Date\((?P<ms>[0-9]{1,15})(?:[+-][0-9]{4})?\)/$")
    ms = pc.struct_field(stamp, "ms")
    clicked = table["DocumentId"].cast(pa.string())
    # A record without a click has the DocumentId 0 or null.
    there = pc.and_(pc.is_valid(clicked), pc.not_equal(clicked.fill_null("0"), "0"))
    results = table["Documents"].cast(pa.list_(pa.string()))
    return pa.table(
        {
            "session": table["SessionId"],
            "time": pc.cast(ms, pa.int64()).cast(pa.timestamp("ms")),
            "query": table["Keywords"],
            "click_doc": pc.if_else(there, clicked, None),
            "results": results,
            "line": pa.array(lines),
        }
    )
