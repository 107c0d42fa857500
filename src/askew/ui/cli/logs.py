"""``askew logs``: when and how do people add a group to their queries?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from askew.core.defaults import counted
from askew.core.errors import ConfigError
from askew.core.folders import refuse_full
from askew.core.groups import Groups
from askew.logs.settings import LogSettings
from askew.ui.cli import options as o
from askew.ui.cli.render import Waiting, note, print_table, say, say_json, say_wrapped

if TYPE_CHECKING:
    from askew.logs.report import LogReport


# The tables of the report that the command prints, in this order.
_SHOWN = (
    "frequency", "groups", "gaps", "entries", "clicks", "ranks", "kinds", "lean", "sites", "topics",
    "association", "keyphrases",
)  # fmt: skip
_DEFAULT = LogSettings()


@o.options("""
LOG (logs): Log files, or folders of log files; plain or gzip.
--format: Format of the log; see 'askew list log_formats'.
--columns: Names of the columns of a TSV or Parquet log, such as 'user=UID,time=TS,query=Q,entry=SOURCE'.
--gap: If the log does not mark sessions, start a new session after this many minutes without a row of the user.
--topics: Source of the topics of queries: 'auto', 'column', 'words', 'none', a .toml file of word lists, or the name of
    a classifier.
--vectors: Word vectors (GloVe, word2vec, .npy) that measure how strongly a query is associated with each group.
--pairs: With --vectors, a TOML file of word pairs, one word for each group. Needed unless the groups are 'female' and
    'male'.
--page-lexicon: Count the words of this lexicon in the texts of result pages. Default: the lexicon for the queries.
--min-users: Show only texts of queries that at least this many users typed.
--min-events: Show only sites that appear in the results of at least this many reformulations.
--review: Write candidate group terms from the log to this TSV file, so that you can accept or reject them. The next run
    reads your decisions from the file.
--out: Write report.html and the tables to this new folder.
--threads: The number of threads. Default: all cores.
--demo: Analyze the synthetic sample log that askew ships.
**given: format columns groups:text lexicon gap topics vectors:path pairs:path page_lexicon min_users min_events
    review:path out:path threads:int
""", settings=_DEFAULT)  # fmt: skip
def command(logs: list[Path] | None = None, demo: bool = False, as_json: bool = False, **given: Any) -> None:
    """Analyze a query log: how often and on which topics users add terms of a group, and with what effect.

    User ids are hashed with a key that is never stored. Texts that few users typed are never shown.

    Example: askew logs user-ct-test-collection-01.txt.gz --format aol --out report
    """
    from askew.logs import analyze

    if demo == bool(logs):
        raise ConfigError("askew logs: expected either log files or --demo (a synthetic log); give exactly one of them")
    out, review = given.pop("out"), given["review"]
    if out is not None:
        refuse_full(out)
    given["groups"] = Groups.resolve(given["groups"], given.pop("lexicon")) or _DEFAULT.groups
    settings = LogSettings(**{**given, "columns": read_columns(given["columns"])})
    with Waiting("reading the log") as progress:
        report = (
            analyze.analyze_sample(settings, progress)
            if demo
            else analyze.logs(logs, settings=settings, progress=progress)
        )
    note(report.notes)
    for reason, count in report.rejected.items():
        places = "; ".join(report.examples.get(reason, []))
        note([f"{counted(count, 'row', 'rows')} left out: {reason}" + (f" ({places})" if places else "")])
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


def show(report: LogReport, review: Path | None, out: Path | None) -> None:
    """Print the summary. It fits a screen of 80 columns."""
    from askew.logs.page import report_table

    for line in report.lead:
        say(line)
    say("")
    for name in _SHOWN:
        if (shown := report_table(report, name, brief=True)) is not None:
            print_table(shown)
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
