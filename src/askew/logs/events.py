"""The rows of a log, whatever its form: one table of columns, and a count of what could not be read, by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

# What the columns of a row can be. Ids are numbers under a key of the run; a query is its terms (see ``definition``).
COLUMNS: dict[str, pa.DataType] = {
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

# How a query came to be asked. A row may also say nothing about it (0).
ENTRIES = ("", "edited", "recommended", "other")
_ENTRY_WORDS = {
    "edited": 1, "edit": 1, "typed": 1, "reformulated": 1, "recommended": 2, "recommendation": 2, "suggested": 2,
    "suggestion": 2, "related": 2, "": 0, "-": 0, "none": 0, "null": 0,
}  # fmt: skip

_EXAMPLES = 3
_SHOWN = 40


def entry_code(text: str) -> int:
    """The number of an entry point; a word that is not known is ``other``."""
    return _ENTRY_WORDS.get(text.strip().lower(), 3)


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
class Batch:
    """Some rows of a log: ``table`` has those columns of COLUMNS that the log has."""

    table: pa.Table
    rows: int
    rejected: Rejected = field(default_factory=Rejected)


def shape(text: str) -> str:
    """A value by its shape alone: letters are a, digits 9, anything not ASCII ?; that tells what is wrong, not who."""
    cut = text[:_SHOWN]
    drawn = "".join(
        "9" if c.isdigit() else "a" if c.isascii() and c.isalpha() else c if " " <= c <= "~" else "?" for c in cut
    )
    return repr(drawn) + ("..." if len(text) > _SHOWN else "")
