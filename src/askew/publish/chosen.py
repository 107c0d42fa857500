"""Rules for the subsets of any selection: boxes by a criterion, Pareto fronts, a minimum gain, one pair per query."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from askew.core.measure import gain_column, new_column, old_column
from askew.core.ranking import Flags
from askew.publish.facts import BOXES, Facts
from askew.publish.rules import CLOSE, Broken, broken, once, values


def stated(facts: Facts) -> dict[tuple[str, str], bool]:
    """For each subset: what its rule needs, the rule, and whether the facts state a criterion for its pairs."""
    selection = facts.selection
    known = {*selection.boxes, *selection.at_least, *selection.fronts}
    return {
        (
            f"a criterion for the subset {subset!r} in selection.boxes, selection.at_least or selection.fronts",
            f"each pair in the subset {subset!r} meets the criterion of this subset",
        ): subset in known
        for subset in facts.subsets
    }


def absent(facts: Facts) -> list[str]:
    """Notes on Pareto fronts: a release lacks candidates that were not chosen, so only chosen pairs are compared."""
    return [
        f"{subset}: candidates that were not chosen are not in the release, so only chosen pairs were compared"
        for subset in facts.selection.fronts
    ]


def _boxes(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    selection = facts.selection
    if facts.scheme != BOXES:
        return
    names = [old_column(selection.measure), new_column(selection.measure)]
    old, new = (values(pairs, name) for name in names)
    tested = _tested(pairs, facts)
    for box, criterion in selection.boxes.items():
        inside, met = pairs[box].to_numpy(), criterion.met(new, old)
        said = f"every pair in the subset {box} meets the criterion {criterion.text!r}"
        yield from broken(pairs, inside & ~met, said, *names)
        if not selection.every:
            yield from once(pairs, box)
        yield from broken(
            pairs,
            ~inside & met & tested,
            f"every pair that meets the criterion {criterion.text!r} is in the subset {box}",
            *names,
        )


def _tested(pairs: pl.DataFrame, facts: Facts) -> Flags:
    """The pairs that must be in every box with a criterion that they meet: all, or only the best of each query."""
    if facts.selection.every:
        return np.ones(pairs.height, np.bool_)
    is_best = pairs["is_best"] if "is_best" in pairs.columns else None
    if is_best is None or is_best.dtype != pl.Boolean:
        return np.zeros(pairs.height, np.bool_)
    return is_best.fill_null(False).to_numpy()


def _single(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    for subset in facts.selection.single:
        yield from once(pairs, subset)


def _at_least(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    for subset, least in facts.selection.at_least.items():
        chosen = pairs.filter(subset)
        for measure, value in least.items():
            said = f"every {subset} pair has a gain of {value:g} or more in {measure}"
            yield from broken(chosen, ~(values(chosen, gain_column(measure)) >= value), said, gain_column(measure))


def _smaller_by(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    for subset, least in facts.selection.smaller_by.items():
        chosen = pairs.filter(subset)
        for measure, share in least.items():
            names = [old_column(measure), gain_column(measure)]
            old, gain = (values(chosen, name) for name in names)
            smaller = (gain > 0) & (gain >= share * np.abs(old) - CLOSE)
            said = (
                f"every reformulation in the subset {subset} reduces the absolute value of {measure} of "
                f"its original query by {share:.0%} or more"
            )
            yield from broken(chosen, ~smaller, said, *names)


def _fronts(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    for subset, front in facts.selection.fronts.items():
        chosen = pairs.filter(subset)
        names = [gain_column(measure) for measure in front.measures]
        compared = " and ".join(front.measures)
        said = (
            f"in {compared}, no reformulation in the subset {subset} is dominated by another reformulation of the same "
            "query"
        )
        yield from broken(chosen, dominated(chosen, names[0], names[1]), said, *names)
        if front.original:
            first, second = (values(chosen, name) for name in names)
            beaten = (first <= 0) & (second <= 0) & ((first < 0) | (second < 0))
            said = f"in {compared}, no reformulation in the subset {subset} is dominated by its original query"
            yield from broken(chosen, beaten, said, *names)


def dominated(pairs: pl.DataFrame, first: str, second: str) -> pl.Series:
    """Which pairs are dominated by another pair of their query. Equal pairs do not dominate each other.

    A pair with an unknown gain counts as dominated.
    """
    keys = ["query_id", first, second]
    points = pairs.select(keys).unique().sort(keys, descending=[False, True, True])
    # A point that is sorted before another is better in the first gain, or equal in the first and better in the second.
    before = pl.col(second).cum_max().shift(1).over("query_id")
    unknown = pl.col(first).is_null() | pl.col(second).is_null()
    beaten = points.with_columns(((before >= pl.col(second)).fill_null(False) | unknown).alias("beaten"))
    return pairs.select(keys).join(beaten, on=keys, how="left", maintain_order="left", nulls_equal=True)["beaten"]


RULES = (_boxes, _single, _at_least, _smaller_by, _fronts)
