"""``askew bench``: which lever makes results lean less, and what does it cost?"""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askew.cli import options as o

if TYPE_CHECKING:
    from askew.app.bench.results import BenchReport, Cell, Row

Levers = Annotated[
    list[str] | None,
    typer.Option(
        "--lever", "-l",
        help="A ranker (qld, dense), rerank:detconstsort, rerank:MODEL, reformulate:METHOD, "
        "reformulate:METHOD:oracle, reformulate:METHOD:SELECTOR, or run:FILE; may be given again.",
    ),
]  # fmt: skip


def bench_command(
    collection: Annotated[str, typer.Argument(help="demo, irds:ID, or a folder with docs, queries and qrels.")],
    lever: Levers = None,
    base: Annotated[str, typer.Option(help="The ranker that levers are compared with and build on.")] = "bm25",
    measures: o.Measures = None,
    k: Annotated[int, typer.Option("-k", "--k", help="How many documents each query gets.")] = 100,
    agree: Annotated[
        float, typer.Option(help="reformulate: the share of the original's first ten that a candidate must keep.")
    ] = 0.5,
    queries: Annotated[
        Path | None, typer.Option(help="Only the queries of this file, such as those no model was trained on.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A setting of a lever: --set reformulate:extract.count=5.", metavar="LEVER.NAME=VALUE"
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A folder for report.html, tables as CSV and the runs.")] = None,
    seconds: Annotated[bool, typer.Option(help="Show how long each lever takes.")] = True,
    store: o.StorePath = o.DEFAULT_STORE,
    as_json: o.AsJson = False,
) -> None:
    """Run levers on one collection and its judged queries: effectiveness and lean of each, against a base ranker.

    Levers: another ranker, the base reranked, queries asked otherwise, or runs of your own. Without --lever those that
    need nothing but askew. Example: askew bench demo --lever qld --lever reformulate:extract --out bench
    """
    from askew.app.bench.bench import bench
    from askew.cli.render import Waiting, note, safe, say_json
    from askew.measures.borrowed import quiet_programs

    with quiet_programs(), Waiting("preparing") as progress:
        report = bench(
            collection, lever, base=base, measures=measures, k=k, agree=agree, queries=queries,
            settings=o.settings_by_owner(settings), out=out, store=store, progress=progress,
        )  # fmt: skip
    note(report.notes)
    if as_json:
        say_json(report.to_dict() | ({} if out is None else {"html": str(out / "report.html")}))
        return
    _print_table(report, seconds)
    for said in _legend(report):
        _say_wrapped(said)
    if out is not None:
        typer.echo(f"in {safe(str(out / 'report.html'))}")


def _print_table(report: BenchReport, seconds: bool) -> None:
    from askew.app.bench.page import labels_of, shown_name
    from askew.cli.render import print_tables

    columns = [
        (f"{label}\nn={report.rows[0].cells[name].n}", [_cell(row, name) for row in report.rows])
        for name, label in labels_of(report).items()
    ]
    if any(row.otherwise is not None for row in report.rows):
        columns.append(("asked\notherwise", [_count(row.otherwise) for row in report.rows]))
    if any(row.nothing for row in report.rows):
        columns.append(("found\nnothing", [_count(row.nothing) for row in report.rows]))
    if seconds:
        columns.append(("seconds", [f"{row.seconds:.2f}" if row.seconds else "-" for row in report.rows]))
    base = report.rows[0].lever.text
    title = f"{report.collection}: {len(report.query_ids):,} queries, {report.k:,} documents each, against {base}"
    print_tables(title, "lever", [shown_name(row) for row in report.rows], columns)


def _say_wrapped(text: str) -> None:
    """A sentence in as many lines as it needs; those that follow the first are indented."""
    from askew.cli.render import safe

    width = shutil.get_terminal_size((100, 24)).columns
    typer.echo(textwrap.fill(safe(text), max(width, 40), subsequent_indent="  "))


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _cell(row: Row, name: str) -> str:
    """The mean, the change with its interval, the corrected p, and the queries improved and worsened."""
    from askew.app.bench.page import FRONT
    from askew.cli.render import number, p_value

    cell = row.cells[name]
    mean = number(cell.mean) + (f" {FRONT}" if name in row.front else "")
    if cell.against is None:
        return mean
    p = p_value(cell.p_holm)
    return f"{mean}\n{_change(cell)}\np {p}  {cell.against.improved}/{cell.against.worsened}"


def _change(cell: Cell) -> str:
    from askew.publish.page.numerals import FEWEST

    if cell.change is None:
        return "-"
    few = cell.low is None or cell.high is None or cell.n < FEWEST
    return f"{cell.change:+.1f}%" + ("" if few else f" [{cell.low:+.0f}, {cell.high:+.0f}]")


def _legend(report: BenchReport) -> list[str]:
    from askew.app.bench.page import marks_note

    said = (
        "In a cell: the mean; its change against the base with a 95% interval; p (null hypothesis: the mean gain is 0; "
        f"Holm over all {report.tests} tests); queries improved/worsened."
    )
    return [said, *marks_note(report), *report.rules]
