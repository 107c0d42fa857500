"""The sources of a log's rows: files of a registered format, or a table in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from askew.core import plugins as registry
from askew.core.errors import ConfigError, DataError, check_name, place
from askew.core.files import check_file
from askew.core.protocols import LogFormat, LogRows
from askew.data.files import Meter, blocks, suffix_of, whole_lines
from askew.logs.tables import wanted_columns

MEMORY = "in memory"
# Assumed expansion of compressed text. It only determines the number of parts.
_UNPACKED = 6
_BLOCK = 1 << 24
_LONGEST_LINE = 1 << 26
_ROWS = 1 << 15


@dataclass(frozen=True)
class LogSource:
    """A file or a table of a log: its size, the expected memory of its rows, and a function that opens it."""

    where: str
    size: int
    expected: int
    open: Callable[[Meter | None], LogRows]


@dataclass(frozen=True)
class SourceFile:
    """The file object that is passed to a format (see ``LogFile``)."""

    path: Path
    meter: Meter | None = None

    def blocks(self) -> Iterator[bytes]:
        """The decompressed bytes."""
        return blocks(self.path, _BLOCK, self.meter)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Blocks of whole lines, each with the number of its first line. A line that is too long raises an error."""

        def too_long(line: int) -> DataError:
            return DataError(
                f"{place(self.path, line)}: expected lines of at most {_LONGEST_LINE:,} bytes, found a longer one; "
                "check that the log has one line per row",
                code="long-line",
                line=line,
            )

        return whole_lines(self.blocks(), _LONGEST_LINE, too_long)


def log_sources(log: object, name: str, columns: Mapping[str, str] | None = None) -> list[LogSource]:
    """The sources of a log: the given files, the files of the format in given folders, or a table in memory."""
    if isinstance(log, str | Path):
        log = [log]
    if not isinstance(log, Sequence) or any(not isinstance(one, str | Path) for one in log):
        return [_table_source(_in_memory(log), columns)]
    check_name("format", name, registry.names("log_format"), "⟨format⟩")
    form: LogFormat = registry.build("log_format", name, {})
    files: list[Path] = []
    for path in map(Path, log):
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.is_file() and suffix_of(file) in form.endings)
            if not inside:
                raise DataError(f"log {path}: expected files ending in {' or '.join(form.endings)}, found none")
            files += inside
        else:
            files.append(check_file(path, "log"))
    if not files:
        raise ConfigError("expected a log (a file or a folder of files), found none")
    return [file_source(path, form, columns) for path in files]


def file_source(path: Path, form: LogFormat, columns: Mapping[str, str] | None = None) -> LogSource:
    """The source for one file of a format."""
    size = path.stat().st_size
    told = getattr(form, "expected_bytes", None)
    packed = _UNPACKED if path.name.lower().endswith(".gz") else 1
    expected = size * packed if told is None else told(path, columns)
    return LogSource(str(path), size, expected, lambda meter: form.read(SourceFile(path, meter), columns))


def _in_memory(log: Any) -> pa.Table:
    """An Arrow table from a data frame of any library, an Arrow table, a dict of columns or a list of dicts."""
    try:
        if isinstance(log, Mapping | Sequence):
            log = pl.DataFrame(log, infer_schema_length=None)
        elif isinstance(log, pl.LazyFrame):
            log = log.collect()
        table = log.to_arrow() if isinstance(log, pl.DataFrame) else pa.table(log)
    except (pa.ArrowException, pl.exceptions.PolarsError, ValueError, TypeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise DataError(
            f"log {MEMORY}: expected a path, a data frame, an Arrow table or rows as dicts, found "
            f"{type(log).__name__} ({reason})"
        ) from None
    if not table.num_rows:
        raise DataError(f"log {MEMORY}: expected at least one row, found none")
    return table


def _table_source(table: pa.Table, columns: Mapping[str, str] | None) -> LogSource:
    roles = wanted_columns(table.column_names, columns, f"log {MEMORY}")
    named = pa.table({role: table[name] for role, name in roles.items()})

    def rows(_: Meter | None) -> LogRows:
        return LogRows(frozenset(roles), [named.slice(at, _ROWS) for at in range(0, named.num_rows, _ROWS)])

    return LogSource(MEMORY, named.nbytes, named.nbytes, rows)
