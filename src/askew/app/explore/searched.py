"""What is searched: the collection of a store exactly as the store was made, or an index of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from askew.app.build.recipe import Recipe, reformulate_methods, resources_of, retrieve_stage, with_settings
from askew.app.build.resources import Resources
from askew.app.explore.known import Known, known_of, originals_of, remembered
from askew.app.explore.leaning import originals_values
from askew.app.explore.plan import RecordedPlan
from askew.app.explore.stored import StoredPairs
from askew.app.search.compose import compose, is_engine, make_ranker
from askew.app.search.reformulate import FirstPass, make_filter
from askew.core.errors import AskewError, ConfigError, StoreError
from askew.core.groups import Groups
from askew.core.ranking import Floats
from askew.corpora.collection import Collection, open_collection
from askew.engine.store import Store
from askew.plugins.kinds import RankerPlugin
from askew.plugins.methods import FilterPlugin, ReformulatorPlugin
from askew.plugins.registry import names
from askew.rankers.bm25.ranker import Bm25Ranker
from askew.rankers.bm25.weights import Bm25
from askew.rankers.disk import TEXTS, StoredTexts, read_doc_ids, read_header

DEPTH = 100
NO_FILES = "The files of its collection are not where they were"
OTHER_FILES = "The files of its collection have changed since it was built"
NO_JUDGEMENTS = "so judgements are not read and nothing is said of effectiveness"


@dataclass(frozen=True)
class SearchedCollection:
    """A collection that can be searched, and what is known of it.

    ``terms`` is an index with its texts. So many documents as ``depth`` says are measured. ``stored`` gives the
    reformulations that the store has of a query, by its id and text; ``typical`` what a measure says of its queries.
    """

    name: str
    ranker: RankerPlugin
    ranker_words: str
    terms: Path
    texts: StoredTexts
    known: Known
    methods: Mapping[str, ReformulatorPlugin] = field(default_factory=dict)
    filters: Sequence[FilterPlugin] = ()
    first_pass: FirstPass | None = None
    depth: int = DEPTH
    stored: Callable[[str, str], pa.Table | None] | None = None
    typical: Callable[[str], Floats] | None = None


@dataclass(frozen=True)
class Place:
    """Where the collection of a store is found: its files, or without them what the store holds of it."""

    store: Store
    plan: RecordedPlan
    resources: Resources | None

    @property
    def ranker(self) -> dict[str, Any]:
        """The ranker as the step that searched names it, with the key of its index; how deep it searched."""
        runs = self.plan.manifest(self.store, "runs")
        if runs is not None:
            return dict(runs.settings)
        if self.resources is None:
            raise StoreError(f"{NO_FILES}, and no step of this store has searched it: there is nothing to search")
        return dict(retrieve_stage(self.plan.recipe, self.resources).settings())

    @property
    def same_documents(self) -> bool:
        """Whether the documents are those that the store indexed."""
        named = self.ranker["ranker"]
        if self.resources is None or "index" not in named or is_engine(named["ranker"]):
            return self.resources is not None
        return bool(self.resources.index_key(_kind(named), self._making) == named["index"])

    @property
    def _making(self) -> dict[str, Any]:
        return dict(self.plan.recipe.table("retrieve").get("index", {}))

    def open_ranker(self) -> tuple[RankerPlugin, int, Path]:
        """The ranker, how deep it searched, and an index with the terms and the texts of the documents."""
        found = self.ranker
        named, depth = dict(found["ranker"]), int(found["k"])
        if is_engine(named["ranker"]):
            if self.resources is None:
                raise StoreError(f"{NO_FILES}, and the engine {named['ranker']} is asked about its documents")
            return retrieve_stage(self.plan.recipe, self.resources).ranker, depth, self.resources.index()
        folder = self.store.local / f"index-{_kind(named)}-{named['index']}"
        if not (folder / "header.json").exists():
            if not self.same_documents or self.resources is None:
                raise StoreError(f"the index {folder.name} of this store is gone, and so are the documents it was of")
            self.resources.index(_kind(named), self._making)
        return make_ranker({**named, "index": str(folder)}), depth, self._terms(folder)

    def _terms(self, folder: Path) -> Path:
        """The plain index for BM25, which methods read statistics from; else the one that was searched."""
        if self.same_documents and self.resources is not None:
            return self.resources.index()
        wanted = read_doc_ids(folder)
        plain = [one.parent for one in sorted(self.store.local.glob("index-bm25-*/header.json"))]
        known = [one for one in (folder, *plain) if (one / TEXTS).exists() and read_doc_ids(one).equals(wanted)]
        if not known:
            raise StoreError(f"the index {folder.name} of this store kept no texts, and its documents are gone")
        return known[0]

    def known(self) -> tuple[Known, str]:
        """The queries and their judgements, as far as they are those of the store; and what is to be said of that."""
        changed = self._changed()
        if not changed and self.resources is not None:
            return known_of(self.resources.collection), ""
        said = f"{changed}, {NO_JUDGEMENTS}."
        return remembered(self.store, self.plan.manifest(self.store, "scores")), said

    def _changed(self) -> str:
        if self.resources is None:
            return NO_FILES
        first = self.plan.manifest(self.store, next(iter(self.plan.keys), ""))
        scores = self.plan.manifest(self.store, "scores")
        try:
            same = (first is None or first.input_key == self.resources.queries.key) and (
                scores is None or scores.settings.get("judgements") == self.resources.judgements.key
            )
        except (AskewError, OSError):
            return NO_FILES
        return "" if same else OTHER_FILES


def place_of(plan: RecordedPlan, store: Store, given: str | None = None) -> Place:
    """The files of a store's collection: where they are said to be, or where they were when it was built."""
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
    """The collection of a store as its steps read it, and what is to be said where its files are not as they were."""
    ranker, depth, terms = place.open_ranker()
    known, said = place.known()
    notes = [said] if said else []
    if not said and not place.same_documents:
        notes = [f"{OTHER_FILES}: the documents are those of the index in the store."]
    name = _collection_name(place.plan.source)
    texts = StoredTexts(terms, read_header(terms)["documents"])
    found = SearchedCollection(name, ranker, ranker_words(ranker), terms, texts, known, depth=depth)
    stored = StoredPairs(place.store, place.plan)
    scores = place.plan.manifest(place.store, "scores")
    if scores is None:
        return replace(found, stored=stored.reformulations), notes
    originals = originals_of(place.store, scores)
    return replace(found, stored=stored.reformulations, typical=partial(originals_values, originals)), notes


