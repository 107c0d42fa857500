"""Open what is searched: the collection of a store with the ranker of its build, or an index."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from askew.core.errors import AskewError, ConfigError, StoreError
from askew.core.groups import Groups
from askew.core.plugins import names
from askew.core.protocols import FilterPlugin, JudgingFilter, RankerPlugin, ReformulatorPlugin
from askew.core.store.manifest import Manifest
from askew.core.store.store import Store
from askew.data.collection import Collection, open_collection
from askew.pairs.gains import ORIGINAL
from askew.pairs.plan import reformulate_methods, resources_of, retrieve_stage
from askew.pairs.recipe import Recipe, with_settings
from askew.pairs.resources import Resources
from askew.pairs.stages import PROBABILITIES, Keep, ReformulateStage
from askew.rewrite.equivalence import EquivalenceFilter
from askew.rewrite.reformulate import FirstPass, make_filter
from askew.search.bm25.index import Bm25
from askew.search.bm25.ranker import Bm25Ranker
from askew.search.disk import TEXTS, StoredTexts, read_doc_ids, read_header
from askew.search.retrieve import compose, is_engine, make_ranker
from askew.ui.explorer.answers import NOT_ENGLISH, is_english
from askew.ui.explorer.plan import RecordedPlan, rows_of

# Find the reformulations of a query in a store: its pairs, or those that ship with the demo.

COLUMNS = ("query_id", "variant_id", "text", "method", "doc_id", "kind", "p_same", "p_natural")
_REPLAYED = "replay"


class StoredPairs:
    """Finds reformulations by the id of their query."""

    def __init__(self, store: Store, plan: RecordedPlan) -> None:
        self._store, self._plan = store, plan

    @cached_property
    def _pairs(self) -> pl.LazyFrame | None:
        """The pairs of the plan, read lazily from their files."""
        found = self._plan.manifest(self._store, "pairs")
        return None if found is None or not found.parts else rows_of(self._store, found)

    def reformulations(self, query_id: str, text: str) -> pa.Table | None:
        """Return the reformulations of a query, chosen pairs first; None if there are none."""
        if self._pairs is None:
            if self._replay is None:
                return None
            stage, keep = self._replay
            found, _ = keep.run(stage.run(pa.table({"query_id": [query_id], "text": [text]}))[0])
            return found.slice(1).select(COLUMNS) if found.num_rows > 1 else None
        rows = self._pairs.filter(pl.col("query_id") == query_id).collect()
        if not rows.height:
            return None
        chosen = [name for name in ("optimal", "effective", "fair", "is_best") if name in rows.columns]
        first = pl.any_horizontal(chosen) if chosen else pl.lit(False)
        missing = [
            pl.lit(None, pl.String if name == "kind" else pl.Float64).alias(name)
            for name in COLUMNS[-3:] if name not in rows.columns
        ]  # fmt: skip
        return rows.with_columns(*missing).sort(first, descending=True, maintain_order=True).select(COLUMNS).to_arrow()

    @cached_property
    def _replay(self) -> tuple[ReformulateStage, Keep] | None:
        """The stages that replay reformulations from a file of the recipe, which need no build."""
        recipe = self._plan.recipe
        named = {name: one for name, one in reformulate_methods(recipe, self._plan.groups).items()
                 if one.method == _REPLAYED}  # fmt: skip
        if not named:
            return None

        def passages() -> FirstPass:
            raise AssertionError("this reformulator only reads stored reformulations, so it must not request passages")

        filters = [make_filter(one, self._plan.groups) for one in recipe.tables("filter")]
        return ReformulateStage(named, passages, ""), Keep(filters)


# The queries of a collection, found by their text, and their judgements.


def words_of(text: str) -> str:
    """Normalize a query for lookup: white space and case are ignored."""
    return " ".join(text.split()).casefold()


@dataclass(frozen=True)
class Known:
    """Queries and judgements; a text that several queries share belongs to the first of them."""

    texts: Mapping[str, str] = field(default_factory=dict)
    grades: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @cached_property
    def _ids(self) -> dict[str, str]:
        return {words_of(text): query_id for query_id, text in reversed(list(self.texts.items()))}

    def find(self, text: str, query_id: str | None = None) -> str | None:
        """Return the id of the query with this text; ``query_id`` chooses among several."""
        named = self.texts.get(query_id) if query_id is not None else None
        if named is not None and words_of(named) == words_of(text):
            return query_id
        return self._ids.get(words_of(text))


def known_of(collection: Collection) -> Known:
    """Return the queries and judgements of a collection; a collection may have none."""
    if not collection.has_queries:
        return Known()
    table = collection.queries
    texts = dict(zip(table["query_id"].to_pylist(), table["text"].to_pylist(), strict=True))
    grades: dict[str, dict[str, int]] = {}
    if collection.has_judgements:
        columns = (collection.judgements[name].to_pylist() for name in ("query_id", "doc_id", "relevance"))
        for query, doc, grade in zip(*columns, strict=True):
            grades.setdefault(query, {})[doc] = int(grade)
    return Known(texts, grades)


def originals_of(store: Store, scores: Manifest) -> pl.DataFrame:
    """Return the original queries of a scoring step, with their values."""
    if not scores.parts:
        return pl.DataFrame(schema={"query_id": pl.String, "text": pl.String})
    return rows_of(store, scores).filter(pl.col("method") == ORIGINAL).collect()


DEPTH = 100
NO_FILES = "The files of the store's collection are not at their recorded path"
OTHER_FILES = "The files of the store's collection have changed since the store was built"


@dataclass(frozen=True)
class SearchedCollection:
    """A collection that can be searched, with its queries, judgements, methods and filters.

    ``terms`` is an index with texts. The top ``depth`` documents are measured. ``stored`` returns the reformulations of
    a query in the store, by its id and text; ``originals`` has the scored queries of the store.
    """

    name: str
    ranker: RankerPlugin
    terms: Path
    texts: StoredTexts
    known: Known
    methods: Mapping[str, ReformulatorPlugin] = field(default_factory=dict)
    filters: Sequence[FilterPlugin] = ()
    first_pass: FirstPass | None = None
    depth: int = DEPTH
    stored: Callable[[str, str], pa.Table | None] | None = None
    originals: pl.DataFrame | None = None


@dataclass(frozen=True)
class Place:
    """The location of the collection of a store; ``resources`` is None if its files are missing."""

    store: Store
    plan: RecordedPlan
    resources: Resources | None

    @property
    def ranker(self) -> dict[str, Any]:
        """The settings of the step that searched: the ranker with the key of its index, and the depth."""
        runs = self.plan.manifest(self.store, "runs")
        if runs is not None:
            return dict(runs.settings)
        if self.resources is None:
            raise StoreError(
                f"{NO_FILES}, and no step of this store has searched the collection, so nothing can be searched"
            )
        return dict(retrieve_stage(self.plan.recipe, self.resources).settings())

    @property
    def same_documents(self) -> bool:
        """Whether the documents are the same as those that the store indexed."""
        named = self.ranker["ranker"]
        if self.resources is None or "index" not in named or is_engine(named["ranker"]):
            return self.resources is not None
        return bool(self.resources.index_key(_kind(named), self._making) == named["index"])

    @property
    def _making(self) -> dict[str, Any]:
        return dict(self.plan.recipe.table("retrieve").get("index", {}))

    def open_ranker(self) -> tuple[RankerPlugin, int, Path]:
        """Return the ranker, the depth of the search, and an index with the terms and texts of the documents."""
        found = self.ranker
        named, depth = dict(found["ranker"]), int(found["k"])
        if is_engine(named["ranker"]):
            if self.resources is None:
                raise StoreError(f"{NO_FILES}, and the engine {named['ranker']} cannot be used without them")
            return retrieve_stage(self.plan.recipe, self.resources).ranker, depth, self.resources.index()
        folder = self.store.local / f"index-{_kind(named)}-{named['index']}"
        if folder.parent.resolve() != self.store.local.resolve():
            raise StoreError(f"the index {folder} is not in this store, so it is not opened")
        if not (folder / "header.json").exists():
            if not self.same_documents or self.resources is None:
                raise StoreError(
                    f"the index {folder.name} of this store and its documents are missing, so nothing can be searched"
                )
            self.resources.index(_kind(named), self._making)
        return make_ranker({**named, "index": str(folder)}), depth, self._terms(folder)

    def _terms(self, folder: Path) -> Path:
        """Return the default BM25 index, from which methods read statistics, or else an index with texts."""
        if self.same_documents and self.resources is not None:
            return self.resources.index()
        wanted = read_doc_ids(folder)
        plain = [one.parent for one in sorted(self.store.local.glob("index-bm25-*/header.json"))]
        known = [one for one in (folder, *plain) if (one / TEXTS).exists() and read_doc_ids(one).equals(wanted)]
        if not known:
            raise StoreError(
                f"the index {folder.name} of this store has no texts, and the documents are missing, so no texts can "
                "be shown"
            )
        return known[0]

    def known(self) -> tuple[Known, str]:
        """Return the queries and, if they have not changed since the build, the judgements; and a note if they have."""
        first, scores = (self.plan.manifest(self.store, step) for step in (next(iter(self.plan.keys), ""), "scores"))
        changed = NO_FILES
        if self.resources is not None:
            with contextlib.suppress(AskewError, OSError):
                same = (first is None or first.input_key == self.resources.queries.key) and (
                    scores is None or scores.settings.get("judgements") == self.resources.judgements.key
                )
                if same:
                    return known_of(self.resources.collection), ""
                changed = OTHER_FILES
        rows = [] if scores is None else originals_of(self.store, scores).select("query_id", "text").iter_rows()
        note = f"{changed}, so the judgements are not read and effectiveness is not measured."
        return Known(dict(rows)), note


def place_of(plan: RecordedPlan, store: Store, given: str | None = None) -> Place:
    """Find the files of the collection of a store: at the given path, or at the recorded one."""
    for source in dict.fromkeys([*([given] if given else []), plan.source]):
        try:
            named = with_settings(plan.recipe, {"collection": {"source": source}})
            found = resources_of(named, store)
            assert found.documents.key
            return Place(store, plan, found)
        except (AskewError, OSError):
            if given == source:
                raise
    return Place(store, plan, None)


def searched_by_plan(place: Place) -> tuple[SearchedCollection, list[str]]:
    """Open the collection of a store as its build read it, with notes if its files have changed."""
    ranker, depth, terms = place.open_ranker()
    known, note = place.known()
    notes = [note] if note else []
    if not note and not place.same_documents:
        notes = [f"{OTHER_FILES}: the documents are those of the index in the store."]
    scores = place.plan.manifest(place.store, "scores")
    searched = SearchedCollection(
        _collection_name(place.plan.source), ranker, terms, StoredTexts(terms), known,
        depth=depth, stored=StoredPairs(place.store, place.plan).reformulations,
        originals=None if scores is None else originals_of(place.store, scores),
    )  # fmt: skip
    return searched, notes


def searched_index(index: Path, collection: str | None, retrieve: Mapping[str, Any]) -> SearchedCollection:
    """Open an index; the ranker of a BM25 index is that of the recipe."""
    header = read_header(index)
    settings = {key: value for key, value in retrieve.items() if key not in ("k", "index")}
    terms = header["kind"] == "bm25"
    # An index of another kind determines its ranker.
    spec: Mapping[str, Any] = {**settings, "index": str(index)} if terms else compose(None, [index], [], {})
    name = index.name if collection is None else _collection_name(collection)
    ranker, known = make_ranker(spec), Known() if collection is None else known_of(open_collection(collection))
    depth = int(retrieve.get("k", DEPTH))
    return SearchedCollection(name, ranker, index, StoredTexts(index), known, depth=depth)


def with_methods(searched: SearchedCollection, recipe: Recipe, groups: Groups | None) -> SearchedCollection:
    """Add the methods and filters of a recipe; methods that read passages need a BM25 index."""
    index, first = searched.terms, None
    if read_header(index)["kind"] == "bm25":
        spec = {"ranker": "bm25", **recipe.table("first_pass")}
        depth = int(spec.pop("depth", 10))
        spec.pop("index", None)
        first = FirstPass(index, make_ranker({**spec, "index": str(index)}), depth)
    made = reformulate_methods(recipe, groups)
    methods = {name: one for name, one in made.items() if first is not None or not one.reads}
    if not methods:
        raise ConfigError(
            f"recipe {recipe.name}: all reformulation methods of this recipe need a BM25 index; give such an index "
            "with ⟨index⟩"
        )
    filters = [make_filter(one, groups) for one in recipe.tables("filter")]
    return replace(searched, methods=methods, filters=filters, first_pass=first)


def _kind(named: Mapping[str, Any]) -> str:
    """Return the kind of index that a ranker searches."""
    return str(named["ranker"]) if named["ranker"] in names("index") else "bm25"


def _collection_name(source: str) -> str:
    # Only the name of a folder is shown, not its path.
    return source if source == "demo" or source.startswith("irds:") else Path(source).name


def ranker_words(ranker: RankerPlugin) -> str:
    """Describe a ranker: BM25 and query likelihood with their settings, others by name."""
    if not isinstance(ranker, Bm25Ranker):
        return str(ranker.id)
    model, analyzer = ranker.model, ranker.analyzer.name
    if isinstance(model, Bm25):
        return f"BM25 (k1 {model.k1:g}, b {model.b:g}, analyzer {analyzer})"
    return f"query likelihood (mu {model.mu:g}, analyzer {analyzer})"


# Collect the reformulations of queries: those of the store, then new ones that pass the filters.

# If the store has this number of reformulations, no more are generated: a language model takes seconds.
ENOUGH = 3
# The id of a query that is not one of the collection.
NEW = "asked"
Candidate = dict[str, Any]


@dataclass(frozen=True)
class Written:
    """The original query and its reformulations, the dropped candidates by reason, and the methods used."""

    candidates: list[Candidate]
    dropped: Mapping[str, int]
    methods: tuple[str, ...]
    notes: tuple[str, ...] = ()


class Writer:
    """Generates reformulations with the methods and filters of a collection; ``english`` if these are for English."""

    def __init__(self, searched: SearchedCollection, english: bool) -> None:
        self._searched, self._english = searched, english
        self._keep = Keep(list(searched.filters))

        def first_pass() -> FirstPass:
            assert searched.first_pass is not None
            return searched.first_pass

        self._stage = ReformulateStage(dict(searched.methods), first_pass, "")

    def candidates(self, queries: Sequence[tuple[str | None, str]]) -> list[Written]:
        """Return each query and its reformulations, without duplicate texts. A query is its id, if known, and its text.

        The reformulations of all queries are made together, which takes less time than one query after the other.
        """
        stored = [self._stored(*query) for query in queries]
        few = [row for row, candidates in enumerate(stored) if len(candidates) <= ENOUGH]
        foreign = {row for row in few if self._english and not is_english(queries[row][1])}
        rows = [row for row in few if row not in foreign]
        made = dict(zip(rows, self._made([queries[row] for row in rows]), strict=True))
        written = []
        for row, candidates in enumerate(stored):
            new, dropped = made.get(row, ([], {}))
            # Of equal texts, the first is kept.
            by_text: dict[str, Candidate] = {}
            for candidate in (*candidates, *new):
                by_text.setdefault(words_of(candidate["text"]), candidate)
            methods = tuple(self._stage.methods) if row in made else ()
            notes = (NOT_ENGLISH,) if row in foreign else ()
            written.append(Written(list(by_text.values()), dropped, methods, notes))
        # Add the probabilities of the filter equivalence where no filter computed them.
        missing = [
            (one.candidates[0]["text"], row) for one in written for row in one.candidates[1:] if row["p_same"] is None
        ]
        if missing:
            scores = self._judge.score([text for text, _ in missing], [row["text"] for _, row in missing])
            for (_, candidate), score in zip(missing, scores, strict=True):
                candidate.update({column: _known(score[name]) for name, column in PROBABILITIES.items()})
        return written

    def _stored(self, query_id: str | None, text: str) -> list[Candidate]:
        """Return the query and its reformulations in the store."""
        name = query_id or NEW
        original = {**dict.fromkeys(COLUMNS), "query_id": name, "variant_id": name, "text": text, "method": ORIGINAL}
        table = None
        if query_id is not None and self._searched.stored is not None:
            table = self._searched.stored(query_id, text)
        rows = [] if table is None else table.to_pylist()
        return [{**original, "stored": False}, *({**row, "stored": True} for row in rows)]

    def _made(self, queries: Sequence[tuple[str | None, str]]) -> list[tuple[list[Candidate], dict[str, int]]]:
        """Return for each query the candidates that pass the filters, and the others by reason."""
        if not queries:
            return []
        # Several queries may have the same id, and filters need one for each query.
        made = self._stage.run(pa.table({
            "query_id": [query_id or NEW for query_id, _ in queries], "text": [text for _, text in queries],
        }))[0]  # fmt: skip
        query_ids, methods = made["query_id"].to_pylist(), made["method"].to_pylist()
        starts = [row for row, method in enumerate(methods) if method == ORIGINAL]
        sizes = np.diff([*starts, made.num_rows])
        numbers = np.repeat(np.arange(len(starts)), sizes).astype(str)
        at = made.column_names.index("query_id")
        judged, reasons = self._keep.judge(made.set_column(at, "query_id", pa.array(numbers, pa.string())))
        rows = judged.select(COLUMNS).to_pylist()
        found = []
        for start, size in zip(starts, sizes.tolist(), strict=True):
            places = range(start + 1, start + size)
            passed = [{**rows[at], "query_id": query_ids[at], "stored": False} for at in places if reasons[at] is None]
            found.append((passed, dict(Counter(reason for at in places if (reason := reasons[at]) is not None))))
        return found

    @cached_property
    def _judge(self) -> JudgingFilter:
        """The filter of the recipe that judges the meaning; by default the light model."""
        own = next((one for one in self._searched.filters if isinstance(one, JudgingFilter)), None)
        return own or EquivalenceFilter(model="light")

    def judge(self, text: str, other: str) -> tuple[float | None, float | None]:
        """Return the probabilities that two queries ask for the same thing and that a person would type the second."""
        if self._english and not (is_english(text) and is_english(other)):
            return None, None
        (found,) = EquivalenceFilter(model="light").score([text], [other])
        return _known(found["same"]), _known(found["natural"])


def _known(probability: float) -> float | None:
    return None if np.isnan(probability) else probability
