"""select: scores in, pairs out: an original, another variant, what is gained, and what the pair is chosen for."""

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

NO_ORIGINAL = "the original found nothing"
PER = ("query", "method")
EXCLUDE, ALLOW = JUDGED_SOURCES = ("exclude", "allow")
_SCORED = "scored_by"
IS_BEST, _PLACE = "is_best", "_place"


class Select:
    """Makes the pairs of each query and says which are chosen.

    Every pair carries its original's scores, so the originals' own rows end here and are counted so. With
    ``per="method"`` each method chooses among its own candidates, as if it were alone: methods are compared so.

    A candidate made from a document that is judged relevant to its query finds that document by construction. With
    ``judged_sources="exclude"`` it stays a pair, may be a negative sample, and is chosen for no other subset.

    ``across`` has the scores of all candidates under other rankers: then a candidate is chosen only if it is acceptable
    under every ranker, and by its smallest gain (``askew.app.build.across``).
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
        """The selector with its settings, and all measures of the pairs, also those that choose nothing."""
        per: dict[str, Any] = {} if self.per == "query" else {"per": self.per}
        if self.across:
            per["across"] = {name: one.key for name, one in self.across.items()}
        return {
            "selector": self.selector.name, **self.selector.settings(), **per, "judged_sources": self.judged_sources,
            _SCORED: list(self._directions),
        }  # fmt: skip

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """One row for each pair."""
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
        """The pairs in the order of their candidates, and what was left out."""
        allowed = self.allowed(scored.with_row_index(_PLACE))
        if allowed.height == scored.height and not self.across:
            alone: Chosen = self.selector.select_counted(scored, self._directions)
            return alone.table, alone.dropped
        # Of a text that was made twice the first is kept: the one that may be chosen.
        barred = scored.with_row_index(_PLACE).filter(~pl.col(_PLACE).is_in(allowed[_PLACE].implode()))
        every: Chosen = self.selector.select_counted(pl.concat([allowed, barred]), self._directions)
        marks = self._marks(every.table)
        chosen = self._chosen(allowed).select(_PLACE, *marks)
        pairs = every.table.drop(marks).join(chosen, on=_PLACE, how="left", maintain_order="left")
        filled = [pl.col(name).fill_null(False) for name in marks if every.table.schema[name] == pl.Boolean]
        return pairs.with_columns(filled).select(every.table.columns).sort(_PLACE).drop(_PLACE), every.dropped

    def _chosen(self, allowed: pl.DataFrame) -> pl.DataFrame:
        """The pairs of the candidates that may be chosen, with what they are chosen for."""
        if not self.across:
            alone: Chosen = self.selector.select_counted(allowed, self._directions)
            return alone.table
        others = {name: one.of(allowed.select("query_id")) for name, one in self.across.items()}
        return choose_across(self.selector, allowed, others, self._directions)

    def allowed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Those of some scores or pairs that may be chosen."""
        return rows if self.judged_sources == ALLOW else without_judged(rows)

    def allowed_parts(self, pairs: PairParts) -> PairParts:
        """The same of pairs in parts."""
        barred = self.judged_sources != ALLOW and SOURCE_JUDGED in pairs.columns
        return pairs.filter(~pl.col(SOURCE_JUDGED)) if barred else pairs

    def _marks(self, pairs: pl.DataFrame) -> list[str]:
        """The columns that say what a pair is chosen for, and the score written with it."""
        names = [name for name in {**dict.fromkeys(self.selector.subsets), IS_BEST: None} if name != NEGATIVE]
        return [name for name in (*names, *(f"{one}_score" for one in names)) if name in pairs.columns]

    def _parts(self, scored: pl.DataFrame) -> list[pl.DataFrame]:
        """What is chosen from together: all candidates of a query, or those of one method at a time."""
        methods = [name for name in scored["method"].unique(maintain_order=True) if name != ORIGINAL]
        if self.per == "query" or not methods:
            return [scored]
        return [scored.filter(pl.col("method").is_in([ORIGINAL, name])) for name in methods]


def with_originals(scored: pl.DataFrame) -> pl.DataFrame:
    """Scores without queries whose original found nothing: they are counted where pairs are made."""
    known = scored.filter(pl.col("method") == ORIGINAL)["query_id"]
    return scored.filter(pl.col("query_id").is_in(known.implode()))


def finished_pairs(store: Store) -> list[Manifest]:
    """The finished steps of a store that hold pairs; not those of an earlier version, whose columns are others."""
    return [one for one in store.steps() if (one.stage, one.version) == (Select.name, Select.version)]


def without_judged(rows: pl.DataFrame) -> pl.DataFrame:
    """Scores or pairs without those made from documents that are judged relevant."""
    return rows.filter(~pl.col(SOURCE_JUDGED)) if SOURCE_JUDGED in rows.columns else rows


def judged_note(stage: Select, pairs: PairParts) -> str | None:
    """How many pairs were made from documents that are judged relevant, and what that means for the choice."""
    count = pairs.count(SOURCE_JUDGED)[SOURCE_JUDGED] if SOURCE_JUDGED in pairs.columns else 0
    if not count:
        return None
    said = f"{count:,} of {pairs.height:,} candidates were made from a document that is judged relevant to their query"
    return f"{said}: {'they may be chosen' if stage.judged_sources == ALLOW else 'none of them may be chosen'}"


def measures_of(pairs: Manifest) -> list[str]:
    """The texts of the measures of finished pairs, which names of columns do not tell."""
    return list(pairs.settings[_SCORED])


def _by_query(pairs: pl.DataFrame, queries: pl.Series) -> pl.DataFrame:
    """The pairs of a query together, queries in the order of their originals."""
    order = pl.DataFrame({"query_id": queries}).with_row_index("place")
    return (
        pairs.join(order, on="query_id", how="left", maintain_order="left")
        .sort("place", maintain_order=True)
        .drop("place")
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    """The types that a table in the store has: polars hands out larger ones."""
    return pa.string() if kind in (pa.large_string(), pa.string_view()) else kind
