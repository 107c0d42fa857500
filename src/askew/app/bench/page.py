"""Write the report of one or several benches: a page with tables and charts, and the tables as CSV files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from askew.app.bench.curves import curve_figures
from askew.app.bench.kept_scores import write_scores
from askew.app.bench.labels import labels_of, marks_note
from askew.app.bench.results import BASE, PARETO, BenchReport, Cell, Row
from askew.core.figures import FEWEST
from askew.core.measure import Direction
from askew.publish.card import NOT_BIAS
from askew.publish.page import numerals as n
from askew.publish.page.document import Section, code, document, facts, figures, heading, listed, paragraph
from askew.publish.page.markup import Markup
from askew.publish.page.parts import PageParts, slug
from askew.publish.page.table import CODE, WORDS, Column, Group, Table, columns, table
from askew.publish.page.writing import write_report

_BETTER = {Direction.UP: "higher", Direction.DOWN: "lower", Direction.ZERO: "nearer zero"}
_LIMITS = (
    "Some methods select documents or queries by a measure of lean, or rank documents by the words that the measure "
    "counts. Such a method reduces this measure by construction. Compare it by other measures of lean.",
    "A Pareto front is computed from means over the queries of this bench. Two methods on the front may differ only by "
    "chance: see the intervals in the section Changes.",
    "If only one document of a query is judged, the measured effectiveness depends only on the rank of this document. "
    "The column 'top 10 kept' shows how much the top 10 changes.",
    "Evaluate a method with a trained model only on queries that the model was not trained on.",
    "A reformulated query may ask for different information. This report includes no human check of the meaning.",
)


def write_page(reports: Sequence[BenchReport], out: Path) -> list[Path]:
    """Write report.html, tables/*.csv and, for a single report, its scores; return the paths, the page first."""
    files = PageParts()
    marks: dict[str, object] = {}
    sections: list[Section] = []
    for report in reports:
        mark = slug(_title(report), marks, before="") if len(reports) > 1 else ""
        marks[mark] = report
        sections += _sections(files, report, mark)
    sections.append(Section("rules", "How methods work", [listed(_rules(reports))]))
    sections.append(Section("limits", "Limits", [listed(_limits(reports))]))
    foot = [paragraph("askew bench uses no random sampling to compute the numbers on this page.")]
    names = ", ".join(dict.fromkeys(Path(report.collection).name for report in reports))
    page = document(f"Mitigation methods on {names}", _head(reports), sections, foot)
    every = {"report.html": page.encode(), **files.files()}
    if len(reports) == 1:
        every["tables/queries.csv"] = reports[0].per_query().write_csv().encode()
        every |= write_scores(reports[0])
    return write_report(out, every)


def _sections(files: PageParts, report: BenchReport, mark: str) -> list[Section]:
    """Return the sections of one collection; with a ``mark`` (several collections), merge them into one section."""
    made = [
        _methods_section(files, report, mark), _curves_section(files, report, mark),
        _changes_section(files, report, mark), _measures_section(files, report, mark),
    ]  # fmt: skip
    if not mark:
        return made
    body: list[Markup] = [_facts(report)]
    for one in made:
        body += [heading(one.title), *one.body]
    return [Section(mark, _title(report), body)]


def _title(report: BenchReport) -> str:
    """The collection and the base ranker: two benches of one page may share the collection."""
    return f"{Path(report.collection).name}, base {report.rows[0].method.text}"


def _head(reports: Sequence[BenchReport]) -> list[Markup]:
    lead = (
        "Effectiveness and bias (lean) of each mitigation method, on the same queries, compared with the base ranker."
    )
    return [paragraph(lead, kind="lead"), *([_facts(reports[0])] if len(reports) == 1 else [])]


def _rules(reports: Sequence[BenchReport]) -> list[str]:
    rules = dict.fromkeys(rule for report in reports for rule in report.rules)
    before = [f"{_title(report)}: " if len(reports) > 1 else "" for report in reports]
    notes = [f"{name}{note}" for name, report in zip(before, reports, strict=True) for note in report.notes]
    return [*rules, *notes]


def _facts(report: BenchReport) -> Markup:
    rows: list[tuple[str, object]] = [
        ("collection", code(report.collection)), ("queries", n.count(len(report.query_ids))),
        ("groups", "each measure counts its default groups" if report.groups is None else _groups_text(report.groups)),
        ("base", code(report.rows[0].method.text)), ("documents per query", n.count(report.k)),
        ("tests", f"{report.tests}, all corrected together (Holm)"),
    ]  # fmt: skip
    return facts(rows)


def _groups_text(groups: Mapping[str, Any]) -> str:
    return f"{', '.join(groups['names'])} (lexicon {groups['lexicon_name']})"


def _limits(reports: Sequence[BenchReport]) -> list[str]:
    named = next((report.groups for report in reports if report.groups is not None), None)
    counted = (
        "By default, measures of lean count the groups female and male."
        if named is None
        else f"The counted groups are {_groups_text(named)}."
    )
    return [NOT_BIAS, f"{counted} Other groups are not measured.", *_LIMITS]


def _named(name: str, mark: str) -> str:
    return f"{name}-{mark}" if mark else name


def _methods_section(files: PageParts, report: BenchReport, mark: str) -> Section:
    labels = labels_of(report)
    words = ("searches per query", "model calls per query", "top 10 kept", "reformulated queries",
             "queries without results", "seconds")  # fmt: skip
    head = [Column("method", CODE), *(Column(label) for label in labels.values()), *(Column(word) for word in words)]
    rows = [
        [row.label, *(_summary(row, name, cell) for name, cell in row.cells.items()), *_costs(row)]
        for row in report.rows
    ]
    caption = "Mitigation methods: means, with the change from the base in percent"
    notes = [
        *marks_note(report),
        "Model calls: number of texts, or pairs of texts, that neural networks read or write. Top 10 kept: the share "
        "of the top 10 of the base that is also in the top 10 of the method. Seconds: time to compute the run, "
        "without the time to build the index. The section Changes has intervals and tests.",
    ]
    drawn = files.table(Table(_named("methods", mark), caption, head, [Group("", rows)], notes), report.to_polars())
    return Section("methods", "Mitigation methods", [drawn])


def _costs(row: Row) -> list[str]:
    costs = row.costs
    return [
        *("unknown" if one is None else f"{one:.1f}" for one in (costs.searches, costs.model_calls)),
        f"{100 * costs.kept:.0f}%", n.count(costs.reformulated), n.count(costs.empty),
        f"{costs.seconds:.2f}" if costs.seconds else n.NONE,
    ]  # fmt: skip


def _summary(row: Row, name: str, cell: Cell) -> str:
    change = "" if cell.against is None else f" ({n.change(cell.change)})"
    return f"{n.mean(cell.mean)}{change}{f' {PARETO}' if name in row.pareto else ''}"


def _changes_section(files: PageParts, report: BenchReport, mark: str) -> Section:
    head = columns("method", "n queries", "mean", "change", "95% interval", "gain", "95% interval", "p", "p (Holm)",
                   "improved queries", "worsened queries", "means by seed", kind=CODE)  # fmt: skip
    groups = [
        Group(label, [_change_row(row, name) for row in report.rows]) for name, label in labels_of(report).items()
    ]
    notes = [
        marks_note(report)[0],
        "Change: change of the mean, in percent of the mean of the base. Gain: how much better the method is than the "
        "base, as a mean over queries; positive is better. The intervals of bounded measures are valid for every "
        "distribution; the other intervals are approximate. All intervals cover variation over queries, not over "
        "seeds. The column p has the p-value for the null hypothesis that the mean gain is 0. The column p (Holm) has "
        f"the p-value after correction by Holm's method over all {report.tests} tests of this table.",
    ]
    given = Table(_named("changes", mark), "Each method compared with the base, paired by query", head, groups, notes)
    return Section("changes", "Changes", [files.table(given)])


def _change_row(row: Row, name: str) -> list[str]:
    cell, found = row.cells[name], row.cells[name].against
    start = [row.label, n.count(cell.n), n.mean(cell.mean)]
    seeds = " ".join(n.mean(one) for one in row.seeds.get(name, [])) or n.NONE
    if found is None:
        return [*start, BASE, *[n.NONE] * 7, seeds]
    few = cell.n < FEWEST
    interval = n.NONE if few else f"[{n.mean(found.low)}, {n.mean(found.high)}]"
    return [
        *start, n.change(cell.change), n.NONE if few else n.change_interval(cell.low, cell.high), n.mean(found.gain),
        interval, n.p_value(found.p), n.p_value(cell.p_holm), n.count(found.improved), n.count(found.worsened), seeds,
    ]  # fmt: skip


def _curves_section(files: PageParts, report: BenchReport, mark: str) -> Section:
    body = [one for lean in report.leans for one in curve_figures(files, report, lean, mark)]
    about = (
        "The parameter 'strength' sets how strongly a method reduces lean. A curve shows a method that was run with "
        "several strengths, and a point shows any other method. The band of a curve and the bars of a point are 95% "
        "intervals of the difference from the base, paired by query."
    )
    return Section("curves", "Effectiveness against lean", [paragraph(about), figures(*body)])


def _measures_section(files: PageParts, report: BenchReport, mark: str) -> Section:
    head = [Column("measure", CODE), Column("better", WORDS), Column("signature", CODE)]
    rows = [[one.text, _BETTER[one.direction], one.signature] for one in report.asked]
    note = (
        "A signature lists every setting that the value of a measure depends on. Some measures, such as NFaiRR, "
        "compare the results with the documents of a background run. Their signatures identify this run by a hash."
    )
    data = pl.DataFrame(rows, schema=["measure", "better", "signature"], orient="row")
    made = table(_named("measures", mark), "Measures", head, rows, note)
    return Section("measures", "Measures", [files.table(made, data)])
