"""rerank: reorder the documents of a run. This is ``askew rerank`` as a function.

``crossencoder`` scores each query with each of its top-ranked documents. Mitigation methods such as ``greedy`` or
``detconstsort`` reorder documents by the groups that they name and do not read the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from askew.core import defaults
from askew.core.errors import ConfigError, DataError, check_name
from askew.core.groups import Groups
from askew.core.plugins import build, names, settings_of
from askew.core.protocols import MitigationTask, check_lists
from askew.core.ranking import Floats, Hits, Rankings, order_by_score
from askew.data.queries import read_queries
from askew.measures.counts import DocumentSource, Progress, gather_texts
from askew.measures.lists import RunLike, Universe, as_run, named_runs
from askew.models import identify, load_model
from askew.search.annotated import AnnotatedRun, Counting, compared_groups, read_ranked, refuse_unknown
from askew.search.common import one_word
from askew.search.mitigation import EVEN
from askew.search.neural import score_pairs
from askew.search.retrieve import write_run

CROSS_ENCODER = "crossencoder"
# The number of pairs that are scored at a time. Each part of the run is written before the next one is scored.
_PAIRS = 20_000


@dataclass(frozen=True)
class RerankSettings:
    """The settings of reranking: the top ``depth`` documents of each query are reranked, the best ``k`` are written.

    ``model``, ``revision``, ``batch_size`` and ``device`` are for a cross-encoder. ``strength``, ``targets`` (even, or
    shares of the groups such as ``neutral:0.5,old:0.25,young:0.25``) and ``counting`` are for mitigation methods.
    """

    method: str = CROSS_ENCODER
    model: str | None = None
    revision: str | None = None
    k: int = defaults.RESULTS
    depth: int = 100
    targets: str = EVEN
    strength: float | None = None
    counting: Counting = field(default_factory=Counting)
    batch_size: int = 32
    device: str = "auto"

    def __post_init__(self) -> None:
        check_name("method", self.method, [CROSS_ENCODER, *names("mitigation")])
        if self.k < 1 or self.depth < 1:
            raise ConfigError(f"rerank: ⟨k⟩ and ⟨depth⟩ must be 1 or more, found {self.k} and {self.depth}")


@dataclass(frozen=True)
class Reranked:
    """The summary of reranking. ``moved`` is the number of queries whose top 10 changed."""

    queries: int
    lines: int
    moved: int
    tag: str
    out: Path
    notes: list[str] = field(default_factory=list)


def rerank(
    run: RunLike, docs: object, out: Path, queries: str | Path | pa.Table | None = None,
    settings: RerankSettings | None = None, progress: Progress | None = None,
) -> Reranked:  # fmt: skip
    """Rerank a run and write it, without documents below ``depth``. A cross-encoder needs ``queries``."""
    how = settings or RerankSettings()
    if how.method != CROSS_ENCODER:
        ranked = read_ranked(run, docs, None, how.counting, how.depth, progress)
        reordered = _mitigated(ranked, how)
        words = [how.targets] if "targets" in settings_of("mitigation", how.method) else []
        words += [f"{how.strength:g}"] if how.strength is not None else []
        tag = one_word("-".join([how.method, *words]))
        lines = write_run([_lines(reordered, _falling(reordered), ranked.universe, how.k)], out, tag)
        return Reranked(len(reordered), lines, _moved(ranked.rankings, reordered), tag, out, ranked.notes)
    if how.model is None or queries is None:
        raise ConfigError("rerank: a cross-encoder needs both ⟨model⟩ and ⟨queries⟩; give them")
    return _by_model(run, docs, out, queries, how, progress)


def reorder(
    run: RunLike, docs: object, groups: Groups | None = None, targets: str = EVEN, method: str = "detconstsort",
    strength: float | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Reorder a run by a mitigation method: columns query_id, doc_id, rank (from 1) and score."""
    counting = Counting() if groups is None else Counting(groups=groups)
    how = RerankSettings(method, targets=targets, strength=strength, counting=counting)
    ranked = read_ranked(run, docs, None, counting)
    reordered = _mitigated(ranked, how)
    return _lines(reordered, _falling(reordered), ranked.universe)


