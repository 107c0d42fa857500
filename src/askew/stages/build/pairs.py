"""select: scores in, pairs out: an original, another variant, what is gained, and what the pair is chosen for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import polars as pl
import pyarrow as pa

from askew.core.measure import Direction
from askew.plugins.kinds import Selector
from askew.stages.build.variants import ORIGINAL

NO_ORIGINAL = "the original found nothing"


class _Counted(Protocol):
    table: pl.DataFrame
    dropped: Mapping[str, int]


class Select:
    """Makes the pairs of each query and says which are chosen.

    Every pair carries its original's scores, so the originals' own rows end here and are counted so.
    """

    name = "select"
    version = 1
    together = "query_id"

    def __init__(self, selector: Selector, directions: Mapping[str, Direction]) -> None:
        self.selector, self._directions = selector, dict(directions)

    def settings(self) -> Mapping[str, Any]:
        """The selector with its settings."""
        return {"selector": self.selector.name, **self.selector.settings()}

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """One row for each pair."""
        scored = pl.DataFrame(pl.from_arrow(rows))
        known = scored.filter(pl.col("method") == ORIGINAL)["query_id"]
        ready = scored.filter(pl.col("query_id").is_in(known.implode()))
        found: _Counted = self.selector.select_counted(ready, self._directions)
        dropped = {"original": len(known), **found.dropped}
        if ready.height < scored.height:
            dropped[NO_ORIGINAL] = scored.height - ready.height
        table = found.table.to_arrow()
        plain = pa.schema([(field.name, _plain(field.type)) for field in table.schema])
        return table.cast(plain), dropped


def _plain(kind: pa.DataType) -> pa.DataType:
    """The types that a table in the store has: polars hands out larger ones."""
    return pa.string() if kind in (pa.large_string(), pa.string_view()) else kind
