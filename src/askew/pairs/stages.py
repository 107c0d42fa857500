"""The stages of a build: classify, reformulate, filter, retrieve, evaluate and select."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.address import without_secret_values
from askew.core.defaults import counted
from askew.core.errors import ConfigError, StoreError
from askew.core.groups import Groups
from askew.core.lexicon import Lexicon
from askew.core.measure import Direction, check_columns, column_of, new_column, old_column
from askew.core.plugins import has_device
from askew.core.protocols import (
    ClassifierPlugin,
    DocMentions,
    FilterPlugin,
    JudgingFilter,
    QueryBatch,
    RankerPlugin,
    ReformulatorPlugin,
    SelectorPlugin,
)
from askew.core.ranking import Ints, Rankings
from askew.core.store.manifest import Manifest
from askew.core.store.store import Store
from askew.measures.articles import Articles
from askew.measures.catalogue import Catalogue, MeasureRequest
from askew.measures.counts import Annotate, stage_of
from askew.measures.requested import CountKey, keys_of
from askew.measures.scorer import Scorer
from askew.pairs.gains import ORIGINAL, PairParts
from askew.pairs.holding import CHANCE, DOCUMENTS, REFUSED, WITH_REFUSED, Holding, refusals
from askew.pairs.resources import Resources
from askew.pairs.tables import under
from askew.rewrite.classifiers import ABSTAINS, named_classifier
from askew.rewrite.reformulate import FirstPass
from askew.search.disk import StoredTexts

NOTHING = "found nothing"
# Parquet calls the values of a list "element"; with this name, a part reads back as it was written.
DOC, SCORE = (pa.list_(pa.field("element", kind)) for kind in (pa.int32(), pa.float32()))


class RetrieveStage:
    """Searches every variant; variants without results are dropped and counted, as an empty list has no lean."""

    name = "retrieve"
    version = 1

    def __init__(
        self, ranker: Callable[[], RankerPlugin], ranker_key: Mapping[str, Any], k: int = 100,
        prepare: Callable[[], object] | None = None,
    ) -> None:  # fmt: skip
        """``prepare`` builds the index of the ranker."""
        if k < 1:
            raise ConfigError(f"retrieve: expected k of 1 or more, found {k}")
        self._make, self._key, self.k, self._prepare = ranker, dict(ranker_key), k, prepare

    @cached_property
    def ranker(self) -> RankerPlugin:
        """The ranker; it is opened at the first use."""
        return self._make()

    def prepare(self) -> None:
        """Build the index once, before any worker opens it."""
        if self._prepare is not None:
            self._prepare()

    @property
    def neural(self) -> bool:
        """Whether the ranker runs a neural model."""
        return has_device("ranker", str(self._key.get("ranker", "")))

    def settings(self) -> Mapping[str, Any]:
        """Return the ranker with the key of its index, and the number of documents."""
        return {"ranker": self._key, "k": self.k}

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the variants with ``doc`` (ordinals of documents) and ``score``, best first."""
        hits = self.ranker.search(rows["text"].combine_chunks(), self.k)
        offsets = pa.array(hits.offsets.astype(np.int32))
        docs = pa.ListArray.from_arrays(offsets, pa.array(hits.docs, pa.int32()), type=DOC)
        scores = pa.ListArray.from_arrays(offsets, pa.array(hits.scores, pa.float32()), type=SCORE)
        table = rows.append_column("doc", docs).append_column("score", scores)
        found = np.diff(hits.offsets) > 0
        dropped = {NOTHING: int((~found).sum())} if not found.all() else {}
        return table.filter(pa.array(found)), dropped


