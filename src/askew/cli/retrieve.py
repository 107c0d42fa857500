"""``askew index`` and ``askew search``: a collection becomes an index, queries become a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from askew.cli import options as o


def index_command(
    docs: Annotated[Path, typer.Argument(help="Documents: a file (TSV, JSON Lines, Parquet, gzip) or a folder.")],
    out: Annotated[Path, typer.Option(help="The folder to write the index to.")],
    analyzer: Annotated[str, typer.Option(help="english (as Lucene and Anserini) or plain (no stemming).")] = "english",
    fields: o.Fields = None,
) -> None:
    """Index documents for BM25 and query likelihood. k1, b and mu are chosen when searching, not here."""
    from askew.cli.render import Waiting, safe
    from askew.stages.retrieve import index_documents

    with Waiting("indexing") as progress:
        index = index_documents(docs, out, analyzer, o.split_fields(fields), lambda rows: progress(rows, 0))
    facts = index.header
    typer.echo(f"indexed {facts['documents']:,} documents, {facts['terms']:,} terms, {facts['postings']:,} postings")
    if facts["filled"] < facts["documents"]:
        typer.echo(f"{facts['documents'] - facts['filled']:,} of them have no term and can never be found")
    typer.echo(f"in {safe(str(out))}")


def search_command(
    queries: Annotated[Path, typer.Argument(help="Queries: id TAB text, JSON Lines, or id,query,label.")],
    index: Annotated[Path, typer.Option(help="The folder of the index.")],
    out: Annotated[Path, typer.Option(help="The run to write: TREC, or Parquet for the ending .parquet.")],
    ranker: Annotated[str, typer.Option(help="bm25 (0.9/0.4), bm25-msmarco (0.82/0.68) or qld.")] = "bm25",
    k: Annotated[int, typer.Option("-k", help="How many documents for each query, 1000 at most.")] = 1000,
    k1: Annotated[float | None, typer.Option(help="BM25: k1.")] = None,
    b: Annotated[float | None, typer.Option(help="BM25: b.")] = None,
    mu: Annotated[float | None, typer.Option(help="Query likelihood: mu.")] = None,
    lengths: Annotated[
        str | None, typer.Option(help="Document lengths: lucene (one byte, the default) or exact.")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads; all cores by default.")] = None,
) -> None:
    """Search every query and write a run. Lists are those of Lucene, ties in the order of the collection."""
    from askew.cli.render import Waiting, note, safe
    from askew.stages.retrieve import choose_model, search_queries

    model = choose_model(ranker, k1, b, mu, lengths)
    with Waiting("searching") as progress:
        done = search_queries(queries, index, out, model, k, threads, progress)
    if done.empty:
        note([f"{done.empty} of {done.queries} queries have no word that the index knows and found nothing"])
    typer.echo(f"{done.queries:,} queries, {done.lines:,} lines, {model.id}: {safe(str(out))}")
