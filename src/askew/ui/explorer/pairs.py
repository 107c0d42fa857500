"""Filter, search and sort the pairs of a dataset, and read them a page at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from askew.core.defaults import FEWEST, HELD_OUT
from askew.core.errors import AskewError, DataError, StoreError, UnknownName
from askew.core.files import digest_file
from askew.core.measure import (
    Measure,
    gain_column,
    held_out_gain_column,
    new_column,
    old_column,
    pair_columns,
)
from askew.core.outcome import signs, verdict
from askew.core.store.manifest import Manifest
from askew.core.store.store import Store
from askew.data.files import reason
from askew.measures.catalogue import Catalogue
from askew.pairs.figures import headline, held_out_gains
from askew.pairs.held_out import HeldOut
from askew.pairs.recipe import groups_of
from askew.pairs.stages import Select, finished_pairs, measures_of
from askew.pairs.summary import summarize
from askew.ui.explorer.plan import made_at, name_of, recorded_plan, rows_of

# Compute the held-out gains of the chosen pairs of a store.

Gains = Mapping[str, float | None]


@dataclass(frozen=True)
class HeldOutPairs:
    """``rows`` has the values of each chosen subset and measure (see ``headline``) and the ``verdict`` on the mean.

    ``gains`` has the gains of single pairs in the half of the documents that did not choose them, by query and variant.
    """

    rows: tuple[dict[str, Any], ...]
    gains: Mapping[tuple[str, str], Gains]


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
_SHOWN = (
    "query_id", "variant_id", "original_text", "text", "method", "kind", "p_same", "p_natural", "outcome", "group",
    "label",
)  # fmt: skip


def whole_text(text: str) -> str:
    """Refuse texts with NUL or surrogate characters, which other code could not write."""
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("expected valid text, found NUL or surrogate characters")
    return text


MOST_CHARS = 500
MOST_PAGE = 1_000_000
ShortText = Annotated[str, Field(max_length=MOST_CHARS), AfterValidator(whole_text)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
# A form sends an empty field as an empty text.
Bound = Annotated[Finite | None, BeforeValidator(lambda given: None if given == "" else given)]
Order = Annotated[str, Field(pattern=rf"^(|-?({'|'.join((*SORTS, *SIDES))}))$")]


class PairFilter(BaseModel):
    """Filters for the pairs of a dataset, and the page to return."""

    # ``text`` is searched in both queries. ``lean_min`` to ``effectiveness_max`` bound the gains of the first measures
    # of lean and effectiveness of the selector. ``sort`` is one of ``SORTS`` or ``SIDES``, with a leading hyphen for
    # the reverse. ``subset`` may also be ``chosen`` (the pairs of any subset) or ``all``.
    model_config = ConfigDict(extra="forbid", frozen=True)

    dataset: ShortText = ""
    text: ShortText = ""
    subset: ShortText = ""
    outcome: ShortText = ""
    method: ShortText = ""
    kind: ShortText = ""
    group: ShortText = ""
    label: ShortText = ""
    lean_min: Bound = None
    lean_max: Bound = None
    effectiveness_min: Bound = None
    effectiveness_max: Bound = None
    sort: Order = ""
    page: Annotated[int, Field(ge=1, le=MOST_PAGE)] = 1
    size: Annotated[int, Field(ge=1, le=MOST_ROWS)] = PAGE_ROWS

    def but(self, **changed: Any) -> PairFilter:
        """Return the filter with some values changed, without validating them again."""
        return self.model_copy(update=changed)


@dataclass(frozen=True)
class PairPage:
    """A page of pairs. ``total`` counts all pairs that match; ``next`` is the next page, null on the last."""

    dataset: str
    total: int
    page: int
    pages: int
    size: int
    next: int | None
    rows: list[dict[str, Any]]


def datasets(store: Store) -> list[Manifest]:
    """Return the finished steps with pairs, the most recent first."""
    found = [one for one in finished_pairs(store) if one.parts]
    return sorted(found, key=lambda one: (-made_at(store, one), one.step, one.key))


def find_pairs(store: Store, name: str = "") -> Manifest:
    """Return a dataset by ``step-key``; by default the most recent one."""
    found = datasets(store)
    if not found:
        raise DataError(
            "there are no pairs in this store; use 'askew run' with a recipe that has a section [select]",
            code="no-pairs",
        )
    known = {name_of(one): one for one in found}
    if name and name not in known:
        raise UnknownName("dataset", name, known)
    return known[name or next(iter(known))]


def open_pairs(store: Store, name: str = "") -> ShownPairs:
    """Find a dataset as ``find_pairs`` does, and verify the checksums of its parts."""
    manifest = find_pairs(store, name)
    for part in manifest.parts:
        try:
            digest = digest_file(store.folder(manifest.step, manifest.key) / part.file)
        except OSError as error:
            raise StoreError(f"{part.file}: a part of a finished step cannot be read ({reason(error)})") from None
        if digest != part.sha256:
            raise StoreError(f"{part.file}: the part is damaged (its digest differs from the manifest)")
    return ShownPairs(name_of(manifest), rows_of(store, manifest), manifest, store)


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
        # Somebody else may have written the store, so no code of a measure in a Python file is run.
        measures = [name for name in self.sides if name is not None and ".py:" not in name]
        # The finished held-out step for the same result lists and the same selector.
        steps, pairs, subsets = self._store.steps(), self.manifest, self.chosen
        scores = next((one for one in steps if one.key == pairs.input_key), None)
        select = [Select.version, dict(pairs.settings)]
        found = (
            one for one in steps
            if one.stage == HeldOut.name and scores is not None and one.input_key == scores.input_key
            and list(one.settings.get("select", ())) == select and one.parts
        )  # fmt: skip
        step = next(found, None)
        if step is None or not subsets or not measures:
            return None
        try:
            plan = recorded_plan(self._store)
            asked = Catalogue(groups=None if plan is None else groups_of(plan.recipe)).complete(list(measures))
        except AskewError:  # a word list does not exist any more, so directions are unknown
            return None
        directions = {one.text: one.direction for one in asked}
        rows = pl.DataFrame(pl.from_arrow(pa.concat_tables(self._store.read(step))))
        subsets = [name for name in subsets if name in rows.columns]
        columns = [side(name) for name in directions for side in (old_column, new_column)]
        whole = summarize(self._frame.select("query_id", *subsets, *columns).collect(), directions, subsets)
        told = summarize(rows, directions, subsets)
        figures = []
        for row in headline(whole, told).to_dicts():
            # Better or worse if the interval of the change excludes zero; signed measures count by absolute value.
            count = row["held_out_queries" if row["figures"] == HELD_OUT else "queries"]
            ends = row["low"], row["high"]
            sure = None not in ends and count >= FEWEST and not ends[0] <= 0 <= ends[1]
            found_verdict = verdict(row["old_mean"], row["new_mean"], directions[row["measure"]]) if sure else None
            figures.append({**row, "verdict": None if found_verdict is None else found_verdict.value})
        gains = {
            (row["query_id"], row["variant_id"]): {name: row[held_out_gain_column(name)] for name in directions}
            for row in held_out_gains(rows, directions).iter_rows(named=True)
        }
        return HeldOutPairs(tuple(figures), gains)

    @cached_property
    def sides(self) -> tuple[str | None, str | None]:
        """The first measures of effectiveness and of lean of the selector; None for a side without one."""
        given = self.manifest.settings

        def first(named: Any) -> str | None:
            """Return the measure of the table that a setting names first, even if it is spelled differently."""
            texts = [named] if isinstance(named, str) else list(named or ())
            wanted = Measure.parse(texts[0]) if texts else None
            return next((one for one in self.measures if Measure.parse(one) == wanted), None)

        return first(given.get("effectiveness", given.get("measure"))), first(given.get("bias"))

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

    def facets(self, wanted: PairFilter) -> dict[str, dict[str, int]]:
        """Count for each facet the pairs with each value, if this value replaced the selected one."""
        free = wanted.but(sort="")
        found = self.counted(self.selection(free))
        for name in ("subset", *FACETS):
            if getattr(wanted, name) not in ("", EVERY):
                found[name] = self.counted(self.selection(free.but(**{name: ""}))).get(name, {})
        # Values without pairs are kept, so that a user can deselect them.
        return {name: {value: found.get(name, {}).get(value, 0) for value in values}
                for name, values in self.counts.items()}  # fmt: skip

    def check(self, wanted: PairFilter) -> None:
        """Refuse a filter with a name or value that this dataset does not have."""
        for name, value in (("subset", wanted.subset), *((name, getattr(wanted, name)) for name in FACETS)):
            if value and value not in (*self.counts.get(name, {}), *((CHOSEN,) if name == "subset" else ())):
                raise UnknownName(name, value, self.counts.get(name, {}), self.name)

    def selection(self, wanted: PairFilter) -> pl.LazyFrame:
        """Return the pairs that match the filters, in order, with all columns."""
        self.check(wanted)
        frame = self._frame
        if wanted.text.strip():
            text = " ".join(wanted.text.split()).lower()
            names = [name for name in ("original_text", "text", "query_id") if name in self.columns]
            held = [pl.col(name).str.to_lowercase().str.contains(text, literal=True) for name in names]
            frame = frame.filter(pl.any_horizontal(*held))
        if wanted.subset == CHOSEN and self.chosen:
            frame = frame.filter(pl.any_horizontal(self.chosen))
        elif wanted.subset not in ("", CHOSEN, EVERY):
            frame = frame.filter(pl.col(wanted.subset))
        for name in FACETS:
            if getattr(wanted, name):
                frame = frame.filter(pl.col(name).cast(pl.String) == getattr(wanted, name))
        for side, measure in zip(SIDES, self.sides, strict=True):
            ends = [getattr(wanted, f"{side}_{end}") for end in ("min", "max")]
            if measure is not None and ends != [None, None]:
                low, high = (no if end is None else end for end, no in zip(ends, (-math.inf, math.inf), strict=True))
                frame = frame.filter(self._gain(measure).is_between(low, high))
        name, down = wanted.sort.removeprefix("-"), wanted.sort.startswith("-")
        if not name:
            return frame
        if name in SIDES:
            by = self._gain(self.sides[SIDES.index(name)])
        else:
            by = pl.col(SORTS[name]) if SORTS[name] in self.columns else pl.lit(0)
        return frame.sort(by, descending=down, nulls_last=True, maintain_order=True)

    def _gain(self, measure: str | None) -> pl.Expr:
        """Return the gain of a measure, by default of the first one; null if it is not defined."""
        name = measure or (self.measures[0] if self.measures else None)
        return pl.lit(0.0) if name is None else pl.col(gain_column(name)).fill_nan(None)

    def page(self, wanted: PairFilter) -> PairPage:
        """Return the page of the pairs that match the filters; a page after the last one is empty."""
        frame, page, size = self.selection(wanted), wanted.page, wanted.size
        count, rows = pl.collect_all([frame.select(pl.len()), frame.slice((page - 1) * size, size)])
        total = int(count.item())
        pages = max(1, -(-total // size))
        rows_shown = [self._row(row) for row in rows.iter_rows(named=True)]
        return PairPage(self.name, total, page, pages, size, page + 1 if page < pages else None, rows_shown)

    def _row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a pair for a page: its texts, its subsets, and the old value, new value and gain of each measure."""
        kept = {name: row[name] for name in _SHOWN if name in row}
        sides = {name: zip(("old", "new", "gain"), pair_columns(name), strict=True) for name in self.measures}
        values = {
            name: {
                side: None if (value := row.get(column)) is None or math.isnan(value) else value
                for side, column in each
            }
            for name, each in sides.items()
        }
        told = {} if self.held_out is None else self.held_out.gains.get((row["query_id"], row["variant_id"]), {})
        marked = [name for name in self.subsets if row[name]]
        return {**kept, "subsets": marked, "measures": values, "held_out_gains": told}


