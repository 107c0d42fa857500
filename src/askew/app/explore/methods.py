"""Which methods and filters make reformulations in the explorer."""

from __future__ import annotations

from typing import Any

from askew.app.build.recipe import Recipe, read_recipe
from askew.app.explore.plan import RecordedPlan
from askew.models.find import has_smollm

USUAL = "refairmulate"
# It reads a file with reformulations of some queries, so of a query that somebody types it has none.
_ONLY_KNOWN = "replay"
_DEMO = "demo"
# Somebody waits: fewer texts of each kind are written than for a dataset.
_WRITER, _QUICK = "rewrite", {"samples": 3}


def suggesting_recipe(given: str | None, plan: RecordedPlan | None) -> Recipe:
    """The recipe that is given; that of the store where it can reformulate any query; else the usual one."""
    if given is not None:
        return read_recipe(given)
    if plan is not None and plan.recipe.name != _DEMO and (methods := _for_any_query(plan.recipe)):
        return Recipe(plan.recipe.name, {**plan.recipe.sections, "reformulate": methods})
    return usual_recipe()


def usual_recipe() -> Recipe:
    """Methods that keep the meaning, checked by the filter equivalence; without a language model those that need none.

    The filter takes the best model that is installed.
    """
    recipe = read_recipe(USUAL)
    methods = [
        {**one, **_QUICK} if one["method"] == _WRITER else one
        for one in recipe.tables("reformulate") if one["method"] != _WRITER or has_smollm()
    ]  # fmt: skip
    return Recipe(recipe.name, {**recipe.sections, "reformulate": methods})


def _for_any_query(recipe: Recipe) -> list[dict[str, Any]]:
    return [one for one in recipe.tables("reformulate") if one.get("method") != _ONLY_KNOWN]
