"""Reformulated queries as a mitigation method: generate, filter, search and select candidates.

Candidates are generated and filtered once for each reformulator, even if several methods use them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.app.bench.choosing import (
    Variants,
    choose_by_judgements,
    choose_by_results,
    choose_by_selector,
)
from askew.app.bench.methods import ONE_SEARCH, MitigationMethod
from askew.app.bench.scoring import BenchScorer
from askew.app.bench.settings import FILTER_OFF
from askew.app.bench.start import BenchInput
from askew.app.build.built_pairs import LEAN
from askew.app.build.prepare import reformulate_stage
from askew.app.build.recipe import Recipe, read_recipe
from askew.app.build.variants import ORIGINAL, PROBABILITIES, Keep, ReformulateStage
from askew.app.search.reformulate import make_filter
from askew.core.costs import counting_model_calls
from askew.core.ranking import Hits, Ints
from askew.plugins.kinds import RankerPlugin

# The filters of this recipe decide which reformulations keep the meaning of a query.
_RECIPE = "refairmulate"


@dataclass(frozen=True)
class Criteria:
    """How candidates are selected: by the lean of their results and the share ``agree`` of the top 10 that they keep.

    ``effectiveness`` is used only for the upper bound, which selects by the judgements. ``equivalence`` is the model of
    the filter that refuses a different meaning.
    """

    effectiveness: str
    lean: str
    agree: float
    equivalence: str = "auto"


@dataclass(frozen=True)
class MadeCandidates:
    """The candidates of every query after filtering, and their costs; ``start`` has the first row of each query."""

    table: pa.Table
    start: Ints
    seconds: float
    model_calls: int
    notes: list[str]

    def of_queries(self, first: int, number: int) -> pa.Table:
        """Return the variants of ``number`` queries from the query ``first`` on."""
        begin, end = int(self.start[first]), int(self.start[first + number])
        return self.table.slice(begin, end - begin)


@dataclass(frozen=True)
class ChosenVariants:
    """The results of the selected variants of some queries, and the numbers of changed queries and of searches."""

    hits: Hits
    reformulated: int
    searches: int


class SearchedReformulations:
    """Generates, filters, searches and selects the reformulations of the queries of a bench."""

    def __init__(
        self, given: BenchInput, queries: pa.Table, scorer: BenchScorer, criteria: Criteria, base: MitigationMethod,
        k: int, ranker: Callable[[], RankerPlugin],
    ) -> None:  # fmt: skip
        self._given, self._queries, self._scorer, self._criteria = given, queries, scorer, criteria
        self._base, self._k, self._ranker = base, k, ranker
        self._stages: dict[str, ReformulateStage] = {}
        self._made: dict[str, MadeCandidates] = {}

    def open(self, method: MitigationMethod) -> None:
        """Open a reformulator, so that a missing model or index is an error before any search."""
        key = _key(method)
        if key not in self._stages:
            first = {**self._base.settings, "ranker": self._base.name}
            spec = {**method.settings, "method": method.name}
            recipe = Recipe("bench", {"reformulate": [spec], "first_pass": first})
            self._stages[key] = reformulate_stage(recipe, self._given.resources, self._given.groups)
            self._stages[key].prepare()
            _ = self._filters

    @cached_property
    def _filters(self) -> Keep:
        if self._criteria.equivalence == FILTER_OFF:
            return Keep([])
        specs = [dict(one) for one in read_recipe(_RECIPE).tables("filter")]
        for one in specs:
            if one["filter"] == "equivalence":
                one["model"] = self._criteria.equivalence
        return Keep([make_filter(one, self._given.groups) for one in specs])

    def of(self, method: MitigationMethod) -> MadeCandidates:
        """Return the candidates of the reformulator of a method; they are generated at the first call."""
        key = _key(method)
        if key not in self._made:
            start = time.perf_counter()
            with counting_model_calls() as calls:
                table = self._stages[key].run(self._queries)[0]
                written = table.num_rows - self._queries.num_rows
                kept, dropped = self._filters.run(table)
            kept, starts = _surest_first(kept)
            refused = sum(dropped.values())
            words = f"reformulator {method.name}: the filters dropped {refused:,} of {written:,} reformulations"
            notes = [words] if written else []
            self._made[key] = MadeCandidates(kept, starts, time.perf_counter() - start, calls.texts, notes)
        return self._made[key]

    def texts_of(self, name: str) -> list[list[str]]:
        """Return the filtered reformulations of each query, by a reformulator with its default settings."""
        method = MitigationMethod(name, "reformulate", name)
        self.open(method)
        made = self.of(method)
        parts = (made.of_queries(row, 1)["text"].to_pylist() for row in range(self._queries.num_rows))
        return [texts[1:] for texts in parts]

    def choose(self, method: MitigationMethod, made: MadeCandidates, first: int, number: int) -> ChosenVariants:
        """Search the candidates of some queries, and select one candidate or the original of each query."""
        table = made.of_queries(first, number)
        if method.choice == ONE_SEARCH:
            return self._one_search(table)
        if method.strength is not None:
            table = _first_candidates(table, int(method.strength))
        variants = self._searched(table, first, method)
        rows = self._chosen(variants, method)
        changed = int((rows != variants.original).sum())
        return ChosenVariants(taken(variants.hits, rows), changed, table.num_rows)

    def _one_search(self, table: pa.Table) -> ChosenVariants:
        start = _starts(table)
        changed = np.diff(start) > 1
        texts = table["text"].take(pa.array(start[:-1] + changed)).combine_chunks()
        hits = self._scorer.ordered(self._ranker().search(texts, self._k))
        return ChosenVariants(hits, int(changed.sum()), len(texts))

    def _searched(self, table: pa.Table, before: int, method: MitigationMethod) -> Variants:
        """Search the variants and compute the scores for the selection; only the upper bound uses judgements."""
        start = _starts(table)
        original, query = start[:-1], np.repeat(np.arange(len(start) - 1), np.diff(start))
        hits = self._scorer.ordered(self._ranker().search(table["text"].combine_chunks(), self._k))
        wanted = [self._criteria.lean, *([self._criteria.effectiveness] if method.bound else [])]
        if method.trained:
            wanted = [LEAN]
        return Variants(table, query, original, hits, self._scorer.score(hits, query + before, wanted))

    def _chosen(self, variants: Variants, method: MitigationMethod) -> Ints:
        directions, criteria = self._scorer.directions, self._criteria
        if method.bound:
            return choose_by_judgements(variants, criteria.effectiveness, criteria.lean, directions)
        if method.trained:
            return choose_by_selector(variants, Path(method.choice), self._given.resources.index())
        return choose_by_results(variants, criteria.lean, directions[criteria.lean], criteria.agree)


def _key(method: MitigationMethod) -> str:
    return repr((method.name, sorted(method.settings.items())))


def _starts(table: pa.Table) -> Ints:
    """Return the row of the original of each query, followed by the number of rows."""
    return np.append(np.flatnonzero(pc.equal(table["method"], ORIGINAL).to_numpy()), table.num_rows).astype(np.int64)


def _surest_first(table: pa.Table) -> tuple[pa.Table, Ints]:
    """Sort the variants of each query by the probability that they ask for the same thing, the original first.

    Without these probabilities, candidates keep their order. Also returns the first row of each query.
    """
    start = _starts(table)
    query = np.repeat(np.arange(len(start) - 1), np.diff(start))
    sure = pc.fill_null(table[PROBABILITIES["same"]], 0.0).to_numpy().copy()
    sure[start[:-1]] = np.inf
    return table.take(pa.array(np.lexsort((np.arange(len(sure)), -sure, query)))), start


def _first_candidates(table: pa.Table, number: int) -> pa.Table:
    """Return the original and the first ``number`` candidates of each query."""
    start = _starts(table)
    place = np.arange(table.num_rows) - np.repeat(start[:-1], np.diff(start))
    return table.filter(pa.array(place <= number))


def taken(hits: Hits, rows: Ints) -> Hits:
    """Return the lists of the given rows, in this order."""
    sizes = np.diff(hits.offsets)[rows]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    at = np.arange(offsets[-1]) + np.repeat(hits.offsets[:-1][rows] - offsets[:-1], sizes)
    return Hits(offsets, hits.docs[at], hits.scores[at])
