"""Run CPU-bound work in a few threads, limit the number of waiting requests, and cache results.

Everything here is used from one event loop, so counters need no lock.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Item = TypeVar("Item")
Result = TypeVar("Result")
_LATEST = 0.2
MOST_TOGETHER, BATCH_SECONDS = 32, 0.25


class Busy(Exception):
    """Too many requests are waiting, so that a new one would wait too long."""

    def __init__(self, seconds: int) -> None:
        super().__init__("busy")
        self.seconds = seconds


class Work:
    """Runs functions in threads. At most ``waiting`` of them wait, and each would wait at most ``seconds``.

    The waiting time is estimated from the durations of the last calls.
    """

    def __init__(self, threads: int, waiting: int, cache_bytes: int = 0, seconds: float = math.inf) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="askew-work")
        self._threads, self._most, self._seconds = threads, threads + waiting, seconds
        self._each = 0.0
        self._kept = Kept(cache_bytes)
        self._flying: dict[Hashable, asyncio.Future[bytes]] = {}
        self.taken = 0

    async def run(self, make: Callable[[], T], weight: int = 1) -> T:
        """Run a function and return its result, or raise Busy at once. It counts as ``weight`` functions."""
        self._admit(weight)
        future = asyncio.get_running_loop().run_in_executor(self._pool, lambda: self._timed(make, weight))
        # Counted until it is done, even if the client is gone.
        future.add_done_callback(lambda done: self._done(done, weight))
        return await asyncio.shield(future)

    def _admit(self, weight: int) -> None:
        """Count a request, or raise Busy."""
        wait = self.taken * self._each / self._threads
        if self.taken >= self._most or (self.taken and (self.taken + weight > self._most or wait > self._seconds)):
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
        flying = self._flying.get(key)
        if flying is None:
            flying = asyncio.ensure_future(start())
            self._flying[key] = flying

            def landed(done: asyncio.Future[bytes]) -> None:
                del self._flying[key]
                if not done.cancelled() and done.exception() is None:
                    self._kept.put(key, done.result())

            flying.add_done_callback(landed)
        return await asyncio.shield(flying)

    def close(self) -> None:
        """Finish running functions, and cancel those that wait."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class BatchWork(Work, Generic[Item, Result]):
    """As ``Work``, but requests that wait at the same time are answered together, which takes less time for each.

    ``answer`` returns an answer or an error for each item. A batch has at most ``MOST_TOGETHER`` items, and fewer if
    it would take longer than ``BATCH_SECONDS``: the first item of a batch waits for the last one.
    """

    def __init__(
        self, answer: Callable[[Sequence[Item]], Sequence[Result | Exception]], waiting: int, cache_bytes: int,
        seconds: float = math.inf,
    ) -> None:  # fmt: skip
        super().__init__(1, waiting, cache_bytes, seconds)
        self._answer = answer
        self._waiting = deque[tuple[Item, asyncio.Future[Result]]]()
        self._answering: asyncio.Task[None] | None = None

    async def join(self, item: Item) -> Result:
        """Return the answer to an item, which joins the next batch; raise Busy at once if too many items wait."""
        self._admit(1)
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        # Counted until it is done, even if the client is gone.
        future.add_done_callback(lambda done: self._done(done, 1))
        self._waiting.append((item, future))
        if self._answering is None or self._answering.done():
            self._answering = asyncio.ensure_future(self._answer_waiting())
        return await asyncio.shield(future)

    async def _answer_waiting(self) -> None:
        while self._waiting:
            most = max(1, min(MOST_TOGETHER, int(BATCH_SECONDS / self._each))) if self._each else 1
            batch = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
            answer = partial(self._answer, [item for item, _ in batch])
            answers: Sequence[Result | Exception]
            try:
                answers = await asyncio.get_running_loop().run_in_executor(
                    self._pool, partial(self._timed, answer, len(batch))
                )
            except Exception as error:
                answers = [error] * len(batch)
            for (_, future), result in zip(batch, answers, strict=True):
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    def close(self) -> None:
        """Finish the running batch, and cancel the items that wait."""
        while self._waiting:
            self._waiting.popleft()[1].cancel()
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
