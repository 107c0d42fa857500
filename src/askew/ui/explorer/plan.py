"""Read the steps of a store: which step reads which, how many rows each has, and what was dropped."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from askew.core.errors import check_name
from askew.core.files import parse_json
from askew.core.groups import Groups
from askew.core.store.manifest import Manifest
from askew.core.store.store import Store
from askew.pairs.plan import remembered_groups
from askew.pairs.recipe import Recipe, groups_of


@dataclass(frozen=True)
class StepNode:
    """A finished step; ``reads`` is the step before it, None for a source."""

    name: str
    step: str
    stage: str
    rows_in: int
    rows_out: int
    dropped: Mapping[str, int]
    reads: str | None


def name_of(manifest: Manifest) -> str:
    """Return the name of a step in a store."""
    return f"{manifest.step}-{manifest.key}"


def plan_of(store: Store) -> list[StepNode]:
    """Return the finished steps, each after the step that it reads; steps that read the same step are adjacent."""
    steps = sorted(store.steps(), key=name_of)
    by_key = {one.key: one for one in steps}
    readers: dict[str | None, list[Manifest]] = {}
    for one in steps:
        source = one.input_key if one.input_key in by_key and one.input_key != one.key else None
        readers.setdefault(source, []).append(one)
    nodes: list[StepNode] = []

    def length(one: Manifest) -> int:
        return 1 + max(map(length, readers.get(one.key, [])), default=0)

    def follow(key: str | None, reads: str | None) -> None:
        # The longest chain comes first.
        for one in sorted(readers.get(key, []), key=lambda one: (-length(one), name_of(one))):
            nodes.append(StepNode(name_of(one), one.step, one.stage, one.rows_in, one.rows_out, one.dropped, reads))
            follow(one.key, name_of(one))

    follow(None, None)
    return nodes


def made_at(store: Store, manifest: Manifest) -> float:
    """Return the time at which a step was finished, in seconds."""
    return (store.folder(manifest.step, manifest.key) / "manifest.json").stat().st_mtime


def rows_of(store: Store, manifest: Manifest) -> pl.LazyFrame:
    """Return the rows of a step, which are read lazily."""
    folder = store.folder(manifest.step, manifest.key)
    return pl.scan_parquet([folder / part.file for part in manifest.parts])


@dataclass(frozen=True)
class RecordedPlan:
    """The recorded plan of a store: the recipe, the path of its collection, its groups, and the key of each step.

    ``groups`` are None if the recipe uses the published defaults.
    """

    recipe: Recipe
    source: str
    groups: Groups | None
    keys: Mapping[str, str]

    def manifest(self, store: Store, step: str) -> Manifest | None:
        """Return the manifest of a step of the plan; None if it is not finished."""
        wanted = step, self.keys.get(step)
        return next((one for one in store.steps() if (one.step, one.key) == wanted), None)


def recorded_plan(store: Store) -> RecordedPlan | None:
    """Return the plan with the most recently finished steps; None if the store has recorded no plan.

    A file that is no plan is left out.
    """
    times = {(one.step, one.key): made_at(store, one) for one in store.steps()}

    def finished(plan: Mapping[str, Any]) -> tuple[list[float], bool]:
        ends = (times[step, key] for step, key in plan["steps"] if (step, key) in times)
        return sorted(ends, reverse=True), "collection" in plan

    plans = [one for one in store.plans() if {"recipe", "sections"} <= one.keys() and _has_steps(one)]
    for last in sorted(plans, key=finished, reverse=True):
        with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
            recipe = Recipe(str(last["recipe"]), dict(last["sections"]))
            # A plan of an earlier version has neither; then both are read from the recipe.
            source = str(last.get("collection", recipe.table("collection").get("source")))
            groups = remembered_groups(last["groups"]) if "groups" in last else groups_of(recipe)
            return RecordedPlan(recipe, source, groups, dict(last["steps"]))
    return None


def _has_steps(plan: Mapping[str, Any]) -> bool:
    steps = plan.get("steps")
    pairs = steps if isinstance(steps, list) else [None]
    return all(isinstance(one, list) and [type(part) for part in one] == [str, str] for one in pairs)


def step_of(store: Store, name: str) -> tuple[Manifest, Mapping[str, Any]]:
    """Return a finished step by name, and its provenance (time, machine) if it is known.

    Only names that the store lists are accepted.
    """
    known = {name_of(one): one for one in store.steps()}
    check_name("step", name, known)
    try:
        made = parse_json(store.files.read(f"{name}/provenance.json"))
    except (OSError, ValueError):
        made = {}
    return known[name], made if isinstance(made, dict) else {}
