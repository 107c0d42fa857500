"""RePair: boxes of refined queries by criteria, and its aggregated tables.

A box contains the best candidate of a query, paired with the original, if their scores meet the criterion of the box.
``refined`` is the score of the candidate, ``original`` that of the original query:

``gold``      ``refined >= original and refined > 0``, as in the distributed files (ties are included)
``platinum``  ``refined > original``
``diamond``   ``refined > original and refined == 1``
``eq1``       ``refined > original``: Eq. 1 of the paper, which excludes ties, unlike the distributed gold

Users can write other criteria (``askew.core.expression``). As published, only the best candidate of a query is tested;
``every`` tests all candidates.

Aggregated tables have the columns ``qid order query r.m`` (r is the ranker, m the measure): the original with order -1,
then the candidates with order pred.i (i counts a query's candidates in the order they were made, from 0), best value
first, ties in that order.

Deviations from the published code: texts are not changed (the code deletes quotes and sometimes a letter), and a
missing value is counted and left out; ``missing="zero"`` replaces it by 0, as the code does. The code accepts a
candidate with the words of the original; here that requires the setting ``keep_same``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from askew.core.errors import ConfigError, DataError, UnknownName, one_of
from askew.core.expression import CRITERIA, Criterion
from askew.core.measure import Direction, column_of, new_column, old_column
from askew.core.outcome import check_tolerance
from askew.core.ranking import Flags
from askew.pairs.gains import (
    NO_EFFECTIVENESS,
    UNSCORED,
    PairTable,
    Selector,
    best_rows,
    check_scored,
    find_measures,
    make_pairs,
    measure_texts,
    numbers,
    one_measure,
    parts,
    split,
)

MISSING = ("drop", "zero")
ORIGINAL_ORDER = "-1"
_BOX_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def read_boxes(text: str) -> dict[str, Criterion]:
    """Read ``gold; close: refined >= 0.9 * original``: criteria of this module by name, or criteria of the user."""
    found = {}
    for name, written in parts(text, "boxes").items():
        if not _BOX_NAME.fullmatch(name):
            raise ConfigError(f"boxes: expected a box name of letters, digits and underscores, found {name!r}")
        if not written and name not in CRITERIA:
            raise UnknownName(
                "box", name, CRITERIA, "⟨boxes⟩ (define your own box as in 'close: refined >= 0.9 * original')"
            )
        found[name] = Criterion.parse(written or CRITERIA[name])
    return found


def agg_all(
    scored: pl.DataFrame, measure: str, ranker: str, direction: Direction = Direction.UP, missing: str = "drop"
) -> tuple[pl.DataFrame, Counter[str]]:
    """Return ``agg.all`` (every original and every candidate, with queries in the order of their originals), and the
    number of rows that it leaves out, by reason."""
    one_of(missing, MISSING, "missing")
    check_scored(scored, [measure], {measure: direction})
    originals, variants, query = split(scored)
    before, after = (numbers(table, measure) for table in (originals, variants))
    if missing == "zero":
        before, after = np.nan_to_num(before, nan=0.0), np.nan_to_num(after, nan=0.0)
    order = pl.Series(query).to_frame("q").select(pl.int_range(pl.len()).over("q")).to_series()
    values = np.r_[before, after]
    rows = pl.DataFrame(
        {
            "qid": pl.concat([originals.get_column("query_id"), variants.get_column("query_id")]),
            "order": pl.concat([pl.repeat(ORIGINAL_ORDER, len(before), eager=True), "pred." + order.cast(pl.String)]),
            "query": pl.concat([originals.get_column("text"), variants.get_column("text")]),
            f"{ranker}.{measure}": values,
        }
    )
    number = np.r_[np.arange(len(before)), query]
    is_candidate = np.arange(len(rows)) >= len(before)
    lost, blank = np.isnan(before)[number], np.isnan(values)
    ranks = np.lexsort((-direction.gain(np.zeros_like(values), values), is_candidate, number))
    kept = ranks[~(lost | blank)[ranks]]
    counts = {NO_EFFECTIVENESS: int(lost.sum()), UNSCORED: int((blank & ~lost).sum())}
    return rows[kept], Counter({reason: count for reason, count in counts.items() if count})


def agg_gold(table: pl.DataFrame) -> pl.DataFrame:
    """Return ``agg.gold`` from ``agg.all``: every original, and the candidates that meet the criterion ``gold``."""
    return table.filter(pl.Series(is_gold(table)))


def is_gold(table: pl.DataFrame) -> Flags:
    """Mark the originals of an aggregated table, and the candidates that meet the criterion ``gold``."""
    is_original = (table.get_column("order").cast(pl.String) == ORIGINAL_ORDER).to_numpy()
    if len(table) and not is_original[0]:
        raise DataError(
            "aggregated table: expected an original query in the first row ('-1' in the column 'order'), "
            f"found {table.row(0)}"
        )
    values = table.to_series(table.width - 1).cast(pl.Float64).to_numpy()
    original = values[np.flatnonzero(is_original)[np.cumsum(is_original) - 1]]
    return np.asarray(is_original | Criterion.parse(CRITERIA["gold"]).met(values, original))


class Boxes(Selector):
    """Assigns pairs to RePair's gold, platinum and diamond boxes, and to boxes by your own criteria (a column each)."""

    name = "boxes"

    def __init__(
        self,
        measure: str = "RR@10",
        boxes: str = "gold; platinum; diamond",
        bias: str = "",
        every: bool = False,
        keep_same: bool = False,
        missing: str = "drop",
        tolerance: float = 0.0,
    ) -> None:
        self._measure, self._boxes = one_measure(measure, "measure"), read_boxes(boxes)
        self.subsets = tuple(self._boxes)
        self._bias = measure_texts(bias, "bias") if bias.strip() else ()
        self._every, self._keep_same = every, keep_same
        self._missing, self._tolerance = one_of(missing, MISSING, "missing"), check_tolerance(tolerance)

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the scores that determines the selection and the outcome.

        ``bias`` and ``tolerance`` affect only the outcome.
        """
        return {
            "measure": self._measure, "boxes": {name: box.text for name, box in self._boxes.items()},
            "bias": list(self._bias), "every": self._every, "keep_same": self._keep_same,
            "missing": self._missing, "tolerance": self._tolerance,
        }  # fmt: skip

    def measures(self) -> tuple[str, ...]:
        """Return the measure of the selection, and those of the outcome."""
        return (self._measure, *self._bias)

    def sides(self, directions: Mapping[str, Direction]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the measure of the selection, and the measures of bias, which affect only the outcome."""
        measure, *bias = find_measures(self.measures(), directions, self.name)
        return (measure,), tuple(bias)

    def select_counted(self, scored: pl.DataFrame, directions: Mapping[str, Direction]) -> PairTable:
        """As ``select``, with the counts of the variants that were left out."""
        (measure,), bias = self.sides(directions)
        if self._missing == "zero":
            scored = scored.with_columns(pl.col(column_of(measure)).cast(pl.Float64).fill_null(0.0).fill_nan(0.0))
        pairs = make_pairs(scored, directions, (measure,), bias, self._tolerance, self._keep_same, (measure,))
        return pairs.with_columns(**self.choose(pairs))

    def choose(self, pairs: PairTable) -> dict[str, Any]:
        """Return ``is_best`` (the best candidate of its query) and a column for each box."""
        ((measure,), _) = self.sides(pairs.directions)
        old, new = pairs.values(old_column(measure)), pairs.values(new_column(measure))
        # Scores are compared by their gains over zero, which respect the direction and need no rounding.
        worth = pairs.directions[measure].gain(np.zeros_like(new), new)
        best = best_rows(pairs.query, pairs.queries, [worth], np.ones(len(new), np.bool_))
        tested = np.ones(len(new), np.bool_) if self._every else best
        return {"is_best": best, **{name: box.met(new, old) & tested for name, box in self._boxes.items()}}
