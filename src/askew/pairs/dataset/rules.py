"""The rules that every pair of a release follows. Each broken rule is one line: the number of pairs and the first.

The columns of the selection (labels, scores, subsets) are computed again by the selector that chose the pairs, from
the values in the release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from askew.core.measure import gain_column, old_column, pair_columns
from askew.core.outcome import joint_signs
from askew.core.ranking import Flags, Floats
from askew.pairs.dataset.facts import Facts
from askew.pairs.gains import PairTable, Selector, outcomes
from askew.pairs.holding import WITH_REFUSED, refusals

# Gains and scores are sums of two or three numbers; a difference larger than the rounding error breaks a rule.
CLOSE = 1e-9
_SHOWN = 60
_NO_TEXTS = (
    "query_text = false: the texts of the original queries are not in this dataset. Three rules were therefore not "
    "checked: a query has one text; the original query and the reformulation of a pair differ; queries with the same "
    "text are in the same split"
)


@dataclass(frozen=True)
class Broken:
    """How many pairs break a rule, how many pairs the rule applies to, and the first pair that breaks it."""

    rule: str
    wrong: int
    of: int
    first: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: broken by {self.wrong} of {self.of} pairs; first: {self.first}"

    def __add__(self, other: Broken) -> Broken:
        return Broken(self.rule, self.wrong + other.wrong, self.of + other.of, self.first or other.first)


def _broken(pairs: pl.DataFrame, wrong: Flags | pl.Expr, rule: str, *shown: str) -> Broken:
    """Count the pairs that break a rule; ``shown`` names the columns to report for the first of these pairs."""
    rows = pairs.filter(pl.Series(wrong) if isinstance(wrong, np.ndarray) else wrong)
    where = ""
    if rows.height:
        first = rows.row(0, named=True)
        names = {"query_id": "query", "variant_id": "variant"}
        values = {name: repr(first[name]) for name in (*names, *shown)}
        short = {name: text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..." for name, text in values.items()}
        where = ", ".join(f"{names.get(name, name)} {text}" for name, text in short.items())
    return Broken(rule, rows.height, pairs.height, where)


def _values(pairs: pl.DataFrame, name: str) -> Floats:
    """A column as floats, with NaN for missing values."""
    return pairs[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()


class Problems:
    """Collects the broken rules of pairs that are checked in blocks; a block has all pairs of its queries."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._found: dict[str, Broken] = {}

    def look(self, pairs: pl.DataFrame) -> None:
        """Check a block of pairs."""
        for check in (_identities, _gains, _selection, _robust) if pairs.height else ():
            for one in check(pairs, self._facts):
                self._found[one.rule] = self._found[one.rule] + one if one.rule in self._found else one

    def lines(self) -> list[str]:
        """A line for each broken rule."""
        return [str(one) for one in self._found.values() if one.wrong]


def unchecked(facts: Facts) -> list[str]:
    """Notes on rules that cannot be checked, because the facts do not state them or the release lacks the data."""
    notes = [] if facts.query_text else [_NO_TEXTS]
    if facts.selection.selector is None:
        notes.append(
            "askew.json names no selector that is part of askew, so it was not checked whether the outcomes and the "
            "subsets follow from the values of the pairs"
        )
    return notes


