"""``askew measure``: how far do these rankings lean, and how well do they retrieve?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askew.cli import options as o
from askew.cli.render import Waiting, note, number, print_tables, safe, say, say_json, say_tsv, say_wrapped
from askew.core import defaults
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.pages import pages

if TYPE_CHECKING:
    from askew.app.measure.measure import MeasureReport
    from askew.measures.catalogue import MeasureRequest
    from askew.statistics.intervals import Mean


def command(
    runs: Annotated[
        list[Path],
        typer.Argument(help="One or more run files in TREC, TSV, JSON Lines or Parquet format; may be gzipped."),
    ],
    docs: o.Docs = None,
    qrels: o.Qrels = None,
    queries: o.Queries = None,
    label: o.Label = None,
    background: o.Background = None,
    measures: o.Measures = None,
    preset: o.PresetName = None,
    groups: o.GroupNames = None,
    lexicon: o.LexiconName = None,
    tokens: o.Tokens = None,
    missing: o.Missing = None,
    unjudged: o.Unjudged = None,
    unanswered: o.Unanswered = None,
    no_relevant: o.NoRelevant = None,
    order: o.Order = None,
    fields: o.Fields = None,
    run_format: o.RunFormat = defaults.RUN_FORMAT,
    store: o.StorePath = o.DEFAULT_STORE,
    per_query: Annotated[bool, typer.Option(help="Also show the value of every query.")] = False,
    signature: Annotated[bool, typer.Option(help="Show the signature of each measure: all of its parameters.")] = False,
    decompose: Annotated[
        bool,
        typer.Option(
            help="Also divide the value of ARaB into parts, in two ways: by the reason why a document names the group "
            "(off topic, on topic, asked for by the query), and by the kind of person that a word refers to."
        ),
    ] = False,
    resolver: Annotated[
        str, typer.Option(help="Estimate the parts of --decompose with this model: 'light' or 'neural' (slow).")
    ] = defaults.RESOLVER,
    as_json: o.AsJson = False,
    as_tsv: o.AsTsv = False,
) -> None:
    """Measure one or more runs: the mean of each measure over the queries, with a 95% interval.

    Example: askew measure bm25.run bert.run --docs docs.tsv --qrels qrels.txt --measures 'RR@10 ARaB(tf)@10 NFaiRR@10'
    """
    from askew.app.measure.measure import measure
    from askew.measures.borrowed import quiet_programs

    o.one_form(as_json, as_tsv)
    if decompose and as_tsv:
        raise ConfigError("--decompose and --tsv exclude each other: parts have other columns; give --json instead")
    with quiet_programs(), Waiting("counting words") as progress:
        report = measure(
            list(runs), docs=docs, qrels=qrels, queries=queries, label=label, background=background, measures=measures,
            preset=preset, groups=Groups.resolve(groups, lexicon), tokens=tokens, missing=missing, unjudged=unjudged,
            unanswered=unanswered, no_relevant=no_relevant, order=order, fields=o.split_fields(fields),
            run_format=run_format, store=store, decompose=decompose, resolver=resolver, progress=progress,
        )  # fmt: skip
    note(report.notes)
    show(report, per_query, signature, as_json, as_tsv, preset)


def show(
    report: MeasureReport, per_query: bool, signature: bool, as_json: bool, as_tsv: bool, preset: str | None = None
) -> None:
    """Print a report in the requested form."""
    if as_json:
        say_json(report.to_dict(per_query))
    elif as_tsv:
        _print_tsv(report, per_query)
    else:
        _print_table(report)
        say_directions(report.asked)
        say_lexicons(report.asked)
        say_what_changed(report.asked, preset)
        _print_parts(report)
        if per_query:
            _print_per_query(report)
    if signature and not as_json:
        for asked in report.asked:
            say(f"{asked.text} = {asked.signature}", err=as_tsv)


def _print_parts(report: MeasureReport) -> None:
    for one in report.parts:
        head, rows = one.rows()
        columns = [
            (name.replace(" [", "\n["), [row[place].replace(" [", "\n[") for row in rows])
            for place, name in enumerate(head[1:], start=1)
        ]
        title = f"{one.run}: parts of {one.measure} = {number(one.value)} ({one.mentions:,} mentions)"
        print_tables(safe(title), head[0], [row[0] for row in rows], columns)
    if report.parts:
        from askew.mentions.relevance import why_parts

        resolver = report.parts[0].resolver
        on_topic = why_parts(resolver.partition("@")[0])[-1]
        say_wrapped(
            f"The model {resolver!r} estimates these parts. The parts that begin with 'who' are corrected for known "
            "errors of the model. Intervals are bootstrapped over queries and documents. "
            f"Mentions that are stereotypes belong to the part 'why: {on_topic}', because the training data of the "
            "model has too few labeled stereotypes for a separate part. For the accuracy of the model, see "
            f"{pages('warrant')}."
        )


def _print_tsv(report: MeasureReport, per_query: bool) -> None:
    if per_query:
        say_tsv("run", "query_id", "measure", "value")
    else:
        say_tsv("run", "measure", "mean", "low", "high", "n", "signature")
    for run in report.runs:
        for asked in report.asked:
            if per_query:
                for query, value in zip(run.query_ids, run.values[asked.text].tolist(), strict=True):
                    if not math.isnan(value):
                        say_tsv(run.name, query, asked.text, repr(value))
            else:
                m = report.mean(run, asked)
                ends = ("" if end is None else repr(end) for end in (m.low, m.high))
                say_tsv(run.name, asked.text, repr(m.mean), *ends, str(m.n), asked.signature)


def _print_table(report: MeasureReport) -> None:
    from askew.statistics.intervals import STUDENTIZED

    columns = []
    for asked in report.asked:
        means = [report.mean(run, asked) for run in report.runs]
        sizes = {m.n for m in means}
        heading = safe(asked.text) + (f"\nn={means[0].n}" if len(sizes) == 1 else "")
        cells = [f"{number(m.mean)}\n{_ends(m)}" + ("" if len(sizes) == 1 else f"\nn={m.n}") for m in means]
        columns.append((heading, cells))
    print_tables("mean over queries [95% interval]", "run", [run.name for run in report.runs], columns)
    say_intervals(
        [one.text for one in report.asked if STUDENTIZED in {report.mean(r, one).method for r in report.runs}]
    )


def _ends(mean: Mean) -> str:
    return "-" if mean.low is None else f"[{number(mean.low, 3)}, {number(mean.high, 3)}]"


def say_intervals(studentized: Sequence[str]) -> None:
    """Print below a table which intervals are approximate."""
    if studentized:
        say_wrapped(f"{', '.join(studentized)}: unbounded, so the interval is approximate (see {pages('statistics')})")


def _print_per_query(report: MeasureReport) -> None:
    for run in report.runs:
        columns = [
            (safe(a.text), ["-" if math.isnan(v) else number(v) for v in run.values[a.text].tolist()])
            for a in report.asked
        ]
        print_tables(run.name, "query", run.query_ids, columns)


def say_lexicons(asked: Sequence[MeasureRequest]) -> None:
    """Print which measures count the words of which lexicon, if there are several lexicons."""
    found: dict[str, list[str]] = {}
    for one in asked:
        if lexicon := one.measure.param("lexicon"):
            found.setdefault(str(lexicon).partition("@")[0], []).append(one.text)
    if len(found) > 1:
        named = "; ".join(f"{lexicon} for {', '.join(texts)}" for lexicon, texts in found.items())
        say_wrapped(f"lexicons: {named}. To use one lexicon for all measures, give --lexicon.")


def say_what_changed(asked: Sequence[MeasureRequest], preset: str | None) -> None:
    """Print below a table the non-default parameters of measures. Measures with the same parameters share a line."""
    alike: dict[str, list[str]] = {}
    for one in asked:
        alike.setdefault(_changed(one), []).append(one.text)
    for changed, texts in alike.items():
        if changed:
            say_wrapped(f"{', '.join(texts)}: {changed}")
    if preset:
        say_wrapped(f"preset: {preset} (details: 'askew show preset {preset}')")


def _changed(asked: MeasureRequest) -> str:
    return ", ".join(f"{key}={value}" for key, value in asked.unsaid.items())


def say_directions(asked: Sequence[MeasureRequest]) -> None:
    """Print toward which group positive values lean, and which groups a measure of more than two groups compares."""
    from askew.app.scoring.comparable import is_signed, listed

    said: dict[tuple[bool, tuple[str, ...]], list[str]] = {}
    for one in asked:
        if is_signed(one) or len(one.groups) > 2:
            said.setdefault((is_signed(one), tuple(one.groups)), []).append(one.text)
    for (signed, groups), texts in said.items():
        about = (
            f"positive values lean toward {groups[0]}, negative values toward {groups[1]}; 0 is balanced."
            if signed
            else f"compared groups: {listed(groups)}."
        )
        say_wrapped(f"{', '.join(texts)}: {about}")
