"""The interface of a log format, which reads the files of one kind of query log as tables.

A format is one class, registered by an entry point in the group ``askew.log_format``::

    class PipeFormat:
        \"\"\"Lines of user|seconds|query.\"\"\"

        name, endings = "pipe", (".log",)

        def read(self, file, columns=None):
            rows = (line.decode().split("|") for _, block in file.lines() for line in block.splitlines())
            table = pa.table(dict(zip(("user", "time", "query"), map(list, zip(*rows)))))
            return LogRows(frozenset(table.column_names), [table])

``askew.testing.contracts.check_log_format`` checks a format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

# The columns that a row of a log can have, in their stored form: ids are hashed with a key of the run, a query is its
# terms, times are milliseconds. A format may return other types: texts or numbers for ids, texts, numbers or timestamps
# for times, a single value for a list.
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
    """Rows left out, by reason, with some of their places. It contains no text of a log, only the shape of a value."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, count: int = 1, examples: Iterable[str] = ()) -> None:
        """Count rows left out for one reason."""
        if count:
            self.counts[reason] += count
            kept = self.examples.setdefault(reason, [])
            kept += list(examples)[: _EXAMPLES - len(kept)]

    def merge(self, other: Rejected) -> None:
        """Add the rows left out of another part of the log."""
        for reason, count in other.counts.items():
            self.add(reason, count, other.examples.get(reason, ()))

    @property
    def total(self) -> int:
        """All rows left out."""
        return sum(self.counts.values())


@dataclass
class LogBatch:
    """Some rows of a log in their stored form: ``table`` has the columns of LOG_COLUMNS that the log has."""

    table: pa.Table
    rows: int
    rejected: Rejected = field(default_factory=Rejected)


class LogFile(Protocol):
    """A file of a log. Its bytes are decompressed, without a byte-order mark; progress is shown while they are read."""

    @property
    def path(self) -> Path:
        """The path of the file."""

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes in blocks."""

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield blocks of complete lines, each with the number of its first line."""


@dataclass(frozen=True)
class LogRows:
    """The rows of one file.

    ``columns`` are the columns of LOG_COLUMNS that the rows have: at least time, query, and user or session. ``blocks``
    are read one after the other. Each is a table with these columns, and ``line`` if rows are not simply numbered. A
    format that is slow to parse gives blocks of another type and ``parse(block, key)``, which is called in several
    threads. ``sessions_as_users``: a session may be used as a user if no user is named.
    """

    columns: frozenset[str]
    blocks: Iterable[Any]
    parse: Callable[[Any, Any], LogBatch] | None = None
    sessions_as_users: bool = False


@runtime_checkable
class LogFormat(Protocol):
    """One format of query logs: ``name`` is the value for format=, ``endings`` are those of its files in a folder.

    The first line of its docstring says what it reads. A format may have a method ``expected_bytes(path, columns)``: it
    estimates how much memory the rows of a file take, if the size of the file does not show it.
    """

    name: str
    endings: tuple[str, ...]

    def read(self, file: LogFile, columns: Mapping[str, str] | None = None) -> LogRows:
        """Return the rows of a file. ``columns`` maps columns of LOG_COLUMNS to their names in the file."""
