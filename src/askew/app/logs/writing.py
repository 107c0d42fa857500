"""Write the tables of a log report as Parquet, CSV and one HTML page, and read a report folder back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from askew.app.logs.page import report_page
from askew.app.logs.report import LogReport
from askew.core.errors import DataError
from askew.core.whole_files import written_whole
from askew.logs.discovery import FORMULA, Decision, review_text
from askew.publish.files import new_folder, refuse_full, write

_NOT_GROUPS = ("all", "several")
_FORMULA = "^([" + "".join(f"\\{sign}" if sign.isascii() else sign for sign in FORMULA) + "\\t\\r\\n])"


def check_out(out: Path | None) -> None:
    """Raise an error if the output folder is not empty, before any work is done."""
    if out is not None:
        refuse_full(out)


def write_tables(report: LogReport, out: Path) -> None:
    """Write a new folder atomically: tables/NAME.parquet and .csv, report.json, report.html."""
    with new_folder(out) as folder:
        (folder / "tables").mkdir()
        for name, table in report.tables.items():
            table.write_parquet(folder / "tables" / f"{name}.parquet")
            # Quote texts: a program that splits at another separator could read the second part as a formula.
            harmless = table.with_columns(pl.col(pl.String).str.replace(_FORMULA, "'$1"))
            harmless.write_csv(folder / "tables" / f"{name}.csv", quote_style="non_numeric")
        write(folder, "report.json", json.dumps(report.to_dict(), ensure_ascii=False, indent=1, allow_nan=False) + "\n")
        write(folder, "report.html", report_page(report))


def write_review(decisions: Sequence[Decision], path: Path) -> None:
    """Write the keyphrases for review. The file is replaced atomically, so that no earlier decision is lost."""
    with written_whole(path) as temporary:
        temporary.write_text(review_text(decisions), encoding="utf-8")


def read_log_report(folder: Path) -> LogReport:
    """Read the report of a result folder from its tables and report.json; report.html is not read."""
    try:
        facts = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        tables = {path.stem: pl.read_parquet(path) for path in sorted((folder / "tables").glob("*.parquet"))}
        return _report(facts, tables)
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        first = str(error).partition("\n")[0][:200] or type(error).__name__
        raise DataError(
            f"logs {folder}: expected a folder with report.json and tables/, as 'askew logs --out' writes it; the "
            f"folder could not be read: {first}"
        ) from None


def _report(facts: dict[str, Any], tables: dict[str, pl.DataFrame]) -> LogReport:
    groups: tuple[str, ...] = ()
    if "groups" in tables:
        groups = tuple(name for name in tables["groups"]["group"].to_list() if name not in _NOT_GROUPS)
    return LogReport(
        dict(facts["settings"]), dict(facts["counts"]), dict(facts["rejected"]), dict(facts["rejected_examples"]),
        groups, {"frequency": tables["frequency"], **tables}, list(facts["notes"]),
    )  # fmt: skip