# The number of queries with their top-ranked passages in memory at a time.
_CHUNK = 1000
VARIANTS = pa.schema(
    [(name, pa.string()) for name in ("query_id", "variant_id", "text", "method", "settings", "doc_id")]
)
# The documents that a candidate was made from; Parquet calls the values of a list "element".
SOURCES = pa.field("sources", pa.list_(pa.field("element", pa.string())))
KIND = "kind"
# The columns for the outputs of the filter equivalence.
PROBABILITIES = {"same": "p_same", "natural": "p_natural"}
_MADE = VARIANTS.append(SOURCES).append(pa.field(KIND, pa.string()))


class ReformulateStage:
    """Makes the variants of each query: the original, then the candidates of each method in turn.

    ``sources`` has the documents that a candidate was made from: its ``doc_id``, or the passages that its method mixed.
    ``kind`` is the kind of reformulation, if the method distinguishes kinds.
    """

    name = "reformulate"
    version = 3

    def __init__(
        self, methods: Mapping[str, ReformulatorPlugin], first_pass: Callable[[], FirstPass], first_key: str
    ) -> None:
        """``methods`` has the reformulators by name; the column ``method`` of their candidates has this name."""
        self.methods, self._first_pass, self._first_key = dict(methods), first_pass, first_key

    @cached_property
    def _first(self) -> FirstPass:
        return self._first_pass()

    def settings(self) -> Mapping[str, Any]:
        """Return every method with its settings, and the first pass if a method reads passages."""
        methods = [
            {"method": method.method, **method.settings(), **({"name": name} if name != method.method else {})}
            for name, method in self.methods.items()
        ]
        return {"methods": methods, "first_pass": self._first_key if self._reads else None}

    @property
    def neural(self) -> bool:
        """Whether a method runs a neural model."""
        return any(has_device("reformulator", method.method) for method in self.methods.values())

    @property
    def _reads(self) -> bool:
        return any(method.reads for method in self.methods.values())

    def prepare(self) -> None:
        """Build the index of the first pass once, before any worker opens it."""
        if self._reads:
            _ = self._first

    def rows_used(self, table: pa.Table) -> int:
        """Count the queries: each has one original."""
        return int(pc.sum(pc.equal(table["method"], ORIGINAL)).as_py() or 0)

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the variants, grouped by query."""
        parts = [self._variants(rows.slice(start, _CHUNK)) for start in range(0, rows.num_rows, _CHUNK)]
        return pa.concat_tables(parts) if parts else _MADE.empty_table(), {}

    def _variants(self, rows: pa.Table) -> pa.Table:
        ids, texts = rows["query_id"].to_pylist(), rows["text"].to_pylist()
        asked = self._first.ask(ids, texts) if self._reads else QueryBatch(tuple(ids), tuple(texts))
        if "context" in rows.column_names:
            asked = replace(asked, contexts=tuple(rows["context"].to_pylist()))
        made: list[list[tuple[Any, ...]]] = [
            [(query, query, text, ORIGINAL, None, None, None, None)] for query, text in zip(ids, texts, strict=True)
        ]
        for name, method in self.methods.items():
            settings = json.dumps(without_secret_values(dict(method.settings())), sort_keys=True)
            found = method.reformulate(asked)
            counts: Counter[int] = Counter()
            kinds = found.kinds or [None] * len(found)
            for row, text, doc_id, kind in zip(found.rows, found.texts, found.doc_ids, kinds, strict=True):
                counts[row] += 1
                # Without a document of its own, a candidate was made from the passages that its method mixes.
                passages = asked.passages[row] if asked.passages is not None and "passages" in method.reads else ()
                mixed = [passage.doc_id for passage in passages[: getattr(method, "mixes", None)]]
                sources = mixed if doc_id is None else [doc_id]
                variant_id = f"{ids[row]}:{name}.{counts[row]}"
                made[row].append((ids[row], variant_id, text, name, settings, doc_id, sources, kind))
        columns = zip(*(variant for variants in made for variant in variants), strict=True)
        table = pa.table([pa.array(one, kind) for one, kind in zip(columns, _MADE.types, strict=True)], schema=_MADE)
        if CHANCE in rows.column_names:
            of_query = np.repeat(np.arange(len(made)), [len(variants) for variants in made])
            table = table.append_column(CHANCE, rows[CHANCE].take(pa.array(of_query)))
        return table


class Keep:
    """Drops the candidates that a filter refuses, and counts them by reason. The original is always kept.

    ``p_same`` and ``p_natural`` are the probabilities of the filter equivalence; null if it is not used.
    """

    name = "filter"
    version = 2
    together = "query_id"

    def __init__(self, filters: Sequence[FilterPlugin]) -> None:
        self.filters = list(filters)

    @property
    def neural(self) -> bool:
        """Whether a filter runs a neural model."""
        return any(has_device("filter", one.name) for one in self.filters)

    def settings(self) -> Mapping[str, Any]:
        """Return every filter with its settings, in order."""
        return {"filters": [{"filter": one.name, **one.settings()} for one in self.filters]}

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the rows that every filter accepts."""
        rows, reasons = self.judge(rows)
        dropped = Counter(reason for reason in reasons if reason is not None)
        return rows.filter(pa.array([reason is None for reason in reasons], pa.bool_())), dict(dropped)

    def judge(self, rows: pa.Table) -> tuple[pa.Table, list[str | None]]:
        """Return all rows with their probabilities, and for each row why a filter refuses it; None if none does."""
        methods, texts, ids = (rows[name].to_pylist() for name in ("method", "text", "query_id"))
        originals = {query: text for query, text, method in zip(ids, texts, methods, strict=True) if method == ORIGINAL}
        numbers = {query: number for number, query in enumerate(originals)}
        left = [i for i, method in enumerate(methods) if method != ORIGINAL]
        found: dict[str, list[float | None]] = {name: [None] * len(ids) for name in PROBABILITIES}
        refused: list[str | None] = [None] * len(ids)
        for one in self.filters:
            pairs = [originals[ids[i]] for i in left], [texts[i] for i in left]
            if isinstance(one, JudgingFilter):
                scores = one.score(*pairs)
                reasons = [one.reason(each) for each in scores]
                for i, each in zip(left, scores, strict=True):
                    for name, values in found.items():
                        values[i] = each[name]
            else:
                reasons = one.check(*pairs, [numbers[ids[i]] for i in left])
            for i, reason in zip(left, reasons, strict=True):
                refused[i] = reason
            left = [i for i in left if refused[i] is None]
        for name, column in PROBABILITIES.items():
            rows = rows.append_column(column, pa.array(found[name], pa.float64(), from_pandas=True))
        return rows, refused


