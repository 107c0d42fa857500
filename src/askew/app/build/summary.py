"""What a build came to: the subsets, and the means before and after."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pyarrow as pa

from askew.app.build.pairs import Select
from askew.app.build.scores import Evaluate
from askew.core.lexicon import Lexicon
from askew.engine.run import StepOutcome
from askew.engine.store import Store
from askew.selectors.summary import summarise


def counted_groups(evaluate: Evaluate) -> list[tuple[Lexicon, list[str]]]:
    """The lexicons of the measures, each with those of its groups that a measure counts."""
    found = []
    for lexicon in evaluate.lexicons():
        used = {name for one in evaluate.asked if one.measure.param("lexicon") == lexicon.id for name in one.groups}
        found.append((lexicon, [name for name in lexicon.group_names if name in used or not used]))
    return found


def summary_of(
    store: Store, outcomes: Mapping[str, StepOutcome], stage: Select | None, evaluate: Evaluate
) -> pl.DataFrame | None:
    """Table 1 of the chosen pairs; None where the recipe stops before it chooses, or has nothing to choose from."""
    if stage is None or not outcomes["pairs"].manifest.parts:
        return None
    pairs = pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(outcomes["pairs"].manifest))))
    return summarise(pairs, evaluate.directions, stage.selector.subsets, evaluate.bounds)
