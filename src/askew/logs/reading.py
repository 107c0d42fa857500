"""Read a log of any format part by part, and keep only what the tables need, so that memory use stays constant."""

from __future__ import annotations

import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core import machine
from askew.core.errors import DataError
from askew.core.protocols import LogBatch, LogRows, Rejected
from askew.data.files import Meter
from askew.logs.association import part_counts, phrase_users
from askew.logs.effect import CountMentions, add_sites, empty_sites, reduce_events
from askew.logs.pairs import Walk, Walked, group_rows, walk
from askew.logs.sources import LogSource
from askew.logs.tables import new_key, to_batch

_PART_BYTES = 48 << 20
_MOST_PARTS = 512
_IN_MEMORY = 192 << 20
_TOO_LARGE = 4
_MIX = np.uint64(0x9E3779B97F4A7C15)
# Parts that are too large are split again with another multiplier, because the first one put their users together.
_MIX_AGAIN = np.uint64(0xC2B2AE3D27D4EB4F)
_TOP = np.uint64(40)


class Parts:
    """Splits the rows of a log of any order and length by user into parts that fit in memory, in a ``with`` block."""

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

    def __exit__(self, *_: object) -> None:
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
        if self.spilled or self._held <= self._in_memory:
            return
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


Progress = Callable[[int, int], None]

_MOST_TOPICS = 1 << 20
_FILE = 1 << 40

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass
class LogCounts:
    """What is kept of a log: counts, events without their result pages, exposure per site, and requested templates."""

    counts: Counter[str] = field(default_factory=Counter)
    topics: Counter[str] = field(default_factory=Counter)
    topic_users: Counter[str] = field(default_factory=Counter)
    events: pl.DataFrame = field(default_factory=pl.DataFrame)
    sites: pl.DataFrame = field(default_factory=empty_sites)
    templates: list[pl.DataFrame] = field(default_factory=list)
    phrases: list[pl.DataFrame] = field(default_factory=list)
    rejected: Rejected = field(default_factory=Rejected)
    late: list[int] = field(default_factory=list)
    columns: frozenset[str] = frozenset()
    sessions_as_users: bool = False
    spilled: bool = False


def read_log(
    sources: list[LogSource], how: Walk, *, count: CountMentions | None = None, threads: int | None = None,
    folder: Path | None = None, progress: Progress | None = None,
) -> LogCounts:  # fmt: skip
    """Read all sources as one log. The rows may be in any order."""
    key, meter = new_key(), Meter()
    size = sum(source.size for source in sources)
    workers = threads or machine.threads()
    kept = LogCounts()
    with ThreadPoolExecutor(workers) as pool, Parts(sum(source.expected for source in sources), folder) as parts:
        for number, source in enumerate(sources):
            rows = source.open(meter)
            if kept.columns and rows.columns != kept.columns:
                odd = ", ".join(sorted(rows.columns ^ kept.columns))
                raise DataError(
                    f"log {source.where}: expected the same columns as in {sources[0].where}; only one of these two "
                    f"files has the columns {odd}",
                    code="other-columns",
                    columns=odd,
                )
            kept.columns, kept.sessions_as_users = rows.columns, rows.sessions_as_users
            work = _reader(rows, key, source.where, parts, number, count is not None)
            for batch, split in in_order(pool, work, numbered(rows), workers + 1):
                kept.rejected.merge(batch.rejected)
                kept.counts["rows read"] += batch.rows
                parts.add(split)
                if progress:
                    progress(meter.done, size)
            meter.next_file()
        kept.spilled = parts.spilled
        if not kept.counts["rows read"]:
            raise DataError(f"log {sources[0].where}: expected rows of a log, found none; check the file and ⟨format⟩")
        _walk_parts(pool, parts, how, kept, count, workers)
    if kept.rejected.total and not kept.counts["rows"]:
        reasons = sorted(kept.rejected.counts.items())
        told = ", ".join(f"{count:,} {reason}" for reason, count in reasons)
        examples = [one for reason, _ in reasons for one in kept.rejected.examples.get(reason, [])]
        example = f" (for example {examples[0]})" if examples else ""
        words = f"all rows were left out: {told}{example}; check ⟨format⟩ and ⟨columns⟩"
        raise DataError(f"log {sources[0].where}: {words}", code="all-left-out", rejected=dict(reasons))
    return kept


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
    wanted = (rows.columns | {"user", "line", "click_rank"}) - unused

    def work(block: Any) -> tuple[LogBatch, Any]:
        batch = parse(block)
        table = batch.table.select([name for name in batch.table.column_names if name in wanted])
        # Make line numbers unique across files.
        lines = pc.add(table["line"], number * _FILE)
        return batch, parts.split(table.set_column(table.column_names.index("line"), "line", lines))

    return work


def place_of(line: int, sources: list[LogSource]) -> str:
    """The file and line of a row, from its line number across all sources."""
    return f"{sources[line // _FILE].where}:{line % _FILE}"


def in_order(
    pool: ThreadPoolExecutor, work: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Iterator[Result]:  # fmt: skip
    """Yield the results in the order of the items, with at most ``ahead`` tasks in progress to bound memory use."""
    waiting: deque[Future[Result]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _walk_parts(
    pool: ThreadPoolExecutor, parts: Parts, how: Walk, kept: LogCounts, count: CountMentions | None, workers: int
) -> None:  # fmt: skip
    table = how.table

    def work(number: int) -> tuple[Walked, pl.DataFrame, pl.DataFrame]:
        walked = walk(parts.take(number), how, table)
        return walked, *reduce_events(walked.events, how.vocabulary.groups, count)

    frames = []
    for walked, events, sites in in_order(pool, work, parts.numbers(), workers):
        kept.counts.update(walked.counts)
        kept.topics.update(walked.topics)
        kept.topic_users.update(walked.topic_users)
        if len(kept.topics) > _MOST_TOPICS:
            raise DataError(
                f"log: the column 'topic' has more than {_MOST_TOPICS:,} different values, which is too many for "
                "topics; name another column with ⟨columns⟩, or set ⟨topics=none⟩"
            )
        kept.late = sorted([*kept.late, *walked.late])[:3]
        kept.sites = add_sites(kept.sites, sites)
        frames.append(events)
        if walked.templates is not None:
            rows = pl.DataFrame(pl.from_arrow(walked.templates))
            kept.templates.append(part_counts(rows))
            kept.phrases.append(phrase_users(rows))
    if not frames:
        return
    # In the order of the log. Users are renumbered, so that the result does not depend on the secret key.
    events = pl.concat(frames).sort("line", maintain_order=True).drop("line")
    first = events.select("user").with_row_index("at").group_by("user").agg(pl.col("at").min()).sort("at")
    order = first.with_columns(number=pl.int_range(pl.len(), dtype=pl.Int64)).select("user", "number")
    kept.events = (
        events.join(order, on="user", how="left", maintain_order="left").drop("user").rename({"number": "user"})
    )
