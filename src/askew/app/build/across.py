"""Choose pairs across rankers: a candidate must be acceptable with every ranker, and counts by its smallest gain.

Selectors read the scores of one ranker. A candidate is acceptable with a ranker if the selector chooses it when it is
the only candidate of its query. Among the candidates that are acceptable with all rankers, the selector chooses as
usual, by scores in which every measure has the smallest gain of the candidate over the rankers. The size of lean
differs between rankers: for measures with a best value of zero, or for which lower is better, gains are compared as
shares of the original query's absolute value, unless the value of an original query is zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import polars as pl

from askew.app.build.variants import ORIGINAL
from askew.core.errors import StoreError
from askew.core.measure import Direction, column_of, new_column, old_column
from askew.core.ranking import Floats
from askew.engine.manifest import Manifest
from askew.engine.store import Store
from askew.plugins.kinds import SelectorPlugin
from askew.selectors.tables import under

NEGATIVE = "negative"
_KEYS = ["query_id", "variant_id"]


class Chosen(Protocol):
    """The result of a selector: pairs, and the numbers of dropped rows by reason."""

    @property
    def table(self) -> pl.DataFrame:
        """The pairs."""

    @property
    def dropped(self) -> Mapping[str, int]:
        """The numbers of dropped rows, by reason."""


@dataclass(frozen=True)
class StepScores:
    """The scores of all candidates with another ranker, from a finished step of the same plan."""

    store: Store
    step: str
    key: str

    def of(self, queries: pl.DataFrame) -> pl.DataFrame:
        """Return the scores of some queries; only the parts with these queries are read."""
        here = self._places.join(queries, on="query_id", how="semi")["part"].unique().sort()
        parts = [self._read(part).join(queries, on="query_id", how="semi", maintain_order="left") for part in here]
        return pl.concat(parts) if parts else self._read(0).clear()

    @cached_property
    def _manifest(self) -> Manifest:
        manifest = self.store.finished(self.step, self.key)
        if manifest is None:
            raise StoreError(
                f"step {self.step!r}: the scores of this step are needed to select pairs of queries, but the step has "
                "not been run; run the step first"
            )
        return manifest

    @cached_property
    def _places(self) -> pl.DataFrame:
        """The parts that contain each query."""
        found = [
            self._read(part, ["query_id"]).unique().with_columns(part=pl.lit(part))
            for part in range(len(self._manifest.parts))
        ]
        return pl.concat(found)

    def _read(self, part: int, columns: list[str] | None = None) -> pl.DataFrame:
        file = self.store.open_part(self._manifest, self._manifest.parts[part])
        return pl.DataFrame(pl.from_arrow(file.read(columns=columns)))


def choose_across(
    selector: SelectorPlugin,
    scored: pl.DataFrame,
    others: Mapping[str, pl.DataFrame],
    directions: Mapping[str, Direction],
) -> pl.DataFrame:
    """Choose pairs by their smallest gains, among the candidates that are acceptable with every ranker.

    ``scored`` has the scores with the ranker of the recipe, ``others`` those with the other rankers, by name.
    """
    held = scored.filter(pl.col("method") != ORIGINAL).select(_KEYS)
    for table in (scored, *others.values()):
        held = held.join(acceptable(selector, table, directions), on=_KEYS, how="semi", maintain_order="left")
    kept = scored.filter((pl.col("method") == ORIGINAL) | pl.struct(_KEYS).is_in(held.to_struct().implode()))
    found: Chosen = selector.select_counted(smallest_gains(kept, others, directions), directions)
    return found.table


def acceptable(selector: SelectorPlugin, scored: pl.DataFrame, directions: Mapping[str, Direction]) -> pl.DataFrame:
    """Return the candidates that a selector chooses if each is the only candidate of its query."""
    is_original = pl.col("method") == ORIGINAL
    originals = scored.filter(is_original)
    candidates = scored.filter(~is_original).join(originals, on="query_id", how="semi", maintain_order="left")
    numbers = pl.Series("query_id", np.arange(candidates.height)).cast(pl.String)
    own = candidates.select("query_id").join(originals, on="query_id", how="left", maintain_order="left")
    alone = pl.concat([one.select(scored.columns).with_columns(numbers) for one in (own, candidates)])
    found: Chosen = selector.select_counted(alone, directions)
    subsets = [name for name in selector.subsets if name != NEGATIVE]
    chosen = found.table.filter(pl.any_horizontal(subsets))["query_id"].cast(pl.Int64)
    return candidates.select(_KEYS)[chosen.sort()]


def smallest_gains(
    scored: pl.DataFrame, others: Mapping[str, pl.DataFrame], directions: Mapping[str, Direction]
) -> pl.DataFrame:
    """Return scores in which every candidate has its smallest gain over the rankers; none if a ranker has no score."""
    is_original = pl.col("method") == ORIGINAL
    candidates = scored.filter(~is_original)
    rankers = {"": scored, **others}
    sides = [under(candidates.select(_KEYS), table, list(directions), name) for name, table in rankers.items()]
    columns = []
    for name, direction in directions.items():
        values = [[side[column(name)].to_numpy() for column in (old_column, new_column)] for side in sides]
        columns.append(pl.Series(column_of(name), _smallest(values, direction)))
    return pl.concat([scored.filter(is_original), candidates.with_columns(columns)], how="vertical_relaxed")


def _smallest(values: list[list[Floats]], direction: Direction) -> Floats:
    """Return scores on the scale of the first ranker, with the smallest gain of each candidate over all rankers."""
    old, new = values[0]
    sizes = np.abs([before for before, _ in values])
    # Shares are not defined if an original is zero.
    sizes[:, (sizes == 0).any(axis=0) | (direction is Direction.UP)] = 1.0
    gains = np.array([direction.gain(*pair) for pair in values]) / sizes
    least = gains.min(axis=0)
    # If the first ranker has the smallest gain, its own score is kept, to avoid rounding.
    return np.where(least == gains[0], new, direction.after(old, least * sizes[0]))
