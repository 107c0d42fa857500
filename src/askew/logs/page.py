"""The HTML report of a log: tables and charts of the paper on gender-specializing query reformulation, for any log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from askew.core.errors import DataError
from askew.core.folders import new_folder, write
from askew.logs.association import FORMULA
from askew.logs.definition import ALL, SEVERAL
from askew.logs.effect import MOVES_SHOWN
from askew.logs.report import SYNTHETIC, LogReport
from askew.report import markup as n
from askew.report.charts import About, Interval, Points, dots, scatter
from askew.report.markup import Markup, tag
from askew.report.page import Section, document, facts, figure, listed, paragraph
from askew.report.table import NAME, NUMBER, QUOTE, WORDS, Column, Table, html_table, table

Row = Mapping[str, Any]
# A column of an HTML table: its form, the column of the data frame, and the heading.
Cell = tuple[str, str, str]


def ends(row: Row, name: str) -> tuple[float | None, float | None]:
    """The interval of a value: the columns ``NAME_low`` and ``NAME_high``, or else ``low`` and ``high``."""
    return row.get(f"{name}_low", row.get("low")), row.get(f"{name}_high", row.get("high"))


def _interval(row: Row, name: str, digits: int) -> str:
    low, high = ends(row, name)
    return n.NONE if low is None or high is None else f"[{n.mean(low, digits)}, {n.mean(high, digits)}]"


def _number(digits: int) -> Callable[[Row, str], list[str]]:
    return lambda row, key: [n.mean(row[key], digits), _interval(row, key, digits)]


def _text(row: Row, key: str) -> list[str]:
    return [str(row[key])]


# The forms of cells: the format of the column, and a function that fills its cells. Two cells are a value with its
# interval. ``name`` and ``words`` are texts of askew, ``quote`` texts of the log.
_FORMS: dict[str, tuple[str, Callable[[Row, str], list[str]]]] = {
    "name": (NAME, _text),
    "words": (WORDS, _text),
    "quote": (QUOTE, _text),
    "yes": (NAME, lambda row, key: ["yes" if row[key] else "no"]),
    "count": (NUMBER, lambda row, key: [n.count(row[key])]),
    "p": (NUMBER, lambda row, key: [n.p_value(row[key])]),
    "share": (NUMBER, lambda row, key: [n.share(row[key]), n.share_interval(*ends(row, key))]),
    "percent": (NUMBER, lambda row, key: [n.share(row[key], 0)]),
    "percent.2": (NUMBER, lambda row, key: [n.share(row[key], 2)]),
    "plain.2": (NUMBER, lambda row, key: [n.mean(row[key], 2)]),
    "plain.4": (NUMBER, lambda row, key: [n.mean(row[key], 4)]),
    "number.1": (NUMBER, _number(1)),
    "number.2": (NUMBER, _number(2)),
    "number.3": (NUMBER, _number(3)),
}


@dataclass(frozen=True)
class Shown:
    """How a table of the report is shown. In caption and note, the names of settings are replaced by their values."""

    caption: str
    cells: tuple[Cell, ...]
    note: str = ""


_GROUP, _ENTRY, _N = ("name", "group", "group"), ("name", "entry", "entry point"), ("count", "n", "n")
_USERS, _SHARE = ("count", "users", "users"), ("share", "share", "share")
_BOTH = (("share", "before", "before"), ("share", "after", "after"))
_HITS = (("count", "hits", "n"), ("count", "n", "of"))
_QUERY = ("quote", "original", "query")
_P = (("p", "p", "p"), ("p", "p_holm", "p, Holm"))
_VALUES = (
    "Association: how strongly the words of the query are associated with {first_group}, measured with word vectors. "
    "Share: of the reformulations that add terms of a group to the query, the share that adds terms of {first_group}."
)
_TABLES: dict[str, Shown] = {
    "frequency": Shown("Reformulations", (("words", "what", "which"), *_HITS, _SHARE)),
    "groups": Shown(
        "Groups",
        (_GROUP, *_HITS, _SHARE, _USERS, ("count", "two_terms", "two or more terms")),
        "Group 'several': reformulations that add terms of more than one group. They are not counted for any single "
        "group. Column 'two or more terms': number of reformulations that add two or more terms of the group in the "
        "row.",
    ),
    "gaps": Shown(
        "Seconds between the original query and the reformulation",
        (_GROUP, _ENTRY, _N, ("number.1", "median", "median")),
    ),
    "entries": Shown(
        "How users entered the reformulated query (edited, recommended, or other)", (_GROUP, _ENTRY, *_HITS, _SHARE)
    ),
    "blocks": Shown("Terms added most often", (("quote", "block", "terms"), _GROUP, _N, _USERS)),
    "clicks": Shown(
        "Share of result pages with a click",
        (_GROUP, _ENTRY, _N, *_BOTH, ("number.2", "ratio", "ratio")),
    ),
    "ranks": Shown(
        "Position of the clicked result in the results of the original query",
        (_GROUP, ("name", "change", "rank"), *_HITS, _SHARE),
        "Only the first click after a reformulation is counted, and only if the results of the original query and of "
        "the reformulation are known. The column 'rank' says where the clicked result was in the results of the "
        "original query, compared with the results of the reformulation: further down ('lower'), at the same rank "
        "('same'), further up ('higher'), or not there ('absent').",
    ),
    "sites": Shown(
        "Sites whose exposure changes most after a reformulation ({shown} of {known} sites)",
        (
            ("quote", "site", "site"), _N, _USERS, ("percent.2", "before", "before"), ("percent.2", "after", "after"),
            ("number.2", "ratio", "ratio"),
        ),
        "A result at rank i has the exposure 1/log2(i+1), as in nDCG. The columns 'before' and 'after' show the share "
        "of a site in the total exposure before and after the reformulation. The ratio is 'after' divided by 'before'."
        "{without_ratio}",
    ),
    "kinds": Shown(
        "Kinds of reformulations",
        (_GROUP, ("name", "kind", "kind"), *_HITS, _SHARE),
        "Added group: the group whose terms the reformulation adds to the query. The kind of a reformulation is "
        "'seeks-specific' if the result page of the original query names no group. Otherwise, the kind depends on the "
        "share of the added group among all mentions of groups on this result page. This share is compared with 1 "
        "divided by the number of groups. The kind is 'corrects' if the share is lower, 'intensifies' if the share is "
        "about equal, and 'reinforces' if the share is higher. The setting 'margin' is the tolerance for 'about "
        "equal'.",
    ),
    "lean": Shown(
        "Of all mentions of groups on a result page, the share that names the added group (defined above)",
        (_GROUP, _N, *_BOTH, ("share", "change", "change")),
        "This table counts a reformulation only if the result page of the original query and the result page of the "
        "reformulation both name a group.",
    ),
    "topics": Shown(
        "Topics of the original query",
        (
            ("quote", "topic", "topic"), ("count", "searches", "searches"), ("percent", "log_share", "of the log"), _N,
            ("number.2", "rate", "rate"),
        ),
        "Source of the topics: {topics}. Rate: the share of a topic among the reformulations that add terms of a "
        "group, divided by the share of the topic among all searches of the log.",
    ),
    "topic_correlations": Shown(
        "Spearman's correlations between columns of the table 'Topics of the original query'",
        (("name", "one", "one"), ("name", "two", "two"), ("count", "n", "topics"), ("number.3", "rho", "rho"), *_P),
        "Each row compares two columns of the table 'Topics of the original query'. The columns 'one' and 'two' "
        "contain the names of the compared columns. p: p-value for the null hypothesis that the compared columns have "
        "no rank correlation.",
    ),
    "association": Shown(
        "Spearman's correlation between the association of a query with {first_group} and the share of reformulations "
        "of the query that add terms of {first_group}",
        (("quote", "topic", "topic"), ("count", "n", "queries"), ("number.3", "rho", "rho"), *_P),
        f"{_VALUES} Positive correlation: the more strongly the words of a query are associated with a group, the more "
        "often people add terms of this group. Negative correlation: the less often people add terms of this group. "
        "p: p-value for the null hypothesis that the association and the share have no rank correlation.",
    ),
    "funnel": Shown(
        "Of the queries in the figure above, those with the most reformulations",
        (_QUERY, _N, _USERS, _SHARE, _P[0], ("plain.2", "association", "association")),
    ),
    "queries": Shown("Queries with the most reformulations", (_QUERY, _N, _USERS)),
    "keyphrases": Shown(
        "Keyphrases: phrases that people add at the same place as group terms, for example after 'jobs for'",
        (
            ("quote", "keyphrase", "keyphrase"), ("plain.4", "score", "score"), _N, _USERS,
            ("yes", "seed", "in the lexicon"),
        ),
    ),
    "withheld": Shown(
        "Texts that this report leaves out", (("name", "what", "what"), ("name", "reason", "reason"), _N)
    ),
}  # fmt: skip


def report_table(report: LogReport, name: str, brief: bool = False) -> Table | None:
    """A table of the report as it is shown, None if it has no rows.

    A ``brief`` table has only the rows for all groups together, few sites, and no note.
    """
    rows = report.tables.get(name)
    if rows is None or not rows.height:
        return None
    shown, settings = _TABLES[name], dict(report.settings)
    cells = list(shown.cells)
    if brief and "group" in rows.columns and name != "groups":
        rows, cells = rows.filter(group="all"), [cell for cell in cells if cell != _GROUP]
    if name == "frequency":
        rows = rows.with_columns(pl.col("what").replace_strict(_FREQUENCIES))
    elif name == "sites":
        known, most = rows.drop_nulls("ratio"), _SITES_SHOWN_BRIEFLY if brief else _SHOWN_SITES
        new = rows.height - known.height
        lost = f" Sites that appear only after the reformulation have no ratio: {n.count(new)}." if new else ""
        rows = pl.concat([known.head(most), known.tail(most)]).unique(maintain_order=True)
        settings |= {"shown": rows.height, "known": known.height, "without_ratio": lost}
    elif name == "topics":
        # With two groups the second share follows from the first.
        named = report.groups[:1] if len(report.groups) == 2 else report.groups
        cells += [("share", "recommended", "recommended")] if "recommended" in rows.columns else []
        cells += [("share", f"share_{group}", group) for group in named]
    elif name == "topic_correlations":
        labels = {f"share_{group}": f"share of {group}" for group in report.groups}
        rows = rows.with_columns(pl.col("one", "two").replace(labels))
        rows = rows.drop_nulls("rho") if brief else rows
    elif name == "queries":
        cells += [("count", part, part.removeprefix("n_")) for part in rows.columns if part.startswith("n_")]
    if name in ("blocks", "funnel", "queries", "keyphrases"):
        rows = rows.head(_SHOWN)
    if brief and not rows.height:
        return None
    head: list[Column] = []
    for form, _, label in cells:
        head.append(Column(label, _FORMS[form][0]))
        head += [Column("95%")] if form == "share" or form.startswith("number") else []
    filled = [[text for form, key, _ in cells for text in _FORMS[form][1](row, key)] for row in rows.to_dicts()]
    notes = [shown.note.format_map(settings)] if shown.note and not brief else []
    return table(name.replace("_", "-"), shown.caption.format_map(settings), head, filled, *notes)


def _shown(report: LogReport, *names: str) -> list[Markup]:
    """Those of the tables that have rows, as HTML."""
    made = [report_table(report, name) for name in names]
    return [html_table(one) for one in made if one is not None]


# The main findings of a log report, in at most three sentences with numbers.

MOST = 3


def findings(report: LogReport) -> list[str]:
    """The main findings, at most three: how often a group is added, what changes, and when.

    A finding without data is left out.
    """
    found = [sentence for tell in (_how_often, _what_changes) for sentence in tell(report)]
    for tell in (_association_finding, _pages_finding, _topics_finding, _how_soon):
        if len(found) < MOST:
            found += list(tell(report))
    return found[:MOST]


def _row(report: LogReport, table: str, **where: str) -> Row | None:
    data = report.tables.get(table)
    rows = [] if data is None or not set(where) <= set(data.columns) else data.filter(**where).to_dicts()
    return rows[0] if rows else None


def _with_interval(row: Row, name: str, form: str = "share") -> str:
    """A value with its interval, where there is one."""
    return " ".join(text for text in _FORMS[form][1](row, name) if text != n.NONE)


def _how_often(report: LogReport) -> Iterator[str]:
    row, counts = _row(report, "frequency", what="for_group"), report.counts
    if row is None or not counts["for_group"]:
        yield (
            f"None of the {n.count(counts['specializing'])} reformulations that make a query more specific adds a "
            "term of a group. This log shows nothing about how people add such terms."
        )
        return
    told = (
        f"When people make a query more specific, they add a term of a group in {_with_interval(row, 'share')} of the "
        f"cases ({n.count(row['hits'])} of {n.count(row['n'])} reformulations)"
    )
    groups = [row for name in report.groups if (row := _row(report, "groups", group=name)) and row["share"] is not None]
    if groups:
        most = max(groups, key=lambda row: row["share"])
        told += f". The group that they add most often is {most['group']}: {_with_interval(most, 'share')} of these "
        told += "reformulations"
    yield f"{told}."


def _what_changes(report: LogReport) -> Iterator[str]:
    clicks = _row(report, "clicks", group="all", entry="all")
    ranks = _row(report, "ranks", group="all", change="absent")
    absent = ""
    if ranks is not None and ranks["share"] is not None:
        absent = (
            f"{_with_interval(ranks, 'share')} of the results that people click after they add a term of a group were "
            "not among the results of the original query."
        )
    if clicks is not None and clicks["ratio"] is not None:
        low, high, ratio = clicks["low"], clicks["high"], clicks["ratio"]
        # A change in either direction needs an interval without 1.
        if ratio == 1 or (low is not None and high is not None and low <= 1 <= high):
            often = (
                "It is not clear whether people click more or less often after they add a term of a group than before."
            )
        else:
            more = "more" if ratio > 1 else "less"
            often = f"People click {more} often after they add a term of a group than before."
        told = (
            f"{often} People click a result on {n.share(clicks['after'])} of the result pages after the reformulation, "
            f"and on {n.share(clicks['before'])} of the result pages before the reformulation "
            f"(ratio {_with_interval(clicks, 'ratio', 'number.2')})."
        )
        yield f"{told} {absent}".rstrip()
    elif absent:
        yield absent


def _association_finding(report: LogReport) -> Iterator[str]:
    row = _row(report, "association", topic="overall")
    if row is None or row["rho"] is None or row["low"] is None:
        return
    first = report.settings["first_group"]
    figures = (
        f"For each of {n.count(row['n'])} queries, the report has two values: how strongly the words of the query are "
        f"associated with {first}, and the share of {first} among the reformulations that add a term of a group to "
        f"the query. Spearman's correlation of the two values is {_with_interval(row, 'rho', 'number.2')}."
    )
    if row["low"] <= 0 <= row["high"]:
        yield (
            "It is not clear whether people add a term of a group more often if the words of the query are more "
            f"strongly associated with this group. {figures}"
        )
    else:
        often = "more often" if row["rho"] > 0 else "less often"
        yield (
            f"The more strongly the words of a query are associated with a group, the {often} people add a term of "
            f"this group. {figures}"
        )


def _topics_finding(report: LogReport) -> Iterator[str]:
    data = report.tables.get("topics")
    known = None if data is None else data.drop_nulls("rate_low").filter(pl.col("rate_low") > 1)
    if known is not None and known.height:
        row = known.sort("rate", descending=True).to_dicts()[0]
        rate = _with_interval(row, "rate", "number.2")
        yield f"Terms of groups are added most to queries about {row['topic']}: {rate} times as often as on average."


def _pages_finding(report: LogReport) -> Iterator[str]:
    corrects, reinforces = (_row(report, "kinds", group="all", kind=kind) for kind in ("corrects", "reinforces"))
    if corrects is not None and reinforces is not None and corrects["share"] is not None:
        even = f"1/{len(report.groups)}"
        yield (
            f"In {_with_interval(corrects, 'share')} of the reformulations that add terms of one group, the added "
            f"group has less than {even} of all mentions of groups in the results of the original query. In "
            f"{_with_interval(reinforces, 'share')}, the added group has more than {even}. The setting "
            f"'margin' says how close to {even} counts as equal."
        )


def _how_soon(report: LogReport) -> Iterator[str]:
    row = _row(report, "gaps", group="all", entry="all")
    if row is not None and row["median"] is not None:
        yield (
            "Half of the reformulations that add a term of a group follow the original query within "
            f"{_with_interval(row, 'median', 'number.1')} seconds."
        )


_COUNTS = {
    "rows_read": "rows read", "rows": "rows used", "users": "users", "sessions": "sessions", "searches": "searches",
    "pairs": "pairs of consecutive searches", "specializing": "specializing reformulations",
    "for_group": "reformulations that add terms of a group",
}  # fmt: skip
_LIMITS = (
    "A log shows what people typed and clicked, not why. No figure on this page shows a cause.",
    "The counts show how often people add words of the lexicon. They do not show whether people or results are "
    "biased. Groups that are not in the lexicon are not counted.",
    "Images, videos and advertisements of a result page are not in a log.",
    "Intervals are 95% intervals. They account for the fact that one user can make several reformulations. This page "
    "has many intervals: one in twenty is expected to miss the true value.",
    "Queries that few users typed, and queries that contain a person's name, are counted, but they are never shown "
    "on this page. For some groups, askew has a list of phrases that speculate about a person's identity. Queries "
    "with such a phrase are not shown either. Names and phrases are found with word lists, which do not contain "
    "every name.",
)
TITLE = "How people reformulate their queries to name a group"
_OPEN = "limits"
_SHOWN = 30
_SHOWN_SITES, _SITES_SHOWN_BRIEFLY = 12, 4
_FREQUENCIES = {
    "specializing": "pairs of consecutive searches whose second query adds terms to the first query "
    "(specializing reformulations)",
    "for_group": "specializing reformulations that add terms of a group",
}


def report_page(report: LogReport) -> str:
    """The page as HTML. Everything from the log is escaped."""
    return document(TITLE, report_head(report), report_sections(report), [paragraph("Made by askew logs.")])


def report_head(report: LogReport) -> list[Markup]:
    """The main findings, and a line on the data they come from."""
    c = report.counts
    kind = "This log is synthetic. " if SYNTHETIC in report.settings else ""
    read = (
        f"{kind}From {n.count(c['rows_read'])} rows of {n.count(c['users'])} users, by the word list "
        f"{report.settings['lexicon']}. In brackets: 95% intervals. None of this shows why people do so."
    )
    told = tag("ol", *(tag("li", sentence) for sentence in findings(report)), class_="findings")
    return [told, paragraph(read, kind="note")]


def report_sections(report: LogReport) -> list[Section]:
    """The tables and charts as folded sections, and the open section on limits."""
    bodies = [(name, title, make(report)) for name, title, make in _SECTIONS]
    return [Section(name, title, body, folded=name != _OPEN) for name, title, body in bodies if body]


def _patterns(report: LogReport) -> list[Markup]:
    body = _shown(report, "frequency")
    if "groups" not in report.tables:
        return [*body, paragraph("No reformulation in this log adds terms of a group.")]
    return [*body, *_shown(report, "groups", "gaps", "entries", "blocks")]


def _effect(report: LogReport) -> list[Markup]:
    body = _shown(report, "clicks")
    if "ranks" in report.tables:
        body += [*_shown(report, "ranks"), _moves(report.tables["moves"])]
    return [*body, *_shown(report, "sites")]


def _moves(moves: pl.DataFrame) -> Markup:
    found = {(old, new): hits for old, new, hits in moves.select("old_rank", "new_rank", "n").iter_rows()}
    after = sorted({new for _, new in found})
    before = sorted({old for old, _ in found}, key=lambda old: (old == 0, old))
    rows = [
        ["absent" if old == 0 else str(old), *(n.count(found.get((old, new), 0)) for new in after)] for old in before
    ]
    head = [Column("before", NAME), *(Column(f"after: {new}") for new in after)]
    note = (
        f"Only clicks at the ranks 1 to {MOVES_SHOWN} are counted. A result that had a rank greater than {MOVES_SHOWN} "
        "before the reformulation counts as absent."
    )
    return html_table(table("moves", "Rank of the clicked result before and after the reformulation", head, rows, note))


def _topics(report: LogReport) -> list[Markup]:
    t = report.tables
    if "topics" not in t:
        return []
    about = About(
        "topic-rate",
        "How often people add terms of a group, by topic",
        "Dots: the share of a topic among the reformulations that add terms of a group, divided by the share of the "
        "topic among all searches of the log.",
    )
    known = t["topics"].drop_nulls("rate_high").filter(pl.col("rate_high").is_finite())
    return [
        *_shown(report, "topics"),
        figure(_dots(about, known, "rate", "share among reformulations / share among all searches"), about.title),
        *_shown(report, "topic_correlations"),
    ]


def _dots(about: About, data: pl.DataFrame, name: str, label: str) -> Markup:
    """A dot for each topic, with its interval."""
    rows = data.iter_rows(named=True)
    return dots(about, data["topic"].to_list(), {name: [Interval(row[name], *ends(row, name)) for row in rows]}, label)


def _association(report: LogReport) -> list[Markup]:
    if "association" not in report.tables:
        return []
    told = (
        f"{_TABLES['association'].caption}. {_VALUES} One dot is for all queries. Each other dot is for the queries of "
        "one topic. The lines are 95% intervals."
    ).format_map(report.settings)
    about = About(
        "association", "Do people add terms of the group that the words of the query are associated with?", told
    )
    known = report.tables["association"].drop_nulls("low")
    body = [*_shown(report, "association"), figure(_dots(about, known, "rho", "Spearman's rho"), about.title)]
    points = report.tables["funnel"]
    return [*body, _funnel_chart(points, report), *_shown(report, "funnel")] if points.height else body


def _funnel_chart(points: pl.DataFrame, report: LogReport) -> Markup:
    first = report.settings["first_group"]
    second = next(name for name in report.groups if name != first) if len(report.groups) == 2 else "the other group"
    sides = {
        f"queries whose words are associated with {first}": points.filter(pl.col("association") > 0),
        f"queries whose words are associated with {second}": points.filter(pl.col("association") < 0),
    }
    drawn = [Points(name, np.log10(part["n"].to_numpy()), part["share"].to_numpy()) for name, part in sides.items()]
    told = (
        "Each point is a query. Horizontal: how many of its reformulations add terms of a group. Vertical: the share "
        f"of these reformulations that add terms of {first}."
    )
    about = About("funnel", "Queries to which people add terms of one group more often than of the other", told)
    said = (
        "The figure shows queries that pass a two-tailed binomial test (p < 0.05; null hypothesis: people add both "
        "groups equally often) and whose absolute association is above 0.05. "
        f"Only queries that {report.settings['min_users']} users or more typed are shown. The p-values are not "
        "corrected for the number of tests, which treat all reformulations as independent: one in twenty queries "
        "without a difference passes."
    )
    picture = scatter(about, drawn, "log10 of reformulations", f"share of {first}", size=3.5)
    return figure(picture, about.title, said)


def _data(report: LogReport) -> list[Markup]:
    told = [(label, n.count(report.counts[name])) for name, label in _COUNTS.items()]
    told += [(name.replace("_", " "), str(value)) for name, value in report.settings.items() if value is not None]
    body = [facts(told)]
    if report.rejected:
        head = [Column("reason", WORDS), Column("rows"), Column("examples", WORDS)]
        rows = [[why, n.count(hits), "; ".join(report.examples.get(why, []))] for why, hits in report.rejected.items()]
        body.append(html_table(table("rejected", "Rows left out, by reason", head, rows)))
    return [*body, *_shown(report, "withheld"), *([listed(report.notes)] if report.notes else [])]


_SECTIONS: tuple[tuple[str, str, Callable[[LogReport], list[Markup]]], ...] = (
    ("patterns", "How often people add terms of a group, and how soon after the original query", _patterns),
    ("effect", "What changes after people add terms of a group to a query", _effect),
    ("pages", "Groups that are mentioned on the result pages", lambda report: _shown(report, "kinds", "lean")),
    ("topics", "Topics", _topics),
    ("association", "Association of queries with groups", _association),
    ("texts", "Queries and keyphrases", lambda report: _shown(report, "queries", "keyphrases")),
    ("data", "The log and the settings", _data),
    ("limits", "What this report does not show", lambda _: [listed(_LIMITS)]),
)


# Write the tables of a log report as Parquet, CSV and one HTML page, and read a report folder back.

_FORMULA = "^([" + "".join(f"\\{sign}" if sign.isascii() else sign for sign in FORMULA) + "\\t\\r\\n])"


def write_tables(report: LogReport, out: Path) -> None:
    """Write a new folder atomically: tables/NAME.parquet and .csv, report.json, report.html."""
    with new_folder(out) as folder:
        (folder / "tables").mkdir()
        for name, table in report.tables.items():
            table.write_parquet(folder / "tables" / f"{name}.parquet")
            # Quote texts: a program that splits at another separator could read the second part as a formula.
            harmless = table.with_columns(pl.col(pl.String).str.replace(_FORMULA, "'$1"))
            harmless.write_csv(folder / "tables" / f"{name}.csv", quote_style="non_numeric")
        write(folder, "report.json", json.dumps(report.to_dict(), ensure_ascii=False, indent=1, allow_nan=False) + "\n")
        write(folder, "report.html", report_page(report))


def read_log_report(folder: Path) -> LogReport:
    """Read the report of a result folder from its tables and report.json; report.html is not read."""
    try:
        facts = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        tables = {path.stem: pl.read_parquet(path) for path in sorted((folder / "tables").glob("*.parquet"))}
        named = tables["groups"]["group"].to_list() if "groups" in tables else []
        return LogReport(
            dict(facts["settings"]), dict(facts["counts"]), dict(facts["rejected"]), dict(facts["rejected_examples"]),
            tuple(name for name in named if name not in (ALL, SEVERAL)), {"frequency": tables["frequency"], **tables},
            list(facts["notes"]),
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        first = str(error).partition("\n")[0][:200] or type(error).__name__
        raise DataError(
            f"logs {folder}: expected a folder with report.json and tables/, as 'askew logs --out' writes it; the "
            f"folder could not be read: {first}"
        ) from None
