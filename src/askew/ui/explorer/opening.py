"""Open what the explorer shows: the embedded demo, the store of a build, or an index."""

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

from askew.core.errors import DataError, Note, StoreError
from askew.core.files import fingerprint
from askew.core.groups import Groups
from askew.core.machine import cache_folders
from askew.core.measure import split_measures
from askew.core.store.store import Store
from askew.data.collection import demo_files
from askew.measures.requested import comparable
from askew.models.find import has_smollm
from askew.pairs.plan import needs_trust, prepare, trust_note, with_all_mentions
from askew.pairs.recipe import Recipe, groups_of, read_recipe, with_groups
from askew.pairs.resources import Resources
from askew.search.disk import TEXTS, read_header
from askew.study.audit.report import audits_of
from askew.ui.explorer.counting import ExplorerCounts, counting_of
from askew.ui.explorer.explorer import Explorer
from askew.ui.explorer.plan import RecordedPlan, recorded_plan
from askew.ui.explorer.searched import (
    OTHER_FILES,
    SearchedCollection,
    place_of,
    searched_by_plan,
    searched_index,
    with_methods,
)

# Choose the methods and filters for reformulations in the explorer.

USUAL = "refairmulate"
# This method reads reformulations of known queries from a file, so it has none for a query that a user types.
_ONLY_KNOWN = "replay"
DEMO = "demo"
# The user waits, so fewer texts are sampled than for a dataset.
_WRITER, _QUICK = "rewrite", {"samples": 3}


def suggesting_recipe(given: str | None, plan: RecordedPlan | None) -> Recipe:
    """Return the given recipe, else that of the store if it can reformulate any query, else the default."""
    if given is not None:
        return read_recipe(given)
    if plan is not None and plan.recipe.name != DEMO:
        methods = [one for one in plan.recipe.tables("reformulate") if one.get("method") != _ONLY_KNOWN]
        if methods:
            return Recipe(plan.recipe.name, {**plan.recipe.sections, "reformulate": methods})
    return usual_recipe()


def usual_recipe() -> Recipe:
    """Return the default recipe; methods that need a language model are left out if it is not installed.

    The filter equivalence uses the best installed model.
    """
    recipe = read_recipe(USUAL)
    methods = [
        {**one, **_QUICK} if one["method"] == _WRITER else one
        for one in recipe.tables("reformulate") if one["method"] != _WRITER or has_smollm()
    ]  # fmt: skip
    filters = [{key: value for key, value in one.items() if key != "model"} for one in recipe.tables("filter")]
    return Recipe(recipe.name, {**recipe.sections, "reformulate": methods, "filter": filters})


NO_INDEX = "this store has no index with texts; give an index with index=, as in 'askew serve STORE --index INDEX'"
NO_PLAN = "This store has no record of its recipe, so its index is searched with the default settings."
GIVEN = "the values on the pages Search and Compare may differ from the values in the dataset"


@dataclass(frozen=True)
class Sources:
    """What to open: a store, an index, the collection with queries and judgements, the recipe with the methods.

    With neither a store nor an index, the embedded demo is opened. ``logs`` is an output folder of ``askew logs``,
    ``runs`` a folder of runs, ``audit`` an output folder of ``askew audit`` or a folder of several. ``groups`` and
    ``measures`` replace those of the recipe of the store; ``recipe`` has methods that replace its methods. Only with
    ``trust_store`` is anything made from a store that could run code, send data or load a model of somebody else.
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
    trust_store: bool = False

    @property
    def is_demo(self) -> bool:
        """Whether the embedded demo is opened."""
        return self.store is None and self.index is None and self.collection in (None, DEMO)


@dataclass(frozen=True)
class Opening:
    """What was opened. If ``explorer`` is None, ``reason`` says why nothing can be searched.

    ``runs`` are the available runs, by their names in links. ``notes`` say what was left out. ``built_by`` is the name
    of the recipe of the store. ``dataset`` is the step of the pairs with the same values as the explorer shows; empty
    if the explorer searches or counts something else than the build.
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


def _recorded(sources: Sources) -> tuple[RecordedPlan | None, Note | None, ExplorerCounts]:
    """Read the plan recorded in the store (or that of the demo), and what to count.

    If the store needs trust that it does not have, there is no plan, and a note says what is switched off.
    """
    if sources.store is not None and not sources.store.is_dir():
        raise DataError(
            f"store {sources.store}: there is no such folder; make a store with 'askew run', or leave the store out to "
            "open the demo"
        )
    plan, barred = None, None
    if sources.store is not None:
        store = Store(sources.store)
        plan = recorded_plan(store)
        recorded: dict[str, Any] = {} if plan is None else {**plan.recipe.sections, "source": plan.source}
        runs_step = None if plan is None else plan.manifest(store, "runs")
        recorded["runs"] = {} if runs_step is None else runs_step.settings
        for path in store.local.glob("index-*/header.json"):
            recorded[path.parent.name] = {**read_header(path.parent), "files": {}}
        if (power := needs_trust(recorded)) and not sources.trust_store:
            off = f"store {sources.store}: only its tables are shown, and search and reformulation are off"
            plan, barred = None, trust_note(power, off)
    if sources.is_demo:
        recipe = demo_recipe(sources.groups)
        plan = RecordedPlan(recipe, DEMO, groups_of(recipe), {})
    if plan is not None:
        return plan, barred, counting_of(sources.groups, sources.measures, plan.recipe, plan.groups)
    groups = sources.groups
    if groups is None and sources.recipe is not None:
        groups = groups_of(read_recipe(sources.recipe))
    return plan, barred, counting_of(groups, sources.measures)


