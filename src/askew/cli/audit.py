"""``askew audit``: how far do the results of a live engine lean, why, and what reduces the lean?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askew.app.audit.settings import AuditSettings
from askew.cli import options as o
from askew.cli.render import Waiting, end_gate, interval, note, number, print_tables, say, say_json, say_wrapped, signed
from askew.core.groups import Groups

if TYPE_CHECKING:
    from askew.app.audit.report import AuditReport

DEFAULTS = AuditSettings()
# The number of worst queries and of reformulations shown in a terminal.
_MOST_SHOWN = 5


def command(
    engine: Annotated[
        str,
        typer.Argument(
            help="The engine: a URL that contains '{query}' and '{k}'; 'http:SETTINGS.toml'; "
            "'callable:FILE.py:FUNCTION'; or a ranker (see 'askew list rankers'), such as 'opensearch' or 'bm25', with "
            "its settings in --set."
        ),
    ],
    queries: Annotated[str, typer.Option(help="A file of queries (id TAB text, or JSON Lines), 'irds:ID', or 'demo'.")],
    method_settings: o.EngineSettings = None,
    docs: Annotated[
        Path | None,
        typer.Option(
            help="The texts of the documents; needed if the engine returns only ids. The file formats are those of "
            "'askew measure --docs'."
        ),
    ] = None,
    qrels: o.Qrels = None,
    measures: o.Measures = None,
    groups: o.GroupNames = None,
    lexicon: o.LexiconName = None,
    k: Annotated[
        int, typer.Option("-k", "--k", help="The number of results to request and measure per query.")
    ] = DEFAULTS.k,
    worst: Annotated[
        int, typer.Option(help="How many of the queries with the largest lean to show and reformulate.")
    ] = (DEFAULTS.worst),
    tries: Annotated[int, typer.Option(help="The maximum number of reformulations to try per query.")] = DEFAULTS.tries,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="A reformulator; may be repeated. Default: 'reduce', and 'rewrite' if its packages are installed.",
        ),
    ] = None,
    missing: o.Missing = None,
    resolver: Annotated[
        str,
        typer.Option(
            help="The model that estimates why a result mentions a group and who is mentioned: 'light' or 'neural' "
            "(slow)."
        ),
    ] = (DEFAULTS.resolver),
    baseline: Annotated[
        Path | None, typer.Option(help="The file audit.json of an earlier audit, to compare this audit with.")
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with code 1 if this condition holds: 'ARaB(tf)@10 > 0.2', 'ARaB(tf,sign=abs)@10 > +10%' (more "
            "than 10% above --baseline) or 'NFaiRR@10 worse' (significantly worse than --baseline); may be repeated."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write report.html, audit.json and tables to this folder. report.html shows the texts of queries."
        ),
    ] = None,
    keep_queries: Annotated[
        bool,
        typer.Option(
            "--keep-queries", help="Also write the texts of queries to audit.json, the tables and the JSON output."
        ),
    ] = False,
    store: Annotated[
        str,
        typer.Option(
            "--store",
            help="The folder in which the answers of the engine are kept until the audit is complete. Used only if "
            "--out is not given.",
        ),
    ] = o.DEFAULT_STORE,
    as_json: o.AsJson = False,
) -> None:
    """Audit a live engine: measure the bias (lean) of its results, and reformulate the queries that lean most.

    The report also estimates how much of the lean comes from documents that are not about the query, and suggests next
    steps. If an audit was stopped, the same command resumes it. Queries that the engine has already answered are not
    sent again.
    Example: askew audit http:engine.toml --queries queries.tsv --out audit
    """
    from askew.app.audit.audit import audit
    from askew.measures.borrowed import quiet_programs

    own, of_methods = _split(o.read_settings(method_settings))
    how = AuditSettings(
        k=k, worst=worst, tries=tries, methods=methods, method_settings=of_methods, missing=missing, resolver=resolver,
        out=out, store=store, keep_queries=keep_queries,
    )  # fmt: skip
    with quiet_programs(), Waiting("searching") as progress:
        report = audit(
            engine, queries, engine_settings=own, groups=Groups.resolve(groups, lexicon), measures=measures, docs=docs,
            qrels=qrels, baseline=baseline, fail_if=fail_if or (), settings=how, progress=progress,
        )  # fmt: skip
    note(report.notes)
    if as_json:
        say_json(report.to_dict(keep_queries))
    else:
        _print_report(report, keep_queries)
        if out is not None:
            say(f"written to {out / 'report.html'}")
    end_gate(fail_if or (), report.failures)


def _split(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Separate the settings of the engine from those of a method or filter, which have a dot: ``reduce.shortest``."""
    own, others = dict[str, Any](), dict[str, dict[str, Any]]()
    for name, value in given.items():
        owner, dot, inner = name.rpartition(".")
        if dot:
            others.setdefault(owner, {})[inner] = value
        else:
            own[name] = value
    return own, others


