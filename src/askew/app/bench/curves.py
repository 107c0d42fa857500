"""Draw effectiveness against lean, with a curve for each method that is run with several values of its strength."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from askew.app.bench.labels import labels_of
from askew.app.bench.methods import REFORMULATE, REORDER, MitigationMethod
from askew.app.bench.results import BenchReport, Row
from askew.core.figures import FEWEST
from askew.core.measure import Direction
from askew.publish.page.charts import Band, Line, Points, scatter
from askew.publish.page.frame import About
from askew.publish.page.markup import Markup
from askew.publish.page.parts import PageParts, slug

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
    effect = report.effectiveness[0]
    room = tuple([row.cells[one].mean for row in report.rows] for one in (lean, effect))
    found = []
    for title, belongs in PANELS.items():
        rows = [row for row in others if belongs(row.method)]
        if rows:
            found.append(_figure(files, report, lean, mark, title, [base, *rows], (room[0], room[1])))
    return found


def _figure(
    files: PageParts, report: BenchReport, lean: str, mark: str, title: str, rows: Sequence[Row],
    room: tuple[Sequence[float], Sequence[float]],
) -> Markup:  # fmt: skip
    labels, effect, (base, *others) = labels_of(report), report.effectiveness[0], rows
    curves, single = curves_of([row for row in others if not row.method.bound])
    bounds = [row for row in others if row.method.bound]
    groups = [_points(f"base: {base.method.text}", [base], lean, effect)]
    groups += [_points("other methods", single, lean, effect)] if single else []
    groups += [_points("upper bound", bounds, lean, effect)] if bounds else []
    lines, bands = [_front(report, lean, effect)], []
    for mine in curves:
        place = len(groups)
        groups.append(_curve(base, mine, lean, effect))
        # The line has no name, because the points of the curve are in the legend.
        lines.append(Line("", groups[-1].x, groups[-1].y, place))
        bands += _band(report, [base, *mine], lean, effect, place)
    lines += [bar for row in single for bar in _bars(report, row, lean, effect)]
    about = About(
        slug(f"{mark} {lean} {title}", files.charts, before="pareto"), f"{title}: {effect} against {lean}",
        f"Each point is a method: the mean of {labels[effect]} on the vertical axis, the mean of {labels[lean]} on the "
        "horizontal axis. One line joins the Pareto-optimal methods. Each other line joins the points of one "
        "method with different strengths.",
    )  # fmt: skip
    axes = f"mean of {labels[lean]}", f"mean of {labels[effect]}"
    drawn = scatter(about, groups, *axes, lines, size=4.5, height=340, bands=bands, room=room)
    return files.chart(
        about, drawn, "The Pareto front is computed over all methods, including methods that are not in this figure."
    )


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


def _front(report: BenchReport, lean: str, effect: str) -> Line:
    front = sorted((r.cells[lean].mean, r.cells[effect].mean) for r in report.rows if lean in r.pareto)
    return Line("Pareto front", np.array([x for x, _ in front]), np.array([y for _, y in front]), 5)


def _points(name: str, rows: Sequence[Row], lean: str, effect: str) -> Points:
    x, y = (np.array([row.cells[one].mean for row in rows], np.float64) for one in (lean, effect))
    return Points(name, x, y, [row.method.row_text for row in rows])


def _curve(base: Row, rows: Sequence[Row], lean: str, effect: str) -> Points:
    """Return the points from the base to the highest strength; only the last point is labeled."""
    every = [base, *rows]
    x, y = (np.array([row.cells[one].mean for row in every], np.float64) for one in (lean, effect))
    strengths = [row.method.strength for row in rows]
    name = f"{rows[0].method.family} @ {strengths[0]:g} to {strengths[-1]:g}"
    return Points(name, x, y, [*[""] * len(strengths), rows[-1].method.row_text])


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
