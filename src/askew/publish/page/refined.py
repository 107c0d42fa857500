"""The section of the report on RePair's boxes: Tables 2, 4 and 5 of the paper, and its buckets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from askew.publish.page import numerals as n
from askew.publish.page.charts import bars
from askew.publish.page.document import Section, figures, heading, paragraph
from askew.publish.page.frame import About
from askew.publish.page.markup import Markup, tag
from askew.publish.page.parts import PageParts
from askew.publish.page.table import CODE, WORDS, Column, columns, table

Row = dict[str, Any]
_WHICH = {
    "original better": "every candidate is worse than the original query (the definition in RePair's tables)",
    "none better": "no candidate is better than the original query (the definition in Eq. 1 of RePair)",
}


@dataclass(frozen=True)
class Refined:
    """The tables that ``askew.selectors`` computes for boxes: queries, boxes, buckets and hard queries."""

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
    cells = [collection, n.count(row["queries"]), n.mean(row["mean_words"], 2), n.count(row["documents"]),
             n.mean(row["judgements"], 2), n.count(row["users"])]  # fmt: skip
    return files.table(
        table("queries", "Statistics of the collection, as in Table 2 of the RePair paper", head, [cells]), found
    )


def _shares(row: Row, name: str) -> list[str]:
    return [
        n.count(row[name]),
        n.share(row[f"{name}_share"]),
        n.share_interval(row[f"{name}_low"], row[f"{name}_high"]),
    ]


def _boxes(files: PageParts, found: pl.DataFrame, measure: str) -> Markup:
    head = columns("box", "originals", "mean of all", "refined", "share", "95% interval", "mean words", "before",
                   "after", "change", "95% interval", "value 1", "share", "95% interval", kind=CODE)  # fmt: skip
    rows = [
        [row["box"], n.count(row["originals"]), n.mean(row["all_mean"]), *_shares(row, "refined"),
         n.mean(row["mean_words"], 2), n.mean(row["old_mean"]), n.mean(row["new_mean"]), n.change(row["change"]),
         n.interval_of(row, "refined"), *_shares(row, "oracles")]
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
    return files.table(
        table(
            "boxes",
            f"Boxes (subsets of the candidates) by {measure}, as in Table 4 of the RePair paper",
            head,
            rows,
            note,
        ),
        found,
    )


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
    rows = [_hard_row(row) for row in found.iter_rows(named=True)]
    caption = f"Hard queries by {measure}, as in Table 5 of the RePair paper"
    return files.table(table("hard", caption, head, rows, note), found)


def _hard_row(row: Row) -> list[str]:
    cells = [_WHICH[row["which"]], n.count(row["queries"]), *_shares(row, "hard")]
    if "ranker" not in row:
        return cells
    means = [n.mean(row[f"{name}_mean"]) for name in ("old", "other_old", "new", "other_new")]
    return [*cells, row["ranker"], n.count(row["scored"]), *means, *_shares(row, "improved")]