def _mitigated(ranked: AnnotatedRun, how: RerankSettings) -> Rankings:
    rankings = ranked.rankings
    parameters = settings_of("mitigation", how.method)
    options: dict[str, Any] = {"targets": how.targets} if "targets" in parameters or how.targets != EVEN else {}
    if how.strength is not None:
        options["strength"] = int(how.strength) if how.strength % 1 == 0 else how.strength
    groups, counts = compared_groups(ranked.mentions)
    first = Hits(rankings.offsets, rankings.docs.astype(np.int32), -rankings.ranks().astype(np.float32))
    task = MitigationTask(rankings.query_ids.to_pylist(), [""] * len(rankings), first, groups, counts)
    hits = check_lists(build("mitigation", how.method, options, "rerank").rank(task), task, how.method)
    return Rankings(rankings.query_ids, hits.offsets, hits.docs.astype(np.int64))


def _falling(rankings: Rankings) -> Floats:
    """Scores that decrease by 1 per rank, down to 1."""
    return (np.repeat(rankings.lengths, rankings.lengths) - rankings.ranks() + 1).astype(np.float64)


def _by_model(
    run: RunLike, docs: object, out: Path, queries: str | Path | pa.Table, how: RerankSettings,
    progress: Progress | None,
) -> Reranked:  # fmt: skip
    ((name, source),) = named_runs([run]).items()
    read = as_run(source, name, "auto", False)
    universe = Universe.of([read.lines])
    rankings = universe.rankings(read, "score").cut(how.depth)
    table = queries if isinstance(queries, pa.Table) else read_queries(Path(queries))
    text_of = dict(zip(table["query_id"].to_pylist(), table["text"].to_pylist(), strict=True))
    ids = rankings.query_ids.to_pylist()
    if missing := [query for query in ids if query not in text_of]:
        raise DataError(
            f"run {name}: {len(missing)} of {len(ids)} queries have no text in the given queries, the first is "
            f"{missing[0]!r}; give the texts of all queries of the run"
        )
    needed = np.zeros(len(universe.doc_ids), np.bool_)
    needed[rankings.docs] = True
    documents = gather_texts(DocumentSource(docs), universe.doc_ids, needed)
    refuse_unknown(name, universe, documents.is_valid().to_numpy(zero_copy_only=False), needed)
    assert how.model is not None
    encoder = load_model("cross", how.model, how.revision, None if how.device == "auto" else how.device)
    tag, moved = f"crossencoder-{one_word(identify(how.model, how.revision))}", 0

    def parts() -> Iterator[pl.DataFrame]:
        nonlocal moved
        step = max(1, _PAIRS // how.depth)
        for start in range(0, len(rankings), step):
            some = rankings.select(np.arange(start, min(start + step, len(rankings))))
            row = np.repeat(np.arange(len(some)), some.lengths)
            texts = documents.take(pa.array(some.docs)).to_pylist()
            pairs = [(text_of[ids[start + i]], text) for i, text in zip(row.tolist(), texts, strict=True)]
            scores = score_pairs(encoder, pairs, how.batch_size).astype(np.float64)
            order = order_by_score(row, scores, some.docs)
            reordered = Rankings(some.query_ids, some.offsets, some.docs[order])
            moved += _moved(some, reordered)
            yield _lines(reordered, scores[order], universe, how.k)
            if progress:
                progress(start + len(some), len(rankings))

    lines = write_run(parts(), out, tag)
    return Reranked(len(rankings), lines, moved, tag, out, read.notes)


def _lines(rankings: Rankings, scores: Floats, universe: Universe, k: int | None = None) -> pl.DataFrame:
    keep = rankings.ranks() <= (len(rankings.docs) if k is None else k)
    row = np.repeat(np.arange(len(rankings)), rankings.lengths)[keep]
    return pl.DataFrame({
        "query_id": pl.from_arrow(rankings.query_ids.take(pa.array(row))),
        "doc_id": pl.from_arrow(universe.doc_ids.take(pa.array(rankings.docs[keep]))),
        "rank": rankings.ranks()[keep],
        "score": scores[keep],
    })  # fmt: skip


def _moved(old: Rankings, new: Rankings) -> int:
    first, second = old.cut(10), new.cut(10)
    row = np.repeat(np.arange(len(first)), first.lengths)
    return len(np.unique(row[first.docs != second.docs]))
