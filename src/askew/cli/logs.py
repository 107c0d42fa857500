"""``askew logs``: when and how do people add a group to their queries?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askew.app.logs.settings import LogSettings
from askew.cli import options as o
from askew.cli.render import Waiting, note, p_value, print_tables, say, say_json, say_wrapped
from askew.core.errors import ConfigError
from askew.core.groups import Groups

if TYPE_CHECKING:
    from askew.app.logs.report import LogReport

_SITES_SHOWN = 4
_DEFAULT = LogSettings()


Logs = Annotated[
    list[Path] | None, typer.Argument(metavar="LOG", help="Log files, or folders of log files; plain or gzip.")
]  # fmt: skip
Form = Annotated[str, typer.Option("--format", help="Format of the log; see 'askew list log_formats'.")]
Columns = Annotated[
    str | None,
    typer.Option(help="Names of the columns of a TSV or Parquet log, such as 'user=UID,time=TS,query=Q,entry=SOURCE'."),
]
Gap = Annotated[
    float,
    typer.Option(
        help="If the log does not mark sessions, start a new session after this many minutes without a row of the user."
    ),
]
Topics = Annotated[
    str, typer.Option(help=
        "Source of the topics of queries: 'auto', 'column', 'words', 'none', a .toml file of word lists, or the name "
        "of a classifier.")
]  # fmt: skip
Vectors = Annotated[
    Path | None,
    typer.Option(
        help="Word vectors (GloVe, word2vec, .npy) that measure how strongly a query is associated with each group."
    ),
]
DirectionName = Annotated[
    str,
    typer.Option(
        help="With --vectors, choose how to compute the direction between the two groups in the vector space: 'pca' "
        "(from all word pairs) or 'pair' (from one word pair)."
    ),
]
Pairs = Annotated[
    Path | None,
    typer.Option(help="A TOML file of word pairs for --direction; needed unless the groups are 'female' and 'male'."),
]
PageLexicon = Annotated[
    str | None,
    typer.Option(
        help="Count the words of this lexicon in the texts of result pages. Default: the lexicon for the queries."
    ),
]
MinUsers = Annotated[int, typer.Option(help="Show only texts of queries that at least this many users typed.")]
MinEvents = Annotated[
    int, typer.Option(help="Show only sites that appear in the results of at least this many reformulations.")
]
Review = Annotated[
    Path | None,
    typer.Option(
        help="Write candidate group terms from the log to this TSV file, so that you can accept or reject them. The "
        "next run reads your decisions from the file."
    ),
]
Out = Annotated[Path | None, typer.Option(help="Write report.html and the tables to this new folder.")]
Threads = Annotated[int | None, typer.Option(help="The number of threads. Default: all cores.")]
Demo = Annotated[bool, typer.Option("--demo", help="Analyze a synthetic log with known effects.")]


def command(
    logs: Logs = None, form: Form = _DEFAULT.format, columns: Columns = None, groups: o.GroupNames = None,
    lexicon: o.LexiconName = None, gap: Gap = _DEFAULT.gap, topics: Topics = _DEFAULT.topics, vectors: Vectors = None,
    direction: DirectionName = _DEFAULT.direction, pairs: Pairs = None, page_lexicon: PageLexicon = None,
    min_users: MinUsers = _DEFAULT.min_users, min_events: MinEvents = _DEFAULT.min_events, review: Review = None,
    out: Out = None, threads: Threads = None, demo: Demo = False, as_json: o.AsJson = False,
) -> None:  # fmt: skip
    """Analyze a query log: how often and on which topics users add terms of a group, and with what effect.

    User ids are hashed with a key that is never stored. Texts that few users typed are never shown.

    Example: askew logs user-ct-test-collection-01.txt.gz --format aol --out report
    """
    from askew.app.logs.analyze import analyze_log
    from askew.app.logs.demo import demo_report
    from askew.app.logs.writing import check_out

    if demo == bool(logs):
        raise ConfigError("askew logs: expected either log files or --demo (a synthetic log); give exactly one of them")
    check_out(out)
    settings = LogSettings(
        format=form, columns=read_columns(columns), groups=Groups.resolve(groups, lexicon) or _DEFAULT.groups, gap=gap,
        topics=topics, vectors=vectors, direction=direction, pairs=pairs, page_lexicon=page_lexicon,
        min_users=min_users, min_events=min_events, review=review, threads=threads,
    )  # fmt: skip
    with Waiting("reading the log") as progress:
        if demo:
            report = demo_report(settings=settings, progress=progress)
        else:
            report = analyze_log(logs, settings=settings, progress=progress)
    note(report.notes)
    note(_left_out(report))
    if out is not None:
        report.report(out)
    if review is not None:
        report.review(review)
    if as_json:
        say_json(report.to_dict())
    else:
        show(report, review, out)


def read_columns(text: str | None) -> dict[str, str] | None:
    """Parse ``user=UID,time=TS`` into names of columns."""
    if text is None:
        return None
    found: dict[str, str] = {}
    for part in text.split(","):
        role, sign, name = part.partition("=")
        if not sign or not role.strip() or not name.strip():
            raise ConfigError(f"--columns {part!r}: expected PART=COLUMN, as in user=UID,time=TS,query=Q")
        if role.strip() in found:
            raise ConfigError(f"--columns: the {role.strip()} is named twice")
        found[role.strip()] = name.strip()
    return found


def _left_out(report: LogReport) -> list[str]:
    """Describe the rows that were left out: their number by reason, with the places of a few."""
    lines = []
    for reason, count in report.rejected.items():
        places = "; ".join(report.examples.get(reason, []))
        rows = "row" if count == 1 else "rows"
        lines.append(f"{count:,} {rows} left out: {reason}" + (f" ({places})" if places else ""))
    return lines


def show(report: LogReport, review: Path | None, out: Path | None) -> None:
    """Print the summary. It fits a screen of 80 columns."""
    for line in report.lead:
        say(line)
    for name, printer in _PRINTERS.items():
        if name in report.tables and report.tables[name].height:
            printer(report)
    for (what,), rows in report.tables["withheld"].group_by("what", maintain_order=True):
        told = ", ".join(f"{row['reason']} {row['n']:,}" for row in rows.to_dicts())
        say(f"{what} not shown: {told}")
    if review is not None:
        say_wrapped(
            f"To review the phrases in {review}, write the name of a group, or 'no' for no group, in the last column. "
            "Then run this command again."
        )
    if out is not None:
        say(f"written to {out}: report.html, report.json and {len(report.tables)} tables")


def _table(title: str, first: str, labels: list[str], columns: list[tuple[str, list[str]]]) -> None:
    say("")
    print_tables(title, first, labels, columns)


def _ends(row: dict[str, Any], name: str) -> tuple[float | None, float | None]:
    """Return the interval of a value. Its columns are low and high, or NAME_low and NAME_high."""
    return row.get(f"{name}_low", row.get("low")), row.get(f"{name}_high", row.get("high"))


def _percent(row: dict[str, Any], name: str = "share", between: str = " ") -> str:
    """Format a share with its interval, in percent."""
    if row[name] is None:
        return "-"
    low, high = _ends(row, name)
    ends = "" if low is None or high is None else f"{between}[{100 * low:.1f}, {100 * high:.1f}]"
    return f"{100 * row[name]:.1f}%{ends}"


def _number(row: dict[str, Any], name: str, digits: int = 2, between: str = " ") -> str:
    if row[name] is None:
        return "-"
    low, high = _ends(row, name)
    ends = "" if low is None or high is None else f"{between}[{low:.{digits}f}, {high:.{digits}f}]"
    return f"{row[name]:.{digits}f}{ends}"


def _short(row: dict[str, Any], name: str) -> str:
    """Format a share and its interval briefly, because a table of topics has many columns."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return "-" if row[name] is None else f"{100 * row[name]:.0f} [{100 * low:.0f},{100 * high:.0f}]"


