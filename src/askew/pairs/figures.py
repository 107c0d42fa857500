"""Summarize a build: the means of each subset before and after reformulation, held out and in-sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from askew.core.defaults import HELD_OUT, IN_SAMPLE
from askew.core.lexicon import Lexicon
from askew.core.measure import Direction, column_of, held_out_gain_column, new_column, old_column
from askew.core.protocols import SelectorPlugin
from askew.core.store.manifest import Manifest
from askew.core.store.steps import StepOutcome
from askew.core.store.store import Store
from askew.pairs.gains import PairParts, find_measures
from askew.pairs.held_out import DOCUMENTS, RANKS, SCHEMES, STEP, WORDS, chosen_subsets
from askew.pairs.plan import Build
from askew.pairs.resources import frames_of, step_parts
from askew.pairs.stages import Evaluate, Select
from askew.pairs.summary import summarize
from askew.pairs.tables import EVERY, cross_table

# Scores of the chosen pairs with the other rankers of a recipe (``[[cross]]``).

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


_FIGURES = ("old_mean", "new_mean", "change", "low", "high")


def counted_groups(evaluate: Evaluate) -> list[tuple[Lexicon, list[str]]]:
    """Return the lexicons of the measures, each with the groups that a measure counts."""
    found = []
    for lexicon in evaluate.lexicons():
        used = {name for one in evaluate.asked if one.measure.param("lexicon") == lexicon.id for name in one.groups}
        found.append((lexicon, [name for name in lexicon.group_names if name in used or not used]))
    return found


def summary_of(
    store: Store, outcomes: Mapping[str, StepOutcome], stage: Select | None, evaluate: Evaluate
) -> pl.DataFrame | None:
    """Return the in-sample means of the chosen pairs (as Table 1 of Refairmulate); None if the build has no pairs."""
    if stage is None or not outcomes["pairs"].manifest.parts:
        return None
    pairs = step_parts(store, outcomes["pairs"].manifest)
    return summarize(pairs, evaluate.directions, stage.selector.subsets, evaluate.bounds)


def candidates_of(pairs: PairParts, evaluate: Evaluate) -> pl.DataFrame:
    """Return the in-sample means of all candidates, selected or not."""
    return summarize(pairs.with_flag(EVERY), evaluate.directions, [EVERY], evaluate.bounds)


def held_out_of(
    store: Store, outcomes: Mapping[str, StepOutcome], stage: Select | None, evaluate: Evaluate
) -> pl.DataFrame | None:
    """Return the table of ``summary_of`` with held-out means, by scheme; None without a held-out step or chosen pairs.

    ``pairs`` counts a pair once for each of the ``choices`` (splits, in both directions) that chose it.
    """
    if stage is None or STEP not in outcomes or not outcomes[STEP].manifest.parts:
        return None
    return held_out_table(step_parts(store, outcomes[STEP].manifest), stage, evaluate)


def held_out_table(rows: PairParts, stage: Select, evaluate: Evaluate) -> pl.DataFrame | None:
    """Compute the means before and after reformulation over all choices, with intervals.

    The means are those in the part of the data that did not choose the pairs.
    """
    tables = []
    made = rows.map(["scheme", "split", "chosen_by"], pl.DataFrame.unique).unique()
    for scheme in SCHEMES:
        part, choices = rows.filter(pl.col("scheme") == scheme), made.filter(scheme=scheme).height
        if choices:
            found = summarize(part, evaluate.directions, chosen_subsets(stage), evaluate.bounds)
            tables.append(found.select(pl.lit(scheme).alias("scheme"), pl.lit(choices).alias("choices"), pl.all()))
    return pl.concat(tables) if tables else None


def held_out_gains(rows: pl.DataFrame, directions: Mapping[str, Direction]) -> pl.DataFrame:
    """Return for each pair that a half of the documents chose its mean gains in the other half, over all choices."""
    part = rows.filter(pl.col("scheme") == DOCUMENTS)
    gains = []
    for name, direction in directions.items():
        old, new = (part[side(name)].to_numpy() for side in (old_column, new_column))
        gains.append(pl.Series(held_out_gain_column(name), direction.gain(old, new)))
    table = part.select("query_id", "variant_id").with_columns(gains)
    return table.group_by("query_id", "variant_id", maintain_order=True).agg(pl.all().fill_nan(None).mean())


def headline(in_sample: pl.DataFrame, held_out: pl.DataFrame | None) -> pl.DataFrame:
    """Return one row for each subset and measure, with the held-out values if there are any, and the in-sample values.

    ``figures`` says whether ``old_mean``, ``new_mean``, ``change``, ``low`` and ``high`` are held out by documents
    (over ``held_out_pairs`` pairs of all choices) or in-sample. ``pairs``, ``queries`` and the counts of pairs are
    those of the subset itself. ``words_change`` and ``ranks_change`` are held out by words and by ranks.
    """
    keys = ["subset", "measure"]
    table = in_sample.rename({name: f"in_sample_{name}" for name in _FIGURES})
    for scheme, prefix in ((DOCUMENTS, "held_out"), (WORDS, WORDS), (RANKS, RANKS)):
        found = in_sample.clear() if held_out is None else held_out.filter(pl.col("scheme") == scheme)
        names = [pl.col(name).alias(f"{prefix}_{name}") for name in ("pairs", "queries", *_FIGURES)]
        table = table.join(found.select(*keys, *names), on=keys, how="left", maintain_order="left")
    known = pl.col("held_out_old_mean").is_not_null()
    picked = [pl.when(known).then(f"held_out_{name}").otherwise(f"in_sample_{name}").alias(name) for name in _FIGURES]
    told = pl.when(known).then(pl.lit(HELD_OUT)).otherwise(pl.lit(IN_SAMPLE)).alias("figures")
    counts = ["of", "pairs", "queries", "improved_pairs", "unchanged_pairs", "worsened_pairs", "zero_pairs"]
    beside = [f"in_sample_{name}" for name in _FIGURES]
    others = [f"{scheme}_{name}" for scheme in (WORDS, RANKS) for name in ("pairs", *_FIGURES)]
    more = ["held_out_pairs", "held_out_queries", *others]
    return table.with_columns(*picked, told).select(*keys, "figures", *_FIGURES, *beside, *counts, *more)
