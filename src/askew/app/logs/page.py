"""The HTML report of a log: tables and charts of the paper on gender-specializing query reformulation, for any log."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from askew.app.logs.cells import counts, made, names, number, numbers, p_values, percent, quote, shares, words, yes
from askew.app.logs.findings import findings
from askew.app.logs.report import LogReport
from askew.logs.effect import MOVES_SHOWN
from askew.publish.page import numerals as n
from askew.publish.page.charts import Interval, Points, bars, dots, scatter
from askew.publish.page.document import Section, document, facts, figure, listed, paragraph
from askew.publish.page.frame import About
from askew.publish.page.markup import Markup, tag
from askew.publish.page.table import NAME, WORDS, Column, html_table, table

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
_SHOWN_SITES = 12
_HITS = counts(hits="n", n="of")


def report_page(report: LogReport) -> str:
    """The page as HTML. Everything from the log is escaped."""
    return document(TITLE, report_head(report), report_sections(report), [paragraph("Made by askew logs.")])


def report_head(report: LogReport) -> list[Markup]:
    """The main findings, and a line on the data they come from."""
    c = report.counts
    kind = "This log is synthetic. " if "planted" in report.tables else ""
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
    t = report.tables
    body = [made("frequency", "Reformulations", _told(t["frequency"]), [words("what", "which"), _HITS, shares()])]
    if "groups" not in t:
        return [*body, paragraph("No reformulation in this log adds terms of a group.")]
    note = (
        "Group 'several': reformulations that add terms of more than one group. They are not counted for any single "
        "group. Column 'two or more terms': number of reformulations that add two or more terms of the group in the "
        "row."
    )
    parts = [names(group="group"), _HITS, shares(), counts(users="users", two_terms="two or more terms")]
    body.append(made("groups", "Groups", t["groups"], parts, note))
    parts = [names(group="group", entry="entry point"), counts(n="n"), numbers("median", digits=1)]
    body.append(made("gaps", "Seconds between the original query and the reformulation", t["gaps"], parts))
    if "entries" in t:
        parts = [names(group="group", entry="entry point"), _HITS, shares()]
        body.append(
            made(
                "entries",
                "How users entered the reformulated query (edited, recommended, or other)",
                t["entries"],
                parts,
            )
        )
    parts = [quote("block", "terms"), names(group="group"), counts(n="n", users="users")]
    return [*body, made("blocks", "Terms added most often", t["blocks"].head(_SHOWN), parts)]


def _told(frequency: pl.DataFrame) -> pl.DataFrame:
    labels = {
        "specializing": "pairs of consecutive searches whose second query adds terms to the first query "
        "(specializing reformulations)",
        "for_group": "specializing reformulations that add terms of a group",
    }
    return frequency.with_columns(pl.col("what").replace_strict(labels))


def _effect(report: LogReport) -> list[Markup]:
    t, body = report.tables, []
    if "clicks" in t:
        parts = [names(group="group", entry="entry point"), counts(n="n"), shares("before"), shares("after")]
        body.append(made("clicks", "Share of result pages with a click", t["clicks"], [*parts, numbers("ratio")]))
    if "ranks" in t:
        body += _ranks(t["ranks"], report.groups)
        body.append(_moves(t["moves"]))
    if "sites" in t and t["sites"].height:
        body.append(_sites(t["sites"]))
    return body


def _ranks(ranks: pl.DataFrame, groups: Sequence[str]) -> list[Markup]:
    note = (
        "Only the first click after a reformulation is counted, and only if the results of the original query and of "
        "the reformulation are known. The column 'rank' says where the clicked result was in the results of the "
        "original query, compared with the results of the reformulation: further down ('lower'), at the same rank "
        "('same'), further up ('higher'), or not there ('absent')."
    )
    parts = [names(group="group", change="rank"), _HITS, shares()]
    changes = ranks.filter(group="all")["change"].to_list()
    series = {name: ranks.filter(group=name)["share"].fill_null(0.0).to_list() for name in ("all", *groups)}
    told = (
        "Each bar is a share of the clicked results. Absent: the clicked result was not in the results of the original "
        "query. Lower: the clicked result was further down in the results of the original query than in the results of "
        "the reformulation. Same: the clicked result had the same rank in both. Higher: the clicked result was further "
        "up in the results of the original query."
    )
    about = About("rank-change", "Rank of the clicked result in the results of the original query", told)
    return [
        made("ranks", "Position of the clicked result in the results of the original query", ranks, parts, note),
        figure(bars(about, changes, series, "share of events", room=[0.0, 1.0]), about.title),
    ]


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


def _sites(sites: pl.DataFrame) -> Markup:
    known = sites.drop_nulls("ratio")
    ends = pl.concat([known.head(_SHOWN_SITES), known.tail(_SHOWN_SITES)]).unique(maintain_order=True)
    new = sites.height - known.height
    note = (
        "A result at rank i has the exposure 1/log2(i+1), as in nDCG. The columns 'before' and 'after' show the share "
        "of a site in the total exposure before and after the reformulation. The ratio is 'after' divided by 'before'."
    )
    note += f" Sites that appear only after the reformulation have no ratio: {n.count(new)}." if new else ""
    parts = [quote("site", "site"), counts(n="n", users="users"), percent("before", "before", 2)]
    parts += [percent("after", "after", 2), numbers("ratio")]
    return made(
        "sites",
        f"Sites whose exposure changes most after a reformulation ({ends.height} of {known.height} sites)",
        ends,
        parts,
        note,
    )


def _pages(report: LogReport) -> list[Markup]:
    t = report.tables
    if "kinds" not in t:
        return []
    note = (
        "Added group: the group whose terms the reformulation adds to the query. The kind of a reformulation is "
        "'seeks-specific' if the result page of the original query names no group. Otherwise, the kind depends on the "
        "share of the added group among all mentions of groups on this result page. This share is compared with 1 "
        "divided by the number of groups. The kind is 'corrects' if the share is lower, 'intensifies' if the share is "
        "about equal, and 'reinforces' if the share is higher. The setting 'margin' is the tolerance for 'about equal'."
    )
    kinds = [names(group="group", kind="kind"), _HITS, shares()]
    lean = [names(group="group"), counts(n="n"), shares("before"), shares("after"), shares("change")]
    caption = "Of all mentions of groups on a result page, the share that names the added group (defined above)"
    return [
        made("kinds", "Kinds of reformulations", t["kinds"], kinds, note),
        made(
            "lean",
            caption,
            t["lean"],
            lean,
            "This table counts a reformulation only if the result page of the original query and the result page of "
            "the reformulation both name a group.",
        ),
    ]


def _topics(report: LogReport) -> list[Markup]:
    t = report.tables
    if "topics" not in t:
        return []
    parts = [quote("topic", "topic"), counts(searches="searches"), percent("of the log", "log_share")]
    parts += [counts(n="n"), numbers("rate")]
    parts += [shares("recommended")] if "recommended" in t["topics"].columns else []
    # With two groups the second share follows from the first.
    named = report.groups[:1] if len(report.groups) == 2 else report.groups
    parts += [shares(f"share_{group}", group) for group in named]
    note = (
        f"Source of the topics: {report.settings['topics']}. Rate: the share of a topic among the reformulations that "
        "add terms of a group, divided by the share of the topic among all searches of the log."
    )
    about = About(
        "topic-rate",
        "How often people add terms of a group, by topic",
        "Dots: the share of a topic among the reformulations that add terms of a group, divided by the share of the "
        "topic among all searches of the log.",
    )
    known = t["topics"].drop_nulls("rate_high").filter(pl.col("rate_high").is_finite())
    pairs = [names(one="one", two="two"), counts(n="topics"), numbers("rho", digits=3)]
    pairs.append(p_values(p="p", p_holm="p, Holm"))
    columns = t["topic_correlations"].with_columns(
        pl.col("one", "two").replace({f"share_{group}": f"share of {group}" for group in report.groups})
    )
    return [
        made("topics", "Topics of the original query", t["topics"], parts, note),
        figure(_dots(about, known, "rate", "share among reformulations / share among all searches"), about.title),
        made(
            "topic-correlations",
            "Spearman's correlations between columns of the table 'Topics of the original query'",
            columns,
            pairs,
            "Each row compares two columns of the table 'Topics of the original query'. The columns 'one' and 'two' "
            "contain the names of the compared columns. p: p-value for the null hypothesis that the compared columns "
            "have no rank correlation.",
        ),
    ]


def _dots(about: About, data: pl.DataFrame, name: str, label: str) -> Markup:
    """A dot for each topic, with its interval."""
    low, high = (f"{name}_low", f"{name}_high") if f"{name}_low" in data.columns else ("low", "high")
    found = [Interval(*row) for row in data.select(name, low, high).iter_rows()]
    return dots(about, data["topic"].to_list(), {name: found}, label)


def _association(report: LogReport) -> list[Markup]:
    t = report.tables
    if "association" not in t:
        return []
    first = report.settings["first_group"]
    caption = (
        f"Spearman's correlation between the association of a query with {first} and the share of reformulations of "
        f"the query that add terms of {first}"
    )
    values = (
        f"Association: how strongly the words of the query are associated with {first}, measured with word vectors. "
        f"Share: of the reformulations that add terms of a group to the query, the share that adds terms of {first}."
    )
    note = (
        f"{values} Positive correlation: the more strongly the words of a query are associated with a group, the more "
        "often people add terms of this group. Negative correlation: the less often people add terms of this group. "
        "p: p-value for the null hypothesis that the association and the share have no rank correlation."
    )
    told = (
        f"{caption}. {values} One dot is for all queries. Each other dot is for the queries of one topic. The lines "
        "are 95% intervals."
    )
    title = "Do people add terms of the group that the words of the query are associated with?"
    about = About("association", title, told)
    parts = [quote("topic", "topic"), counts(n="queries"), numbers("rho", digits=3), p_values(p="p", p_holm="p, Holm")]
    return [
        made("association", caption, t["association"], parts, note),
        figure(_dots(about, t["association"].drop_nulls("low"), "rho", "Spearman's rho"), about.title),
        *_funnel(t["funnel"], report),
    ]


def _funnel(points: pl.DataFrame, report: LogReport) -> list[Markup]:
    if not points.height:
        return []
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
    parts = [quote("original", "query"), counts(n="n", users="users"), shares()]
    parts += [p_values(p="p"), number("association", "association", 2)]
    return [
        figure(picture, about.title, said),
        made(
            "funnel",
            "Of the queries in the figure above, those with the most reformulations",
            points.head(_SHOWN),
            parts,
        ),
    ]


def _texts(report: LogReport) -> list[Markup]:
    t, body = report.tables, []
    if "queries" in t and t["queries"].height:
        split = {name: name.removeprefix("n_") for name in t["queries"].columns if name.startswith("n_")}
        parts = [quote("original", "query"), counts(n="n", users="users", **split)]
        body.append(made("queries", "Queries with the most reformulations", t["queries"].head(_SHOWN), parts))
    if "keyphrases" in t and t["keyphrases"].height:
        parts = [quote("keyphrase", "keyphrase"), number("score", "score", 4), counts(n="n", users="users")]
        parts.append(yes("seed", "in the lexicon"))
        body.append(
            made(
                "keyphrases",
                "Keyphrases: phrases that people add at the same place as group terms, for example after 'jobs for'",
                t["keyphrases"].head(_SHOWN),
                parts,
            )
        )
    if "planted" in t:
        parts = [
            names(effect="effect"),
            number("planted", "planted"),
            numbers("found", digits=3),
            counts(n="n"),
            yes("within", "within"),
        ]
        body.append(
            made(
                "planted",
                "Effects that this synthetic log was generated with, and their estimates from the log",
                t["planted"],
                parts,
            )
        )
    return body


def _data(report: LogReport) -> list[Markup]:
    told = [(label, n.count(report.counts[name])) for name, label in _COUNTS.items()]
    told += [(name.replace("_", " "), str(value)) for name, value in report.settings.items() if value is not None]
    body = [facts(told)]
    if report.rejected:
        head = [Column("reason", WORDS), Column("rows"), Column("examples", WORDS)]
        rows = [[why, n.count(hits), "; ".join(report.examples.get(why, []))] for why, hits in report.rejected.items()]
        body.append(html_table(table("rejected", "Rows left out, by reason", head, rows)))
    withheld = report.tables.get("withheld")
    if withheld is not None and withheld.height:
        parts = [names(what="what", reason="reason"), counts(n="n")]
        body.append(made("withheld", "Texts that this report leaves out", withheld, parts))
    return [*body, *([listed(report.notes)] if report.notes else [])]


_SECTIONS: tuple[tuple[str, str, Callable[[LogReport], list[Markup]]], ...] = (
    ("patterns", "How often people add terms of a group, and how soon after the original query", _patterns),
    ("effect", "What changes after people add terms of a group to a query", _effect),
    ("pages", "Groups that are mentioned on the result pages", _pages),
    ("topics", "Topics", _topics),
    ("association", "Association of queries with groups", _association),
    ("texts", "Queries and keyphrases", _texts),
    ("data", "The log and the settings", _data),
    ("limits", "What this report does not show", lambda _: [listed(_LIMITS)]),
)
