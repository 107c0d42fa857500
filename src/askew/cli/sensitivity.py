"""``askew sensitivity``: does the order of systems depend on the word list or on another choice?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askew.cli import options as o
from askew.cli.render import Waiting, note, print_rows, say, say_json, say_tsv, say_wrapped
from askew.core import defaults
from askew.core.groups import Groups

if TYPE_CHECKING:
    from askew.app.measure.agreement import SensitivityReport

# The number of pairs of systems shown in a terminal.
_MOST_SHOWN = 10


def command(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Two or more run files in TREC, TSV, JSON Lines or Parquet format; may be gzipped."),
    ],
    docs: o.Docs = None,
    queries: o.Queries = None,
    label: o.Label = None,
    background: o.Background = None,
    measures: Annotated[
        str | None,
        typer.Option(
            help="Measures of lean, such as 'ARaB(tf) NFaiRR'. Give no cutoffs here, because --cutoffs sets them. "
            "Default: ARaB (tc, tf and bool), NFaiRR and LexiconShare."
        ),
    ] = None,
    groups: o.GroupNames = None,
    lexicon: o.LexiconName = None,
    lexicons: Annotated[
        str | None,
        typer.Option(
            help="Lexicons to compare, by name or file, such as 'gender,my.csv'. Default: all shipped lexicons that "
            "have the groups of --groups (by default 'female' and 'male')."
        ),
    ] = None,
    tokens: Annotated[
        str | None, typer.Option(help=f"Tokenizers to compare. Default: {','.join(defaults.SENSITIVITY_TOKENS)}.")
    ] = None,
    signs: Annotated[
        str | None, typer.Option(help=f"Signs to compare. Default: {','.join(defaults.SENSITIVITY_SIGNS)}.")
    ] = None,
    cutoffs: Annotated[
        str | None,
        typer.Option(help=f"Cutoffs to compare. Default: {','.join(map(str, defaults.SENSITIVITY_CUTOFFS))}."),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help="How to treat a ranked document without text: 'zero' (it names no group), 'drop' (remove it before "
            "the cutoff) or 'skip' (remove it after the cutoff). If all documents have a text, this choice is not "
            f"varied. Default: {','.join(defaults.SENSITIVITY_MISSING)}."
        ),
    ] = None,
    who: Annotated[
        str | None,
        typer.Option(
            help="Count only the words that refer to one class: 'real' (a real person), 'fictional' (a character), "
            "'generic' (people in general), 'name' (a title, brand or place) or 'other' (no person). With '+', the "
            "words of several classes are counted together, as in 'real+fictional'; 'any' counts all words. Default: "
            f"{','.join(defaults.SENSITIVITY_WHO)}."
        ),
    ] = None,
    order: o.Order = None,
    fields: o.Fields = None,
    run_format: o.RunFormat = defaults.RUN_FORMAT,
    store: o.StorePath = o.DEFAULT_STORE,
    html: Annotated[Path | None, typer.Option(help="Write an HTML page with a heat map to this file.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write report.html and all tables to this folder.")] = None,
    as_json: o.AsJson = False,
    as_tsv: o.AsTsv = False,
) -> None:
    """Measure the lean of runs with different measures, lexicons and settings; report if the order of runs changes.

    All combinations of --measures, --lexicons, --tokens, --signs, --cutoffs, --missing and --who are measured. Separate
    the values of an option with commas.
    Example: askew sensitivity bm25.run bert.run tk.run --docs docs.tsv --html sensitivity.html
    """
    from askew.app.measure.sensitivity import sensitivity

    o.one_form(as_json, as_tsv)
    with Waiting("counting words") as progress:
        report = sensitivity(
            list(runs), measures=measures, groups=Groups.resolve(groups, lexicon), docs=docs, lexicons=lexicons,
            tokens=tokens, signs=signs, cutoffs=cutoffs, missing=missing, who=who, queries=queries, label=label,
            background=background, order=order, fields=o.split_fields(fields), run_format=run_format, store=store,
            html=html, out=out, progress=progress,
        )  # fmt: skip
    note(report.notes)
    if as_json:
        say_json(report.to_dict())
    elif as_tsv:
        _print_tsv(report)
    else:
        _print_tables(report)
        for place in [*([] if html is None else [html]), *([] if out is None else [out / "report.html"])]:
            say(f"written to {place}")


def _print_tsv(report: SensitivityReport) -> None:
    """Print one line for each combination."""
    table = report.to_polars()
    say_tsv(*table.columns)
    for row in table.iter_rows():
        say_tsv(*("" if value is None else str(value) for value in row))


def _print_tables(report: SensitivityReport) -> None:
    from askew.app.measure.agreement import AXIS_HEAD

    for sentence in report.sentences():
        say_wrapped(sentence)
    say("")
    rows = report.axis_rows()
    say_wrapped(
        "Kendall's tau between the orders of systems in two combinations of choices. The two combinations differ in "
        "only one choice, which is called the axis."
    )
    _print(AXIS_HEAD, rows)
    say("ranks of the systems (rank 1: leans least)")
    ranks = [[one.system, f"{one.median:g}", f"{one.best}-{one.worst}", f"{one.least:,}"] for one in report.ranks]
    _print(("system", "median", "range", "times least"), ranks)
    if report.flips:
        _print_flips(report)


def _print_flips(report: SensitivityReport) -> None:
    say_wrapped(
        "systems A and B whose order differs: A leans less with some choices, B with others. The columns count the "
        "combinations of choices in which A leans less, in which B leans less, and in which both lean equally."
    )
    shown = report.flips[:_MOST_SHOWN]
    rows = [[one.first, one.second, f"{one.first_less:,}", f"{one.second_less:,}", f"{one.equal:,}"] for one in shown]
    _print(("A", "B", "A less", "B less", "equal"), rows)
    if more := len(report.flips) - len(shown):
        say(f"and {more:,} more pairs: see --html or --json")


def _print(head: tuple[str, ...], rows: list[list[str]]) -> None:
    columns = [(heading, [row[place] for row in rows]) for place, heading in enumerate(head)]
    print_rows(head[0], columns[0][1], columns[1:])
