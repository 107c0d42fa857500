"""``askew index`` and ``askew search``: index a collection, and search queries in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from askew.core import defaults
from askew.ui.cli import options as o
from askew.ui.cli.render import Waiting, note, safe


def index_command(
    docs: Annotated[str, typer.Argument(help="A file or folder of documents, a BEIR folder, 'irds:ID', or 'demo'.")],
    out: Annotated[Path, typer.Option(help="The folder to write the index to.")],
    ranker: Annotated[
        str, typer.Option(help="The ranker that will use the index; see 'askew list rankers'.")
    ] = defaults.RANKER,
    analyzer: Annotated[
        str | None,
        typer.Option(
            help="For BM25, the text analyzer: 'english' (as in Lucene and Anserini) or 'plain' (no stemming)."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A setting of the index, such as --set threads=2; may be repeated. 'askew show ranker NAME' lists "
            "the settings.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    fields: o.Fields = None,
    no_texts: Annotated[
        bool,
        typer.Option(
            "--no-texts",
            help="Do not store the texts of the documents. This saves disk space, but the results cannot be reranked.",
        ),
    ] = False,
) -> None:
    """Index documents for a ranker. The settings k1, b and mu are options of 'askew search'."""
    from askew.search.retrieve import index

    given = o.read_settings(settings) | ({"analyzer": analyzer} if analyzer is not None else {})
    with Waiting("indexing") as progress:
        facts = index(docs, out, ranker, given, o.split_fields(fields), not no_texts, lambda rows: progress(rows, 0))
    counted = [f"{facts[name]:,} {name}" for name in ("documents", "terms", "postings", "tokens") if name in facts]
    typer.echo(f"indexed {', '.join(counted)}")
    if facts.get("filled", facts["documents"]) < facts["documents"]:
        typer.echo(f"{facts['documents'] - facts['filled']:,} documents have no term and can never be retrieved")
    if "weights" in facts:
        typer.echo(f"with {safe(str(facts['weights']))}")
    typer.echo(f"written to {safe(str(out))}")


def search_command(
    queries: Annotated[
        str,
        typer.Argument(
            help="A file of queries (lines of id TAB text, or JSON Lines), 'irds:ID' (a dataset of ir_datasets), or "
            "'demo'."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(help="The run file to write, in TREC format, or in Parquet format if its name ends in .parquet."),
    ],
    index: Annotated[
        list[Path] | None,
        typer.Option(
            help="The folder of an index. May be repeated for a ranker that fuses or reranks the results of several "
            "indexes."
        ),
    ] = None,
    ranker: Annotated[
        str | None, typer.Option(help="The ranker (see 'askew list rankers'). Default: the ranker of the index.")
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(help="A run file. Its documents are reranked, fused or used unchanged, depending on --ranker."),
    ] = None,
    k: Annotated[int, typer.Option("-k", help="The number of documents per query, at most 1000.")] = defaults.RESULTS,
    k1: Annotated[float | None, typer.Option(help="BM25: k1.")] = None,
    b: Annotated[float | None, typer.Option(help="BM25: b.")] = None,
    mu: Annotated[float | None, typer.Option(help="Query likelihood: mu.")] = None,
    lengths: Annotated[
        str | None,
        typer.Option(
            help="The document lengths that BM25 and query likelihood use: 'lucene' (rounded to one byte; the default) "
            "or 'exact'."
        ),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="The number of threads. Default: all cores.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A setting of the ranker, such as --set documents=5 for the ranker 'rm3'; may be repeated. 'askew "
            "show ranker NAME' lists the settings.",
            metavar="NAME=VALUE",
        ),
    ] = None,
) -> None:
    """Search every query and write a run. Documents with equal scores are in the order of the collection."""
    from askew.search.retrieve import search

    options = {"k1": k1, "b": b, "mu": mu, "lengths": lengths, "threads": threads}
    given = {name: value for name, value in options.items() if value is not None} | o.read_settings(settings)
    with Waiting("searching") as progress:
        done = search(queries, out, index or [], run or [], ranker, k, given, progress)
    if done.empty:
        note([f"{done.empty} of {done.queries} queries found nothing"])
    note(list(done.notes))
    typer.echo(f"{done.queries:,} queries, {done.lines:,} lines, {done.ranker}: {safe(str(out))}")
