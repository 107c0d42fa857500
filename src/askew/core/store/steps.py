"""Run one step: stream its input, run the stage on one shard at a time, and write each result at once.

Every input row is accounted for: it is in the output, or it is counted as dropped under a reason. A stage that breaks
this rule stops the run.
"""

from __future__ import annotations

import contextlib
import datetime
import platform
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from askew.core.address import without_secret_values
from askew.core.errors import ConfigError, StageError, StoreError, UnknownName
from askew.core.protocols import Stage
from askew.core.store.manifest import Manifest, Part, key_of
from askew.core.store.store import StepWriter, Store, columns_of, listed
from askew.core.version import __version__

# Run a stage on one shard: check that every row is accounted for, and write the result at once.


@dataclass(frozen=True)
class StepJob:
    """A step to run. ``maker`` builds its stage in another process; None if only the driver can run the step.

    ``neural``: the stage runs a neural model, which is faster on a GPU.
    """

    step: str
    key: str
    input_key: str
    store: Store
    maker: Callable[[], Stage] | None = None
    neural: bool = False


@dataclass(frozen=True)
class Done:
    """A finished shard. Its part is in the store."""

    part: Part
    columns: dict[str, str]


def run_shard(stage: Stage, rows: pa.Table, start: int, writer: StepWriter) -> Done:
    """Run the stage on these rows and write the part."""
    table, dropped = stage.run(rows)
    # A stage that makes several rows of one counts its input rows in ``rows_used``.
    used = getattr(stage, "rows_used", None)
    used_rows = int(used(table)) if used is not None else table.num_rows
    if any(count < 0 for count in dropped.values()) or used_rows + sum(dropped.values()) != rows.num_rows:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in dropped.items()) or "none"
        counts = f"{rows.num_rows} rows in, {used_rows} rows kept, rows dropped by reason: {reasons}"
        raise StageError(f"stage {stage.name!r} lost rows: {counts}", code="lost-rows")
    return Done(writer.write(table, start, start + rows.num_rows, used_rows, dict(dropped)), columns_of(table.schema))


# Executors run the shards of a step. All executors produce the same bytes.

# The number of the first row, and the rows.
Shard = tuple[int, pa.Table]


class Executor(Protocol):
    """Runs shards in any order. ``restarts`` counts the workers that died and were replaced."""

    @property
    def restarts(self) -> int:
        """The number of workers that have died so far."""

    def run(self, job: StepJob, shards: Iterable[Shard]) -> Generator[Done, None, None]:
        """Yield each shard when it is done."""

    def close(self) -> None:
        """Stop the workers."""


class InProcess:
    """Runs all shards in this process, one after the other."""

    restarts = 0

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def run(self, job: StepJob, shards: Iterable[Shard]) -> Generator[Done, None, None]:
        """Run the shards in turn."""
        writer = job.store.writer(job.step, job.key)
        for start, rows in shards:
            yield run_shard(self._stage, rows, start, writer)

    def close(self) -> None:
        """Do nothing: there are no workers."""


# Cut the rows of a step into shards. The cuts do not depend on the executor or the number of workers.


