"""The role of each measure in the selection of pairs, for the report of a build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from askew.app.build.other_rankers import first_measures, sides_of
from askew.app.build.prepare import Build
from askew.app.build.scores import Evaluate
from askew.app.scoring.comparable import listed
from askew.core.figures import HELD_OUT
from askew.core.measure import new_column, old_column
from askew.plugins.kinds import SelectorPlugin
from askew.publish.cautions import Caution, cautions
from askew.selectors.parts import PairParts
from askew.selectors.settings import find_measures


@dataclass(frozen=True)
class SelectionFacts:
    """The measures of a selection; ``part`` has the role of each measure in the choice of pairs."""

    selector: str
    effectiveness: str
    lean: str | None
    part: Mapping[str, str]
    subsets: tuple[str, ...]
    tolerance: float

    def those(self, *parts: str) -> list[str]:
        """Return the measures with one of these roles."""
        return [measure for measure, part in self.part.items() if part in parts]


DECIDES, GROUPS, NAMES, UNUSED = (
    "pairs are chosen by this measure",
    "this measure only decides whether a query or a reformulation meets the thresholds of the selector",
    "this measure only decides whether the reformulation is reported as leaning less than the query, as much as the "
    "query, or more",
    "this measure is only reported",
)
TWIN = "this measure is not used to choose pairs, but its values equal those of a measure that is used"


def choice_of(selector: SelectorPlugin, build: Build, pairs: PairParts) -> SelectionFacts:
    """Return the role of each measure, from the settings of the selector.

    A measure with the same values as one that pairs are chosen by is not independent: AP equals RR if each query has
    one relevant document.
    """
    directions = build.evaluate.directions
    effectiveness, lean = sides_of(selector, build.evaluate)
    looked_at = find_measures(selector.measures(), directions, selector.name)
    part = dict.fromkeys(directions, UNUSED)
    if selector.name == "boxes":
        part |= dict.fromkeys(lean, NAMES) | dict.fromkeys(effectiveness, DECIDES)
    elif selector.name == "refairmulate-paper":
        part |= dict.fromkeys(looked_at, GROUPS) | dict.fromkeys((effectiveness[0], lean[0]), DECIDES)
    else:
        part |= dict.fromkeys(looked_at, DECIDES)
    deciding = [name for name, one in part.items() if one == DECIDES]
    for name in [name for name, one in part.items() if one == UNUSED]:
        if any(_same(pairs, name, other) for other in deciding):
            part[name] = TWIN
    tolerance = float(selector.settings().get("tolerance", 0.0))
    return SelectionFacts(
        selector.name, *first_measures(selector, build.evaluate), part, tuple(selector.subsets), tolerance
    )


def _same(pairs: PairParts, one: str, other: str) -> bool:
    """Whether two measures have equal values for every pair."""
    sides = [(side(one), side(other)) for side in (old_column, new_column)]
    frames = pairs.frames([name for side in sides for name in side])
    alike = (np.allclose(part[a], part[b], rtol=0, atol=1e-12, equal_nan=True) for part in frames for a, b in sides)
    return pairs.height > 0 and all(alike)


def sentence_of(choice: SelectionFacts) -> str:
    """Say by which measures pairs were chosen, and which measures are only reported."""
    said = [
        f"The selector {choice.selector} chose pairs of a query and a reformulation by {listed(choice.those(DECIDES))}."
    ]
    if choice.those(GROUPS):
        said.append(
            "Measures used only to decide whether a query or a reformulation meets the thresholds of the selector: "
            f"{listed(choice.those(GROUPS))}."
        )
    if choice.those(NAMES):
        said.append(
            "Measures used only to report whether the reformulation leans less or more than the query: "
            f"{listed(choice.those(NAMES))}."
        )
    if choice.those(TWIN):
        said.append(
            "Measures that were not used to choose pairs, but have the same values as a measure that was used: "
            f"{listed(choice.those(TWIN))}."
        )
    unused = choice.those(UNUSED)
    said.append(
        f"Measures that were not used to choose pairs and are only reported: {listed(unused)}."
        if unused
        else "No other measure is reported."
    )
    return " ".join(said)


def build_cautions(selector: SelectorPlugin, evaluate: Evaluate, headline: pl.DataFrame) -> list[Caution]:
    """Return what the held-out values of a build do not show; nothing if the recipe turns held-out values off."""
    if HELD_OUT not in headline["figures"]:
        return []
    effectiveness, lean = sides_of(selector, evaluate)
    # Boxes are chosen by one measure; lean is only reported.
    aim = effectiveness if selector.name == "boxes" or not lean else lean
    rows = headline.filter(pl.col("pairs") > 0).to_dicts()
    return cautions(rows, evaluate.directions, selector.subsets, aim, {*effectiveness, *evaluate.judged})
