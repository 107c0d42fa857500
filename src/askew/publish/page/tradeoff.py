"""Sections of the report of a selection: effectiveness against lean, the effect of methods, outcomes, examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from askew.core.measure import Direction, new_column, old_column
from askew.core.ranking import Floats
from askew.publish.page import numerals as n
from askew.publish.page.charts import Line, Points, scatter
from askew.publish.page.document import Section, figures, paragraph
from askew.publish.page.frame import About
from askew.publish.page.markup import Markup
from askew.publish.page.parts import PageParts
from askew.publish.page.table import CODE, QUOTE, Column, Group, Table, columns, table


@dataclass(frozen=True)
class Side:
    """One of the two measures of the trade-off: effectiveness or lean."""

    measure: str
    label: str
    direction: Direction


def tradeoff_section(
    files: PageParts, clouds: Sequence[Points], words: str, methods: pl.DataFrame, sides: tuple[Side, Side], subset: str
) -> Section:
    """Effectiveness (the first of ``sides``) against lean: pairs as points, and the means of each method."""
    effectiveness, lean = sides
    told = (
        "Each point is a pair of an original query and its reformulation. Points further right are better by "
        f"{lean.label}; higher points are better by {effectiveness.label}. {words}"
    )
    about = About("tradeoff", "Gains in effectiveness and in lean (a gain in lean is less lean)", told)
    gains = f"gain on {lean.label}", f"gain on {effectiveness.label}"
    drawn = files.chart(about, scatter(about, clouds, *gains, size=3, opacity=0.55, zero=True), words)
    body = [figures(drawn, _method_figure(files, methods, sides)), *_method_tables(files, methods, sides, subset)]
    return Section("trade-off", "Effectiveness and lean", body)


def methods_section(files: PageParts, methods: pl.DataFrame, side: Side, subset: str) -> Section:
    """The effect of each method, if only effectiveness is measured."""
    return Section("methods", "Methods", _method_tables(files, methods, (side,), subset))


def _method_figure(files: PageParts, methods: pl.DataFrame, sides: tuple[Side, Side]) -> Markup:
    """A chart of the means of each method: of all its candidates, and of their original queries."""
    every = methods.unique(["method", "measure"], keep="first", maintain_order=True)
    y, x = (every.filter(measure=side.measure).select("method", "old_mean", "new_mean") for side in sides)
    both = x.join(y, on="method", suffix="_y", maintain_order="left").drop_nulls()
    if not len(both):
        return Markup()
    old_x, new_x, old_y, new_y = (column.to_numpy() for column in both.drop("method").iter_columns())
    rows = both.drop("method").rows()
    moves = [Line("", np.array([row[0], row[1]]), np.array([row[2], row[3]]), 4, 1) for row in rows]
    front = front_of(new_x, new_y, sides[1].direction, sides[0].direction)
    groups = [Points("after", new_x, new_y, _short(both["method"].to_list())), Points("before", old_x, old_y)]
    lines = [*moves, *([Line("Pareto front", new_x[front], new_y[front], 2)] if len(both) > 1 else [])]
    told = (
        f"For each method, the chart shows the means of {sides[0].label} and {sides[1].label} before (original "
        "queries) and after (all candidate reformulations of the method)."
    )
    about = About("methods", f"Means of {sides[0].label} and {sides[1].label} before and after, by method", told)
    drawn = scatter(about, groups, f"mean of {sides[1].label}", f"mean of {sides[0].label}", lines, size=5)
    words = (
        "The means of a method are over all its candidates, including those that were not selected. Thin lines connect "
        "the mean of the original queries (before) with the mean of their candidates (after). The thick line is the "
        "Pareto front."
    )
    return files.chart(about, drawn, words)


def _short(names: list[str]) -> list[str]:
    """The names without the settings in parentheses, if they are still distinct."""
    short = [name.partition(" (")[0] for name in names]
    return short if len(set(short)) == len(short) else names


def front_of(x: Floats, y: Floats, x_better: Direction, y_better: Direction) -> list[int]:
    """The Pareto-optimal points, from left to right. Means of a measure best at zero are distances from zero."""
    a, b = (values if better is Direction.UP else -values for values, better in ((x, x_better), (y, y_better)))
    beaten = [bool(np.any((a >= a[i]) & (b >= b[i]) & ((a > a[i]) | (b > b[i])))) for i in range(len(a))]
    return sorted((i for i in range(len(a)) if not beaten[i]), key=lambda i: (x[i], y[i]))


def _method_tables(files: PageParts, methods: pl.DataFrame, sides: Sequence[Side], subset: str) -> list[Markup]:
    """How often each method is chosen, and the effect of its candidates (all, and chosen) on each measure."""
    found = methods.unique("method", keep="first", maintain_order=True)
    rows = [
        [row["method"], n.count(row["pairs"]), n.count(row["method_queries"]), n.count(row["won"]),
         n.share(row["won_share"]), n.share_interval(row["won_low"], row["won_high"])]
        for row in found.iter_rows(named=True)
    ]  # fmt: skip
    head = columns("method", "candidates", "queries", "chosen for", "share", "95% interval", kind=CODE)
    note = (
        "Queries: the number of queries that the method reformulated. Chosen for: the number of these queries for "
        f"which a reformulation by the method is in the subset {subset}. Share: the number 'chosen for' divided by the "
        "number of queries, with a 95% Wilson interval."
    )
    shares = found.select("method", "pairs", "method_queries", "won", "won_share", "won_low", "won_high")
    used = files.table(
        table(
            "methods-chosen", "Number of queries for which a reformulation by the method was selected", head, rows, note
        ),
        shares,
    )
    told = columns("method", "candidates", "before", "after", "change", "95% interval", "chosen", "before", "after",
                   "change", "95% interval", kind=CODE)  # fmt: skip
    groups = [Group(side.label, _method_rows(methods.filter(measure=side.measure))) for side in sides]
    note = (
        "The column 'candidates' and the four columns after it are for all candidate reformulations of a method. The "
        "column 'chosen' and the four columns after it are for the candidates of the method that were chosen. The "
        "intervals treat the queries as a random sample."
    )
    return [
        used,
        files.table(
            Table("methods", "Means of each measure before and after reformulation, by method", told, groups, [note]),
            methods,
        ),
    ]


def _method_rows(part: pl.DataFrame) -> list[list[str]]:
    rows = []
    for method in part.partition_by("method", maintain_order=True):
        cells = [
            (n.count(row["pairs"]), n.mean(row["old_mean"]), n.mean(row["new_mean"]), n.change(row["change"]),
             n.interval_of(row))
            for row in method.iter_rows(named=True)
        ]  # fmt: skip
        rows.append([method.item(0, "method"), *(text for cell in cells for text in cell)])
    return rows


_ROWS = {"better": "retrieves better", "same": "retrieves the same", "worse": "retrieves worse"}
_COLUMNS = {"less": "leans less", "same": "leans the same", "more": "leans more"}


def outcomes_section(files: PageParts, found: pl.DataFrame, measures: str) -> Section:
    """The nine outcomes, among all candidates and among the chosen."""
    groups = []
    for part in found.partition_by("of", maintain_order=True):
        cells = {row["outcome"]: _outcome_cell(row) for row in part.iter_rows(named=True)}
        rows = [[words, *(cells[f"{side}-{lean}"] for lean in _COLUMNS)] for side, words in _ROWS.items()]
        groups.append(Group(f"{part.item(0, 'of')}: {part.item(0, 'n'):,} pairs", rows))
    note = (
        f"A pair is an original query and its reformulation. The outcome of a pair is decided by {measures}. Each cell "
        "has the number of pairs with this outcome, their share of all pairs, and the 95% interval of the share."
    )
    given = Table("outcomes", "Nine outcomes", columns("", *_COLUMNS.values()), groups, [note])
    return Section("outcomes", "Outcomes", [files.table(given, found)])


def _outcome_cell(row: dict[str, Any]) -> str:
    return f"{n.count(row['pairs'])} = {n.share(row['share'])} {n.share_interval(row['low'], row['high'])}"


def examples_section(files: PageParts, tables: Mapping[str, pl.DataFrame], measures: Mapping[str, str]) -> Section:
    """The texts of a few pairs; ``tables`` maps captions to pairs, ``measures`` maps measures to labels."""
    head = [Column("original", QUOTE), Column("reformulated", QUOTE), Column("method", CODE)]
    head += [Column(label) for label in measures.values()]
    body = [
        paragraph(
            "A pair is an original query and its reformulation. The tables list the pairs with the largest gains and "
            "losses, which are not typical. Scores are given as: score of the original query → score of the "
            "reformulation."
        )
    ]
    for number, (caption, rows) in enumerate(tables.items(), 1):
        cells = [_example_row(row, list(measures)) for row in rows.iter_rows(named=True)]
        body.append(files.table(table(f"examples-{number}", caption, head, cells)))
    return Section("examples", "Examples", body)


def _example_row(row: dict[str, Any], measures: Sequence[str]) -> list[str]:
    moves = [f"{n.mean(row[old_column(name)], 3)} → {n.mean(row[new_column(name)], 3)}" for name in measures]
    return [row["original_text"], row["text"], row["method"], *moves]