def _frequency(report: LogReport) -> None:
    rows = report.tables["frequency"].to_dicts()
    names = {"specializing": "specializing", "for_group": "adding group terms"}
    cells = [
        ("n", [f"{row['hits']:,} of {row['n']:,}" for row in rows]),
        ("share [95%]", [_percent(row) for row in rows]),
    ]
    title = (
        "how many pairs of consecutive searches are specializing reformulations, and how many of these reformulations "
        "add terms of a group"
    )
    _table(title, "reformulations", [names[row["what"]] for row in rows], cells)


def _groups(report: LogReport) -> None:
    labels = ["all", *report.groups]
    shares = {row["group"]: row for row in report.tables["groups"].to_dicts()}
    cells = ["" if name == "all" else _percent(shares[name], between="\n") for name in labels]
    columns = [("share [95%]", cells), *_behavior(report, [(name, "all") for name in labels])]
    _table("reformulations that add terms of a group", "group", labels, columns)
    several = shares["several"]["hits"]
    if several:
        say(f"{several:,} of them add terms of several groups and are counted for no group")


def _entries(report: LogReport) -> None:
    rows = report.tables["entries"].filter(group="all").to_dicts()
    labels = [row["entry"] for row in rows]
    columns = [("share [95%]", [_percent(row, between="\n") for row in rows])]
    columns += _behavior(report, [("all", name) for name in labels])
    _table(
        "how users entered the reformulated query (edited, recommended, or other)",
        "entry point",
        labels,
        columns,
    )


