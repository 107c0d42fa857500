"""Find the reformulations of a query in a store: its pairs, or those that ship with the demo."""

from __future__ import annotations

from functools import cached_property

import polars as pl
import pyarrow as pa

from askew.app.build.prepare import reformulate_methods
from askew.app.build.variants import Keep, ReformulateStage
from askew.app.explore.plan import RecordedPlan
from askew.app.search.reformulate import FirstPass, make_filter
from askew.engine.files import LocalFiles
from askew.engine.store import Store

COLUMNS = ("query_id", "variant_id", "text", "method", "doc_id", "p_same", "p_natural")
_REPLAYED = "replay"


class StoredPairs:
    """Finds reformulations by the id of their query."""

    def __init__(self, store: Store, plan: RecordedPlan) -> None:
        self._store, self._plan = store, plan

    @cached_property
    def _pairs(self) -> pl.LazyFrame | None:
        """The pairs of the plan, read lazily from their files."""
        found = self._plan.manifest(self._store, "pairs")
        if found is None or not found.parts:
            return None
        if not isinstance(self._store.files, LocalFiles):
            return pl.DataFrame(pl.from_arrow(pa.concat_tables(self._store.read(found)))).lazy()
        folder = self._store.folder(found.step, found.key)
        return pl.scan_parquet([folder / part.file for part in found.parts])

    def reformulations(self, query_id: str, text: str) -> pa.Table | None:
        """Return the reformulations of a query, chosen pairs first; None if there are none."""
        if self._pairs is None:
            return self._replayed(query_id, text)
        rows = self._pairs.filter(pl.col("query_id") == query_id).collect()
        if not rows.height:
            return None
        chosen = [name for name in ("optimal", "effective", "fair", "is_best", "front") if name in rows.columns]
        first = pl.any_horizontal(chosen) if chosen else pl.lit(False)
        missing = [pl.lit(None, pl.Float64).alias(name) for name in COLUMNS[-2:] if name not in rows.columns]
        return rows.with_columns(*missing).sort(first, descending=True, maintain_order=True).select(COLUMNS).to_arrow()

    @cached_property
    def _replay(self) -> tuple[ReformulateStage, Keep] | None:
        """The stages that replay reformulations from a file of the recipe, which need no build."""
        recipe = self._plan.recipe
        named = {name: one for name, one in reformulate_methods(recipe, self._plan.groups).items()
                 if one.method == _REPLAYED}  # fmt: skip
        if not named:
            return None
        filters = [make_filter(one, self._plan.groups) for one in recipe.tables("filter")]
        return ReformulateStage(named, _no_passages, ""), Keep(filters)

    def _replayed(self, query_id: str, text: str) -> pa.Table | None:
        if self._replay is None:
            return None
        stage, keep = self._replay
        found, _ = keep.run(stage.run(pa.table({"query_id": [query_id], "text": [text]}))[0])
        return found.slice(1).select(COLUMNS) if found.num_rows > 1 else None


def _no_passages() -> FirstPass:
    raise AssertionError("this reformulator only reads stored reformulations, so it must not request passages")
