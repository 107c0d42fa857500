"""Run one step: stream its input, have the stage run on a shard at a time, keep every result at once.

Every input row is accounted for: it is in the output, or it was dropped for a reason that is counted. A stage
that breaks this stops the job.
"""

from __future__ import annotations

import contextlib
import datetime
import platform
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from askew.core.address import without_secret_values
from askew.core.errors import StoreError
from askew.core.version import __version__
from askew.engine.cut import Shards
from askew.engine.executor import Executor, InProcess, Shard
from askew.engine.manifest import Manifest, Part, key_of
from askew.engine.shard import Columns, Done, StepJob, refuse_other_columns
from askew.engine.store import StepWriter, Store
from askew.plugins.kinds import Stage

SHARD_ROWS = 65_536
Progress = Callable[[int], None]
Maker = Callable[[], Stage]


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
class StepOutcome:
    """What running a step came to. ``restarts`` counts the workers that were lost on the way."""

    manifest: Manifest
    ran: bool
    parts_written: int = 0
    parts_found: int = 0
    notes: list[str] = field(default_factory=list)
    restarts: int = 0


def step_key(stage: Stage, input_key: str) -> str:
    """Stage, version, settings and input: nothing else decides what a step's result is."""
    return key_of(stage.name, stage.version, stage.settings(), input_key)


def run_step(
    store: Store,
    step: str,
    stage: Stage,
    source: Source,
    shard_rows: int = SHARD_ROWS,
    progress: Progress | None = None,
    executor: Executor | None = None,
    maker: Maker | None = None,
) -> StepOutcome:
    """Run a step, or go on where it was left, or do nothing when it is finished.

    With an ``executor`` and a ``maker``, a picklable function that builds the same stage elsewhere, the shards are run
    by the executor's workers. A stage with a method ``prepare`` has it called here once, before any shard runs.
    """
    key = step_key(stage, source.key)
    finished = store.finished(step, key)
    if finished is not None:
        return StepOutcome(finished, ran=False, parts_found=len(finished.parts))
    pool = executor if executor is not None and maker is not None else InProcess(stage)
    lost_before = pool.restarts
    with store.writing(step, key) as writer:
        found = writer.done()
        meter = _Meter(progress, sum(part.stop - part.start for part in found))
        together = getattr(stage, "together", None)
        shards = Shards(source.batches(), [(p.start, p.stop) for p in found], shard_rows, meter.tell, together)
        job = StepJob(step, key, source.key, store, maker, bool(getattr(stage, "neural", False)))
        columns, written = _collect(pool, job, stage, shards, writer, meter)
        parts = sorted([*found, *written], key=lambda part: part.start)
        _check_cover(parts, shards.total, step)
        settings = without_secret_values(dict(stage.settings()))
        manifest = Manifest(step, key, stage.name, stage.version, settings, source.key, columns, parts)
        writer.finish(manifest, _provenance())
    return StepOutcome(manifest, True, len(written), len(found), restarts=pool.restarts - lost_before)


def _collect(
    pool: Executor, job: StepJob, stage: Stage, shards: Shards, writer: StepWriter, meter: _Meter
) -> tuple[Columns, list[Part]]:
    """Have the shards run; the columns that all parts have, and the parts as they were done."""
    columns, written = writer.columns, []
    with contextlib.closing(pool.run(job, _prepared(stage, shards), columns)) as running:
        for done in running:
            _check(done, stage, columns, writer)
            columns = done.columns
            written.append(done.part)
            meter.add(done.part.stop - done.part.start)
    return columns, written


def _check(done: Done, stage: Stage, before: Columns, writer: StepWriter) -> None:
    """What a worker says must fit what the others say, and be seen from here."""
    refuse_other_columns(stage, done.part.start, before, done.columns)
    if not writer.has(done.part):
        raise StoreError(
            f"{writer.where}: a worker wrote {done.part.file}, and it is not there: the store must lie where all "
            "workers and this process see the same files"
        )


def _prepared(stage: Stage, shards: Iterable[Shard]) -> Iterator[Shard]:
    """The shards; before the first, what the stage makes for all of them."""
    prepare = getattr(stage, "prepare", None)
    for shard in shards:
        if prepare is not None:
            prepare()
            prepare = None
        yield shard


class _Meter:
    """Tells how many rows are done."""

    def __init__(self, progress: Progress | None, rows: int) -> None:
        self._progress, self._rows = progress, rows

    def add(self, rows: int) -> None:
        """More rows are done."""
        self._rows += rows
        self.tell()

    def tell(self) -> None:
        """Tell again; also where the input is read past rows that were done before."""
        if self._progress:
            self._progress(self._rows)


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