def open_sources(sources: Sources) -> Opening:
    """Open the sources; the index of the demo is built if it does not exist."""
    if sources.logs is not None and not (sources.logs / "report.json").is_file():
        raise DataError(
            f"⟨logs⟩ {sources.logs}: expected a folder that 'askew logs --out' wrote, found no report.json",
            code="no-report", folder=str(sources.logs),
        )  # fmt: skip
    if sources.runs is not None and not sources.runs.is_dir():
        raise DataError(f"⟨runs⟩ {sources.runs}: there is no such folder; expected a folder of TREC runs")
    # A run or an audit is read when it is chosen.
    files = [] if sources.runs is None else sorted(sources.runs.iterdir())
    runs = {f"file:{path.name}": path for path in files if path.is_file() and not path.name.startswith(".")}
    audits = {} if sources.audit is None else audits_of(sources.audit)
    plan, barred, counting = _recorded(sources)
    store = _store_of(sources, counting)
    replaced = (("groups", sources.groups), ("measures", sources.measures))
    given = [name for name, value in replaced if value is not None]
    changed = None
    if given and plan is not None and sources.store is not None:
        what = " and ".join(given)
        words = f"You gave {what}, so the {what} of the store are not used. As a result, {GIVEN}."
        changed = Note(words, code="not-used", given=given)
    retrieve = {"ranker": "bm25"} if plan is None else plan.recipe.table("retrieve")
    # What is searched, and whether it is the collection of the store with the ranker of the build.
    searched: SearchedCollection | None = None
    notes, exact, reason = list[str](), False, ""
    place = None if plan is None or sources.index is not None else place_of(plan, store, sources.collection)
    if sources.index is not None:
        searched = searched_index(sources.index, sources.collection, retrieve)
        if sources.store:
            notes = [f"The index {sources.index.name} replaces the index of the store, so {GIVEN}."]
    elif place is not None and (sources.collection is None or place.same_documents):
        try:
            searched, notes = searched_by_plan(place)
            exact = True
        except StoreError as error:
            reason = str(error)
    elif sources.collection is not None:
        searched = searched_index(Resources(sources.collection, store).index(), sources.collection, retrieve)
        notes = [] if plan is None else [f"{OTHER_FILES}, or another collection was given, so {GIVEN}."]
    else:
        # A store without a recorded plan. A BM25 index comes first, because methods read its term statistics.
        known = [path for path in store.local.glob("index-*") if (path / TEXTS).exists() and barred is None]
        known = [path for path in known if (path / "header.json").exists()]
        known.sort(key=lambda path: (not path.name.startswith("index-bm25-"), path))
        reason = "" if known else str(barred or NO_INDEX)
        if known:
            searched, notes = searched_index(known[0], None, retrieve), [NO_PLAN]
    if searched is None:
        off = (barred,) if barred else ()
        return Opening(store, None, reason, runs=runs, logs=sources.logs, notes=off, audits=audits)
    explorer = Explorer(with_methods(searched, suggesting_recipe(sources.recipe, plan), counting.named), counting)
    is_demo = searched.name == DEMO and exact
    shipped = {f"demo:{path.name}": path for path in demo_files().runs} if is_demo else {}
    every = (*notes, *counting.notes, *explorer.notes, *(one for one in (changed, barred) if one))
    pairs = plan.keys.get("pairs") if plan is not None and exact and not changed else None
    return Opening(
        store, explorer, demo=is_demo, runs={**shipped, **runs}, logs=sources.logs, groups=counting.named,
        notes=every, audits=audits, built_by=plan.recipe.name if plan is not None and sources.store is not None else "",
        dataset=f"pairs-{pairs}" if pairs else "",
    )  # fmt: skip


def demo_recipe(groups: Groups | None) -> Recipe:
    """Return the recipe of the demo for these groups, with measures that can compare them."""
    shipped = read_recipe(DEMO)
    if groups is None:
        return shipped
    recipe = with_all_mentions(shipped, groups)[0]
    measures, select = comparable(recipe.table("evaluate")["measures"], groups), recipe.table("select")
    if bias := [text for text in split_measures(select["bias"]) if text in measures]:
        select["bias"] = " ".join(bias)
    else:  # not two groups: the selector boxes accepts any measure of lean
        counting = counting_of(groups, measures)
        select = {"selector": "boxes", "measure": select["effectiveness"], "bias": counting.lean}
    changed = {"evaluate": {"measures": measures}, "select": select}
    return with_groups(Recipe(DEMO, {**recipe.sections, **changed}), groups)


def _store_of(sources: Sources, counting: ExplorerCounts) -> Store:
    """Return the given store, a store in the cache (for the demo or a collection), or an empty temporary store."""
    if sources.store is not None:
        return Store(sources.store)
    name = None
    if sources.is_demo:
        groups = counting.named
        name = "explorer" if groups is None else f"explorer-{fingerprint([groups.as_section(), groups.difference])}"
    elif sources.index is None and sources.collection is not None:
        name = f"explorer-{fingerprint(sources.collection)}"
    for folder in cache_folders() if name else ():
        with contextlib.suppress(OSError):
            (folder / str(name)).mkdir(parents=True, exist_ok=True)
            if os.access(folder / str(name), os.W_OK):
                return Store(folder / str(name))
    temporary = tempfile.mkdtemp(prefix="askew-explorer-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return Store(temporary)


def build_demo(store: Store, groups: Groups | None = None) -> None:
    """Run the recipe of the demo in a store, so that it has pairs; finished steps are not run again."""
    with store.lock("explorer-demo"):
        prepare(demo_recipe(groups), store).plan.run(store)
