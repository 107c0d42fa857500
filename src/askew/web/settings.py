"""What can be set of a service: what it shows, where it listens, and how much it takes on."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field

from askew.app.explore.opening import Sources
from askew.core import defaults
from askew.core.errors import ConfigError

LEAST_TOKEN = 16
_HOST = re.compile(r"[\w-]+(\.[\w-]+)*|\[?[0-9a-fA-F:.]*:[0-9a-fA-F:.]*\]?")


@dataclass(frozen=True)
class ServerLimits:
    """How much is taken on. What goes beyond is refused with a clear answer, never half done.

    ``rate`` is in requests a second for each client, ``burst`` how many may come at once. ``waiting`` requests may wait
    for one of the ``threads``, and as many for reformulations, none for more than ``wait_seconds``. ``open`` requests
    may be there at once, and ``uploading`` uploads among them. At most ``connections`` are open, ``per_address`` of
    them from one address. The head of a request has to come within ``head_seconds``. Its body may pause for
    ``body_seconds`` and has to be whole after ``whole_seconds``. An answer of which nothing is taken for
    ``stall_seconds`` is given up. Runs are measured one after the other, ``measuring`` of them may wait, and each has
    ``measure_seconds``.
    """

    body_bytes: int = 1 << 20
    upload_bytes: int = 20 << 20
    rate: float = defaults.RATE
    burst: int = 60
    threads: int = field(default_factory=lambda: min(4, os.cpu_count() or 1))
    waiting: int = 400
    wait_seconds: float = 20.0
    cache_bytes: int = 32 << 20
    uploads: int = 16
    open: int = 1000
    uploading: int = 4
    measuring: int = 4
    measure_seconds: float = 120.0
    connections: int = 2000
    per_address: int = 200
    head_seconds: float = 10.0
    body_seconds: float = 20.0
    whole_seconds: float = 120.0
    stall_seconds: float = 20.0
    drain_seconds: int = 30

    @classmethod
    def at_rate(cls, rate: float) -> ServerLimits:
        """So many requests a second, and those of three seconds at once."""
        if not 0 < rate <= 1e6:
            raise ConfigError(f"--rate: expected a number above 0, found {rate}")
        return cls(rate=rate, burst=max(1, round(3 * rate)))


@dataclass(frozen=True)
class Settings:
    """One service.

    ``allowed_hosts`` are names under which it answers besides those of this machine. ``proxies`` are the addresses or
    networks of proxies with TLS in front of it: they alone say who their clients are, and cookies are for TLS only.
    """

    sources: Sources = field(default_factory=Sources)
    host: str = defaults.HOST
    port: int = defaults.PORT
    token: str | None = field(default=None, repr=False)
    limits: ServerLimits = field(default_factory=ServerLimits)
    allowed_hosts: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.allowed_hosts:
            if not _HOST.fullmatch(name):
                raise ConfigError(f"--allowed-host {name}: expected a name alone, as in search.example.org")
        object.__setattr__(self, "proxies", tuple(map(_network, self.proxies)))
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"--port: expected a number from 0 to 65535, found {self.port}")
        if self.token is None and (self.proxies or not self.loopback):
            given = "--behind-proxy" if self.proxies else f"--host {self.host}"
            raise ConfigError(
                f"{given}: others could reach it, so a token is needed; put one into the environment "
                "variable ASKEW_TOKEN or a file for --token-file"
            )
        if self.token is not None and len(self.token) < LEAST_TOKEN:
            raise ConfigError(f"the token should have {LEAST_TOKEN} characters or more, found {len(self.token)}")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(self.host)


def _network(address: str) -> str:
    try:
        found = ipaddress.ip_network(address, strict=False)
        return str(found) if "/" in address else address
    except ValueError:
        raise ConfigError(
            f"--behind-proxy {address}: expected the address or network that the proxy connects from, as in 127.0.0.1"
        ) from None


def is_loopback(host: str) -> bool:
    """Whether a name or address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
