"""Settings of a service: what it shows, where it listens, and its limits."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field

from askew.core import defaults
from askew.core.errors import ConfigError
from askew.ui.explorer.opening import Sources

LEAST_TOKEN = 16
_HOST = re.compile(r"[\w-]+(\.[\w-]+)*|\[?[0-9a-fA-F:.]*:[0-9a-fA-F:.]*\]?")


@dataclass(frozen=True)
class ServerLimits:
    """Limits of a service. Requests beyond a limit are rejected with an error, never answered in part.

    Each client may send ``rate`` requests per second, and ``burst`` at once. At most ``waiting`` requests wait for one
    of the ``threads``, and as many for reformulations; requests for reformulations wait at most ``wait_seconds``. At
    most ``open`` requests are processed at once, and ``uploading`` uploads besides. At most ``connections`` are
    open, ``per_address`` of them from one address. The head of a request must arrive within ``head_seconds``. Its body
    may pause for ``body_seconds`` and must be complete after ``whole_seconds``. A connection is closed if the client
    reads nothing for ``stall_seconds``. Runs are measured one after the other; at most ``measuring`` of them wait, and
    each may take ``measure_seconds``. A service that is stopped answers open requests for ``drain_seconds`` at most.
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
    drain_seconds: int = 20

    @classmethod
    def at_rate(cls, rate: float) -> ServerLimits:
        """Make limits with ``rate`` requests per second, and a burst of three seconds."""
        if not 0 < rate <= 1e6:
            raise ConfigError(f"--rate: expected a number above 0, found {rate}")
        return cls(rate=rate, burst=max(1, round(3 * rate)))


@dataclass(frozen=True)
class Settings:
    """Settings of one service.

    ``allowed_hosts`` are host names that it answers for, besides those of this machine. ``proxies`` are the addresses
    or networks of TLS proxies in front of it. Only the X-Forwarded-For header of these proxies is trusted. With a
    proxy, cookies are sent over TLS only.
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
                raise ConfigError(f"--allowed-host {name}: expected only a host name, such as search.example.org")
        object.__setattr__(self, "proxies", tuple(map(_network, self.proxies)))
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"--port: expected a number from 0 to 65535, found {self.port}")
        if self.token is None and (self.proxies or not self.loopback):
            given = "--behind-proxy" if self.proxies else f"--host {self.host}"
            raise ConfigError(
                f"{given}: other machines could reach the service, so a token is needed; set the environment "
                "variable ASKEW_TOKEN, or give --token-file"
            )
        if self.token is not None and len(self.token) < LEAST_TOKEN:
            raise ConfigError(
                f"the token needs {LEAST_TOKEN} characters or more, found {len(self.token)}; set a longer one"
            )

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
    """Whether a host name or address is only reachable from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
