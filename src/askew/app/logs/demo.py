"""Analyze a made-up log with planted effects, and compare the estimates with the planted values."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from askew.app.logs.analyze import analyze_log
from askew.app.logs.cells import ends
from askew.app.logs.reading import Progress
from askew.app.logs.report import LogReport
from askew.app.logs.settings import LogSettings
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.logs.planted import GROUPS, Planted
from askew.logs.synthetic import SyntheticLog, write_log

# The terms of the made-up log, whatever the defaults are.
_LEXICON = "gsqr2023"


def demo_report(
    planted: Planted | None = None, settings: LogSettings | None = None, progress: Progress | None = None
) -> LogReport:
    """Make a log, analyze it as any other, and add a table of planted and estimated values."""
    made, given = planted or Planted(), settings or LogSettings()
    _check(given)
    with tempfile.TemporaryDirectory(prefix="askew-demo-") as folder:
        path = write_log(SyntheticLog(made), Path(folder) / "made-up.parquet")
        vectors = write_vectors(made, Path(folder))
        report = analyze_log(path, format="parquet", settings=replace(given, vectors=vectors), progress=progress)
    if report.settings["lexicon"] == Groups.load(_LEXICON).lexicon.id:
        report.tables["planted"] = planted_table(report, made)
        told = "the true values of this log are known, and the table 'planted' compares them with the estimates"
    else:
        told = (
            "the true values of this log are not compared with the estimates, because the true values are known only "
            f"for the lexicon {_LEXICON}"
        )
    report.notes.insert(0, f"this log is made up (random seed {made.seed}); {told}")
    return report


def _check(given: LogSettings) -> None:
    for what, value in (("vectors", given.vectors), ("columns", given.columns)):
        if value is not None:
            raise ConfigError(f"demo= uses a made-up log that has its own {what}; leave {what}= out")
    groups = Groups.of(given.groups)
    if not set(GROUPS) <= set(groups.names):
        raise ConfigError(
            f"demo= uses a made-up log with words for the groups {' and '.join(GROUPS)}, but the lexicon "
            f"{groups.lexicon.name!r} does not have these groups; leave groups= out"
        )


def write_vectors(planted: Planted, folder: Path) -> Path:
    """The word vectors of a made-up log, as a matrix with its words."""
    np.save(folder / "vectors.npy", planted.queries.vectors)
    (folder / "vocab.txt").write_text("\n".join(planted.queries.vector_words) + "\n", encoding="utf-8")
    return folder / "vectors.npy"


def planted_table(report: LogReport, planted: Planted) -> pl.DataFrame:
    """One row per effect: the planted value, the estimate with its interval, and whether the interval covers the value.

    An effect is left out if the report has no table or no interval for it.
    """
    rows = []
    for name, truth, table, value, where in effects(planted):
        row = _found(report.tables.get(table), value, where)
        if row is not None:
            found, low, high, n = row
            rows.append(
                {"effect": name, "planted": truth, "found": found, "low": low, "high": high, "n": n,
                 "within": low <= truth <= high}
            )  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def effects(planted: Planted) -> Iterator[tuple[str, float, str, str, dict[str, str]]]:
    """Every planted effect: its name, its true value, and the table, column and row where it should be found."""
    truth = planted.truth
    for what in ("specializing", "for_group"):
        yield f"{what} reformulations", truth[what], "frequency", "share", {"what": what}
    for group, value in truth["share"].items():
        yield f"{group} share", value, "groups", "share", {"group": group}
    for (group, entry), value in truth["entry"].items():
        yield f"{entry}, {group}", value, "entries", "share", {"group": group, "entry": entry}
    for (group, entry), value in truth["median"].items():
        yield f"gap {group}, {entry}", value, "gaps", "median", {"group": group, "entry": entry}
    for entry, value in truth["click_ratio"].items():
        yield f"click ratio, {entry}", value, "clicks", "ratio", {"group": "all", "entry": entry}
    for change, value in truth["change"].items():
        yield f"clicked result {change}", value, "ranks", "share", {"group": "all", "change": change}
    for kind, value in truth["kind"].items():
        yield kind, value, "kinds", "share", {"group": "all", "kind": kind}
    for site, value in truth["site"].items():
        yield f"exposure {site}", value, "sites", "ratio", {"site": site}
    for topic, values in truth["topic"].items():
        for name, value in values.items():
            yield f"{name} {topic}", value, "topics", name, {"topic": topic}
    yield "association", truth["association"], "association", "rho", {"topic": "overall"}


def _found(table: pl.DataFrame | None, value: str, where: dict[str, str]) -> tuple[float, float, float, int] | None:
    rows = [] if table is None else table.filter(**where).to_dicts()
    if not rows:
        return None
    low, high = ends(rows[0], value)
    return None if low is None or high is None else (rows[0][value], low, high, rows[0]["n"])
