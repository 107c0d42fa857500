"""Open what is searched: the collection of a store with the ranker of its build, or an index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from askew.app.build.prepare import reformulate_methods, resources_of, retrieve_stage
from askew.app.build.recipe import Recipe, with_settings
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
NO_FILES = "The files of the store's collection are not at their recorded path"
OTHER_FILES = "The files of the store's collection have changed since the store was built"


@dataclass(frozen=True)
class SearchedCollection:
    """A collection that can be searched, with its queries, judgements, methods and filters.

    ``terms`` is an index with texts. The top ``depth`` documents are measured. ``stored`` returns the reformulations of
    a query in the store, by its id and text; ``typical`` returns the values of a measure for the queries of the store.
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
        changed = self._changed()
        if not changed and self.resources is not None:
            return known_of(self.resources.collection), ""
        said = f"{changed}, so the judgements are not read and effectiveness is not measured."
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
    """Open an index; the ranker of a BM25 index is that of the recipe."""
    header = read_header(index)
    settings = {key: value for key, value in retrieve.items() if key not in ("k", "index")}
    terms = header["kind"] == "bm25"
    # An index of another kind determines its ranker.
    spec: Mapping[str, Any] = {**settings, "index": str(index)} if terms else compose(None, [index], [], {})
    opened: Collection | None = None if collection is None else open_collection(collection)
    # Only the name of a folder is shown, not its path.
    name = index.name if collection is None else _collection_name(collection)
    ranker, known = make_ranker(spec), Known() if opened is None else known_of(opened)
    texts = StoredTexts(index, header["documents"])
    depth = int(retrieve.get("k", DEPTH))
    return SearchedCollection(name, ranker, ranker_words(ranker), index, texts, known, depth=depth)


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
            "with index="
        )
    filters = [make_filter(one, groups) for one in recipe.tables("filter")]
    return replace(searched, methods=methods, filters=filters, first_pass=first)


def _kind(named: Mapping[str, Any]) -> str:
    """Return the kind of index that a ranker searches."""
    return str(named["ranker"]) if named["ranker"] in names("index") else "bm25"


def _collection_name(source: str) -> str:
    return source if source == "demo" or source.startswith("irds:") else Path(source).name


def ranker_words(ranker: RankerPlugin) -> str:
    """Describe a ranker: BM25 and query likelihood with their settings, others by name."""
    if not isinstance(ranker, Bm25Ranker):
        return str(ranker.id)
    model, analyzer = ranker.model, ranker.analyzer.name
    if isinstance(model, Bm25):
        return f"BM25 (k1 {model.k1:g}, b {model.b:g}, analyzer {analyzer})"
    return f"query likelihood (mu {model.mu:g}, analyzer {analyzer})"
