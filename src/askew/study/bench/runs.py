"""Run mitigation methods: each returns one ranked list per query, in the same order of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.costs import counting_model_calls
from askew.core.errors import ConfigError, DataError, Note, UnknownName
from askew.core.groups import Groups
from askew.core.measure import Direction
from askew.core.plugins import build
from askew.core.protocols import MitigationPlugin, MitigationTask, RankerPlugin, check_lists
from askew.core.ranking import Floats, Hits, Ints, Rankings
from askew.measures.catalogue import Catalogue, MeasureRequest
from askew.measures.counts import Annotate
from askew.measures.effects import EffectMeter, lean_without_sign
from askew.measures.lists import RunLike, as_run
from askew.measures.requested import key_of
from askew.models.relevance import FILE as HEAD
from askew.models.relevance import read_head
from askew.pairs.gains import ORIGINAL, best_rows
from askew.pairs.plan import reformulate_stage, retrieve_stage
from askew.pairs.recipe import Recipe, read_recipe
from askew.pairs.resources import Resources
from askew.pairs.stages import PROBABILITIES, Evaluate, Keep, ReformulateStage, RetrieveStage
from askew.rewrite.reformulate import make_filter
from askew.search.annotated import compared_groups
from askew.search.common import join_hits, ranked, taken
from askew.search.disk import StoredTexts
from askew.study.bench.input import BenchInput
from askew.study.bench.methods import (
    FUSION,
    ONE_SEARCH,
    RANKER,
    REFORMULATE,
    REORDER,
    RERANK,
    RUN,
    MitigationMethod,
    make_plugin,
)
from askew.study.bench.settings import FILTER_OFF
from askew.train.selector import DEPTH, KEEP_ORIGINAL, NO_DOCUMENT, Built, kept_share, least_leaning

# Score ranked lists of any method, by the judgements of the query and by the words of the texts.

DEFAULTS = ("nDCG@10", "RR@10", "ARaB(tf)@10", "NFaiRR@10")


def ask_measures(measures: Sequence[str] | None, groups: Groups | None = None) -> list[MeasureRequest]:
    """Complete and check the measures: at least one of effectiveness and one of lean, each only once."""
    texts = DEFAULTS if measures is None else measures
    asked = Catalogue(groups=groups, has_background=True).complete(texts)
    for one in asked:
        one.check()
    signatures = [one.signature for one in asked]
    for one in asked:
        if signatures.count(one.signature) > 1:
            raise ConfigError(f"⟨measures⟩: {one.text!r} is given twice; give each measure once")
    if not effectiveness_of(asked) or not leans_of(asked):
        raise ConfigError(
            "⟨measures⟩: expected at least one measure of effectiveness and one of lean, as in 'RR@10 ARaB(tf)@10'; "
            f"found {', '.join(texts)}"
        )
    return asked


def effectiveness_of(asked: Sequence[MeasureRequest]) -> list[MeasureRequest]:
    """Return the measures that read judgements."""
    return [one for one in asked if one.judged]


def leans_of(asked: Sequence[MeasureRequest]) -> list[MeasureRequest]:
    """Return the measures that read no judgements."""
    return [one for one in asked if "judgements" not in one.family.reads]


class BenchScorer(Evaluate):
    """Scores ranked lists; the results of the base ranker are the background of measures that need one."""

    def __init__(
        self, measures: Sequence[str], resources: Resources, query_ids: Sequence[str], groups: Groups | None = None
    ) -> None:
        # In a build the background is each list itself; here methods are compared, so they share one background.
        super().__init__(measures, resources, catalogue=Catalogue(groups=groups, has_background=True))
        self._query_ids = pa.array(query_ids, pa.string())

    def set_base(self, hits: Hits) -> None:
        """Set the lists of the base ranker, one for each query, as the background."""
        self.scorer.set_background(Rankings.of(hits, self._query_ids))
        self.asked = self.scorer.asked

    def effect_meter(self, base: Hits) -> EffectMeter | None:
        """What compares lists with those of the base; None if no measure is a difference of two groups."""
        lean = lean_without_sign(self.asked)
        return None if lean is None else EffectMeter(self.scorer, lean, self._query_ids, base)

    def ordered(self, hits: Hits) -> Hits:
        """Return the lists in the order in which they are measured: by score, ties by document id as in trec_eval."""
        order = self.scorer.order(Rankings.of(hits, self._query_ids))
        return Hits(hits.offsets, hits.docs[order], hits.scores[order])

    def score(self, hits: Hits, query: Ints | None = None, only: Sequence[str] = ()) -> dict[str, Floats]:
        """Score each list by every measure, or ``only`` by some; an empty list has effectiveness 0 and no lean (NaN).

        ``query`` has the number of the query of each list; by default there is one list for each query.
        """
        ids, queries = self._query_ids, None
        if query is not None:
            queries = self._query_ids.take(pa.array(query))
            # Lists of the same query are distinguished by their number.
            ids = pa.array([f"{name}:{row}" for row, name in enumerate(queries.to_pylist())], pa.string())
        return self.scorer.score(Rankings.of(hits, ids, queries), only)


# Select a reformulation of a query at query time, by its results.


@dataclass(frozen=True)
class Variants:
    """The variants of some queries, with their results.

    ``original`` has the row of each original query, ``query`` the number of the query of each row, and ``scores`` the
    values of each measure by row. Lists are in the order in which they are measured.
    """

    table: pa.Table
    query: Ints
    original: Ints
    hits: Hits
    scores: Mapping[str, Floats]

    @property
    def candidates(self) -> Ints:
        """The rows of the reformulations, without the original queries."""
        return np.setdiff1d(np.arange(len(self.query)), self.original)

    def rows_of(self, chosen: Ints) -> Ints:
        """Convert positions among the candidates, or ORIGINAL, to the selected row of each query."""
        taken = chosen != KEEP_ORIGINAL
        rows = self.original.copy()
        rows[taken] = self.candidates[chosen[taken]]
        return rows


def top_documents(hits: Hits) -> Ints:
    """Return the top documents of each list, one row per list; NO_DOCUMENT after the end of a list."""
    lengths = np.minimum(np.diff(hits.offsets), DEPTH)
    there = np.arange(DEPTH) < lengths[:, None]
    docs = np.full(there.shape, NO_DOCUMENT, np.int64)
    docs[there] = hits.docs[(hits.offsets[:-1, None] + np.arange(DEPTH))[there]]
    return docs


def choose_by_results(variants: Variants, lean: str, direction: Direction, agree: float) -> Ints:
    """Select for each query the candidate that leans least, by its results.

    Candidates must lean less than the original and keep the share ``agree`` of its top 10. Ties are broken by the share
    that is kept, then by the order. The original is selected if there is no such candidate.
    """
    rows = variants.candidates
    query = variants.query[rows]
    # Lower is better: absolute values if zero is best, negated if higher is better.
    size = direction.gain(variants.scores[lean], np.zeros(len(variants.query)))
    docs = top_documents(variants.hits)
    keeps = kept_share(docs[variants.original][query], docs[rows])
    chosen = least_leaning(query, len(variants.original), size[rows], size[variants.original], keeps, agree)
    return variants.rows_of(chosen)


def choose_by_judgements(
    variants: Variants, effectiveness: str, lean: str, directions: Mapping[str, Direction]
) -> Ints:
    """Select for each query the candidate that leans least and is, by the judgements, as effective as the original.

    Ties are broken by effectiveness. The original is selected unless a candidate leans less, or leans equally and is
    more effective.
    """
    rows = variants.candidates
    query = variants.query[rows]
    better, less = (
        directions[name].gain(variants.scores[name][variants.original][query], variants.scores[name][rows])
        for name in (effectiveness, lean)
    )
    with np.errstate(invalid="ignore"):
        improves = (less > 0) | ((less == 0) & (better > 0))
    best = best_rows(query, len(variants.original), [less, better], (better >= 0) & improves)
    chosen = np.full(len(variants.original), KEEP_ORIGINAL, np.int64)
    chosen[query[best]] = np.flatnonzero(best)
    return variants.rows_of(chosen)


def choose_by_selector(variants: Variants, folder: Path, index: Path) -> Ints:
    """Select a candidate of each query with a trained selector, which reads texts and results, but no judgements."""
    from askew.train.selector import choose

    rows = variants.candidates
    # Queries without candidates are not passed to the selector.
    present, query = np.unique(variants.query[rows], return_inverse=True)
    if not len(query):
        return variants.original
    originals, docs = variants.original[present], top_documents(variants.hits)
    texts, ids = variants.table["text"], variants.table["query_id"].take(pa.array(originals)).to_pylist()
    table = pl.DataFrame({"text": pl.from_arrow(texts.take(pa.array(rows)))})
    original_texts = texts.take(pa.array(originals)).to_pylist()
    built = Built(table, query, ids, original_texts, True, (docs[originals], docs[rows]), index)
    chosen = np.full(len(variants.original), KEEP_ORIGINAL, np.int64)
    chosen[present] = choose(folder, built)
    return variants.rows_of(chosen)


# Run methods, and generate, filter, search and select the reformulations of those that reformulate queries.

# The filters of this recipe decide which reformulations keep the meaning of a query.
_RECIPE = "refairmulate"
# The number of queries searched at a time: the results of all their candidates are in memory.
_CHUNK = 1000
# Settings of a run: only the user knows its costs.
_OF_RUNS = ("searches", "model_calls")
# Called with the number of queries done and the total number.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Criteria:
    """How candidates are selected: by the lean of their results and the share ``agree`` of the top 10 that they keep.

    ``effectiveness`` is used only for the upper bound, which selects by the judgements. ``equivalence`` is the model of
    the filter that refuses a different meaning.
    """

    effectiveness: str
    lean: str
    agree: float
    equivalence: str


@dataclass(frozen=True)
class Candidates:
    """The candidates of every query after filtering, and their costs; ``start`` has the first row of each query."""

    table: pa.Table
    start: Ints
    model_calls: int
    notes: list[str]


@dataclass(frozen=True)
class MethodRun:
    """The results of a method: a ranked list for each query, and its costs.

    ``searches`` and ``model_calls`` are costs per query: searches of an index, and texts or pairs of texts that neural
    networks read or wrote; None if unknown. ``reformulated`` is the number of reformulated queries.
    """

    hits: Hits
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
        k: int, runs: Mapping[str, RunLike], plugins: Mapping[str, MitigationPlugin],
    ) -> None:  # fmt: skip
        self.resources, self._groups = given.resources, given.groups
        self._runs, self._plugins = runs, plugins
        self.queries, self.query_ids = queries, queries["query_id"].to_pylist()
        self._scorer, self._criteria, self._base, self._k = scorer, criteria, base, k
        self._base_stage = self._retrieve(base)
        self._stages: dict[str, ReformulateStage] = {}
        self._candidates: dict[str, Candidates] = {}

    def _retrieve(self, ranker: MitigationMethod) -> RetrieveStage:
        """Return the stage that searches with a ranker; names and settings are checked, nothing is loaded."""
        search = {**ranker.settings, "ranker": ranker.name, "k": self._k}
        return retrieve_stage(Recipe("bench", {"retrieve": search}), self.resources)

    @cached_property
    def ranker(self) -> RankerPlugin:
        """The base ranker."""
        return _ranker_of(self._base_stage)

    def _search(self, texts: pa.Array) -> Hits:
        return self._scorer.ordered(self.ranker.search(texts, self._k))

    def search_base(self, progress: Progress) -> MethodRun:
        """Search with the base ranker; methods reuse its results, and measures use them as the background."""
        self.base = self.searched(self.ranker, progress)
        self._scorer.set_base(self.base.hits)
        return self.base

    def open(self, method: MitigationMethod) -> Search:
        """Return the search function of a method; its index is built and its model loaded here, to fail early."""
        opened: dict[str, Callable[[MitigationMethod], Search]] = {
            RANKER: lambda one: partial(self.searched, _ranker_of(self._retrieve(one))),
            FUSION: self._fused, REORDER: self._reordered, RERANK: self._reranked, REFORMULATE: self._reformulated,
            RUN: self._replayed,
        }  # fmt: skip
        return opened[method.kind](method)

    def searched(self, ranker: RankerPlugin, progress: Progress, searches: float = 1.0) -> MethodRun:
        """Search with a ranker."""
        with counting_model_calls() as calls:
            parts = [ranker.search(rows["text"].combine_chunks(), self._k) for rows in self._chunks(progress)]
        hits = self._scorer.ordered(join_hits(parts))
        return MethodRun(hits, searches, calls.texts / len(self.query_ids))

    def again(self, method: MitigationMethod, search: Search) -> Callable[[], Hits] | None:
        """Run a method again, for other counts of documents; None if it reads no counts, so that its lists stay."""
        reads = any(part.kind == REORDER or part.by_results for part in method.parts)
        return (lambda: search(lambda *_: None).hits) if reads else None

    def _chunks(self, progress: Progress) -> Iterator[pa.Table]:
        for start in range(0, self.queries.num_rows, _CHUNK):
            rows = self.queries.slice(start, _CHUNK)
            yield rows
            progress(start + rows.num_rows, self.queries.num_rows)

    def _fused(self, method: MitigationMethod) -> Search:
        mine = [_ranker_of(self._retrieve(MitigationMethod(name, RANKER, name))) for name in method.name.split(",")]
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
                f"⟨method_settings⟩ {method.text}: this model (from askew train adapter) has no settings; "
                "leave them out"
            )
        head, texts = read_head(Path(method.name)), self.queries["text"].to_pylist()

        def find(progress: Progress) -> MethodRun:
            base = self.base.hits
            rows = base.rows()
            documents = [self._text_of(doc) for doc in base.docs.tolist()]
            scores = head.logits([texts[row] for row in rows.tolist()], documents)
            progress(1, 1)
            hits = self._scorer.ordered(ranked(rows, base.docs, scores, len(texts), self._k))
            # In the layout "apart" each text is encoded once; otherwise each pair is one text.
            read = len(set(texts)) + len(set(documents)) if head.layout == "apart" else len(documents)
            return MethodRun(hits, 1.0, read / len(texts))

        return find

    def _text_of(self, doc: int) -> str:
        return str(self._kept_texts[doc])

    @cached_property
    def _kept_texts(self) -> Any:
        return StoredTexts(self.resources.index())

    def _reordered(self, method: MitigationMethod) -> Search:
        """Reorder the results of the base, or of another method."""
        plugin = self._plugins.get(method.name) or make_plugin(method)
        before = None if method.first is None else self.open(method.first)
        self._counts(method)  # An error is raised before any search.

        def find(progress: Progress) -> MethodRun:
            groups, counts = self._counts(method)
            first = self.base if before is None else before(progress)
            searches = 0

            def search(texts: Sequence[str]) -> Hits:
                nonlocal searches
                searches += len(texts)
                return self._search(pa.array(list(texts), pa.string()))

            task = MitigationTask(
                self.query_ids, self.queries["text"].to_pylist(), first.hits, groups, counts, search, self.texts_of,
                self._text_of,
            )  # fmt: skip
            with counting_model_calls() as calls:
                made = self._scorer.ordered(check_lists(plugin.rank(task), task, method.text))
            progress(1, 1)
            queries = len(self.query_ids)
            return replace(
                first, hits=made,
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
                "for the queries of this bench",
                code="other-queries",
                query=lines["query_id"][0],
                first=self.query_ids[0],
            )
        docs = pc.index_in(mine["doc_id"].to_arrow().cast(pa.string()), value_set=self.resources.doc_ids)
        if docs.null_count:
            at = int(np.flatnonzero(docs.is_null().to_numpy(zero_copy_only=False))[0])
            raise DataError(
                f"run {method.name}: {docs.null_count:,} lines of the run rank documents that are not in the "
                f"collection (the first is {mine['doc_id'][at]!r} for query {mine['query_id'][at]!r}); give a run on "
                "this collection",
                code="unknown-documents",
                document=mine["doc_id"][at],
                query=mine["query_id"][at],
            )
        left = answered - mine["query_id"].n_unique()
        notes = [f"{method.text}: {note}" for note in run.notes]
        if left:
            words = f"{method.text}: {left:,} queries of the run are not part of this bench and are left out"
            notes.append(Note(words, code="other-queries", queries=left))

        def find(progress: Progress) -> MethodRun:
            hits = lists_of(
                mine["row"].to_numpy(), docs.to_numpy(), mine["score"].cast(pl.Float64).to_numpy(), len(self.query_ids)
            )
            progress(1, 1)
            made = cut(self._scorer.ordered(hits), self._k)
            return MethodRun(made, costs.get("searches"), costs.get("model_calls"), None, notes)

        return find

    def _reformulated(self, method: MitigationMethod) -> Search:
        """Select reformulations of the queries, and search them."""
        self._open_reformulator(method)

        def find(progress: Progress) -> MethodRun:
            made = self._made(method)
            reformulated, searches, parts, done = 0, 0, [], 0
            with counting_model_calls() as calls:
                for rows in self._chunks(progress):
                    begin, end = made.start[[done, done + rows.num_rows]].tolist()
                    hits, changed, searched = self._choose(method, made.table.slice(begin, end - begin), done)
                    parts.append(hits)
                    reformulated, searches, done = reformulated + changed, searches + searched, done + rows.num_rows
            queries = len(self.query_ids)
            return MethodRun(
                join_hits(parts), searches / queries,
                (made.model_calls + calls.texts) / queries, reformulated, made.notes,
            )  # fmt: skip

        return find

    def _open_reformulator(self, method: MitigationMethod) -> str:
        """Open a reformulator, so that a missing model or index is an error before any search; return its key."""
        key = repr((method.name, sorted(method.settings.items())))
        if key not in self._stages:
            first = {**self._base.settings, "ranker": self._base.name}
            spec = {**method.settings, "method": method.name}
            recipe = Recipe("bench", {"reformulate": [spec], "first_pass": first})
            self._stages[key] = reformulate_stage(recipe, self.resources, self._groups)
            self._stages[key].prepare()
            _ = self._filters
        return key

    @cached_property
    def _filters(self) -> Keep:
        if self._criteria.equivalence == FILTER_OFF:
            return Keep([])
        specs = [dict(one) for one in read_recipe(_RECIPE).tables("filter")]
        for one in specs:
            if one["filter"] == "equivalence":
                one["model"] = self._criteria.equivalence
        return Keep([make_filter(one, self._groups) for one in specs])

    def _made(self, method: MitigationMethod) -> Candidates:
        """Return the candidates of the reformulator of a method; they are generated at the first call.

        The original query is first, followed by the candidates with the highest probability of asking for the same
        thing. Without these probabilities, candidates keep their order.
        """
        key = self._open_reformulator(method)
        if key not in self._candidates:
            with counting_model_calls() as calls:
                table = self._stages[key].run(self.queries)[0]
                written = table.num_rows - self.queries.num_rows
                kept, dropped = self._filters.run(table)
            start, query = _starts(kept)
            sure = pc.fill_null(kept[PROBABILITIES["same"]], 0.0).to_numpy().copy()
            sure[start[:-1]] = np.inf
            kept = kept.take(pa.array(np.lexsort((np.arange(len(sure)), -sure, query))))
            refused = sum(dropped.values())
            words = f"reformulator {method.name}: the filters dropped {refused:,} of {written:,} reformulations"
            notes = [words] if written else []
            self._candidates[key] = Candidates(kept, start, calls.texts, notes)
        return self._candidates[key]

    def texts_of(self, name: str) -> list[list[str]]:
        """Return the filtered reformulations of each query, by a reformulator with its default settings."""
        made = self._made(MitigationMethod(name, REFORMULATE, name))
        texts = made.table["text"].to_pylist()
        return [texts[first + 1 : end] for first, end in pairwise(made.start.tolist())]

    def _choose(self, method: MitigationMethod, table: pa.Table, before: int) -> tuple[Hits, int, int]:
        """Select one candidate or the original of each query; the results, and the numbers of changes and searches.

        ``before`` is the number of queries before the table. Only the upper bound uses judgements.
        """
        start, query = _starts(table)
        if method.choice == ONE_SEARCH:
            changed = np.diff(start) > 1
            hits = self._search(table["text"].take(pa.array(start[:-1] + changed)).combine_chunks())
            return hits, int(changed.sum()), len(changed)
        if method.strength is not None:
            place = np.arange(table.num_rows) - start[query]
            table = table.filter(pa.array(place <= int(method.strength)))
            start, query = _starts(table)
        hits = self._search(table["text"].combine_chunks())
        criteria, directions = self._criteria, self._scorer.directions
        wanted = [criteria.lean, *([criteria.effectiveness] if method.bound else [])]
        scores = {} if method.trained else self._scorer.score(hits, query + before, wanted)
        variants = Variants(table, query, start[:-1], hits, scores)
        if method.bound:
            rows = choose_by_judgements(variants, criteria.effectiveness, criteria.lean, directions)
        elif method.trained:
            rows = choose_by_selector(variants, Path(method.choice), self.resources.index())
        else:
            rows = choose_by_results(variants, criteria.lean, directions[criteria.lean], criteria.agree)
        return taken(hits, rows), int((rows != variants.original).sum()), table.num_rows


def _ranker_of(stage: RetrieveStage) -> RankerPlugin:
    stage.prepare()
    return stage.ranker


def _starts(table: pa.Table) -> tuple[Ints, Ints]:
    """Return the row of the original of each query, followed by the number of rows, and the query of each row."""
    originals = np.flatnonzero(pc.equal(table["method"], ORIGINAL).to_numpy())
    start = np.append(originals, table.num_rows).astype(np.int64)
    return start, np.repeat(np.arange(len(originals)), np.diff(start))


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
