"""Read a log of any form, walk through it part by part, and keep what the tables need. Memory stays flat."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core import machine
from askew.core.errors import ConfigError, DataError, UnknownName
from askew.corpora.files import Meter, blocks, check_file, suffix_of
from askew.logs.delimited import DelimitedLog
from askew.logs.discovery import part_counts, phrase_users
from askew.logs.effect import CountMentions, add_sites, empty_sites, reduce_events
from askew.logs.events import Batch, Rejected
from askew.logs.hashing import new_key
from askew.logs.lines import whole_lines
from askew.logs.pairs import Walk, Walked, walk
from askew.logs.parquet import ParquetLog
from askew.logs.spill import Parts
from askew.logs.trecsession import TrecSessionLog
from askew.logs.tripclick import TripClickLog

FORMATS = ("aol", "tripclick", "trec-session", "tsv", "parquet")
Progress = Callable[[int, int], None]

_ENDINGS = {
    "aol": (".txt", ".tsv"), "tsv": (".tsv", ".txt"), "tripclick": (".json", ".jsonl"), "trec-session": (".xml",),
    "parquet": (".parquet",),
}  # fmt: skip
# How much larger packed text is when unpacked, at a guess: it only decides into how many parts the rows are put.
_UNPACKED = 6
_BLOCK = 1 << 24
_LONGEST_LINE = 1 << 26
_MOST_TOPICS = 1 << 20
_FILE = 1 << 40

Item = TypeVar("Item")
Result = TypeVar("Result")


class LogFile(Protocol):
    """A log of some form: blocks are read one after the other, and parsed by several threads."""

    @property
    def columns(self) -> frozenset[str]:
        """What the log has of each row."""

    def blocks(self) -> Iterator[Any]:
        """Pieces of the log."""

    def parse(self, block: Any) -> Batch:
        """The rows of a piece."""


@dataclass
class LogCounts:
    """What is left of a log: counts, the events without their pages, exposure per site, templates where asked for."""

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
    spilled: bool = False


def log_files(given: Iterable[Path], form: str) -> list[Path]:
    """The files named, and those of the right ending in the folders named."""
    if form not in FORMATS:
        raise UnknownName("format", form, FORMATS, "--format")
    found: list[Path] = []
    for path in given:
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.is_file() and suffix_of(p) in _ENDINGS[form])
            if not inside:
                raise DataError(f"log {path}: expected files ending in {' or '.join(_ENDINGS[form])}, found none")
            found += inside
        else:
            found.append(check_file(path, "log"))
    if not found:
        raise ConfigError("expected a log: a file or a folder of files")
    return found


def read_log(
    files: list[Path], form: str, how: Walk, *, columns: dict[str, str] | None = None,
    count: CountMentions | None = None, threads: int | None = None, folder: Path | None = None,
    progress: Progress | None = None,
) -> LogCounts:  # fmt: skip
    """Walk through all files as one log, in any order of rows."""
    key, meter = new_key(), Meter()
    size = sum(path.stat().st_size for path in files)
    workers = threads or machine.threads()
    kept = LogCounts()
    with ThreadPoolExecutor(workers) as pool, Parts(_expected(files, form, columns), folder) as parts:
        for number, path in enumerate(files):
            log = open_log(path, form, key, columns, meter)
            _same_columns(kept, log, path, files[0])
            work = _reader(log, parts, number, count is not None)
            for batch, split in in_order(pool, work, log.blocks(), workers + 1):
                kept.rejected.merge(batch.rejected)
                kept.counts["rows read"] += batch.rows
                parts.add(split)
                if progress:
                    progress(meter.done, size)
            meter.next_file()
        kept.spilled = parts.spilled
        if not kept.counts["rows read"]:
            raise DataError(f"log {files[0]}: expected rows of a log, found none")
        _walk_parts(pool, parts, how, kept, count, workers)
    if kept.rejected.total and not kept.counts["rows"]:
        raise _all_left_out(kept, files[0])
    return kept


def _all_left_out(kept: LogCounts, first: Path) -> DataError:
    reasons = sorted(kept.rejected.counts.items())
    told = ", ".join(f"{count:,} {reason}" for reason, count in reasons)
    examples = [one for reason, _ in reasons for one in kept.rejected.examples.get(reason, [])]
    example = f" (for example {examples[0]})" if examples else ""
    return DataError(
        f"log {first}: expected rows of a log, found none; left out: {told}{example}; look at --format and --columns"
    )


def _same_columns(kept: LogCounts, log: LogFile, path: Path, first: Path) -> None:
    if kept.columns and log.columns != kept.columns:
        odd = ", ".join(sorted(log.columns ^ kept.columns))
        raise DataError(f"log {path}: expected the columns that {first} has; one of the two lacks {odd}")
    kept.columns = log.columns


def _reader(log: LogFile, parts: Parts, number: int, texts: bool) -> Callable[[Any], tuple[Batch, Any]]:
    """Parses a block of a file, and puts its rows by parts."""
    wanted = _wanted(log.columns, texts)

    def work(block: Any) -> tuple[Batch, Any]:
        batch = log.parse(block)
        rows = batch.table.select([name for name in batch.table.column_names if name in wanted])
        # Lines of different files must not be taken for each other.
        lines = pc.add(rows["line"], number * _FILE)
        return batch, parts.split(rows.set_column(rows.column_names.index("line"), "line", lines))

    return work


def place_of(line: int, files: list[Path]) -> str:
    """Where a row stands, by the number that its line has among all files."""
    return f"{files[line // _FILE]}:{line % _FILE}"


def _expected(files: list[Path], form: str, columns: dict[str, str] | None) -> int:
    """About how many bytes of columns come."""
    if form == "parquet":
        return sum(ParquetLog(path, None, columns).expected_bytes for path in files)
    return sum(path.stat().st_size * (_UNPACKED if path.name.lower().endswith(".gz") else 1) for path in files)


def _wanted(columns: frozenset[str], texts: bool) -> frozenset[str]:
    """The columns that the walk needs: a clicked document tells nothing where no results are known."""
    left = set() if "results" in columns else {"click_doc"}
    left |= set() if texts else {"texts"}
    return (columns | {"user", "line", "click_rank"}) - left


def open_log(path: Path, form: str, key: Any, columns: dict[str, str] | None, meter: Meter | None = None) -> LogFile:
    """A log by its form."""
    where = str(path)
    if form == "parquet":
        return ParquetLog(path, key, columns)
    if form == "trec-session":
        return TrecSessionLog(blocks(path, _BLOCK, meter), key, where, columns)
    lines = whole_lines(blocks(path, _BLOCK, meter), _LONGEST_LINE, where)
    if form == "tripclick":
        return TripClickLog(lines, key, where, columns)
    return DelimitedLog(lines, key, where, columns, aol=form == "aol")


def in_order(
    pool: ThreadPoolExecutor, work: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Iterator[Result]:  # fmt: skip
    """The results in the order of the items, with only so many under way: what is read early would fill the memory."""
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
                f"log: expected topics in the column topic, found more than {_MOST_TOPICS:,} different ones; name "
                "another column with --columns topic=NAME, or leave them out with --topics none"
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
    """All events in the order of the log; users are numbered anew, so that nothing depends on the key of the run."""
    if not frames:
        return pl.DataFrame()
    events = pl.concat(frames).sort("line", maintain_order=True).drop("line")
    first = events.select("user").with_row_index("at").group_by("user").agg(pl.col("at").min()).sort("at")
    order = first.with_columns(number=pl.int_range(pl.len(), dtype=pl.Int64)).select("user", "number")
    return events.join(order, on="user", how="left", maintain_order="left").drop("user").rename({"number": "user"})