class Shards:
    """Cuts the rows that are not done yet into shards, and counts all rows in ``total``.

    With ``together``, consecutive rows with the same value in that column stay in one shard. ``read`` is called after
    each batch of the input.
    """

    def __init__(
        self,
        batches: Iterable[pa.Table],
        done: list[tuple[int, int]],
        shard_rows: int,
        read: Callable[[], None],
        together: str | None = None,
    ) -> None:
        if shard_rows < 1:
            raise StageError(f"a shard must have at least one row, found {shard_rows}")
        self.batches, self.done, self.shard_rows, self.read = batches, done, shard_rows, read
        self.together, self._last = together, object()
        self.total = 0

    def __iter__(self) -> Iterator[tuple[int, pa.Table]]:
        """Yield shards. A shard ends when it is full, where a finished part begins, and at the end of the input."""
        waiting: list[pa.Table] = []
        start = 0
        for batch in self.batches:
            begins = self._begins(batch)
            at = 0
            while at < batch.num_rows:
                row = self.total
                if waiting and begins[at] and row >= self._end_of_shard(start):
                    yield start, pa.concat_tables(waiting)
                    waiting, start = [], row
                skip = next((stop for first, stop in self.done if first <= row < stop), 0)
                if skip:
                    size = min(skip - row, batch.num_rows - at)
                    start = row + size
                else:
                    due = at + max(1, self._end_of_shard(start) - row)
                    cuts = np.flatnonzero(begins[due:])
                    size = (due + int(cuts[0]) if len(cuts) else batch.num_rows) - at
                    waiting.append(batch.slice(at, size))
                at += size
                self.total += size
            self.read()
        if waiting:
            yield start, pa.concat_tables(waiting)

    def _begins(self, batch: pa.Table) -> npt.NDArray[np.bool_]:
        if self.together is None or not batch.num_rows:
            return np.ones(batch.num_rows, np.bool_)
        values = np.array(batch[self.together].to_pylist(), object)
        begins = np.concatenate([[values[0] != self._last], values[1:] != values[:-1]]).astype(np.bool_)
        self._last = values[-1]
        return begins

    def _end_of_shard(self, start: int) -> int:
        following = min((a for a, _ in self.done if a > start), default=start + self.shard_rows)
        return min(start + self.shard_rows, following)


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
        return self.manifest.rows_out

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
    prepare = getattr(stage, "prepare", None)
    with store.writing(step, key) as writer:
        old_parts, written = writer.done(), list[Part]()
        finished_rows = sum(part.stop - part.start for part in old_parts)

        def tell() -> None:
            if progress:
                progress(finished_rows)

        together = getattr(stage, "together", None)
        shards = Shards(source.batches(), [(p.start, p.stop) for p in old_parts], shard_rows, tell, together)

        def prepared() -> Iterator[Shard]:
            for number, shard in enumerate(shards):
                if prepare is not None and not number:
                    prepare()
                yield shard

        job = StepJob(step, key, source.key, store, maker, bool(getattr(stage, "neural", False)))
        columns = writer.columns
        with contextlib.closing(pool.run(job, prepared())) as running:
            for done in running:
                columns = columns or done.columns
                if done.columns != columns:  # all parts of a step are one table
                    store.files.delete(f"{step}-{key}/{done.part.file}")
                    change = f"they were {listed(columns)} before and are {listed(done.columns)} now"
                    message = f"stage {stage.name!r} changed its columns at row {done.part.start}: {change}"
                    raise StageError(message, code="other-columns")
                if not writer.has(done.part):
                    problem = f"{writer.where}: a worker wrote {done.part.file}, but this process does not see it"
                    raise StoreError(f"{problem}; use a store that all processes share", code="not-shared")
                written.append(done.part)
                finished_rows += done.part.stop - done.part.start
                tell()
        parts = sorted([*old_parts, *written], key=lambda part: part.start)
        reached = 0
        for part in parts:
            if part.start != reached:
                raise StoreError(f"step {step!r}: rows {reached} to {part.start} are missing from the stored parts")
            reached = part.stop
        if reached != shards.total:
            counts = f"the stored parts cover {reached} rows, but the input has {shards.total} rows"
            raise StoreError(f"step {step!r}: {counts}")
        settings = without_secret_values(dict(stage.settings()))
        manifest = Manifest(step, key, stage.name, stage.version, settings, source.key, columns, parts)
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        versions = {"askew": __version__, "python": platform.python_version(), "pyarrow": pa.__version__}
        writer.finish(manifest, {**versions, "finished": now, "host": platform.node()})
    return StepOutcome(manifest, True, len(written), len(old_parts), restarts=pool.restarts - lost_before)


# A plan of steps, each of which reads a source or the result of an earlier step. It is checked before it runs.

# The step, its finished rows, and all its rows (0 if unknown).
StepProgress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Step:
    """One use of a stage: the name of the step, its stage, and the step or source that it reads.

    ``maker`` is a picklable function that builds the same stage in another process, so that an executor can run the
    step there. ``shard_rows`` sets smaller shards for slow rows, so that there are enough shards for all workers.
    """

    name: str
    stage: Stage
    reads: str
    maker: Maker | None = None
    shard_rows: int | None = None


class Plan:
    """Steps in an order in which each can run.

    ``origin`` describes what the plan was made from, such as a recipe, as JSON values. The store keeps it, so that
    damaged steps can be recomputed.
    """

    def __init__(
        self, sources: Mapping[str, Source], steps: Sequence[Step], origin: Mapping[str, Any] | None = None
    ) -> None:
        self.sources, self.steps, self.origin = dict(sources), list(steps), origin
        names = set(self.sources)
        for step in self.steps:
            if step.name in names:
                raise ConfigError(f"the plan has two steps or sources named {step.name!r}")
            if step.reads not in names:
                raise UnknownName("source or earlier step", step.reads, names, f"the step {step.name!r}")
            names.add(step.name)

    def keys(self) -> dict[str, str]:
        """The key of every step, known before anything runs."""
        keys = {name: source.key for name, source in self.sources.items()}
        for step in self.steps:
            keys[step.name] = step_key(step.stage, keys[step.reads])
        return {step.name: keys[step.name] for step in self.steps}

    def run(
        self,
        store: Store,
        shard_rows: int = SHARD_ROWS,
        progress: StepProgress | None = None,
        executor: Executor | None = None,
    ) -> dict[str, StepOutcome]:
        """Run the unfinished steps. ``progress`` is called with the step, its finished rows and all its rows."""
        if self.origin is not None:
            store.remember_plan({**self.origin, "steps": [list(entry) for entry in self.keys().items()]})
        ready: dict[str, Source] = dict(self.sources)
        outcomes = {}
        for step in self.steps:
            report = _told(progress, step.name, ready[step.reads])
            rows = step.shard_rows or shard_rows
            outcome = run_step(store, step.name, step.stage, ready[step.reads], rows, report, executor, step.maker)
            outcomes[step.name] = outcome
            ready[step.name] = FinishedStep(store, outcome.manifest)
        return outcomes


def _told(progress: StepProgress | None, step: str, source: Source) -> Progress | None:
    if progress is None:
        return None
    total = int(getattr(source, "rows", 0))
    progress(step, 0, total)
    return lambda done: progress(step, done, total)
