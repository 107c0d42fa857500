"""What is explored: the embedded demo, the store of a build, an index of one's own."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from askew.app.audit.facts import audits_of
from askew.app.build.recipe import Recipe, groups_of, prepare, read_recipe, reformulate_methods, with_groups
from askew.app.build.resources import Resources
from askew.app.explore.counting import ExplorerCounts, counting_of
from askew.app.explore.explorer import Explorer
from askew.app.explore.methods import suggesting_recipe
from askew.app.explore.plan import RecordedPlan, recorded_plan
from askew.app.explore.searched import (
    OTHER_FILES,
    Place,
    SearchedCollection,
    place_of,
    searched_by_plan,
    searched_index,
    with_methods,
)
from askew.app.scoring.comparable import comparable
from askew.core.errors import DataError, StoreError
from askew.core.fingerprint import fingerprint
from askew.core.groups import Groups
from askew.core.machine import cache_folders
from askew.core.measure import split_measures
from askew.corpora.collection import open_collection
from askew.corpora.demo import demo_files
from askew.engine.store import Store
from askew.rankers.disk import TEXTS, read_header

DEMO = "demo"
NO_INDEX = "this store has no index that kept its texts: open it with index=, as in askew serve STORE --index INDEX"
NO_PLAN = "This store has no record of how it was made: its index is searched as askew searches by default."
GIVEN = "values of Search and Compare are not those of the dataset"


@dataclass(frozen=True)
class Sources:
    """What to open: a store, an index, the collection that has queries and judgements, the recipe with the methods.

    With neither store nor index it is the embedded demo. ``logs`` is a result of ``askew logs``, ``runs`` a folder,
    ``audit`` a folder of ``askew audit`` or of several.
    ``groups`` and ``measures`` win over those of the recipe that the store was made by, ``recipe`` over its methods.
    """

    store: Path | None = None
    index: Path | None = None
    collection: str | None = None
    recipe: str | None = None
    logs: Path | None = None
    runs: Path | None = None
    audit: Path | None = None
    groups: Groups | None = None
    measures: tuple[str, ...] | None = None

    @property
    def is_demo(self) -> bool:
        """Whether it is the embedded demo."""
        return self.store is None and self.index is None and self.collection in (None, DEMO)


@dataclass(frozen=True)
class Opening:
    """What there is to look at. Without an explorer, ``reason`` says why nothing can be searched.

    ``runs`` are those that can be chosen, by the name that they have in a link. ``notes`` say what was left out.
    ``built_by`` names the recipe that the store was made by. ``dataset`` is the step whose pairs have the values that
    the explorer shows: none where something else is searched or counted than when the store was built.
    """

    store: Store
    explorer: Explorer | None
    reason: str = ""
    demo: bool = False
    runs: Mapping[str, Path] = field(default_factory=dict)
    logs: Path | None = None
    groups: Groups | None = None
    notes: tuple[str, ...] = ()
    audits: Mapping[str, Path] = field(default_factory=dict)
    built_by: str = ""
    dataset: str = ""

    def can_compare(self, dataset: str) -> bool:
        """Whether the pairs of a dataset can be opened beside their results: not those of another plan of the store."""
        return self.explorer is not None and dataset == (self.dataset or dataset)


def check_sources(sources: Sources) -> None:
    """Refuse what is not there, without opening what takes time."""
    _runs(sources.runs)
    _audits(sources.audit)
    _check_store(sources.store)
    plan = _plan_of(sources)
    counting = _counting(sources, plan)
    reformulate_methods(suggesting_recipe(sources.recipe, plan), counting.named)
    if sources.index is not None:
        read_header(sources.index)
    if sources.collection is not None:
        open_collection(sources.collection)
    if sources.logs is not None and not (sources.logs / "report.json").is_file():
        raise DataError(f"logs= {sources.logs}: expected a folder that askew logs --out wrote, found no report.json")


def _check_store(folder: Path | None) -> None:
    if folder is not None and not folder.is_dir():
        raise DataError(f"store {folder}: there is no such folder; askew run makes one, or leave it out for a demo")


def _plan_of(sources: Sources) -> RecordedPlan | None:
    """How what is opened was made: as the store has recorded it; the demo by its recipe."""
    if sources.is_demo:
        recipe = demo_recipe(sources.groups)
        return RecordedPlan(recipe, DEMO, groups_of(recipe), {})
    return None if sources.store is None else recorded_plan(Store(sources.store))


def open_sources(sources: Sources) -> Opening:
    """Open what is named; an index of the demo is made where there is none."""
    runs = _runs(sources.runs)
    _check_store(sources.store)
    plan = _plan_of(sources)
    counting = _counting(sources, plan)
    store = _store_of(sources, counting)
    found = _find(sources, store, plan)
    audits = _audits(sources.audit)
    if found.searched is None:
        return Opening(store, None, found.reason, runs=runs, logs=sources.logs, audits=audits)
    searched = with_methods(found.searched, suggesting_recipe(sources.recipe, plan), counting.named)
    explorer = Explorer(searched, counting)
    is_demo = searched.name == DEMO and found.exact
    shipped = {f"demo:{path.name}": path for path in demo_files().runs} if is_demo else {}
    notes = (*found.notes, *counting.notes, *explorer.notes, *_given(sources, plan))
    pairs = plan.keys.get("pairs") if plan is not None and found.exact and not _given(sources, plan) else None
    return Opening(
        store, explorer, demo=is_demo, runs={**shipped, **runs}, logs=sources.logs, groups=counting.named,
        notes=notes, audits=audits, built_by=plan.recipe.name if plan is not None and sources.store is not None else "",
        dataset=f"pairs-{pairs}" if pairs else "",
    )  # fmt: skip


@dataclass(frozen=True)
class _Searchable:
    """What is searched. ``exact``: it is what the store was built on, searched as then."""

    searched: SearchedCollection | None
    notes: Sequence[str] = ()
    exact: bool = False
    reason: str = ""


def _find(sources: Sources, store: Store, plan: RecordedPlan | None) -> _Searchable:
    """The collection of the store, or what was given in its place."""
    retrieve = {"ranker": "bm25"} if plan is None else plan.recipe.table("retrieve")
    if sources.index is not None:
        notes = [f"The index {sources.index.name} was given: {GIVEN}."] if sources.store else []
        return _Searchable(searched_index(sources.index, sources.collection, retrieve), notes)
    if plan is not None:
        place = place_of(plan, store, sources.collection)
        if sources.collection is None or place.same_documents:
            return _by_plan(place)
        notes = [f"{OTHER_FILES}, or it is another one: {GIVEN}."]
        return _Searchable(searched_index(_index_of(sources.collection, store), sources.collection, retrieve), notes)
    if sources.collection is not None:
        return _Searchable(searched_index(_index_of(sources.collection, store), sources.collection, retrieve))
    return _without_plan(store, retrieve)


def _by_plan(place: Place) -> _Searchable:
    try:
        searched, notes = searched_by_plan(place)
    except StoreError as error:
        return _Searchable(None, reason=str(error))
    return _Searchable(searched, notes, exact=True)


def _index_of(collection: str, store: Store) -> Path:
    return Resources(collection, store).index()


def _without_plan(store: Store, retrieve: Mapping[str, str]) -> _Searchable:
    """An index of a store that does not say how it was made."""
    known = [path for path in sorted(store.local.glob("index-*")) if (path / TEXTS).exists()]
    # An index of documents in terms comes first: methods read its statistics.
    found = [path for path in known if (path / "header.json").exists()]
    found.sort(key=lambda path: not path.name.startswith("index-bm25-"))
    if not found:
        return _Searchable(None, reason=NO_INDEX)
    return _Searchable(searched_index(found[0], None, retrieve), [NO_PLAN])


def _given(sources: Sources, plan: RecordedPlan | None) -> list[str]:
    """What to say where groups or measures are others than those that a store was built with."""
    if plan is None or sources.store is None:
        return []
    given = [name for name, value in (("groups", sources.groups), ("measures", sources.measures)) if value is not None]
    return [f"The {' and '.join(given)} were given: {GIVEN}."] if given else []


def _counting(sources: Sources, plan: RecordedPlan | None) -> ExplorerCounts:
    """What is given wins, then what the store was made by, then the groups of the recipe that is given."""
    groups = sources.groups
    if groups is None and sources.recipe is not None and plan is None:
        groups = groups_of(read_recipe(sources.recipe))
    if plan is None:
        return counting_of(groups, sources.measures)
    return counting_of(groups, sources.measures, plan.recipe, plan.groups)


def demo_recipe(groups: Groups | None) -> Recipe:
    """The recipe of the demo for these groups, with measures that can compare them."""
    recipe = read_recipe(DEMO)
    if groups is None:
        return recipe
    measures, select = comparable(recipe.table("evaluate")["measures"], groups), recipe.table("select")
    if bias := [text for text in split_measures(select["bias"]) if text in measures]:
        select["bias"] = " ".join(bias)
    else:  # no difference of two groups: any measure of lean will do for the Pareto front
        counting = counting_of(groups, measures)
        select = {"selector": "pareto", "effectiveness": select["effectiveness"], "bias": counting.lean}
    changed = {"evaluate": {"measures": measures}, "select": select}
    return with_groups(Recipe(DEMO, {**recipe.sections, **changed}), groups)


def _runs(folder: Path | None) -> dict[str, Path]:
    """The files of a folder as they are now; each is read when it is chosen."""
    if folder is None:
        return {}
    if not folder.is_dir():
        raise DataError(f"runs= {folder}: there is no such folder; expected one with TREC runs in it")
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    return {f"file:{path.name}": path for path in files}


def _audits(folder: Path | None) -> dict[str, Path]:
    """The audits of a folder; each is read when it is looked at."""
    return {} if folder is None else audits_of(folder)


def _store_of(sources: Sources, counting: ExplorerCounts) -> Store:
    """The store that is given; of the demo one in the cache; for anything else an empty one, which has no pairs."""
    if sources.store is not None:
        return Store(sources.store)
    if sources.is_demo:
        return demo_store(counting.named)
    if sources.index is None and sources.collection is not None:
        return _cached(f"explorer-{fingerprint(sources.collection)}")
    return _temporary()


def demo_store(groups: Groups | None = None) -> Store:
    """A folder of the cache for what is made of the demo; a temporary one where there is no cache to write to."""
    return _cached(
        "explorer" if groups is None else f"explorer-{fingerprint([groups.as_section(), groups.difference])}"
    )


def _cached(name: str) -> Store:
    for folder in [folder / name for folder in cache_folders()]:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return Store(folder)
    return _temporary()


def _temporary() -> Store:
    temporary = tempfile.mkdtemp(prefix="askew-explorer-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return Store(temporary)


def demo_queries() -> list[str]:
    """The words of the demo's queries, straight from their file."""
    lines = demo_files().queries_file.read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[1] for line in lines]


def build_demo(store: Store, groups: Groups | None = None) -> None:
    """Run the recipe of the demo in a store, so that there are pairs to look at; nothing where they are there."""
    with store.lock("explorer-demo"):
        prepare(demo_recipe(groups), store).plan.run(store)
