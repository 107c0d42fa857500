"""Split the rows of a log by user into parts that fit in memory, for a log of any order and length.

A part has all rows of its users. A log that fits stays in memory. A larger log is written to a temporary folder, as
columns with hashed ids.
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
_TOO_LARGE = 4
_MIX = np.uint64(0x9E3779B97F4A7C15)
# Parts that are too large are split again with another multiplier, because the first one put their users together.
_MIX_AGAIN = np.uint64(0xC2B2AE3D27D4EB4F)
_TOP = np.uint64(40)


class Parts:
    """Collects tables in any order and returns them part by part. Use it in a ``with`` block."""

    def __init__(self, expected_bytes: int, folder: Path | None = None, in_memory: int | None = None) -> None:
        self.count = min(_MOST_PARTS, max(1, -(-expected_bytes // _PART_BYTES)))
        self.spilled = False
        self._wanted, self._held, self._next = folder, 0, self.count
        self._in_memory = _IN_MEMORY if in_memory is None else in_memory
        self._tables: list[list[pa.Table]] = [[] for _ in range(self.count)]
        self._files: dict[int, tuple[Any, Any]] = {}
        self._stack = ExitStack()
        self._folder = Path()

    def __enter__(self) -> Parts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def split(self, table: pa.Table) -> list[tuple[int, pa.Table]]:
        """Split a table into parts by user. Nothing is stored, so several threads can call this at once."""
        return _by_user(table, self.count, _MIX) if table.num_rows else []

    def add(self, split: list[tuple[int, pa.Table]]) -> None:
        """Store the tables that ``split`` returned."""
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
        for number, tables in enumerate(self._tables):
            for table in tables:
                self._write(number, table)
        self._tables = []

    def _write(self, number: int, table: pa.Table) -> None:
        if number not in self._files:
            sink = pa.OSFile(str(self._path(number)), "wb")
            self._stack.callback(sink.close)
            self._files[number] = sink, pa.ipc.new_stream(sink, table.schema)
        self._files[number][1].write_table(table)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.arrow"

    def _written(self) -> list[int]:
        """Close all open files, and return the numbers of their parts."""
        written = sorted(self._files)
        for sink, writer in self._files.values():
            writer.close()
            sink.close()
        self._files = {}
        return written

    def numbers(self) -> Iterator[int]:
        """The numbers of the parts that have rows."""
        if self.spilled:
            for number in self._written():
                yield from self._cut(number)
        else:
            yield from (number for number, some in enumerate(self._tables) if some)

    def _cut(self, number: int) -> list[int]:
        """Split a part that is far larger than expected, as for a compressed log, and return the new part numbers."""
        size = self._path(number).stat().st_size
        if size <= _TOO_LARGE * _PART_BYTES:
            return [number]
        first, count = self._next, min(_MOST_PARTS, -(-size // _PART_BYTES))
        self._next += count
        with pa.OSFile(str(self._path(number))) as source, pa.ipc.open_stream(source) as stream:
            for batch in stream:
                for place, table in _by_user(pa.Table.from_batches([batch]), count, _MIX_AGAIN):
                    self._write(first + place, table)
        self._path(number).unlink()
        return self._written()

    def take(self, number: int) -> pa.Table:
        """All rows of a part. Each part can be taken once, because its memory is released."""
        if self.spilled:
            with pa.OSFile(str(self._path(number))) as source:
                return pa.ipc.open_stream(source).read_all().combine_chunks()
        tables, self._tables[number] = self._tables[number], []
        return pa.concat_tables(tables).combine_chunks()


def _by_user(table: pa.Table, count: int, mix: Any) -> list[tuple[int, pa.Table]]:
    """Split a table into parts. All rows of a user are in the same part."""
    if count == 1:
        return [(0, table)]
    part = (table["user"].combine_chunks().to_numpy() * mix >> _TOP) % np.uint64(count)
    order, starts = group_rows(part)
    sorted_rows = table.take(pa.array(order))
    bounds = starts.tolist()
    numbers = part[order[starts[:-1]]].tolist()
    return [
        (int(number), sorted_rows.slice(a, b - a))
        for number, a, b in zip(numbers, bounds[:-1], bounds[1:], strict=True)
    ]
