"""Sections of the report of a selection: before and after, comparisons, other rankers, improved queries.

Each function takes data frames of ``askew.selectors`` and returns a section; texts are escaped when they are inserted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from askew.core.figures import FEWEST, HELD_OUT, IN_SAMPLE, size_of
from askew.core.ranking import Floats
from askew.publish.page import numerals as n
from askew.publish.page.charts import Interval, dots, sorted_gains
from askew.publish.page.document import Section, figures, listed, paragraph
from askew.publish.page.frame import About
from askew.publish.page.markup import Markup
from askew.publish.page.parts import PageParts, labels_note, slug
from askew.publish.page.table import Group, Table, columns, table

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
Row = dict[str, Any]


def subsets_section(
    files: PageParts, summary: pl.DataFrame, labels: Mapping[str, str], about: Mapping[str, str], shown: Sequence[str]
) -> Section:
    """Table 1 of Refairmulate: means before and after for each subset; the chart has the subsets ``shown``."""
    groups = [
        Group(_subset_line(part.rows(named=True)), _before_after(part, labels))
        for part in summary.partition_by("subset", maintain_order=True)
    ]
    notes = [_METHOD, _IN_SAMPLE, labels_note(labels.values())]
    given = Table(
        "subsets",
        "In-sample means of each measure for original queries (before) and reformulations (after), by subset",
        _BEFORE_AFTER,
        groups,
        notes,
    )
    what = [listed([f"{name}: {words}" for name, words in about.items()])] if about else []
    series = {subset: _intervals(summary.filter(subset=subset), labels) for subset in shown}
    drawn = [
        _change_figure(
            files,
            "subsets-change",
            "In-sample change of the means from original queries to reformulations",
            series,
            labels,
        )
    ]
    return Section(
        "subsets",
        "In-sample means before and after reformulation",
        [*what, files.table(given, summary), figures(*drawn)],
    )


def held_out_section(
    files: PageParts, headline: pl.DataFrame, labels: Mapping[str, str], shown: Sequence[str], main: str
) -> Section:
    """The held-out means of the subsets ``shown``, with the in-sample change; the chart has the subset ``main``."""
    chosen = headline.filter(pl.col("subset").is_in(shown))
    groups = [
        Group(_subset_line(part.rows(named=True)), _held_out_rows(part, labels))
        for part in chosen.partition_by("subset", maintain_order=True)
    ]
    head = columns(
        "measure", "figures", "before", "after", "change", "95% interval", "by words", "by ranks", "in-sample",
        "random",
    )  # fmt: skip
    notes = [_METHOD, _HELD_OUT, labels_note(labels.values())]
    if (chosen["figures"] == IN_SAMPLE).any():
        notes.insert(2, _ONLY_IN_SAMPLE)
    given = Table(
        "held-out",
        "Held-out means of each measure for original queries (before) and reformulations (after), by subset",
        head,
        groups,
        notes,
    )
    part = chosen.filter(subset=main)
    series = {
        HELD_OUT: _intervals(part.filter(figures=HELD_OUT), labels),
        "by words": _intervals(_renamed(part, "words_"), labels),
        "by ranks": _intervals(_renamed(part, "ranks_"), labels),
        IN_SAMPLE: _intervals(_renamed(part, "in_sample_"), labels),
    }
    drawn = _change_figure(
        files,
        "held-out-change",
        f"Subset {main}: change of the means from original queries to reformulations",
        series,
        labels,
    )
    return Section(
        "held-out",
        "Means on held-out data, before and after reformulation",
        [files.table(given, chosen), figures(drawn)],
    )


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


def _held_out_rows(part: pl.DataFrame, labels: Mapping[str, str]) -> list[list[str]]:
    rows = part.rows(named=True)
    return [_held_out_row(row, labels) for row in rows] if any(row["pairs"] for row in rows) else []


def _held_out_row(row: Row, labels: Mapping[str, str]) -> list[str]:
    means = n.mean(row["old_mean"]), n.mean(row["new_mean"]), n.change(row["change"])
    queries = "held_out_queries" if row["figures"] == HELD_OUT else "queries"
    beside = (n.change(row[f"{name}_change"]) for name in ("words", "ranks", "in_sample", "all_candidates"))
    return [labels[row["measure"]], row["figures"], *means, n.interval_of(row, queries), *beside]


def _renamed(part: pl.DataFrame, prefix: str) -> pl.DataFrame:
    """Copy the change and interval of one kind (held-out or in-sample) to the columns without a prefix."""
    return part.with_columns(**{name: pl.col(f"{prefix}{name}") for name in ("change", "low", "high")})


def _subset_line(rows: Sequence[Row]) -> str:
    pairs, queries = (max(row[name] for row in rows) for name in ("pairs", "queries"))
    return size_of(rows[0]["subset"], pairs, queries)


def _before_after(part: pl.DataFrame, labels: Mapping[str, str]) -> list[list[str]]:
    """A row for each measure; no rows if there is no pair."""
    rows = part.rows(named=True)
    return [_before_after_row(row, labels) for row in rows] if any(row["pairs"] for row in rows) else []


def _before_after_row(row: Row, labels: Mapping[str, str]) -> list[str]:
    means = n.mean(row["old_mean"]), n.mean(row["new_mean"]), n.change(row["change"])
    counts = (n.count(row[name.replace(" ", "_")]) for name in _COUNTS)
    return [labels[row["measure"]], n.count(row["pairs"]), *means, n.interval_of(row), *counts]


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
    return files.chart(
        about,
        dots(about, list(labels.values()), told, "change, in % of the mean of the original queries"),
        "With 95% intervals.",
    )


def against_section(
    files: PageParts, found: pl.DataFrame, labels: Mapping[str, str], subset: str, measure: str, agree: int
) -> Section:
    """Table 3 of Refairmulate: the chosen pairs compared with a choice by effectiveness alone."""
    rows = [_against_row(row, labels) for row in found.iter_rows(named=True)]
    head = columns(
        "measure", "queries", "original", "by effectiveness", "chosen", "change", "95% interval", "p", "p (Holm)"
    )
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


def _against_row(row: Row, labels: Mapping[str, str]) -> list[str]:
    means = (n.mean(row[f"{which}_mean"]) for which in ("old", "other", "chosen"))
    changed = n.change(row["change"]), n.interval_of(row)
    return [
        labels[row["measure"]],
        n.count(row["queries"]),
        *means,
        *changed,
        n.p_value(row["p"]),
        n.p_value(row["p_holm"]),
    ]


def cross_section(
    files: PageParts, found: pl.DataFrame, labels: Mapping[str, str], ranker: str, across: Sequence[str] = ()
) -> Section:
    """Figure 1 of Refairmulate: the chosen pairs under other rankers; ``across`` names rankers used for the choice."""
    groups = [
        Group(_cross_line(part.row(0, named=True)), _before_after(part, labels))
        for part in found.partition_by("ranker", "subset", maintain_order=True)
    ]
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


def _cross_line(row: Row) -> str:
    lost = f"; not scored by this ranker: {row['no_original']:,} originals, {row['no_variant']:,} variants"
    missing = lost if row["no_original"] or row["no_variant"] else ""
    return f"{row['ranker']}, {row['subset']}: {row['chosen']:,} pairs{missing}"


def improved_section(
    files: PageParts, shares: pl.DataFrame, gains: Mapping[str, Floats], labels: Mapping[str, str], subset: str
) -> Section:
    """Figure 2 of Refairmulate: the sorted gains of the queries, and the shares that improve and worsen."""
    rows, drawn = [], []
    for row in shares.iter_rows(named=True):
        cells = [
            (n.share(row[f"{side}_share"]), n.share_interval(row[f"{side}_low"], row[f"{side}_high"]))
            for side in _QUERIES
        ]
        rows.append([labels[row["measure"]], n.count(row["queries"]), *(text for cell in cells for text in cell)])
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
