"""Runs and judgements as arrays over one list of documents. Documents are represented by their ordinals."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import ConfigError, DataError, Note
from askew.core.protocols import Judgements
from askew.core.ranking import Ints, Rankings
from askew.data.judgements import QrelsFile, read_judgements
from askew.data.memory import judgements_in_memory, run_in_memory
from askew.data.runs import Run, read_run


@dataclass(frozen=True)
class JudgedQueries:
    """The judgements of a collection by query; row i of ``judgements`` belongs to ``query_ids[i]``."""

    query_ids: pa.Array
    judgements: Judgements

    @classmethod
    def of(cls, queries: pa.Array | pa.ChunkedArray, docs: Ints, relevance: Ints) -> JudgedQueries:
        """From parallel arrays with one entry per judgement. ``docs`` are ordinals."""
        query_ids = pc.unique(queries)
        row = pc.index_in(queries, value_set=query_ids).to_numpy()
        order = np.lexsort((docs, row))
        sizes = np.bincount(row, minlength=len(query_ids))
        return cls(query_ids, Judgements(_offsets(sizes), docs[order], relevance[order], sizes > 0))

    def of_queries(self, queries: pa.Array) -> Judgements:
        """The judgements of these queries, row by row; a query may appear in several rows."""
        every = self.judgements
        row = pc.fill_null(pc.index_in(queries, value_set=self.query_ids), -1).to_numpy()
        # A query without judgements has the index -1, which is the appended empty row.
        sizes = np.append(np.diff(every.offsets), 0)[row]
        offsets = _offsets(sizes)
        at = np.arange(offsets[-1]) + np.repeat(every.offsets[row] - offsets[:-1], sizes)
        return Judgements(offsets, every.docs[at], every.relevance[at], row >= 0)


def _offsets(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


RunLike: TypeAlias = str | Path | Run | pl.DataFrame | pa.Table | Mapping[str, Mapping[str, float]]
QrelsLike: TypeAlias = str | Path | pl.DataFrame | pa.Table | Mapping[str, Mapping[str, int]]


def named_runs(
    runs: Sequence[RunLike] | Mapping[str, RunLike], others: Sequence[str] | None = None
) -> dict[str, RunLike]:
    """Give each run a name for the report: its file name, or its path if two files have the same name.

    Runs in memory get their names from ``others``, or else a number.
    """
    if isinstance(runs, Mapping):
        return dict(runs)
    seen = set()
    for run in runs:
        if isinstance(run, str | Path):
            place = os.path.abspath(run)  # noqa: PTH100 - a link with another name counts as another run
            if place in seen:
                raise ConfigError(f"the run {str(run)!r} is given twice: give each run once")
            seen.add(place)
    files = [Path(run).name for run in runs if isinstance(run, str | Path)]
    named: dict[str, RunLike] = {}
    for position, run in enumerate(runs):
        if isinstance(run, str | Path):
            name = Path(run).name if files.count(Path(run).name) == 1 else str(run)
        elif isinstance(run, Run):
            name = run.name
        else:
            name = others[position] if others else f"run {position + 1}"
        if name in named:
            raise ConfigError(f"two runs are called {name!r}: rename one of them")
        named[name] = run
    return named


def as_run(run: RunLike, name: str, form: str, published: bool) -> Run:
    """A run from a file or from data in memory."""
    if isinstance(run, str | Path):
        return read_run(Path(run), form, published, name)
    if isinstance(run, Run):
        return replace(run, name=name)
    return run_in_memory(run, name)


def as_judgements(qrels: QrelsLike) -> QrelsFile:
    """Judgements from a file or from data in memory."""
    return read_judgements(Path(qrels)) if isinstance(qrels, str | Path) else judgements_in_memory(qrels)


@dataclass
class Universe:
    """All ranked or judged documents, sorted by the bytes of their ids, so that the ordinal also breaks ties."""

    doc_ids: pa.Array
    _frame: pl.DataFrame

    @classmethod
    def of(cls, frames: Iterable[pl.DataFrame]) -> Universe:
        """The universe of all documents of these tables."""
        ids = pl.concat([frame["doc_id"] for frame in frames]).unique().sort()
        frame = pl.DataFrame({"doc_id": ids, "doc": np.arange(len(ids), dtype=np.int64)})
        return cls(ids.to_arrow().cast(pa.string()), frame)

    def ordinals(self, frame: pl.DataFrame) -> npt.NDArray[np.int64]:
        """The ordinal of each row's document."""
        return (
            frame.select("doc_id").join(self._frame, on="doc_id", how="left", maintain_order="left")["doc"].to_numpy()
        )

    def rankings(self, run: Run, order: str) -> Rankings:
        """The run as rankings, with queries in order of first occurrence."""
        return self.lists(run).ordered(order)

    def lists(self, run: Run, unanswered: Sequence[str] = (), every: bool = False) -> Rankings:
        """The lists of a run: queries in order of first occurrence, then empty lists for the ``unanswered`` queries.

        With ``every``, the lists have all lines of the run, also those that measures of lean leave out.
        """
        lines = run.all_lines if every and run.all_lines is not None else run.lines
        answered = run.lines["query_id"].unique(maintain_order=True).cast(pl.String)
        queries = pl.Series([*answered.to_list(), *unanswered], dtype=pl.String)
        rows = pl.DataFrame({"query_id": queries, "row": np.arange(len(queries), dtype=np.int64)})
        row = lines.select("query_id").join(rows, on="query_id", how="left", maintain_order="left")["row"].to_numpy()
        together = np.argsort(row, kind="stable")
        offsets = _offsets(np.bincount(row, minlength=len(queries)))
        docs, scores = self.ordinals(lines)[together], lines["score"].cast(pl.Float64).to_numpy()[together]
        return Rankings(queries.to_arrow().cast(pa.string()), offsets, docs, scores, may_repeat=run.may_repeat)

    def judged(self, qrels: pl.DataFrame) -> JudgedQueries:
        """The judgements by query."""
        relevance = qrels["relevance"].to_numpy().astype(np.int64)
        return JudgedQueries.of(qrels["query_id"].to_arrow().cast(pa.string()), self.ordinals(qrels), relevance)


