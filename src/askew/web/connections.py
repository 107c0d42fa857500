"""Tracks open connections and those that wait for a request, and closes waiting ones if there are too many.

A connection waits until the complete head of a request has arrived, and again after each response. If there is no room
for a new connection, the one that has waited longest is closed. So clients that send their request at once are served,
even if others keep many connections open. A connection whose request is being answered is never closed to make room for
another one.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import resource
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from askew.core.errors import ConfigError
from askew.web.notices import Notices
from askew.web.settings import ServerLimits

# File descriptors reserved for everything except connections: files of a store, uploads, pipes.
RESERVE = 128
# With fewer connections, a single browser could use all of them.
LEAST = 16
# Errors of the system if file descriptors or memory for sockets have run out.
SCARCE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_log = logging.getLogger("askew.web")


class Held(Hashable, Protocol):
    """A connection: its address, the time since when a request head is incomplete, and methods to end it."""

    address: str
    head_since: float | None

    def unsent(self) -> int:
        """The number of bytes of a response that the client has not received."""

    def late(self) -> None:
        """Close the connection because the request head did not arrive in time."""

    def end(self) -> None:
        """Close the connection now, even if data has not been sent."""


class Connections:
    """All open connections. Used from one event loop, so counting needs no lock."""

    def __init__(
        self, limits: ServerLimits, most: int | None = None, shared: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """Limit connections as ``limits`` says, and to at most ``most``, if file descriptors are few.

        Connections from ``shared`` addresses (proxies) are not limited by address.
        """
        self._limits, self._most = limits, min(limits.connections, most or limits.connections)
        self._per_address, self._shared = min(limits.per_address, self._most), Networks(shared)
        self.clock, self.notices = clock, Notices(_log, clock)
        self._open: dict[Held, tuple[int, float]] = {}
        self._count: Counter[str] = Counter()
        self._waiting: OrderedDict[Held, None] = OrderedDict()
        self._waiting_of: dict[str, OrderedDict[Held, None]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def make_room(self, address: str) -> bool:
        """Whether an address may open one more connection. A waiting connection may be closed to make room for it."""
        client = client_key(address)
        if self._count[client] >= self._per_address and not self._shared.hold(address):
            return self._close_longest(
                self._waiting_of.get(client), "closed early: too many connections are open from one address"
            )
        if len(self._open) >= self._most:
            return self._close_longest(self._waiting, "closed early: too many connections are open")
        return True

    def _close_longest(self, waiting: OrderedDict[Held, None] | None, why: str) -> bool:
        if not waiting:
            self.notices.add(
                f"refused: {self._most:,} connections are open in all, or {self._per_address:,} connections are open "
                "from the same address"
            )
            return False
        longest = next(iter(waiting))
        self.notices.add(why)
        self.remove(longest)
        longest.end()
        return True

    def add(self, one: Held) -> None:
        """Add a new connection, which waits for its first request."""
        self._open[one] = (0, self.clock())
        self._count[client_key(one.address)] += 1
        self.waits(one)

    def waits(self, one: Held) -> None:
        """Mark a connection as waiting for a request. If it waits already, it keeps its position."""
        if one in self._open and one not in self._waiting:
            self._waiting[one] = None
            self._waiting_of.setdefault(client_key(one.address), OrderedDict())[one] = None

    def works(self, one: Held) -> None:
        """Mark a connection as working, because a request head has arrived."""
        if one in self._waiting:
            del self._waiting[one]
            client = client_key(one.address)
            del self._waiting_of[client][one]
            if not self._waiting_of[client]:
                del self._waiting_of[client]

    def is_waiting(self, one: Held) -> bool:
        """Whether a connection waits for a request."""
        return one in self._waiting

    def remove(self, one: Held) -> None:
        """Remove a closed connection."""
        self.works(one)
        if self._open.pop(one, None) is not None:
            client = client_key(one.address)
            self._count[client] -= 1
            if not self._count[client]:
                del self._count[client]

    def sweep(self) -> None:
        """Close connections with a late request head or a client that stopped reading, and log their numbers."""
        now, limits = self.clock(), self._limits
        for one, (unsent, since) in list(self._open.items()):
            left = one.unsent()
            if left != unsent:
                self._open[one] = (left, now)
            elif left and now - since > limits.stall_seconds:
                self.notices.add(f"closed: the client read nothing for {limits.stall_seconds:g} s")
                one.end()
            if one.head_since is not None and now - one.head_since > limits.head_seconds:
                one.head_since = None
                one.late()
        self.notices.write()

    def scarce(self) -> None:
        """Free a file descriptor for a new connection, if possible."""
        self.notices.add(
            "delayed, because no file descriptors are left (raise the limit with 'ulimit -n' before you start 'askew "
            "serve')"
        )
        if self._waiting:
            self._close_longest(self._waiting, "closed early: too many connections are open")
        self.notices.write()


class Networks:
    """Addresses and networks, as in 10.0.0.7 or 10.0.0.0/8."""

    def __init__(self, given: Sequence[str]) -> None:
        self._networks = [ipaddress.ip_network(one, strict=False) for one in given]

    def hold(self, address: str) -> bool:
        """Whether one of the networks contains an address."""
        if not self._networks:
            return False
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)


@lru_cache(4096)
def client_key(address: str) -> str:
    """Identify a client by its address; for IPv6 by its /64 network, because one client has a whole network."""
    if ":" not in address:
        # A proxy may pass on any text.
        return address[:64]
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    return str(found.ipv4_mapped or ipaddress.ip_network((int(found) >> 64 << 64, 64)))


def connections_possible(wanted: int) -> int:
    """Return how many connections are possible, after raising the limit on file descriptors as far as needed."""
    used = RESERVE + len(list(Path("/dev/fd").iterdir()))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted + used:
        most = wanted + used if hard == resource.RLIM_INFINITY else min(hard, wanted + used)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
        except (OSError, ValueError):
            # The system may allow less than it reports. The limit then stays as it was.
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    found = wanted if soft == resource.RLIM_INFINITY else min(wanted, soft - used)
    if found < LEAST:
        raise ConfigError(
            f"askew serve needs {used + LEAST} file descriptors or more, but this process may open only {soft}; "
            f"raise the limit: ulimit -n {max(1024, used + LEAST)}"
        )
    return found