def searched_index(index: Path, collection: str | None, retrieve: Mapping[str, Any]) -> SearchedCollection:
    """An index of one's own; the recipe says which ranker where it is one of terms."""
    header = read_header(index)
    settings = {key: value for key, value in retrieve.items() if key not in ("k", "index")}
    terms = header["kind"] == "bm25"
    # An index of another kind knows its own ranker.
    spec: Mapping[str, Any] = {**settings, "index": str(index)} if terms else compose(None, [index], [], {})
    opened: Collection | None = None if collection is None else open_collection(collection)
    # A folder is called by its own name: where it lies is nobody's business.
    name = index.name if collection is None else _collection_name(collection)
    ranker, known = make_ranker(spec), Known() if opened is None else known_of(opened)
    texts = StoredTexts(index, header["documents"])
    depth = int(retrieve.get("k", DEPTH))
    return SearchedCollection(name, ranker, ranker_words(ranker), index, texts, known, depth=depth)


def with_methods(searched: SearchedCollection, recipe: Recipe, groups: Groups | None) -> SearchedCollection:
    """The collection with the methods and filters of a recipe; those that read passages need an index of terms."""
    index, first = searched.terms, None
    if read_header(index)["kind"] == "bm25":
        spec = {"ranker": "bm25", **recipe.table("first_pass")}
        depth = int(spec.pop("depth", 10))
        spec.pop("index", None)
        first = FirstPass(index, make_ranker({**spec, "index": str(index)}), depth)
    made = reformulate_methods(recipe, groups)
    methods = {name: one for name, one in made.items() if first is not None or not one.reads}
    if not methods:
        raise ConfigError(f"recipe {recipe.name}: none of its methods works without an index for bm25; give one")
    filters = [make_filter(one, groups) for one in recipe.tables("filter")]
    return replace(searched, methods=methods, filters=filters, first_pass=first)


def _kind(named: Mapping[str, Any]) -> str:
    """The kind of index that a ranker searches."""
    return str(named["ranker"]) if named["ranker"] in names("index") else "bm25"


def _collection_name(source: str) -> str:
    return source if source == "demo" or source.startswith("irds:") else Path(source).name


def ranker_words(ranker: RankerPlugin) -> str:
    """A ranker for readers: BM25 with its settings, another by its name."""
    if not isinstance(ranker, Bm25Ranker):
        return str(ranker.id)
    model, analyzer = ranker.model, ranker.analyzer.name
    if isinstance(model, Bm25):
        return f"BM25 (k1 {model.k1:g}, b {model.b:g}, analyzer {analyzer})"
    return f"query likelihood (mu {model.mu:g}, analyzer {analyzer})"
