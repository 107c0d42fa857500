"""Who may ask how often, and how many at once: a bucket of tokens for each client, which fills again with time."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

MOST_CLIENTS = 10_000


class Rate:
    """Each client has ``burst`` tokens at first and gets ``rate`` of them a second."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, cost: float = 1.0) -> int:
        """Take tokens: 0 where there are enough, otherwise in how many seconds there will be."""
        now = self._clock()
        left, when = self._buckets.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - when) * self._rate)
        enough = left >= cost
        self._buckets[client] = (left - cost if enough else left, now)
        if len(self._buckets) > MOST_CLIENTS:
            # The one that was away for longest has a full bucket by now, or nearly.
            self._buckets.popitem(last=False)
        return 0 if enough else max(1, math.ceil((min(cost, self._burst) - left) / self._rate))

    def __len__(self) -> int:
        return len(self._buckets)


class Room:
    """So many may be inside at once. Used from one event loop, so counting needs no lock."""

    def __init__(self, most: int) -> None:
        self._most, self._inside = most, 0

    @property
    def free(self) -> bool:
        """Whether one more may come in."""
        return self._inside < self._most

    def __enter__(self) -> None:
        self._inside += 1

    def __exit__(self, *_: object) -> None:
        self._inside -= 1
