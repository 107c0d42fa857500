"""The report of a bench: one page with tables and a figure for each measure of lean, and the tables as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from askew.app.bench.methods import REFORMULATE
from askew.app.bench.results import BASE, BOUND, PARETO, BenchReport, Cell, Row
from askew.app.build.built_pairs import LEAN
from askew.core.groups import Groups
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
_LIMITS = (
    "A method that chooses by a measure of lean, or ranks by the words that it counts, reduces this measure by "
    "construction: compare the other measures.",
    "A Pareto front is computed from means over these queries. Two methods on it may differ by chance: see the "
    "intervals.",
    "Evaluate a method with a trained model only on queries that the model was not trained on.",
    "A reformulated query may ask for different information. No human judgement of this is included.",
)


def write_page(report: BenchReport, out: Path) -> list[Path]:
    """Write report.html and tables/*.csv to a folder; all files, the page first."""
    files = PageParts()
    sections = [
        _methods_section(files, report), _fronts_section(files, report), _changes_section(files, report),
        _measures_section(files, report), Section("limits", "Limits", [listed(_limits(report))]),
    ]  # fmt: skip
    foot = [paragraph("No number on this page depends on random sampling.")]
    page = document(f"Mitigation methods on {report.collection}", _head(report), sections, foot)
    every = {
        "report.html": page.encode(),
        **files.files(),
        "tables/queries.csv": report.per_query().write_csv().encode(),
    }
    return write_report(out, every)


def _head(report: BenchReport) -> list[Markup]:
    rows: list[tuple[str, object]] = [
        ("collection", code(report.collection)), ("queries", n.count(len(report.query_ids))),
        ("groups", "defaults of the measures" if report.groups is None else _groups_text(report.groups)),
        ("base", code(report.rows[0].method.text)), ("documents per query", n.count(report.k)),
        ("tests", f"{report.tests}, all corrected together (Holm)"),
    ]  # fmt: skip
    lead = (
        "Effectiveness and bias (lean) of each mitigation method, on the same queries, compared with the base ranker."
    )
    return [paragraph(lead, kind="lead"), facts(rows), listed([*report.rules, *report.notes])]


def _groups_text(groups: Groups) -> str:
    return f"{', '.join(groups.names)} (lexicon {groups.lexicon.name})"


def _limits(report: BenchReport) -> list[str]:
    counted = "The published lexicons have two groups." if report.groups is None else (
        f"The groups counted are {_groups_text(report.groups)}."
    )  # fmt: skip
    return [NOT_BIAS, f"{counted} These measures do not see other groups.", *_LIMITS]


def labels_of(report: BenchReport) -> dict[str, str]:
    """Measures as tables name them; one that methods choose by has a mark."""
    choosing = [row.method for row in report.rows if row.method.kind == REFORMULATE]
    chosen = {LEAN if method.trained else report.leans[0] for method in choosing}
    return {one.text: measure_label(one.text, one.direction, "*" if one.text in chosen else "") for one in report.asked}


def marks_note(report: BenchReport) -> list[str]:
    """What the marks in a table of methods mean."""
    labels = labels_of(report)
    said = [
        "↑ ↓: which way is better." + (" |M|: the distance of M from zero." if "|" in "".join(labels.values()) else "")
    ]
    if any("*" in label for label in labels.values()):
        said.append(
            "*: reformulations are chosen by this measure, so it improves by construction; compare the other measures."
        )
    said.append(
        f"{PARETO}: the method is Pareto-optimal; no other is at least as good by {report.effectiveness[0]} and by "
        "this measure, and better by one of them."
    )
    if any(row.method.bound for row in report.rows):
        said.append(f"{BOUND}: an upper bound, chosen by the judgements; not a system, and not on a Pareto front.")
    return said


def _methods_section(files: PageParts, report: BenchReport) -> Section:
    labels = labels_of(report)
    head = [Column("method", CODE), *(Column(label) for label in labels.values()),
            *(Column(label) for label in ("reformulated queries", "queries without results", "seconds"))]  # fmt: skip
    rows = [
        [row.label, *(_summary(row, name, cell) for name, cell in row.cells.items()), n.count(row.reformulated),
         n.count(row.empty), f"{row.seconds:.2f}" if row.seconds else n.NONE]
        for row in report.rows
    ]  # fmt: skip
    caption = "Mitigation methods: means, and their change against the base in percent"
    notes = [*marks_note(report), "Seconds: to compute the run, without its index. Intervals and tests: see Changes."]
    drawn = files.table(Table("methods", caption, head, [Group("", rows)], notes), report.to_polars())
    return Section("methods", "Mitigation methods", [drawn])


def _summary(row: Row, name: str, cell: Cell) -> str:
    change = "" if cell.against is None else f" ({n.change(cell.change)})"
    return f"{n.mean(cell.mean)}{change}{f' {PARETO}' if name in row.pareto else ''}"


def _changes_section(files: PageParts, report: BenchReport) -> Section:
    head = columns("method", "n queries", "mean", "change", "95% interval", "gain", "95% interval", "p", "p (Holm)",
                   "improved queries", "worsened queries", kind=CODE)  # fmt: skip
    groups = [
        Group(label, [_change_row(row, name) for row in report.rows]) for name, label in labels_of(report).items()
    ]
    notes = [
        marks_note(report)[0],
        "Change: of the mean, in percent of the mean of the base. Gain: mean over queries, positive is better. "
        "Intervals are valid for every distribution where a measure has bounds, else approximate. p: null hypothesis: "
        f"the mean gain is 0; Holm over all {report.tests} tests of this table.",
    ]
    given = Table("changes", "Each method compared with the base, query by query", head, groups, notes)
    return Section("changes", "Changes", [files.table(given)])


def _change_row(row: Row, name: str) -> list[str]:
    cell, found = row.cells[name], row.cells[name].against
    start = [row.label, n.count(cell.n), n.mean(cell.mean)]
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
    about = "Bars are 95% intervals of the difference to the base, query by query; the base has none."
    return Section("fronts", "Effectiveness and lean", [paragraph(about), figures(*body)])


def _front_figure(files: PageParts, report: BenchReport, lean: str) -> Markup:
    labels, effect = labels_of(report), report.effectiveness[0]
    base, *others = report.rows
    systems = [row for row in others if not row.method.bound]
    bounds = [row for row in others if row.method.bound]
    groups = [_points("methods", systems, lean, effect), _points(f"base: {base.method.text}", [base], lean, effect)]
    groups += [_points("upper bound", bounds, lean, effect)] if bounds else []
    front = sorted((r.cells[lean].mean, r.cells[effect].mean) for r in report.rows if lean in r.pareto)
    line = Line("Pareto front", np.array([x for x, _ in front]), np.array([y for _, y in front]), 5)
    bars = [bar for row in systems for bar in _bars(report, row, lean, effect)]
    about = About(
        slug(lean, files.charts, before="pareto"), f"{effect} against {lean}",
        f"Each point is a method: the mean of {labels[effect]} on the vertical axis, the mean of {labels[lean]} on the "
        "horizontal axis. The line joins the Pareto-optimal methods.",
    )  # fmt: skip
    drawn = scatter(about, groups, f"mean of {labels[lean]}", f"mean of {labels[effect]}", [line, *bars], size=5)
    return files.chart(about, drawn, "The line joins the Pareto-optimal methods.")


def _points(name: str, rows: Sequence[Row], lean: str, effect: str) -> Points:
    x, y = (np.array([row.cells[one].mean for row in rows], np.float64) for one in (lean, effect))
    return Points(name, x, y, [row.method.text for row in rows])


def _bars(report: BenchReport, row: Row, lean: str, effect: str) -> list[Line]:
    """The intervals of the difference to the base through the point of the method, along both axes."""
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
    note = "A signature names every choice that a number depends on; a background run is named by its content."
    data = pl.DataFrame(rows, schema=["measure", "better", "signature"], orient="row")
    return Section("measures", "Measures", [files.table(table("measures", "Measures", head, rows, note), data)])
