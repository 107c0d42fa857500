"""Selection without weights: the Pareto front of each query, the epsilon-constraint, gains under several rankers.

Only the named measures determine the selection. All other measures stay in the table, so that a held-out bias measure
can be reported on pairs that were selected without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from askew.core.errors import ConfigError, DataError
from askew.core.measure import Direction, gain_column
from askew.core.outcome import UNKNOWN_SIGN, check_tolerance, joint_signs
from askew.core.ranking import Floats, Ints
from askew.pairs.gains import PairTable, Selector, best_rows, find_measures, finite, one_measure


def pareto_front(query: Ints, effectiveness: Floats, bias: Floats) -> Any:
    """Mark the rows that no other row of their query dominates.

    A row dominates another if it is at least as good in both gains and better in one. Equal rows get the same mark.
    """
    order = np.lexsort((-bias, -effectiveness, query))
    query, effectiveness, bias = query[order], effectiveness[order], bias[order]
    if not len(query):
        return np.zeros(0, np.bool_)
    new_query = np.r_[True, query[1:] != query[:-1]]
    # The highest bias gain of each query so far. The ranks of a query are lifted above those of earlier queries, so one
    # running maximum is enough.
    distinct, rank = np.unique(bias, return_inverse=True)
    lift = (np.cumsum(new_query) - 1) * len(distinct)
    highest = distinct[np.maximum.accumulate(rank + lift) - lift]
    # The first row (head) of a run of equal effectiveness has the highest bias gain of the run.
    head = new_query | np.r_[True, effectiveness[1:] != effectiveness[:-1]]
    undominated = new_query | (bias > np.r_[-np.inf, highest[:-1]])
    at = np.flatnonzero(head)[np.cumsum(head) - 1]
    front = np.zeros(len(query), np.bool_)
    front[order] = undominated[at] & (bias == bias[at])
    return front


def epsilon_best(
    query: Ints, queries: int, effectiveness: Floats, bias: Floats, epsilon: float, eligible: Any = True
) -> Any:
    """Mark the row of each query with the highest bias gain among the rows that lose at most epsilon effectiveness.

    Ties go to the higher effectiveness gain, then to the first row.
    """
    return best_rows(query, queries, [bias, effectiveness], (effectiveness >= -epsilon) & eligible)


def robust(tables: Mapping[str, pl.DataFrame], measures: Sequence[str], tolerance: float = 0.0) -> pl.DataFrame:
    """Which variants improve under several rankers at once; ``tables`` are the pairs under each ranker.

    One row per variant of any table: ``query_id``, ``variant_id``, ``rankers`` (in how many tables it is scored),
    ``better``, ``same`` and ``worse`` (under how many of them), and ``robust``: scored under all rankers, not worse
    under any, and better under one or more. Under a ranker a variant is better when one of the measures is better and
    none is worse.
    """
    if len(tables) < 2:
        raise ConfigError(f"robust pairs: expected tables of pairs from two or more rankers, found {len(tables)}")
    stacked = pl.concat([_signs_of(name, table, measures, tolerance) for name, table in tables.items()])
    sign = pl.col("sign")
    counted = stacked.group_by("query_id", "variant_id", maintain_order=True).agg(
        pl.len().alias("rankers"),
        *((sign == value).sum().alias(name) for name, value in (("better", 1), ("same", 0), ("worse", -1))),
    )
    known = pl.col("rankers") == len(tables)
    return counted.with_columns(robust=known & (pl.col("worse") == 0) & (pl.col("better") > 0))


def _signs_of(ranker: str, table: pl.DataFrame, measures: Sequence[str], tolerance: float) -> pl.DataFrame:
    names = [gain_column(measure) for measure in measures]
    missing = [name for name in ("query_id", "variant_id", *names) if name not in table.columns]
    if missing:
        raise DataError(
            f"robust pairs: the table of pairs for the ranker {ranker!r} does not have the column {missing[0]!r}"
        )
    found = table.select("query_id", "variant_id")
    if found.is_duplicated().any():
        row = found.filter(found.is_duplicated()).row(0)
        raise DataError(
            f"robust pairs: the table of pairs for the ranker {ranker!r} should have each reformulation once, found "
            f"{row} twice"
        )
    sign = joint_signs([table.get_column(name).to_numpy() for name in names], tolerance)
    return found.with_columns(sign=pl.Series(sign)).filter(pl.col("sign") != UNKNOWN_SIGN)


class Pareto(Selector):
    """Selects the variants of each query that are Pareto-optimal in effectiveness and bias (column front)."""

    name = "pareto"
    subsets = ("front",)

    def __init__(
        self,
        effectiveness: str = "RR@10",
        bias: str = "ARaB(tf)@10",
        against_original: bool = True,
        tolerance: float = 0.0,
    ) -> None:
        self._effectiveness, self._bias = one_measure(effectiveness, "effectiveness"), one_measure(bias, "bias")
        self._against_original, self._tolerance = against_original, check_tolerance(tolerance)

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the scores that determines the selection. ``tolerance`` is for the outcome only."""
        return {
            "effectiveness": self._effectiveness,
            "bias": self._bias,
            "against_original": self._against_original,
            "tolerance": self._tolerance,
        }

    def measures(self) -> tuple[str, ...]:
        """Return the measures that determine the selection."""
        return self._effectiveness, self._bias

    def sides(self, directions: Mapping[str, Direction]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the two measures by their names in the scores."""
        effectiveness, bias = find_measures(self.measures(), directions, self.name)
        return (effectiveness,), (bias,)

    def choose(self, pairs: PairTable) -> dict[str, Any]:
        """Return the column ``front``."""
        effectiveness, bias = self._gains(pairs)
        front = pareto_front(pairs.query, effectiveness, bias)
        if self._against_original:
            # Variants that the original dominates (worse in one gain, not better in the other) are removed; the
            # original also dominates all that they dominate.
            front &= ~((effectiveness <= 0) & (bias <= 0) & ((effectiveness < 0) | (bias < 0)))
        return {"front": front}

    def _gains(self, pairs: PairTable) -> tuple[Floats, Floats]:
        (effectiveness,), (bias,) = self.sides(pairs.directions)
        return pairs.values(gain_column(effectiveness)), pairs.values(gain_column(bias))


class Epsilon(Pareto):
    """Selects for each query the variant with least lean, among those that lose at most epsilon effectiveness.

    The column is_best marks the selected variant.
    """

    name = "epsilon"
    subsets = ("is_best",)

    def __init__(
        self,
        effectiveness: str = "RR@10",
        bias: str = "ARaB(tf)@10",
        epsilon: float = 0.0,
        against_original: bool = True,
        tolerance: float = 0.0,
    ) -> None:
        super().__init__(effectiveness, bias, against_original, tolerance)
        self._epsilon = finite(epsilon, "epsilon", 0.0)

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the scores that determines the selection. ``tolerance`` is for the outcome only."""
        return {**super().settings(), "epsilon": self._epsilon}

    def choose(self, pairs: PairTable) -> dict[str, Any]:
        """Return the column ``is_best``."""
        effectiveness, bias = self._gains(pairs)
        # The original can be chosen too: a variant replaces it only with less lean, or with the same lean and more
        # effectiveness.
        improves = (bias > 0) | ((bias == 0) & (effectiveness > 0))
        eligible = improves if self._against_original else np.ones(len(bias), np.bool_)
        return {"is_best": epsilon_best(pairs.query, pairs.queries, effectiveness, bias, self._epsilon, eligible)}
