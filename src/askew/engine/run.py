"""Run one step: stream its input, give the stage a shard at a time, keep every result at once.

Every input row is accounted for: it is in the output, or it was dropped for a reason that is counted. A stage
that breaks this stops the job.
"""

from __future__ import annotations

import datetime
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from askew import __version__
from askew.core.errors import StageError, StoreError
from askew.core.fingerprint import fingerprint
from askew.engine.manifest import Manifest, Part
from askew.engine.store import StepWriter, Store, columns_of, listed
from askew.plugins.kinds import Stage

SHARD_ROWS = 65_536
Progress = Callable[[int], None]


class Source(Protocol):
    """Rows in a fixed order, under a key that names their content."""

    @property
    def key(self) -> str:
        """Names the content."""

    def batches(self) -> Iterable[pa.Table]:
        """The rows, in the same order every time."""


@dataclass(frozen=True)
class FinishedStep:
    """A finished step as the source of the next."""

    store: Store
    manifest: Manifest

    @property
    def key(self) -> str:
        """The key of the step names its content."""
        return self.manifest.key

    def batches(self) -> Iterator[pa.Table]:
        """Its parts, checked."""
        return self.store.read(self.manifest)


@dataclass
class Outcome:
    """What running a step came to."""

    manifest: Manifest
    ran: bool
    parts_written: int = 0
    parts_found: int = 0
    notes: list[str] = field(default_factory=list)


def step_key(stage: Stage, input_key: str) -> str:
    """Stage, version, settings and input: nothing else decides what a step's result is."""
    return fingerprint(
        {"stage": stage.name, "version": stage.version, "settings": dict(stage.settings()), "input": input_key}
    )


def run_step(
    store: Store,
    step: str,
    stage: Stage,
    source: Source,
    shard_rows: int = SHARD_ROWS,
    progress: Progress | None = None,
) -> Outcome:
    """Run a step, or go on where it was left, or do nothing when it is finished."""
    key = step_key(stage, source.key)
    finished = store.finished(step, key)
    if finished is not None:
        return Outcome(finished, ran=False, parts_found=len(finished.parts))
    with store.writing(step, key) as writer:
        parts = writer.done()
        written = 0
        done, together = [(p.start, p.stop) for p in parts], getattr(stage, "together", None)
        shards = _Shards(source.batches(), done, shard_rows, progress, together)
        for start, rows in shards:
            parts.append(_run_shard(stage, rows, start, writer))
            written += 1
        parts.sort(key=lambda part: part.start)
        _check_cover(parts, shards.total, step)
        settings = dict(stage.settings())
        manifest = Manifest(step, key, stage.name, stage.version, settings, source.key, writer.columns, parts)
        writer.finish(manifest, _provenance())
    return Outcome(manifest, ran=True, parts_written=written, parts_found=len(parts) - written)


def _run_shard(stage: Stage, rows: pa.Table, start: int, writer: StepWriter) -> Part:
    table, dropped = stage.run(rows)
    columns = columns_of(table.schema)
    if writer.columns and columns != writer.columns:
        raise StageError(
            f"stage {stage.name!r} changed its columns at row {start}: "
            f"{listed(writer.columns)} before, {listed(columns)} now"
        )
    kept = _kept(stage, table, rows, dropped)
    return writer.write(table, start, start + rows.num_rows, kept, dict(dropped))


def _kept(stage: Stage, table: pa.Table, rows: pa.Table, dropped: Mapping[str, int]) -> int:
    """Input rows that live on. A stage may make several rows of one; then it names the rows it used itself."""
    used = getattr(stage, "rows_used", None)
    kept = int(used(table)) if used is not None else table.num_rows
    if any(count < 0 for count in dropped.values()) or kept + sum(dropped.values()) != rows.num_rows:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in dropped.items()) or "none"
        raise StageError(
            f"stage {stage.name!r} lost rows: {rows.num_rows} in, {kept} kept, dropped by reason {reasons}"
        )
    return kept


class _Shards:
    """Rows not done yet, cut into shards; remembers how many rows there were in all.

    With ``together``, rows in a row that have the same value in that column stay in one shard.
    """

    def __init__(
        self,
        batches: Iterable[pa.Table],
        done: list[tuple[int, int]],
        shard_rows: int,
        progress: Progress | None,
        together: str | None = None,
    ) -> None:
        if shard_rows < 1:
            raise StageError(f"a shard must have at least one row, found {shard_rows}")
        self.batches, self.done, self.shard_rows, self.progress = batches, done, shard_rows, progress
        self.together, self._last = together, object()
        self.total = 0

    def __iter__(self) -> Iterator[tuple[int, pa.Table]]:
        """Cut where a shard is full, where a part that is done begins, and at the end."""
        waiting: list[pa.Table] = []
        start = 0
        for batch in self.batches:
            begins = self._begins(batch)
            at = 0
            while at < batch.num_rows:
                here = self.total
                if waiting and begins[at] and here >= self._end_of_shard(start):
                    yield start, pa.concat_tables(waiting)
                    waiting, start = [], here
                skip = self._done_until(here)
                if skip:
                    size = min(skip - here, batch.num_rows - at)
                    start = here + size
                else:
                    due = at + max(1, self._end_of_shard(start) - here)
                    cuts = np.flatnonzero(begins[due:])
                    size = (due + int(cuts[0]) if len(cuts) else batch.num_rows) - at
                    waiting.append(batch.slice(at, size))
                at += size
                self.total += size
            if self.progress:
                self.progress(self.total)
        if waiting:
            yield start, pa.concat_tables(waiting)

    def _begins(self, batch: pa.Table) -> npt.NDArray[np.bool_]:
        """At which rows a shard may begin."""
        if self.together is None or not batch.num_rows:
            return np.ones(batch.num_rows, np.bool_)
        values = np.array(batch[self.together].to_pylist(), object)
        begins = np.concatenate([[values[0] != self._last], values[1:] != values[:-1]]).astype(np.bool_)
        self._last = values[-1]
        return begins

    def _done_until(self, row: int) -> int:
        return next((stop for start, stop in self.done if start <= row < stop), 0)

    def _end_of_shard(self, start: int) -> int:
        following = min((a for a, _ in self.done if a > start), default=start + self.shard_rows)
        return min(start + self.shard_rows, following)


def _check_cover(parts: list[Part], total: int, step: str) -> None:
    reached = 0
    for part in parts:
        if part.start != reached:
            raise StoreError(f"step {step!r}: rows {reached} to {part.start} are in no part")
        reached = part.stop
    if reached != total:
        raise StoreError(f"step {step!r}: the parts answer for {reached} rows, the input has {total}")


def _provenance() -> dict[str, str]:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {
        "askew": __version__,
        "finished": now,
        "host": platform.node(),
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
    }