def _print_report(report: AuditReport, keep_queries: bool) -> None:
    title = f"{report.engine}: {report.queries:,} queries, up to {report.k:,} results each"
    means = [report.mean(one.text) for one in report.asked]
    columns = [
        ("mean", [number(one.mean) for one in means]),
        ("95% interval", [interval(one.low, one.high, ".3f") for one in means]),
        ("n queries", [f"{one.n:,}" for one in means]),
    ]
    print_tables(title, "measure", [one.text for one in report.asked], columns)
    say_wrapped(report.reading)
    _print_against(report)
    _print_parts(report)
    _print_worst(report, keep_queries)
    _print_reformulations(report, keep_queries)
    say("what to do next")
    for sentence in report.next_steps:
        say_wrapped(f"- {sentence}")


def _print_against(report: AuditReport) -> None:
    """Print the change of each measure since the baseline."""
    from askew.app.audit.tables import DETECTABLE, GAIN

    if not report.against:
        return
    rows = list(report.against.values())
    columns = [
        ("before", [number(one.old) for one in rows]),
        ("now", [number(one.new) for one in rows]),
        ("gain [95%]", [f"{one.gain:+.4f}\n{interval(one.low, one.high, '+.3f')}" for one in rows]),
        ("detectable\ngain", [number(one.detectable) for one in rows]),
        ("n", [f"{one.n:,}" for one in rows]),
    ]
    say("")
    print_tables(
        "change since the baseline (only queries that are in both audits)", "measure", list(report.against), columns
    )
    say_wrapped(f"{GAIN} {DETECTABLE}")


def _print_parts(report: AuditReport) -> None:
    from askew.publish.page.counted import part_name

    for found in report.parts:
        rows = found.parts
        say("")
        columns = [
            ("share", [f"{one.share:.0%}" for one in rows]),
            ("95% interval", [f"[{one.low:.0%}, {one.high:.0%}]" for one in rows]),
            ("net", [signed(one.net) for one in rows]),
        ]
        title = f"{found.measure}: estimated contribution of each kind of mention ({found.mentions:,} mentions)"
        print_tables(title, "part", [f"{one.kind}: {part_name(one.name)}" for one in rows], columns)


def _print_worst(report: AuditReport, keep_queries: bool) -> None:
    shown = report.worst[:_MOST_SHOWN]
    if not shown:
        return
    suggested = {one.query_id for one in report.reformulations.suggested}
    columns = [
        (report.lean.text, [number(one.lean) for one in shown]),
        *((f"words:\n{group}", [f"{one.mentions.get(group, 0):,}" for one in shown]) for group in report.lean.groups),
        *([("words\nin names", [f"{one.in_names:,}" for one in shown])] if shown[0].in_names is not None else []),
        ("reformulation\nsuggested", ["yes" if one.query_id in suggested else "-" for one in shown]),
    ]
    labels = [one.text if keep_queries else one.query_id for one in shown]
    print_tables(f"queries with the largest lean ({len(shown)} of {len(report.worst)} shown)", "query", labels, columns)


def _print_reformulations(report: AuditReport, keep_queries: bool) -> None:
    shown = report.reformulations.suggested[:_MOST_SHOWN]
    if not shown:
        return
    columns = [
        ("method", [one.method for one in shown]),
        ("P(same)", [f"{one.same:.0%}" for one in shown]),
        ("lean", [f"{number(one.lean[0], 3)} to {number(one.lean[1], 3)}" for one in shown]),
        ("results\nkept", [f"{one.kept:.0%}" for one in shown]),
        ("outcome", [one.outcome or "-" for one in shown]),
    ]
    labels = [one.text if keep_queries else one.query_id for one in shown]
    title = f"suggested reformulations ({len(shown)} of {len(report.reformulations.suggested)})"
    print_tables(title, "reformulation" if keep_queries else "of query", labels, columns)
    if not keep_queries:
        say_wrapped(
            "The texts of queries and reformulations are in report.html (--out). To print them here too, add "
            "--keep-queries."
        )
        say("")
