"""From a lever to lists of documents: one list for each query, in the same order for all levers."""

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
from askew.app.bench.methods import GROUPS, RANKER, REFORMULATE, RERANK, Lever
from askew.app.bench.scoring import BenchScorer
from askew.app.build.built_pairs import LEAN
from askew.app.build.recipe import Recipe, prepare
from askew.app.build.resources import Resources
from askew.app.build.runs import RetrieveStage
from askew.app.build.variants import ORIGINAL, ReformulateStage
from askew.app.scoring.ranked import NEUTRAL, Counting, group_names, leaning_groups
from askew.core.errors import ConfigError, DataError, UnknownName
from askew.core.lexicon import load_lexicon
from askew.core.ranking import Hits, Ints
from askew.corpora.runs import read_run
from askew.engine.store import Store
from askew.plugins.kinds import RankerPlugin, Stage
from askew.plugins.registry import build
from askew.rankers.fairorder import EVEN, even_targets, fair_order, read_targets

# So many queries are asked at a time: what their candidates find is in memory.
_CHUNK = 1000
# So much is done, of so much.
Told = Callable[[int, int], None]


@dataclass(frozen=True)
class MethodRun:
    """What a lever finds: a list for each query. ``otherwise``: how many queries were asked in other words."""

    hits: Hits
    seconds: float = 0.0
    otherwise: int | None = None
    notes: list[str] = field(default_factory=list)


Finder = Callable[[Told], MethodRun]


@dataclass(frozen=True)
class Criteria:
    """By what candidates are chosen: the lean of their results, the share of the first ten to keep; the first measure
    of effectiveness is for the upper bound only."""

    effectiveness: str
    lean: str
    agree: float


