"""The tables that ``askew logs --out`` wrote, read back as a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from askew.app.logs.report import LogReport
from askew.core.errors import DataError

_NOT_GROUPS = ("all", "several")


def read_log_report(folder: Path) -> LogReport:
    """The report of a result folder. It is made anew from the tables; the page that lies there is not read."""
    try:
        facts = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        tables = {path.stem: pl.read_parquet(path) for path in sorted((folder / "tables").glob("*.parquet"))}
        return _report(facts, tables)
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        first = str(error).partition("\n")[0][:200] or type(error).__name__
        raise DataError(
            f"logs {folder}: expected a folder that askew logs --out wrote, with report.json and tables/ ({first})"
        ) from None


def _report(facts: dict[str, Any], tables: dict[str, pl.DataFrame]) -> LogReport:
    groups: tuple[str, ...] = ()
    if "groups" in tables:
        groups = tuple(name for name in tables["groups"]["group"].to_list() if name not in _NOT_GROUPS)
    return LogReport(
        dict(facts["settings"]), dict(facts["counts"]), dict(facts["rejected"]), dict(facts["rejected_examples"]),
        groups, {"frequency": tables["frequency"], **tables}, list(facts["notes"]),
    )  # fmt: skip
