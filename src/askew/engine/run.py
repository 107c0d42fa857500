"""Run one step: stream its input, run the stage on one shard at a time, and write each result at once.

Every input row is accounted for: it is in the output, or it is counted as dropped under a reason. A stage that breaks
this rule stops the run.
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
    """Rows in a fixed order, with a key that identifies their content."""

    @property
    def key(self) -> str:
        """A key of the content."""

    def batches(self) -> Iterable[pa.Table]:
        """The rows, in the same order every time."""


@dataclass(frozen=True)
class FinishedStep:
    """A finished step as the source of the next."""

    store: Store
    manifest: Manifest

    @property
    def key(self) -> str:
        """The key of the step, which identifies its content."""
        return self.manifest.key

    @property
    def rows(self) -> int:
        """The number of rows of all parts."""
        return sum(part.rows for part in self.manifest.parts)

    def batches(self) -> Iterator[pa.Table]:
        """The parts of the step, each checked against its digest."""
        return self.store.read(self.manifest)


@dataclass
class StepOutcome:
    """The result of running a step. ``restarts`` counts the workers that died during the run."""

    manifest: Manifest
    ran: bool
    parts_written: int = 0
    parts_found: int = 0
    notes: list[str] = field(default_factory=list)
    restarts: int = 0


def step_key(stage: Stage, input_key: str) -> str:
    """The key of a step. Its result depends only on the stage, its version, its settings and the input."""
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
    """Run a step, or resume it, or do nothing if it is finished.

    With an ``executor`` and a ``maker``, a picklable function that builds the same stage in another process, the
    executor's workers run the shards. If the stage has a method ``prepare``, it is called once, before any shard runs.
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
    """Run the shards, and return the columns of all parts and the parts in the order in which they were done."""
    columns, written = writer.columns, []
    with contextlib.closing(pool.run(job, _prepared(stage, shards), columns)) as running:
        for done in running:
            _check(done, stage, columns, writer)
            columns = done.columns
            written.append(done.part)
            meter.add(done.part.stop - done.part.start)
    return columns, written


def _check(done: Done, stage: Stage, before: Columns, writer: StepWriter) -> None:
    """Check that the part of a worker has the columns of the other parts and is visible to this process."""
    refuse_other_columns(stage, done.part.start, before, done.columns)
    if not writer.has(done.part):
        raise StoreError(
            f"{writer.where}: a worker wrote {done.part.file}, but this process does not see it; use a store that all "
            "workers and this process share"
        )


def _prepared(stage: Stage, shards: Iterable[Shard]) -> Iterator[Shard]:
    """Yield the shards. The stage's ``prepare`` is called before the first."""
    prepare = getattr(stage, "prepare", None)
    for shard in shards:
        if prepare is not None:
            prepare()
            prepare = None
        yield shard


class _Meter:
    """Reports the number of finished rows."""

    def __init__(self, progress: Progress | None, rows: int) -> None:
        self._progress, self._rows = progress, rows

    def add(self, rows: int) -> None:
        """Add finished rows and report."""
        self._rows += rows
        self.tell()

    def tell(self) -> None:
        """Report the number of finished rows; also called while the input skips rows that are already done."""
        if self._progress:
            self._progress(self._rows)


def _check_cover(parts: list[Part], total: int, step: str) -> None:
    reached = 0
    for part in parts:
        if part.start != reached:
            raise StoreError(f"step {step!r}: rows {reached} to {part.start} are missing from the stored parts")
        reached = part.stop
    if reached != total:
        raise StoreError(f"step {step!r}: the stored parts cover {reached} rows, but the input has {total} rows")


def _provenance() -> dict[str, str]:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {
        "askew": __version__,
        "finished": now,
        "host": platform.node(),
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
    }
