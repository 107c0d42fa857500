"""Read a log of any format part by part, and keep only what the tables need, so that memory use stays constant."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.app.logs.sources import LogSource
from askew.core import machine
from askew.core.errors import DataError
from askew.corpora.files import Meter
from askew.logs.discovery import part_counts, phrase_users
from askew.logs.effect import CountMentions, add_sites, empty_sites, reduce_events
from askew.logs.hashing import new_key
from askew.logs.pairs import Walk, Walked, walk
from askew.logs.spill import Parts
from askew.logs.tables import to_batch
from askew.plugins.log_formats import LogBatch, LogRows, Rejected

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
            _same_columns(kept, rows, source.where, sources[0].where)
            work = _reader(rows, parser(rows, key, source.where), parts, number, count is not None)
            for batch, split in in_order(pool, work, numbered(rows), workers + 1):
                kept.rejected.merge(batch.rejected)
                kept.counts["rows read"] += batch.rows
                parts.add(split)
                if progress:
                    progress(meter.done, size)
            meter.next_file()
        kept.spilled = parts.spilled
        if not kept.counts["rows read"]:
            raise DataError(f"log {sources[0].where}: expected rows of a log, found none; check the file and format=")
        _walk_parts(pool, parts, how, kept, count, workers)
    if kept.rejected.total and not kept.counts["rows"]:
        raise _all_left_out(kept, sources[0].where)
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


def _all_left_out(kept: LogCounts, first: str) -> DataError:
    reasons = sorted(kept.rejected.counts.items())
    told = ", ".join(f"{count:,} {reason}" for reason, count in reasons)
    examples = [one for reason, _ in reasons for one in kept.rejected.examples.get(reason, [])]
    example = f" (for example {examples[0]})" if examples else ""
    return DataError(f"log {first}: all rows were left out: {told}{example}; check format= and columns=")


def _same_columns(kept: LogCounts, rows: LogRows, where: str, first: str) -> None:
    if kept.columns and rows.columns != kept.columns:
        odd = ", ".join(sorted(rows.columns ^ kept.columns))
        raise DataError(
            f"log {where}: expected the same columns as in {first}; only one of these two files has the columns {odd}"
        )
    kept.columns, kept.sessions_as_users = rows.columns, rows.sessions_as_users


def _reader(
    rows: LogRows, parse: Callable[[Any], LogBatch], parts: Parts, number: int, texts: bool
) -> Callable[[Any], tuple[LogBatch, Any]]:
    """Return the function that parses a block of a source and splits its rows into parts by user."""
    wanted = _wanted(rows.columns, texts)

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


def _wanted(columns: frozenset[str], texts: bool) -> frozenset[str]:
    """The columns that the analysis needs. Clicked documents are of use only if the results are known."""
    left = set() if "results" in columns else {"click_doc"}
    left |= set() if texts else {"texts"}
    return (columns | {"user", "line", "click_rank"}) - left


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
        events = walked.events if walked.events is not None else pa.table({})
        return walked, *reduce_events(events, how.vocabulary.groups, count)

    frames = []
    for walked, events, sites in in_order(pool, work, parts.numbers(), workers):
        kept.counts.update(walked.counts)
        kept.topics.update(walked.topics)
        kept.topic_users.update(walked.topic_users)
        if len(kept.topics) > _MOST_TOPICS:
            raise DataError(
                f"log: the column 'topic' has more than {_MOST_TOPICS:,} different values, which is too many for "
                "topics; name another column with columns=, or set topics='none'"
            )
        kept.late = sorted([*kept.late, *walked.late])[:3]
        kept.sites = add_sites(kept.sites, sites)
        frames.append(events)
        if walked.templates is not None:
            rows = pl.DataFrame(pl.from_arrow(walked.templates))
            kept.templates.append(part_counts(rows))
            kept.phrases.append(phrase_users(rows))
    kept.events = _together(frames)


def _together(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """All events in the order of the log. Users are renumbered so that the result does not depend on the secret key."""
    if not frames:
        return pl.DataFrame()
    events = pl.concat(frames).sort("line", maintain_order=True).drop("line")
    first = events.select("user").with_row_index("at").group_by("user").agg(pl.col("at").min()).sort("at")
    order = first.with_columns(number=pl.int_range(pl.len(), dtype=pl.Int64)).select("user", "number")
    return events.join(order, on="user", how="left", maintain_order="left").drop("user").rename({"number": "user"})
