"""Executors run the shards of a step. All executors produce the same bytes."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Protocol

import pyarrow as pa

from askew.engine.shard import Columns, Done, StepJob, run_shard
from askew.plugins.kinds import Stage

# The number of the first row, and the rows.
Shard = tuple[int, pa.Table]


class Executor(Protocol):
    """Runs shards in any order. ``restarts`` counts the workers that died and were replaced."""

    @property
    def restarts(self) -> int:
        """The number of workers that have died so far."""

    def run(self, job: StepJob, shards: Iterable[Shard], columns: Columns) -> Generator[Done, None, None]:
        """Yield each shard when it is done. ``columns`` are those of parts from earlier runs, if any."""

    def close(self) -> None:
        """Stop the workers."""


class InProcess:
    """Runs all shards in this process, one after the other."""

    restarts = 0

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def run(self, job: StepJob, shards: Iterable[Shard], columns: Columns) -> Generator[Done, None, None]:
        """Run the shards in turn."""
        writer = job.store.writer(job.step, job.key)
        for start, rows in shards:
            done = run_shard(self._stage, rows, start, writer, columns)
            columns = done.columns
            yield done

    def close(self) -> None:
        """Do nothing: there are no workers."""
