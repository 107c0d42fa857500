"""Work that takes a processor: done by a few threads, waited for by many, and not done twice.

Everything here is used from one event loop, so counting needs no lock.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
_LATEST = 0.2


class Busy(Exception):
    """So much is waiting already that one more would wait too long."""

    def __init__(self, seconds: int) -> None:
        super().__init__("busy")
        self.seconds = seconds


class Work:
    """Runs functions in threads. At most ``waiting`` of them wait, and none that would wait for over ``seconds``.

    How long one would wait is known by how long the last ones took.
    """

    def __init__(self, threads: int, waiting: int, cache_bytes: int, seconds: float = math.inf) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="askew-work")
        self._threads, self._most, self._seconds = threads, threads + waiting, seconds
        self._each = 0.0
        self._kept = Kept(cache_bytes)
        self._flying: dict[Hashable, asyncio.Future[bytes]] = {}
        self.taken = 0

    async def run(self, make: Callable[[], T], weight: int = 1) -> T:
        """The result of a function, or Busy at once. What does the work of several counts for as many."""
        wait = self.taken * self._each / self._threads
        if self.taken >= self._most or (self.taken and (self.taken + weight > self._most or wait > self._seconds)):
            raise Busy(1 + math.ceil(wait))
        self.taken += weight
        future = asyncio.get_running_loop().run_in_executor(self._pool, lambda: self._timed(make, weight))
        # Counted until it is done, even if whoever asked has left.
        future.add_done_callback(lambda done: self._done(done, weight))
        return await asyncio.shield(future)

    def _timed(self, make: Callable[[], T], weight: int) -> T:
        start = time.perf_counter()
        try:
            return make()
        finally:
            # A mean in which the last ones count most.
            self._each += _LATEST * ((time.perf_counter() - start) / weight - self._each)

    def _done(self, future: asyncio.Future[T], weight: int) -> None:
        self.taken -= weight
        if not future.cancelled():
            # Whoever waited has heard of an error; if nobody waits any more, nobody needs to.
            future.exception()

    async def bytes_of(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """As ``run`` for an answer that is always the same: kept, and made once for all who want it meanwhile."""
        return await self.once(key, lambda: self.run(make))

    async def once(self, key: Hashable, start: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """As ``bytes_of`` for an answer that is made elsewhere."""
        found = self._kept.get(key)
        if found is not None:
            return found
        flying = self._flying.get(key)
        if flying is None:
            flying = asyncio.ensure_future(start())
            self._flying[key] = flying
            flying.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(flying)

    def _landed(self, key: Hashable, done: asyncio.Future[bytes]) -> None:
        del self._flying[key]
        if not done.cancelled() and done.exception() is None:
            self._kept.put(key, done.result())

    def close(self) -> None:
        """Finish what was begun; what only waits has nobody left who asked for it."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class Kept:
    """Answers that were given lately, up to so many bytes."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, OrderedDict[Hashable, bytes]()
        self.size = 0

    def get(self, key: Hashable) -> bytes | None:
        """The answer to a key, which is now the last one used."""
        found = self._held.get(key)
        if found is not None:
            self._held.move_to_end(key)
        return found

    def put(self, key: Hashable, value: bytes) -> None:
        """Keep an answer; the ones that were not used for longest go."""
        if len(value) > self._most // 4:
            return
        old = self._held.pop(key, b"")
        self._held[key] = value
        self.size += len(value) - len(old)
        while self.size > self._most:
            self.size -= len(self._held.popitem(last=False)[1])
