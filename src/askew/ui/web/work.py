"""Run CPU-bound work in a few threads, limit the number of waiting requests, and cache results.

Everything here is used from one event loop, so counters need no lock.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Item = TypeVar("Item")
Result = TypeVar("Result")
_LATEST = 0.2
MOST_TOGETHER, BATCH_SECONDS = 32, 0.25
# Who sent the current request. Waiting requests of different clients are answered in turn.
CLIENT: ContextVar[str] = ContextVar("client", default="")


class Busy(Exception):
    """Too many requests are waiting, so that a new one would wait too long."""

    def __init__(self, seconds: int) -> None:
        super().__init__("busy")
        self.seconds = seconds


@dataclass
class _Shared:
    """A result that several requests wait for."""

    made: asyncio.Future[bytes]
    wanted: int = 0


class Work:
    """Runs functions in threads. At most ``waiting`` of them wait, and each would wait at most ``seconds``.

    The waiting time is estimated from the durations of the last calls. What nobody waits for any more is not begun.
    """

    def __init__(self, threads: int, waiting: int, cache_bytes: int = 0, seconds: float = math.inf) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="askew-work")
        self._threads, self._most, self._seconds = threads, threads + waiting, seconds
        self._each = 0.0
        self._kept = Kept(cache_bytes)
        self._shared: dict[Hashable, _Shared] = {}
        self.taken = 0

    async def run(self, make: Callable[[], T], weight: int = 1) -> T:
        """Run a function and return its result, or raise Busy at once. It counts as ``weight`` functions."""
        self._admit(weight, self.taken)
        running = self._pool.submit(self._timed, make, weight)
        future = asyncio.wrap_future(running)
        # Counted until it is done, even if the client is gone.
        future.add_done_callback(lambda done: self._done(done, weight))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            running.cancel()
            raise

    def _admit(self, weight: int, ahead: int) -> None:
        """Count a request, or raise Busy. ``ahead`` is the number of those that come before it."""
        wait = ahead * self._each / self._threads
        if ahead >= self._most or (ahead and (ahead + weight > self._most or wait > self._seconds)):
            raise Busy(1 + math.ceil(wait))
        self.taken += weight

    def _timed(self, make: Callable[[], T], weight: int) -> T:
        start = time.perf_counter()
        try:
            return make()
        finally:
            # An exponentially weighted mean of the durations.
            self._each += _LATEST * ((time.perf_counter() - start) / weight - self._each)

    def _done(self, future: asyncio.Future[T], weight: int) -> None:
        self.taken -= weight
        if not future.cancelled():
            # Mark the error as retrieved: a waiting client has received it already.
            future.exception()

    async def bytes_of(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """Run a function whose result never changes. The result is cached and computed once for concurrent requests."""
        return await self.once(key, lambda: self.run(make))

    async def once(self, key: Hashable, start: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """As ``bytes_of``, for a result that a coroutine computes."""
        found = self._kept.get(key)
        if found is not None:
            return found
        if key not in self._shared or self._shared[key].made.done():
            self._shared[key] = _Shared(asyncio.ensure_future(start()))
        shared = self._shared[key]
        shared.wanted += 1
        try:
            made = await asyncio.shield(shared.made)
            self._kept.put(key, made)
            return made
        finally:
            shared.wanted -= 1
            if not shared.wanted:
                # The last client has its answer, or has gone.
                shared.made.cancel()
                if self._shared.get(key) is shared:
                    del self._shared[key]

    def close(self) -> None:
        """Finish running functions, and cancel those that wait."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class BatchWork(Work, Generic[Item, Result]):
    """As ``Work``, but requests that wait at the same time are answered together, which takes less time for each.

    Clients take turns, so that nobody waits for all requests of a client that sends many. ``answer`` returns an answer
    or an error for each item. A batch has at most ``MOST_TOGETHER`` items, and fewer if it would take longer than
    ``BATCH_SECONDS``: the first item of a batch waits for the last one.
    """

    def __init__(
        self, answer: Callable[[Sequence[Item]], Sequence[Result | Exception]], waiting: int, cache_bytes: int,
        seconds: float = math.inf,
    ) -> None:  # fmt: skip
        super().__init__(1, waiting, cache_bytes, seconds)
        self._answer = answer
        self._waiting = OrderedDict[str, dict[asyncio.Future[Result], Item]]()
        self._running = 0
        self._answering: asyncio.Task[None] | None = None

    async def join(self, *items: Item) -> list[Result | BaseException]:
        """Return the answers to some items, which join the next batches; raise Busy at once if too many items wait."""
        name = CLIENT.get()
        own = self._waiting.setdefault(name, {})
        turns = len(own) + 1
        try:
            self._admit(len(items), self._running + sum(min(len(waiting), turns) for waiting in self._waiting.values()))
        except Busy:
            if not own:
                del self._waiting[name]
            raise
        futures: list[asyncio.Future[Result]] = [asyncio.get_running_loop().create_future() for _ in items]
        for item, future in zip(items, futures, strict=True):
            own[future] = item
            # If the client has gone, its future is cancelled.
            future.add_done_callback(lambda done: self._leave(own, done))
        if self._answering is None or self._answering.done():
            self._answering = asyncio.ensure_future(self._answer_waiting())
        return await asyncio.gather(*futures, return_exceptions=True)

    def _leave(self, own: dict[asyncio.Future[Result], Item], done: asyncio.Future[Result]) -> None:
        own.pop(done, None)
        self._done(done, 1)

    def _next(self, most: int) -> list[tuple[asyncio.Future[Result], Item]]:
        """Take up to ``most`` waiting items, one of each client in turn."""
        batch: list[tuple[asyncio.Future[Result], Item]] = []
        while self._waiting and len(batch) < most:
            name, own = self._waiting.popitem(last=False)
            if own:
                future = next(iter(own))
                batch.append((future, own.pop(future)))
                self._waiting[name] = own
        return batch

    async def _answer_waiting(self) -> None:
        while batch := self._next(max(1, min(MOST_TOGETHER, int(BATCH_SECONDS / self._each))) if self._each else 1):
            self._running = len(batch)
            answer = partial(self._answer, [item for _, item in batch])
            answers: Sequence[Result | Exception]
            try:
                answers = await asyncio.get_running_loop().run_in_executor(
                    self._pool, partial(self._timed, answer, len(batch))
                )
            except Exception as error:
                answers = [error] * len(batch)
            self._running = 0
            for (future, _), result in zip(batch, answers, strict=True):
                if future.done():
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    def close(self) -> None:
        """Finish the running batch, and cancel the items that wait."""
        for future, _ in self._next(self.taken):
            future.cancel()
        super().close()


class Kept:
    """A cache of recent answers, up to ``most`` bytes."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, OrderedDict[Hashable, bytes]()
        self.size = 0

    def get(self, key: Hashable) -> bytes | None:
        """Return the answer of a key, and mark it as the last one used."""
        found = self._held.get(key)
        if found is not None:
            self._held.move_to_end(key)
        return found

    def put(self, key: Hashable, value: bytes) -> None:
        """Store an answer, and remove the least recently used ones if the cache is full."""
        if len(value) > self._most // 4:
            return
        old = self._held.pop(key, b"")
        self._held[key] = value
        self.size += len(value) - len(old)
        while self.size > self._most:
            self.size -= len(self._held.popitem(last=False)[1])
