"""Open the input of a bench: a collection, a recipe or the store of a build, and the groups to count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from askew.core.errors import ConfigError
from askew.core.groups import Groups, GroupsLike
from askew.core.plugins import refuse_other_groups
from askew.core.store.store import Store
from askew.measures.catalogue import Catalogue, MeasureRequest
from askew.pairs.plan import resources_of
from askew.pairs.recipe import Recipe, groups_of, read_recipe
from askew.pairs.resources import Resources
from askew.study.bench.methods import MitigationMethod
from askew.train.selector import LEAN


@dataclass(frozen=True)
class BenchInput:
    """A collection in a store, and the groups to count; None for the default groups of the measures."""

    resources: Resources
    groups: Groups | None


def open_input(source: object, store: str | Path, groups: GroupsLike | None = None) -> BenchInput:
    """Open a collection, a recipe (a ``Recipe`` or a .toml file), or a build (the folder of its store).

    The groups of a recipe are used unless ``groups`` are given. The store of a build is used in place of ``store``.
    """
    given = None if groups is None else Groups.of(groups)
    built = _built_recipe(source)
    recipe = built or (source if isinstance(source, Recipe) else None)
    if recipe is None and isinstance(source, str | Path) and Path(source).suffix == ".toml":
        recipe = read_recipe(source)
    if recipe is None:
        return BenchInput(Resources(source, Store(store)), given)
    used = Store(str(source) if built else store)
    return BenchInput(resources_of(recipe, used), groups_of(recipe) if given is None else given)


def _built_recipe(source: object) -> Recipe | None:
    """Return the recipe of the builds in a store; None if the source is not a store."""
    # "demo" always means the embedded collection, even if there is a folder of that name.
    if not isinstance(source, str | Path) or source == "demo" or not Path(source).is_dir():
        return None
    found = [Recipe(str(plan.get("recipe")), plan.get("sections", {})) for plan in Store(source).plans()]
    different = {repr((one.table("collection"), one.table("groups"))): one for one in found}
    if len(different) > 1:
        listed = ", ".join(sorted({one.name for one in found}))
        raise ConfigError(
            f"store {source}: its builds ({listed}) have different collections or groups; give a recipe, or a "
            "collection and ⟨groups⟩",
            code="different-builds",
        )
    return next(iter(different.values()), None)


def check_groups(methods: Sequence[MitigationMethod], lean: MeasureRequest, groups: Groups | None) -> None:
    """Refuse a method that counts other groups than ``groups``, or than the measure of lean if none are given."""
    measured = lean.groups if groups is None else groups.names
    for method in [part for one in methods for part in one.parts]:
        if not method.counts_groups:
            continue
        own = method.settings.get("groups")
        refuse_other_groups(own, measured, f"method {method.text}")
        # A reformulator has its own published default groups; methods that reorder count the groups of the measure.
        fixed = own is None and groups is None
        if fixed and measured and set(measured) != set(Catalogue().complete([LEAN])[0].groups):
            raise ConfigError(
                f"method {method.text}: the groups of this method differ from the groups of {lean.text} "
                f"({', '.join(measured)}); give ⟨groups⟩, so that the method and the measure count the same groups",
                code="other-groups",
                method=method.text,
                groups=measured,
            )