def only_queries(run: Run, wanted: list[str]) -> Run:
    """Restrict a run to these queries. Notes report missing and left-out queries."""
    present = set(run.lines["query_id"].unique().to_list())
    absent = [query for query in wanted if query not in present]
    kept = run.lines.filter(pl.col("query_id").is_in(wanted))
    if kept.height == 0:
        raise DataError(
            f"run {run.name}: expected results for some of the {len(wanted)} requested queries, found none; check "
            "⟨queries⟩"
        )
    notes = list(run.notes)
    if absent:
        notes.append(
            f"{run.name}: {len(absent)} of {len(wanted)} requested queries are not in the run, such as {absent[0]!r}"
        )
    left = len(present) - kept["query_id"].n_unique()
    if left:
        notes.append(f"{run.name}: {left} queries of the run were not requested and are left out")
    whole = None if run.all_lines is None else run.all_lines.filter(pl.col("query_id").is_in(wanted))
    return Run(run.name, kept, notes, run.may_repeat, whole)


def note_on_ranks(run: Run) -> list[str]:
    """A note if the rank column contradicts the scores. As in trec_eval, only the scores determine the order."""
    lines = run.lines
    if lines["rank"].null_count() == lines.height:
        return []
    ranked = lines.select(
        "query_id", rank=pl.col("rank").cast(pl.Float64, strict=False), score=pl.col("score").cast(pl.Float64)
    )
    ranked = ranked.drop_nulls().sort("query_id", "rank", maintain_order=True)
    score = pl.col("score").cast(pl.Float32)
    wrong = ranked.filter((score > score.shift(1)).over("query_id"))["query_id"].n_unique()
    if wrong == 0:
        return []
    words = (
        f"{run.name}: in {wrong} queries the rank column disagrees with the scores; "
        "ordered by score, as trec_eval does (⟨order=file⟩ keeps the order of the lines)"
    )
    return [Note(words, code="ranks-disagree", run=run.name, queries=wrong)]
