"""Index documents, search queries, and write runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from askew.core import defaults
from askew.core.errors import DataError, check_name
from askew.core.ranking import Hits
from askew.core.whole_files import written_whole
from askew.corpora.collection import Collection, open_collection
from askew.corpora.memory import queries_in_memory
from askew.corpora.queries import read_queries
from askew.plugins.kinds import RankerPlugin
from askew.plugins.registry import build, names
from askew.publish.files import refuse_no_parent
from askew.rankers.disk import keeping_texts, new_folder
from askew.rankers.engines.ranker import EngineRanker
from askew.rankers.verify import write_source

# The number of queries that are searched and written at a time, to bound memory use.
_CHUNK = 20_000
# A path with one of these endings is a file of queries.
_QUERY_FILES = (".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".csv", ".parquet", ".gz")


@dataclass(frozen=True)
class SearchSummary:
    """The summary of a search: queries, lines written, queries without a result, and the run file."""

    queries: int
    lines: int
    empty: int
    out: Path
    notes: tuple[str, ...] = ()


def index_documents(
    docs: object,
    out: Path,
    ranker: str = "bm25",
    settings: Mapping[str, Any] | None = None,
    fields: Sequence[str] = (),
    texts: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Mapping[str, Any]:
    """Index a collection in a new folder for a ranker, and return facts of the index. ``texts`` stores the texts."""
    check_name("ranker", ranker, names("index"), "the list of rankers for which askew can build an index")
    documents = _counted(open_collection(docs, tuple(fields)).documents(), progress)
    new_folder(out)
    _remember_source(docs, out, ranker, settings or {}, fields, texts)
    if texts:
        documents = keeping_texts(documents, out)
    facts: Mapping[str, Any] = build("index", ranker, {**(settings or {}), "documents": documents, "folder": out})
    return facts


def _remember_source(
    docs: object, out: Path, ranker: str, settings: Mapping[str, Any], fields: Sequence[str], texts: bool
) -> None:
    """Record the source for askew verify --repair. Documents in memory and settings beyond JSON are not recorded."""
    if not isinstance(docs, str | Path):
        return
    is_path = str(docs) != "demo" and not str(docs).startswith("irds:")
    named = str(Path(docs).absolute()) if is_path else str(docs)
    with contextlib.suppress(TypeError):
        write_source(
            out, {"docs": named, "ranker": ranker, "settings": dict(settings), "fields": list(fields), "texts": texts}
        )


def as_queries(given: object) -> pa.Table:
    """A table of queries from a collection, a file, ``{id: text}``, a data frame, or texts (ids are positions)."""
    if isinstance(given, Collection):
        return given.queries
    if isinstance(given, str | Path):
        return queries_of(given)
    if isinstance(given, Sequence):
        return queries_in_memory({str(place): text for place, text in enumerate(given)})
    return queries_in_memory(given)


def queries_of(source: str | Path) -> pa.Table:
    """The queries of a file or of a collection: a folder, irds:ID, or demo."""
    if _is_file(source):
        return read_queries(Path(source))
    if Path(source).suffix in _QUERY_FILES and not Path(source).exists():
        raise DataError(f"queries {source}: there is no such file; check queries=")
    return open_collection(source).queries


def queries_notes(source: str | Path) -> list[str]:
    """Notes on the file that ``queries_of`` reads, if a folder has several."""
    return [] if _is_file(source) else open_collection(source).notes("queries")


def _is_file(source: str | Path) -> bool:
    return str(source) != "demo" and not str(source).startswith("irds:") and Path(source).is_file()


def _counted(batches: Iterable[pa.Table], progress: Callable[[int], None] | None) -> Iterator[pa.Table]:
    done = 0
    for batch in batches:
        yield batch
        done += batch.num_rows
        if progress:
            progress(done)


def search_queries(
    table: pa.Table,
    ranker: RankerPlugin,
    out: Path,
    k: int = defaults.RESULTS,
    progress: Callable[[int, int], None] | None = None,
) -> SearchSummary:
    """Search every query of a table and write the run, as TREC or Parquet by the ending of ``out``.

    The answers of a live engine are stored in a file next to the run, unless its settings give another file or none.
    """
    empty, notes, chunk = 0, list[str](), getattr(ranker, "queries_at_once", _CHUNK)
    if isinstance(ranker, EngineRanker):
        refuse_no_parent(out)
        kept = ranker.keep_answers(out.with_name(f"{out.name}.answers"))
        notes += (
            [] if kept is None else [f"the answers of the engine are kept in {kept}, so that no query is sent twice"]
        )

    def parts() -> Iterator[pl.DataFrame]:
        nonlocal empty
        for start in range(0, table.num_rows, chunk):
            part = table.slice(start, chunk)
            if isinstance(ranker, EngineRanker) and progress:
                # An engine may take seconds per query, so progress is reported for each one.
                ranker.progress = partial(_tell, progress, start, table.num_rows)
            hits = ranker.search(part["text"].combine_chunks(), k)
            empty += hits.empty
            yield run_lines(part["query_id"].combine_chunks(), hits, ranker.doc_ids)
            if progress:
                progress(start + part.num_rows, table.num_rows)

    lines = write_run(parts(), out, ranker.id)
    notes += ranker.notes() if isinstance(ranker, EngineRanker) else []
    return SearchSummary(table.num_rows, lines, empty, out, tuple(notes))


def _tell(progress: Callable[[int, int], None], before: int, total: int, done: int, _: int) -> None:
    progress(before + done, total)


def run_lines(query_ids: pa.Array, hits: Hits, doc_ids: pa.Array) -> pl.DataFrame:
    """The search results as lines of a run."""
    rows = hits.rows()
    columns = {
        "query_id": pl.from_arrow(query_ids.take(pa.array(rows))),
        "doc_id": pl.from_arrow(doc_ids.take(pa.array(hits.docs))),
        "rank": np.arange(len(hits.docs)) - hits.offsets[rows] + 1,
        "score": hits.scores,
    }
    return pl.DataFrame(columns)


def write_run(parts: Iterable[pl.DataFrame], out: Path, tag: str) -> int:
    """Write a run atomically, as Parquet (.parquet) or in the TREC format; return the number of lines."""
    refuse_no_parent(out)
    with written_whole(out) as temporary:
        lines = (_write_parquet if out.suffix == ".parquet" else _write_trec)(parts, temporary, tag)
        if lines == 0:
            raise DataError("search: no query finds a document; there is nothing to write")
    return lines


def _write_parquet(parts: Iterable[pl.DataFrame], path: Path, _tag: str) -> int:
    lines, writer = 0, None
    for part in parts:
        table = part.to_arrow()
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
        lines += part.height
    if writer is not None:
        writer.close()
    return lines


def _write_trec(parts: Iterable[pl.DataFrame], path: Path, tag: str) -> int:
    lines = 0
    with path.open("wb") as file:
        for part in parts:
            _refuse_blanks(part)
            columns = part.select(
                "query_id", pl.lit("Q0").alias("q0"), "doc_id", "rank", "score", pl.lit(tag).alias("tag")
            )
            columns.write_csv(file, separator=" ", include_header=False, quote_style="never", float_precision=6)
            lines += part.height
    return lines


def _refuse_blanks(run: pl.DataFrame) -> None:
    """Raise an error for an id with white space, which would be two columns of a TREC run."""
    for name in ("query_id", "doc_id"):
        wrong = run.filter(pl.col(name).str.contains(r"\s"))
        if wrong.height:
            raise DataError(
                f"the {name} {wrong[name][0]!r} contains white space, which a TREC run does not allow; write Parquet "
                "instead"
            )
