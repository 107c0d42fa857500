"""Sections of the report of a selection: before and after, comparisons, other rankers, improved queries.

Each function takes data frames of ``askew.pairs`` and returns a section; texts are escaped when they are inserted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from askew.core.defaults import FEWEST, HELD_OUT, IN_SAMPLE, size_of
from askew.core.measure import Direction, new_column, old_column
from askew.core.ranking import Floats
from askew.core.store.manifest import Manifest
from askew.pairs.dataset.card import LIMITS, NOT_BIAS, group_limit
from askew.report import markup as n
from askew.report.charts import About, Interval, Line, Points, bars, dots, scatter, sorted_gains
from askew.report.markup import Markup, tag
from askew.report.page import PageParts, Section, figures, folded, heading, labels_note, listed, paragraph, slug
from askew.report.table import CODE, QUOTE, WORDS, Cell, Column, Group, Table, columns, table

Row = dict[str, Any]


def _shares(row: Row, name: str) -> list[str]:
    """A count, its share and the interval of the share."""
    ends = n.share_interval(row[f"{name}_low"], row[f"{name}_high"])
    return [n.count(row[name]), n.share(row[f"{name}_share"]), ends]


def _means(row: Row, queries: str = "queries") -> list[str]:
    """The means before and after, their change and its interval; ``queries`` names the column of their number."""
    return [n.mean(row["old_mean"]), n.mean(row["new_mean"]), n.change(row["change"]), n.interval_of(row, queries)]


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
        [row["method"], n.count(row["pairs"]), n.count(row["method_queries"]), *_shares(row, "won")]
        for row in found.iter_rows(named=True)
    ]
    head = columns("method", "candidates", "queries", "chosen for", "share", "95% interval", kind=CODE)
    note = (
        "Queries: the number of queries that the method reformulated. Chosen for: the number of these queries for "
        f"which a reformulation by the method is in the subset {subset}. Share: the number 'chosen for' divided by the "
        "number of queries, with a 95% Wilson interval."
    )
    shares = found.select("method", "pairs", "method_queries", "won", "won_share", "won_low", "won_high")
    caption = "Number of queries for which a reformulation by the method was selected"
    used = files.table(table("methods-chosen", caption, head, rows, note), shares)
    groups = []
    for side in sides:
        parts = methods.filter(measure=side.measure).partition_by("method", maintain_order=True)
        lines = []
        for part in parts:
            cells = [text for row in part.rows(named=True) for text in (n.count(row["pairs"]), *_means(row))]
            lines.append([part.item(0, "method"), *cells])
        groups.append(Group(side.label, lines))
    values = ("before", "after", "change", "95% interval")
    head = columns("method", "candidates", *values, "chosen", *values, kind=CODE)
    note = (
        "The column 'candidates' and the four columns after it are for all candidate reformulations of a method. The "
        "column 'chosen' and the four columns after it are for the candidates of the method that were chosen. The "
        "intervals treat the queries as a random sample."
    )
    caption = "Means of each measure before and after reformulation, by method"
    return [used, files.table(Table("methods", caption, head, groups, [note]), methods)]


_ROWS = {"better": "retrieves better", "same": "retrieves the same", "worse": "retrieves worse"}
_COLUMNS = {"less": "leans less", "same": "leans the same", "more": "leans more"}


def outcomes_section(files: PageParts, found: pl.DataFrame, measures: str) -> Section:
    """The nine outcomes, among all candidates and among the chosen."""
    groups = []
    for part in found.partition_by("of", maintain_order=True):
        cells = {}
        for row in part.iter_rows(named=True):
            share = f"{n.share(row['share'])} {n.share_interval(row['low'], row['high'])}"
            cells[row["outcome"]] = f"{n.count(row['pairs'])} = {share}"
        rows = [[words, *(cells[f"{side}-{lean}"] for lean in _COLUMNS)] for side, words in _ROWS.items()]
        groups.append(Group(f"{part.item(0, 'of')}: {part.item(0, 'n'):,} pairs", rows))
    note = (
        f"A pair is an original query and its reformulation. The outcome of a pair is decided by {measures}. Each cell "
        "has the number of pairs with this outcome, their share of all pairs, and the 95% interval of the share."
    )
    given = Table("outcomes", "Nine outcomes", columns("", *_COLUMNS.values()), groups, [note])
    return Section("outcomes", "Outcomes", [files.table(given, found)])


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
        cells = [
            [row["original_text"], row["text"], row["method"]]
            + [f"{n.mean(row[old_column(name)], 3)} → {n.mean(row[new_column(name)], 3)}" for name in measures]
            for row in rows.iter_rows(named=True)
        ]
        body.append(files.table(table(f"examples-{number}", caption, head, cells)))
    return Section("examples", "Examples", body)


_WHICH = {
    "original better": "every candidate is worse than the original query (the definition in RePair's tables)",
    "none better": "no candidate is better than the original query (the definition in Eq. 1 of RePair)",
}


@dataclass(frozen=True)
class Refined:
    """The tables that ``askew.pairs`` computes for boxes: queries, boxes, buckets and hard queries."""

    queries: pl.DataFrame
    boxes: pl.DataFrame
    buckets: pl.DataFrame
    hard: pl.DataFrame


def refined_section(files: PageParts, found: Refined, measure: str, ranker: str, collection: str) -> Section:
    """Tables 2, 4 and 5 of RePair, and its buckets."""
    body = [
        heading("The queries"), _queries(files, found.queries, collection),
        heading("Refined queries"), _boxes(files, found.boxes, measure),
        heading("Originals in buckets"), _buckets(files, found.buckets, measure),
        heading("Hard queries"), _hard(files, found.hard, measure, ranker),
    ]  # fmt: skip
    return Section("refined", "Refined and hard queries, as in the RePair paper", body)


def _queries(files: PageParts, found: pl.DataFrame, collection: str) -> Markup:
    row = found.row(0, named=True)
    head = columns("collection", "queries", "mean words", "documents", "judgements per query", "users", kind=CODE)
    cells = [collection, row["queries"], n.mean(row["mean_words"], 2), row["documents"]]
    cells += [n.mean(row["judgements"], 2), row["users"]]
    caption = "Statistics of the collection, as in Table 2 of the RePair paper"
    return files.table(table("queries", caption, head, [cells]), found)


def _boxes(files: PageParts, found: pl.DataFrame, measure: str) -> Markup:
    head = columns("box", "originals", "mean of all", "refined", "share", "95% interval", "mean words", "before",
                   "after", "change", "95% interval", "value 1", "share", "95% interval", kind=CODE)  # fmt: skip
    rows = [
        [row["box"], n.count(row["originals"]), n.mean(row["all_mean"]), *_shares(row, "refined"),
         n.mean(row["mean_words"], 2), *_means(row, "refined"), *_shares(row, "oracles")]
        for row in found.iter_rows(named=True)
    ]  # fmt: skip
    note = (
        "Candidates are reformulations of an original query; a box is a subset of the candidates. Refined: number of "
        "original queries that have a candidate in the box. The columns 'mean words', 'before', 'after' and 'change' "
        "are for these original queries only. If several candidates of an original query are in the box, only the "
        f"candidate with the best {measure} is used. Mean words: mean number of words of the used candidates. After: "
        f"mean {measure} of the used candidates. Value 1: number of used candidates with a {measure} of 1. Each share "
        "is a share of all original queries, with its 95% Wilson interval."
    )
    caption = f"Boxes (subsets of the candidates) by {measure}, as in Table 4 of the RePair paper"
    return files.table(table("boxes", caption, head, rows, note), found)


def _buckets(files: PageParts, found: pl.DataFrame, measure: str) -> Markup:
    if not len(found):
        return paragraph("No original query has a candidate reformulation.")
    rows = [
        [n.count(row["bucket"]), n.count(row["queries"]), n.mean(row["old_mean"]), n.mean(row["new_mean"])]
        for row in found.iter_rows(named=True)
    ]
    caption = (
        f"Mean {measure} of the original queries, in buckets with equal numbers of queries (bucket 1: lowest values)"
    )
    note = (
        f"The best candidate of an original query has the best {measure} of all candidates of this query, selected or "
        f"not. The column 'best candidates' has the mean {measure} of the best candidates."
    )
    given = table("buckets", caption, columns("bucket", "queries", "originals", "best candidates"), rows, note)
    told = (
        f"Each bucket contains original queries with similar {measure}. For each bucket, the bars show the mean "
        f"{measure} of the original queries and the mean {measure} of their best candidates."
    )
    about = About("buckets", f"Mean {measure} of original queries and best candidates, by bucket", told)
    series = {"originals": found["old_mean"].to_list(), "best candidates": found["new_mean"].to_list()}
    drawn = bars(about, [f"bucket {row[0]}" for row in rows], series, f"mean {measure}")
    return figures(
        tag("div", files.table(given, found)),
        files.chart(about, drawn, f"Bucket 1 contains the original queries with the lowest {measure}."),
    )


def _hard(files: PageParts, found: pl.DataFrame, measure: str, ranker: str) -> Markup:
    head = columns("hard if", "queries", "hard", "share", "95% interval", kind=WORDS)
    note = (
        "Only original queries that have a candidate reformulation are counted. A query is hard if it meets the "
        f"condition in the column 'hard if'. The condition uses values of {measure} from searches with {ranker}. "
        "Intervals are Wilson intervals."
    )
    if "ranker" in found.columns:
        told = ("scored by both", f"originals, {ranker}", "originals, other", f"best candidates, {ranker}",
                "best candidates, other", "improved, other", "share", "95% interval")  # fmt: skip
        head += [Column("other ranker", CODE), *map(Column, told)]
        note += (
            f" The best candidate of a query has the best {measure} with {ranker}. Scored by both: number of hard "
            f"queries that have values with {ranker} and with the ranker in the column 'other ranker'. The columns "
            "after 'scored by both' use only these hard queries. The columns 'originals' and 'best candidates' have "
            f"the mean {measure} with {ranker} and with the other ranker. Improved, other: number of these hard "
            f"queries whose best candidate has a better {measure} than the original query, both searched with the "
            "other ranker."
        )
    rows = []
    for row in found.iter_rows(named=True):
        cells = [_WHICH[row["which"]], n.count(row["queries"]), *_shares(row, "hard")]
        if "ranker" in row:
            means = [n.mean(row[f"{name}_mean"]) for name in ("old", "other_old", "new", "other_new")]
            cells += [row["ranker"], n.count(row["scored"]), *means, *_shares(row, "improved")]
        rows.append(cells)
    caption = f"Hard queries by {measure}, as in Table 5 of the RePair paper"
    return files.table(table("hard", caption, head, rows, note), found)


def making_section(
    files: PageParts, steps: Mapping[str, Manifest], measures: Sequence[Mapping[str, str]], recipe: str
) -> Section:
    """The steps of the run with their numbers of rows, the measures (name, signature, better, part) and the recipe."""
    head = [
        *columns("step", "rows in", "rows out", kind=CODE),
        Column("dropped, by reason", WORDS),
        Column("key", CODE),
    ]
    rows, counts = list[list[Cell]](), []
    for name, one in steps.items():
        why = "; ".join(f"{count:,} {reason}" for reason, count in one.dropped.items())
        rows.append([name, one.rows_in, one.rows_out, why or n.NONE, one.key])
        counts.append({
            "step": name, "stage": one.stage, "key": one.key, "rows_in": one.rows_in, "rows_out": one.rows_out,
            "dropped": sum(one.dropped.values()), "reasons": why,
        })  # fmt: skip
    note = "The key of a step identifies its settings and inputs. Steps with the same key have the same output."
    kinds = {"measure": CODE, "better": WORDS, "role in the selection of pairs": WORDS, "signature": CODE}
    told = [Column(label, kind) for label, kind in kinds.items()]
    lines = [[one["name"], one["better"], one["part"], one["signature"]] for one in measures]
    body = [
        files.table(table("steps", "Steps of the run", head, rows, note), pl.DataFrame(counts)),
        files.table(table("measures", "Measures", told, lines), pl.DataFrame(list(measures))),
        folded("The recipe, including changes from the command line", recipe),
    ]
    return Section("run", "How these results were computed", body)


def limits_section(groups: Sequence[str]) -> Section:
    """The limits of the numbers; ``groups`` are the groups that the measures count."""
    return Section("limits", "Limits of these numbers", [listed([NOT_BIAS, group_limit(groups), *LIMITS])])


_SAID = {
    "offtopic": "off topic",
    "asked": "asked for",
    "warranted": "on topic",
    "ontopic": "on topic or asked for",
    "real": "a real person",
    "fictional": "a fictional character",
    "generic": "people in general",
    "name": "part of a name",
    "other": "no person",
}


def part_name(name: str) -> str:
    """The name of a part of a measure of lean on pages."""
    return _SAID.get(name, name)


@dataclass(frozen=True)
class CountedParts:
    """The parts of a measure of lean, for original and chosen queries; ``data`` has one row for each part."""

    measure: str
    resolver: str
    queries: int
    data: pl.DataFrame


def counted_section(files: PageParts, found: CountedParts) -> Section:
    """A table of the share of each part and what it adds to the mean (net), for original and chosen queries."""
    rows = []
    for kind, name in found.data.select("kind", "name").unique(maintain_order=True).rows():
        cells = [f"{kind}: {part_name(name)}"]
        for side in ("original", "chosen"):
            here = found.data.filter(queries=side, kind=kind, name=name)
            if not len(here):
                cells += ["", "", ""]
                continue
            one = here.row(0, named=True)
            cells += [n.share(one["share"]), n.share_interval(one["low"], one["high"]), n.mean(one["net"])]
        rows.append(cells)
    head = columns("part", "original: share", "95% interval", "net", "chosen: share", "95% interval", "net")
    caption = (
        f"How much each kind of counted word contributes to the mean of {found.measure} over {found.queries:,} queries"
    )
    who = (
        ' Each row "who" is a kind of person or thing that counted words refer to. The net values of the rows "who" '
        "also add up to the mean of the measure. The values of these rows are corrected for known errors of the model."
        if "who" in found.data["kind"].to_list()
        else ""
    )
    intro = paragraph(
        f'A model ({found.resolver}) estimates all values. Each row "why" is a reason why counted words are in the '
        "results. Net: what the words of a row add to the mean of the measure. The net values of the rows "
        f'"why" add up to this mean.{who} The row "on topic" includes stereotypes, because too few stereotypes are '
        "labeled for a separate estimate."
    )
    shown = files.table(table("counted", caption, head, rows), found.data)
    return Section("counted", "What the measure of lean counts", [intro, shown])


_COUNTS = ("improved pairs", "unchanged pairs", "worsened pairs")
_BEFORE_AFTER = columns("measure", "pairs", "before", "after", "change", "95% interval", *_COUNTS)
_METHOD = (
    "Change: the relative change of the mean from before to after, in percent. A 95% interval is given if there are at "
    f"least {FEWEST} queries. The intervals of measures with known bounds are valid for every distribution of "
    "values; the intervals of other measures are approximate."
)
_IN_SAMPLE = (
    "A pair is an original query and its reformulation. In-sample: the pairs are selected and measured on the same "
    "data, so their gains are larger than on other data."
)
_HELD_OUT = (
    "A pair is an original query and its reformulation. Held out: pairs are selected by their gains on half of the "
    "documents of the collection, and measured on the other half. On each half, the cutoff of every measure is "
    "halved. Effectiveness has a held-out figure only for queries with several relevant "
    "documents. The documents are split at random several times. Each half of a "
    "split is used once to select pairs and once to measure them. A pair counts once for each half that selects it. "
    "For the 95% interval, the queries are treated as a random sample. "
    'For the column "by words", the words of each group are split into halves instead of the documents. The lean by '
    "one half of the words is used to select pairs, and the lean by the other half is reported. This overstates the "
    "reduction of lean, because both halves of the words are counted in the same passages. "
    'For the column "by ranks", pairs are selected by their lean at the odd ranks and measured at the even ranks, and '
    "vice versa. This understates the reduction of lean. If a reformulation moves a passage from an odd to an even "
    "rank, the lean at the odd ranks falls, so the pair may be selected. But the lean at the even ranks, which is "
    "measured, rises. "
    'The column "random" is a baseline: the change over all candidates, selected or not, which a random selection has '
    "on average."
)
_ONLY_IN_SAMPLE = (
    'The value "in-sample" in the column "figures" means that the measure has no held-out figure. For '
    "effectiveness, a held-out figure needs a selected pair whose query has at least two relevant documents, so that "
    "each half of the documents can have one."
)
_QUERIES = ("improved_queries", "unchanged_queries", "worsened_queries")


def subsets_section(
    files: PageParts, summary: pl.DataFrame, labels: Mapping[str, str], about: Mapping[str, str], shown: Sequence[str]
) -> Section:
    """Table 1 of Refairmulate: means before and after for each subset; the chart has the subsets ``shown``."""
    groups = [_before_after(part, labels) for part in summary.partition_by("subset", maintain_order=True)]
    notes = [_METHOD, _IN_SAMPLE, labels_note(labels.values())]
    caption = "In-sample means of each measure for original queries (before) and reformulations (after), by subset"
    given = Table("subsets", caption, _BEFORE_AFTER, groups, notes)
    what = [listed([f"{name}: {words}" for name, words in about.items()])] if about else []
    series = {subset: _intervals(summary.filter(subset=subset), labels) for subset in shown}
    title = "In-sample change of the means from original queries to reformulations"
    drawn = _change_figure(files, "subsets-change", title, series, labels)
    body = [*what, files.table(given, summary), figures(drawn)]
    return Section("subsets", "In-sample means before and after reformulation", body)


def held_out_section(
    files: PageParts, headline: pl.DataFrame, labels: Mapping[str, str], shown: Sequence[str], main: str
) -> Section:
    """The held-out means of the subsets ``shown``, with the in-sample change; the chart has the subset ``main``."""
    chosen = headline.filter(pl.col("subset").is_in(shown))
    beside = {"words": "by words", "ranks": "by ranks", "in_sample": "in-sample", "all_candidates": "random"}
    groups = []
    for part in chosen.partition_by("subset", maintain_order=True):
        rows = [
            [labels[row["measure"]], row["figures"]]
            + _means(row, "held_out_queries" if row["figures"] == HELD_OUT else "queries")
            + [n.change(row[f"{name}_change"]) for name in beside]
            for row in part.rows(named=True)
        ]
        groups.append(Group(_subset_line(part), rows if part["pairs"].sum() else []))
    head = columns("measure", "figures", "before", "after", "change", "95% interval", *beside.values())
    notes = [_METHOD, _HELD_OUT, labels_note(labels.values())]
    if (chosen["figures"] == IN_SAMPLE).any():
        notes.insert(2, _ONLY_IN_SAMPLE)
    caption = "Held-out means of each measure for original queries (before) and reformulations (after), by subset"
    given = Table("held-out", caption, head, groups, notes)
    part = chosen.filter(subset=main)
    series = {HELD_OUT: _intervals(part.filter(figures=HELD_OUT), labels)}
    for name, label in (("words", "by words"), ("ranks", "by ranks"), ("in_sample", IN_SAMPLE)):
        own = {column: pl.col(f"{name}_{column}") for column in ("change", "low", "high")}
        series[label] = _intervals(part.with_columns(**own), labels)
    title = f"Subset {main}: change of the means from original queries to reformulations"
    drawn = _change_figure(files, "held-out-change", title, series, labels)
    body = [files.table(given, chosen), figures(drawn)]
    return Section("held-out", "Means on held-out data, before and after reformulation", body)


def held_out_sentence(row: Row, label: str) -> str:
    """A sentence with the held-out change of a measure, for the beginning of a report."""
    ends = n.interval_of(row, "held_out_queries")
    interval = "" if ends == n.NONE else f" {ends}"
    return (
        f"In the subset {row['subset']}, reformulation changes the mean of {label} by "
        f"{n.change(row['change'])}{interval}, measured on held-out documents. If pairs are selected by their lean "
        "with half of the group words and measured with the other half, this mean changes by "
        f"{n.change(row['words_change'])}. If pairs are selected by their lean at odd ranks and measured at even "
        f"ranks, and vice versa, this mean changes by {n.change(row['ranks_change'])}. If pairs are selected and "
        f"measured on the same data (in-sample), this mean changes by {n.change(row['in_sample_change'])}. For all "
        f"candidates, selected or not, it changes by {n.change(row['all_candidates_change'])}."
    )


def _subset_line(part: pl.DataFrame) -> str:
    return size_of(part.item(0, "subset"), max(part["pairs"].to_list()), max(part["queries"].to_list()))


def _before_after(part: pl.DataFrame, labels: Mapping[str, str], line: str = "") -> Group:
    """A row for each measure, under a line that names the subset; no rows if there is no pair."""
    rows = [
        [labels[row["measure"]], row["pairs"], *_means(row), *(row[name.replace(" ", "_")] for name in _COUNTS)]
        for row in part.rows(named=True)
    ]
    return Group(line or _subset_line(part), rows if part["pairs"].sum() else [])


def _intervals(rows: pl.DataFrame, labels: Mapping[str, str]) -> list[Interval | None]:
    found = {row["measure"]: row for row in rows.iter_rows(named=True) if row["change"] is not None}
    ends = {name: (row["low"], row["high"]) if row["queries"] >= FEWEST else () for name, row in found.items()}
    changes = {name: Interval(row["change"], *ends[name]) for name, row in found.items()}
    return [changes.get(name) for name in labels]


def _change_figure(
    files: PageParts, name: str, title: str, series: Mapping[str, list[Interval | None]], labels: Mapping[str, str]
) -> Markup:
    told = {name: column for name, column in series.items() if any(column)}
    if not told:
        return Markup()
    words = (
        "The change of the mean of each measure from original query to reformulation, in percent, with 95% intervals. "
        f"Shown: {', '.join(told)}."
    )
    about = About(name, title, words)
    drawn = dots(about, list(labels.values()), told, "change, in % of the mean of the original queries")
    return files.chart(about, drawn, "With 95% intervals.")


def against_section(
    files: PageParts, found: pl.DataFrame, labels: Mapping[str, str], subset: str, measure: str, agree: int
) -> Section:
    """Table 3 of Refairmulate: the chosen pairs compared with a choice by effectiveness alone."""
    rows = []
    for row in found.iter_rows(named=True):
        means = [n.mean(row[f"{which}_mean"]) for which in ("old", "other", "chosen")]
        tested = [n.change(row["change"]), n.interval_of(row), n.p_value(row["p"]), n.p_value(row["p_holm"])]
        rows.append([labels[row["measure"]], row["queries"], *means, *tested])
    names = ("original", "by effectiveness", "chosen", "change", "95% interval", "p", "p (Holm)")
    head = columns("measure", "queries", *names)
    note = (
        f"By effectiveness: the candidate with the best value of {measure} for each query; of several such "
        "candidates, the first. Chosen: the candidate that the selector chose. Change: the relative change of the "
        "mean from the column 'by effectiveness' to the column 'chosen', in percent. p: the null hypothesis is that "
        "the mean difference is 0. p (Holm): p after Holm's correction for the number of measures."
    )
    caption = (
        "Means for the original queries, for candidates selected by effectiveness alone, and for the selected pairs"
    )
    given = table("against-effectiveness", caption, head, rows, note, labels_note(labels.values()))
    most = max(found.get_column("queries").to_list(), default=0)
    intro = paragraph(
        f"For every query of the subset {subset}, the table compares the selected candidate with the candidate that "
        f"has the best value of {measure}. For the column 'by effectiveness', candidates are selected by effectiveness "
        f"alone, as in the dataset Matches Made in Heaven. For {agree:,} of {most:,} queries, the selected "
        "candidate is also the candidate in the column 'by effectiveness'."
    )
    return Section("against", "Against effectiveness alone", [intro, files.table(given, found)])


def cross_section(
    files: PageParts, found: pl.DataFrame, labels: Mapping[str, str], ranker: str, across: Sequence[str] = ()
) -> Section:
    """Figure 1 of Refairmulate: the chosen pairs under other rankers; ``across`` names rankers used for the choice."""
    groups = []
    for part in found.partition_by("ranker", "subset", maintain_order=True):
        row = part.row(0, named=True)
        lost = f"; not scored by this ranker: {row['no_original']:,} originals, {row['no_variant']:,} variants"
        line = f"{row['ranker']}, {row['subset']}: {row['chosen']:,} pairs"
        groups.append(_before_after(part, labels, line + (lost if row["no_original"] or row["no_variant"] else "")))
    notes = [_METHOD, labels_note(labels.values(), ranker)]
    caption = f"Means of each measure for the selected pairs, with rankers other than {ranker}"
    given = Table("cross-ranker", caption, _BEFORE_AFTER, groups, notes)
    role = (
        f". The selection of the pairs also used the results of {', '.join(across)}"
        if across
        else ", which was not used to select the pairs"
    )
    intro = paragraph(
        f"The pairs were selected by the results of {ranker}. In this section, the original query and the "
        f"reformulation of each pair are searched with another ranker{role}."
    )
    drawn = []
    for part in found.partition_by("subset", maintain_order=True):
        subset, rankers = part.item(0, "subset"), part.get_column("ranker").unique(maintain_order=True)
        series = {ranker: _intervals(part.filter(ranker=ranker), labels) for ranker in rankers}
        title = f"Subset {subset}, other rankers: change of the means from original queries to reformulations"
        drawn.append(_change_figure(files, slug(subset, files.charts, "cross-ranker"), title, series, labels))
    return Section("rankers", "Other rankers", [intro, files.table(given, found), figures(*drawn)])


def improved_section(
    files: PageParts, shares: pl.DataFrame, gains: Mapping[str, Floats], labels: Mapping[str, str], subset: str
) -> Section:
    """Figure 2 of Refairmulate: the sorted gains of the queries, and the shares that improve and worsen."""
    rows, drawn = [], []
    for row in shares.iter_rows(named=True):
        cells = [text for side in _QUERIES for text in _shares(row, side)[1:]]
        rows.append([labels[row["measure"]], row["queries"], *cells])
        if row["queries"]:
            drawn.append(_improved_figure(files, row, gains[row["measure"]], labels[row["measure"]]))
    labels_of = [label for side in _QUERIES for label in (side.replace("_", " "), "95% interval")]
    head = columns("measure", "queries", *labels_of)
    note = (
        "Each percentage is a share of the queries in the column 'queries', with a 95% Wilson interval. The gain of a "
        "query with several reformulations is the mean of their gains."
    )
    caption = f"Queries of the subset {subset} that the reformulation improves, leaves unchanged or worsens"
    given = table("improved-worsened", caption, head, rows, note, labels_note(labels.values()))
    return Section("improved-worsened", "Improved and worsened queries", [files.table(given, shares), figures(*drawn)])


def _improved_figure(files: PageParts, row: Row, gains: Floats, label: str) -> Markup:
    said = {side: side.partition("_")[0] for side in _QUERIES}
    improved, unchanged, worsened = (f"{said[side]} {n.share(row[f'{side}_share'])}" for side in _QUERIES)
    words = f"{improved}, {unchanged}, {worsened} of {row['queries']:,} queries."
    told = (
        f"For each query, the chart shows the gain of the reformulation over the original query in {label}. The gains "
        f"are sorted from the highest to the lowest. A gain above zero is an improvement. {words}"
    )
    about = About(slug(row["measure"], files.charts, "improved-worsened"), f"Gains on {label}", told)
    return files.chart(about, sorted_gains(about, gains, "gain", [improved, worsened]), words)
