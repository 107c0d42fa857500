"""Read the output rows of a step, at once or in parts."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pyarrow as pa

from askew.engine.manifest import Manifest
from askew.engine.store import Store
from askew.selectors.parts import PairParts


def frame_of(store: Store, manifest: Manifest, columns: list[str] | None = None) -> pl.DataFrame:
    """Read all rows of a finished step."""
    return pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(manifest, columns))))


def frames_of(store: Store, manifest: Manifest, columns: list[str] | None = None) -> Iterator[pl.DataFrame]:
    """Read the rows of a finished step, part by part."""
    for part in store.read(manifest, columns):
        yield pl.DataFrame(pl.from_arrow(part))


def step_parts(store: Store, manifest: Manifest) -> PairParts:
    """Return the rows of a step that keeps queries together (pairs, held-out), as parts of whole queries."""
    return PairParts(lambda columns: frames_of(store, manifest, columns), _columns(store, manifest))


def query_parts(store: Store, manifest: Manifest) -> PairParts:
    """Return the rows of a step that may cut queries (such as scores), regrouped into parts of whole queries."""

    def read(columns: list[str]) -> Iterator[pl.DataFrame]:
        names = list(dict.fromkeys(["query_id", *columns]))
        for frame in _whole_queries(frames_of(store, manifest, names)):
            yield frame.select(columns)

    return PairParts(read, _columns(store, manifest))


def _columns(store: Store, manifest: Manifest) -> list[str]:
    """Return the columns in the order of the file; a manifest has them in alphabetical order."""
    if not manifest.parts:
        return list(manifest.columns)
    return list(store.open_part(manifest, manifest.parts[0]).schema_arrow.names)


def _whole_queries(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Regroup rows so that every frame ends where a query ends."""
    left: pl.DataFrame | None = None
    for frame in frames:
        rows = frame if left is None else pl.concat([left, frame])
        runs = rows["query_id"].rle_id()
        last = int((runs == runs[-1]).arg_max() or 0) if rows.height else 0
        if last:
            yield rows[:last]
        left = rows[last:]
    if left is not None and left.height:
        yield left
