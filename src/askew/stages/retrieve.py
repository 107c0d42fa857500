"""Index documents and search them: texts in, a run out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from askew.core.errors import ConfigError, DataError
from askew.corpora.documents import read_documents
from askew.corpora.queries import read_queries
from askew.rankers.bm25.analyze import Analyzer
from askew.rankers.bm25.index import Index, build_index
from askew.rankers.bm25.ranker import Bm25Ranker, Hits
from askew.rankers.bm25.weights import MODELS, Bm25, Model, Qld

# So many queries are searched and written at a time, so that memory stays flat.
_CHUNK = 20_000


@dataclass(frozen=True)
class Searched:
    """What a search came to."""

    queries: int
    lines: int
    empty: int
    out: Path


def index_documents(
    docs: Path,
    out: Path,
    analyzer: str = "english",
    fields: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> Index:
    """Index a collection into a new folder."""
    return build_index(read_documents(docs, tuple(fields)), out, Analyzer(analyzer), progress=progress)


def choose_model(ranker: str, k1: float | None, b: float | None, mu: float | None, lengths: str | None) -> Model:
    """A model by name, with other parameters where they are given."""
    if ranker not in MODELS:
        raise ConfigError(f"ranker {ranker!r}: expected one of {', '.join(MODELS)}")
    model = MODELS[ranker]
    given = {"k1": k1, "b": b, "mu": mu, "lengths": lengths}
    wrong = [name for name, value in given.items() if value is not None and not hasattr(model, name)]
    if wrong:
        raise ConfigError(f"ranker {ranker!r} has no parameter {wrong[0]!r}")
    chosen = {name: value for name, value in given.items() if value is not None}
    own = {name: getattr(model, name) for name in ("k1", "b", "mu", "lengths") if hasattr(model, name)}
    return Qld(**{**own, **chosen}) if isinstance(model, Qld) else Bm25(**{**own, **chosen})


def search_queries(
    queries: Path, index: Path, out: Path, model: Model, k: int = 1000, threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Searched:  # fmt: skip
    """Search every query of a file and write the run, as TREC or Parquet by the ending of ``out``."""
    table = read_queries(queries)
    ranker = Bm25Ranker(index, model, threads)
    empty = 0

    def parts() -> Iterator[pl.DataFrame]:
        nonlocal empty
        for start in range(0, table.num_rows, _CHUNK):
            part = table.slice(start, _CHUNK)
            hits = ranker.search(part["text"].combine_chunks(), k)
            empty += hits.empty
            yield _lines(part["query_id"].combine_chunks(), hits, ranker.index)
            if progress:
                progress(start + part.num_rows, table.num_rows)

    lines = write_run(parts(), out, model.id)
    return Searched(table.num_rows, lines, empty, out)


def _lines(query_ids: pa.Array, hits: Hits, index: Index) -> pl.DataFrame:
    sizes = np.diff(hits.offsets)
    rows = pa.array(np.repeat(np.arange(len(sizes)), sizes))
    columns = {
        "query_id": pl.from_arrow(query_ids.take(rows)),
        "doc_id": pl.from_arrow(index.doc_ids.take(pa.array(hits.docs))),
        "rank": np.arange(len(hits.docs)) - np.repeat(hits.offsets[:-1], sizes) + 1,
        "score": hits.scores,
    }
    return pl.DataFrame(columns)


def write_run(parts: Iterable[pl.DataFrame], out: Path, tag: str) -> int:
    """Write a run whole or not at all: Parquet for .parquet, otherwise the six columns of TREC. How many lines."""
    temporary = out.with_name(f".{out.name}.writing")
    try:
        lines = (_write_parquet if out.suffix == ".parquet" else _write_trec)(parts, temporary, tag)
        if lines == 0:
            raise DataError("search: no query has a word that the index knows; there is nothing to write")
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)
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
    """A blank inside an id would make another column of it."""
    for name in ("query_id", "doc_id"):
        wrong = run.filter(pl.col(name).str.contains(r"\s"))
        if wrong.height:
            raise DataError(
                f"the {name} {wrong[name][0]!r} has a blank in it, which a TREC run cannot hold; write Parquet instead"
            )
