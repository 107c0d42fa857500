"""The open connections: uvicorn's HTTP protocol, which closes those that only wait if there are too many.

A connection waits until the complete head of a request has arrived, and again after each response. If there is no room
for a new connection, the one that has waited longest is closed. So clients that send their request at once are served,
even if others keep many connections open. A connection whose request is being answered is never closed to make room for
another one. docs/decisions says why uvicorn's own limits are not enough.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import resource
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

from askew.core.errors import ConfigError
from askew.ui.web.settings import ServerLimits

# The seconds between equal lines of the log, and the most lines that are remembered.
EVERY = 60.0
_MOST_MESSAGES = 1000
# File descriptors reserved for everything except connections: files of a store, uploads, pipes, and connections that
# the event loop has accepted and the table has not seen yet.
RESERVE = 128
# With fewer connections, a single browser could use all of them.
LEAST = 16
# Errors of the system if file descriptors or memory for sockets have run out.
SCARCE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_CLOSE = b"connection: close\r\ncontent-length: 0\r\n\r\n"
_LATE = b"HTTP/1.1 408 Request Timeout\r\n" + _CLOSE
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n" + _CLOSE
_log = logging.getLogger("askew.ui.web")
Clock = Callable[[], float]
# Where the scope of a request has the task that answers it.
TASK = "askew.task"


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
        # Messages of libraries may contain user data, so their place in the code identifies them.
        own = record.name.startswith("askew")
        key, now = record.getMessage() if own else f"{record.pathname}:{record.lineno}", self._clock()
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


class Connections:
    """All open connections. Used from one event loop, so counting needs no lock."""

    def __init__(
        self, limits: ServerLimits, most: int | None = None, proxies: Sequence[str] = (), clock: Clock = time.monotonic
    ) -> None:
        """Limit connections as ``limits`` says, and to at most ``most``, if file descriptors are few.

        Connections from ``proxies`` are not limited by address.
        """
        self._limits, self._most, self.clock = limits, min(limits.connections, most or limits.connections), clock
        self._per_address = min(limits.per_address, self._most)
        self._proxies = [ipaddress.ip_network(proxy, strict=False) for proxy in proxies]
        # The unsent bytes of each connection, and since when their number is the same.
        self._open: dict[LimitedProtocol, tuple[int, float]] = {}
        self._count: Counter[str] = Counter()
        # Waiting connections, that which waits longest first.
        self.waiting: dict[LimitedProtocol, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, new: LimitedProtocol) -> bool:
        """Add a connection, which waits for its first request; a waiting one may be closed to make room for it."""
        client = client_key(new.address)
        crowded = self._count[client] >= self._per_address and not self.is_proxy(new.address)
        if crowded or len(self._open) >= self._most:
            waiting = (one for one in self.waiting if not crowded or client_key(one.address) == client)
            longest = next(waiting, None)
            if longest is None:
                _log.warning("connection refused: %d are open, or %d from one address", self._most, self._per_address)
                return False
            _log.warning("connection closed early: too many connections are open, or too many from one address")
            self.remove(longest)
            longest.end()
        self._open[new] = (0, self.clock())
        self._count[client] += 1
        self.waiting[new] = None
        return True

    def is_proxy(self, address: str) -> bool:
        """Whether an address is that of a proxy, which connects for many clients."""
        try:
            return any(ipaddress.ip_address(address) in network for network in self._proxies)
        except ValueError:
            return False

    def waits(self, connection: LimitedProtocol) -> None:
        """Mark a connection as waiting for a request. If it waits already, it keeps its position."""
        if connection in self._open:
            self.waiting.setdefault(connection)

    def works(self, connection: LimitedProtocol) -> None:
        """Mark a connection as working, because a request head has arrived."""
        self.waiting.pop(connection, None)

    def remove(self, connection: LimitedProtocol) -> None:
        """Remove a closed connection."""
        self.works(connection)
        if self._open.pop(connection, None) is not None:
            client = client_key(connection.address)
            self._count[client] -= 1
            if not self._count[client]:
                del self._count[client]

    def sweep(self) -> None:
        """Close connections with a late request head or a client that stopped reading."""
        now, limits = self.clock(), self._limits
        for connection, (unsent, since) in list(self._open.items()):
            still_unsent = connection.unsent()
            if still_unsent != unsent:
                self._open[connection] = (still_unsent, now)
            elif still_unsent and now - since > limits.stall_seconds:
                _log.warning("connection closed: the client read nothing for %g s", limits.stall_seconds)
                connection.end()
            if connection.head_since is not None and now - connection.head_since > limits.head_seconds:
                connection.head_since = None
                connection.late()


class LimitedProtocol(H11Protocol):
    """uvicorn's HTTP protocol that reports when it waits for a request, and closes if the request head is late."""

    def __init__(self, table: Connections, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._table, self.address = table, ""
        self.head_since: float | None = None
        self._has_sent = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for the first request head, or refuse the connection."""
        super().connection_made(transport)
        self.head_since, self.address = self._table.clock(), self.client[0] if self.client else ""
        if not self._table.add(self):
            transport.write(_FULL)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request head or body."""
        self._has_sent = True
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        """Continue after a response; the next request may have arrived already."""
        super().on_response_complete()
        self._follow()

    def _follow(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self.head_since = None
            self._table.works(self)
        elif self not in self._table.waiting:
            self.head_since, self._has_sent = None, False
            self._table.waits(self)
        elif self.head_since is None:
            # The next request head has begun on a kept-alive connection.
            self.head_since = self._table.clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the open ones. If its client waits for an answer, that is given up."""
        super().connection_lost(exc)
        self._table.remove(self)
        if self.cycle is not None and self.cycle.disconnected:
            task: asyncio.Task[None] | None = cast(dict[str, Any], self.cycle.scope).get(TASK)
            if task is not None:
                task.cancel()

    def unsent(self) -> int:
        """The number of bytes of a response that the client has not received."""
        return self.transport.get_write_buffer_size()

    def late(self) -> None:
        """Send a timeout response and close. Browsers open connections that send nothing; these are not logged."""
        if self._has_sent:
            _log.warning("connection closed: the request head did not arrive in time")
            self.transport.write(_LATE)
        self.transport.close()

    def end(self) -> None:
        """Close the connection at once."""
        self.transport.abort()


@lru_cache(4096)
def client_key(address: str) -> str:
    """Identify a client by its address; for IPv6 by its /64 network, because one client has a whole network."""
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        # An address of version 4, or any text that a proxy passes on.
        return address[:64]
    return str(found.ipv4_mapped or ipaddress.ip_network((int(found) >> 64 << 64, 64)))


def connections_possible(wanted: int) -> int:
    """Return how many connections are possible, after raising the limit on file descriptors as far as needed."""
    used = RESERVE + len(list(Path("/dev/fd").iterdir()))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted + used:
        most = wanted + used if hard == resource.RLIM_INFINITY else min(hard, wanted + used)
        # The system may allow less than it reports. The limit then stays as it was.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    found = wanted if soft == resource.RLIM_INFINITY else min(wanted, soft - used)
    if found < LEAST:
        raise ConfigError(
            f"askew serve needs {used + LEAST} file descriptors or more, but this process may open only {soft}; "
            f"raise the limit: ulimit -n {max(1024, used + LEAST)}"
        )
    return found
