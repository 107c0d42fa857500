"""The rules that every pair of a release follows. Each broken rule is one line: the number of pairs and the first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from askew.core.measure import gain_column, old_column, pair_columns
from askew.core.outcome import joint_signs
from askew.publish import chosen, groups
from askew.publish.facts import REFAIRMULATE, Facts
from askew.publish.rules import CLOSE, Broken, broken, values
from askew.publish.selection import SIGNS

_NO_TEXTS = (
    "query_text = false: the texts of the original queries are not in this dataset. Three rules were therefore not "
    "checked: a query has one text; the original query and the reformulation of a pair differ; queries with the same "
    "text are in the same split"
)


class Problems:
    """Collects the broken rules of pairs that are checked in blocks; a block has all pairs of its queries."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._rules = (_identities, *_of_the_scheme(facts), _gains, _outcomes, _robust)
        self._found: dict[str, Broken] = {}

    def look(self, pairs: pl.DataFrame) -> None:
        """Check a block of pairs."""
        for rule in self._rules if pairs.height else ():
            for one in rule(pairs, self._facts):
                self._found[one.said] = self._found[one.said] + one if one.said in self._found else one

    def lines(self) -> list[str]:
        """A line for each broken rule."""
        return [str(one) for one in self._found.values() if one.wrong]


def problems(pairs: pl.DataFrame, facts: Facts) -> list[str]:
    """One line for each rule that the pairs break."""
    found = Problems(facts)
    found.look(pairs)
    return found.lines()


def _of_the_scheme(facts: Facts) -> tuple[groups.Rule, ...]:
    return (*groups.RULES, *chosen.RULES) if facts.scheme == REFAIRMULATE else chosen.RULES


def unchecked(facts: Facts) -> list[str]:
    """Notes on rules that cannot be checked, because the facts do not state them or the release lacks the data."""
    stated = {
        (
            "all of the fields selection.effectiveness, selection.bias and selection.outcomes",
            "the column 'outcome' follows from the gains of the pair",
        ): _has_outcomes(facts)
    }
    stated |= groups.stated(facts) if facts.scheme == REFAIRMULATE else chosen.stated(facts)
    missing = [
        f"askew.json does not have {needed}, so this rule was not checked: {rule}"
        for (needed, rule), there in stated.items()
        if not there
    ]
    return [*([] if facts.query_text else [_NO_TEXTS]), *missing, *chosen.absent(facts)]


def _identities(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    twice = pl.struct("query_id", "variant_id").is_duplicated()
    yield from broken(pairs, twice, "no two reformulations of an original query have the same id")
    more = [name for name in ("group", "context") if name in pairs.columns]
    for name in ("original_text", *more, *(old_column(one.name) for one in facts.measures)):
        same = pl.col(name).eq_missing(pl.col(name).first()).over("query_id")
        yield from broken(pairs, ~same, f"all pairs of a query have the same {name}", name)


def _gains(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    for one in facts.measures:
        names = pair_columns(one.name)
        old, new, gain = (values(pairs, name) for name in names)
        right = np.isclose(gain, one.direction.gain(old, new), rtol=CLOSE, atol=CLOSE, equal_nan=True)
        said = f"the gain in {one.name} is computed from its values for the original query and the reformulation"
        yield from broken(pairs, ~right, said, *names)


def _has_outcomes(facts: Facts) -> bool:
    selection = facts.selection
    return bool(selection.effectiveness and selection.bias and selection.outcomes)


def _outcomes(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    """The outcome follows from the gains; a pair with a missing gain has no outcome."""
    selection = facts.selection
    if not _has_outcomes(facts):
        return
    sides = [[gain_column(name) for name in side] for side in (selection.effectiveness, selection.bias)]
    signs = [joint_signs([values(pairs, name) for name in side], selection.tolerance) for side in sides]
    right = pairs["outcome"].is_null().to_numpy() & ((signs[0] < -1) | (signs[1] < -1))
    for name, wanted in selection.outcomes.items():
        fits = np.logical_and.reduce([sign == 1 - SIGNS.index(one) for sign, one in zip(signs, wanted, strict=True)])
        right |= fits & (pairs["outcome"] == name).fill_null(False).to_numpy()
    said = "the column 'outcome' follows from the gains of the pair"
    yield from broken(pairs, ~right, said, "outcome", *sides[0], *sides[1])


def _robust(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    """A robust pair is not worse with any ranker; only the first one is checked, as the release lacks other values."""
    if not facts.robust_rankers:
        return
    names = [gain_column(name) for name in facts.robust_measures]
    sign = joint_signs([values(pairs, name) for name in names], facts.selection.tolerance)
    said = (
        "in each pair that is marked robust, no measure is worse for the reformulation than for the original query "
        f"(ranker {facts.robust_rankers[0]})"
    )
    yield from broken(pairs, pairs["robust"].fill_null(False).to_numpy() & (sign < 0), said, *names)
