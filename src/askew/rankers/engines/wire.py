"""HTTP by the standard library, with persistent connections, checked certificates, and limits on sizes and times.

The standard library does not log requests. Redirects are not followed, so a query is never sent to another host.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import ssl
import time
import weakref
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from askew.core.errors import ConfigError
from askew.plugins.pace import retry_after
from askew.rankers.engines.client import EngineError

_TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
# Statuses that may concern a single query and not all queries.
_OF_THE_QUERY = {400, 413, 414, 422}
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Reply:
    """The reply of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_of_the_query(self) -> bool:
        """Whether the server refused the request, possibly because of this query only."""
        return self.status in _OF_THE_QUERY


class Wire:
    """Connections to one host. Each concurrent request has its own, which is kept open for later requests."""

    def __init__(self, url: str, timeout_s: float = 30.0, most_bytes: int = 50_000_000) -> None:
        parts = checked_url(url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname or "", parts.port
        self._timeout, self._most = timeout_s, most_bytes
        self._idle: deque[http.client.HTTPConnection] = deque()
        weakref.finalize(self, _close_all, self._idle)

    def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None) -> Reply:
        """Send one request and return the reply. ``target`` is the part of the URL after the host."""
        try:
            if (kept := self._kept()) is not None:
                # A server may close an idle connection, so only the failure of a new connection is an error.
                with contextlib.suppress(http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                    return self._once(kept, method, target, headers, body)
            return self._once(self._connected(), method, target, headers, body)
        except (OSError, http.client.HTTPException) as error:
            raise self._lost(error) from None

    def close(self) -> None:
        """Close the connections that are not in use."""
        _close_all(self._idle)

    def _kept(self) -> http.client.HTTPConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _once(
        self, connection: http.client.HTTPConnection, method: str, target: str, headers: Mapping[str, str],
        body: bytes | None,
    ) -> Reply:  # fmt: skip
        deadline = time.monotonic() + self._timeout
        proxy = None if self._secure else self._proxy()
        if proxy is not None:
            target, headers = self.origin + target, {**_proxy_header(proxy), **headers}
        try:
            connection.request(method, target, body, {"Accept-Encoding": "identity", **headers})
            response = connection.getresponse()
            read = self._read(response, deadline)
        except BaseException:
            # The unread part of a reply must not be taken for the next reply.
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, read)

    def _read(self, response: http.client.HTTPResponse, deadline: float) -> bytes:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise EngineError(f"{self.origin}: the reply is compressed, which was not requested")
        body = bytearray()
        while block := response.read1(_BLOCK):
            body += block
            if len(body) > self._most:
                raise EngineError(f"{self.origin}: the reply has more than {self._most:,} bytes; raise max_bytes=")
            if time.monotonic() > deadline:
                raise TimeoutError
        if response.length:
            # Reading by blocks does not report a missing end, so check it here.
            raise http.client.IncompleteRead(b"", response.length)
        response.close()
        return bytes(body)

    def _proxy(self) -> SplitResult | None:
        """The proxy for this host from the environment, if there is one."""
        named = None if proxy_bypass(self._host) else getproxies().get("https" if self._secure else "http")
        return None if named is None else _checked_proxy(named)

    def _connected(self) -> http.client.HTTPConnection:
        host, port, proxy = self._host, self._port, self._proxy()
        if proxy is not None:
            host, port = proxy.hostname or "", proxy.port or 80
        if not self._secure:
            return http.client.HTTPConnection(host, port, timeout=self._timeout)
        made = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=trusted())
        if proxy is not None:
            made.set_tunnel(self._host, self._port, _proxy_header(proxy))
        return made

    def _lost(self, error: Exception) -> Exception:
        if isinstance(error, ssl.SSLCertVerificationError):
            return ConfigError(
                f"{self.origin}: its certificate is not trusted ({error.verify_message}); set SSL_CERT_FILE to a file "
                "with the certificate of your authority"
            )
        if isinstance(error, TimeoutError):
            return EngineError(f"{self.origin}: no reply within {self._timeout:g} seconds (timeout_s=)", transient=True)
        if isinstance(error, http.client.HTTPException) and not isinstance(error, ConnectionError):
            return EngineError(f"{self.origin}: not an HTTP reply ({type(error).__name__})", transient=True)
        why = getattr(error, "strerror", None) or type(error).__name__
        if self._proxy() is None:
            return EngineError(f"{self.origin}: no connection ({why}); check that the engine runs", transient=True)
        return EngineError(
            f"{self.origin}: no connection by the proxy of the environment ({why}); check that the proxy and the "
            "engine run",
            transient=True,
        )


def is_transient(status: int) -> bool:
    """Whether a retry may succeed."""
    return status in _TRANSIENT


def status_error(origin: str, reply: Reply, has_secret: bool) -> EngineError:
    """The error of an HTTP status. The server's own message is not shown, because it may quote the query."""
    status = reply.status
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "unknown"
    said = f"{origin}: HTTP status {status} ({phrase})"
    if is_transient(status):
        return EngineError(said, transient=True, retry_after=retry_after(reply.headers.get("retry-after")))
    if 300 <= status < 400:
        to = urlsplit(reply.headers.get("location", ""))
        if not to.netloc:
            return EngineError(
                f"{said}: the engine redirects to another path, which is not followed; give the new address in url="
            )
        where = f"{to.scheme}://{to.netloc.rpartition('@')[2]}"
        return EngineError(f"{said}: it redirects to {where}, which is not followed; give that address in url=")
    hint = {
        401: "the engine rejected the secret of the request; check the secret"
        if has_secret
        else "the engine needs a secret: give auth_env= or auth_file=",
        403: "the engine does not allow this secret to search"
        if has_secret
        else "the engine needs a secret: give auth_env= or auth_file=",
        404: "there is nothing at this path; check url= and the name of the index",
    }.get(
        status,
        "the engine refused the query; if it refuses all queries, check the settings of the engine"
        if reply.is_of_the_query
        else "the engine refused the request",
    )
    return EngineError(f"{said}: {hint}")


def checked_url(url: str) -> SplitResult:
    """Check an HTTP or HTTPS address without user information, and return its parts."""
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_sound = False
    if not is_sound or not url.isprintable() or " " in url:
        raise ConfigError(
            "url= should be an http or https address such as http://localhost:9200; the given text is not such an "
            "address"
        )
    if "@" in parts.netloc or parts.fragment:
        raise ConfigError("url= should have no user name, password or #fragment; give a secret with auth_env=")
    return parts


def _close_all(connections: deque[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _checked_proxy(named: str) -> SplitResult:
    """Check the address of a proxy and return its parts. It may contain a password, so it is never shown."""
    parts = urlsplit(named if "://" in named else f"http://{named}")
    try:
        is_sound = parts.scheme in ("http", "") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_sound = False
    if not is_sound:
        raise ConfigError(
            "the environment variable HTTP_PROXY or HTTPS_PROXY should be an address such as "
            "http://proxy.example:3128; the given text is not such an address. To use no proxy for a host, add the "
            "host to NO_PROXY"
        )
    return parts


def _proxy_header(proxy: SplitResult) -> dict[str, str]:
    user = proxy.netloc.rpartition("@")[0]
    return {"Proxy-Authorization": f"Basic {base64.b64encode(unquote(user).encode()).decode()}"} if user else {}


@cache
def trusted() -> ssl.SSLContext:
    """The trusted certificates, from the system or SSL_CERT_FILE. They are read once, because reading is slow."""
    return ssl.create_default_context()
