"""Which claim a change of lean supports: three rows of the same measure over the same queries.

``delivered``       the observed change for these queries and this index; nothing is estimated, so it has no interval
``new queries``     the method runs at query time: the change with its interval over queries
``new documents``   a choice that was made by one half of the documents, measured on the other half

A change that was measured on the documents that made the choice is not a claim about new documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from askew.core.measure import Direction
from askew.core.ranking import Floats
from askew.measures.statistics.intervals import change_interval
from askew.report.table import CODE, NAME, Cell, Column, Estimate, Table, table


class Claim(StrEnum):
    """What a change is claimed to hold for."""

    DELIVERED = "delivered"
    NEW_QUERIES = "new queries"
    NEW_DOCUMENTS = "new documents"


@dataclass(frozen=True)
class ClaimedChange:
    """The change of the mean of a measure. ``change``, ``low`` and ``high`` are in percent of the old mean.

    If zero is the best value of the measure, the means are those of absolute values.
    """

    claim: str
    measure: str
    queries: int
    old: float
    new: float
    change: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, claim: Claim, measure: str, old: Floats, new: Floats, direction: Direction) -> ClaimedChange:
        """The change over the queries that have both values."""
        known = ~np.isnan(old) & ~np.isnan(new)
        old, new = old[known], new[known]
        if direction is Direction.ZERO:
            old, new = np.abs(old), np.abs(new)
        before, after = (float(side.mean()) if len(side) else 0.0 for side in (old, new))
        ends: tuple[float | None, float | None] = (None, None)
        if claim is not Claim.DELIVERED and before > 0:
            ends = change_interval(np.arange(len(old)), old, new)
        return cls(claim, measure, len(old), before, after, 100 * (after / before - 1) if before else None, *ends)


def claims_table(changes: Sequence[tuple[str, ClaimedChange]], name: str = "claims") -> Table:
    """One row for each method (or subset of pairs) and claim."""
    head = [Column("method", CODE), Column("claim", NAME), Column("measure", CODE), Column("queries"),
            Column("before"), Column("after"), Column("change [95%]", digits=1, signed=True, unit="%")]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            label, one.claim, one.measure, one.queries, one.old, one.new,
            None if one.change is None else Estimate(one.change, one.low, one.high),
        ]
        for label, one in changes
    ]  # fmt: skip
    note = (
        "Delivered: observed for these queries and this index. New queries: the same method at query time. New "
        "documents: chosen by one half of the documents and measured on the other half."
    )
    return table(name, "Which claim the change supports", head, rows, note)
