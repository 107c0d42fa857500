"""Scores of the chosen pairs with the other rankers of a recipe (``[[cross]]``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from askew.app.build.crossfit import chosen_subsets
from askew.app.build.prepare import Build
from askew.app.build.rows import frames_of, step_parts
from askew.app.build.scores import Evaluate
from askew.core.measure import Direction, column_of
from askew.engine.manifest import Manifest
from askew.engine.run import StepOutcome
from askew.engine.store import Store
from askew.plugins.kinds import SelectorPlugin
from askew.selectors.settings import find_measures
from askew.selectors.tables import cross_table

CROSS, HARD = "cross-", "hard-"


def named_measures(given: Any, directions: Mapping[str, Direction]) -> tuple[str, ...]:
    """Return the measures in a setting of a selector, which is one text or several."""
    return find_measures([given] if isinstance(given, str) else list(given), directions, "report")


def sides_of(selector: SelectorPlugin, evaluate: Evaluate) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the measures of effectiveness (by default the first that reads judgements) and of lean of a selector."""
    given, known = dict(selector.settings()), evaluate.directions
    effectiveness = given.get("effectiveness", given.get("measure", evaluate.judged[:1]))
    return named_measures(effectiveness, known), named_measures(given.get("bias", []), known)


def first_measures(selector: SelectorPlugin, evaluate: Evaluate) -> tuple[str, str | None]:
    """Return the first measures of effectiveness and of lean of a selector, or else of the reported measures."""
    effectiveness, lean = sides_of(selector, evaluate)
    leaning = [one.text for one in evaluate.asked if "mentions" in one.family.reads]
    return (*effectiveness, *evaluate.directions)[0], (*lean, *leaning, None)[0]


def scores_under(
    build: Build, store: Store, outcomes: Mapping[str, StepOutcome], pairs: pl.DataFrame, prefix: str = CROSS
) -> dict[str, pl.DataFrame]:
    """Return the scores of some pairs and of their originals with other rankers, by the name of the ranker.

    A ranker that searched nothing is left out.
    """
    columns = ["query_id", "variant_id", "method", *map(column_of, build.evaluate.directions)]
    steps = [step.name for step in build.plan.steps if isinstance(step.stage, Evaluate)]
    found = [name for name in steps if name.startswith(prefix) and name in outcomes and outcomes[name].manifest.parts]
    return {name.removeprefix(prefix): scores_of(store, outcomes[name].manifest, pairs, columns) for name in found}


def scores_of(store: Store, manifest: Manifest, pairs: pl.DataFrame, columns: list[str] | None = None) -> pl.DataFrame:
    """Return the scores of some pairs and of their originals from a step that scored them."""
    variants = pl.concat([pairs["variant_id"], pairs["query_id"].alias("variant_id")]).unique()
    wanted = pl.col("variant_id").is_in(variants.implode())
    return pl.concat(part.filter(wanted) for part in frames_of(store, manifest, columns))


def chosen_keys(store: Store, outcomes: Mapping[str, StepOutcome], subsets: Sequence[str]) -> pl.DataFrame:
    """Return the ids of all chosen pairs, with their subsets."""
    pairs = step_parts(store, outcomes["pairs"].manifest)
    columns = ["query_id", "variant_id", *subsets]
    return pairs.filter(pl.any_horizontal(*subsets)).map(columns, lambda part: part)


def other_rankers(build: Build, store: Store, outcomes: Mapping[str, StepOutcome]) -> pl.DataFrame | None:
    """Return the change of the first measures of lean and effectiveness in each chosen subset with each other ranker.

    ``took_part`` is true for rankers that were used to choose pairs. The result is None if there is no other ranker, or
    no pair.
    """
    stage = build.select
    if stage is None or not any(step.name.startswith(CROSS) for step in build.plan.steps):
        return None
    pairs = chosen_keys(store, outcomes, chosen_subsets(stage))
    rankers = scores_under(build, store, outcomes, pairs)
    if not rankers:
        return None
    effectiveness, lean = first_measures(stage.selector, build.evaluate)
    measures = {name: build.evaluate.directions[name] for name in (lean, effectiveness) if name is not None}
    found = cross_table(pairs, rankers, measures, chosen_subsets(stage), build.evaluate.bounds)
    return found.with_columns(took_part=pl.col("ranker").is_in(list(stage.across)))
