"""Read a log of any format part by part, and keep only what the tables need, so that memory use stays constant."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core import machine
from askew.core import plugins as registry
from askew.core.errors import ConfigError, DataError, check_name
from askew.core.files import check_file
from askew.core.machine import in_order
from askew.core.protocols import LogBatch, LogFormat, LogRows
from askew.data.files import Meter, blocks, line_blocks, reason, suffix_of
from askew.logs.effect import CountMentions, reduce_events
from askew.logs.pairs import LogCounts, Walk, walk
from askew.logs.tables import new_key, to_batch, wanted_columns

# The sources of a log's rows: files of a registered format, or a table in memory.

MEMORY = "in memory"
# The assumed expansion of compressed files. It only determines the number of parts.
_UNPACKED = 12
_BLOCK = 1 << 24
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
        return line_blocks(self.path, _BLOCK, self.meter)


def log_sources(log: object, name: str, columns: Mapping[str, str] | None = None) -> list[LogSource]:
    """The sources of a log: the given files, the files of the format in given folders, or a table in memory."""
    if isinstance(log, str | Path):
        log = [log]
    if not isinstance(log, Sequence) or any(not isinstance(item, str | Path) for item in log):
        table = _in_memory(log)
        roles = wanted_columns(table.column_names, columns, f"log {MEMORY}")
        named = pa.table({role: table[name] for role, name in roles.items()})
        slices = [named.slice(at, _ROWS) for at in range(0, named.num_rows, _ROWS)]
        return [LogSource(MEMORY, named.nbytes, named.nbytes, lambda _: LogRows(frozenset(roles), slices))]
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
    packed = path.name.lower().endswith((".gz", ".parquet"))
    expected = size * _UNPACKED if packed else size
    return LogSource(str(path), size, expected, lambda meter: form.read(SourceFile(path, meter), columns))


def _in_memory(log: Any) -> pa.Table:
    try:
        if isinstance(log, Mapping | Sequence):
            log = pl.DataFrame(log, infer_schema_length=None)
        elif isinstance(log, pl.LazyFrame):
            log = log.collect()
        table = log.to_arrow() if isinstance(log, pl.DataFrame) else pa.table(log)
    except (pa.ArrowException, pl.exceptions.PolarsError, ValueError, TypeError) as error:
        raise DataError(
            f"log {MEMORY}: expected a path, a data frame, an Arrow table or rows as dicts, found "
            f"{type(log).__name__} ({reason(error)})"
        ) from None
    if not table.num_rows:
        raise DataError(f"log {MEMORY}: expected at least one row, found none")
    return table


_PART_BYTES = 48 << 20
_MOST_PARTS = 512
_IN_MEMORY = 192 << 20
_MIX = np.uint64(0x9E3779B97F4A7C15)
_TOP = np.uint64(40)


class Parts:
    """Splits the rows of a log of any order and length by user into parts that fit in memory, in a ``with`` block.

    Small parts are in memory, larger ones in temporary files.
    """

    def __init__(self, expected_bytes: int, in_memory: int | None = None) -> None:
        self.count = min(_MOST_PARTS, max(1, -(-expected_bytes // _PART_BYTES)))
        room = _IN_MEMORY if in_memory is None else in_memory
        # A size of 0 would mean that nothing is written to a file.
        self._room = max(1, room // self.count)
        self._files: dict[int, tuple[Any, Any]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Parts:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def split(self, table: pa.Table) -> list[tuple[int, pa.Table]]:
        """Split a table into parts by user. Nothing is stored, so several threads can call this at once."""
        return _by_user(table, self.count) if table.num_rows else []

    def add(self, split: list[tuple[int, pa.Table]]) -> None:
        """Store the tables that ``split`` returned."""
        for number, table in split:
            if number not in self._files:
                spooled = tempfile.SpooledTemporaryFile(self._room)  # noqa: SIM115 - the stack closes it
                file = self._stack.enter_context(spooled)
                self._files[number] = file, pa.ipc.new_stream(file, table.schema)
            self._files[number][1].write_table(table)

    def numbers(self) -> list[int]:
        """The numbers of the parts that have rows."""
        for _, writer in self._files.values():
            writer.close()
        return sorted(self._files)

    def take(self, number: int) -> pa.Table:
        """All rows of a part. Each part can be taken once, because its memory is released."""
        file, _ = self._files[number]
        file.seek(0)
        rows = pa.ipc.open_stream(file).read_all()
        file.close()
        return rows.combine_chunks()


def _by_user(table: pa.Table, count: int) -> list[tuple[int, pa.Table]]:
    """Split a table into parts. All rows of a user are in the same part."""
    if count == 1:
        return [(0, table)]
    part = ((table["user"].combine_chunks().to_numpy() * _MIX >> _TOP) % np.uint64(count)).astype(np.uint16)
    order = np.argsort(part, kind="stable")
    numbers, starts = np.unique(part[order], return_index=True)
    rows = table.take(pa.array(order))
    bounds = [*starts.tolist(), len(order)]
    pieces = zip(numbers.tolist(), bounds[:-1], bounds[1:], strict=True)
    return [(number, rows.slice(begin, end - begin)) for number, begin, end in pieces]


Progress = Callable[[int, int], None]

_MOST_TOPICS = 1 << 20
_FILE = 1 << 40


def read_log(
    sources: list[LogSource], how: Walk, *, count: CountMentions | None = None, threads: int | None = None,
    progress: Progress | None = None,
) -> LogCounts:  # fmt: skip
    """Read all sources as one log. The rows may be in any order."""
    key, meter = new_key(), Meter()
    size = sum(source.size for source in sources)
    workers = threads or machine.threads()
    log = LogCounts()
    with ThreadPoolExecutor(workers) as pool, Parts(sum(source.expected for source in sources)) as parts:
        for number, source in enumerate(sources):
            rows = source.open(meter)
            if log.columns and rows.columns != log.columns:
                odd = ", ".join(sorted(rows.columns ^ log.columns))
                raise DataError(
                    f"log {source.where}: expected the same columns as in {sources[0].where}; only one of these two "
                    f"files has the columns {odd}",
                    code="other-columns",
                    columns=odd,
                )
            log.columns, log.sessions_as_users = rows.columns, rows.sessions_as_users
            work = _reader(rows, key, source.where, parts, number, count is not None)
            for batch, split in in_order(pool, work, numbered(rows), workers + 1):
                log.rejected.merge(batch.rejected)
                log.counts["rows read"] += batch.rows
                parts.add(split)
                if progress:
                    progress(meter.done, size)
            meter.next_file()
        if not log.counts["rows read"]:
            raise DataError(f"log {sources[0].where}: expected rows of a log, found none; check the file and ⟨format⟩")
        _walk_parts(pool, parts, how, log, count, workers)
    if log.rejected.total and not log.counts["rows"]:
        reasons = sorted(log.rejected.counts.items())
        reasons_listed = ", ".join(f"{count:,} {reason}" for reason, count in reasons)
        examples = [place for reason, _ in reasons for place in log.rejected.examples.get(reason, [])]
        example = f" (for example {examples[0]})" if examples else ""
        words = f"all rows were left out: {reasons_listed}{example}; check ⟨format⟩ and ⟨columns⟩"
        raise DataError(f"log {sources[0].where}: {words}", code="all-left-out", rejected=dict(reasons))
    return log


def numbered(rows: LogRows) -> Iterator[Any]:
    """The blocks of a source. A table without a column ``line`` gets one with row numbers."""
    if rows.parse is not None:
        yield from rows.blocks
        return
    first = 1
    for table in rows.blocks:
        lines = pa.array(range(first, first + table.num_rows), pa.int64())
        yield table if "line" in table.column_names else table.append_column("line", lines)
        first += table.num_rows


def parser(rows: LogRows, key: Any, where: str) -> Callable[[Any], LogBatch]:
    """Return the function that parses a block into a batch."""
    parse = rows.parse
    return (lambda table: to_batch(table, key, where)) if parse is None else (lambda block: parse(block, key))


def read_rows(source: LogSource) -> Iterator[LogBatch]:
    """All rows of a source as batches, one per block."""
    rows = source.open(None)
    return map(parser(rows, new_key(), source.where), numbered(rows))


def _reader(
    rows: LogRows, key: Any, where: str, parts: Parts, number: int, texts: bool
) -> Callable[[Any], tuple[LogBatch, Any]]:
    """Return the function that parses a block of a source and splits its rows into parts by user."""
    parse = parser(rows, key, where)
    # Clicked documents are of use only if the results are known.
    unused = {*(() if "results" in rows.columns else ("click_doc",)), *(() if texts else ("texts",))}
    columns = (rows.columns | {"user", "line", "click_rank"}) - unused

    def work(block: Any) -> tuple[LogBatch, Any]:
        batch = parse(block)
        table = batch.table.select([name for name in batch.table.column_names if name in columns])
        # Make line numbers unique across files.
        lines = pc.add(table["line"], number * _FILE)
        return batch, parts.split(table.set_column(table.column_names.index("line"), "line", lines))

    return work


def place_of(line: int, sources: list[LogSource]) -> str:
    """The file and line of a row, from its line number across all sources."""
    return f"{sources[line // _FILE].where}:{line % _FILE}"


def _walk_parts(
    pool: ThreadPoolExecutor, parts: Parts, how: Walk, log: LogCounts, count: CountMentions | None, workers: int
) -> None:
    def work(number: int) -> LogCounts:
        part = walk(pl.DataFrame(pl.from_arrow(parts.take(number))), how)
        part.events, part.sites = reduce_events(part.events, how.vocabulary.groups, count)
        return part

    for part in in_order(pool, work, parts.numbers(), workers):
        log.add(part)
        if len(log.topics) > _MOST_TOPICS:
            raise DataError(
                f"log: the column 'topic' has more than {_MOST_TOPICS:,} different values, which is too many for "
                "topics; name another column with ⟨columns⟩, or set ⟨topics=none⟩"
            )
    if log.events.width:
        # In the order of the log. Users are renumbered, so that the result does not depend on the secret key.
        events = log.events.sort("line").drop("line")
        users = events["user"].unique(maintain_order=True)
        numbers = pl.col("user").replace_strict(users, pl.int_range(len(users), eager=True))
        log.events = events.with_columns(user=numbers)
