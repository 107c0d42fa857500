"""The work of ``askew reformulate``: apply methods and filters to queries, and write the candidates to a file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl

from askew.app.search.compose import make_ranker
from askew.app.search.reformulate import FirstPass, Tally, make_filter, make_reformulator, reformulate
from askew.app.search.retrieve import index_documents, queries_of
from askew.core import defaults
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.whole_files import written_whole
from askew.models.find import has_smollm
from askew.publish.files import refuse_no_parent

Own = Mapping[str, Mapping[str, Any]]
_ENDINGS = (".parquet", ".jsonl", ".ndjson", ".tsv", ".txt")


def default_methods() -> tuple[str, ...]:
    """The default reformulators that are installed."""
    return defaults.METHODS if has_smollm() else defaults.METHODS[1:]


def default_filters(methods: Sequence[str] | None) -> tuple[str, ...]:
    """The default filters for these methods; None: for the default methods.

    Texts of a language model and of the default methods must keep the meaning of the query. Methods that expand a
    query, such as ``rm3``, write texts for an engine and not for people, so only the rules apply to them.
    """
    written = methods is None or defaults.METHODS[0] in methods
    return defaults.WRITTEN_FILTERS if written else defaults.FILTERS


def candidates_of(
    queries: str,
    methods: Sequence[str],
    filters: Sequence[str],
    settings: Own,
    docs: str | None = None,
    index: Path | None = None,
    depth: int = defaults.PASSAGES,
    progress: Callable[[int, int], None] | None = None,
    groups: Groups | None = None,
) -> tuple[pl.DataFrame, list[Tally]]:
    """The candidates of every query. ``settings`` has the settings of methods and filters by name."""
    if docs is not None and index is not None:
        raise ConfigError("docs= and index= are both given; give only one of them")
    unknown = [name for name in settings if name not in {*methods, *filters}]
    if unknown:
        raise ConfigError(f"{unknown[0]!r} in settings= is neither a requested method nor a requested filter")
    made = [make_reformulator({"method": name, **settings.get(name, {})}, groups) for name in methods]
    kept = [make_filter({"filter": name, **settings.get(name, {})}, groups) for name in filters]
    table = queries_of(queries)
    with ExitStack() as stack:
        if docs is not None and any(method.reads for method in made):
            index = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "index"
            index_documents(docs, index)
        first = None if index is None else FirstPass(index, make_ranker({"ranker": "bm25", "index": str(index)}), depth)
        return reformulate(table, made, kept, first, progress)


def check_place(out: Path) -> None:
    """Raise an error if a table cannot be written to this path. Call this before the work starts."""
    refuse_no_parent(out)
    if out.suffix not in _ENDINGS:
        raise ConfigError(f"out= {out}: expected the ending .tsv, .jsonl or .parquet, found {out.suffix or 'none'!r}")


def write_candidates(table: pl.DataFrame, out: Path) -> None:
    """Write a table atomically, as Parquet, JSON Lines or TAB-separated by the ending."""
    check_place(out)
    with written_whole(out) as temporary:
        if out.suffix == ".parquet":
            table.write_parquet(temporary)
        elif out.suffix in (".jsonl", ".ndjson"):
            table.write_ndjson(temporary)
        else:
            # Texts have no TAB and no line break, so they need no quotes.
            table.write_csv(temporary, separator="\t", quote_style="never")
