"""Index documents, search queries, and write runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from askew.core import defaults
from askew.core.errors import ConfigError, DataError, check_name
from askew.core.files import written_whole
from askew.core.folders import refuse_no_parent
from askew.core.plugins import build, made_type, names
from askew.core.protocols import RankerPlugin
from askew.core.ranking import Hits
from askew.data.collection import Collection, open_collection
from askew.data.memory import queries_in_memory
from askew.data.queries import read_queries
from askew.data.runs import read_run
from askew.search.disk import keeping_texts, new_folder, read_header, write_source
from askew.search.engines.ranker import EngineRanker

Spec = Mapping[str, Any]


def make_ranker(spec: Spec, queries: pa.Table | None = None) -> RankerPlugin:
    """Build a ranker from ``{"ranker": name, setting: value, ...}``. Inner rankers have the same form.

    ``queries`` has the query texts for a replayed run if the spec gives no file of queries.
    """
    settings = dict(spec)
    name = settings.pop("ranker", None)
    if not isinstance(name, str):
        raise ConfigError(f'a ranker is given by its name, as in ranker = "bm25"; found {dict(spec)!r}')
    check_name("ranker", name, names("ranker"))
    if name == "replay":
        settings |= _replayed(settings, queries)
    if "first" in settings:
        settings["first"] = make_ranker(settings["first"], queries)
    if "rankers" in settings:
        settings["rankers"] = [make_ranker(inner, queries) for inner in settings["rankers"]]
    ranker = build("ranker", name, settings)
    assert isinstance(ranker, RankerPlugin)
    return ranker


def is_engine(name: str) -> bool:
    """Whether a ranker searches with a live engine, and needs no index."""
    return name in names("ranker") and made_type("ranker", name) is EngineRanker


def _replayed(settings: Spec, queries: pa.Table | None) -> dict[str, Any]:
    path = settings.get("run")
    if not isinstance(path, str | Path):
        return {}
    table = read_queries(Path(settings["queries"])) if "queries" in settings else queries
    if table is None:
        raise ConfigError(f"replay {path}: a run has no texts of queries; give a file of queries (⟨queries⟩)")
    run: dict[str, dict[str, float]] = {}
    for query, doc, score in read_run(Path(path)).lines.select("query_id", "doc_id", "score").iter_rows():
        run.setdefault(query, {})[doc] = score
    texts = dict(zip(table["query_id"].to_pylist(), table["text"].to_pylist(), strict=True))
    return {"run": run, "queries": texts, "name": Path(path).name}


def compose(ranker: str | None, indexes: Sequence[Path], runs: Sequence[Path], settings: Spec) -> Spec:
    """The ranker spec for the arguments of a command line.

    Each index records the ranker that it was made for. Several indexes and runs are fused. A cross-encoder reranks
    the documents of a given run, or else of the first index.
    """
    if ranker is not None and is_engine(ranker):
        if indexes or runs:
            raise ConfigError(f"the ranker {ranker!r} searches a live engine: leave out ⟨index⟩ and ⟨run⟩")
        return {"ranker": ranker, **settings}
    own = [{"ranker": read_header(index)["kind"], "index": str(index)} for index in indexes]
    specs = [*own, *({"ranker": "replay", "run": str(run)} for run in runs)]
    if not specs:
        raise ConfigError("a ranker needs an index or a run: give ⟨index⟩ or ⟨run⟩")
    name = ranker or ("fusion" if len(specs) > 1 else specs[0]["ranker"])
    if name == "fusion":
        return {"ranker": name, "rankers": specs, **settings}
    if name == "crossencoder":
        if not own:
            raise ConfigError("the ranker 'crossencoder' reads texts; give an index with stored texts (⟨index⟩)")
        return {"ranker": name, "first": (specs[len(own) :] or own)[0], "index": own[0]["index"], **settings}
    needs = "exactly one run" if name == "replay" else "exactly one index and no run"
    chosen = specs[len(own) :] if name == "replay" else own if len(own) == len(specs) else []
    if len(chosen) != 1:
        raise ConfigError(
            f"the ranker {name!r} needs {needs}; found {len(own)} indexes (⟨index⟩), {len(runs)} runs (⟨run⟩)"
        )
    return {**chosen[0], "ranker": name, **settings}


# The number of queries that are searched and written at a time, to bound memory use.
_CHUNK = 20_000
# A path with one of these endings is a file of queries.
_QUERY_FILES = (".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".csv", ".parquet", ".gz")


@dataclass(frozen=True)
class SearchSummary:
    """The summary of a search: queries, lines written, queries without a result, the ranker, and the run file."""

    queries: int
    lines: int
    empty: int
    ranker: str
    out: Path
    notes: tuple[str, ...] = ()


def index(
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
    settings = settings or {}
    documents = _counted(open_collection(docs, tuple(fields)).documents(), progress)
    new_folder(out)
    if isinstance(docs, str | Path):
        # For askew verify --repair. Documents in memory and settings beyond JSON are not recorded.
        named = str(docs) if _is_named(docs) else str(Path(docs).absolute())
        source = {"docs": named, "ranker": ranker, "settings": dict(settings), "fields": list(fields), "texts": texts}
        with contextlib.suppress(TypeError):
            write_source(out, source)
    if texts:
        documents = keeping_texts(documents, out)
    facts: Mapping[str, Any] = build("index", ranker, {**settings, "documents": documents, "folder": out})
    return facts


def as_queries(queries: object) -> pa.Table:
    """A table of queries from a collection, a file, ``{id: text}``, a data frame, or texts (ids are positions)."""
    if isinstance(queries, Collection):
        return queries.queries
    if isinstance(queries, str | Path):
        return queries_of(queries)
    if isinstance(queries, Sequence):
        return queries_in_memory({str(place): text for place, text in enumerate(queries)})
    return queries_in_memory(queries)


def queries_of(source: str | Path) -> pa.Table:
    """The queries of a file or of a collection: a folder, irds:ID, or demo."""
    if not _is_named(source) and Path(source).is_file():
        return read_queries(Path(source))
    if Path(source).suffix in _QUERY_FILES and not Path(source).exists():
        raise DataError(f"queries {source}: there is no such file; check ⟨queries⟩")
    return open_collection(source).queries


def queries_notes(source: str | Path) -> list[str]:
    """Notes on the file that ``queries_of`` reads, if a folder has several."""
    is_file = not _is_named(source) and Path(source).is_file()
    return [] if is_file else open_collection(source).notes("queries")


def _is_named(source: str | Path) -> bool:
    return str(source) == "demo" or str(source).startswith("irds:")


def _counted(batches: Iterable[pa.Table], progress: Callable[[int], None] | None) -> Iterator[pa.Table]:
    done = 0
    for batch in batches:
        yield batch
        done += batch.num_rows
        if progress:
            progress(done)


def search(
    queries: str | Path,
    out: Path,
    indexes: Sequence[Path] = (),
    runs: Sequence[Path] = (),
    ranker: str | None = None,
    k: int = defaults.RESULTS,
    settings: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SearchSummary:
    """Search the queries of a file or collection and write a run. The ranker is by default that of the index.

    Several indexes and runs are fused, or reranked if the ranker is a reranker.
    """
    table = queries_of(queries)
    built = make_ranker(compose(ranker, indexes, runs, settings or {}), table)
    done = search_queries(table, built, out, k, progress)
    return replace(done, notes=(*queries_notes(queries), *done.notes))


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
        answers = ranker.keep_answers(out.with_name(f"{out.name}.answers"))
        if answers is not None:
            notes.append(f"the answers of the engine are kept in {answers}, so that no query is sent twice")

    def parts() -> Iterator[pl.DataFrame]:
        nonlocal empty
        for start in range(0, table.num_rows, chunk):
            part = table.slice(start, chunk)
            if isinstance(ranker, EngineRanker) and progress:
                # An engine may take seconds per query, so progress is reported for each one.
                ranker.progress = lambda done, _, start=start: progress(start + done, table.num_rows)
            hits = ranker.search(part["text"].combine_chunks(), k)
            empty += hits.empty
            yield run_lines(part["query_id"].combine_chunks(), hits, ranker.doc_ids)
            if progress:
                progress(start + part.num_rows, table.num_rows)

    lines = write_run(parts(), out, ranker.id)
    notes += ranker.notes() if isinstance(ranker, EngineRanker) else []
    return SearchSummary(table.num_rows, lines, empty, ranker.id, out, tuple(notes))


def run_lines(query_ids: pa.Array, hits: Hits, doc_ids: pa.Array) -> pl.DataFrame:
    """The search results as lines of a run."""
    rows = hits.rows()
    return pl.DataFrame(
        {
            "query_id": pl.from_arrow(query_ids.take(pa.array(rows))),
            "doc_id": pl.from_arrow(doc_ids.take(pa.array(hits.docs))),
            "rank": np.arange(len(hits.docs)) - hits.offsets[rows] + 1,
            "score": hits.scores,
        }
    )


def write_run(parts: Iterable[pl.DataFrame], out: Path, tag: str) -> int:
    """Write a run atomically, as Parquet (.parquet) or in the TREC format; return the number of lines."""
    refuse_no_parent(out)
    lines = 0
    with written_whole(out) as temporary, contextlib.ExitStack() as stack:
        writer, file = None, temporary.open("wb") if out.suffix != ".parquet" else None
        if file is not None:
            stack.enter_context(file)
        for part in parts:
            lines += part.height
            if file is not None:
                for name in ("query_id", "doc_id"):
                    # White space in an id would make it two columns.
                    wrong = part.filter(pl.col(name).str.contains(r"\s"))
                    if wrong.height:
                        problem = f"the {name} {wrong[name][0]!r} contains white space"
                        raise DataError(f"{problem}; write Parquet instead of a TREC run")
                columns = part.select("query_id", pl.lit("Q0").alias("q0"), "doc_id", "rank", "score", tag=pl.lit(tag))
                columns.write_csv(file, separator=" ", include_header=False, quote_style="never", float_precision=6)
                continue
            table = part.to_arrow()
            writer = writer or stack.enter_context(pq.ParquetWriter(temporary, table.schema))
            writer.write_table(table)
        if lines == 0:
            raise DataError("search: no query finds a document; there is nothing to write")
    return lines
