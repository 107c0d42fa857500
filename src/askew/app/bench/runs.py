"""Run mitigation methods: one list of documents for each query, with the queries in the same order for all methods."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.app.bench.choosing import Variants, choose_by_judgements, choose_by_results, choose_by_selector
from askew.app.bench.methods import RANKER, REFORMULATE, RERANK, MitigationMethod
from askew.app.bench.scoring import BenchScorer
from askew.app.bench.start import BenchInput, measured_groups
from askew.app.build.built_pairs import LEAN
from askew.app.build.recipe import Recipe, reformulate_stage, retrieve_stage
from askew.app.build.runs import RetrieveStage
from askew.app.build.variants import ORIGINAL, ReformulateStage
from askew.app.scoring.annotate import Annotate
from askew.app.scoring.ranked import NEUTRAL, group_names, leaning_groups
from askew.app.scoring.universe import RunLike, as_run
from askew.core.errors import ConfigError, DataError, UnknownName
from askew.core.groups import Groups
from askew.core.ranking import Hits, Ints
from askew.plugins.kinds import RankerPlugin
from askew.plugins.registry import build
from askew.rankers.fairorder import EVEN, even_targets, fair_order, read_targets

# The settings of a reranker by groups.
_OF_GROUPS = ("targets", "groups")
# So many queries are searched at a time: the results of their candidates are in memory.
_CHUNK = 1000
# How many queries are done, of how many.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class MethodRun:
    """The results of a method: a list for each query. ``reformulated``: how many queries were reformulated."""

    hits: Hits
    seconds: float = 0.0
    reformulated: int | None = None
    notes: list[str] = field(default_factory=list)


Search = Callable[[Progress], MethodRun]


@dataclass(frozen=True)
class Criteria:
    """How candidates are chosen: by the lean of their results, and the share of the top 10 that they keep; the first
    measure of effectiveness is for the upper bound only."""

    effectiveness: str
    lean: str
    agree: float


class MethodRunner:
    """Runs methods on the same queries. They share a collection, the base ranker and its results.

    ``runs`` are those that the caller holds, by name. All lists are ordered as the scorer measures them.
    """

    def __init__(
        self, given: BenchInput, queries: pa.Table, scorer: BenchScorer, criteria: Criteria, base: MitigationMethod,
        k: int, runs: Mapping[str, RunLike] | None = None,
    ) -> None:  # fmt: skip
        self.resources, self._groups, self._runs = given.resources, given.groups, runs or {}
        self.queries, self.query_ids = queries, queries["query_id"].to_pylist()
        self._scorer, self._criteria, self._base, self._k = scorer, criteria, base, k
        self._base_stage = self._retrieve(base)

    def _retrieve(self, ranker: MitigationMethod) -> RetrieveStage:
        """The stage that searches with a ranker. Names and settings are checked, nothing is loaded."""
        search = {**ranker.settings, "ranker": ranker.name, "k": self._k}
        return retrieve_stage(Recipe("bench", {"retrieve": search}), self.resources)

    @cached_property
    def ranker(self) -> RankerPlugin:
        """The base ranker."""
        return _ranker_of(self._base_stage)

    def search_base(self, progress: Progress) -> MethodRun:
        """The results of the base, which methods build on and measures with a background compare with."""
        self.base = self.searched(self.ranker, progress)
        self._scorer.set_base(self.base.hits)
        return self.base

    def open(self, method: MitigationMethod) -> Search:
        """How to search with a method. Its index is made and its model loaded here: what is missing is an error now."""
        if method.kind == RANKER:
            return partial(self.searched, _ranker_of(self._retrieve(method)))
        if method.reranks_groups:
            return self._by_groups(method)
        if method.kind == RERANK:
            # By default all documents of the base are reranked.
            given = {"depth": self._k, **method.settings, "first": self.ranker, "model": method.name}
            return partial(self.searched, build("ranker", "crossencoder", {**given, "index": self.resources.index()}))
        if method.kind == REFORMULATE:
            spec = {**method.settings, "method": method.name}
            first = {**self._base.settings, "ranker": self._base.name}
            recipe = Recipe("bench", {"reformulate": [spec], "first_pass": first})
            stage = reformulate_stage(recipe, self.resources, self._groups)
            stage.prepare()
            return partial(self._reformulated, stage, method)
        return self._replayed(method)

    def searched(self, ranker: RankerPlugin, progress: Progress) -> MethodRun:
        """The results of a ranker. What is compiled or read on its first use does not count as time."""
        ranker.search(self.queries["text"].slice(0, 1).combine_chunks(), self._k)
        start = time.perf_counter()
        parts = [ranker.search(rows["text"].combine_chunks(), self._k) for rows in self._chunks(progress)]
        return MethodRun(self._scorer.ordered(joined(parts)), time.perf_counter() - start)

    def _chunks(self, progress: Progress) -> Iterator[pa.Table]:
        for start in range(0, self.queries.num_rows, _CHUNK):
            rows = self.queries.slice(start, _CHUNK)
            yield rows
            progress(start + rows.num_rows, self.queries.num_rows)

    def _counted(self, method: MitigationMethod) -> Groups:
        """The groups that a reranker counts: its own, those given, or those of the first measure of lean."""
        own = method.settings.get("groups")
        found = self._groups if own is None else Groups.of(own)
        if found is None:
            (lean,) = (one for one in self._scorer.asked if one.text == self._criteria.lean)
            found = measured_groups(lean, self._scorer.lexicons())
        if len(found.names) < 2:
            raise ConfigError(
                f"method {method.text}: expected two groups or more, found {found.names[0]}; name others with groups="
            )
        return found

    def _by_groups(self, method: MitigationMethod) -> Search:
        unknown = [name for name in method.settings if name not in _OF_GROUPS]
        if unknown:
            raise UnknownName("setting", unknown[0], _OF_GROUPS, method.text)
        counted = self._counted(method)
        # Two groups are named in the counts that the measures read too; of more, only those that are compared count.
        words = counted.counted if counted.difference == "auto" else counted.lexicon
        mentions = self.resources.mentions(Annotate(words, counted.tokenizer, counted.overlap))
        names = group_names(mentions, counted.difference)
        targets = read_targets(method.settings.get("targets", EVEN), names)
        groups = leaning_groups(mentions, counted.difference)

        def find(progress: Progress) -> MethodRun:
            start, base = time.perf_counter(), self.base.hits
            mine = groups[base.docs]
            shares = even_targets(base.offsets, mine, len(names), NEUTRAL) if targets is None else targets
            ranks = np.arange(len(base.docs)) - base.offsets[base.rows()]
            order = fair_order(base.offsets, -ranks.astype(np.float64), mine, shares)
            # Only the order is new: scores fall by one with each rank.
            made = Hits(base.offsets, base.docs[order], -ranks.astype(np.float32))
            progress(1, 1)
            return MethodRun(made, self.base.seconds + time.perf_counter() - start)

        return find

    def _replayed(self, method: MitigationMethod) -> Search:
        """A run of the user. Queries that it lacks have no results; unknown documents are refused."""
        if method.settings:
            raise ConfigError(f"method_settings= {method.text}: a run has no settings")
        run = as_run(self._runs.get(method.name, method.name), method.name, "auto", False)
        lines = run.lines.select("query_id", "doc_id", "score")
        known = pl.DataFrame({"query_id": self.query_ids, "row": np.arange(len(self.query_ids), dtype=np.int64)})
        mine = lines.join(known, on="query_id", maintain_order="left")
        answered = lines["query_id"].n_unique()
        if not mine.height:
            raise DataError(
                f"run {method.name}: none of its {answered:,} queries (the first is {lines['query_id'][0]!r}) is among "
                f"the {len(self.query_ids):,} of this bench (the first is {self.query_ids[0]!r}); give a run of these "
                "queries"
            )
        docs = pc.index_in(mine["doc_id"].to_arrow().cast(pa.string()), value_set=self.resources.doc_ids)
        if docs.null_count:
            at = int(np.flatnonzero(docs.is_null().to_numpy(zero_copy_only=False))[0])
            raise DataError(
                f"run {method.name}: {docs.null_count:,} of its lines rank documents that are not in the collection, "
                f"the first is {mine['doc_id'][at]!r} for query {mine['query_id'][at]!r}; give a run over these"
            )
        left = answered - mine["query_id"].n_unique()
        notes = [f"{left:,} queries of the run are not part of this bench: left out"] if left else []

        def find(progress: Progress) -> MethodRun:
            hits = lists_of(
                mine["row"].to_numpy(), docs.to_numpy(), mine["score"].cast(pl.Float64).to_numpy(), len(self.query_ids)
            )
            progress(1, 1)
            return MethodRun(cut(self._scorer.ordered(hits), self._k), notes=[*run.notes, *notes])

        return find

    def _reformulated(self, stage: ReformulateStage, method: MitigationMethod, progress: Progress) -> MethodRun:
        start, reformulated, parts, done = time.perf_counter(), 0, [], 0
        for rows in self._chunks(progress):
            variants = self._variants(stage.run(rows)[0], done, method)
            chosen = self._choose(variants, method)
            reformulated += int((chosen != variants.original).sum())
            parts.append(taken(variants.hits, chosen))
            done += rows.num_rows
        return MethodRun(joined(parts), time.perf_counter() - start, reformulated)

    def _variants(self, table: pa.Table, before: int, method: MitigationMethod) -> Variants:
        """Variants with their results, and the scores that the choice reads: judgements are for the bound alone."""
        original = np.flatnonzero(pc.equal(table["method"], ORIGINAL).to_numpy())
        query = np.repeat(np.arange(len(original)), np.diff(np.append(original, table.num_rows)))
        hits = self._scorer.ordered(self.ranker.search(table["text"].combine_chunks(), self._k))
        criteria = self._criteria
        wanted = [criteria.lean, *([criteria.effectiveness] if method.bound else [])]
        if method.trained:
            wanted = [LEAN]
        return Variants(table, query, original, hits, self._scorer.score(hits, query + before, wanted))

    def _choose(self, variants: Variants, method: MitigationMethod) -> Ints:
        directions, criteria = self._scorer.directions, self._criteria
        if method.bound:
            return choose_by_judgements(variants, criteria.effectiveness, criteria.lean, directions)
        if method.trained:
            return choose_by_selector(variants, Path(method.choice), self.resources.index())
        return choose_by_results(variants, criteria.lean, directions[criteria.lean], criteria.agree)


def _ranker_of(stage: RetrieveStage) -> RankerPlugin:
    stage.prepare()
    return stage.ranker


def joined(parts: Sequence[Hits]) -> Hits:
    """The lists of several batches of queries, in order."""
    sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.offsets) for part in parts)])
    docs, scores = (np.concatenate([getattr(part, name) for part in parts]) for name in ("docs", "scores"))
    return Hits(np.cumsum(sizes), docs, scores)


def taken(hits: Hits, rows: Ints) -> Hits:
    """Some of the lists, in the order given."""
    sizes = np.diff(hits.offsets)[rows]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    at = np.arange(offsets[-1]) + np.repeat(hits.offsets[:-1][rows] - offsets[:-1], sizes)
    return Hits(offsets, hits.docs[at], hits.scores[at])


def cut(hits: Hits, k: int) -> Hits:
    """The first k of each list."""
    keep = np.arange(len(hits.docs)) - hits.offsets[hits.rows()] < k
    sizes = np.minimum(np.diff(hits.offsets), k)
    return Hits(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), hits.docs[keep], hits.scores[keep])


def lists_of(row: Ints, docs: Any, scores: Any, queries: int) -> Hits:
    """Lines of a run as lists, queries by number; one without a line has an empty list."""
    order = np.argsort(row, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=queries))]).astype(np.int64)
    with np.errstate(over="ignore"):
        return Hits(offsets, np.asarray(docs)[order].astype(np.int32), np.asarray(scores)[order].astype(np.float32))
