"""Rate limits for requests to a service: a token bucket, the service's Retry-After header, and backoff."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from askew.core.protocols import seed_for

_SPAN = float(1 << 63)


class RequestsEnded(Exception):
    """The requests were stopped while one waited for its turn."""


def _sleep(seconds: float, stop: threading.Event) -> None:
    if stop.wait(min(seconds, 1e6)) if seconds > 0 else stop.is_set():
        raise RequestsEnded


class RateLimit:
    """Limits the number of requests per minute, and pauses all requests if the endpoint demands it.

    The bucket has room for the requests of one second, so that the requests of a whole minute are not sent at once.
    """

    def __init__(self, per_minute: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = None if per_minute is None else per_minute / 60
        self._most = max(1.0, self._rate or 0.0)
        self._tokens = self._most
        self._clock = clock
        self._filled = clock()
        self._held_until = -math.inf
        self._lock = threading.Lock()

    def reserve(self) -> float:
        """Reserve a request; return the seconds to wait before it may be sent."""
        if self._rate is None:
            return 0.0
        with self._lock:
            now = self._clock()
            self._tokens = min(self._most, self._tokens + (now - self._filled) * self._rate) - 1
            self._filled = now
            return max(0.0, -self._tokens / self._rate)

    def hold(self, seconds: float) -> None:
        """Pause all requests for some seconds."""
        with self._lock:
            self._held_until = max(self._held_until, self._clock() + seconds)

    def held(self) -> float:
        """Return the seconds until requests may be sent again."""
        return max(0.0, self._held_until - self._clock())

    def wait(self, stop: threading.Event) -> None:
        """Wait for the turn of a request, and until no pause is left."""
        _sleep(self.reserve(), stop)
        while (pause := self.held()) > 0:
            _sleep(pause, stop)

    def rest(
        self, requested: float | None, base_s: float, most_s: float, attempt: int, key: str, stop: threading.Event,
        seed: int = 0,
    ) -> None:  # fmt: skip
        """Wait after a failed attempt (see ``back_off``), and pause all requests if the endpoint requested it."""
        if requested:
            self.hold(requested)
        _sleep(back_off(base_s, most_s, attempt, seed, key), stop)


def back_off(base_s: float, most_s: float, attempt: int, seed: int, key: str) -> float:
    """Return the seconds to wait after a failed attempt (counted from 1): doubled each time, with random jitter.

    The jitter shortens the wait by up to a half. It is drawn from the seed and the request, so that requests that
    failed together are not sent again together.
    """
    whole = min(most_s, base_s * 2.0 ** min(attempt - 1, 60))
    return whole * (1 - 0.5 * seed_for(seed, "back-off", key, str(attempt)) / _SPAN)


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds of a Retry-After header, which has a number or a date; None if it is missing or invalid."""
    if value is None:
        return None
    try:
        seconds = float(value)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())
