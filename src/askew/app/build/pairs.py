"""select: scores in, pairs out: an original, another variant, what is gained, and what the pair is chosen for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

import polars as pl
import pyarrow as pa

from askew.app.build.variants import ORIGINAL
from askew.core.errors import ConfigError
from askew.core.measure import Direction
from askew.engine.manifest import Manifest
from askew.engine.store import Store
from askew.plugins.kinds import SelectorPlugin

NO_ORIGINAL = "the original found nothing"
PER = ("query", "method")
_SCORED = "scored_by"


class _Counted(Protocol):
    table: pl.DataFrame
    dropped: Mapping[str, int]


class Select:
    """Makes the pairs of each query and says which are chosen.

    Every pair carries its original's scores, so the originals' own rows end here and are counted so. With
    ``per="method"`` each method chooses among its own candidates, as if it were alone: methods are compared so.
    """

    name = "select"
    version = 2
    together = "query_id"

    def __init__(self, selector: SelectorPlugin, directions: Mapping[str, Direction], per: str = "query") -> None:
        if per not in PER:
            raise ConfigError(f"select.per: expected {' or '.join(PER)}, found {per!r}")
        self.selector, self._directions, self.per = selector, dict(directions), per

    def settings(self) -> Mapping[str, Any]:
        """The selector with its settings, and all measures of the pairs, also those that choose nothing."""
        per = {} if self.per == "query" else {"per": self.per}
        return {"selector": self.selector.name, **self.selector.settings(), **per, _SCORED: list(self._directions)}

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """One row for each pair."""
        scored = pl.DataFrame(pl.from_arrow(rows))
        known = scored.filter(pl.col("method") == ORIGINAL)["query_id"]
        ready = scored.filter(pl.col("query_id").is_in(known.implode()))
        found = [self._choose(part) for part in self._parts(ready)]
        dropped: Counter[str] = Counter({"original": len(known)})
        for one in found:
            dropped.update(one.dropped)
        if ready.height < scored.height:
            dropped[NO_ORIGINAL] = scored.height - ready.height
        table = _by_query(pl.concat([one.table for one in found]), known).to_arrow()
        plain = pa.schema([(field.name, _plain(field.type)) for field in table.schema])
        return table.cast(plain), dict(dropped)

    def _choose(self, scored: pl.DataFrame) -> _Counted:
        found: _Counted = self.selector.select_counted(scored, self._directions)
        return found

    def _parts(self, scored: pl.DataFrame) -> list[pl.DataFrame]:
        """What is chosen from together: all candidates of a query, or those of one method at a time."""
        methods = [name for name in scored["method"].unique(maintain_order=True) if name != ORIGINAL]
        if self.per == "query" or not methods:
            return [scored]
        return [scored.filter(pl.col("method").is_in([ORIGINAL, name])) for name in methods]


def finished_pairs(store: Store) -> list[Manifest]:
    """The finished steps of a store that hold pairs; not those of an earlier version, whose columns are others."""
    return [one for one in store.steps() if (one.stage, one.version) == (Select.name, Select.version)]


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