NEGATIVE = "negative"
_KEYS = ["query_id", "variant_id"]


@dataclass(frozen=True)
class StepScores:
    """The rows of a finished step of the same plan, such as the scores of all candidates with another ranker."""

    store: Store
    step: str
    key: str

    def of(self, queries: pl.DataFrame) -> pl.DataFrame:
        """Return the scores of some queries; only the parts with these queries are read."""
        here = self._places.join(queries, on="query_id", how="semi")["part"].unique().sort()
        parts = [self._read(part).join(queries, on="query_id", how="semi", maintain_order="left") for part in here]
        return pl.concat(parts) if parts else self._read(0).clear()

    @cached_property
    def _manifest(self) -> Manifest:
        manifest = self.store.finished(self.step, self.key)
        if manifest is None:
            raise StoreError(f"step {self.step!r}: its scores are needed to select pairs; run this step first")
        return manifest

    def table(self) -> pa.Table:
        """Return all rows of the step."""
        return pa.concat_tables(self.store.read(self._manifest))

    @cached_property
    def _places(self) -> pl.DataFrame:
        parts = range(len(self._manifest.parts))
        return pl.concat(self._read(part, ["query_id"]).unique().with_columns(part=pl.lit(part)) for part in parts)

    def _read(self, part: int, columns: list[str] | None = None) -> pl.DataFrame:
        file = self.store.open_part(self._manifest, self._manifest.parts[part])
        return pl.DataFrame(pl.from_arrow(file.read(columns=columns)))


