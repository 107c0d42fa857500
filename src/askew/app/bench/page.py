"""The report of a bench: one page with the table and a picture for each measure of lean, and its tables as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from askew.app.bench.methods import REFORMULATE
from askew.app.bench.results import BenchReport, Cell, Row, cell_facts
from askew.app.build.built_pairs import LEAN
from askew.core.measure import Direction
from askew.publish.card import NOT_BIAS
from askew.publish.page import numerals as n
from askew.publish.page.charts import Line, Points, scatter
from askew.publish.page.document import Section, code, document, facts, figures, listed, paragraph
from askew.publish.page.frame import About
from askew.publish.page.markup import Markup
from askew.publish.page.parts import PageParts, measure_label, slug
from askew.publish.page.table import CODE, WORDS, Column, Group, Table, columns, table
from askew.publish.page.writing import write_report

_BETTER = {Direction.UP: "higher", Direction.DOWN: "lower", Direction.ZERO: "nearer zero"}
BOUND, FRONT, BASE = "†", "front", "base"
_LIMITS = (
    NOT_BIAS,
    "The published lexicons know two groups. People and documents outside them are not seen by these measures.",
    "A lever that chooses by a measure of lean, or ranks by the words that it counts, lowers it by construction: see "
    "the other measures for what holds.",
    "A front is one of means over these queries. Two levers on it may differ by chance: see the intervals.",
    "Levers with a trained model are judged honestly only on queries that it was not trained on.",
    "A query asked otherwise may ask for something else. Nobody has judged that here.",
)


def write_page(report: BenchReport, out: Path) -> list[Path]:
    """Write report.html and tables/*.csv to a folder; all files, the page first."""
    files = PageParts()
    sections = [
        _levers_section(files, report), _fronts_section(files, report), _changes_section(files, report),
        _measures_section(files, report), Section("limits", "What this does not say", [listed(_LIMITS)]),
    ]  # fmt: skip
    foot = [paragraph("No number on this page is drawn at random.")]
    page = document(f"Levers on {report.collection}", _head(report), sections, foot)
    every = {
        "report.html": page.encode(),
        **files.files(),
        "tables/queries.csv": _by_query(report).write_csv().encode(),
    }
    return write_report(out, every)


def _head(report: BenchReport) -> list[Markup]:
    rows: list[tuple[str, object]] = [
        ("collection", code(report.collection)), ("queries", n.count(len(report.query_ids))),
        ("base", code(report.rows[0].lever.text)), ("documents of each query", n.count(report.k)),
        ("tests", f"{report.tests}, all corrected together (Holm)"),
    ]  # fmt: skip
    lead = "What each lever does to effectiveness and to lean, on the same queries, against the base ranker."
    return [paragraph(lead, kind="lead"), facts(rows), listed([*report.rules, *report.notes])]


def shown_name(row: Row) -> str:
    """A lever as tables name it: the base and an upper bound are marked."""
    mark = f" {BOUND}" if row.lever.bound else f" ({BASE})" if row.base else ""
    return f"{row.lever.text}{mark}"


def labels_of(report: BenchReport) -> dict[str, str]:
    """Measures as tables name them; one that levers choose by has a mark."""
    asking = [row.lever for row in report.rows if row.lever.kind == REFORMULATE]
    chosen = {LEAN if lever.trained else report.leans[0] for lever in asking}
    return {one.text: measure_label(one.text, one.direction, "*" if one.text in chosen else "") for one in report.asked}


def marks_note(report: BenchReport) -> list[str]:
    """What the signs in a table of levers mean."""
    labels = labels_of(report)
    said = [
        "↑ ↓: which way is better." + (" |M|: the distance of M from zero." if "|" in "".join(labels.values()) else "")
    ]
    if any("*" in label for label in labels.values()):
        said.append(
            "*: reformulations are chosen by this measure, so that it improves by construction; see the others."
        )
    said.append(
        f"{FRONT}: no other lever is as good by {report.effectiveness[0]} and by this measure, and better by one."
    )
    if any(row.lever.bound for row in report.rows):
        said.append(f"{BOUND}: chosen by the judgements: an upper bound, no system, and on no front.")
    return said


def _levers_section(files: PageParts, report: BenchReport) -> Section:
    labels = labels_of(report)
    head = [Column("lever", CODE), *(Column(label) for label in labels.values()),
            *(Column(label) for label in ("asked otherwise", "found nothing", "seconds"))]  # fmt: skip
    rows = [
        [shown_name(row), *(_summary(row, name, cell) for name, cell in row.cells.items()), n.count(row.otherwise),
         n.count(row.nothing), f"{row.seconds:.2f}" if row.seconds else n.NONE]
        for row in report.rows
    ]  # fmt: skip
    caption = "Levers: means, and their change against the base"
    notes = [*marks_note(report), "Seconds: to make the run, its index not counted. Intervals and tests: see Changes."]
    drawn = files.table(Table("levers", caption, head, [Group("", rows)], notes), long_table(report))
    return Section("levers", "Levers", [drawn])


def _summary(row: Row, name: str, cell: Cell) -> str:
    change = "" if cell.against is None else f" ({n.change(cell.change)})"
    return f"{n.mean(cell.mean)}{change}{f' {FRONT}' if name in row.front else ''}"


def _changes_section(files: PageParts, report: BenchReport) -> Section:
    head = columns("lever", "n", "mean", "change", "95% interval", "gain", "95% interval", "p", "p (Holm)",
                   "improved", "worsened", kind=CODE)  # fmt: skip
    groups = [
        Group(label, [_change_row(row, name) for row in report.rows]) for name, label in labels_of(report).items()
    ]
    notes = [
        marks_note(report)[0],
        "Change: of the mean, in percent of the base's. Gain: positive is better, mean over queries. Intervals are "
        "valid for every distribution where a measure has bounds, else approximate. p: null hypothesis: "
        f"the mean gain is 0; Holm over all {report.tests} tests of this table.",
    ]
    given = Table("changes", "Each lever against the base, query by query", head, groups, notes)
    return Section("changes", "Changes", [files.table(given)])


def _change_row(row: Row, name: str) -> list[str]:
    cell, found = row.cells[name], row.cells[name].against
    start = [shown_name(row), n.count(cell.n), n.mean(cell.mean)]
    if found is None:
        return [*start, BASE, *[n.NONE] * 7]
    few = cell.n < n.FEWEST
    interval = n.NONE if few else f"[{n.mean(found.low)}, {n.mean(found.high)}]"
    return [
        *start, n.change(cell.change), n.NONE if few else n.change_interval(cell.low, cell.high), n.mean(found.gain),
        interval, n.p_value(found.p), n.p_value(cell.p_holm), n.count(found.improved), n.count(found.worsened),
    ]  # fmt: skip


def _fronts_section(files: PageParts, report: BenchReport) -> Section:
    body = [_front_figure(files, report, lean) for lean in report.leans]
    told = "Bars are 95% intervals of the difference to the base, query by query; the base has none."
    return Section("fronts", "Effectiveness and lean", [paragraph(told), figures(*body)])


def _front_figure(files: PageParts, report: BenchReport, lean: str) -> Markup:
    labels, effect = labels_of(report), report.effectiveness[0]
    base, *others = report.rows
    systems = [row for row in others if not row.lever.bound]
    bounds = [row for row in others if row.lever.bound]
    groups = [_points("levers", systems, lean, effect), _points(f"base: {base.lever.text}", [base], lean, effect)]
    groups += [_points("upper bound, no system", bounds, lean, effect)] if bounds else []
    front = sorted((r.cells[lean].mean, r.cells[effect].mean) for r in report.rows if lean in r.front)
    line = Line("front", np.array([x for x, _ in front]), np.array([y for _, y in front]), 5)
    bars = [bar for row in systems for bar in _bars(report, row, lean, effect)]
    about = About(
        slug(lean, files.charts, before="front"), f"{effect} against {lean}",
        f"Each point is a lever: the mean of {labels[effect]} upwards, the mean of {labels[lean]} to the right. The "
        "line joins the levers that no other beats on both.",
    )  # fmt: skip
    drawn = scatter(about, groups, f"mean of {labels[lean]}", f"mean of {labels[effect]}", [line, *bars], size=5)
    return files.chart(about, drawn, "The line joins the levers that no other beats on both.")


def _points(name: str, rows: Sequence[Row], lean: str, effect: str) -> Points:
    x, y = (np.array([row.cells[one].mean for row in rows], np.float64) for one in (lean, effect))
    return Points(name, x, y, [row.lever.text for row in rows])


def _bars(report: BenchReport, row: Row, lean: str, effect: str) -> list[Line]:
    """The interval of the difference to the base, across the lever's point, along both sides."""
    x, y = row.cells[lean].mean, row.cells[effect].mean
    ends = [_ends(report, row, one) for one in (lean, effect)]
    if min(row.cells[one].n for one in (lean, effect)) < n.FEWEST:
        return []
    lines = (ends[0], np.array([y, y])), (np.array([x, x]), ends[1])
    return [Line("", *line, 0, 0.75) for line, end in zip(lines, ends, strict=True) if np.isfinite(end).all()]


def _ends(report: BenchReport, row: Row, name: str) -> Any:
    found = row.cells[name].against
    assert found is not None
    way = 1.0 if {one.text: one.direction for one in report.asked}[name] is Direction.UP else -1.0
    ends = [np.nan if end is None else found.old + way * end for end in (found.low, found.high)]
    return np.array(ends)


def _measures_section(files: PageParts, report: BenchReport) -> Section:
    head = [Column("measure", CODE), Column("better", WORDS), Column("signature", CODE)]
    rows = [[one.text, _BETTER[one.direction], one.signature] for one in report.asked]
    note = "A signature says all that a number depends on; a background run is named by its content."
    data = pl.DataFrame(rows, schema=["measure", "better", "signature"], orient="row")
    return Section("measures", "Measures", [files.table(table("measures", "Measures", head, rows, note), data)])


def long_table(report: BenchReport) -> pl.DataFrame:
    """One row for each lever and measure, with every number of the report."""
    rows = [
        {
            "lever": row.lever.text, "kind": row.lever.kind, "upper_bound": row.lever.bound, "measure": name,
            **cell_facts(cell), "front": name in row.front, "asked_otherwise": row.otherwise,
            "found_nothing": row.nothing, "seconds": row.seconds,
        }
        for row in report.rows
        for name, cell in row.cells.items()
    ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def _by_query(report: BenchReport) -> pl.DataFrame:
    """The scores of every query, for whoever wants to test otherwise."""
    parts = [
        pl.DataFrame({"lever": [lever] * len(report.query_ids), "query_id": report.query_ids, **values})
        for lever, values in report.values.items()
    ]
    return pl.concat(parts).fill_nan(None)