class World:
    """What all levers share: a collection in a store, its queries, the base ranker and what it finds."""

    def __init__(self, source: str, store: Store, base: Lever, k: int) -> None:
        self._source, self._store, self._base, self._k = source, store, base, k
        self._stages, self.resources = self._prepared(base)

    def set_queries(self, queries: pa.Table) -> None:
        """The queries that every lever answers, in this order."""
        self.queries = queries
        self.query_ids: list[str] = queries["query_id"].to_pylist()

    def _prepared(self, ranker: Lever, method: Lever | None = None) -> tuple[dict[str, Stage], Resources]:
        """The stages that search, and that ask otherwise. Names and settings are checked, nothing is loaded."""
        search = {**ranker.settings, "ranker": ranker.name}
        methods = [] if method is None else [{**method.settings, "method": method.name}]
        sections: dict[str, Any] = {
            "collection": {"source": self._source}, "reformulate": methods, "first_pass": search,
            "retrieve": {**search, "k": self._k}, "evaluate": {"measures": ["RR@10"]},
        }  # fmt: skip
        made = prepare(Recipe("bench", sections), self._store)
        return {step.name: step.stage for step in made.plan.steps}, made.resources

    @cached_property
    def ranker(self) -> RankerPlugin:
        """The base ranker."""
        return _ranker_of(self._stages)

    def search_base(self, scorer: BenchScorer, told: Told) -> MethodRun:
        """What the base finds, which levers build on. From now on lists are ordered as this scorer measures them."""
        self.scorer = scorer
        self.base = self.searched(self.ranker, told)
        scorer.set_base(self.base.hits)
        return self.base

    def open(self, lever: Lever, choice: Criteria) -> Finder:
        """How to find with a lever. Its index is made and its model loaded here, so that what is missing fails now."""
        if lever.kind == RANKER:
            return partial(self.searched, _ranker_of(self._prepared(lever)[0]))
        if lever.kind == RERANK and lever.name == GROUPS:
            return self._by_groups(lever)
        if lever.kind == RERANK:
            # Unless told otherwise, all that the base has found is read again.
            given = {"depth": self._k, **lever.settings, "first": self.ranker, "model": lever.name}
            return partial(self.searched, build("ranker", "crossencoder", {**given, "index": self.resources.index()}))
        if lever.kind == REFORMULATE:
            stage = self._prepared(self._base, lever)[0]["variants"]
            assert isinstance(stage, ReformulateStage)
            stage.prepare()
            return partial(self._asked_otherwise, stage, lever, choice)
        return self._replayed(lever)

    def searched(self, ranker: RankerPlugin, told: Told) -> MethodRun:
        """What a ranker finds. What is compiled or read on its first use is not counted as time."""
        ranker.search(self.queries["text"].slice(0, 1).combine_chunks(), self._k)
        start = time.perf_counter()
        parts = [ranker.search(rows["text"].combine_chunks(), self._k) for rows in self._chunks(told)]
        return MethodRun(self.scorer.ordered(joined(parts)), time.perf_counter() - start)

    def _chunks(self, told: Told) -> Iterator[pa.Table]:
        for start in range(0, self.queries.num_rows, _CHUNK):
            rows = self.queries.slice(start, _CHUNK)
            yield rows
            told(start + rows.num_rows, self.queries.num_rows)

    def _by_groups(self, lever: Lever) -> Finder:
        given = {"targets": EVEN, "lexicon": Counting().lexicon, **lever.settings}
        unknown = [name for name in given if name not in ("targets", "lexicon")]
        if unknown:
            raise UnknownName("setting", unknown[0], ("targets", "lexicon"), lever.text)
        counting = Counting()
        mentions = self.resources.mentions(load_lexicon(given["lexicon"]), counting.tokens, "all")
        names = group_names(mentions, counting.groups)
        asked, groups = read_targets(given["targets"], names), leaning_groups(mentions, counting.groups)

        def find(told: Told) -> MethodRun:
            start, base = time.perf_counter(), self.base.hits
            mine = groups[base.docs]
            shares = even_targets(base.offsets, mine, len(names), NEUTRAL) if asked is None else asked
            ranks = np.arange(len(base.docs)) - base.offsets[base.rows()]
            order = fair_order(base.offsets, -ranks.astype(np.float64), mine, shares)
            # Only the order is new: scores fall by one a place.
            made = Hits(base.offsets, base.docs[order], -ranks.astype(np.float32))
            told(1, 1)
            return MethodRun(made, self.base.seconds + time.perf_counter() - start)

        return find

    def _replayed(self, lever: Lever) -> Finder:
        """A run from a file. Queries that it lacks find nothing; documents that nobody knows are refused."""
        if lever.settings:
            raise ConfigError(f"--set {lever.text}: a run from a file has no settings")
        run = read_run(Path(lever.name))
        lines = run.lines.select("query_id", "doc_id", "score")
        known = pl.DataFrame({"query_id": self.query_ids, "row": np.arange(len(self.query_ids), dtype=np.int64)})
        mine = lines.join(known, on="query_id", maintain_order="left")
        asked = lines["query_id"].n_unique()
        if not mine.height:
            raise DataError(
                f"run {lever.name}: none of its {asked:,} queries (the first is {lines['query_id'][0]!r}) is among the "
                f"{len(self.query_ids):,} asked here (the first is {self.query_ids[0]!r}); give a run of these queries"
            )
        docs = pc.index_in(mine["doc_id"].to_arrow().cast(pa.string()), value_set=self.resources.doc_ids)
        if docs.null_count:
            at = int(np.flatnonzero(docs.is_null().to_numpy(zero_copy_only=False))[0])
            raise DataError(
                f"run {lever.name}: {docs.null_count:,} of its lines rank documents that are not in the collection, "
                f"the first is {mine['doc_id'][at]!r} for query {mine['query_id'][at]!r}; give a run over these"
            )
        left = asked - mine["query_id"].n_unique()
        notes = [f"{left:,} queries of the run are not asked here and are left out"] if left else []

        def find(told: Told) -> MethodRun:
            hits = lists_of(
                mine["row"].to_numpy(), docs.to_numpy(), mine["score"].cast(pl.Float64).to_numpy(), len(self.query_ids)
            )
            told(1, 1)
            return MethodRun(cut(self.scorer.ordered(hits), self._k), notes=[*run.notes, *notes])

        return find

    def _asked_otherwise(self, stage: ReformulateStage, lever: Lever, choice: Criteria, told: Told) -> MethodRun:
        start, otherwise, parts, done = time.perf_counter(), 0, [], 0
        for rows in self._chunks(told):
            variants = self._variants(stage.run(rows)[0], done, lever, choice)
            chosen = self._choose(variants, lever, choice)
            otherwise += int((chosen != variants.original).sum())
            parts.append(taken(variants.hits, chosen))
            done += rows.num_rows
        return MethodRun(joined(parts), time.perf_counter() - start, otherwise)

    def _variants(self, table: pa.Table, before: int, lever: Lever, choice: Criteria) -> Variants:
        """Variants with what they find, and the scores that the choice reads: judgements are for the bound alone."""
        original = np.flatnonzero(pc.equal(table["method"], ORIGINAL).to_numpy())
        query = np.repeat(np.arange(len(original)), np.diff(np.append(original, table.num_rows)))
        hits = self.scorer.ordered(self.ranker.search(table["text"].combine_chunks(), self._k))
        wanted = [choice.lean, *([choice.effectiveness] if lever.bound else [])]
        if lever.trained:
            wanted = [LEAN]
        return Variants(table, query, original, hits, self.scorer.score(hits, query + before, wanted))

    def _choose(self, variants: Variants, lever: Lever, choice: Criteria) -> Ints:
        directions = self.scorer.directions
        if lever.bound:
            return choose_by_judgements(variants, choice.effectiveness, choice.lean, directions)
        if lever.trained:
            return choose_by_selector(variants, Path(lever.choice), self.resources.index())
        return choose_by_results(variants, choice.lean, directions[choice.lean], choice.agree)


def _ranker_of(stages: Mapping[str, Stage]) -> RankerPlugin:
    stage = stages["runs"]
    assert isinstance(stage, RetrieveStage)
    stage.prepare()
    return stage.ranker


def joined(parts: Sequence[Hits]) -> Hits:
    """The lists of several batches of queries, one after the other."""
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
