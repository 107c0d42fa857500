"""Summarize a build: the means of each subset before and after reformulation, held out and in-sample."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import polars as pl

from askew.core.defaults import HELD_OUT, IN_SAMPLE
from askew.core.lexicon import Lexicon
from askew.core.measure import Direction, column_of, held_out_gain_column, new_column, old_column
from askew.core.protocols import SelectorPlugin
from askew.core.store.steps import StepOutcome
from askew.core.store.store import Store
from askew.pairs.gains import PairParts, find_measures
from askew.pairs.held_out import DRAWS, LEANS, PLACEBO, STEP, chosen_subsets
from askew.pairs.plan import Build
from askew.pairs.resources import frames_of, step_parts
from askew.pairs.stages import Evaluate
from askew.pairs.summary import EVERY, summarize
from askew.pairs.tables import cross_table

# The names of steps that score the chosen pairs with the other rankers of a recipe (``[[cross]]``).
CROSS = "cross-"
PAIRS = "pairs"


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


_FIGURES = ("old_mean", "new_mean", "change", "low", "high")


def counted_groups(evaluate: Evaluate) -> list[tuple[Lexicon, list[str]]]:
    """Return the lexicons of the measures, each with the groups that a measure counts."""
    found = []
    for lexicon in evaluate.lexicons():
        used = {name for one in evaluate.asked if one.measure.param("lexicon") == lexicon.id for name in one.groups}
        found.append((lexicon, [name for name in lexicon.group_names if name in used or not used]))
    return found


class Results:
    """A finished build: its plan, its store, the outcome of each step, and the tables of its figures."""

    def __init__(self, build: Build, store: Store, outcomes: Mapping[str, StepOutcome]) -> None:
        self.build, self.store, self.outcomes = build, store, outcomes

    def rows_of(self, step: str) -> PairParts | None:
        """Return the rows of a step that keeps queries together; None without this step or without rows."""
        outcome = self.outcomes.get(step)
        return step_parts(self.store, outcome.manifest) if outcome and outcome.manifest.parts else None

    @cached_property
    def in_sample(self) -> pl.DataFrame | None:
        """The in-sample means of the chosen pairs (as Table 1 of Refairmulate); None if the build has no pairs."""
        stage, rows, evaluate = self.build.select, self.rows_of(PAIRS), self.build.evaluate
        if stage is None or rows is None:
            return None
        tolerance = float(stage.selector.settings().get("tolerance", 0.0))
        return summarize(rows, evaluate.directions, stage.selector.subsets, tolerance)

    @cached_property
    def summary(self) -> pl.DataFrame | None:
        """The held-out means of each subset of pairs before and after reformulation, and the in-sample means.

        Pairs are chosen with one half of the documents and measured on the other half. If there is no held-out value,
        the in-sample value is used, and the column ``figures`` says so. The summary is None if no pair was chosen.
        """
        return None if self.in_sample is None else headline(self.in_sample, self.held_out)

    @cached_property
    def held_out(self) -> pl.DataFrame | None:
        """The means in the half of the documents that did not choose the pairs; None if the recipe turns them off.

        ``pairs`` counts a pair once for each of the ``choices`` (splits, in both directions) that chose it.
        """
        stage, rows = self.build.select, self.rows_of(STEP)
        if stage is None or rows is None:
            return None
        evaluate = self.build.evaluate
        choices = rows.map(["split", "chosen_by"], pl.DataFrame.unique).n_unique()
        found = summarize(rows, evaluate.directions, chosen_subsets(stage))
        return found.select(pl.lit(choices).alias("choices"), pl.all()) if choices else None

    @cached_property
    def placebo(self) -> pl.DataFrame | None:
        """The number of pairs that the same selection chooses on placebo lists, where only chance leans.

        For each subset, ``pairs`` of the build, the mean of all draws (``placebo``) with the ``fewest`` and the
        ``most``, and ``share``, the mean relative to ``pairs``: the share that choosing among chance gains explains.
        ``untested`` is the mean if original queries need not lean beyond chance. None without this step.
        """
        stage, outcome, rows = self.build.select, self.outcomes.get(PLACEBO), self.rows_of(PAIRS)
        if stage is None or outcome is None:
            return None
        subsets, found = chosen_subsets(stage), []
        chosen = frames_of(self.store, outcome.manifest)
        drawn = pl.concat(chosen) if outcome.manifest.parts else None
        sizes = dict.fromkeys(subsets, 0) if rows is None else rows.count(*subsets)
        for name in subsets:
            counts = [0] * DRAWS
            part = None if drawn is None else drawn.filter(name)
            for draw, count in [] if part is None else part.filter(LEANS)["draw"].value_counts().rows():
                counts[draw] = count
            mean = sum(counts) / DRAWS
            found.append({
                "subset": name, "pairs": sizes[name], "placebo": mean, "fewest": min(counts), "most": max(counts),
                "share": mean / sizes[name] if sizes[name] else None,
                "untested": 0.0 if part is None else part.height / DRAWS,
            })  # fmt: skip
        return pl.DataFrame(found, schema_overrides={"share": pl.Float64})

    @cached_property
    def all_candidates(self) -> pl.DataFrame | None:
        """The in-sample means of all candidates, selected or not: the baseline of a random selection.

        None if the build has no pairs.
        """
        rows = self.rows_of(PAIRS)
        if rows is None:
            return None
        evaluate = self.build.evaluate
        return summarize(rows, evaluate.directions, [EVERY])

    @cached_property
    def other_rankers(self) -> pl.DataFrame | None:
        """The change of the first measure of lean and the first of effectiveness with each ranker of [[cross]].

        ``took_part`` is true for rankers that were used to choose pairs. The report has all measures. None if the
        recipe has no section [[cross]], or no pair was chosen.
        """
        stage, evaluate = self.build.select, self.build.evaluate
        if stage is None:
            return None
        effectiveness, lean = first_measures(stage.selector, evaluate)
        found = self.across({name: evaluate.directions[name] for name in (lean, effectiveness) if name is not None})
        return None if found is None else found.with_columns(took_part=pl.col("ranker").is_in(list(stage.across)))

    def across(self, directions: Mapping[str, Direction]) -> pl.DataFrame | None:
        """The means of some measures for the chosen pairs with each ranker of [[cross]]; None without such scores."""
        steps = [step for step in self.build.plan.steps if step.name.startswith(CROSS)]
        if self.build.select is None or not steps or PAIRS not in self.outcomes:
            return None
        subsets = chosen_subsets(self.build.select)
        every = step_parts(self.store, self.outcomes[PAIRS].manifest)
        chosen = every.filter(pl.any_horizontal(*subsets)).map(["query_id", "variant_id", *subsets], lambda part: part)
        columns = ["query_id", "variant_id", "method", *map(column_of, directions)]
        variants = pl.concat([chosen["variant_id"], chosen["query_id"].alias("variant_id")]).unique()
        wanted, rankers = pl.col("variant_id").is_in(variants.implode()), {}
        for step in steps:
            outcome = self.outcomes.get(step.name)
            # A ranker that searched nothing is left out.
            if outcome and outcome.manifest.parts and isinstance(step.stage, Evaluate):
                frames = frames_of(self.store, outcome.manifest, columns)
                rankers[step.name.removeprefix(CROSS)] = pl.concat(frame.filter(wanted) for frame in frames)
        return cross_table(chosen, rankers, directions, subsets) if rankers else None


def held_out_gains(rows: pl.DataFrame, directions: Mapping[str, Direction]) -> pl.DataFrame:
    """Return for each pair that a half of the documents chose its mean gains in the other half, over all choices."""
    gains = []
    for name, direction in directions.items():
        old, new = (rows[side(name)].to_numpy() for side in (old_column, new_column))
        gains.append(pl.Series(held_out_gain_column(name), direction.gain(old, new)))
    table = rows.select("query_id", "variant_id").with_columns(gains)
    return table.group_by("query_id", "variant_id", maintain_order=True).agg(pl.all().fill_nan(None).mean())


def headline(in_sample: pl.DataFrame, held_out: pl.DataFrame | None) -> pl.DataFrame:
    """Return one row for each subset and measure, with the held-out values if there are any, and the in-sample values.

    ``figures`` says whether ``old_mean``, ``new_mean``, ``change``, ``low`` and ``high`` are held out (over
    ``held_out_pairs`` pairs of all choices) or in-sample. ``pairs``, ``queries`` and the counts of pairs are those of
    the subset itself.
    """
    keys = ["subset", "measure"]
    table = in_sample.rename({name: f"in_sample_{name}" for name in _FIGURES})
    found = in_sample.clear() if held_out is None else held_out
    names = [pl.col(name).alias(f"held_out_{name}") for name in ("pairs", "queries", *_FIGURES)]
    table = table.join(found.select(*keys, *names), on=keys, how="left", maintain_order="left")
    known = pl.col("held_out_old_mean").is_not_null()
    picked = [pl.when(known).then(f"held_out_{name}").otherwise(f"in_sample_{name}").alias(name) for name in _FIGURES]
    told = pl.when(known).then(pl.lit(HELD_OUT)).otherwise(pl.lit(IN_SAMPLE)).alias("figures")
    counts = ["of", "pairs", "queries", "improved_pairs", "unchanged_pairs", "worsened_pairs", "zero_pairs"]
    beside = [f"in_sample_{name}" for name in _FIGURES]
    more = ["held_out_pairs", "held_out_queries"]
    return table.with_columns(*picked, told).select(*keys, "figures", *_FIGURES, *beside, *counts, *more)
