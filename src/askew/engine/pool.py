"""Workers under supervision: shards are handed out, parts come back, and a worker that dies is replaced.

One loop for every kind of worker. A worker has one shard at a time, and as many wait packed as there are workers: so
nobody waits for the driver to read, and the memory that is used does not depend on the size of the input.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import pyarrow as pa

from askew.core.errors import StageError, StoreError
from askew.engine.executor import Shard
from askew.engine.shard import Columns, Done, StepJob
from askew.engine.worker import Answer, Failure, pack_job

# After so many workers have died of the same shard, the shard is to blame.
DEATHS = 3


@dataclass(frozen=True)
class Lost:
    """A worker is gone; how, as far as is known."""

    how: str


@dataclass(frozen=True)
class Packed:
    """A shard as it travels."""

    start: int
    stop: int
    rows: Any


class PoolWorker:
    """A worker as the driver sees it: the step it has open or is opening, and the shard it has."""

    job: bytes = b""
    opening = False
    # A worker that was kept from an earlier step may have died since, of nothing that this step did.
    kept = False
    shard: Packed | None = None

    @property
    def idle(self) -> bool:
        """Whether it waits for work."""
        return not self.opening and self.shard is None


H = TypeVar("H", bound=PoolWorker)


class WorkerPool(ABC, Generic[H]):
    """An executor with workers. What kind of workers, the methods below say. They are kept from step to step."""

    def __init__(self) -> None:
        self.restarts = 0
        self._running: list[H] = []

    @property
    @abstractmethod
    def count(self) -> int:
        """How many workers there may be."""

    @abstractmethod
    def start(self) -> H:
        """Begin a worker."""

    @abstractmethod
    def send_job(self, worker: H, job: bytes) -> None:
        """Have a worker open a step."""

    @abstractmethod
    def send_shard(self, worker: H, shard: Packed, columns: Columns) -> None:
        """Give a shard to a worker that is idle."""

    @abstractmethod
    def pack(self, rows: pa.Table) -> Any:
        """Rows made ready to travel."""

    @abstractmethod
    def answers(self, workers: Sequence[H], timeout: float | None) -> Iterator[tuple[H, Answer | Lost]]:
        """What workers have to say; wait for the first of them, up to ``timeout`` seconds or for ever."""

    @abstractmethod
    def stop(self, worker: H) -> None:
        """End a worker at once, whatever it is doing."""

    def dumps(self, value: object) -> bytes:
        """A value as bytes that a worker can read."""
        return pickle.dumps(value)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End all workers."""
        while self._running:
            self.stop(self._running.pop())

    def run(self, job: StepJob, shards: Iterable[Shard], columns: Columns) -> Generator[Done, None, None]:
        """Each shard as it is done."""
        if not job.store.files.shared:
            raise StoreError(f"store {job.store.files.where}: only this process sees it; workers need one they can see")
        supervision = _Supervision(self, self._running, job, columns)
        whole = False
        try:
            yield from supervision.run(iter(shards))
            whole = True
        finally:
            # Parts are whole or not there, so a worker can be ended at any moment.
            left = [worker for worker in self._running if not whole or not worker.idle]
            for worker in sorted(left, key=lambda worker: worker.idle):
                self._running.remove(worker)
                self.stop(worker)


class _Supervision(Generic[H]):
    """The run of one step."""

    def __init__(self, pool: WorkerPool[H], workers: list[H], job: StepJob, columns: Columns) -> None:
        self._pool, self._running, self._columns = pool, workers, columns
        self._step, self._job = job.step, pack_job(job, pool.dumps)
        self._waiting: deque[Packed] = deque()
        self._deaths: Counter[int | None] = Counter()

    def run(self, shards: Iterator[Shard]) -> Iterator[Done]:
        more = True
        while more or self._waiting or any(worker.shard for worker in self._running):
            self._hand_out()
            fetching = more and len(self._waiting) < self._pool.count
            if fetching:
                more = self._fetch(shards)
            yield from self._listen(0 if fetching else None)

    def _fetch(self, shards: Iterator[Shard]) -> bool:
        shard = next(shards, None)
        if shard is not None:
            start, rows = shard
            self._waiting.append(Packed(start, start + rows.num_rows, self._pool.pack(rows)))
        return shard is not None

    def _hand_out(self) -> None:
        """Give waiting shards to idle workers; have others open the step, no more than there are shards for."""
        for worker in self._running:
            if self._waiting and worker.idle and worker.job == self._job:
                worker.shard = self._waiting.popleft()
                self._pool.send_shard(worker, worker.shard, self._columns)
        wanted = len(self._waiting) - sum(worker.opening for worker in self._running)
        others = [worker for worker in self._running if worker.idle and worker.job != self._job][: max(0, wanted)]
        for _ in range(min(wanted - len(others), self._pool.count - len(self._running))):
            others.append(self._pool.start())
            self._running.append(others[-1])
        for worker in others:
            worker.kept, worker.job, worker.opening = bool(worker.job), self._job, True
            self._pool.send_job(worker, self._job)

    def _listen(self, timeout: float | None) -> Iterator[Done]:
        busy = [worker for worker in self._running if not worker.idle]
        for worker, answer in self._pool.answers(busy, timeout) if busy else ():
            if isinstance(answer, Lost):
                self._retire(worker, answer)
            elif isinstance(answer, Failure):
                raise answer.error()
            elif isinstance(answer, Done):
                worker.shard = None
                self._columns = self._columns or answer.columns
                yield answer
            else:
                worker.opening = worker.kept = False

    def _retire(self, worker: H, lost: Lost) -> None:
        """A worker is dead: its shard is given out again, unless it has cost too many."""
        self._running.remove(worker)
        self._pool.stop(worker)
        self._pool.restarts += 1
        shard = worker.shard
        about = None if shard is None else shard.start
        self._deaths[about] += not worker.kept
        if self._deaths[about] >= DEATHS:
            what = "making its stage" if shard is None else f"rows {shard.start} to {shard.stop}"
            advice = "" if shard is None else " or shards of fewer rows, else look at these rows"
            raise StageError(
                f"step {self._step!r}: {what} ended {DEATHS} workers ({lost.how}); if memory is short, try fewer "
                f"workers{advice}"
            )
        if shard is not None:
            self._waiting.appendleft(shard)
