"""``askew index`` and ``askew search``: index a collection, and search queries in it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import typer

from askew.core import defaults
from askew.ui.cli import options as o
from askew.ui.cli.render import Waiting, note, safe


@o.options("""
DOCS: A file or folder of documents, a BEIR folder, 'irds:ID', or 'demo'.
--out: The folder to write the index to.
--ranker: The ranker that will use the index; see 'askew list rankers'.
--analyzer: For BM25, the text analyzer: 'english' (as in Lucene and Anserini) or 'plain' (no stemming).
--set NAME=VALUE (settings): A setting of the index, such as --set threads=2; may be repeated. 'askew show ranker NAME'
    lists the settings.
--no-texts: Do not store the texts of the documents. This saves disk space, but the results cannot be reranked.
""")
def index_command(
    docs: str,
    out: Path,
    ranker: str = defaults.RANKER,
    analyzer: str | None = None,
    settings: list[str] | None = None,
    fields: str | None = None,
    no_texts: bool = False,
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


@o.options("""
QUERIES: A file of queries (lines of id TAB text, or JSON Lines), 'irds:ID' (a dataset of ir_datasets), or 'demo'.
--out: The run file to write, in TREC format, or in Parquet format if its name ends in .parquet.
--index: The folder of an index. May be repeated for a ranker that fuses or reranks the results of several indexes.
--ranker: The ranker (see 'askew list rankers'). Default: the ranker of the index.
--run: A run file. Its documents are reranked, fused or used unchanged, depending on --ranker.
-k: The number of documents per query, at most 1000.
--k1: BM25: k1.
--b: BM25: b.
--mu: Query likelihood: mu.
--lengths: The document lengths that BM25 and query likelihood use: 'lucene' (rounded to one byte; the default) or
    'exact'.
--threads: The number of threads. Default: all cores.
--set NAME=VALUE (settings): A setting of the ranker, such as --set documents=5 for the ranker 'rm3'; may be repeated.
    'askew show ranker NAME' lists the settings.
**given: index:paths ranker run:paths k k1:float b:float mu:float lengths threads:int settings:texts
""", settings=SimpleNamespace(k=defaults.RESULTS))  # fmt: skip
def search_command(queries: str, out: Path, **given: Any) -> None:
    """Search every query and write a run. Documents with equal scores are in the order of the collection."""
    from askew.search.retrieve import search

    inputs = given.pop("index") or [], given.pop("run") or [], given.pop("ranker"), given.pop("k")
    own = o.read_settings(given.pop("settings"))
    own = {name: value for name, value in given.items() if value is not None} | own
    with Waiting("searching") as progress:
        done = search(queries, out, *inputs, own, progress)
    if done.empty:
        note([f"{done.empty} of {done.queries} queries found nothing"])
    note(list(done.notes))
    typer.echo(f"{done.queries:,} queries, {done.lines:,} lines, {done.ranker}: {safe(str(out))}")
