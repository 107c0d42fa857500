"""Logs in Parquet: columns of any name, given by ``columns``; clicks, results and texts may be lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from askew.core.errors import DataError
from askew.logs.tables import to_batch, wanted_columns
from askew.plugins.log_formats import LogBatch, LogFile, LogRows

# Rows with lists of results are large: a few of them fill a block.
_ROWS = 1 << 15
_SAMPLE = 2000


class ParquetFormat:
    """Parquet: columns of any name; clicks, results and texts may be lists."""

    name, endings = "parquet", (".parquet",)

    def read(self, file: LogFile, columns: Mapping[str, str] | None = None) -> LogRows:
        """The rows of a file."""
        log = ParquetLog(file.path, columns)
        return LogRows(frozenset(log.roles), log.blocks(), log.parse)

    def expected_bytes(self, path: Path, columns: Mapping[str, str] | None = None) -> int:
        """The approximate size of the decompressed columns in bytes."""
        return ParquetLog(path, columns).expected_bytes


class ParquetLog:
    """Reader of a Parquet log in blocks of rows."""

    def __init__(self, path: Path, columns: Mapping[str, str] | None = None) -> None:
        self.where = str(path)
        with _readable(f"log {path}: not a complete Parquet file"):
            self._file = pq.ParquetFile(path)
            names = list(self._file.schema_arrow.names)
        self.roles = wanted_columns(names, columns, self.where)

    @property
    def expected_bytes(self) -> int:
        """The approximate size of the decompressed columns in bytes, extrapolated from the first rows."""
        names = sorted(set(self.roles.values()))
        with _readable(f"log {self.where}: its first rows are damaged"):
            first = next(self._file.iter_batches(_SAMPLE, columns=names), None)
        return (
            0 if first is None or not first.num_rows else first.nbytes * self._file.metadata.num_rows // first.num_rows
        )

    def blocks(self) -> Iterator[tuple[int, pa.Table]]:
        """Blocks of rows, each with the number of its first row."""
        first = 1
        names = sorted(set(self.roles.values()))
        batches = self._file.iter_batches(_ROWS, columns=names)
        while True:
            with _readable(f"log {self.where}: there is damage at row {first} or later"):
                batch = next(batches, None)
            if batch is None:
                return
            yield first, pa.Table.from_batches([batch])
            first += batch.num_rows

    def parse(self, block: tuple[int, pa.Table], key: Any) -> LogBatch:
        """The rows of a block as events."""
        first, table = block
        # A damaged page may give a table that does not match its schema.
        with _readable(f"log {self.where}: there is damage in the rows {first} to {first + table.num_rows - 1}"):
            named = {role: table[name] for role, name in self.roles.items()}
            named["line"] = pa.array(np.arange(first, first + table.num_rows))
            return to_batch(pa.table(named), key, self.where)


@contextmanager
def _readable(otherwise: str) -> Iterator[None]:
    """Turn Arrow's exceptions for a damaged file into a DataError of one line."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: a damaged name
        first = next(iter(str(error).splitlines()), "no reason given")
        raise DataError(f"{otherwise} ({first}); fetch or write it again") from None
