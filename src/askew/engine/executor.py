"""Who runs the shards of a step. What comes out is the same bytes, whoever does."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Protocol

import pyarrow as pa

from askew.engine.shard import Columns, Done, StepJob, run_shard
from askew.plugins.kinds import Stage

# The number of its first row, and its rows.
Shard = tuple[int, pa.Table]


class Executor(Protocol):
    """Runs shards, in any order. ``restarts`` counts the workers it has lost and replaced."""

    @property
    def restarts(self) -> int:
        """Workers lost so far."""

    def run(self, job: StepJob, shards: Iterable[Shard], columns: Columns) -> Generator[Done, None, None]:
        """Each shard as it is done. ``columns`` are those of the parts that were there already, if any."""

    def close(self) -> None:
        """Let the workers go."""


class InProcess:
    """Runs every shard here, one after the other."""

    restarts = 0

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def run(self, job: StepJob, shards: Iterable[Shard], columns: Columns) -> Generator[Done, None, None]:
        """Each shard in turn."""
        writer = job.store.writer(job.step, job.key)
        for start, rows in shards:
            done = run_shard(self._stage, rows, start, writer, columns)
            columns = done.columns
            yield done

    def close(self) -> None:
        """Nothing to let go."""
