"""Choose the methods and filters for reformulations in the explorer."""

from __future__ import annotations

from typing import Any

from askew.app.build.recipe import Recipe, read_recipe
from askew.app.explore.plan import RecordedPlan
from askew.models.find import has_smollm

USUAL = "refairmulate"
# This method reads reformulations of known queries from a file, so it has none for a query that a user types.
_ONLY_KNOWN = "replay"
_DEMO = "demo"
# The user waits, so fewer texts are sampled than for a dataset.
_WRITER, _QUICK = "rewrite", {"samples": 3}


def suggesting_recipe(given: str | None, plan: RecordedPlan | None) -> Recipe:
    """Return the given recipe, else that of the store if it can reformulate any query, else the default."""
    if given is not None:
        return read_recipe(given)
    if plan is not None and plan.recipe.name != _DEMO and (methods := _for_any_query(plan.recipe)):
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


def _for_any_query(recipe: Recipe) -> list[dict[str, Any]]:
    return [one for one in recipe.tables("reformulate") if one.get("method") != _ONLY_KNOWN]
