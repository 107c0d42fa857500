"""The drawing of one measure of lean: how each result changes its value, on the same scale for every query.

The drawing also shows the range of typical queries: the original queries of the store, or queries of the collection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from askew.core.measure import Direction
from askew.core.ranking import Floats
from askew.measures.catalogue import MeasureRequest
from askew.measures.headline import Headline

# Results do not lean if the deciding measure is at most this far from its best value.
LEAST_LEAN = 0.01
# The fewest queries from which a typical range is computed, and the most that are searched for it.
FEWEST, MOST = 20, 200
# The most ranks that are drawn, and the number for a measure without a cutoff.
_LONGEST, _USUAL = 20, 10
_NICE = (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Typical:
    """The 5%, 25%, 50%, 75% and 95% quantiles of a measure over queries of the collection."""

    queries: int
    quantiles: tuple[float, ...]


@dataclass(frozen=True)
class LeanPicture:
    """The deciding measure of a result list. ``running`` has its values for the top 1, 2, 3, ... results.

    ``leans`` is false if the value is at most ``threshold`` from ``best``; null if there is no value. ``scale`` has the
    ends of the scale, which is the same for every query of the collection. ``toward`` and ``meaning`` are the group and
    the sentence of the headline.
    """

    measure: str
    value: float | None
    best: float
    leans: bool | None
    threshold: float
    running: tuple[float | None, ...]
    scale: tuple[float, float]
    typical: Typical | None
    toward: str | None
    meaning: str


class LeanDrawing:
    """Draws one measure; ``values`` returns its values for typical queries, and is called once."""

    def __init__(self, measure: MeasureRequest, values: Callable[[], Floats]) -> None:
        self.measure, self._values = measure, values
        cutoff = min(measure.measure.cutoff or _USUAL, _LONGEST)
        self.steps = [
            replace(measure, text=f"running {rank}", measure=measure.measure @ rank) for rank in range(1, cutoff + 1)
        ]

    @property
    def best(self) -> float:
        """The value of a list that does not lean."""
        low, high = self.measure.bounds
        way = self.measure.direction
        found = 0.0 if way is Direction.ZERO else high if way is Direction.UP else low
        return found if math.isfinite(found) else 0.0

    @cached_property
    def known(self) -> Floats:
        """The values of typical queries, in ascending order."""
        found = self._values()
        return np.sort(found[np.isfinite(found)])

    def typical(self) -> Typical | None:
        """Return the quantiles of typical queries; None if there are too few."""
        if len(self.known) < FEWEST:
            return None
        return Typical(len(self.known), tuple(float(one) for one in np.quantile(self.known, _QUANTILES)))

    def scale(self) -> tuple[float, float]:
        """Return the bounds of the measure; without bounds, ends that include 99% of typical queries."""
        low, high = self.measure.bounds
        if math.isfinite(low) and math.isfinite(high):
            return low, high
        widest = float(np.quantile(np.abs(self.known), 0.99)) if len(self.known) >= FEWEST else 0.5
        end = next((one for one in _NICE if one >= max(widest, 0.5)), math.ceil(widest))
        return (-end if self.measure.direction is Direction.ZERO else 0.0), end

    def leans(self, value: float | None) -> bool | None:
        """Return whether a value is further than the threshold from the best value; None without a value."""
        return None if value is None else abs(value - self.best) > LEAST_LEAN

    def picture(self, value: float | None, running: Sequence[float | None], first: Headline) -> LeanPicture:
        """Return the data of the drawing for a result list."""
        return LeanPicture(
            self.measure.text, value, self.best, self.leans(value), LEAST_LEAN, tuple(running), self.scale(),
            self.typical(), first.toward, first.sentence,
        )  # fmt: skip
