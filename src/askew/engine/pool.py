"""A supervised worker pool: it distributes shards, collects results, and replaces workers that die.

The same loop serves every kind of worker. Each worker has one shard at a time. The driver keeps as many serialized
shards ready as there are workers, so workers do not wait for input, and memory use does not depend on the input size.
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

# After this many worker deaths on the same shard, the step fails.
DEATHS = 3


@dataclass(frozen=True)
class Lost:
    """A worker has died. ``how`` is the cause, as far as it is known."""

    how: str


@dataclass(frozen=True)
class Packed:
    """A serialized shard, ready to be sent to a worker."""

    start: int
    stop: int
    rows: Any


class PoolWorker:
    """The driver's record of a worker: the step that it has open or is opening, and its current shard."""

    job: bytes = b""
    opening = False
    # A worker kept from an earlier step may have died for a reason unrelated to this step.
    kept = False
    shard: Packed | None = None

    @property
    def idle(self) -> bool:
        """Whether the worker waits for work."""
        return not self.opening and self.shard is None


H = TypeVar("H", bound=PoolWorker)


class WorkerPool(ABC, Generic[H]):
    """An executor with workers, which are kept between steps. Subclasses implement one kind of worker."""

    def __init__(self) -> None:
        self.restarts = 0
        self._running: list[H] = []

    @property
    @abstractmethod
    def count(self) -> int:
        """The largest number of workers."""

    @abstractmethod
    def start(self) -> H:
        """Start a worker."""

    @abstractmethod
    def send_job(self, worker: H, job: bytes) -> None:
        """Tell a worker to open a step."""

    @abstractmethod
    def send_shard(self, worker: H, shard: Packed, columns: Columns) -> None:
        """Send a shard to an idle worker."""

    @abstractmethod
    def pack(self, rows: pa.Table) -> Any:
        """Serialize rows for a worker."""

    @abstractmethod
    def answers(self, workers: Sequence[H], timeout: float | None) -> Iterator[tuple[H, Answer | Lost]]:
        """Answers of workers. Waits for the first answer, at most ``timeout`` seconds; None means no limit."""

    @abstractmethod
    def stop(self, worker: H) -> None:
        """Stop a worker at once, even if it is busy."""

    def dumps(self, value: object) -> bytes:
        """Serialize a value for a worker."""
        return pickle.dumps(value)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop all workers."""
        while self._running:
            self.stop(self._running.pop())

    def run(self, job: StepJob, shards: Iterable[Shard], columns: Columns) -> Generator[Done, None, None]:
        """Yield each shard when it is done."""
        if not job.store.files.shared:
            raise StoreError(
                f"store {job.store.files.where}: only this process can read it; workers need a shared store"
            )
        supervision = _Supervision(self, self._running, job, columns)
        whole = False
        try:
            yield from supervision.run(iter(shards))
            whole = True
        finally:
            # A part is written completely or not at all, so a worker can be stopped at any moment.
            left = [worker for worker in self._running if not whole or not worker.idle]
            for worker in sorted(left, key=lambda worker: worker.idle):
                self._running.remove(worker)
                self.stop(worker)


class _Supervision(Generic[H]):
    """Runs one step on the workers of a pool."""

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
        """Send waiting shards to idle workers. Let more workers open the step if shards are left."""
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
        """Handle the death of a worker. Its shard is sent again, unless too many workers have died on it."""
        self._running.remove(worker)
        self._pool.stop(worker)
        self._pool.restarts += 1
        shard = worker.shard
        about = None if shard is None else shard.start
        self._deaths[about] += not worker.kept
        if self._deaths[about] >= DEATHS:
            if shard is None:
                raise StageError(
                    f"step {self._step!r}: {DEATHS} workers died before they read any rows ({lost.how}); if memory is "
                    "short, try fewer workers"
                )
            raise StageError(
                f"step {self._step!r}: {DEATHS} workers died on rows {shard.start} to {shard.stop} ({lost.how}); if "
                "memory is short, try fewer workers or smaller shards; otherwise check these rows"
            )
        if shard is not None:
            self._waiting.appendleft(shard)
