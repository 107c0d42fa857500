"""Rows of a log by user, in parts small enough for memory, whatever the order of the log and however long it is.

A part holds all rows of its users. A log that fits stays in memory; a longer one is put by in a folder that is removed
afterwards, as columns with hashed ids.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

from askew.logs.walk import group_rows

_PART_BYTES = 48 << 20
_MOST_PARTS = 512
_IN_MEMORY = 192 << 20
_MIX = np.uint64(0x9E3779B97F4A7C15)
_TOP = np.uint64(40)


class Parts:
    """Takes tables in any order, gives them back part by part. Use it in a ``with`` block."""

    def __init__(self, expected_bytes: int, folder: Path | None = None, in_memory: int | None = None) -> None:
        self.count = min(_MOST_PARTS, max(1, -(-expected_bytes // _PART_BYTES)))
        self.spilled = False
        self._wanted, self._held = folder, 0
        self._in_memory = _IN_MEMORY if in_memory is None else in_memory
        self._tables: list[list[pa.Table]] = [[] for _ in range(self.count)]
        self._writers: list[Any] = []
        self._stack = ExitStack()
        self._folder = Path()

    def __enter__(self) -> Parts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:  # fmt: skip
        self._stack.close()

    def split(self, table: pa.Table) -> list[tuple[int, pa.Table]]:
        """The table by parts. Nothing is kept: several threads may do this at once."""
        if self.count == 1 or not table.num_rows:
            return [(0, table)] if table.num_rows else []
        part = (table["user"].combine_chunks().to_numpy() * _MIX >> _TOP) % np.uint64(self.count)
        order, starts = group_rows(part)
        sorted_rows = table.take(pa.array(order))
        bounds = starts.tolist()
        numbers = part[order[starts[:-1]]].tolist()
        return [
            (int(number), sorted_rows.slice(a, b - a))
            for number, a, b in zip(numbers, bounds[:-1], bounds[1:], strict=True)
        ]

    def add(self, split: list[tuple[int, pa.Table]]) -> None:
        """Keep what ``split`` gave."""
        for number, table in split:
            if self.spilled:
                self._write(number, table)
            else:
                self._tables[number].append(table)
                self._held += table.nbytes
        if not self.spilled and self._held > self._in_memory:
            self._spill()

    def _spill(self) -> None:
        self.spilled = True
        wanted = None if self._wanted is None else str(self._wanted)
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="askew-logs-", dir=wanted)))
        self._writers = [None] * self.count
        for number, tables in enumerate(self._tables):
            for table in tables:
                self._write(number, table)
        self._tables = []

    def _write(self, number: int, table: pa.Table) -> None:
        if self._writers[number] is None:
            sink = self._stack.enter_context(pa.OSFile(str(self._folder / f"{number}.arrow"), "wb"))
            self._writers[number] = self._stack.enter_context(pa.ipc.new_stream(sink, table.schema))
        self._writers[number].write_table(table)

    def numbers(self) -> Iterator[int]:
        """The parts that have rows."""
        for writer in filter(None, self._writers):
            writer.close()
        filled = self._writers if self.spilled else self._tables
        yield from (number for number, some in enumerate(filled) if some)

    def take(self, number: int) -> pa.Table:
        """All rows of a part, once: what was in memory is let go."""
        if self.spilled:
            with pa.OSFile(str(self._folder / f"{number}.arrow")) as source:
                return pa.ipc.open_stream(source).read_all().combine_chunks()
        tables, self._tables[number] = self._tables[number], []
        return pa.concat_tables(tables).combine_chunks()
