"""Summarize a build: the means of each subset before and after reformulation, held out and in-sample."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from askew.app.build.crossfit import DOCUMENTS, RANKS, SCHEMES, STEP, WORDS, chosen_subsets
from askew.app.build.pairs import Select
from askew.app.build.rows import step_parts
from askew.app.build.scores import Evaluate
from askew.core.figures import HELD_OUT, IN_SAMPLE
from askew.core.lexicon import Lexicon
from askew.core.measure import Direction, held_out_gain_column, new_column, old_column
from askew.engine.run import StepOutcome
from askew.engine.store import Store
from askew.selectors.parts import PairParts
from askew.selectors.summary import summarize
from askew.selectors.tables import EVERY

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
