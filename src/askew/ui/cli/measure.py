"""``askew measure``: how far do these rankings lean, and how well do they retrieve?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from askew.core import defaults
from askew.core.errors import ConfigError
from askew.ui.cli import options as o
from askew.ui.cli.render import Waiting, note, print_table, say, say_frame, say_json, say_wrapped

if TYPE_CHECKING:
    from askew.measures.headline import Headline


@o.options(f"""
RUNS: One or more run files in TREC, TSV, JSON Lines or Parquet format; may be gzipped.
--per-query/--no-per-query: Also show the value of every query.
--signature/--no-signature: Show the signature of each measure: all of its parameters.
--decompose/--no-decompose: Also divide the value of ARaB into parts, in two ways: by the reason why a document names
    the group (off topic, on topic, asked for by the query), and by the kind of person that a word refers to. Needs
    the extra neural.
--no-headline: Do not begin with the headline, which says whether the results of neutral queries lean beyond chance.
    With --measures or --preset, there is none.
**given: {o.MEASURING}
""")
def command(
    runs: list[Path],
    run_format: str = defaults.RUN_FORMAT,
    store: str = o.DEFAULT_STORE,
    per_query: bool = False,
    signature: bool = False,
    decompose: bool = False,
    no_headline: bool = False,
    as_json: bool = False,
    as_tsv: bool = False,
    latex: Path | None = None,
    csv: Path | None = None,
    figures: Path | None = None,
    **given: Any,
) -> None:
    """Measure one or more runs: the mean of each measure over the queries, with a 95% interval.

    Example: askew measure bm25.run bert.run --docs docs.tsv --qrels qrels.txt --measures 'RR@10 ARaB(tf)@10 NFaiRR@10'
    """
    import polars as pl

    from askew.measures.effectiveness import quiet_programs
    from askew.measures.measure import measure
    from askew.study.headline import headline
    from askew.study.tables import means_charts, means_table, parts_table, query_tables

    o.one_form(as_json, as_tsv)
    if decompose and as_tsv:
        raise ConfigError("--decompose and --tsv exclude each other: parts have other columns; give --json instead")
    with quiet_programs(), Waiting("counting words") as progress:
        report = measure(
            list(runs), run_format=run_format, store=store, decompose=decompose, progress=progress,
            **o.inputs(given),
        )  # fmt: skip
        is_default = given["measures"] is None and given["preset"] is None and not no_headline and not as_tsv
        counts_words = any(one.measure.param("lexicon") for one in report.asked)
        found: list[Headline] = []
        if is_default and counts_words:
            names = ("docs", "queries", "label", "groups", "tokens", "missing", "order", "fields")
            same = {name: value for name, value in o.inputs(given).items() if name in names}
            found = headline(list(runs), run_format=run_format, store=store, progress=progress, **same)
    note(report.notes)
    if as_json:
        say_json({**report.to_dict(per_query), **({"headline": [one.to_dict() for one in found]} if found else {})})
    elif as_tsv:
        frame = report.to_polars().drop("interval")
        if per_query:
            # One row for each run, measure and query with a value.
            texts = [one.text for one in report.asked]
            places = {run.name: place for place, run in enumerate(report.runs)}
            frame = report.per_query().unpivot(texts, index=["run", "query_id"], variable_name="measure")
            frame = frame.drop_nulls("value").sort(pl.col("run").replace_strict(places), maintain_order=True)
        say_frame(frame)
    if not as_json:
        for first in found:
            say_wrapped(f"{first.run}: {first.sentence}" if len(found) > 1 else first.sentence)
    tables = [*(first.table() for first in found), means_table(report)]
    tables += [*(parts_table(one, place) for place, one in enumerate(report.parts, start=1))]
    tables += query_tables(report) if per_query else []
    if not as_json and not as_tsv:
        for one in tables:
            print_table(one)
        if preset := given["preset"]:
            say_wrapped(f"preset: {preset} (details: 'askew show preset {preset}')")
    o.write_tables(tables, latex, csv, {} if figures is None else means_charts(report), figures)
    if signature and not as_json:
        for asked in report.asked:
            say(f"{asked.text} = {asked.signature}", err=as_tsv)
