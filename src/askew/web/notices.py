"""Log limits, so that an attack cannot fill the log: repeated events are counted and logged once a minute."""

from __future__ import annotations

import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable

EVERY = 60.0
_MOST_MESSAGES = 1000
Clock = Callable[[], float]


class Notices:
    """Counts events. ``write`` is called often and logs at most one line per minute with all new counts."""

    def __init__(self, log: logging.Logger, clock: Clock = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._counts: Counter[str] = Counter()
        self._next = -float("inf")

    def add(self, what: str) -> None:
        """Count one event; ``what`` follows a number in the log, as in "refused"."""
        self._counts[what] += 1

    def write(self) -> None:
        """Log the counts, unless a line was written in the last minute."""
        now = self._clock()
        if self._counts and now >= self._next:
            self._log.warning("connections: %s", "; ".join(f"{n:,} {what}" for what, n in self._counts.items()))
            self._counts.clear()
            self._next = now + EVERY


class OncePerMinute(logging.Filter):
    """Passes the same warning or error once a minute; the next line says how many were left out."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written. Records below the level warning were requested and are all written."""
        if record.levelno < logging.WARNING:
            return True
        key, now = _key(record), self._clock()
        last, left_out = self._seen.get(key, (-float("inf"), 0))
        if now - last < EVERY:
            self._seen[key] = (last, left_out + 1)
            return False
        self._seen[key] = (now, 0)
        self._seen.move_to_end(key)
        while len(self._seen) > _MOST_MESSAGES:
            self._seen.popitem(last=False)
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out:,} more since the last such line)", None
        return True


def _key(record: logging.LogRecord) -> str:
    """Identify equal records. Messages of libraries may contain user data, so their place in the code is used."""
    return record.getMessage() if record.name.startswith("askew") else f"{record.pathname}:{record.lineno}"


def quiet_logs() -> None:
    """Limit the log records of the service and of all libraries, on every handler."""
    for handler in logging.getLogger().handlers:
        if not any(isinstance(one, OncePerMinute) for one in handler.filters):
            handler.addFilter(OncePerMinute())
