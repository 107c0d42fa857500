"""``askew bench``: which mitigation method reduces lean, and what does it cost?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askew.app.bench.settings import BenchSettings
from askew.cli import options as o
from askew.cli.render import Waiting, note, number, p_value, print_tables, safe, say_json, say_wrapped
from askew.core.errors import ConfigError
from askew.core.groups import Groups

if TYPE_CHECKING:
    from askew.app.bench.results import BenchReport, Row

DEFAULTS = BenchSettings()
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method", "-m",
        help="A method to compare; may be repeated. 'qld', 'dense' and 'fusion:bm25,dense' are other rankers. "
        "'greedy', 'mmr', 'detconstsort', 'fairtopk' and 'rerank:MODEL' rerank the results of the base ranker. "
        "'reformulate:NAME' searches with the reformulations of the method NAME, and chooses one of them. To choose "
        "in another way, add ':one-search', ':oracle' or ':SELECTOR'. 'run:FILE' and 'FILE.py:CLASS' are methods of "
        "your own. 'METHOD@3' sets the strength of METHOD to 3. 'METHOD@1,2,3' runs METHOD with three strengths. "
        "'METHOD+greedy' reranks the results of METHOD.",
    ),
]  # fmt: skip


def bench_command(
    collection: Annotated[
        str | None,
        typer.Argument(
            help="The collection: 'demo', 'irds:ID', a recipe, a store, or a folder with documents, queries and qrels."
        ),
    ] = None,
    methods: Methods = None,
    base: Annotated[
        str, typer.Option(help="The base ranker. Each method is compared with this ranker.")
    ] = DEFAULTS.base,
    measures: o.Measures = None,
    groups: o.GroupNames = None,
    lexicon: o.LexiconName = None,
    k: Annotated[int, typer.Option("-k", "--k", help="The number of documents to retrieve per query.")] = DEFAULTS.k,
    agree: Annotated[
        float,
        typer.Option(
            help="For methods 'reformulate:NAME': use only reformulations whose top 10 results contain at least this "
            "share of the original query's top 10 results."
        ),
    ] = DEFAULTS.agree,
    equivalence: Annotated[
        str,
        typer.Option(
            help="For methods 'reformulate:NAME': drop reformulations whose meaning differs from the original query. "
            "The model that compares the meanings is 'auto', 'light', 'minilm', 'neural' or 'off' (no model)."
        ),
    ] = DEFAULTS.equivalence,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep",
            help="For methods with a strength (3 in 'greedy@3'): run the method once for each strength in its "
            "built-in list.",
        ),
    ] = DEFAULTS.sweep,
    queries: Annotated[
        Path | None,
        typer.Option(help="Use only the queries of this file, for example queries that no model was trained on."),
    ] = None,
    method_settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A setting of a method, such as --set reformulate:extract.count=5; may be repeated.",
            metavar="METHOD.NAME=VALUE",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write report.html, tables, the scores of every query and the runs to this folder."),
    ] = None,
    from_scores: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            help="Show the report of an earlier bench from its folder, without searching. Repeat it to show "
            "several collections on one page.",
        ),
    ] = None,
    seconds: Annotated[bool, typer.Option(help="Show how long each method takes.")] = True,
    store: o.StorePath = str(DEFAULTS.store),
    as_json: o.AsJson = False,
) -> None:
    """Compare mitigation methods on the judged queries of a collection: effectiveness and lean against a base ranker.

    A method is another ranker, a reranker, a reformulator with a rule that chooses among its candidates, or your own
    run. Without --method, the methods that need no optional extra are run. For a recipe or a store, its collection and
    groups are used.
    Example: askew bench demo --method greedy@2,3,5 --method reformulate:reduce --out bench
    """
    from askew.app.bench.bench import bench, show_bench
    from askew.measures.borrowed import quiet_programs

    if (collection is None) == (not from_scores):
        raise ConfigError(
            "bench: expected either a collection or --from, found "
            f"{'neither' if collection is None else 'both'}; --from shows an earlier bench from its folder"
        )
    if from_scores:
        _print_again(show_bench(from_scores, out), as_json, seconds, out)
        return
    given = BenchSettings(base, k, agree, equivalence, sweep, o.settings_by_owner(method_settings), out, store)
    with quiet_programs(), Waiting("preparing") as progress:
        report = bench(
            collection, methods, measures, groups=Groups.resolve(groups, lexicon), queries=queries, settings=given,
            progress=progress,
        )  # fmt: skip
    note(report.notes)
    if as_json:
        say_json(report.to_dict() | ({} if out is None else {"html": str(out / "report.html")}))
    else:
        _print_report(report, seconds, out)


def _print_again(reports: list[BenchReport], as_json: bool, seconds: bool, out: Path | None) -> None:
    if as_json:
        say_json([report.to_dict() for report in reports])
        return
    for report in reports:
        note(report.notes)
        _print_report(report, seconds, None)
    if out is not None:
        typer.echo(f"written to {safe(str(out / 'report.html'))}")


def _print_report(report: BenchReport, seconds: bool, out: Path | None) -> None:
    _print_table(report, seconds)
    for line in _legend(report):
        say_wrapped(line, "  ")
    if out is not None:
        typer.echo(f"written to {safe(str(out / 'report.html'))}")


def _print_table(report: BenchReport, seconds: bool) -> None:
    from askew.app.bench.labels import labels_of

    columns = [
        (f"{label}\nn={report.rows[0].cells[name].n} queries", [_cell(row, name) for row in report.rows])
        for name, label in labels_of(report).items()
    ]
    costs = [row.costs for row in report.rows]
    columns.append(("searches\nper query", [_average(one.searches) for one in costs]))
    columns.append(("model calls\nper query", [_average(one.model_calls) for one in costs]))
    columns.append(("top 10\nkept", [f"{100 * one.kept:.0f}%" for one in costs]))
    if any(one.reformulated is not None for one in costs):
        columns.append(("reformulated\nqueries", [_count(one.reformulated) for one in costs]))
    if any(one.empty for one in costs):
        columns.append(("queries without\nresults", [_count(one.empty) for one in costs]))
    if seconds:
        columns.append(("seconds", [f"{one.seconds:.2f}" if one.seconds else "-" for one in costs]))
    base = report.rows[0].method.text
    title = f"{report.collection}: {len(report.query_ids):,} queries, {report.k:,} documents each, against {base}"
    print_tables(title, "method", [row.label for row in report.rows], columns)


def _average(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _cell(row: Row, name: str) -> str:
    """Format the mean, the change with its interval, the corrected p, and the queries improved and worsened."""
    from askew.app.bench.results import PARETO

    cell = row.cells[name]
    mean = number(cell.mean) + (f" {PARETO}" if name in row.pareto else "")
    if cell.against is None:
        return mean
    change = "-" if cell.change is None else f"{cell.change:+.1f}%"
    interval = f" [{cell.low:+.0f}, {cell.high:+.0f}]" if cell.has_interval else ""
    return f"{mean}\n{change}{interval}\np {p_value(cell.p_holm)}  {cell.against.improved}/{cell.against.worsened}"


def _legend(report: BenchReport) -> list[str]:
    from askew.app.bench.labels import marks_note

    cell = (
        "First line of a cell: the mean of the measure. Second line: the change of this mean relative to the base "
        "ranker, with a 95% interval. Third line: p, and the numbers of improved and worsened queries. The null "
        "hypothesis of p is that the mean gain over the base ranker is 0. p is corrected by Holm's method over all "
        f"{report.tests} tests."
    )
    return [cell, *marks_note(report), *report.rules]