def choose_across(
    selector: SelectorPlugin,
    scored: pl.DataFrame,
    others: Mapping[str, pl.DataFrame],
    directions: Mapping[str, Direction],
) -> pl.DataFrame:
    """Choose pairs by their smallest gains, among the candidates that are acceptable with every ranker.

    ``scored`` has the scores with the ranker of the recipe, ``others`` those with the other rankers, by name.
    """
    held = scored.filter(pl.col("method") != ORIGINAL).select(_KEYS)
    for table in (scored, *others.values()):
        held = held.join(acceptable(selector, table, directions), on=_KEYS, how="semi", maintain_order="left")
    kept = scored.filter((pl.col("method") == ORIGINAL) | pl.struct(_KEYS).is_in(held.to_struct().implode()))
    pairs: pl.DataFrame = selector.select_counted(smallest_gains(kept, others, directions), directions).table
    return pairs


def acceptable(selector: SelectorPlugin, scored: pl.DataFrame, directions: Mapping[str, Direction]) -> pl.DataFrame:
    """Return the candidates that a selector chooses if each is the only candidate of its query."""
    is_original = pl.col("method") == ORIGINAL
    originals = scored.filter(is_original)
    candidates = scored.filter(~is_original).join(originals, on="query_id", how="semi", maintain_order="left")
    numbers = pl.Series("query_id", np.arange(candidates.height)).cast(pl.String)
    own = candidates.select("query_id").join(originals, on="query_id", how="left", maintain_order="left")
    alone = pl.concat([one.select(scored.columns).with_columns(numbers) for one in (own, candidates)])
    pairs: pl.DataFrame = selector.select_counted(alone, directions).table
    subsets = [name for name in selector.subsets if name != NEGATIVE]
    chosen = pairs.filter(pl.any_horizontal(subsets))["query_id"].cast(pl.Int64)
    return candidates.select(_KEYS)[chosen.sort()]


def smallest_gains(
    scored: pl.DataFrame, others: Mapping[str, pl.DataFrame], directions: Mapping[str, Direction]
) -> pl.DataFrame:
    """Return scores in which every candidate has its smallest gain over the rankers; none if a ranker has no score."""
    is_original = pl.col("method") == ORIGINAL
    candidates = scored.filter(~is_original)
    rankers = {"": scored, **others}
    sides = [under(candidates.select(_KEYS), table, list(directions), name) for name, table in rankers.items()]
    columns = []
    for name, direction in directions.items():
        values = [[side[column(name)].to_numpy() for column in (old_column, new_column)] for side in sides]
        # Scores on the scale of the first ranker, with the smallest gain of each candidate over all rankers.
        old, new = values[0]
        sizes = np.abs([before for before, _ in values])
        # Shares are not defined if an original is zero.
        sizes[:, (sizes == 0).any(axis=0) | (direction is Direction.UP)] = 1.0
        gains = np.array([direction.gain(*pair) for pair in values]) / sizes
        least = gains.min(axis=0)
        # If the first ranker has the smallest gain, its own score is kept, to avoid rounding.
        smallest = np.where(least == gains[0], new, direction.after(old, least * sizes[0]))
        columns.append(pl.Series(column_of(name), smallest))
    return pl.concat([scored.filter(is_original), candidates.with_columns(columns)], how="vertical_relaxed")


SOURCE_JUDGED = "source_judged"
_CARRIED = (*VARIANTS.names, KIND, CHANCE, *PROBABILITIES.values())


