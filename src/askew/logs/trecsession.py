"""The XML of the TREC session tracks: sessions, their queries with times, results and clicks.

Only the 2014 data names users. In other years each session counts as a user. Times are seconds from the start of the
session. The last query of a session may have no results, because it is the query that participants had to answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

import pyarrow as pa

from askew.core.errors import DataError
from askew.logs.tables import refuse_columns, to_batch
from askew.plugins.log_formats import LogBatch, LogFile, LogRows

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
        log = TrecSessionLog(file.blocks(), str(file.path))
        return LogRows(frozenset(_SCHEMA.names) - {"line"}, log.blocks(), log.parse, sessions_as_users=True)


class TrecSessionLog:
    """Reader of a TREC session file, a few sessions at a time."""

    def __init__(self, blocks: Iterable[bytes], where: str) -> None:
        self._blocks, self.where = blocks, where

    def blocks(self) -> Iterator[list[dict[str, Any]]]:
        """Lists of rows, one per query, for a few sessions at a time."""
        rows: list[dict[str, Any]] = []
        number = 0
        for sessions, session in enumerate(self._sessions(), start=1):
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
            raise DataError(f"log {self.where}: expected <session> elements with queries, found none")

    def _sessions(self) -> Iterator[Element]:
        parser: Any = XMLPullParser(events=("start", "end"))
        above: list[Element] = []
        fed = 0
        try:
            for block in self._blocks:
                parser.feed(block)
                fed += len(block)
                for event, element in parser.read_events():
                    if event == "start":
                        above.append(element)
                        continue
                    above.pop()
                    if any(one.tag == "session" for one in above):
                        continue
                    if element.tag == "session":
                        yield element
                    if above:
                        # Free the memory of elements that have been read.
                        above[-1].clear()
                    fed = 0
                if fed > _LARGEST_SESSION:
                    raise DataError(
                        f"log {self.where}: expected at most {_LARGEST_SESSION:,} bytes in a session, found more"
                    )
            parser.close()
        except ParseError as error:
            line, column = error.position
            raise DataError(f"log {self.where}:{line}: not well-formed XML at column {column}") from None

    def parse(self, block: list[dict[str, Any]], key: Any) -> LogBatch:
        """The queries of some sessions as events."""
        return to_batch(pa.Table.from_pylist(block, schema=_SCHEMA), key, self.where, "query")


def _row(session: Element, query: Element, number: int) -> dict[str, Any]:
    results = query.findall("results/result")
    urls = {one.get("rank", ""): one.findtext("url", "").strip() for one in results}
    ranks = [one.text.strip() for one in query.iterfind("clicked/click/rank") if one.text]
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
        "texts": [f"{one.findtext('title', '')} {one.findtext('snippet', '')}" for one in results],
        "topic": "" if topic is None else topic.get("num", ""),
        "line": number,
    }
