"""Run mitigation methods: each returns one ranked list per query, in the same order of queries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.app.bench.methods import (
    FUSION,
    RANKER,
    REFORMULATE,
    REORDER,
    RERANK,
    RUN,
    MitigationMethod,
    make_plugin,
)
from askew.app.bench.reformulated import Criteria, SearchedReformulations
from askew.app.bench.scoring import BenchScorer
from askew.app.bench.start import BenchInput
from askew.app.build.prepare import retrieve_stage
from askew.app.build.recipe import Recipe
from askew.app.build.runs import RetrieveStage
from askew.app.scoring.annotate import Annotate
from askew.app.scoring.ranked import compared_groups
from askew.app.scoring.requested import key_of
from askew.app.scoring.universe import RunLike, as_run
from askew.core.costs import counting_model_calls
from askew.core.errors import ConfigError, DataError, UnknownName
from askew.core.ranking import Hits
from askew.models.relevance import FILE as HEAD
from askew.models.relevance import read_head
from askew.plugins.kinds import RankerPlugin
from askew.plugins.mitigation import MitigationPlugin, MitigationTask, check_lists
from askew.plugins.registry import build, names
from askew.rankers.common import join_hits, ranked
from askew.rankers.disk import StoredTexts

# The number of queries searched at a time: the results of all their candidates are in memory.
_CHUNK = 1000
# Settings of a run: only the user knows its costs.
_OF_RUNS = ("searches", "model_calls")
# Called with the number of queries done and the total number.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class MethodRun:
    """The results of a method: a ranked list for each query, and its costs.

    ``searches`` and ``model_calls`` are costs per query: searches of an index, and texts or pairs of texts that neural
    networks read or wrote; None if unknown. ``reformulated`` is the number of reformulated queries.
    """

    hits: Hits
    seconds: float = 0.0
    searches: float | None = None
    model_calls: float | None = None
    reformulated: int | None = None
    notes: list[str] = field(default_factory=list)


Search = Callable[[Progress], MethodRun]


class MethodRunner:
    """Runs methods on the same queries, with the same collection, base ranker and base results.

    ``runs`` and ``plugins`` are objects of the caller, by name. All lists are in the order in which the scorer measures
    them.
    """

    def __init__(
        self, given: BenchInput, queries: pa.Table, scorer: BenchScorer, criteria: Criteria, base: MitigationMethod,
        k: int, runs: Mapping[str, RunLike] | None = None, plugins: Mapping[str, MitigationPlugin] | None = None,
    ) -> None:  # fmt: skip
        self.resources, self._groups = given.resources, given.groups
        self._runs, self._plugins = runs or {}, plugins or {}
        self.queries, self.query_ids = queries, queries["query_id"].to_pylist()
        self._scorer, self._criteria, self._base, self._k = scorer, criteria, base, k
        self._base_stage = self._retrieve(base)
        self._reformulations = SearchedReformulations(given, queries, scorer, criteria, base, k, lambda: self.ranker)

    def _retrieve(self, ranker: MitigationMethod) -> RetrieveStage:
        """Return the stage that searches with a ranker; names and settings are checked, nothing is loaded."""
        search = {**ranker.settings, "ranker": ranker.name, "k": self._k}
        return retrieve_stage(Recipe("bench", {"retrieve": search}), self.resources)

    @cached_property
    def ranker(self) -> RankerPlugin:
        """The base ranker."""
        return _ranker_of(self._base_stage)

    def search_base(self, progress: Progress) -> MethodRun:
        """Search with the base ranker; methods reuse its results, and measures use them as the background."""
        self.base = self.searched(self.ranker, progress)
        self._scorer.set_base(self.base.hits)
        return self.base

    def open(self, method: MitigationMethod) -> Search:
        """Return the search function of a method; its index is built and its model loaded here, to fail early."""
        if method.kind == REFORMULATE:
            self._reformulations.open(method)
            return partial(self._reformulated, method)
        opened: dict[str, Callable[[MitigationMethod], Search]] = {
            RANKER: lambda one: partial(self.searched, _ranker_of(self._retrieve(one))),
            FUSION: self._fused, REORDER: self._reordered, RERANK: self._reranked, RUN: self._replayed,
        }  # fmt: skip
        return opened[method.kind](method)

    def searched(self, ranker: RankerPlugin, progress: Progress, searches: float = 1.0) -> MethodRun:
        """Search with a ranker; a first search without timing excludes compilation and loading from the seconds."""
        ranker.search(self.queries["text"].slice(0, 1).combine_chunks(), self._k)
        start = time.perf_counter()
        with counting_model_calls() as calls:
            parts = [ranker.search(rows["text"].combine_chunks(), self._k) for rows in self._chunks(progress)]
        hits = self._scorer.ordered(join_hits(parts))
        return MethodRun(hits, time.perf_counter() - start, searches, calls.texts / len(self.query_ids))

    def _chunks(self, progress: Progress) -> Iterator[pa.Table]:
        for start in range(0, self.queries.num_rows, _CHUNK):
            rows = self.queries.slice(start, _CHUNK)
            yield rows
            progress(start + rows.num_rows, self.queries.num_rows)

    def _fused(self, method: MitigationMethod) -> Search:
        mine = [
            _ranker_of(self._retrieve(MitigationMethod(name, RANKER, name))) for name in method.name.split(",")
        ]  # fmt: skip
        fused = build("ranker", "fusion", {"depth": self._k, **method.settings, "rankers": mine})
        return partial(self.searched, fused, searches=float(len(mine)))

    def _reranked(self, method: MitigationMethod) -> Search:
        """Rerank the documents of the base with a model, by default all of them."""
        if (Path(method.name) / HEAD).is_file():
            return self._by_head(method)
        given = {"depth": self._k, **method.settings, "first": self.ranker, "model": method.name}
        return partial(self.searched, build("ranker", "crossencoder", {**given, "index": self.resources.index()}))

    def _by_head(self, method: MitigationMethod) -> Search:
        """Rerank the documents of the base with a head (a small model on an encoder) of ``askew train adapter``."""
        if method.settings:
            raise ConfigError(
                f"method_settings= {method.text}: this model (from askew train adapter) has no settings; leave them out"
            )
        head, texts = read_head(Path(method.name)), self.queries["text"].to_pylist()

        def find(progress: Progress) -> MethodRun:
            start, base = time.perf_counter(), self.base.hits
            rows = base.rows()
            documents = [self._text_of(doc) for doc in base.docs.tolist()]
            scores = head.logits([texts[row] for row in rows.tolist()], documents)
            progress(1, 1)
            hits = self._scorer.ordered(ranked(rows, base.docs, scores, len(texts), self._k))
            # In the layout "apart" each text is encoded once; otherwise each pair is one text.
            read = len(set(texts)) + len(set(documents)) if head.layout == "apart" else len(documents)
            seconds = self.base.seconds + time.perf_counter() - start
            return MethodRun(hits, seconds, 1.0, read / len(texts))

        return find

    def _text_of(self, doc: int) -> str:
        return str(self._kept_texts[doc])

    @cached_property
    def _kept_texts(self) -> Any:
        return StoredTexts(self.resources.index(), len(self.resources.doc_ids))

    def _reordered(self, method: MitigationMethod) -> Search:
        """Reorder the results of the base, or of another method."""
        plugin = self._plugins.get(method.name) or make_plugin(method)
        before = None if method.first is None else self.open(method.first)
        groups, counts = self._counts(method)

        def find(progress: Progress) -> MethodRun:
            first = self.base if before is None else before(progress)
            searches = 0

            def search(texts: Sequence[str]) -> Hits:
                nonlocal searches
                searches += len(texts)
                return self._scorer.ordered(self.ranker.search(pa.array(list(texts), pa.string()), self._k))

            task = MitigationTask(
                self.query_ids, self.queries["text"].to_pylist(), first.hits, groups, counts, search,
                self._reformulations.texts_of, self._text_of,
            )  # fmt: skip
            if method.name in names("mitigation"):
                plugin.rank(_first_query(task))  # untimed first call: compilation does not count
            start = time.perf_counter()
            with counting_model_calls() as calls:
                made = self._scorer.ordered(check_lists(plugin.rank(task), task, method.text))
            progress(1, 1)
            queries = len(self.query_ids)
            return replace(
                first, hits=made, seconds=first.seconds + time.perf_counter() - start,
                searches=None if first.searches is None else first.searches + searches / queries,
                model_calls=None if first.model_calls is None else first.model_calls + calls.texts / queries,
            )  # fmt: skip

        return find

    def _counts(self, method: MitigationMethod) -> tuple[tuple[str, ...], Any]:
        """Return the given groups, or those of the first measure of lean, and their mentions in each document."""
        (lean,) = (one for one in self._scorer.asked if one.text == self._criteria.lean)
        key, given = key_of(lean), self._groups
        if given is not None and set(lean.groups) != set(given.names):
            # With at most two groups, the counts of the measures are used; with more, all groups get their share.
            difference = given.difference if len(given.names) <= 2 else "auto"
            words = given.counted if difference == "auto" else given.lexicon
            mentions = self.resources.mentions(Annotate(words, given.tokenizer, given.overlap))
            return compared_groups(mentions, difference)
        if key is None:
            raise ConfigError(
                f"method {method.text!r}: this method uses the words that the first measure of lean counts, but the "
                f"first measure of lean, {lean.text!r}, counts no words. In the list of measures, put a measure that "
                "counts words, such as ARaB(tf)@10, before the other measures of lean"
            )
        return compared_groups(self._scorer.scorer.mentions(*key), str(lean.measure.param("groups", "auto")))

    def _replayed(self, method: MitigationMethod) -> Search:
        """Read a run of the user; queries that are not in the run have no results, unknown documents are refused."""
        if unknown := [name for name in method.settings if name not in _OF_RUNS]:
            raise UnknownName("setting", unknown[0], _OF_RUNS, method.text)
        costs = {name: float(value) for name, value in method.settings.items()}
        run = as_run(self._runs.get(method.name, method.name), method.name, "auto", False)
        lines = run.lines.select("query_id", "doc_id", "score")
        known = pl.DataFrame({"query_id": self.query_ids, "row": np.arange(len(self.query_ids), dtype=np.int64)})
        mine = lines.join(known, on="query_id", maintain_order="left")
        answered = lines["query_id"].n_unique()
        if not mine.height:
            raise DataError(
                f"run {method.name}: none of its {answered:,} queries (the first is {lines['query_id'][0]!r}) is among "
                f"the {len(self.query_ids):,} queries of this bench (the first is {self.query_ids[0]!r}); give a run "
                "for the queries of this bench"
            )
        docs = pc.index_in(mine["doc_id"].to_arrow().cast(pa.string()), value_set=self.resources.doc_ids)
        if docs.null_count:
            at = int(np.flatnonzero(docs.is_null().to_numpy(zero_copy_only=False))[0])
            raise DataError(
                f"run {method.name}: {docs.null_count:,} lines of the run rank documents that are not in the "
                f"collection (the first is {mine['doc_id'][at]!r} for query {mine['query_id'][at]!r}); give a run on "
                "this collection"
            )
        left = answered - mine["query_id"].n_unique()
        notes = [f"{left:,} queries of the run are not part of this bench and are left out"] if left else []
        notes = [f"{method.text}: {note}" for note in (*run.notes, *notes)]

        def find(progress: Progress) -> MethodRun:
            hits = lists_of(
                mine["row"].to_numpy(), docs.to_numpy(), mine["score"].cast(pl.Float64).to_numpy(), len(self.query_ids)
            )
            progress(1, 1)
            made = cut(self._scorer.ordered(hits), self._k)
            return MethodRun(made, 0.0, costs.get("searches"), costs.get("model_calls"), None, notes)

        return find

    def _reformulated(self, method: MitigationMethod, progress: Progress) -> MethodRun:
        start, reformulated, searches, parts, done = time.perf_counter(), 0, 0, [], 0
        made = self._reformulations.of(method)
        with counting_model_calls() as calls:
            for rows in self._chunks(progress):
                chosen = self._reformulations.choose(method, made, done, rows.num_rows)
                reformulated, searches = reformulated + chosen.reformulated, searches + chosen.searches
                parts.append(chosen.hits)
                done += rows.num_rows
        queries = len(self.query_ids)
        return MethodRun(
            join_hits(parts), made.seconds + time.perf_counter() - start, searches / queries,
            (made.model_calls + calls.texts) / queries, reformulated, made.notes,
        )  # fmt: skip


def _ranker_of(stage: RetrieveStage) -> RankerPlugin:
    stage.prepare()
    return stage.ranker


def _first_query(task: MitigationTask) -> MitigationTask:
    end = int(task.first.offsets[1])
    first = Hits(task.first.offsets[:2], task.first.docs[:end], task.first.scores[:end])
    return replace(task, query_ids=task.query_ids[:1], texts=task.texts[:1], first=first)


def cut(hits: Hits, k: int) -> Hits:
    """Cut each list after the first k documents."""
    keep = np.arange(len(hits.docs)) - hits.offsets[hits.rows()] < k
    sizes = np.minimum(np.diff(hits.offsets), k)
    return Hits(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), hits.docs[keep], hits.scores[keep])


def lists_of(row: Any, docs: Any, scores: Any, queries: int) -> Hits:
    """Convert lines of a run to ranked lists by the number of the query; a query without lines has an empty list."""
    order = np.argsort(row, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=queries))]).astype(np.int64)
    with np.errstate(over="ignore"):
        return Hits(offsets, np.asarray(docs)[order].astype(np.int32), np.asarray(scores)[order].astype(np.float32))
