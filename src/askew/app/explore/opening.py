"""What is explored: the embedded demo, the store of a build, an index of one's own."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from askew.app.audit.facts import audits_of
from askew.app.build.recipe import Recipe, groups_of, prepare, read_recipe, reformulate_methods, with_groups
from askew.app.build.resources import Resources
from askew.app.explore.counting import ExplorerCounts, counting_of
from askew.app.explore.explorer import Explorer, SearchedCollection
from askew.app.explore.known import Known, known_of
from askew.app.explore.plan import recorded_recipe
from askew.app.scoring.comparable import comparable
from askew.app.search.compose import compose, make_ranker
from askew.app.search.reformulate import FirstPass, make_filter
from askew.core.errors import ConfigError, DataError
from askew.core.fingerprint import fingerprint
from askew.core.groups import Groups
from askew.core.machine import cache_folders
from askew.core.measure import split_measures
from askew.corpora.collection import open_collection
from askew.corpora.demo import demo_files
from askew.engine.store import Store
from askew.rankers.disk import TEXTS, StoredTexts, read_header

DEMO = "demo"
# The demo's own reformulations are of its own queries; in the explorer people type others.
ANY_QUERY = {
    "reformulate": [
        {"method": "extract", "count": 20}, {"method": "fairfeedback"}, {"method": "swap"}, {"method": "reduce"}
    ],
    "filter": [{"filter": "rules"}, {"filter": "semantic"}],
}  # fmt: skip
NO_INDEX = "this store has no index that kept its texts: open it with index=, as in askew serve STORE --index INDEX"


@dataclass(frozen=True)
class Sources:
    """What to open: a store, an index, the collection that has queries and judgements, the recipe with the methods.

    With neither store nor index it is the embedded demo. ``logs`` is a result of ``askew logs``, ``runs`` a folder,
    ``audit`` a folder of ``askew audit`` or of several.
    ``groups`` and ``measures`` win over those of the recipe that the store was made by. Without a ``recipe`` the
    methods are those of the demo that have words for the groups.
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


def check_sources(sources: Sources) -> None:
    """Refuse what is not there, without opening what takes time."""
    _runs(sources.runs)
    _audits(sources.audit)
    _check_store(sources.store)
    counting = _counting(sources, None if sources.store is None else Store(sources.store))
    reformulate_methods(_methods_of(sources, counting), counting.named)
    if sources.index is not None:
        read_header(sources.index)
    if sources.collection is not None:
        open_collection(sources.collection)
    if sources.logs is not None and not (sources.logs / "report.json").is_file():
        raise DataError(f"logs= {sources.logs}: expected a folder that askew logs --out wrote, found no report.json")


def _check_store(folder: Path | None) -> None:
    if folder is not None and not folder.is_dir():
        raise DataError(f"store {folder}: there is no such folder; askew run makes one, or leave it out for a demo")


def open_sources(sources: Sources) -> Opening:
    """Open what is named; an index of the demo is made where there is none."""
    runs = _runs(sources.runs)
    _check_store(sources.store)
    counting = _counting(sources, None if sources.store is None else Store(sources.store))
    recipe = _methods_of(sources, counting)
    store = demo_store(counting.named) if sources.store is None else Store(sources.store)
    index, collection = (Resources(DEMO, store).index(), DEMO) if sources.is_demo else _found(sources, store)
    is_demo = collection == DEMO
    if index is None:
        return Opening(store, None, NO_INDEX, runs=runs, logs=sources.logs, audits=_audits(sources.audit))
    explorer = Explorer(_searched(index, collection, recipe, counting.named), counting)
    shipped = {f"demo:{path.name}": path for path in demo_files().runs} if is_demo else {}
    return Opening(
        store, explorer, demo=is_demo, runs={**shipped, **runs}, logs=sources.logs, groups=counting.named,
        notes=(*counting.notes, *explorer.notes), audits=_audits(sources.audit),
    )  # fmt: skip


def _counting(sources: Sources, store: Store | None) -> ExplorerCounts:
    """What is given wins, then the groups of the recipe that is given, then what the store was made by."""
    groups = sources.groups
    if groups is None and sources.recipe is not None:
        groups = groups_of(read_recipe(sources.recipe))
    return counting_of(groups, sources.measures, None if store is None else recorded_recipe(store))


def _methods_of(sources: Sources, counting: ExplorerCounts) -> Recipe:
    """The recipe whose methods and filters are used."""
    if sources.recipe is not None:
        return read_recipe(sources.recipe)
    return Recipe(DEMO, {**demo_recipe(counting.named).sections, **ANY_QUERY})


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


def _found(sources: Sources, store: Store) -> tuple[Path | None, str | None]:
    """The index to search, and the collection that it belongs to where that is known."""
    if sources.index is not None:
        return sources.index, sources.collection
    if sources.collection is not None:
        return Resources(sources.collection, store).index(), sources.collection
    known = [path for path in sorted(store.local.glob("index-*")) if (path / TEXTS).exists()]
    # An index of documents in terms comes first: methods read its statistics.
    found = [path for path in known if (path / "header.json").exists()]
    found.sort(key=lambda path: not path.name.startswith("index-bm25-"))
    if not found:
        return None, None
    own = f"index-bm25-{Resources(DEMO, store).index_key('bm25', {})}"
    return found[0], DEMO if found[0].name == own else None


def demo_store(groups: Groups | None = None) -> Store:
    """A folder of the cache for what is made of the demo; a temporary one where there is no cache to write to."""
    name = "explorer" if groups is None else f"explorer-{fingerprint([groups.as_section(), groups.difference])}"
    for folder in [folder / name for folder in cache_folders()]:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return Store(folder)
    temporary = tempfile.mkdtemp(prefix="askew-explorer-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return Store(temporary)


def _searched(index: Path, collection: str | None, recipe: Recipe, groups: Groups | None) -> SearchedCollection:
    header = read_header(index)
    settings = recipe.table("retrieve")
    for key in ("k", "index"):
        settings.pop(key, None)
    terms = header["kind"] == "bm25"
    # The recipe says which ranker where it is one of terms; another index knows its own.
    spec: Mapping[str, Any] = {**settings, "index": str(index)} if terms else compose(None, [index], [], {})
    ranker = make_ranker(spec)
    known = Known() if collection is None else known_of(open_collection(collection))
    first = FirstPass(index, ranker, int(recipe.table("first_pass").get("depth", 10))) if terms else None
    methods = {
        name: one for name, one in reformulate_methods(recipe, groups).items() if first is not None or not one.reads
    }
    if not methods:
        raise ConfigError(f"recipe {recipe.name}: none of its methods works without an index for bm25; give one")
    filters = [make_filter(one, groups) for one in recipe.tables("filter")]
    # A folder is called by its own name: where it lies is nobody's business.
    name = index.name if collection is None else collection if _is_name(collection) else Path(collection).name
    return SearchedCollection(name, ranker, StoredTexts(index, header["documents"]), known, methods, filters, first)


def _is_name(collection: str) -> bool:
    return collection == DEMO or collection.startswith("irds:")


def demo_queries() -> list[str]:
    """The words of the demo's queries, straight from their file."""
    lines = demo_files().queries_file.read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[1] for line in lines]


def build_demo(store: Store, groups: Groups | None = None) -> None:
    """Run the recipe of the demo in a store, so that there are pairs to look at; nothing where they are there."""
    with store.lock("explorer-demo"):
        prepare(demo_recipe(groups), store).plan.run(store)
