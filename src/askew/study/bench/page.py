"""Write the report of one or several benches: a page with tables and charts, and the tables as CSV files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from askew.core.defaults import FEWEST
from askew.core.measure import Direction
from askew.measures.statistics.significance import FEWEST_NONZERO, NULLS
from askew.pairs.dataset.card import NOT_BIAS
from askew.report import markup as n
from askew.report.charts import About, Band, Line, Points, scatter
from askew.report.markup import Markup
from askew.report.page import (
    PageParts,
    Section,
    code,
    document,
    facts,
    figures,
    heading,
    listed,
    paragraph,
    slug,
    write_report,
)
from askew.report.table import CODE, NAME, WORDS, Column, Estimate, Group, Table, measure_label, table
from askew.report.table import Cell as TableCell
from askew.study.bench.methods import REFORMULATE, REORDER, MitigationMethod
from askew.study.bench.results import BOUND, PARETO, BenchReport, Row, write_scores

# Labels of the measures in tables of mitigation methods, and the legend of their marks.


def labels_of(report: BenchReport) -> dict[str, str]:
    """Return the label of each measure; a measure by which methods select or reorder is marked with an asterisk."""
    parts = [part for row in report.rows for part in row.method.parts]
    by_first = any(part.by_results or part.bound or part.kind == REORDER for part in parts)
    chosen = {report.leans[0]} if by_first else set()
    return {one.text: measure_label(one.text, one.direction, "*" if one.text in chosen else "") for one in report.asked}


def marks_note(report: BenchReport) -> list[str]:
    """Return the legend of the marks in a table of methods."""
    labels = labels_of(report)
    said = [
        "↑ ↓: the better direction." + (" |M|: the absolute value of M." if "|" in "".join(labels.values()) else "")
    ]
    if any("*" in label for label in labels.values()):
        said.append(
            "*: methods choose reformulations or reorder documents by this measure, so it improves by construction; "
            "compare the other measures."
        )
    said.append(
        f"{PARETO}: Pareto-optimal; no other method is at least as good by {report.effectiveness[0]} and by this "
        "measure, and better by one of them."
    )
    if any(row.method.bound for row in report.rows):
        said.append(f"{BOUND}: an upper bound that selects by the judgements; not a system, and not on a Pareto front.")
    return said


# Draw effectiveness against lean, with a curve for each method that is run with several values of its strength.

# The charts for each measure of lean, by title, and which methods are in each chart.
PANELS: Mapping[str, Callable[[MitigationMethod], bool]] = {
    "Results reordered": lambda one: all(part.kind == REORDER for part in one.parts),
    "Queries reformulated": lambda one: any(part.kind == REFORMULATE for part in one.parts),
    "Other methods (rankers, reranking models and runs)": lambda one: (
        {part.kind for part in one.parts}.isdisjoint({REFORMULATE})
        and not all(part.kind == REORDER for part in one.parts)
    ),
}


def curve_figures(files: PageParts, report: BenchReport, lean: str, mark: str) -> list[Markup]:
    """Draw the first measure of effectiveness against one of lean: one chart per kind of method, with equal axes."""
    base, *others = report.rows
    labels, effect = labels_of(report), report.effectiveness[0]
    across, up = ([row.cells[one].mean for row in report.rows] for one in (lean, effect))
    front = sorted((row.cells[lean].mean, row.cells[effect].mean) for row in report.rows if lean in row.pareto)
    drawn = []
    for title, belongs in PANELS.items():
        rows = [row for row in others if belongs(row.method)]
        if not rows:
            continue
        curves, single = curves_of([row for row in rows if not row.method.bound])
        bounds = [row for row in rows if row.method.bound]
        named = {f"base: {base.method.text}": [base], "other methods": single, "upper bound": bounds}
        groups = [
            _points(name, some, lean, effect, [row.method.row_text for row in some])
            for name, some in named.items()
            if some
        ]
        lines, bands = [Line("Pareto front", np.array(front)[:, 0], np.array(front)[:, 1], 5)], []
        for mine in curves:
            place = len(groups)
            name = f"{mine[0].method.family} @ {mine[0].method.strength:g} to {mine[-1].method.strength:g}"
            # Only the last point is labeled. The line has no name, because the points of the curve are in the legend.
            ends = [*[""] * len(mine), mine[-1].method.row_text]
            groups.append(_points(name, [base, *mine], lean, effect, ends))
            lines.append(Line("", groups[-1].x, groups[-1].y, place))
            bands += _band(report, [base, *mine], lean, effect, place)
        lines += [bar for row in single for bar in _bars(report, row, lean, effect)]
        about = About(
            slug(f"{mark} {lean} {title}", files.charts, before="pareto"), f"{title}: {effect} against {lean}",
            f"Each point is a method: the mean of {labels[effect]} on the vertical axis, the mean of {labels[lean]} on "
            "the horizontal axis. One line joins the Pareto-optimal methods. Each other line joins the points of one "
            "method with different strengths.",
        )  # fmt: skip
        axes = f"mean of {labels[lean]}", f"mean of {labels[effect]}"
        chart = scatter(about, groups, *axes, lines, size=4.5, height=340, bands=bands, room=(across, up))
        note = "The Pareto front is computed over all methods, including methods that are not in this figure."
        drawn.append(files.chart(about, chart, note))
    return drawn


def curves_of(rows: Sequence[Row]) -> tuple[list[list[Row]], list[Row]]:
    """Split rows into curves (methods run with two or more strengths, in ascending order) and single rows."""
    strong = sorted(
        (row for row in rows if row.method.strength is not None),
        key=lambda row: (row.method.family, row.method.strength),
    )
    found = [list(mine) for _, mine in groupby(strong, key=lambda row: row.method.family)]
    curves = [mine for mine in found if len(mine) > 1]
    in_curves = {row.method.row_text for mine in curves for row in mine}
    return curves, [row for row in rows if row.method.row_text not in in_curves]


def _points(name: str, rows: Sequence[Row], lean: str, effect: str, labels: list[str]) -> Points:
    x, y = (np.array([row.cells[one].mean for row in rows], np.float64) for one in (lean, effect))
    return Points(name, x, y, labels)


def _band(report: BenchReport, rows: Sequence[Row], lean: str, effect: str, series: int) -> list[Band]:
    """Return the interval of effectiveness along a curve; empty if there are too few queries for intervals."""
    if min(row.cells[effect].n for row in rows) < FEWEST:
        return []
    start = rows[0].cells[effect].mean
    ends = [np.array([start, start]), *(_ends(report, row, effect) for row in rows[1:])]
    x = np.array([row.cells[lean].mean for row in rows])
    low, high = (np.array([pick(pair) for pair in ends]) for pick in (np.min, np.max))
    return [Band(x, low, high, series)] if np.isfinite([low, high]).all() else []


def _bars(report: BenchReport, row: Row, lean: str, effect: str) -> list[Line]:
    """Return the intervals of the difference from the base along both axes, as lines through the point."""
    if min(row.cells[one].n for one in (lean, effect)) < FEWEST:
        return []
    x, y = row.cells[lean].mean, row.cells[effect].mean
    ends = [_ends(report, row, one) for one in (lean, effect)]
    lines = (ends[0], np.array([y, y])), (np.array([x, x]), ends[1])
    return [Line("", *line, 1, 0.75) for line, end in zip(lines, ends, strict=True) if np.isfinite(end).all()]


def _ends(report: BenchReport, row: Row, name: str) -> Any:
    found = row.cells[name].against
    assert found is not None
    way = 1.0 if {one.text: one.direction for one in report.asked}[name] is Direction.UP else -1.0
    return np.array([np.nan if end is None else found.old + way * end for end in (found.low, found.high)])


_BETTER = {Direction.UP: "higher", Direction.DOWN: "lower", Direction.ZERO: "nearer zero"}
_CURVES = (
    "The parameter 'strength' sets how strongly a method reduces lean. A curve shows a method that was run with "
    "several strengths, and a point shows any other method. The band of a curve and the bars of a point are 95% "
    "intervals of the difference from the base, paired by query."
)
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
    rules = dict.fromkeys(rule for report in reports for rule in report.rules)
    notes = [
        f"{f'{_title(report)}: ' if len(reports) > 1 else ''}{note}" for report in reports for note in report.notes
    ]
    groups = next((report.groups for report in reports if report.groups is not None), None)
    counted = (
        "By default, measures of lean count the groups female and male."
        if groups is None
        else f"The counted groups are {_groups_text(groups)}."
    )
    sections.append(Section("rules", "How methods work", [listed([*rules, *notes])]))
    limits = [NOT_BIAS, f"{counted} Other groups are not measured.", *_LIMITS]
    sections.append(Section("limits", "Limits", [listed(limits)]))
    foot = [paragraph("askew bench uses no random sampling to compute the numbers on this page.")]
    lead = (
        "Effectiveness and bias (lean) of each mitigation method, on the same queries, compared with the base ranker."
    )
    head = [paragraph(lead, kind="lead"), *([_facts(reports[0])] if len(reports) == 1 else [])]
    names = ", ".join(dict.fromkeys(Path(report.collection).name for report in reports))
    page = document(f"Mitigation methods on {names}", head, sections, foot)
    every = {"report.html": page.encode(), **files.files()}
    if len(reports) == 1:
        every["tables/queries.csv"] = reports[0].per_query().write_csv().encode()
        every |= write_scores(reports[0])
    return write_report(out, every)


def _sections(files: PageParts, report: BenchReport, mark: str) -> list[Section]:
    """Return the sections of one collection; with a ``mark`` (several collections), merge them into one section."""
    bodies = {
        ("methods", "Mitigation methods"): [files.table(methods_table(report, mark), report.to_polars())],
        ("curves", "Effectiveness against lean"): [
            paragraph(_CURVES),
            figures(*(one for lean in report.leans for one in curve_figures(files, report, lean, mark))),
        ],
        ("changes", "Changes"): [files.table(changes_table(report, mark))],
        **(
            {("effects", "Beyond chance"): [files.table(effects)]}
            if (effects := report.effects(_named("effects", mark)))
            else {}
        ),
        ("measures", "Measures"): [_measures(files, report, mark)],
    }
    if not mark:
        return [Section(*names, body) for names, body in bodies.items()]
    merged = [one for (_, title), body in bodies.items() for one in (heading(title), *body)]
    return [Section(mark, _title(report), [_facts(report), *merged])]


def _title(report: BenchReport) -> str:
    """The collection and the base ranker: two benches of one page may share the collection."""
    return f"{Path(report.collection).name}, base {report.rows[0].method.text}"


def _facts(report: BenchReport) -> Markup:
    return facts([
        ("collection", code(report.collection)), ("queries", n.count(len(report.query_ids))),
        ("groups", "each measure counts its default groups" if report.groups is None else _groups_text(report.groups)),
        ("base", code(report.rows[0].method.text)), ("documents per query", n.count(report.k)),
        ("tests", f"{_tests(report)}; each family is corrected by Holm's method"),
    ])  # fmt: skip


def _groups_text(groups: Mapping[str, Any]) -> str:
    return f"{', '.join(groups['names'])} (lexicon {groups['lexicon_name']})"


def _named(name: str, mark: str) -> str:
    return f"{name}-{mark}" if mark else name


def methods_table(report: BenchReport, mark: str = "") -> Table:
    """The mean of each measure for each method with its change from the base, and the costs of the method."""
    labels = labels_of(report)
    head = [Column("method", CODE), *(Column(label) for label in labels.values()),
            Column("searches per query", digits=1), Column("model calls per query", digits=1),
            Column("top 10 kept", digits=0, unit="%"), Column("reformulated queries"),
            Column("queries without results")]  # fmt: skip
    rows: list[list[TableCell]] = []
    for row in report.rows:
        means = []
        for name, cell in row.cells.items():
            change = "" if cell.against is None else f" ({n.change(cell.change)})"
            means.append(f"{n.mean(cell.mean)}{change}{f' {PARETO}' if name in row.pareto else ''}")
        costs = row.costs
        rows.append([row.label, *means, costs.searches, costs.model_calls, 100 * costs.kept, costs.reformulated,
                     costs.empty])  # fmt: skip
    notes = [
        *marks_note(report),
        "Model calls: number of texts, or pairs of texts, that neural networks read or write. Top 10 kept: the share "
        "of the top 10 of the base that is also in the top 10 of the method, as a mean over queries with results. "
        "No value: not known.",
    ]
    caption = (
        f"{report.collection}: means over {len(report.query_ids):,} queries, {report.k:,} documents each, with the "
        f"change from {report.rows[0].method.text} in percent"
    )
    return table(_named("methods", mark), caption, head, rows, *notes)


def changes_table(report: BenchReport, mark: str = "") -> Table:
    """Each method compared with the base by each measure: change, gain and tests."""
    p = partial(Column, digits=3, least=0.001)
    head = [Column("method", CODE), Column("n queries"), Column("mean"),
            Column("change [95%]", digits=1, signed=True, unit="%"), Column("gain [95%]", signed=True), p("p"),
            p("p (Holm)"), Column("nonzero queries"), Column("improved queries"), Column("worsened queries"),
            Column("means by seed", NAME)]  # fmt: skip
    groups = [
        Group(label, [_change_row(row, name) for row in report.rows]) for name, label in labels_of(report).items()
    ]
    note = (
        "Change: change of the mean, in percent of the mean of the base. Gain: how much better the method is than the "
        "base, as a mean over queries; positive is better. All intervals cover variation over queries, not "
        f"over seeds. The column p has the p-value for the null hypothesis that {NULLS[report.test]} (test: "
        f"{report.test}), from which the interval of the gain comes too. The column p (Holm) has the p-value after "
        f"correction by Holm's method within each family of tests ({_tests(report)}). Nonzero queries: queries with a "
        f"value other than 0; for fewer than {FEWEST_NONZERO} of them, no change in percent is shown, and if "
        f"fewer than {FEWEST_NONZERO} and fewer than half of the queries differ, no interval."
    )
    caption = "Each method compared with the base, paired by query"
    return Table(_named("changes", mark), caption, head, groups, [marks_note(report)[0], note])


def _tests(report: BenchReport) -> str:
    return " and ".join(f"{number} of {family}" for family, number in report.tests.items())


def _change_row(row: Row, name: str) -> list[TableCell]:
    cell, found = row.cells[name], row.cells[name].against
    seeds = " ".join(n.mean(one) for one in row.seeds.get(name, [])) or None
    if found is None:
        return [row.label, cell.n, cell.mean, *[None] * 7, seeds]
    # With too few queries, an interval is not shown.
    change, gain = (cell.low, cell.high), (found.low, found.high)
    if cell.n < FEWEST:
        change = gain = (None, None)
    return [
        row.label, cell.n, cell.mean, None if cell.change is None else Estimate(cell.change, *change),
        Estimate(found.gain, *gain), found.p, cell.p_holm, found.nonzero, found.improved, found.worsened, seeds,
    ]  # fmt: skip


def bench_charts(report: BenchReport) -> dict[str, Markup]:
    """The charts of effectiveness against each measure of lean, by name."""
    files = PageParts()
    for lean in report.leans:
        curve_figures(files, report, lean, "")
    return files.charts


def _measures(files: PageParts, report: BenchReport, mark: str) -> Markup:
    head = [Column("measure", CODE), Column("better", WORDS), Column("signature", CODE)]
    rows = [[one.text, _BETTER[one.direction], one.signature] for one in report.asked]
    note = (
        "A signature lists every setting that the value of a measure depends on. Some measures, such as NFaiRR, "
        "compare the results with the documents of a background run. Their signatures identify this run by a hash."
    )
    data = pl.DataFrame(rows, schema=["measure", "better", "signature"], orient="row")
    return files.table(table(_named("measures", mark), "Measures", head, rows, note), data)
