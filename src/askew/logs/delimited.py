"""TAB-separated logs: the AOL collection, and any other log with a header line.

AOL: AnonID, Query, QueryTime, ItemRank, ClickURL (Pass, Chowdhury and Torgeson 2006). A line is a query, or a click
with its query. The last two columns are empty for a query without a click.
Any other log: the first line names the columns. Quotes have no special meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import ConfigError, DataError, check_names, place
from askew.core.protocols import LogBatch, LogFile, LogRows, Rejected
from askew.logs.scan import (
    BLANK,
    COLUMNS,
    GOOD,
    NOT_UTF8,
    NUL,
    READ_AHEAD,
    gather,
    hash_all,
    parse_ranks,
    parse_times,
    split_lines,
)
from askew.logs.tables import (
    NOT_A_RANK,
    canonical_queries,
    drop_without_terms,
    entry_code,
    shape,
    short_lists,
    text_array,
)

# Count the lines of a block of a log, and split a block into smaller blocks of whole lines.

_LINE_FEED = 10


def count_lines(block: bytes) -> int:
    """The number of line feeds in a block. This is ten times as fast as ``bytes.count``."""
    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == _LINE_FEED))


AOL_NAMES = ("AnonID", "Query", "QueryTime", "ItemRank", "ClickURL")
AOL_ROLES = {"user": "AnonID", "query": "Query", "time": "QueryTime", "click_rank": "ItemRank", "click_doc": "ClickURL"}
ROLES = ("user", "session", "time", "query", "entry", "click_rank", "click_doc", "results", "topic")
NEEDED = ("time", "query")

_REASONS = {COLUMNS: "wrong number of columns", NUL: "NUL byte", NOT_UTF8: "not UTF-8"}
_HEADER_REPEATED = "header line again"
_MOST_LINES = 1 << 19


class TsvFormat:
    """Lines with TABs; the first line names the columns."""

    name, endings = "tsv", (".tsv", ".txt")

    def read(self, file: LogFile, columns: Mapping[str, str] | None = None) -> LogRows:
        """The lines of a file after its header."""
        log = DelimitedLog(file.lines(), str(file.path), columns, aol=self.name == "aol")
        return LogRows(frozenset(log.roles), log.blocks(), log.parse)


class AolFormat(TsvFormat):
    """The AOL collection, with a header or without: AnonID, Query, QueryTime, ItemRank, ClickURL."""

    name, endings = "aol", (".txt", ".tsv")


class DelimitedLog:
    """Reader of a TAB-separated log in blocks of whole lines."""

    def __init__(
        self, blocks: Iterable[tuple[int, bytes]], where: str, columns: Mapping[str, str] | None = None,
        aol: bool = False, most_lines: int = _MOST_LINES,
    ) -> None:  # fmt: skip
        self._blocks, self.where, self._aol = iter(blocks), where, aol
        self._most_lines = most_lines
        self._first = next(self._blocks, None)
        self._header, self.time_name = b"", ""
        self.roles: dict[str, int] = {}
        self._width = 0
        if self._first is None:
            return
        asked = dict(columns or {})
        self._header = self._first[1].split(b"\n", 1)[0].rstrip(b"\r")
        names = [name.strip() for name in self._header.decode("utf-8", "replace").split("\t")]
        if aol:
            wanted = {**AOL_ROLES, **asked}
            # Some copies of the collection have no header line. The columns are known without it.
            if names[:1] != [AOL_NAMES[0]]:
                names, self._header = list(AOL_NAMES), b""
        else:
            wanted = {role: asked.get(role, role) for role in ROLES if role in asked or role in names}
        self._width, self.time_name = len(names), wanted.get("time", "")
        self.roles = _places(wanted, names, asked, where)

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Blocks of lines, each with the number of its first line."""
        if self._first is None:
            return
        line, block = self._first
        self._first = None
        if self._header:
            cut = block.find(b"\n") + 1 or len(block)
            line, block = line + 1, block[cut:]
        for first, text in chain([(line, block)] if block else [], self._blocks):
            yield from self._few_lines(first, text)

    def _few_lines(self, first: int, block: bytes) -> Iterator[tuple[int, bytes]]:
        """Split a block into blocks of fewer lines, to bound the memory of the per-line data."""
        if count_lines(block) <= self._most_lines:
            yield first, block
            return
        every = np.flatnonzero(np.frombuffer(block, np.uint8) == _LINE_FEED)
        begin = 0
        for end in [*(every[self._most_lines - 1 :: self._most_lines] + 1).tolist(), len(block)]:
            if end > begin:
                yield first, block[begin:end]
                first, begin = first + self._most_lines, end

    def parse(self, block: tuple[int, bytes], key: Any) -> LogBatch:
        """Parse a block of lines into rows. ``key`` is the secret key for hashing ids."""
        first, text = block
        lines = count_lines(text) + (not text.endswith(b"\n"))
        ended = text if text.endswith(b"\n") else text + b"\n"
        data = np.zeros(len(ended) + READ_AHEAD, np.uint8)
        data[: len(ended)] = np.frombuffer(ended, np.uint8)
        roles = list(self.roles)
        role_of = np.full(self._width, -1, np.int64)
        for number, role in enumerate(roles):
            role_of[self.roles[role]] = number
        starts, ends = np.zeros((2, len(roles), lines), np.int64)
        reasons = np.zeros(lines, np.uint8)
        least = 3 if self._aol else self._width
        split_lines(data, len(ended), least, self._width, role_of, starts, ends, reasons)
        return _Rows(self, key, data, first, roles, starts, ends).batch(reasons)