def _behavior(report: LogReport, keys: list[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Make columns for groups or entry points: number of events, median gap, ratio of clicks."""

    def picked(name: str) -> list[dict[str, Any]]:
        return [report.tables[name].filter(group=group, entry=entry).row(0, named=True) for group, entry in keys]

    gaps = picked("gaps")
    columns = [
        ("n", [f"{row['n']:,}" for row in gaps]),
        ("median gap, s", [_number(row, "median", 1, "\n") for row in gaps]),
    ]
    if "clicks" in report.tables:
        columns.append(("clicks, ratio", [_number(row, "ratio", 2, "\n") for row in picked("clicks")]))
    return columns


def _shares(report: LogReport, name: str, column: str, title: str, first: str) -> None:
    rows = report.tables[name].filter(group="all").to_dicts()
    columns = [("n", [f"{row['hits']:,}" for row in rows]), ("share [95%]", [_percent(row) for row in rows])]
    _table(title, first, [row[column] for row in rows], columns)


def _ranks(report: LogReport) -> None:
    _shares(report, "ranks", "change", "position of the clicked result in the results of the original query", "rank")


def _kinds(report: LogReport) -> None:
    title = (
        "kinds of reformulations. The kind depends on how many of the mentions of groups in the results of the "
        "original query are mentions of the group that the user added"
    )
    _shares(report, "kinds", "kind", title, "kind")
    lean = report.tables["lean"].filter(group="all").to_dicts()[0]
    if lean["n"]:
        say_wrapped("mentions of the group that the user added, as a share of all mentions of groups on a result page:")
        say(f"  {_percent(lean, 'before')} before, {_percent(lean, 'after')} after the reformulation")
        say_wrapped(
            f"  n = {lean['n']:,} reformulations for which the result page of the original query and the result page "
            "of the reformulation both name a group",
            "  ",
        )


def _sites(report: LogReport) -> None:
    rows = report.tables["sites"].drop_nulls("ratio").to_dicts()
    shown = rows if len(rows) <= 2 * _SITES_SHOWN else [*rows[:_SITES_SHOWN], *rows[-_SITES_SHOWN:]]
    columns = [
        ("n", [f"{row['n']:,}" for row in shown]),
        ("exposure after/before [95%]", [_number(row, "ratio") for row in shown]),
    ]
    _table(
        f"exposure of sites in the results ({len(shown)} of {len(rows)} sites shown)",
        "site",
        [row["site"] for row in shown],
        columns,
    )


def _topics(report: LogReport) -> None:
    table = report.tables["topics"]
    rows = table.to_dicts()
    columns = [("n", [f"{row['n']:,}" for row in rows]), ("rate [95%]", [_number(row, "rate") for row in rows])]
    if "recommended" in table.columns:
        columns.append(("% rec.\n[95%]", [_short(row, "recommended") for row in rows]))
    # With two groups, only the share of the first is shown, because the second share follows from it.
    named = report.groups[:1] if len(report.groups) == 2 else report.groups
    columns += [(f"% {group}\n[95%]", [_short(row, f"share_{group}") for row in rows]) for group in named]
    _table(
        "topics of the original queries. rate: the share of the topic among reformulations that add terms of a group, "
        "divided by the share of the topic among all searches of the log",
        "topic",
        [row["topic"] for row in rows],
        columns,
    )
    for row in report.tables["topic_correlations"].filter(one="rate", two="recommended").drop_nulls("rho").to_dicts():
        told = f"{_number(row, 'rho', 3)}, p {p_value(row['p'])}, n {row['n']}"
        say_wrapped(
            "rank correlation over topics (Spearman's rho) between the columns 'rate' and '% rec.'. The column "
            "'% rec.' is the share of reformulations whose new query was a recommendation of the search engine."
        )
        say(f"  {told}")
        say("  null hypothesis of p: no rank correlation")


def _association(report: LogReport) -> None:
    rows = report.tables["association"].to_dicts()
    shown = [rows[0], *(row for row in rows[1:] if row["p"] is not None and row["p"] < 0.05)]
    columns = [
        ("queries", [f"{row['n']:,}" for row in shown]),
        ("Spearman [95%]", [_number(row, "rho") for row in shown]),
        ("p", [p_value(row["p"]) for row in shown]),
        ("p, Holm", [p_value(row["p_holm"]) for row in shown]),
    ]
    group = report.settings["first_group"]
    title = (
        "rank correlation over queries between two values: how strongly the word vectors of a query are associated "
        f"with {group}, and the share of {group} among the groups that users add to the query. Rows: all queries, and "
        "topics with p < 0.05 (null hypothesis: no rank correlation)"
    )
    _table(title, "topic", [row["topic"] for row in shown], columns)


def _keyphrases(report: LogReport) -> None:
    rows = report.tables["keyphrases"].filter(seed=False).head(12).to_dicts()
    if rows:
        columns = [("score", [f"{row['score']:.4f}" for row in rows]), ("users", [f"{row['users']:,}" for row in rows])]
        _table(
            "keyphrases that users add where others add a group term, such as after 'jobs for'",
            "keyphrase",
            [row["keyphrase"] for row in rows],
            columns,
        )


def _planted(report: LogReport) -> None:
    table = report.tables["planted"]
    say("")
    found = f"{table['within'].sum()} of {table.height}"
    say(f"synthetic log: {found} true values are within their estimated 95% intervals")


_PRINTERS: dict[str, Callable[[LogReport], None]] = {
    "frequency": _frequency, "groups": _groups, "entries": _entries, "ranks": _ranks, "kinds": _kinds, "sites": _sites,
    "topics": _topics, "association": _association, "keyphrases": _keyphrases, "planted": _planted,
}  # fmt: skip
