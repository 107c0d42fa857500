"""The result of ``logs``: tables by name, as data frames, as files, and for a notebook."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from askew.core.errors import ConfigError
from askew.core.files import write_whole
from askew.logs.association import Decision, review_text
from askew.report.table import Table, TableView, columns, table, text_table

# The setting that says where a made-up log comes from; a report of a real log does not have it.
SYNTHETIC = "synthetic"


@dataclass(repr=False)
class LogReport(TableView):
    """The analysis of a query log as tables.

    No table has user ids. A text is in a table only if at least ``min_users`` users typed it.
    """

    settings: dict[str, Any]
    counts: dict[str, int]
    rejected: dict[str, int]
    examples: dict[str, list[str]]
    groups: tuple[str, ...]
    tables: dict[str, pl.DataFrame]
    notes: list[str] = field(default_factory=list)
    decisions: list[Decision] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "settings": self.settings, "counts": self.counts, "rejected": self.rejected,
            "rejected_examples": self.examples, "notes": self.notes,
            "tables": {name: table.to_dicts() for name, table in self.tables.items()},
        }  # fmt: skip

    def to_pandas(self) -> dict[str, Any]:
        """The tables for pandas, which must be installed."""
        return {name: table.to_pandas() for name, table in self.tables.items()}

    def report(self, out: str | Path) -> Path:
        """Write a new folder: report.html, report.json, and each table as Parquet and CSV."""
        from askew.logs.page import write_tables

        write_tables(self, Path(out))
        return Path(out)

    def review(self, path: str | Path) -> Path:
        """Write keyphrases that may name a group, for a person to review; ``LogSettings(review=)`` reads the file."""
        if self.decisions is None:
            raise ConfigError(
                "review: the log was analyzed without collecting keyphrases; analyze it again with "
                "LogSettings(review=FILE)",
                code="no-keyphrases",
            )
        # The file is replaced whole, so that no earlier decision is lost.
        write_whole(Path(path), review_text(self.decisions))
        return Path(path)

    @property
    def lead(self) -> list[str]:
        """Two lines: what was read, and with which lexicon and topics."""
        c = self.counts
        return [
            f"{c['rows_read']:,} rows, {sum(self.rejected.values()):,} left out; {c['users']:,} users, "
            f"{c['sessions']:,} sessions, {c['searches']:,} searches",
            f"lexicon {self.settings['lexicon']}; topics: {self.settings['topics']}",
        ]

    def table(self) -> Table:
        """How many reformulations make a query more specific, how many add terms of a group, and of which group."""
        rows = [(row["what"].replace("_", " a "), row) for row in self.tables["frequency"].to_dicts()]
        if "groups" in self.tables:
            rows += [(row["group"], row) for row in self.tables["groups"].to_dicts() if row["share"] is not None]
        cells = [[name, str(row["hits"]), str(row["n"]), _percent(row)] for name, row in rows]
        head = columns("reformulations", "n", "of", "share [95%]")
        return table("reformulations", ". ".join(self.lead), head, cells, f"tables: {', '.join(self.tables)}")

    def __repr__(self) -> str:
        return "\n".join([*self.lead, text_table(self.table())])


def _percent(row: dict[str, Any]) -> str:
    if row["share"] is None:
        return "-"
    ends = "" if row["low"] is None else f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
    return f"{100 * row['share']:.1f}%{ends}"
