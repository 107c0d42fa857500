"""What a build came to: the subsets, and the means before and after."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pyarrow as pa

from askew.app.build.pairs import Select
from askew.app.build.scores import Evaluate
from askew.engine.run import StepOutcome
from askew.engine.store import Store
from askew.selectors.summary import summarise


def summary_of(
    store: Store, outcomes: Mapping[str, StepOutcome], stage: Select | None, evaluate: Evaluate
) -> pl.DataFrame | None:
    """Table 1 of the chosen pairs; None where the recipe stops before it chooses, or has nothing to choose from."""
    if stage is None or not outcomes["pairs"].manifest.parts:
        return None
    pairs = pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(outcomes["pairs"].manifest))))
    return summarise(pairs, evaluate.directions, stage.selector.subsets, evaluate.bounds)