def _identities(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    twice = pl.struct("query_id", "variant_id").is_duplicated()
    yield _broken(pairs, twice, "no two reformulations of an original query have the same id")
    more = [name for name in ("group", "context") if name in pairs.columns]
    for name in ("original_text", *more, *(old_column(one.name) for one in facts.measures)):
        same = pl.col(name).eq_missing(pl.col(name).first()).over("query_id")
        yield _broken(pairs, ~same, f"all pairs of a query have the same {name}", name)


def _gains(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    for one in facts.measures:
        names = pair_columns(one.name)
        old, new, gain = (_values(pairs, name) for name in names)
        right = np.isclose(gain, one.direction.gain(old, new), rtol=CLOSE, atol=CLOSE, equal_nan=True)
        rule = f"the gain in {one.name} is computed from its values for the original query and the reformulation"
        yield _broken(pairs, ~right, rule, *names)


def _selection(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    how, selector = facts.selection, facts.selection.selector
    if selector is None:
        return
    again = _computed(pairs, facts, selector)
    chosen = [name for name in selector.subsets if name != "negative"]
    marks = {*chosen, "is_best", "optimal_score"}
    if how.across:
        may = again.select(pl.any_horizontal(chosen)).to_series().to_numpy()
        wrong = pairs.select(pl.any_horizontal(chosen)).to_series().to_numpy() & ~may
        yield _broken(pairs, wrong, f"the selector {selector.name} accepts each chosen pair", *chosen)
    # Where every candidate is tested, the best candidate of a query need not be in a box, and so not in the release.
    skipped = marks if how.across else {"is_best"} if selector.settings().get("every") else set()
    for name in again.columns:
        if name not in pairs.columns or name in skipped:
            continue
        if pairs.schema[name].is_float():
            close = np.isclose(_values(pairs, name), _values(again, name), rtol=CLOSE, atol=CLOSE, equal_nan=True)
            wrong = ~close
        else:
            wrong = pairs[name].ne_missing(again[name].cast(pairs.schema[name])).to_numpy()
        if not facts.query_text and name in marks and pairs.schema[name] == pl.Boolean:
            # A pair that would reveal the text of an original query is left out, also if it is the best of its query.
            wrong &= pairs[name].to_numpy()
        rule = f"the selector {selector.name} computes the column {name!r} from the values of the pairs"
        yield _broken(pairs, wrong, rule, name)
    if facts.query_text and "fair" in pairs.columns:
        rule = "the original query and the reformulation of each pair in the subset fair have different texts"
        yield _broken(pairs.filter("fair"), pl.col("text") == pl.col("original_text"), rule, "text")


def _computed(pairs: pl.DataFrame, facts: Facts, selector: Selector) -> pl.DataFrame:
    how = facts.selection
    # Ties go to the first row of a query, so that the chosen pairs come first.
    first = [name for name in ("is_best", "fair") if pairs.schema.get(name) == pl.Boolean]
    rows = pairs.with_row_index("_row").sort(
        "query_id", *first, descending=[False, *(True for _ in first)], maintain_order=True
    )
    is_judged = how.barred and pairs.schema.get("source_judged") == pl.Boolean
    barred = rows["source_judged"].fill_null(False) if is_judged else pl.repeat(False, rows.height, eager=True)
    refused = None if how.holds is None else refusals(rows, how.holds)
    barred = barred if refused is None else barred | refused.is_not_null()
    # A candidate that must not be chosen competes with no other. With several rankers, the release lacks the values by
    # which candidates competed, but each chosen pair would be chosen if it were the only candidate of its query.
    alone = pl.when(barred | how.across).then("_row").alias("alone")
    keys = ["query_id", *(["method"] if how.per_method else []), alone]
    query = rows.select(keys).select(pl.struct(pl.all()).rank("dense")).to_series().to_numpy().astype(np.int64) - 1
    table = PairTable(rows, query, int(query.max()) + 1, {one.name: one.direction for one in facts.measures})
    outcome = outcomes(table, how.effectiveness, how.bias, float(selector.settings()["tolerance"]))
    columns = [pl.Series(name, values) for name, values in selector.choose(table).items()]
    marks = {*selector.subsets, "is_best"} - {"negative"}
    chosen = [column & ~barred if column.name in marks else column for column in columns]
    again = pl.DataFrame([rows["_row"], outcome.alias("outcome"), *chosen, *([] if refused is None else [refused])])
    if refused is not None and {"negative", "accepted"} <= set(again.columns):
        again = again.with_columns(WITH_REFUSED)
    return again.sort("_row").drop("_row")


def _robust(pairs: pl.DataFrame, facts: Facts) -> Iterator[Broken]:
    """A robust pair is not worse with any ranker; only the first one is checked, as the release lacks other values."""
    if not facts.robust_rankers:
        return
    names = [gain_column(name) for name in facts.robust_measures]
    selector = facts.selection.selector
    tolerance = 0.0 if selector is None else float(selector.settings()["tolerance"])
    sign = joint_signs([_values(pairs, name) for name in names], tolerance)
    rule = (
        "in each pair that is marked robust, no measure is worse for the reformulation than for the original query "
        f"(ranker {facts.robust_rankers[0]})"
    )
    yield _broken(pairs, pairs["robust"].fill_null(False).to_numpy() & (sign < 0), rule, *names)
