"""The HTML report of a log: tables and charts of the paper on gender-specializing query reformulation, for any log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from askew.core.errors import DataError
from askew.core.files import parse_json
from askew.core.folders import new_folder, write
from askew.data.files import reason
from askew.logs.association import FORMULA
from askew.logs.definition import ALL, SEVERAL
from askew.logs.report import SYNTHETIC, LogReport
from askew.report import markup as n
from askew.report.charts import About, dots
from askew.report.markup import Markup, tag
from askew.report.page import Section, document, facts, figure, listed, paragraph
from askew.report.table import NAME, NUMBER, QUOTE, WORDS, Column, Estimate, Table, html_table, table

Row = Mapping[str, Any]
# A column of an HTML table: its form, the column of the data frame, and the heading.
Cell = tuple[str, str, str]


def ends(row: Row, name: str) -> tuple[float | None, float | None]:
    """The interval of a value: the columns ``NAME_low`` and ``NAME_high``, or else ``low`` and ``high``."""
    return row.get(f"{name}_low", row.get("low")), row.get(f"{name}_high", row.get("high"))


def _number(row: Row, name: str, digits: int) -> list[str]:
    low, high = ends(row, name)
    interval = n.NONE if low is None or high is None else f"[{n.mean(low, digits)}, {n.mean(high, digits)}]"
    return [n.mean(row[name], digits), interval]


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
    **{f"number.{digits}": (NUMBER, partial(_number, digits=digits)) for digits in (1, 2, 3)},
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
    "association": Shown(
        "Spearman's correlation between the association of a query with {first_group} and the share of reformulations "
        "of the query that add terms of {first_group}",
        (("count", "n", "queries"), ("number.3", "rho", "rho"), ("p", "p", "p")),
        "Association: how strongly the words of the query are associated with {first_group}, measured with word "
        "vectors. Share: of the reformulations that add terms of a group to the query, the share that adds terms of "
        "{first_group}. Positive correlation: the more strongly the words of a query are associated with a group, the "
        "more often people add terms of this group. p: p-value for the null hypothesis of no rank correlation.",
    ),
    "queries": Shown("Queries with the most reformulations", (("quote", "original", "query"), _N, _USERS)),
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
        with_ratio, most = rows.drop_nulls("ratio"), _SITES_SHOWN_BRIEFLY if brief else _SHOWN_SITES
        new = rows.height - with_ratio.height
        note = f" Sites that appear only after the reformulation have no ratio: {n.count(new)}." if new else ""
        rows = pl.concat([with_ratio.head(most), with_ratio.tail(most)]).unique(maintain_order=True)
        settings |= {"shown": rows.height, "known": with_ratio.height, "without_ratio": note}
    elif name == "topics":
        # With two groups the second share follows from the first.
        named = report.groups[:1] if len(report.groups) == 2 else report.groups
        cells += [("share", "recommended", "recommended")] if "recommended" in rows.columns else []
        cells += [("share", f"share_{group}", group) for group in named]
    elif name == "queries":
        cells += [("count", part, part.removeprefix("n_")) for part in rows.columns if part.startswith("n_")]
    if name in ("blocks", "queries", "keyphrases"):
        rows = rows.head(_SHOWN)
    head: list[Column] = []
    for form, _, label in cells:
        head.append(Column(label, _FORMS[form][0]))
        head += [Column("95%")] if form == "share" or form.startswith("number") else []
    filled = [[text for form, key, _ in cells for text in _FORMS[form][1](row, key)] for row in rows.to_dicts()]
    notes = [shown.note.format_map(settings)] if shown.note and not brief else []
    return table(name.replace("_", "-"), shown.caption.format_map(settings), head, filled, *notes)


def _shown(report: LogReport, *names: str) -> list[Markup]:
    tables = [report_table(report, name) for name in names]
    return [html_table(shown_table) for shown_table in tables if shown_table is not None]


# The main findings of a log report, in at most three sentences with numbers.

MOST = 3


def findings(report: LogReport) -> list[str]:
    """The main findings, at most three: how often a group is added, what changes, and when.

    A finding without data is left out.
    """
    tellers = (_how_often, _what_changes, _topics_finding, _how_soon)
    return [sentence for tell in tellers for sentence in tell(report)][:MOST]


def _row(report: LogReport, table: str, **where: str) -> Row | None:
    data = report.tables.get(table)
    rows = [] if data is None or not set(where) <= set(data.columns) else data.filter(**where).to_dicts()
    return rows[0] if rows else None


def _with_interval(row: Row, name: str, form: str = "share") -> str:
    return " ".join(text for text in _FORMS[form][1](row, name) if text != n.NONE)


def _how_often(report: LogReport) -> Iterator[str]:
    row, counts = _row(report, "frequency", what="for_group"), report.counts
    if row is None or not counts["for_group"]:
        yield (
            f"None of the {n.count(counts['specializing'])} reformulations that make a query more specific adds a "
            "term of a group. This log shows nothing about how people add such terms."
        )
        return
    text = (
        f"When people make a query more specific, they add a term of a group in {_with_interval(row, 'share')} of the "
        f"cases ({n.count(row['hits'])} of {n.count(row['n'])} reformulations)"
    )
    groups = [row for name in report.groups if (row := _row(report, "groups", group=name)) and row["share"] is not None]
    if groups:
        most = max(groups, key=lambda row: row["share"])
        text += f". The group that they add most often is {most['group']}: {_with_interval(most, 'share')} of these "
        text += "reformulations"
    yield f"{text}."


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
        text = (
            f"{often} People click a result on {n.share(clicks['after'])} of the result pages after the reformulation, "
            f"and on {n.share(clicks['before'])} of the result pages before the reformulation "
            f"(ratio {_with_interval(clicks, 'ratio', 'number.2')})."
        )
        yield f"{text} {absent}".rstrip()
    elif absent:
        yield absent


def _topics_finding(report: LogReport) -> Iterator[str]:
    data = report.tables.get("topics")
    frequent = None if data is None else data.drop_nulls("rate_low").filter(pl.col("rate_low") > 1)
    if frequent is not None and frequent.height:
        row = frequent.sort("rate", descending=True).to_dicts()[0]
        rate = _with_interval(row, "rate", "number.2")
        yield f"Terms of groups are added most to queries about {row['topic']}: {rate} times as often as on average."


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
    listed_findings = tag("ol", *(tag("li", sentence) for sentence in findings(report)), class_="findings")
    return [listed_findings, paragraph(read, kind="note")]


def report_sections(report: LogReport) -> list[Section]:
    """The tables and charts as folded sections, and the open section on limits."""
    bodies = [(name, title, make(report)) for name, title, make in _SECTIONS]
    return [Section(name, title, body, folded=name != _OPEN) for name, title, body in bodies if body]


def _patterns(report: LogReport) -> list[Markup]:
    none = [] if "groups" in report.tables else [paragraph("No reformulation in this log adds terms of a group.")]
    return [*_shown(report, "frequency", "groups", "gaps", "entries", "blocks"), *none]


def _topics(report: LogReport) -> list[Markup]:
    if "topics" not in report.tables:
        return []
    about = About(
        "topic-rate",
        "How often people add terms of a group, by topic",
        "Dots: the share of a topic among the reformulations that add terms of a group, divided by the share of the "
        "topic among all searches of the log.",
    )
    rated = report.tables["topics"].drop_nulls("rate_high").filter(pl.col("rate_high").is_finite())
    rates = [Estimate(*rate) for rate in rated.select("rate", "rate_low", "rate_high").iter_rows()]
    drawn = dots(
        about, rated["topic"].to_list(), {"rate": rates}, "share among reformulations / share among all searches"
    )
    return [*_shown(report, "topics"), figure(drawn, about.title)]


def _data(report: LogReport) -> list[Markup]:
    pairs = [(label, n.count(report.counts[name])) for name, label in _COUNTS.items()]
    pairs += [(name.replace("_", " "), str(value)) for name, value in report.settings.items() if value is not None]
    body = [facts(pairs)]
    if report.rejected:
        head = [Column("reason", WORDS), Column("rows"), Column("examples", WORDS)]
        rows = [[why, n.count(hits), "; ".join(report.examples.get(why, []))] for why, hits in report.rejected.items()]
        body.append(html_table(table("rejected", "Rows left out, by reason", head, rows)))
    return [*body, *_shown(report, "withheld"), *([listed(report.notes)] if report.notes else [])]


_SECTIONS: tuple[tuple[str, str, Callable[[LogReport], list[Markup]]], ...] = (
    ("patterns", "How often people add terms of a group, and how soon after the original query", _patterns),
    (
        "effect",
        "What changes after people add terms of a group to a query",
        lambda report: _shown(report, "clicks", "ranks", "sites"),
    ),
    ("pages", "Groups that are mentioned on the result pages", lambda report: _shown(report, "kinds", "lean")),
    ("topics", "Topics", _topics),
    ("association", "Association of queries with groups", lambda report: _shown(report, "association")),
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
        facts = parse_json((folder / "report.json").read_bytes())
        tables = {path.stem: pl.read_parquet(path) for path in sorted((folder / "tables").glob("*.parquet"))}
        named = tables["groups"]["group"].to_list() if "groups" in tables else []
        found = LogReport(
            dict(facts["settings"]), dict(facts["counts"]), dict(facts["rejected"]), dict(facts["rejected_examples"]),
            tuple(name for name in named if name not in (ALL, SEVERAL)), {"frequency": tables["frequency"], **tables},
            list(facts["notes"]),
        )  # fmt: skip
        # Facts that are missing, or of another type, are seen when they are shown.
        report_page(found)
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        pl.exceptions.PolarsError,
    ) as error:
        raise DataError(
            f"logs {folder}: expected a folder with report.json and tables/, as 'askew logs --out' writes it; the "
            f"folder could not be read: {reason(error)}"
        ) from None
    return found
