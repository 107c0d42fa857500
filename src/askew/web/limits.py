"""Limits of requests: a token bucket for the rate of each client, and a limit of concurrent requests."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

MOST_CLIENTS = 10_000


class Rate:
    """A token bucket per client: ``burst`` tokens at first, ``rate`` new tokens per second."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, cost: float = 1.0) -> int:
        """Take tokens of a client. Return 0, or the seconds until there are enough tokens."""
        now = self._clock()
        left, when = self._buckets.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - when) * self._rate)
        enough = left >= cost
        self._buckets[client] = (left - cost if enough else left, now)
        if len(self._buckets) > MOST_CLIENTS:
            # Remove the client that was inactive for the longest time: its bucket is full or nearly full.
            self._buckets.popitem(last=False)
        return 0 if enough else max(1, math.ceil((min(cost, self._burst) - left) / self._rate))

    def __len__(self) -> int:
        return len(self._buckets)


class Room:
    """A limit of concurrent requests. It is used from one event loop, so it needs no lock."""

    def __init__(self, most: int) -> None:
        self._most, self._inside = most, 0

    @property
    def free(self) -> bool:
        """Whether one more request may start."""
        return self._inside < self._most

    def __enter__(self) -> None:
        self._inside += 1

    def __exit__(self, *_: object) -> None:
        self._inside -= 1
