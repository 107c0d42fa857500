"""Filter, search and sort the pairs of a dataset, and read them a page at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from askew.app.build.pairs import finished_pairs, measures_of
from askew.app.explore.held_out import HeldOutPairs, held_out_pairs
from askew.app.explore.plan import made_at
from askew.core.errors import DataError, StoreError, UnknownName
from askew.core.fingerprint import digest_file
from askew.core.measure import Measure, gain_column, pair_columns
from askew.engine.files import LocalFiles
from askew.engine.manifest import Manifest
from askew.engine.store import Store

PAGE_ROWS, MOST_ROWS = 25, 200
# A spreadsheet program would read a cell with this beginning as a formula.
_FORMULA = r"^([=+\-@\t\r])"
FACETS = ("outcome", "method", "kind", "group", "label")
# Special names of subsets: all chosen pairs, and all pairs.
CHOSEN, EVERY = "chosen", "all"
# Flags of a pair that are not subsets of chosen pairs.
_FACTS = frozenset(["accepted", "is_best", "negative", "perfect", "source_judged", "valid"])
# The sort keys of pairs and their columns; a leading hyphen reverses the order.
SORTS = {
    "text": "text", "original": "original_text", "kind": "kind", "method": "method", "outcome": "outcome",
    "same": "p_same", "natural": "p_natural",
}  # fmt: skip
SIDES = ("effectiveness", "lean")


@dataclass(frozen=True)
class Wanted:
    """Filters and order of pairs; by default all pairs in the order of the table.

    ``text`` is searched in both queries. ``least`` is the minimum gain of ``measure``; with ``sort`` "gain" or "loss"
    the pairs with the largest gain or loss by it come first. ``lean_min`` to ``effectiveness_max`` bound the gains of
    the first measures of lean and effectiveness of the selector. ``sort`` may also be one of ``SORTS`` or ``SIDES``,
    with a leading hyphen for the reverse. ``subset`` may also be ``chosen`` (the pairs of any subset) or ``all``.
    """

    text: str = ""
    subset: str = ""
    outcome: str = ""
    method: str = ""
    kind: str = ""
    group: str = ""
    label: str = ""
    measure: str = ""
    least: float | None = None
    lean_min: float | None = None
    lean_max: float | None = None
    effectiveness_min: float | None = None
    effectiveness_max: float | None = None
    sort: str = ""


@dataclass(frozen=True)
class PairPage:
    """One page of pairs, and the total number of pairs that match the filters."""

    rows: tuple[dict[str, Any], ...]
    total: int
    page: int
    size: int

    @property
    def pages(self) -> int:
        """The number of pages; 1 even if no pair matches."""
        return max(1, -(-self.total // self.size))


def datasets(store: Store) -> list[Manifest]:
    """Return the finished steps with pairs, the most recent first if times are known."""
    found = [one for one in finished_pairs(store) if one.parts]
    return sorted(found, key=lambda one: (-made_at(store, one), one.step, one.key))


def find_pairs(store: Store, name: str = "") -> Manifest:
    """Return a dataset by ``step-key``; by default the most recent one."""
    found = datasets(store)
    if not found:
        raise DataError("there are no pairs in this store; use 'askew run' with a recipe that has a section [select]")
    known = {f"{one.step}-{one.key}": one for one in found}
    if name and name not in known:
        raise UnknownName("dataset", name, known)
    return known[name or next(iter(known))]


def open_pairs(store: Store, name: str = "") -> ShownPairs:
    """Find a dataset as ``find_pairs`` does, and verify the checksums of its parts."""
    manifest = find_pairs(store, name)
    return ShownPairs(f"{manifest.step}-{manifest.key}", _checked(store, manifest), manifest, store)


def _checked(store: Store, manifest: Manifest) -> pl.LazyFrame:
    """Verify the checksums of the parts, and return their rows; parts in a folder are read lazily."""
    if not isinstance(store.files, LocalFiles):
        return pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(manifest)))).lazy()
    paths = []
    for part in manifest.parts:
        path = store.folder(manifest.step, manifest.key) / part.file
        if _digest(path) != part.sha256:
            raise StoreError(f"{path.name}: the part is damaged (its digest differs from the manifest)")
        paths.append(path)
    return pl.scan_parquet(paths)


def _digest(path: Path) -> str:
    try:
        return digest_file(path)
    except OSError as error:
        why = error.strerror or str(error)
        raise StoreError(f"{path.name}: a part of a finished step cannot be read ({why})") from None


class ShownPairs:
    """The pairs of one dataset."""

    def __init__(self, name: str, frame: pl.LazyFrame, manifest: Manifest, store: Store) -> None:
        self.name, self.manifest, self._frame, self.measures = name, manifest, frame, measures_of(manifest)
        self._store = store
        # The manifest lists columns in alphabetical order, the parts have them in the order of the recipe.
        columns = frame.collect_schema()
        self.subsets = [one for one, kind in columns.items() if kind == pl.Boolean]
        self.columns = list(columns)

    @cached_property
    def chosen(self) -> list[str]:
        """The subsets of chosen pairs; empty if the selector marks none."""
        named = [name for name in self.subsets if name not in _FACTS]
        return named or [name for name in self.subsets if name == "is_best"]

    @cached_property
    def held_out(self) -> HeldOutPairs | None:
        """The held-out gains of the chosen pairs; None if the store does not have them."""
        measures = [name for name in self.sides if name is not None]
        return held_out_pairs(self._store, self.manifest, self._frame, measures, self.chosen)

    @cached_property
    def sides(self) -> tuple[str | None, str | None]:
        """The first measures of effectiveness and of lean of the selector; None for a side without one."""
        given = self.manifest.settings
        named = given.get("effectiveness", given.get("measure")), given.get("bias")
        return self._first(named[0]), self._first(named[1])

    def _first(self, named: Any) -> str | None:
        """Return the measure of the table that a setting names first, even if it is spelled differently."""
        texts = [named] if isinstance(named, str) else list(named or ())
        wanted = Measure.parse(texts[0]) if texts else None
        return next((one for one in self.measures if Measure.parse(one) == wanted), None)

    @cached_property
    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """The number of pairs with each value of each facet."""
        return self.counted(self._frame)

    def counted(self, frame: pl.LazyFrame) -> dict[str, dict[str, int]]:
        """Count the pairs with each value of each facet."""
        facets = [name for name in FACETS if name in self.columns]
        lazy = [frame.group_by(pl.col(name).cast(pl.String)).len().sort(name) for name in facets]
        flags = [pl.len().alias(f"@{EVERY}"), *(pl.col(name).sum() for name in self.subsets)]
        if self.chosen:
            flags.append(pl.any_horizontal(self.chosen).sum().alias(f"@{CHOSEN}"))
        *found, marked = pl.collect_all([*lazy, frame.select(flags)])
        told = {name: {str(value): int(count) for value, count in table.iter_rows() if value is not None}
                for name, table in zip(facets, found, strict=True)}  # fmt: skip
        flagged = {name: int(count) for name, count in marked.row(0, named=True).items()}
        order = (f"@{CHOSEN}", *self.chosen, "negative", f"@{EVERY}")
        known = [name for name in dict.fromkeys([*order, *flagged]) if name in flagged]
        # The special names take precedence over a subset with the same name.
        told["subset"] = {}
        for name in known:
            told["subset"].setdefault(name.removeprefix("@"), flagged[name])
        return told

    def facets(self, wanted: Wanted) -> dict[str, dict[str, int]]:
        """Count for each facet the pairs with each value, if this value replaced the selected one."""
        free = replace(wanted, sort="")
        found = self.counted(self.selection(free))
        for name in ("subset", *FACETS):
            if getattr(wanted, name) not in ("", EVERY):
                others: dict[str, Any] = {name: ""}
                found[name] = self.counted(self.selection(replace(free, **others))).get(name, {})
        # Values without pairs are kept, so that a user can deselect them.
        return {name: {value: found.get(name, {}).get(value, 0) for value in values}
                for name, values in self.counts.items()}  # fmt: skip

    def check(self, wanted: Wanted) -> None:
        """Refuse a filter with a name or value that this dataset does not have."""
        for name, value in (("subset", wanted.subset), *((name, getattr(wanted, name)) for name in FACETS)):
            if value and value not in (*self.counts.get(name, {}), *((CHOSEN,) if name == "subset" else ())):
                raise UnknownName(name, value, self.counts.get(name, {}), self.name)
        if wanted.measure and wanted.measure not in self.measures:
            raise UnknownName("measure", wanted.measure, self.measures, self.name)
        orders = ("gain", "loss", *SORTS, *SIDES)
        if wanted.sort and wanted.sort.removeprefix("-") not in orders:
            raise UnknownName("order", wanted.sort, orders)

    def selection(self, wanted: Wanted) -> pl.LazyFrame:
        """Return the pairs that match the filters, in order, with all columns."""
        self.check(wanted)
        frame = self._frame
        if wanted.text.strip():
            text = " ".join(wanted.text.split()).lower()
            held = [pl.col(name).str.to_lowercase().str.contains(text, literal=True) for name in self._texts()]
            frame = frame.filter(pl.any_horizontal(*held))
        if wanted.subset == CHOSEN and self.chosen:
            frame = frame.filter(pl.any_horizontal(self.chosen))
        elif wanted.subset not in ("", CHOSEN, EVERY):
            frame = frame.filter(pl.col(wanted.subset))
        for name in FACETS:
            if getattr(wanted, name):
                frame = frame.filter(pl.col(name).cast(pl.String) == getattr(wanted, name))
        if wanted.least is not None:
            frame = frame.filter(self._gain(wanted.measure) >= wanted.least)
        return self._sorted(self._within(frame, wanted), wanted)

    def _gain(self, measure: str | None) -> pl.Expr:
        """Return the gain of a measure, by default of the first one; null if it is not defined."""
        name = measure or (self.measures[0] if self.measures else None)
        return pl.lit(0.0) if name is None else pl.col(gain_column(name)).fill_nan(None)

    def _within(self, frame: pl.LazyFrame, wanted: Wanted) -> pl.LazyFrame:
        """Keep the pairs with gains of lean and effectiveness within the bounds."""
        for side, measure in zip(SIDES, self.sides, strict=True):
            low, high = getattr(wanted, f"{side}_min"), getattr(wanted, f"{side}_max")
            if low is not None and measure is not None:
                frame = frame.filter(self._gain(measure) >= low)
            if high is not None and measure is not None:
                frame = frame.filter(self._gain(measure) <= high)
        return frame

    def _sorted(self, frame: pl.LazyFrame, wanted: Wanted) -> pl.LazyFrame:
        name, down = wanted.sort.removeprefix("-"), wanted.sort.startswith("-")
        if not name:
            return frame
        if name in SIDES:
            by = self._gain(self.sides[SIDES.index(name)])
        elif name in SORTS:
            by = pl.col(SORTS[name]) if SORTS[name] in self.columns else pl.lit(0)
        else:
            by, down = self._gain(wanted.measure), (name == "gain") != down
        return frame.sort(by, descending=down, nulls_last=True, maintain_order=True)

    def _texts(self) -> list[str]:
        return [name for name in ("original_text", "text", "query_id") if name in self.columns]

    def page(self, wanted: Wanted, page: int = 1, size: int = PAGE_ROWS) -> PairPage:
        """Return one page of the pairs that match the filters; a page after the last one is empty."""
        frame = self.selection(wanted)
        size = min(size, MOST_ROWS)
        count, rows = pl.collect_all([frame.select(pl.len()), frame.slice((page - 1) * size, size)])
        return PairPage(tuple(self._row(row) for row in rows.iter_rows(named=True)), int(count.item()), page, size)

    def _row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a pair for a page: its texts, its subsets, and the old value, new value and gain of each measure."""
        kept = {name: row[name] for name in ("query_id", "variant_id", "original_text", "text", "method", "kind",
                                             "p_same", "p_natural", "outcome", "group", "label")
                if name in row}  # fmt: skip
        sides = {name: zip(("old", "new", "gain"), pair_columns(name), strict=True) for name in self.measures}
        values = {name: {side: _number(row.get(column)) for side, column in each} for name, each in sides.items()}
        told = {} if self.held_out is None else self.held_out.gains_of(row["query_id"], row["variant_id"])
        marked = [name for name in self.subsets if row[name]]
        return {**kept, "subsets": marked, "measures": values, "held_out_gains": told}


def _number(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def as_tsv(frame: pl.LazyFrame, path: Path) -> None:
    """Write the pairs as tab-separated values; cells that a spreadsheet would read as formulas are escaped."""
    frame.with_columns(pl.col(pl.String).str.replace(_FORMULA, "'$1")).sink_csv(path, separator="\t")


def as_parquet(frame: pl.LazyFrame, path: Path) -> None:
    """Write the pairs as Parquet."""
    frame.sink_parquet(path)