class Evaluate:
    """Scores every variant by every measure, with the judgements of its query.

    ``source_judged`` says whether a document that the variant was made from is judged relevant to its query. With
    ``holding``, the table has the columns by which pairs may be chosen (``askew.pairs.holding``).
    """

    name = "evaluate"
    version = 4

    holding: Holding | None = None

    def __init__(self, measures: Sequence[str], resources: Resources, catalogue: Catalogue | None = None) -> None:
        self._catalogue = catalogue or Catalogue()
        self.asked: list[MeasureRequest] = self._catalogue.complete(measures)
        check_columns(one.text for one in self.asked)
        for one in self.asked:
            one.check()
            if one.measure.param("on", "any") != "any":
                raise ConfigError(f"measure {one.text}: a recipe does not support the parameter 'on'; leave it out")
        self._resources = resources

    @property
    def together(self) -> str | None:
        """Lists of a query are compared with that of its original, if pairs must hold."""
        return None if self.holding is None else "query_id"

    @property
    def directions(self) -> dict[str, Direction]:
        """The better direction of each measure."""
        return {one.text: one.direction for one in self.asked}

    @property
    def judged(self) -> list[str]:
        """The measures that are computed from relevance judgements."""
        return [one.text for one in self.asked if one.judged]

    def lexicons(self) -> list[Lexicon]:
        """Return the lexicons of the measures."""
        return [self._catalogue.lexicons[name] for name in sorted({key[0] for key in keys_of(self.asked)})]

    def settings(self) -> Mapping[str, Any]:
        """Return the measures with all parameters, and the keys of the mentions and judgements that they read."""
        holds = {} if self.holding is None else {"holds": self.holding.settings()}
        return {
            "measures": {one.text: one.signature for one in self.asked},
            "mentions": [self._resources.mentions_key(self._annotate(key)) for key in keys_of(self.counted)],
            "judgements": self._resources.judgements.key,
            **holds,
        }

    @property
    def counted(self) -> list[MeasureRequest]:
        """The measures whose mentions are counted."""
        return [*self.asked, *([] if self.holding is None else self.holding.requests)]

    def _annotate(self, key: CountKey) -> Annotate:
        return Annotate(self._catalogue.lexicons[key.lexicon], *stage_of(key)[1:])

    @cached_property
    def scorer(self) -> Scorer:
        """The scorer of the measures for this collection."""
        every, judged = self._resources.judged_documents

        def count(key: CountKey) -> DocMentions:
            return self._resources.mentions(self._annotate(key), key.who)

        def texts(docs: Ints) -> list[str]:
            stored = StoredTexts(self._resources.index())
            return [str(stored[doc]) for doc in docs.tolist()]

        articles = Articles(every, texts)
        return Scorer(self.asked, every, count, judged, id_ranks=lambda: self._resources.id_ranks, articles=articles.of)

    def prepare(self) -> None:
        """Count the mentions of the collection once, before any worker reads the counts."""
        for key in keys_of(self.counted):
            self.scorer.mentions(*key)

    def held(self, scored: pl.DataFrame, lists: Rankings) -> dict[str, Any]:
        """Return the columns by which pairs may be chosen, for some lists of the scored variants; empty if all may."""
        if self.holding is None:
            return {}
        rows = scored.select("query_id", "method").with_row_index("row")
        originals = rows.filter(method=ORIGINAL).select("query_id", original="row")
        # A candidate without the results of its original is dropped where pairs are made.
        found = rows.join(originals, on="query_id", how="left", maintain_order="left")
        return self.holding.columns(self.scorer, lists, found["original"].fill_null(found["row"]).to_numpy())

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the variants with a column for each measure."""
        table = rows.select([name for name in _CARRIED if name in rows.column_names])
        if SOURCES.name in rows.column_names:
            sources = pl.DataFrame(pl.from_arrow(rows.select(["query_id", SOURCES.name]))).with_row_index("row")
            relevant = pl.DataFrame(pl.from_arrow(self._resources.relevant))
            made = sources.explode(SOURCES.name).rename({SOURCES.name: "doc_id"})
            hit = made.join(relevant, on=["query_id", "doc_id"], how="semi")["row"].unique()
            table = table.append_column(SOURCE_JUDGED, sources["row"].is_in(hit.implode()).to_arrow())
        lists = lists_of(rows)
        for text, values in self.scorer.score(lists).items():
            table = table.append_column(column_of(text), pa.array(values, pa.float64()))
        for name, values in self.held(pl.DataFrame(pl.from_arrow(rows.select(["query_id", "method"]))), lists).items():
            table = table.append_column(name, pa.array(values, pa.string() if name == DOCUMENTS else pa.float64()))
        return table, {}


def lists_of(rows: pa.Table) -> Rankings:
    """Convert the rows of a retrieve step to ranked lists."""
    lists, scores = rows["doc"].combine_chunks(), rows["score"].combine_chunks()
    offsets = lists.offsets.to_numpy().astype(np.int64)
    docs = lists.values.to_numpy().astype(np.int64)[offsets[0] : offsets[-1]]
    values = scores.values.to_numpy().astype(np.float64)[offsets[0] : offsets[-1]]
    ids, queries = (rows[name].combine_chunks() for name in ("variant_id", "query_id"))
    return Rankings(ids, offsets - offsets[0], docs, values, queries)


class Promising:
    """Keeps the queries that can yield a pair that holds, with the p-value of their lean; the others are dropped.

    The p-values are corrected for all queries, so that the step is one shard.
    """

    name = "promising"
    version = 1

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate

    def settings(self) -> Mapping[str, Any]:
        """Return the conditions, and the keys of the mentions and judgements that they read."""
        return self._evaluate.settings()

    def prepare(self) -> None:
        """Count the mentions of the collection once."""
        self._evaluate.prepare()

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the queries that can yield a pair."""
        holding = self._evaluate.holding
        assert holding is not None
        p, reasons = holding.promising(
            self._evaluate.scorer, lists_of(rows.append_column("variant_id", rows["query_id"]))
        )
        table = rows.drop_columns(["doc", "score"]).append_column(CHANCE, pa.array(p, pa.float64()))
        dropped = Counter(reason for reason in reasons if reason is not None)
        return table.filter(pa.array([reason is None for reason in reasons], pa.bool_())), dict(dropped)


