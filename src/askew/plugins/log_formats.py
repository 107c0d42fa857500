"""The shape of a log format: how the files of one form of query log become tables.

A format is one class, announced by an entry point in the group ``askew.log_format``::

    class PipeFormat:
        \"\"\"Lines of user|seconds|query.\"\"\"

        name, endings = "pipe", (".log",)

        def read(self, file, columns=None):
            rows = (line.decode().split("|") for _, block in file.lines() for line in block.splitlines())
            table = pa.table(dict(zip(("user", "time", "query"), map(list, zip(*rows)))))
            return LogRows(frozenset(table.column_names), [table])

``askew.testing.contracts.check_log_format`` checks one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

# What a row of a log can have, as it is kept: ids are numbers under a key of the run, a query is its terms, times are
# milliseconds. A format may give other types: texts or numbers for ids, texts, numbers or timestamps for times, a
# single value for a list.
LOG_COLUMNS: dict[str, pa.DataType] = {
    "user": pa.uint64(),
    "session": pa.uint64(),
    "time": pa.int64(),
    "query": pa.string(),
    "entry": pa.uint8(),
    "click_rank": pa.list_(pa.int32()),
    "click_doc": pa.list_(pa.string()),
    "results": pa.list_(pa.string()),
    "texts": pa.list_(pa.string()),
    "topic": pa.string(),
    "line": pa.int64(),
}
_EXAMPLES = 3


@dataclass
class Rejected:
    """Rows left out, by reason, with the places of a few. No text of a log is in it, only the shape of a value."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, count: int = 1, examples: Iterable[str] = ()) -> None:
        """Count rows left out for one reason."""
        if count:
            self.counts[reason] += count
            kept = self.examples.setdefault(reason, [])
            kept += list(examples)[: _EXAMPLES - len(kept)]

    def merge(self, other: Rejected) -> None:
        """Add what another part of the log has left out."""
        for reason, count in other.counts.items():
            self.add(reason, count, other.examples.get(reason, ()))

    @property
    def total(self) -> int:
        """All rows left out."""
        return sum(self.counts.values())


@dataclass
class LogBatch:
    """Some rows of a log as they are kept: ``table`` has those of LOG_COLUMNS that the log has."""

    table: pa.Table
    rows: int
    rejected: Rejected = field(default_factory=Rejected)


class LogFile(Protocol):
    """A file of a log. Its bytes come unpacked, without a byte-order mark, and progress is shown as they are read."""

    @property
    def path(self) -> Path:
        """Where it is."""

    def blocks(self) -> Iterator[bytes]:
        """The bytes, many at a time."""

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Whole lines, many at a time, each block with the number of its first line."""


@dataclass(frozen=True)
class LogRows:
    """The rows of one file.

    ``columns`` are those of LOG_COLUMNS that the rows have: time, query, and user or session at least. ``blocks`` are
    read one after the other. Each is a table with these columns, and ``line`` where rows are not simply numbered.
    A format that is slow to parse gives blocks of another kind and ``parse(block, key)``, which is called in several
    threads. ``sessions_as_users`` says that a session may stand for a user who is not named.
    """

    columns: frozenset[str]
    blocks: Iterable[Any]
    parse: Callable[[Any, Any], LogBatch] | None = None
    sessions_as_users: bool = False


@runtime_checkable
class LogFormat(Protocol):
    """One form of query log: ``name`` is what format= says, ``endings`` are those of its files in a folder.

    The first line of its description says what it reads. A format may have a method ``expected_bytes(path, columns)``:
    about how much memory the rows of a file take, where the size of the file does not tell.
    """

    name: str
    endings: tuple[str, ...]

    def read(self, file: LogFile, columns: Mapping[str, str] | None = None) -> LogRows:
        """The rows of a file. ``columns`` names the column of each part where it is called otherwise."""