def as_tsv(frame: pl.LazyFrame, path: Path) -> None:
    """Write the pairs as tab-separated values; cells that a spreadsheet would read as formulas are escaped."""
    frame.with_columns(pl.col(pl.String).str.replace(_FORMULA, "'$1")).sink_csv(path, separator="\t")


# Bin the gains of pairs in lean and effectiveness into cells of a chart, for any number of pairs.

# The numbers of cells along lean and effectiveness; two more on each axis, because signs next to zero are separate.
ACROSS, UPRIGHT = 46, 30
MOST_CELLS = (ACROSS + 2) * (UPRIGHT + 2)
Ends = tuple[Any, Any]


@dataclass(frozen=True)
class GainCells:
    """The cells of the matching pairs (``fitting``) and of all pairs (``every``); ``span`` has the ends of the axes.

    A cell has the mean gains ``x`` (lean) and ``y`` (effectiveness) of its ``pairs`` and, by the tolerance of the
    selector, the signs of these gains (``x_sign``, ``y_sign``).
    ``span`` is that of all pairs, so that the axes do not depend on the filters. ``lean`` (horizontal) and
    ``effectiveness`` (vertical) are the measures. ``unknown`` is the number of matching pairs without a gain.
    """

    lean: str
    effectiveness: str
    fitting: pl.DataFrame
    every: pl.DataFrame
    span: tuple[Ends, Ends]
    unknown: int


