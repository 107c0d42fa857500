"""What holds of every pair of a release. Each broken rule is one line: how many pairs, and the first of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from askew.core.measure import Direction
from askew.publish.facts import SIGNS, Facts, Label

Mask = npt.NDArray[np.bool_]
# Gains and scores are sums of two or three numbers; anything beyond rounding is an error.
_CLOSE = 1e-9
_SHOWN = 60


def problems(pairs: pl.DataFrame, facts: Facts) -> list[str]:
    """Every rule that the pairs break."""
    rules = (_identities, _subsets, _accepted, _optimal, _gains, _outcomes, _labels, _groups, _scores)
    return list(chain.from_iterable(rule(pairs, facts) for rule in rules)) if pairs.height else []


def unchecked(facts: Facts) -> list[str]:
    """What the facts do not state, so that nobody can check it."""
    chosen = facts.selection
    stated = {
        "labels accepted by group (selection.accepted)": bool(chosen.accepted),
        "new values of Optimal pairs (selection.optimal)": bool(chosen.optimal),
        "outcomes by gains (selection.effectiveness, bias, outcomes)": _has_outcomes(facts),
        "labels by outcome (selection.labels)": bool(chosen.labels),
        "groups by old values (selection.groups)": bool(chosen.groups),
        "scores by gains (selection.weights)": bool(chosen.weights),
    }
    return [f"not stated, so not checked: {what}" for what, there in stated.items() if not there]


def _broken(pairs: pl.DataFrame, wrong: Mask | pl.Expr | pl.Series, said: str, *shown: str) -> Iterator[str]:
    mask = pl.Series(wrong) if isinstance(wrong, np.ndarray) else wrong
    rows = pairs.filter(mask)
    if rows.height:
        first = rows.row(0, named=True)
        facts = "".join(f", {name} {_short(first[name])}" for name in shown)
        where = f"query {_short(first['query_id'])}, variant {_short(first['variant_id'])}{facts}"
        yield f"{said}: broken by {rows.height} of {pairs.height} pairs; first: {where}"


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."


def _identities(pairs: pl.DataFrame, facts: Facts) -> Iterator[str]:
    twice = pl.struct("query_id", "variant_id").is_duplicated()
    yield from _broken(pairs, twice, "a query has each variant once")
    for name in ("original_text", "group", *(f"old:{one.name}" for one in facts.measures)):
        same = pl.col(name).eq_missing(pl.col(name).first()).over("query_id")
        yield from _broken(pairs, ~same, f"a query has one {name}", name)


def _subsets(pairs: pl.DataFrame, _: Facts) -> Iterator[str]:
    both = pl.col("optimal") | pl.col("effective")
    shown = ("optimal", "effective", "fair", "negative")
    yield from _broken(pairs, pl.col("fair") != both, "Fair is Optimal and Effective together", *shown)
    yield from _broken(pairs, pl.col("negative") & (pl.col("fair") | both), "no Fair pair is a negative sample", *shown)
    for subset in ("optimal", "effective"):
        chosen = pairs.filter(subset)
        said = f"a query has one {subset.capitalize()} pair at most"
        yield from _broken(chosen, pl.col("query_id").is_duplicated(), said)
    yield from _broken(
        pairs.filter("fair"), pl.col("text") == pl.col("original_text"), "a Fair pair has two different texts", "text"
    )


def _accepted(pairs: pl.DataFrame, facts: Facts) -> Iterator[str]:
    for subset, groups in facts.selection.accepted.items():
        chosen = pairs.filter(subset)
        right = np.zeros(chosen.height, bool)
        for group, labels in groups.items():
            right |= (chosen["group"] == group).to_numpy() & _is_in(chosen["label"], labels)
        said = f"every {subset.capitalize()} pair has a label that is accepted for its group"
        yield from _broken(chosen, ~right, said, "group", "label")


def _is_in(labels: pl.Series, wanted: frozenset[Label]) -> Mask:
    """Which labels are among the wanted ones; a number is never a text."""
    kind = int if labels.dtype.is_integer() else str
    hits = [label for label in labels.unique() if isinstance(label, kind) and label in wanted]
    return labels.is_in(hits).to_numpy() if hits else np.zeros(len(labels), bool)


def _optimal(pairs: pl.DataFrame, facts: Facts) -> Iterator[str]:
    chosen = pairs.filter("optimal")
    for measure, value in facts.selection.optimal.items():
        wrong = ~np.isclose(_values(chosen, f"new:{measure}"), value, rtol=_CLOSE, atol=_CLOSE)
        yield from _broken(chosen, wrong, f"every Optimal pair has new {measure} = {value:g}", f"new:{measure}")


def _gains(pairs: pl.DataFrame, facts: Facts) -> Iterator[str]:
    for one in facts.measures:
        names = [f"{kind}:{one.name}" for kind in ("old", "new", "gain")]
        old, new, gain = (_values(pairs, name) for name in names)
        right = np.isclose(gain, one.direction.gain(old, new), rtol=_CLOSE, atol=_CLOSE, equal_nan=True)
        yield from _broken(pairs, ~right, f"the gain of {one.name} is that of its direction", *names)


def _has_outcomes(facts: Facts) -> bool:
    chosen = facts.selection
    return bool(chosen.effectiveness and chosen.bias and chosen.outcomes)


def _outcomes(pairs: pl.DataFrame, facts: Facts) -> Iterator[str]:
    chosen = facts.selection
    if not _has_outcomes(facts):
        return
    sides = [f"gain:{chosen.effectiveness}", f"gain:{chosen.bias}"]
    signs = [_sign(_values(pairs, side), chosen.tolerance) for side in sides]
    right = np.zeros(pairs.height, bool)
    for name, wanted in chosen.outcomes.items():
        fits = np.logical_and.reduce([sign == SIGNS.index(one) for sign, one in zip(signs, wanted, strict=True)])
        right |= fits & (pairs["outcome"] == name).to_numpy()
    yield from _broken(pairs, ~right, "the outcome is that of the gains", "outcome", *sides)


def _sign(gains: npt.NDArray[np.float64], tolerance: float) -> npt.NDArray[np.int64]:
    """0 better, 1 same, 2 worse, -1 unknown."""
    known = np.where(gains > tolerance, 0, np.where(gains < -tolerance, 2, 1))
    return np.where(np.isnan(gains), -1, known)


def _labels(pairs: pl.DataFrame, facts: Facts) -> Iterator[str]:
    labels = facts.selection.labels
    if not labels:
        return
    right = np.zeros(pairs.height, bool)
    for outcome, label in labels.items():
        right |= (pairs["outcome"] == outcome).to_numpy() & _is_in(pairs["label"], frozenset([label]))
    yield from _broken(pairs, ~right, "the label is that of the outcome", "label", "outcome")


def _groups(pairs: pl.DataFrame, facts: Facts) -> Iterator[str]:
    sides = facts.selection.groups
    if not sides:
        return
    directions = {one.name: one.direction for one in facts.measures}
    effective, unbiased = (_reaches(pairs, sides[side], directions) for side in ("effectiveness", "bias"))
    group = np.where(effective, np.where(unbiased, 1, 2), np.where(unbiased, 3, 4))
    yield from _broken(pairs, group != pairs["group"].to_numpy(), "the group is that of the old values", "group")


def _reaches(pairs: pl.DataFrame, thresholds: dict[str, float], directions: dict[str, Direction]) -> Mask:
    """Whether the old value of every measure is as good as its threshold; an unknown value reaches nothing."""
    reached = np.ones(pairs.height, bool)
    for measure, threshold in thresholds.items():
        old = _values(pairs, f"old:{measure}")
        reached &= directions[measure].gain(np.full_like(old, threshold), old) >= 0
    return reached


def _scores(pairs: pl.DataFrame, facts: Facts) -> Iterator[str]:
    weights = facts.selection.weights
    chosen = pairs.filter(~pl.col("optimal"))
    if not weights or not chosen.height:
        return
    total = sum(weight * _values(chosen, f"gain:{measure}") for measure, weight in weights.items())
    wrong = ~np.isclose(_values(chosen, "score"), total, rtol=_CLOSE, atol=_CLOSE)
    yield from _broken(chosen, wrong, "the score is the weighted sum of the gains", "score")


def _values(pairs: pl.DataFrame, name: str) -> npt.NDArray[np.float64]:
    """A column with NaN for what is missing."""
    return pairs[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()