SCHEMA = pa.schema([("query_id", pa.string()), ("text", pa.string()), ("label", pa.string())])


def with_named_classifier(sections: Mapping[str, Any], groups: Groups | None) -> Mapping[str, Any]:
    """Replace ``auto`` in the sections of a recipe by the name of the classifier, so that a store records it."""
    given = dict(sections.get("classify", {}))
    if not given:
        return sections
    named = named_classifier({name: value for name, value in given.items() if name != "keep"}, groups)
    return {**sections, "classify": {**given, **named}}


class Classify:
    """Keeps the queries with some labels; other queries are dropped and counted by label."""

    name = "classify"
    version = 1

    def __init__(self, classifier: ClassifierPlugin, keep: Sequence[str] = ("neutral",)) -> None:
        unknown = [label for label in keep if label not in classifier.labels]
        if unknown or not keep:
            known, found = ", ".join(classifier.labels), ", ".join(unknown) or "none"
            raise ConfigError(f"classify: 'keep' should list one or more of the labels {known}; found {found}")
        self.classifier, self.keep = classifier, tuple(keep)

    def settings(self) -> Mapping[str, Any]:
        """Return the classifier with its settings, and the labels that are kept."""
        return {"classifier": self.classifier.name, **self.classifier.settings(), "keep": list(self.keep)}

    def tied(self, texts: Iterable[Sequence[str]]) -> list[str]:
        """Return a note if some of the kept queries name several groups equally often and were therefore kept."""
        count = getattr(self.classifier, "tied", None)
        found = 0 if count is None else sum(count(some) for some in texts)
        if not found:
            return []
        queries = counted(found, "kept query names", "kept queries name")
        return [f"{queries} two or more groups equally often; to drop such queries, set classify.ties to 'abstain'"]

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the kept rows with their labels."""
        labels = [label or ABSTAINS for label in self.classifier.classify(rows["text"].to_pylist()).names()]
        kept = [label in self.keep for label in labels]
        dropped = Counter(f"label {label}" for label, stays in zip(labels, kept, strict=True) if not stays)
        table = pa.table([rows["query_id"], rows["text"], pa.array(labels, pa.string())], schema=SCHEMA)
        if "context" in rows.column_names:
            table = table.append_column("context", rows["context"])
        return table.filter(pa.array(kept)), dict(dropped)


NO_ORIGINAL = "the original query found no documents"
PER = ("query", "method")
EXCLUDE, ALLOW = JUDGED_SOURCES = ("exclude", "allow")
_SCORED = "scored_by"
IS_BEST, ACCEPTED, _PLACE = "is_best", "accepted", "_place"


class Select:
    """Makes the pairs of each query and marks the chosen ones.

    Every pair has the scores of its original, so the rows of originals are dropped here and counted as ``original``.
    With ``per="method"``, pairs are chosen separately among the candidates of each method, to compare methods.

    A candidate made from a document that is judged relevant to its query finds that document by construction. With
    ``judged_sources="exclude"`` it stays a pair and may be a negative sample, but is not chosen.

    ``across`` has the scores of all candidates with other rankers. Then a candidate is chosen only if it is acceptable
    with every ranker, and by its smallest gain (``askew.pairs.stages``).

    With ``holding``, only pairs that hold are chosen; the column ``refused`` has the reason for others.
    """

    name = "select"
    version = 3
    together = "query_id"

    def __init__(
        self, selector: SelectorPlugin, directions: Mapping[str, Direction], per: str = "query",
        judged_sources: str = EXCLUDE, across: Mapping[str, StepScores] | None = None, holding: Holding | None = None,
    ) -> None:  # fmt: skip
        for name, given, known in (("per", per, PER), ("judged_sources", judged_sources, JUDGED_SOURCES)):
            if given not in known:
                raise ConfigError(f"select.{name}: expected {' or '.join(known)}, found {given!r}")
        self.selector, self._directions, self.per = selector, dict(directions), per
        self.judged_sources, self.across, self.holding = judged_sources, dict(across or {}), holding

    def settings(self) -> Mapping[str, Any]:
        """Return the selector with its settings, and all measures of the pairs, also those that are only reported."""
        per: dict[str, Any] = {} if self.per == "query" else {"per": self.per}
        if self.across:
            per["across"] = {name: one.key for name, one in self.across.items()}
        if self.holding is not None:
            per["holds"] = self.holding.settings()
        return {
            "selector": self.selector.name, **self.selector.settings(), **per, "judged_sources": self.judged_sources,
            _SCORED: list(self._directions),
        }  # fmt: skip

    def chosen_by(self) -> dict[str, Any]:
        """Return the settings for a dataset: rankers by name, without the list of all measures."""
        found = {name: value for name, value in self.settings().items() if name != _SCORED}
        return found | ({"across": list(self.across)} if self.across else {})

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return one row for each pair."""
        scored = pl.DataFrame(pl.from_arrow(rows))
        known, ready = scored.filter(pl.col("method") == ORIGINAL)["query_id"], with_originals(scored)
        methods = [name for name in ready["method"].unique(maintain_order=True) if name != ORIGINAL]
        if self.per == "query" or not methods:
            found = [self._choose(ready)]
        else:
            found = [self._choose(ready.filter(pl.col("method").is_in([ORIGINAL, name]))) for name in methods]
        dropped: Counter[str] = Counter({"original": len(known)})
        for _, counts in found:
            dropped.update(counts)
        if ready.height < scored.height:
            dropped[NO_ORIGINAL] = scored.height - ready.height
        order = pl.DataFrame({"query_id": known}).with_row_index("place")
        pairs = pl.concat([one for one, _ in found]).join(order, on="query_id", how="left", maintain_order="left")
        table = pairs.sort("place", maintain_order=True).drop("place").to_arrow()
        # The store has the plain types of tables instead of the large types of polars.
        large = (pa.large_string(), pa.string_view())
        plain = pa.schema([(one.name, pa.string() if one.type in large else one.type) for one in table.schema])
        return table.cast(plain), dict(dropped)

    def _choose(self, scored: pl.DataFrame) -> tuple[pl.DataFrame, Mapping[str, int]]:
        """Return the pairs in the order of their candidates, and the numbers of dropped rows by reason."""
        allowed = self.allowed(scored.with_row_index(_PLACE))
        if allowed.height == scored.height and not self.across and self.holding is None:
            alone = self.selector.select_counted(scored, self._directions)
            return alone.table, alone.dropped
        # Of equal texts the first is kept; candidates that may be chosen come first.
        barred = scored.with_row_index(_PLACE).filter(~pl.col(_PLACE).is_in(allowed[_PLACE].implode()))
        every = self.selector.select_counted(pl.concat([allowed, barred]), self._directions)
        table = every.table
        if self.holding is not None:
            table = table.with_columns(refusals(table, self.holding.effectiveness))
            refused = table.filter(pl.col(REFUSED).is_not_null())[_PLACE]
            allowed = allowed.filter(~pl.col(_PLACE).is_in(refused.implode()))
            if {NEGATIVE, ACCEPTED} <= set(table.columns):
                table = table.with_columns(WITH_REFUSED)
        # The columns that mark the subsets of a pair, and the columns of their scores.
        names = [name for name in {**dict.fromkeys(self.selector.subsets), IS_BEST: None} if name != NEGATIVE]
        marks = [name for name in (*names, *(f"{one}_score" for one in names)) if name in table.columns]
        others = {name: one.of(allowed.select("query_id")) for name, one in self.across.items()}
        own = (
            choose_across(self.selector, allowed, others, self._directions)
            if others
            else self.selector.select_counted(allowed, self._directions).table
        )
        chosen = own.select(_PLACE, *marks)
        pairs = table.drop(marks).join(chosen, on=_PLACE, how="left", maintain_order="left")
        filled = [pl.col(name).fill_null(False) for name in marks if table.schema[name] == pl.Boolean]
        return pairs.with_columns(filled).select(table.columns).sort(_PLACE).drop(_PLACE), every.dropped

    def allowed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the scores or pairs of the candidates that may be chosen."""
        barred = self.judged_sources != ALLOW and SOURCE_JUDGED in rows.columns
        return rows.filter(~pl.col(SOURCE_JUDGED)) if barred else rows


def with_originals(scored: pl.DataFrame) -> pl.DataFrame:
    """Remove queries for which the original has no results; they are counted where pairs are made."""
    known = scored.filter(pl.col("method") == ORIGINAL)["query_id"]
    return scored.filter(pl.col("query_id").is_in(known.implode()))


def finished_pairs(store: Store) -> list[Manifest]:
    """Return the finished steps with pairs in a store, except those of earlier versions with other columns."""
    return [one for one in store.steps() if (one.stage, one.version) == (Select.name, Select.version)]


def judged_note(stage: Select, pairs: PairParts) -> str | None:
    """Say how many candidates were made from relevant documents, and whether they may be chosen; None if none."""
    count = pairs.count(SOURCE_JUDGED)[SOURCE_JUDGED] if SOURCE_JUDGED in pairs.columns else 0
    if not count:
        return None
    said = f"{count:,} of {pairs.height:,} candidates were made from a document that is judged relevant to their query"
    return f"{said}: {'they may be chosen' if stage.judged_sources == ALLOW else 'none of them may be chosen'}"


def measures_of(pairs: Manifest) -> list[str]:
    """Return the texts of the measures of finished pairs, which cannot be derived from the column names."""
    return list(pairs.settings[_SCORED])
