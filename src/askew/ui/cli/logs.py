"""``askew logs``: when and how do people add a group to their queries?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askew.core.defaults import counted
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.logs.settings import LogSettings
from askew.ui.cli import options as o
from askew.ui.cli.render import Waiting, note, p_value, print_tables, say, say_json, say_wrapped

if TYPE_CHECKING:
    from askew.logs.report import LogReport


_SITES_SHOWN = 4
_DEFAULT = LogSettings()


@o.options("""
LOG (logs): Log files, or folders of log files; plain or gzip.
--format (form): Format of the log; see 'askew list log_formats'.
--columns: Names of the columns of a TSV or Parquet log, such as 'user=UID,time=TS,query=Q,entry=SOURCE'.
--gap: If the log does not mark sessions, start a new session after this many minutes without a row of the user.
--topics: Source of the topics of queries: 'auto', 'column', 'words', 'none', a .toml file of word lists, or the name of
    a classifier.
--vectors: Word vectors (GloVe, word2vec, .npy) that measure how strongly a query is associated with each group.
--direction: With --vectors, choose how to compute the direction between the two groups in the vector space: 'pca' (from
    all word pairs) or 'pair' (from one word pair).
--pairs: A TOML file of word pairs for --direction; needed unless the groups are 'female' and 'male'.
--page-lexicon: Count the words of this lexicon in the texts of result pages. Default: the lexicon for the queries.
--min-users: Show only texts of queries that at least this many users typed.
--min-events: Show only sites that appear in the results of at least this many reformulations.
--review: Write candidate group terms from the log to this TSV file, so that you can accept or reject them. The next run
    reads your decisions from the file.
