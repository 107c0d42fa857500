"""The steps of a store as they hang together: who reads whom, how many rows went along, what was dropped and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from askew.app.build.origin import remembered_groups
from askew.app.build.recipe import Recipe, groups_of
from askew.core.errors import check_name
from askew.core.groups import Groups
from askew.engine.files import LocalFiles
from askew.engine.manifest import Manifest
from askew.engine.store import Store


@dataclass(frozen=True)
class StepNode:
    """A finished step. ``reads`` is the step before it, None where it reads a source; ``depth`` counts its forks."""

    name: str
    step: str
    stage: str
    rows_in: int
    rows_out: int
    dropped: Mapping[str, int]
    reads: str | None
    depth: int


def name_of(manifest: Manifest) -> str:
    """How a step is called in a store."""
    return f"{manifest.step}-{manifest.key}"


def plan_of(store: Store) -> list[StepNode]:
    """The finished steps, each after the one it reads. What reads the same step stands one below the other."""
    steps = sorted(store.steps(), key=name_of)
    by_key = {one.key: one for one in steps}
    readers: dict[str | None, list[Manifest]] = {}
    for one in steps:
        source = one.input_key if one.input_key in by_key and one.input_key != one.key else None
        readers.setdefault(source, []).append(one)
    nodes: list[StepNode] = []

    def follow(one: Manifest, reads: str | None, depth: int) -> None:
        nodes.append(StepNode(name_of(one), one.step, one.stage, one.rows_in, one.rows_out, one.dropped, reads, depth))
        for number, reader in enumerate(_longest_first(readers.get(one.key, []), readers)):
            # The longest line goes straight on; others branch off.
            follow(reader, name_of(one), depth + min(number, 1))

    for root in _longest_first(readers.get(None, []), readers):
        follow(root, None, 0)
    return nodes


def _longest_first(found: list[Manifest], readers: Mapping[str | None, list[Manifest]]) -> list[Manifest]:
    def length(one: Manifest) -> int:
        return 1 + max((length(reader) for reader in readers.get(one.key, [])), default=0)

    return sorted(found, key=lambda one: (-length(one), name_of(one)))


def made_at(store: Store, manifest: Manifest) -> float:
    """When a step was finished, in seconds; 0 in a store where that is not known."""
    if not isinstance(store.files, LocalFiles):
        return 0.0
    return (store.folder(manifest.step, manifest.key) / "manifest.json").stat().st_mtime


@dataclass(frozen=True)
class RecordedPlan:
    """What a store was made by: the recipe, where its collection was, its groups, and the key of each step.

    ``groups`` are None where the recipe has none: published defaults hold.
    """

    recipe: Recipe
    source: str
    groups: Groups | None
    keys: Mapping[str, str]

    def manifest(self, store: Store, step: str) -> Manifest | None:
        """A step of the plan; None where it is not finished."""
        wanted = step, self.keys.get(step)
        return next((one for one in store.steps() if (one.step, one.key) == wanted), None)


def recorded_plan(store: Store) -> RecordedPlan | None:
    """The plan that the steps finished last were made by; None where the store has recorded none."""
    times = {(one.step, one.key): made_at(store, one) for one in store.steps()}

    def finished(plan: Mapping[str, Any]) -> tuple[list[float], bool]:
        ends = (times[step, key] for step, key in plan["steps"] if (step, key) in times)
        return sorted(ends, reverse=True), "collection" in plan

    plans = [one for one in store.plans() if {"recipe", "sections", "steps"} <= one.keys()]
    last = max(plans, key=finished, default=None)
    if last is None:
        return None
    recipe = Recipe(str(last["recipe"]), last["sections"])
    # A plan of an earlier version names neither: then it is as the recipe has it.
    source = str(last.get("collection", recipe.table("collection").get("source")))
    groups = remembered_groups(last["groups"]) if "groups" in last else groups_of(recipe)
    return RecordedPlan(recipe, source, groups, {str(step): str(key) for step, key in last["steps"]})


def recorded_recipe(store: Store) -> Recipe | None:
    """The recipe of that plan."""
    found = recorded_plan(store)
    return None if found is None else found.recipe


@dataclass(frozen=True)
class StepFile:
    """The manifest of a step, and when and where it was made, as far as that is known."""

    manifest: Manifest
    made: Mapping[str, Any]


def step_of(store: Store, name: str) -> StepFile:
    """A finished step by its name. Only names that the store itself lists are looked up."""
    known = {name_of(one): one for one in store.steps()}
    check_name("step", name, known)
    try:
        made = json.loads(store.files.read(f"{name}/provenance.json"))
    except (OSError, ValueError):
        made = {}
    return StepFile(known[name], made if isinstance(made, dict) else {})
