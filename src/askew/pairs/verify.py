"""Check every byte of a dataset, a store, an index or a report; with ``repair``, recompute the damaged parts.

The steps of a store are deterministic: a part that is recomputed from the recorded recipe has the same bytes. An index
is rebuilt from its recorded documents. Nothing is removed that cannot be recomputed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from askew.core.errors import AskewError, ConfigError
from askew.core.folders import CHECKSUMS
from askew.core.store import store as steps
from askew.core.store.steps import Plan
from askew.core.store.store import Store
from askew.pairs.dataset.checking import Verified
from askew.pairs.dataset.checking import verify as verify_release
from askew.pairs.plan import Build, needs_trust, prepare, trust_note
from askew.pairs.recipe import Recipe
from askew.report.page import LIST as REPORT_LIST
from askew.report.page import check_report
from askew.search import disk as indexes
from askew.search.retrieve import index as index_documents

# Files of which at least one is in such a folder, even if it is damaged.
_OF_STORE = ("*/manifest.json", "*/part-*.parquet", "index-*/header.json", "plans/*.json")
_OF_DATASET = ("askew.json", CHECKSUMS, "croissant.json", "data/*-of-*.parquet")


def verify(path: str, repair: bool = False, trust_store: bool = False) -> Verified:
    """Check a dataset, a store, an index or a report; with ``repair``, also repair a store or an index.

    Only with ``trust_store`` does a repair run code, use services or load models that the store or the index names.
    """
    kind = kind_of(path)
    if kind == "index":
        return _index(Path(path), repair, trust_store)
    if kind == "store":
        return _store(Store(path), path, repair, trust_store)
    if kind == "report":
        files, wrong = check_report(Path(path))
        again = ["a report cannot be repaired; write it again into a new folder"] if repair and wrong else []
        return Verified(kind, path, wrong, again, counts={"files": files})
    found = verify_release(Path(path))
    found.path = path
    if repair and not found.ok:
        found.notes.append("a dataset cannot be repaired; write it again with: askew publish RECIPE --out NEW_FOLDER")
    return found


def kind_of(path: str) -> str:
    """Return whether a folder is an index, a store, a report or a dataset, even if some of its files are missing."""
    if "://" in path:
        return "store"
    folder = Path(path)
    if not folder.is_dir():
        found = "found a file" if folder.exists() else "but there is no such folder"
        raise ConfigError(f"{path}: expected the folder of a dataset, a store, an index or a report, {found}")
    if (folder / "header.json").exists():
        return "index"
    if (folder / "manifest.json").exists():
        raise ConfigError(f"{path}: this is one step of a store; verify the store: askew verify {folder.parent}")
    is_release = (folder / "askew.json").exists()
    if (folder / REPORT_LIST).exists() and not is_release:
        return "report"
    if not is_release and any(any(folder.glob(sign)) for sign in _OF_STORE):
        return "store"
    if not any(any(folder.glob(sign)) for sign in _OF_DATASET):
        if (folder.absolute().parent / "askew.json").exists():
            raise ConfigError(f"{path}: this is part of a dataset; verify the dataset: askew verify {folder.parent}")
        raise ConfigError(f"{path}: not a folder that askew wrote; expected a dataset, a store, an index or a report")
    return "dataset"


def _index(folder: Path, repair: bool, trust_store: bool) -> Verified:
    found = indexes.check_index(folder)
    done = Verified("index", str(folder), found.messages, counts={"files": found.files})
    if done.ok or not repair:
        return done
    if _only_weights(folder, found):
        done.repaired = _drop_weights(found)
    elif (source := indexes.read_source(folder)) is None:
        command = indexes.rebuild_command(folder, found.kind)
        done.notes.append(
            f"index {folder}: it cannot be repaired, because it does not record which documents it was built from; "
            f"delete the index and run: {command}"
        )
        return done
    elif (power := needs_trust({"index": source})) and not trust_store:
        done.notes.append(trust_note(power, f"index {folder}: it is not built again"))
        return done
    else:
        done.repaired = _rebuild(folder)
    again = indexes.check_index(folder)
    done.wrong, done.counts = again.messages, {"files": again.files}
    return done


def _only_weights(folder: Path, found: indexes.IndexCheck) -> bool:
    """Whether only weights of BM25 or query likelihood are damaged, which are computed from the postings."""
    return found.kind == "bm25" and folder not in found.damaged


def _drop_weights(found: indexes.IndexCheck) -> list[str]:
    for folder in found.damaged:
        shutil.rmtree(folder)
    return [f"{folder}: removed; it is recomputed from the postings at the next search" for folder in found.damaged]


def _rebuild(folder: Path) -> list[str]:
    source = indexes.read_source(folder) or {}
    made = folder.with_name(f".{folder.name}.rebuilding")
    shutil.rmtree(made, ignore_errors=True)
    try:
        index_documents(source["docs"], made, source["ranker"], source["settings"], source["fields"], source["texts"])
        if not indexes.same_documents(folder, made):
            command = indexes.rebuild_command(folder, source["ranker"])
            raise ConfigError(
                f"index {folder}: the documents in {source['docs']} have changed since the index was built; to "
                f"index the new documents, delete the index and run: {command}"
            )
        indexes.put_in_place(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return [f"{folder}: rebuilt from {source['docs']}"]


def _store(store: Store, path: str, repair: bool, trust_store: bool = False) -> Verified:
    found = steps.check_store(store)
    folders = sorted(path.parent for path in store.local.glob("index-*/header.json"))
    made = {folder: indexes.check_index(folder) for folder in folders}
    done = Verified("store", path, [one.message for one in found.damaged])
    done.wrong += [line for one in made.values() for line in one.messages]
    done.counts = {"steps": found.steps, "parts": found.parts, "indexes": len(made)}
    if done.ok or not repair:
        return done
    for folder, one in made.items():
        if one.damaged and _only_weights(folder, one):
            done.repaired += _drop_weights(one)
    broken = [folder for folder, one in made.items() if one.damaged and not _only_weights(folder, one)]
    _compute_again(store, path, found.damaged, broken, done, trust_store)
    again = _store(store, path, repair=False)
    done.wrong, done.counts = [*again.wrong, *steps.same_as_before(store, found.damaged)], again.counts
    return done


def _compute_again(
    store: Store, path: str, damaged: Sequence[steps.Damage], broken: Sequence[Path], done: Verified, trust_store: bool
) -> None:
    """Remove the damaged folders that recorded recipes can make, and run these recipes; add notes on the others."""
    left = {one.folder for one in damaged} | {folder.name for folder in broken}
    for build in _builds(store, done, trust_store):
        # A build makes a folder as a step, or as an index or mentions that its steps refer to by key.
        folders = {f"{step}-{key}" for step, key in build.plan.keys().items()}
        known = json.dumps([dict(step.stage.settings()) for step in build.plan.steps])
        known += build.resources.index_key("bm25", {})
        own = {name for name in left if name in folders or name.rpartition("-")[2] in known}
        if not own:
            continue
        left -= own
        mine = [one for one in damaged if one.folder in own]
        steps.remove_damaged(store, mine)
        for folder in broken:
            if folder.name in own:
                shutil.rmtree(folder)
        _run(build, store, mine)
        done.repaired += [f"{path}/{name}: recomputed from the recipe {build.recipe.name}" for name in sorted(own)]
    for name in sorted(left):
        verb = "annotate DOCS" if name.startswith("mentions-") else "run RECIPE"
        done.notes.append(
            f"{path}/{name}: the store has no record of the recipe that makes it; delete it and run: "
            f"askew {verb} --store {path}"
        )


def _builds(store: Store, done: Verified, trust_store: bool) -> list[Build]:
    """Return the recipes that were run in the store and would still make the same steps."""
    found = []
    for origin in store.plans():
        name = str(origin.get("recipe"))
        if (power := needs_trust(origin.get("sections"))) and not trust_store:
            done.notes.append(trust_note(power, f"recipe {name}: nothing was recomputed from this recipe"))
            continue
        try:
            build = prepare(Recipe(name, origin["sections"]), store, until=origin["steps"][-1][0])
            same = [list(one) for one in build.plan.keys().items()] == origin["steps"]
        except (AskewError, KeyError, IndexError, TypeError) as error:
            done.notes.append(
                f"recipe {name}: 'askew verify --repair' recomputed nothing from this recipe, because the recipe "
                f"cannot be run again ({error})"
            )
            continue
        if same:
            found.append(build)
        else:
            done.notes.append(
                f"recipe {name}: 'askew verify --repair' recomputed nothing from this recipe, because its collection "
                "or the version of askew has changed since the build"
            )
    return found


def _run(build: Build, store: Store, damaged: Sequence[steps.Damage]) -> None:
    """Run missing steps with the earlier sizes of parts; rebuild indexes and mentions even if no step needs them."""
    sizes = {
        one.step: one.manifest.parts[0].stop - one.manifest.parts[0].start
        for one in damaged
        if one.manifest is not None and len(one.manifest.parts) > 1
    }
    again = [replace(step, shard_rows=sizes.get(step.name, step.shard_rows)) for step in build.plan.steps]
    Plan(build.plan.sources, again).run(store)
    for step in build.plan.steps:
        prepare_stage = getattr(step.stage, "prepare", None)
        if prepare_stage is not None:
            prepare_stage()
