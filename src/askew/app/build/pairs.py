"""The stage select: makes pairs of an original and a reformulation with their gains, and chooses some of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import polars as pl
import pyarrow as pa

from askew.app.build.across import NEGATIVE, Chosen, StepScores, choose_across
from askew.app.build.scores import SOURCE_JUDGED
from askew.app.build.variants import ORIGINAL
from askew.core.errors import ConfigError
from askew.core.measure import Direction
from askew.engine.manifest import Manifest
from askew.engine.store import Store
from askew.plugins.kinds import SelectorPlugin
from askew.selectors.parts import PairParts

NO_ORIGINAL = "the original query found no documents"
PER = ("query", "method")
EXCLUDE, ALLOW = JUDGED_SOURCES = ("exclude", "allow")
_SCORED = "scored_by"
IS_BEST, _PLACE = "is_best", "_place"


class Select:
    """Makes the pairs of each query and marks the chosen ones.

    Every pair has the scores of its original, so the rows of originals are dropped here and counted as ``original``.
    With ``per="method"``, pairs are chosen separately among the candidates of each method, to compare methods.

    A candidate made from a document that is judged relevant to its query finds that document by construction. With
    ``judged_sources="exclude"`` it stays a pair and may be a negative sample, but is not chosen.

    ``across`` has the scores of all candidates with other rankers. Then a candidate is chosen only if it is acceptable
    with every ranker, and by its smallest gain (``askew.app.build.across``).
    """

    name = "select"
    version = 3
    together = "query_id"

    def __init__(
        self, selector: SelectorPlugin, directions: Mapping[str, Direction], per: str = "query",
        judged_sources: str = EXCLUDE, across: Mapping[str, StepScores] | None = None,
    ) -> None:  # fmt: skip
        for name, given, known in (("per", per, PER), ("judged_sources", judged_sources, JUDGED_SOURCES)):
            if given not in known:
                raise ConfigError(f"select.{name}: expected {' or '.join(known)}, found {given!r}")
        self.selector, self._directions, self.per = selector, dict(directions), per
        self.judged_sources, self.across = judged_sources, dict(across or {})

    def settings(self) -> Mapping[str, Any]:
        """Return the selector with its settings, and all measures of the pairs, also those that are only reported."""
        per: dict[str, Any] = {} if self.per == "query" else {"per": self.per}
        if self.across:
            per["across"] = {name: one.key for name, one in self.across.items()}
        return {
            "selector": self.selector.name, **self.selector.settings(), **per, "judged_sources": self.judged_sources,
            _SCORED: list(self._directions),
        }  # fmt: skip

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return one row for each pair."""
        scored = pl.DataFrame(pl.from_arrow(rows))
        known = scored.filter(pl.col("method") == ORIGINAL)["query_id"]
        ready = scored.filter(pl.col("query_id").is_in(known.implode()))
        found = [self._choose(part) for part in self._parts(ready)]
        dropped: Counter[str] = Counter({"original": len(known)})
        for _, counts in found:
            dropped.update(counts)
        if ready.height < scored.height:
            dropped[NO_ORIGINAL] = scored.height - ready.height
        table = _by_query(pl.concat([one for one, _ in found]), known).to_arrow()
        plain = pa.schema([(field.name, _plain(field.type)) for field in table.schema])
        return table.cast(plain), dict(dropped)

    def _choose(self, scored: pl.DataFrame) -> tuple[pl.DataFrame, Mapping[str, int]]:
        """Return the pairs in the order of their candidates, and the numbers of dropped rows by reason."""
        allowed = self.allowed(scored.with_row_index(_PLACE))
        if allowed.height == scored.height and not self.across:
            alone: Chosen = self.selector.select_counted(scored, self._directions)
            return alone.table, alone.dropped
        # Of equal texts the first is kept; candidates that may be chosen come first.
        barred = scored.with_row_index(_PLACE).filter(~pl.col(_PLACE).is_in(allowed[_PLACE].implode()))
        every: Chosen = self.selector.select_counted(pl.concat([allowed, barred]), self._directions)
        marks = self._marks(every.table)
        chosen = self._chosen(allowed).select(_PLACE, *marks)
        pairs = every.table.drop(marks).join(chosen, on=_PLACE, how="left", maintain_order="left")
        filled = [pl.col(name).fill_null(False) for name in marks if every.table.schema[name] == pl.Boolean]
        return pairs.with_columns(filled).select(every.table.columns).sort(_PLACE).drop(_PLACE), every.dropped

    def _chosen(self, allowed: pl.DataFrame) -> pl.DataFrame:
        """Return the pairs of the candidates that may be chosen, with their subsets."""
        if not self.across:
            alone: Chosen = self.selector.select_counted(allowed, self._directions)
            return alone.table
        others = {name: one.of(allowed.select("query_id")) for name, one in self.across.items()}
        return choose_across(self.selector, allowed, others, self._directions)

    def allowed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the scores or pairs of the candidates that may be chosen."""
        return rows if self.judged_sources == ALLOW else without_judged(rows)

    def allowed_parts(self, pairs: PairParts) -> PairParts:
        """Return the pairs that may be chosen, for pairs in parts."""
        barred = self.judged_sources != ALLOW and SOURCE_JUDGED in pairs.columns
        return pairs.filter(~pl.col(SOURCE_JUDGED)) if barred else pairs

    def _marks(self, pairs: pl.DataFrame) -> list[str]:
        """Return the columns that mark the subsets of a pair, and the columns of their scores."""
        names = [name for name in {**dict.fromkeys(self.selector.subsets), IS_BEST: None} if name != NEGATIVE]
        return [name for name in (*names, *(f"{one}_score" for one in names)) if name in pairs.columns]

    def _parts(self, scored: pl.DataFrame) -> list[pl.DataFrame]:
        """Split the candidates among which pairs are chosen: all of a query, or those of one method at a time."""
        methods = [name for name in scored["method"].unique(maintain_order=True) if name != ORIGINAL]
        if self.per == "query" or not methods:
            return [scored]
        return [scored.filter(pl.col("method").is_in([ORIGINAL, name])) for name in methods]


def with_originals(scored: pl.DataFrame) -> pl.DataFrame:
    """Remove queries for which the original has no results; they are counted where pairs are made."""
    known = scored.filter(pl.col("method") == ORIGINAL)["query_id"]
    return scored.filter(pl.col("query_id").is_in(known.implode()))


def finished_pairs(store: Store) -> list[Manifest]:
    """Return the finished steps with pairs in a store, except those of earlier versions with other columns."""
    return [one for one in store.steps() if (one.stage, one.version) == (Select.name, Select.version)]


def without_judged(rows: pl.DataFrame) -> pl.DataFrame:
    """Remove scores or pairs of candidates made from documents that are judged relevant."""
    return rows.filter(~pl.col(SOURCE_JUDGED)) if SOURCE_JUDGED in rows.columns else rows


def judged_note(stage: Select, pairs: PairParts) -> str | None:
    """Say how many candidates were made from relevant documents, and whether they may be chosen; None if none."""
    count = pairs.count(SOURCE_JUDGED)[SOURCE_JUDGED] if SOURCE_JUDGED in pairs.columns else 0
    if not count:
        return None
    said = f"{count:,} of {pairs.height:,} candidates were made from a document that is judged relevant to their query"
    return f"{said}: {'they may be chosen' if stage.judged_sources == ALLOW else 'none of them may be chosen'}"


def measures_of(pairs: Manifest) -> list[str]:
    """Return the texts of the measures of finished pairs, which cannot be derived from the column names."""
    return list(pairs.settings[_SCORED])


def _by_query(pairs: pl.DataFrame, queries: pl.Series) -> pl.DataFrame:
    """Group the pairs by query, in the order of the original queries."""
    order = pl.DataFrame({"query_id": queries}).with_row_index("place")
    return (
        pairs.join(order, on="query_id", how="left", maintain_order="left")
        .sort("place", maintain_order=True)
        .drop("place")
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    """Convert the large types of polars to the plain types of tables in the store."""
    return pa.string() if kind in (pa.large_string(), pa.string_view()) else kind