class _Rows:
    """Converts the lines of one block to columns."""

    def __init__(
        self, log: DelimitedLog, key: Any, data: Any, first: int, roles: list[str], starts: Any, ends: Any
    ) -> None:
        self.log, self.key, self.data, self.first = log, key, data, first
        self.starts = dict(zip(roles, starts, strict=True))
        self.ends = dict(zip(roles, ends, strict=True))
        self.rejected = Rejected()

    def batch(self, reasons: Any) -> LogBatch:
        for code, reason in _REASONS.items():
            self._reject(reason, np.flatnonzero(reasons == code))
        keep = self._drop_headers(np.flatnonzero(reasons == GOOD))
        times, good = np.zeros(len(keep), np.int64), np.zeros(len(keep), np.bool_)
        parse_times(self.data, self.starts["time"][keep], self.ends["time"][keep], times, good)
        self._reject("unparseable time", keep[~good], "time")
        keep, times = keep[good], times[good]
        ranks = np.zeros(len(keep), np.int64)
        if "click_rank" in self.starts:
            parse_ranks(self.data, self.starts["click_rank"][keep], self.ends["click_rank"][keep], ranks)
            self._reject(NOT_A_RANK, keep[ranks < 0], "click_rank")
        role = "user" if "user" in self.starts else "session"
        named = self.ends[role][keep] > self.starts[role][keep]
        self._reject(f"no {role}", keep[(ranks >= 0) & ~named])
        good = (ranks >= 0) & named
        table = self._table(keep[good], times[good], ranks[good])
        # A blank line has no data, so it is not counted as a row.
        lines = len(reasons) - int((reasons == BLANK).sum())
        return LogBatch(drop_without_terms(table, self.rejected, self.log.where), lines, self.rejected)

    def _reject(self, reason: str, rows: Any, role: str = "") -> None:
        self.rejected.add(reason, len(rows), (self._example(int(row), role) for row in rows[:3]))

    def _example(self, row: int, role: str) -> str:
        where = place(self.log.where, self.first + row)
        return f"{where}: {role} {shape(self._text(row, role))}" if role else where

    def _text(self, row: int, role: str) -> str:
        return bytes(self.data[self.starts[role][row] : self.ends[role][row]]).decode("utf-8", "replace")

    def _drop_headers(self, keep: Any) -> Any:
        """Drop repeated header lines of concatenated files: lines with the column name in place of the time."""
        name = self.log.time_name
        odd = keep[(self.ends["time"][keep] - self.starts["time"][keep]) == len(name)]
        again = np.array([row for row in odd.tolist() if self._text(row, "time") == name], np.int64)
        self._reject(_HEADER_REPEATED, again)
        return np.setdiff1d(keep, again, assume_unique=True) if len(again) else keep

    def _table(self, keep: Any, times: Any, ranks: Any) -> pa.Table:
        named: dict[str, Any] = {"time": pa.array(times), "line": pa.array(keep + self.first)}
        for role, starts in self.starts.items():
            if role in ("user", "session"):
                named[role] = pa.array(hash_all(self.data, starts[keep], self.ends[role][keep], self.key))
            elif role == "query":
                named[role] = canonical_queries(self.data, starts[keep], self.ends[role][keep])
            elif role == "entry":
                texts = pl.Series(self._texts(role, keep))
                codes = {text: entry_code(text) for text in texts.unique().to_list()}
                named[role] = texts.replace_strict(codes, return_dtype=pl.UInt8).to_arrow()
            elif role == "results":
                split = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(self._texts(role, keep)))
                named[role] = split.cast(pa.list_(pa.string()))
            elif role == "topic":
                named[role] = self._texts(role, keep)
        named.setdefault("user", named.get("session"))
        there = ranks > 0
        if "click_doc" in self.starts:
            there |= self.ends["click_doc"][keep] > self.starts["click_doc"][keep]
            named["click_doc"] = short_lists(there, self._texts("click_doc", keep[there]))
        if {"click_rank", "click_doc"} & set(self.starts):
            named["click_rank"] = short_lists(there, pa.array(ranks[there], pa.int32()))
        return pa.table(named)

    def _texts(self, role: str, rows: Any) -> pa.Array:
        return text_array(*gather(self.data, self.starts[role][rows], self.ends[role][rows]))


def _places(wanted: Mapping[str, str], names: list[str], asked: Mapping[str, str], where: str) -> dict[str, int]:
    check_names("column of a log", asked, ROLES, "columns=")
    found = {role: names.index(name) for role, name in wanted.items() if name in names}
    lost = [name for role, name in wanted.items() if role not in found and (role in NEEDED or role in asked)]
    lost += [role for role in NEEDED if role not in wanted]
    if lost or not ({"user", "session"} & set(found)):
        what = ", ".join(lost) or "user or session"
        raise DataError(
            f"{place(where, 1)}: expected a column {what}, found {len(names)} columns; name the columns with columns=, "
            "as in user=UID,time=TS,query=Q"
        )
    if len(set(found.values())) < len(found):
        raise ConfigError("columns=: one column is used for two fields of the log; give each field its own column")
    return found
