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

from askew.core.errors import ConfigError, place
from askew.core.protocols import LogBatch, LogFile, LogRows, Rejected
from askew.logs.tables import NOT_UTF8, NUL, decoded, to_batch, wanted_columns

AOL_NAMES = ("AnonID", "Query", "QueryTime", "ItemRank", "ClickURL")
AOL_ROLES = {"user": "AnonID", "query": "Query", "time": "QueryTime", "click_rank": "ItemRank", "click_doc": "ClickURL"}
ROLES = ("user", "session", "time", "query", "entry", "click_rank", "click_doc", "results", "topic")

WRONG_WIDTH = "wrong number of columns"
_LINE_FEED = 10
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
        self._header = self._first[1].split(b"\n", 1)[0].rstrip(b"\r")
        names = [name.strip() for name in self._header.decode("utf-8", "replace").split("\t")]
        if aol:
            # Some copies of the collection have no header line. The columns are known without it.
            if names[:1] != [AOL_NAMES[0]]:
                names, self._header = list(AOL_NAMES), b""
            columns = {role: name for role, name in AOL_ROLES.items() if name in names} | dict(columns or {})
        columns_by_role = wanted_columns(names, columns, place(where, 1), ROLES)
        if len(set(columns_by_role.values())) < len(columns_by_role):
            raise ConfigError("⟨columns⟩: one column is used for two fields of the log; give each field its own column")
        self._width, self.time_name = len(names), columns_by_role["time"]
        self.roles = {role: names.index(name) for role, name in columns_by_role.items()}

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
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _LINE_FEED)
        if len(ends) <= self._most_lines:
            yield first, block
            return
        begin = 0
        for end in [*(ends[self._most_lines - 1 :: self._most_lines] + 1).tolist(), len(block)]:
            if end > begin:
                yield first, block[begin:end]
                first, begin = first + self._most_lines, end

    def parse(self, block: tuple[int, bytes], key: Any) -> LogBatch:
        """Parse a block of lines into rows. ``key`` is the secret key for hashing ids."""
        first, text = block
        ended = text if text.endswith(b"\n") else text + b"\n"
        offsets = np.concatenate([[0], np.flatnonzero(np.frombuffer(ended, np.uint8) == _LINE_FEED) + 1])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(ended)]
        raw = pl.Series(pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers))
        lines = decoded(raw).str.head(-1)
        if b"\r" in text:
            lines = lines.str.strip_suffix("\r")
        rows = pl.DataFrame({"raw": raw, "text": lines, "line": np.arange(first, first + len(raw))})
        rejected = Rejected()

        def drop(rows: pl.DataFrame, reason: str, bad: pl.Expr) -> pl.DataFrame:
            mask = rows.select(bad).to_series()
            if not mask.any():
                return rows
            places = rows["line"].filter(mask)
            rejected.add(reason, len(places), (place(self.where, line) for line in places[:3]))
            return rows.filter(~mask)

        if b"\0" in text:
            rows = drop(rows, NUL, pl.col("raw").bin.contains(b"\0"))
        rows = drop(rows, NOT_UTF8, pl.col("text").is_null())
        rows = rows.with_columns(columns=1 + pl.col("text").str.count_matches("\t", literal=True))
        # A blank line has no data, so it is not counted as a row.
        blank = rows.filter(pl.col("columns") == 1).filter(pl.col("text").str.contains(r"^[\x00-\x20]*$"))
        if blank.height:
            rows = rows.join(blank, on="line", how="anti", maintain_order="left")
        rows = drop(rows, WRONG_WIDTH, ~pl.col("columns").is_between(3 if self._aol else self._width, self._width))
        parts = rows.select("line", parts=pl.col("text").str.split_exact("\t", self._width - 1))
        fields = parts.select(
            "line", *(pl.col("parts").struct[at].fill_null("").alias(role) for role, at in self.roles.items())
        )
        # Concatenated files have header lines in the middle, with the column name in place of the time.
        fields = drop(fields, _HEADER_REPEATED, pl.col("time") == self.time_name)
        if "results" in self.roles:
            fields = fields.with_columns(pl.col("results").str.extract_all(r"\S+"))
        batch = to_batch(fields.to_arrow(compat_level=pl.CompatLevel.oldest()), key, self.where, "line")
        rejected.merge(batch.rejected)
        return LogBatch(batch.table, len(raw) - blank.height, rejected)
