"""A made-up log with planted effects, analysed: what was found beside what was planted."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from askew.logs.planted import Planted
from askew.logs.synthetic import SyntheticLog, write_log
from askew.stages.logs.analyse import LogReport, LogSettings, analyse_log
from askew.stages.logs.reading import Progress


def demo_report(
    planted: Planted | None = None, settings: LogSettings | None = None, progress: Progress | None = None
) -> LogReport:
    """Make a log, analyse it as any other, and add a table of what was planted."""
    made = planted or Planted()
    with tempfile.TemporaryDirectory(prefix="askew-demo-") as folder:
        path = write_log(SyntheticLog(made), Path(folder) / "made-up.parquet")
        vectors = write_vectors(made, Path(folder))
        asked = replace(settings or LogSettings(), vectors=vectors, vocabulary=None, columns=None)
        report = analyse_log([path], "parquet", asked, progress)
    report.tables["planted"] = planted_table(report, made)
    report.notes.insert(0, f"this log is made up (seed {made.seed}); the table planted says what was put into it")
    return report


def write_vectors(planted: Planted, folder: Path) -> Path:
    """The word vectors of a made-up log, as a matrix with its words."""
    np.save(folder / "vectors.npy", planted.queries.vectors)
    (folder / "vocab.txt").write_text("\n".join(planted.queries.vector_words) + "\n", encoding="utf-8")
    return folder / "vectors.npy"


def planted_table(report: LogReport, planted: Planted) -> pl.DataFrame:
    """Effect by effect: what was planted, what was found with its interval, and whether the interval holds it."""
    rows = [
        {"effect": name, "planted": truth, "found": found, "low": low, "high": high, "n": n,
         "within": low <= truth <= high}
        for name, truth, (found, low, high, n) in effects(report, planted)
    ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def effects(report: LogReport, planted: Planted) -> list[tuple[str, float, tuple[float, float, float, int]]]:
    """Every planted effect with its true value, the estimate, its interval and the events behind it."""
    truth, tables = planted.truth, report.tables
    found = [
        (f"{what} reformulations", truth[what], _row(tables["frequency"], "share", what=what))
        for what in ("specialising", "for_group")
    ]
    found += [
        (f"{group} share", truth["share"][group], _row(tables["groups"], "share", group=group))
        for group in report.groups
    ]
    found += [
        (f"{entry}, {group}", truth["entry"][group, entry], _row(tables["entries"], "share", group=group, entry=entry))
        for group, entry in truth["entry"]
    ]
    found += [
        (
            f"gap {group}, {entry}",
            truth["median"][group, entry],
            _row(tables["gaps"], "median", group=group, entry=entry),
        )
        for group, entry in truth["median"]
    ]
    found += [
        (f"click ratio, {entry}", value, _row(tables["clicks"], "ratio", group="all", entry=entry))
        for entry, value in truth["click_ratio"].items()
    ]
    found += [
        (f"clicked result {change}", value, _row(tables["ranks"], "share", group="all", change=change))
        for change, value in truth["change"].items()
    ]
    found += [
        (f"{kind}", value, _row(tables["kinds"], "share", group="all", kind=kind))
        for kind, value in truth["kind"].items()
    ]
    found += [
        (f"exposure {site}", value, _row(tables["sites"], "ratio", site=site)) for site, value in truth["site"].items()
    ]
    for topic, values in truth["topic"].items():
        found += [(f"{name} {topic}", value, _wide(tables["topics"], topic, name)) for name, value in values.items()]
    found.append(("genderedness", truth["genderedness"], _row(tables["genderedness"], "rho", topic="overall")))
    return found


def _row(table: pl.DataFrame, value: str, **where: str) -> tuple[float, float, float, int]:
    row: dict[str, Any] = table.filter(**where).row(0, named=True)
    return row[value], row["low"], row["high"], row["n"]


def _wide(table: pl.DataFrame, topic: str, name: str) -> tuple[float, float, float, int]:
    row: dict[str, Any] = table.filter(topic=topic).row(0, named=True)
    return row[name], row[f"{name}_low"], row[f"{name}_high"], row["n"]
