"""The log formats that are not delimited text: TripClick, TREC session tracks, and Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from askew.core.errors import DataError, place
from askew.core.protocols import LogBatch, LogFile, LogRows, Rejected
from askew.data.columns import readable
from askew.logs.tables import refuse_columns, to_batch, wanted_columns

# The TripClick log (Rekabsaz et al. 2021): JSON Lines, a record for each click.

_TRIPCLICK = pa.schema(
    [
        *((name, pa.string()) for name in ("DateCreated", "SessionId", "Keywords", "DocumentId")),
        ("Documents", pa.list_(pa.string())),
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
        return LogRows(_COLUMNS, file.lines(), partial(_parse_tripclick, str(file.path)))


def _parse_tripclick(where: str, block: tuple[int, bytes], key: Any) -> LogBatch:
    """The records of some lines."""
    first, text = block
    rejected = Rejected()
    numbers, records = [], []
    for number, line in enumerate(text.split(b"\n"), start=first):
        record = _record(line) if line.strip() else None
        if record is not None:
            numbers.append(number)
            records.append(record)
        elif line.strip():
            rejected.add(_NOT_JSON, 1, [place(where, number)])
    table = pa.Table.from_pylist(records, schema=_TRIPCLICK)
    batch = to_batch(_roles(table, np.array(numbers, np.int64)), key, where, "line")
    rejected.merge(batch.rejected)
    return LogBatch(batch.table, batch.rows + rejected.counts[_NOT_JSON], rejected)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(record.get("Documents", []), list | None):
        return None
    row: dict[str, Any] = {
        name: None if record.get(name) is None else _plain(record[name]) for name in _TRIPCLICK.names
    }
    return {**row, "Documents": [_plain(document) for document in record.get("Documents") or []]}


def _plain(value: object) -> str:
    # JSON can contain lone surrogates, which have no UTF-8 bytes. They become question marks.
    return str(value).encode("utf-8", "replace").decode()


def _roles(table: pa.Table, lines: Any) -> pa.Table:
    stamp = pc.extract_regex(table["DateCreated"].fill_null(""), r"^/Date\((?P<ms>[0-9]{1,15})(?:[+-][0-9]{4})?\)/$")
    clicked = table["DocumentId"]
    # A record without a click has the DocumentId 0 or null.
    has_click = pc.and_(pc.is_valid(clicked), pc.not_equal(clicked.fill_null("0"), "0"))
    return pa.table(
        {
            "session": table["SessionId"],
            "time": pc.cast(pc.struct_field(stamp, "ms"), pa.int64()).cast(pa.timestamp("ms")),
            "query": table["Keywords"],
            "click_doc": pc.if_else(has_click, clicked, None),
            "results": table["Documents"],
            "line": pa.array(lines),
        }
    )


# The XML of the TREC session tracks: sessions, their queries with times, results and clicks.

_SCHEMA = pa.schema(
    [
        ("user", pa.string()), ("session", pa.string()), ("time", pa.string()), ("query", pa.string()),
        ("click_rank", pa.list_(pa.int32())), ("click_doc", pa.list_(pa.string())),
        ("results", pa.list_(pa.string())), ("texts", pa.list_(pa.string())), ("topic", pa.string()),
        ("line", pa.int64()),
    ]
)  # fmt: skip
_SESSIONS = 500
_LARGEST_SESSION = 1 << 28


class TrecSessionFormat:
    """The XML of the TREC session tracks, with results, texts and clicks."""

    name, endings = "trec-session", (".xml",)

    def read(self, file: LogFile, columns: Mapping[str, str] | None = None) -> LogRows:
        """The queries of all sessions."""
        refuse_columns(columns, "a TREC session log")
        where = str(file.path)

        def parse(block: list[dict[str, Any]], key: Any) -> LogBatch:
            return to_batch(pa.Table.from_pylist(block, schema=_SCHEMA), key, where, "query")

        names = frozenset(_SCHEMA.names) - {"line"}
        return LogRows(names, session_queries(file.blocks(), where), parse, sessions_as_users=True)


def session_queries(blocks: Iterable[bytes], where: str) -> Iterator[list[dict[str, Any]]]:
    """The queries of a TREC session file as lists of rows, for a few sessions at a time."""
    rows: list[dict[str, Any]] = []
    number = 0
    for sessions, session in enumerate(_sessions(blocks, where), start=1):
        for query in session.iter():
            if query.tag in ("interaction", "currentquery"):
                number += 1
                rows.append(_row(session, query, number))
        session.clear()
        if sessions % _SESSIONS == 0:
            yield rows
            rows = []
    if rows:
        yield rows
    elif not number:
        raise DataError(f"log {where}: expected <session> elements with queries, found none")


def _sessions(blocks: Iterable[bytes], where: str) -> Iterator[Element]:
    parser: Any = XMLPullParser(events=("start", "end"))
    above: list[Element] = []
    fed = 0
    try:
        for block in blocks:
            parser.feed(block)
            fed += len(block)
            for event, element in parser.read_events():
                if event == "start":
                    above.append(element)
                    continue
                above.pop()
                if any(element_above.tag == "session" for element_above in above):
                    continue
                if element.tag == "session":
                    yield element
                if above:
                    # Free the memory of elements that have been read.
                    above[-1].clear()
                fed = 0
            if fed > _LARGEST_SESSION:
                words = f"log {where}: expected at most {_LARGEST_SESSION:,} bytes in a session, found more"
                raise DataError(words, code="long-session")
        parser.close()
    except ParseError as error:
        line, column = error.position
        raise DataError(f"log {where}:{line}: not well-formed XML at column {column}") from None


def _row(session: Element, query: Element, number: int) -> dict[str, Any]:
    results = query.findall("results/result")
    urls = {result.get("rank", ""): result.findtext("url", "").strip() for result in results}
    ranks = [click.text.strip() for click in query.iterfind("clicked/click/rank") if click.text]
    topic = session.find("topic")
    name = session.get("num", "")
    return {
        "user": session.get("userid") or name,
        "session": name,
        "time": query.get("starttime", ""),
        "query": query.findtext("query", ""),
        "click_rank": [int(rank) if rank.isdecimal() and len(rank) < 9 else 0 for rank in ranks],
        "click_doc": [urls.get(rank, "") for rank in ranks],
        "results": list(urls.values()),
        "texts": [f"{result.findtext('title', '')} {result.findtext('snippet', '')}" for result in results],
        "topic": "" if topic is None else topic.get("num", ""),
        "line": number,
    }


# Rows with lists of results are large: a few of them fill a block.
_ROWS = 1 << 15


class ParquetFormat:
    """Parquet: columns of any name; clicks, results and texts may be lists."""

    name, endings = "parquet", (".parquet",)

    def read(self, file: LogFile, columns: Mapping[str, str] | None = None) -> LogRows:
        """The rows of a file."""
        opened, roles = _open_parquet(file.path, columns)
        where = str(file.path)

        def parse(block: tuple[int, pa.Table], key: Any) -> LogBatch:
            first, table = block
            # A damaged page may give a table that does not match its schema.
            with readable(f"log {where}: there is damage in the rows {first} to {first + table.num_rows - 1}"):
                named = {role: table[name] for role, name in roles.items()}
                named["line"] = pa.array(np.arange(first, first + table.num_rows))
                return to_batch(pa.table(named), key, where)

        return LogRows(frozenset(roles), _parquet_blocks(opened, roles, where), parse)


def _open_parquet(path: Path, columns: Mapping[str, str] | None) -> tuple[pq.ParquetFile, dict[str, str]]:
    with readable(f"log {path}: not a complete Parquet file"):
        opened = pq.ParquetFile(path)
        names = list(opened.schema_arrow.names)
    return opened, wanted_columns(names, columns, str(path))


def _parquet_blocks(file: pq.ParquetFile, roles: Mapping[str, str], where: str) -> Iterator[tuple[int, pa.Table]]:
    first = 1
    batches = file.iter_batches(_ROWS, columns=sorted(set(roles.values())))
    while True:
        with readable(f"log {where}: there is damage at row {first} or later"):
            batch = next(batches, None)
        if batch is None:
            return
        yield first, pa.Table.from_batches([batch])
        first += batch.num_rows
