"""Compute the held-out gains of the chosen pairs of a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from askew.app.build.crossfit import DOCUMENTS, HeldOut
from askew.app.build.pairs import Select
from askew.app.build.recipe import groups_of
from askew.app.build.summary import headline, held_out_gains
from askew.app.explore.plan import recorded_recipe
from askew.app.scoring.comparable import catalogue_of
from askew.core.errors import AskewError
from askew.core.figures import FEWEST, HELD_OUT
from askew.core.measure import Direction, held_out_gain_column, new_column, old_column
from askew.core.outcome import verdict
from askew.engine.manifest import Manifest
from askew.engine.store import Store
from askew.measures.catalogue import MeasureRequest
from askew.selectors.summary import summarize

Gains = Mapping[str, float | None]


@dataclass(frozen=True)
class HeldOutPairs:
    """``rows`` has the values of each chosen subset and measure (see ``headline``) and the ``verdict`` on the mean.

    ``gains`` has the gains of single pairs, by query and variant.
    """

    rows: tuple[dict[str, Any], ...]
    gains: Mapping[tuple[str, str], Gains]

    def gains_of(self, query_id: str, variant_id: str) -> Gains:
        """Return the gains of a pair in the half of the documents that did not choose it, by measure; empty if none."""
        return self.gains.get((query_id, variant_id), {})


def held_out_pairs(
    store: Store, pairs: Manifest, frame: pl.LazyFrame, measures: Sequence[str], subsets: Sequence[str]
) -> HeldOutPairs | None:
    """Return the held-out values of a dataset by some of its measures; None if the store has none."""
    step = _step_of(store, pairs)
    if step is None or not subsets or not measures:
        return None
    try:
        asked = _complete(store, measures)
    except AskewError:  # a word list does not exist any more, so directions are unknown
        return None
    directions = {one.text: one.direction for one in asked}
    bounds = {one.text: one.bounds for one in asked}
    rows = pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(step))))
    subsets = [name for name in subsets if name in rows.columns]
    columns = [side(name) for name in directions for side in (old_column, new_column)]
    whole = summarize(frame.select("query_id", *subsets, *columns).collect(), directions, subsets, bounds)
    part = rows.filter(pl.col("scheme") == DOCUMENTS)
    told = summarize(part, directions, subsets, bounds).select(pl.lit(DOCUMENTS).alias("scheme"), pl.all())
    figures = [
        {**row, "verdict": _verdict(row, directions[row["measure"]])} for row in headline(whole, told).to_dicts()
    ]
    return HeldOutPairs(tuple(figures), _by_pair(held_out_gains(rows, directions), list(directions)))


def _verdict(row: Mapping[str, Any], direction: Direction) -> str | None:
    """Return better or worse if the interval of the change excludes zero; signed measures count by absolute value."""
    ends = row["low"], row["high"]
    queries = row["held_out_queries"] if row["figures"] == HELD_OUT else row["queries"]
    if None in ends or queries < FEWEST or ends[0] <= 0 <= ends[1]:
        return None
    found = verdict(row["old_mean"], row["new_mean"], direction)
    return None if found is None else found.value


def _step_of(store: Store, pairs: Manifest) -> Manifest | None:
    """Return the finished held-out step for the same result lists and the same selector."""
    steps = store.steps()
    scores = next((one for one in steps if one.key == pairs.input_key), None)
    wanted = [Select.version, dict(pairs.settings)]
    found = (
        one for one in steps
        if one.stage == HeldOut.name and scores is not None and one.input_key == scores.input_key
        and list(one.settings.get("select", ())) == wanted and one.parts
    )  # fmt: skip
    return next(found, None)


def _complete(store: Store, measures: Sequence[str]) -> list[MeasureRequest]:
    recipe = recorded_recipe(store)
    return list(catalogue_of(None if recipe is None else groups_of(recipe)).complete(list(measures)))


def _by_pair(gains: pl.DataFrame, measures: Sequence[str]) -> dict[tuple[str, str], Gains]:
    columns = {held_out_gain_column(name): name for name in measures}
    return {
        (row["query_id"], row["variant_id"]): {name: row[column] for column, name in columns.items()}
        for row in gains.iter_rows(named=True)
    }