--out: Write report.html and the tables to this new folder.
--threads: The number of threads. Default: all cores.
--demo: Analyze the synthetic sample log that askew ships.
""")
def command(
    logs: list[Path] | None = None, form: str = _DEFAULT.format, columns: str | None = None, groups: str | None = None,
    lexicon: str | None = None, gap: float = _DEFAULT.gap, topics: str = _DEFAULT.topics, vectors: Path | None = None,
    direction: str = _DEFAULT.direction, pairs: Path | None = None, page_lexicon: str | None = None,
    min_users: int = _DEFAULT.min_users, min_events: int = _DEFAULT.min_events, review: Path | None = None,
    out: Path | None = None, threads: int | None = None, demo: bool = False, as_json: bool = False,
) -> None:  # fmt: skip
    """Analyze a query log: how often and on which topics users add terms of a group, and with what effect.

    User ids are hashed with a key that is never stored. Texts that few users typed are never shown.

    Example: askew logs user-ct-test-collection-01.txt.gz --format aol --out report
    """
    from askew.logs.analyze import analyze_log, analyze_sample
    from askew.logs.page import check_out

    if demo == bool(logs):
        raise ConfigError("askew logs: expected either log files or --demo (a synthetic log); give exactly one of them")
    check_out(out)
    settings = LogSettings(
        format=form, columns=read_columns(columns), groups=Groups.resolve(groups, lexicon) or _DEFAULT.groups, gap=gap,
        topics=topics, vectors=vectors, direction=direction, pairs=pairs, page_lexicon=page_lexicon,
        min_users=min_users, min_events=min_events, review=review, threads=threads,
    )  # fmt: skip
    with Waiting("reading the log") as progress:
        report = analyze_sample(settings, progress) if demo else analyze_log(logs, settings=settings, progress=progress)
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
        lines.append(f"{counted(count, 'row', 'rows')} left out: {reason}" + (f" ({places})" if places else ""))
    return lines


def show(report: LogReport, review: Path | None, out: Path | None) -> None:
    """Print the summary. It fits a screen of 80 columns."""
    for line in report.lead:
        say(line)
    for name, printer in _PRINTERS.items():
        if name in report.tables and report.tables[name].height:
            printer(report)
    for (what,), rows in report.tables["withheld"].group_by("what", maintain_order=True):
        reasons = ", ".join(f"{row['reason']} {row['n']:,}" for row in rows.to_dicts())
        say(f"{what} not shown: {reasons}")
    if review is not None:
        say_wrapped(
            f"To review the phrases in {review}, write the name of a group, or 'no' for no group, in the last column. "
            "Then run this command again."
        )
    if out is not None:
        say(f"written to {out}: report.html, report.json and {len(report.tables)} tables")


Row = dict[str, Any]
Cells = Callable[[Row], str]


def _table(title: str, key: str, rows: list[Row], columns: dict[str, Cells], first: str = "") -> None:
    """Print a table with a row for each of ``rows``, named by its value of ``key``."""
    say("")
    cells = [(heading, [cell(row) for row in rows]) for heading, cell in columns.items()]
    print_tables(title, first or key, [row[key] for row in rows], cells)


def _count(name: str = "n") -> Cells:
    return lambda row: f"{row[name]:,}"


def _value(name: str, digits: int = 2, factor: int = 1, unit: str = "", before: str = " ") -> Cells:
    """Format a value with its interval, whose columns are NAME_low and NAME_high, or low and high."""

    def cell(row: Row) -> str:
        if row[name] is None:
            return "-"
        low, high = row.get(f"{name}_low", row.get("low")), row.get(f"{name}_high", row.get("high"))
        ends = "" if low is None or high is None else f"{before}[{factor * low:.{digits}f}, {factor * high:.{digits}f}]"
        return f"{factor * row[name]:.{digits}f}{unit}{ends}"

    return cell


def _percent(name: str = "share", before: str = " ") -> Cells:
    return _value(name, 1, 100, "%", before)


def _short(name: str) -> Cells:
    """Format a share and its interval briefly, because a table of topics has many columns."""
    return lambda row: _value(name, 0, 100)(row).replace(", ", ",")


def _p(name: str) -> Cells:
    return lambda row: p_value(row[name])


def _frequency(report: LogReport) -> None:
    names = {"specializing": "specializing", "for_group": "adding group terms"}
    rows = [{**row, "reformulations": names[row["what"]]} for row in report.tables["frequency"].to_dicts()]
    title = (
        "how many pairs of consecutive searches are specializing reformulations, and how many of these reformulations "
        "add terms of a group"
    )
    columns = {"n": lambda row: f"{row['hits']:,} of {row['n']:,}", "share [95%]": _percent()}
    _table(title, "reformulations", rows, columns)


def _groups(report: LogReport) -> None:
    shares = {row["group"]: row for row in report.tables["groups"].to_dicts()}
    rows = [{"group": name, "entry": "all", **shares.get(name, {})} for name in ("all", *report.groups)]
    share: Cells = lambda row: _percent(before="\n")(row) if "share" in row else ""  # noqa: E731
    title = "reformulations that add terms of a group"
    _table(title, "group", rows, {"share [95%]": share, **_behavior(report)})
    if several := shares["several"]["hits"]:
        say(f"{several:,} of them add terms of several groups and are counted for no group")


def _entries(report: LogReport) -> None:
    rows = report.tables["entries"].filter(group="all").to_dicts()
    title = "how users entered the reformulated query (edited, recommended, or other)"
    _table(title, "entry", rows, {"share [95%]": _percent(before="\n"), **_behavior(report)}, "entry point")


def _behavior(report: LogReport) -> dict[str, Cells]:
    """Make columns for groups or entry points: number of events, median gap, ratio of clicks."""

    def of(table: str, cell: Cells) -> Cells:
        found = report.tables[table]
        return lambda row: cell(found.filter(group=row["group"], entry=row["entry"]).row(0, named=True))

    columns = {"n": of("gaps", _count()), "median gap, s": of("gaps", _value("median", 1, before="\n"))}
    if "clicks" in report.tables:
        columns["clicks, ratio"] = of("clicks", _value("ratio", before="\n"))
    return columns


def _ranks(report: LogReport) -> None:
    rows = report.tables["ranks"].filter(group="all").to_dicts()
    title = "position of the clicked result in the results of the original query"
    _table(title, "change", rows, {"n": _count("hits"), "share [95%]": _percent()}, "rank")


def _kinds(report: LogReport) -> None:
    rows = report.tables["kinds"].filter(group="all").to_dicts()
    title = (
        "kinds of reformulations. The kind depends on how many of the mentions of groups in the results of the "
        "original query are mentions of the group that the user added"
    )
    _table(title, "kind", rows, {"n": _count("hits"), "share [95%]": _percent()})
    lean = report.tables["lean"].filter(group="all").to_dicts()[0]
    if lean["n"]:
        say_wrapped("mentions of the group that the user added, as a share of all mentions of groups on a result page:")
        say(f"  {_percent('before')(lean)} before, {_percent('after')(lean)} after the reformulation")
        say_wrapped(
            f"  n = {lean['n']:,} reformulations for which the result page of the original query and the result page "
            "of the reformulation both name a group",
            "  ",
        )


def _sites(report: LogReport) -> None:
    rows = report.tables["sites"].drop_nulls("ratio").to_dicts()
    shown = rows if len(rows) <= 2 * _SITES_SHOWN else [*rows[:_SITES_SHOWN], *rows[-_SITES_SHOWN:]]
    title = f"exposure of sites in the results ({len(shown)} of {len(rows)} sites shown)"
    _table(title, "site", shown, {"n": _count(), "exposure after/before [95%]": _value("ratio")})


def _topics(report: LogReport) -> None:
    table = report.tables["topics"]
    columns = {"n": _count(), "rate [95%]": _value("rate")}
    if "recommended" in table.columns:
        columns["% rec.\n[95%]"] = _short("recommended")
    # With two groups, only the share of the first is shown, because the second share follows from it.
    named = report.groups[:1] if len(report.groups) == 2 else report.groups
    columns |= {f"% {group}\n[95%]": _short(f"share_{group}") for group in named}
    title = (
        "topics of the original queries. rate: the share of the topic among reformulations that add terms of a group, "
        "divided by the share of the topic among all searches of the log"
    )
    _table(title, "topic", table.to_dicts(), columns)
    for row in report.tables["topic_correlations"].filter(one="rate", two="recommended").drop_nulls("rho").to_dicts():
        say_wrapped(
            "rank correlation over topics (Spearman's rho) between the columns 'rate' and '% rec.'. The column "
            "'% rec.' is the share of reformulations whose new query was a recommendation of the search engine."
        )
        say(f"  {_value('rho', 3)(row)}, p {p_value(row['p'])}, n {row['n']}")
        say("  null hypothesis of p: no rank correlation")


def _association(report: LogReport) -> None:
    first, *rows = report.tables["association"].to_dicts()
    shown = [first, *(row for row in rows if row["p"] is not None and row["p"] < 0.05)]
    group = report.settings["first_group"]
    title = (
        "rank correlation over queries between two values: how strongly the word vectors of a query are associated "
        f"with {group}, and the share of {group} among the groups that users add to the query. Rows: all queries, and "
        "topics with p < 0.05 (null hypothesis: no rank correlation)"
    )
    columns = {"queries": _count(), "Spearman [95%]": _value("rho"), "p": _p("p"), "p, Holm": _p("p_holm")}
    _table(title, "topic", shown, columns)


def _keyphrases(report: LogReport) -> None:
    rows = report.tables["keyphrases"].filter(seed=False).head(12).to_dicts()
    if rows:
        title = "keyphrases that users add where others add a group term, such as after 'jobs for'"
        _table(title, "keyphrase", rows, {"score": lambda row: f"{row['score']:.4f}", "users": _count("users")})


_PRINTERS: dict[str, Callable[[LogReport], None]] = {
    "frequency": _frequency, "groups": _groups, "entries": _entries, "ranks": _ranks, "kinds": _kinds, "sites": _sites,
    "topics": _topics, "association": _association, "keyphrases": _keyphrases,
}  # fmt: skip
