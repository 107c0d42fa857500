"""The rules of Refairmulate's scheme: groups of queries, labels, score, and the subsets Optimal, Effective and Fair."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from askew.core.measure import Direction, gain_column, new_column, old_column
from askew.core.outcome import UNKNOWN_SIGN, signs
from askew.core.ranking import Flags
from askew.publish.facts import Facts
from askew.publish.rules import CLOSE, Broken, broken, once, values
from askew.publish.selection import MIXED, SIDES, SIGNS, Label

Rule = Callable[[pl.DataFrame, Facts], Iterator[Broken]]
_MIXED_SIGN = 2
_GROUP = (
    "the number from 1 to 4 in the column 'group' follows from the effectiveness and the lean of the original query"
)


def stated(facts: Facts) -> dict[tuple[str, str], bool]:
    """For each optional rule: the field that it needs, the rule, and whether the facts have this field."""
    selection = facts.selection
    return {
        (
            "the field selection.accepted",
            "the columns 'group' and 'label' of each selected pair have a combination that the selector accepts",
        ): bool(selection.accepted),
        (
            "the field selection.optimal",
            "every reformulation in the subset optimal has the value that this subset requires for each measure, such "
            "as 1 for RR@10",
        ): bool(selection.optimal),
        ("the field selection.labels", "the column 'label' follows from the column 'outcome'"): bool(selection.labels),
        ("the field selection.groups", _GROUP): bool(selection.groups),
        ("the field selection.weights", "the score of a pair is the weighted sum of its gains"): bool(
            selection.weights
        ),
    }


def _subsets(pairs: pl.DataFrame, _: Facts) -> Iterator[Broken]:
    both = pl.col("optimal") | pl.col("effective")
    shown = ("optimal", "effective", "fair", "negative")
    yield from broken(
        pairs, pl.col("fair") != both, "the subset fair is the union of the subsets optimal and effective", *shown
    )
    yield from broken(
        pairs, pl.col("negative") & (pl.col("fair") | both), "no pair in the subset fair is a negative sample", *shown
    )
    for subset in ("optimal", "effective"):
        yield from once(pairs, subset)
    yield from broken(
        pairs.filter("fair"),
        pl.col("text") == pl.col("original_text"),
        "the original query and the reformulation of each pair in the subset fair have different texts",
        "text",
    )


def _accepted(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    for subset, by_group in facts.selection.accepted.items():
        chosen = pairs.filter(subset)
        right = np.zeros(chosen.height, bool)
        for group, labels in by_group.items():
            right |= (chosen["group"] == group).to_numpy() & _is_in(chosen["label"], labels)
        said = (
            f"the columns 'group' and 'label' of each pair in the subset {subset} have a combination that "
            "the selector accepts"
        )
        yield from broken(chosen, ~right, said, "group", "label")


def _is_in(labels: pl.Series, wanted: frozenset[Label]) -> Flags:
    """Which labels are among the wanted ones; a number never equals a text."""
    kind = int if labels.dtype.is_integer() else str
    hits = [label for label in labels.unique() if isinstance(label, kind) and label in wanted]
    return labels.is_in(hits).to_numpy() if hits else np.zeros(len(labels), bool)


def _optimal(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    chosen = pairs.filter("optimal")
    for measure, value in facts.selection.optimal.items():
        wrong = ~np.isclose(values(chosen, new_column(measure)), value, rtol=CLOSE, atol=CLOSE)
        yield from broken(
            chosen,
            wrong,
            f"{measure} is {value:g} for the reformulation of every optimal pair",
            new_column(measure),
        )


def _labels(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    selection = facts.selection
    if not selection.labels:
        return
    decides = _decided(pairs, facts) if selection.labels_by else pairs["outcome"]
    right = np.zeros(pairs.height, bool)
    for outcome, label in selection.labels.items():
        right |= (decides == outcome).fill_null(False).to_numpy() & _is_in(pairs["label"], frozenset([label]))
    said = (
        "the column 'label' follows from the gains of the pair"
        if selection.labels_by
        else "the column 'label' follows from the column 'outcome'"
    )
    yield from broken(pairs, ~right, said, "label", "outcome")


def _decided(pairs: pl.DataFrame, facts: Facts) -> pl.Series:
    """The outcome by the measures that decide the label; null if one of these measures has no value."""
    selection = facts.selection
    sides = [_unanimous(pairs, selection.labels_by[side], selection.tolerance) for side in SIDES]
    known = np.logical_and.reduce([side != UNKNOWN_SIGN for side in sides])
    found = np.full(pairs.height, None, object)
    found[known] = MIXED
    for name, wanted in selection.outcomes.items():
        fits = np.logical_and.reduce([side == 1 - SIGNS.index(one) for side, one in zip(sides, wanted, strict=True)])
        found[fits] = name
    return pl.Series(found, dtype=pl.String)


def _unanimous(pairs: pl.DataFrame, measures: tuple[str, ...], tolerance: float) -> npt.NDArray[np.int8]:
    """The common sign of all measures of a side (effectiveness or bias).

    It is the mixed sign if the signs differ, and the unknown sign if one is unknown.
    """
    each = np.stack([signs(values(pairs, gain_column(name)), tolerance) for name in measures])
    shared = np.where((each == each[0]).all(axis=0), each[0], np.int8(_MIXED_SIGN))
    return np.where((each == UNKNOWN_SIGN).any(axis=0), np.int8(UNKNOWN_SIGN), shared)


def _groups(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    sides = facts.selection.groups
    if not sides:
        return
    directions = {one.name: one.direction for one in facts.measures}
    effective, unbiased = (_reaches(pairs, sides[side], directions) for side in SIDES)
    group = np.where(effective, np.where(unbiased, 1, 2), np.where(unbiased, 3, 4))
    yield from broken(
        pairs,
        group != pairs["group"].to_numpy(),
        _GROUP,
        "group",
    )


def _reaches(pairs: pl.DataFrame, thresholds: dict[str, float], directions: dict[str, Direction]) -> Flags:
    """Whether the old value of every measure is as good as its threshold; an unknown value reaches no threshold."""
    reached = np.ones(pairs.height, bool)
    for measure, threshold in thresholds.items():
        old = values(pairs, old_column(measure))
        reached &= directions[measure].gain(np.full_like(old, threshold), old) >= 0
    return reached


def _scores(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    weights = facts.selection.weights
    chosen = pairs.filter(~pl.col("optimal"))
    if not weights or not chosen.height:
        return
    total = sum(weight * values(chosen, gain_column(measure)) for measure, weight in weights.items())
    wrong = ~np.isclose(values(chosen, "score"), total, rtol=CLOSE, atol=CLOSE)
    yield from broken(chosen, wrong, "the score of a pair is the weighted sum of its gains", "score")


RULES: tuple[Rule, ...] = (_subsets, _accepted, _optimal, _labels, _groups, _scores)
