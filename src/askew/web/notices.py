"""A log that an attack cannot fill: what happens over and over is counted, and one line a minute says so."""

from __future__ import annotations

import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable

EVERY = 60.0
_MOST_MESSAGES = 1000
Clock = Callable[[], float]


class Notices:
    """Counts events. ``write`` is called often and logs at most one line a minute with all counts since the last."""

    def __init__(self, log: logging.Logger, clock: Clock = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._counts: Counter[str] = Counter()
        self._next = -float("inf")

    def add(self, what: str) -> None:
        """One more of a kind; ``what`` reads after a number, as in "refused"."""
        self._counts[what] += 1

    def write(self) -> None:
        """Log what was counted, unless a line was written in the last minute."""
        now = self._clock()
        if self._counts and now >= self._next:
            self._log.warning("connections: %s", "; ".join(f"{n:,} {what}" for what, n in self._counts.items()))
            self._counts.clear()
            self._next = now + EVERY


class OncePerMinute(logging.Filter):
    """Lets a warning or an error through once a minute; the next one says how many were left out."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written. Lines below a warning were asked for and are all written."""
        if record.levelno < logging.WARNING:
            return True
        text, now = record.getMessage(), self._clock()
        last, left_out = self._seen.get(text, (-float("inf"), 0))
        if now - last < EVERY:
            self._seen[text] = (last, left_out + 1)
            return False
        self._seen[text] = (now, 0)
        self._seen.move_to_end(text)
        while len(self._seen) > _MOST_MESSAGES:
            self._seen.popitem(last=False)
        if left_out:
            record.msg, record.args = f"{text} ({left_out:,} more since the last such line)", None
        return True


def quiet_logs() -> None:
    """Bound what the server, the event loop and the service itself write."""
    for name in ("uvicorn.error", "asyncio", "askew.web"):
        logger = logging.getLogger(name)
        if not any(isinstance(one, OncePerMinute) for one in logger.filters):
            logger.addFilter(OncePerMinute())
