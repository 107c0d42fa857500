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


class Hand:
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


H = TypeVar("H", bound=Hand)


class Crew(ABC, Generic[H]):
    """An executor with workers. What kind of workers, the methods below say. They are kept from step to step."""

    def __init__(self) -> None:
        self.restarts = 0
        self._hands: list[H] = []

    @property
    @abstractmethod
    def count(self) -> int:
        """How many workers there may be."""

    @abstractmethod
    def start(self) -> H:
        """Begin a worker."""

    @abstractmethod
    def send_job(self, hand: H, job: bytes) -> None:
        """Have a worker open a step."""

    @abstractmethod
    def send_shard(self, hand: H, shard: Packed, columns: Columns) -> None:
        """Give a shard to a worker that is idle."""

    @abstractmethod
    def pack(self, rows: pa.Table) -> Any:
        """Rows made ready to travel."""

    @abstractmethod
    def answers(self, hands: Sequence[H], timeout: float | None) -> Iterator[tuple[H, Answer | Lost]]:
        """What workers have to say; wait for the first of them, up to ``timeout`` seconds or for ever."""

    @abstractmethod
    def stop(self, hand: H) -> None:
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
        while self._hands:
            self.stop(self._hands.pop())

    def run(self, job: StepJob, shards: Iterable[Shard], columns: Columns) -> Generator[Done, None, None]:
        """Each shard as it is done."""
        if not job.store.files.shared:
            raise StoreError(f"store {job.store.files.where}: only this process sees it; workers need one they can see")
        supervision = _Supervision(self, self._hands, job, columns)
        whole = False
        try:
            yield from supervision.run(iter(shards))
            whole = True
        finally:
            # Parts are whole or not there, so a worker can be ended at any moment.
            left = [hand for hand in self._hands if not whole or not hand.idle]
            for hand in sorted(left, key=lambda hand: hand.idle):
                self._hands.remove(hand)
                self.stop(hand)


class _Supervision(Generic[H]):
    """The run of one step."""

    def __init__(self, crew: Crew[H], hands: list[H], job: StepJob, columns: Columns) -> None:
        self._crew, self._hands, self._columns = crew, hands, columns
        self._step, self._job = job.step, pack_job(job, crew.dumps)
        self._waiting: deque[Packed] = deque()
        self._deaths: Counter[int | None] = Counter()

    def run(self, shards: Iterator[Shard]) -> Iterator[Done]:
        more = True
        while more or self._waiting or any(hand.shard for hand in self._hands):
            self._hand_out()
            fetching = more and len(self._waiting) < self._crew.count
            if fetching:
                more = self._fetch(shards)
            yield from self._listen(0 if fetching else None)

    def _fetch(self, shards: Iterator[Shard]) -> bool:
        shard = next(shards, None)
        if shard is not None:
            start, rows = shard
            self._waiting.append(Packed(start, start + rows.num_rows, self._crew.pack(rows)))
        return shard is not None

    def _hand_out(self) -> None:
        """Give waiting shards to idle workers; have others open the step, no more than there are shards for."""
        for hand in self._hands:
            if self._waiting and hand.idle and hand.job == self._job:
                hand.shard = self._waiting.popleft()
                self._crew.send_shard(hand, hand.shard, self._columns)
        wanted = len(self._waiting) - sum(hand.opening for hand in self._hands)
        others = [hand for hand in self._hands if hand.idle and hand.job != self._job][: max(0, wanted)]
        for _ in range(min(wanted - len(others), self._crew.count - len(self._hands))):
            others.append(self._crew.start())
            self._hands.append(others[-1])
        for hand in others:
            hand.kept, hand.job, hand.opening = bool(hand.job), self._job, True
            self._crew.send_job(hand, self._job)

    def _listen(self, timeout: float | None) -> Iterator[Done]:
        busy = [hand for hand in self._hands if not hand.idle]
        for hand, answer in self._crew.answers(busy, timeout) if busy else ():
            if isinstance(answer, Lost):
                self._bury(hand, answer)
            elif isinstance(answer, Failure):
                raise answer.error()
            elif isinstance(answer, Done):
                hand.shard = None
                self._columns = self._columns or answer.columns
                yield answer
            else:
                hand.opening = hand.kept = False

    def _bury(self, hand: H, lost: Lost) -> None:
        """A worker is dead: its shard is given out again, unless it has cost too many."""
        self._hands.remove(hand)
        self._crew.stop(hand)
        self._crew.restarts += 1
        shard = hand.shard
        about = None if shard is None else shard.start
        self._deaths[about] += not hand.kept
        if self._deaths[about] >= DEATHS:
            what = "making its stage" if shard is None else f"rows {shard.start} to {shard.stop}"
            advice = "" if shard is None else " or shards of fewer rows, else look at these rows"
            raise StageError(
                f"step {self._step!r}: {what} ended {DEATHS} workers ({lost.how}); if memory is short, try fewer "
                f"workers{advice}"
            )
        if shard is not None:
            self._waiting.appendleft(shard)