def gain_cells(table: ShownPairs, wanted: PairFilter) -> GainCells | None:
    """Bin the pairs that match the filters, ignoring bounds on gains.

    None if the selector does not have measures of both effectiveness and lean.
    """
    effectiveness, lean = table.sides
    if effectiveness is None or lean is None:
        return None
    columns = [
        pl.col(gain_column(name)).fill_null(np.nan).alias(side) for side, name in (("x", lean), ("y", effectiveness))
    ]
    free = wanted.but(sort="", lean_min=None, lean_max=None, effectiveness_min=None, effectiveness_max=None)
    frames = [one.select(columns) for one in (table.selection(PairFilter()), table.selection(free))]
    tables = pl.collect_all(frames)
    every, fitting = (one.filter(pl.all_horizontal(pl.col("x", "y").is_not_nan())) for one in tables)
    ends = [(every[side].min(), every[side].max()) if every.height else (0.0, 0.0) for side in ("x", "y")]
    span, tolerance = (ends[0], ends[1]), float(table.manifest.settings.get("tolerance", 0.0))
    return GainCells(
        lean, effectiveness, _cells(fitting, span, tolerance), _cells(every, span, tolerance), span,
        tables[1].height - fitting.height,
    )  # fmt: skip


def _cells(gains: pl.DataFrame, span: tuple[Ends, Ends], tolerance: float) -> pl.DataFrame:
    """Group gains (``x``, ``y``) into equal bins on each axis, each of which is split by sign into three."""
    keys = []
    for side, (low, high), count in zip(("x", "y"), span, (ACROSS, UPRIGHT), strict=True):
        values, wide = gains[side].to_numpy(), (high - low) / count or 1.0
        bins = np.clip(((values - low) / wide).astype(np.int64), 0, count - 1)
        keys += [pl.Series(f"{side}_bin", bins), pl.Series(f"{side}_sign", signs(values, tolerance))]
    names = [key.name for key in keys]
    return gains.with_columns(keys).group_by(names).agg(pl.mean("x", "y"), pl.len().alias("pairs")).sort(names)
