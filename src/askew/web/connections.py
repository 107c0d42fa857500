"""Which connections are open, which of them wait for a request, and which is closed where there are too many.

A connection waits until the whole head of a request has come, and again after an answer. Where there is no room for a
new connection, the one that has waited for longest is closed: who sends a request at once is served, whoever else keeps
connections open. One that is being answered is never closed for another.
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

# File descriptors for everything that is no connection: the files of a store, uploads, pipes.
RESERVE = 128
# With fewer connections a browser alone could use all of them.
LEAST = 16
# What the system answers where file descriptors or memory for sockets have run out.
SCARCE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_log = logging.getLogger("askew.web")


class Held(Hashable, Protocol):
    """A connection: where it comes from, since when it owes the rest of a request head, and how to end it."""

    address: str
    head_since: float | None

    def unsent(self) -> int:
        """How many bytes of an answer have not been taken."""

    def late(self) -> None:
        """End it because the head of the request did not come in time."""

    def end(self) -> None:
        """End it now, whatever has not been sent."""


class Connections:
    """All open connections. Used from one event loop, so counting needs no lock."""

    def __init__(
        self, limits: ServerLimits, most: int | None = None, shared: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """``most`` is the cap where file descriptors are few; connections of ``shared`` addresses (proxies) are not
        counted by address."""
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
        """Whether one more may come from an address; one that waits may be closed for it."""
        client = client_key(address)
        if self._count[client] >= self._per_address and not self._shared.hold(address):
            return self._close_longest(self._waiting_of.get(client), "closed early: too many from one address")
        if len(self._open) >= self._most:
            return self._close_longest(self._waiting, "closed early: too many are open")
        return True

    def _close_longest(self, waiting: OrderedDict[Held, None] | None, why: str) -> bool:
        if not waiting:
            self.notices.add(f"refused: {self._most:,} are open, or {self._per_address:,} from one address")
            return False
        longest = next(iter(waiting))
        self.notices.add(why)
        self.remove(longest)
        longest.end()
        return True

    def add(self, one: Held) -> None:
        """Count a new connection; it waits for its first request."""
        self._open[one] = (0, self.clock())
        self._count[client_key(one.address)] += 1
        self.waits(one)

    def waits(self, one: Held) -> None:
        """A connection waits for a request from now on; one that waits already keeps its place."""
        if one in self._open and one not in self._waiting:
            self._waiting[one] = None
            self._waiting_of.setdefault(client_key(one.address), OrderedDict())[one] = None

    def works(self, one: Held) -> None:
        """The head of a request has come: it is answered now."""
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
        """A connection is gone."""
        self.works(one)
        if self._open.pop(one, None) is not None:
            client = client_key(one.address)
            self._count[client] -= 1
            if not self._count[client]:
                del self._count[client]

    def sweep(self) -> None:
        """End the connections whose request head is late and those that take nothing of their answer; log counts."""
        now, limits = self.clock(), self._limits
        for one, (unsent, since) in list(self._open.items()):
            left = one.unsent()
            if left != unsent:
                self._open[one] = (left, now)
            elif left and now - since > limits.stall_seconds:
                self.notices.add(f"closed: nothing of the answer was taken for {limits.stall_seconds:g} s")
                one.end()
            if one.head_since is not None and now - one.head_since > limits.head_seconds:
                one.head_since = None
                one.late()
        self.notices.write()

    def scarce(self) -> None:
        """No file descriptor is left for a new connection: free one if that is possible."""
        self.notices.add("delayed: no file descriptors are left; raise the limit (ulimit -n) before askew serve")
        if self._waiting:
            self._close_longest(self._waiting, "closed early: too many are open")
        self.notices.write()


class Networks:
    """Addresses and networks, as in 10.0.0.7 or 10.0.0.0/8."""

    def __init__(self, given: Sequence[str]) -> None:
        self._networks = [ipaddress.ip_network(one, strict=False) for one in given]

    def hold(self, address: str) -> bool:
        """Whether an address is among them."""
        if not self._networks:
            return False
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)


@lru_cache(4096)
def client_key(address: str) -> str:
    """Who a client is, for counting: an address; of version 6 the network of 64 bits, for one client has all of it."""
    if ":" not in address:
        # What a proxy passes on may be anything.
        return address[:64]
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    return str(found.ipv4_mapped or ipaddress.ip_network((int(found) >> 64 << 64, 64)))


def connections_possible(wanted: int) -> int:
    """How many connections this process can hold. The limit on file descriptors is raised as far as they need it."""
    used = RESERVE + len(list(Path("/dev/fd").iterdir()))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted + used:
        most = wanted + used if hard == resource.RLIM_INFINITY else min(hard, wanted + used)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
        except (OSError, ValueError):
            # What the system allows may be less than it says; then it stays as it was.
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    found = wanted if soft == resource.RLIM_INFINITY else min(wanted, soft - used)
    if found < LEAST:
        raise ConfigError(
            f"askew serve needs {used + LEAST} file descriptors or more, and this process may open {soft}; "
            f"raise the limit first: ulimit -n {max(1024, used + LEAST)}"
        )
    return found
