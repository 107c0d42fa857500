"""The tables of a log as files: Parquet for programs, CSV for people, one page for readers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from askew.app.logs.page import report_page
from askew.app.logs.report import LogReport
from askew.core.whole_files import written_whole
from askew.logs.discovery import FORMULA, Decision, review_text
from askew.publish.files import new_folder, refuse_full, write

_FORMULA = "^([" + "".join(f"\\{sign}" if sign.isascii() else sign for sign in FORMULA) + "\\t\\r\\n])"


def check_out(out: Path | None) -> None:
    """Refuse a folder that has something in it before any work is done."""
    if out is not None:
        refuse_full(out)


def write_tables(report: LogReport, out: Path) -> None:
    """A new folder, whole or not at all: tables/NAME.parquet and .csv, report.json, report.html."""
    with new_folder(out) as folder:
        (folder / "tables").mkdir()
        for name, table in report.tables.items():
            table.write_parquet(folder / "tables" / f"{name}.parquet")
            # Quotes keep a text together where a program cuts at another sign, and what follows would be a formula.
            harmless = table.with_columns(pl.col(pl.String).str.replace(_FORMULA, "'$1"))
            harmless.write_csv(folder / "tables" / f"{name}.csv", quote_style="non_numeric")
        write(folder, "report.json", json.dumps(report.to_dict(), ensure_ascii=False, indent=1, allow_nan=False) + "\n")
        write(folder, "report.html", report_page(report))


def write_review(decisions: Sequence[Decision], path: Path) -> None:
    """The keyphrases for a person to decide on; written under another name first, so that no decision can be lost."""
    with written_whole(path) as temporary:
        temporary.write_text(review_text(decisions), encoding="utf-8")
