"""HTTP by the standard library, with persistent connections, checked certificates, and limits on sizes and times.

The standard library does not log requests. Redirects are not followed, so a query is never sent to another host.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import json
import os
import re
import select
import socket
import ssl
import time
import weakref
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from askew.core.address import know_secrets
from askew.core.errors import ConfigError, one_of
from askew.core.pace import retry_after
from askew.search.engines.client import EngineError

# Tokens, passwords and keys. They are read from an environment variable or a file at each use and never stored.

SCHEMES = {"bearer": "Bearer", "basic": "Basic", "apikey": "ApiKey"}
_HEADER = "header:"
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,60}")
# Lower-case variable names exist, but are refused: a token given by mistake could look like one.
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,60}")


@dataclass(frozen=True)
class SecretSource:
    """The location of a secret: an environment variable or a file. ``what`` is the prefix of the setting names."""

    what: str
    env: str | None = None
    file: str | Path | None = None

    def __post_init__(self) -> None:
        """Check the location. A secret that was given in place of a name must not appear in a message."""
        if self.env is not None and self.file is not None:
            raise ConfigError(f"give either {self.what}_env= or {self.what}_file=, not both")
        if self.env is not None and not _VARIABLE.fullmatch(self.env):
            raise ConfigError(
                f"{self.what}_env= should be the name of an environment variable in capital letters; found another "
                "text, which is not shown because it may be the secret itself"
            )

    def __bool__(self) -> bool:
        return self.env is not None or self.file is not None

    def read(self) -> str:
        """Read the secret, and register it so that later messages never show it."""
        setting = f"{self.what}_env= {self.env}" if self.file is None else f"{self.what}_file= {self.file}"
        try:
            secret = os.environ[str(self.env)] if self.file is None else Path(self.file).expanduser().read_text("utf-8")
        except KeyError:
            raise ConfigError(f"{setting}: this environment variable is not set") from None
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not UTF-8"
            raise ConfigError(f"{setting}: cannot be read ({why})") from None
        secret = secret.strip()
        # The HTTP library would quote characters that it cannot send in a header in its error message.
        if not secret or not all(" " <= char <= "~" for char in secret):
            raise ConfigError(f"{setting}: the secret should be printable ASCII, and not empty")
        know_secrets({"token": secret})
        return secret


@dataclass(frozen=True)
class Authentication:
    """The authentication of requests: a secret with a scheme, and headers with values from environment variables.

    ``scheme`` is bearer (a token), basic (``user:password``), apikey (as in Elasticsearch) or ``header:NAME``.
    """

    source: SecretSource
    scheme: str = "bearer"
    variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the scheme and the header names before any request."""
        if self.scheme.startswith(_HEADER):
            _check_header(self.scheme.removeprefix(_HEADER), "⟨auth_scheme⟩")
        else:
            one_of(self.scheme, (*SCHEMES, f"{_HEADER}NAME"), "⟨auth_scheme⟩")
        for name, variable in self.variables.items():
            _check_header(name, "⟨headers_env⟩")
            SecretSource("headers", variable)

    def __bool__(self) -> bool:
        return bool(self.source) or bool(self.variables)

    def headers(self) -> dict[str, str]:
        """The headers of a request. Secrets are read for each request, so that a renewed token is used."""
        headers = {name: SecretSource("headers", variable).read() for name, variable in self.variables.items()}
        if not self.source:
            return headers
        secret = self.source.read()
        if self.scheme.startswith(_HEADER):
            return headers | {self.scheme.removeprefix(_HEADER): secret}
        if self.scheme == "basic":
            know_secrets({"password": secret.partition(":")[2]})
            secret = base64.b64encode(secret.encode()).decode()
            know_secrets({"token": secret})
        return headers | {"Authorization": f"{SCHEMES[self.scheme]} {secret}"}


def _check_header(name: str, setting: str) -> None:
    if not _HEADER_NAME.fullmatch(name):
        raise ConfigError(f"{setting}: the name of a header must have only letters, digits and hyphens")


# Statuses after which the same request may succeed, and those that may concern a single query and not all queries.
TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
OF_THE_QUERY = {400, 413, 414, 422}
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Reply:
    """The reply of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _UntilDeadline(io.RawIOBase):
    """The bytes of a socket until a deadline, however slowly they arrive: body, heads and trailers."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase, deadline: float) -> None:
        self._sock, self._raw, self._deadline = sock, raw, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _response(deadline: float, sock: socket.socket, **more: Any) -> http.client.HTTPResponse:
    response = http.client.HTTPResponse(sock, **more)
    response.fp = io.BufferedReader(_UntilDeadline(sock, response.fp.detach(), deadline))
    return response


class Wire:
    """Connections to one host. Each concurrent request has its own, which is kept open for later requests."""

    def __init__(self, url: str, timeout_s: float = 30.0, most_bytes: int = 50_000_000) -> None:
        parts = checked_url(url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname or "", parts.port
        # The system accepts no longer time.
        self._timeout, self._most = min(timeout_s, 1e6), most_bytes
        self._idle: deque[http.client.HTTPConnection] = deque()
        weakref.finalize(self, close_all, self._idle)

    def send(self, target: str, headers: Mapping[str, str], body: bytes | None = None, kind: str = "") -> Reply:
        """Send one request, a POST if it has a body. ``target`` is the part of the URL after the host."""
        more, deadline = {} if body is None else {"Content-Type": kind}, time.monotonic() + self._timeout
        try:
            return self._once(self._idle_or_new(), target, {**more, **headers}, body, deadline)
        except (OSError, http.client.HTTPException) as error:
            raise self._lost(error) from None

    def close(self) -> None:
        """Close the connections that are not in use."""
        close_all(self._idle)

    def _once(
        self, connection: http.client.HTTPConnection, target: str, headers: Mapping[str, str], body: bytes | None,
        deadline: float,
    ) -> Reply:  # fmt: skip
        # Each wait for the socket ends at the deadline at the latest, so that a reply in drops cannot pass it.
        connection.timeout = max(0.001, deadline - time.monotonic())
        connection.response_class = cast(Any, partial(_response, deadline))
        if connection.sock is not None:
            connection.sock.settimeout(connection.timeout)
        proxy = None if self._secure else self._proxy()
        if proxy is not None:
            target, headers = self.origin + target, {**_proxy_header(proxy), **headers}
        try:
            connection.request(
                "GET" if body is None else "POST", target, body, {"Accept-Encoding": "identity", **headers}
            )
            response = connection.getresponse()
            read = self._read(response)
        except BaseException:
            # The unread part of a reply must not be taken for the next reply.
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, read)

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise EngineError(f"{self.origin}: the reply is compressed, which was not requested", code="compressed")
        body = bytearray()
        while block := response.read1(_BLOCK):
            body += block
            if len(body) > self._most:
                problem = f"{self.origin}: the reply has more than {self._most:,} bytes; raise ⟨max_bytes⟩"
                raise EngineError(problem, transient=response.status in TRANSIENT, code="too-large")
        if response.length:
            # Reading by blocks does not report a missing end, so check it here.
            raise http.client.IncompleteRead(b"", response.length)
        response.close()
        return bytes(body)

    def _proxy(self) -> SplitResult | None:
        """The proxy for this host from the environment, if there is one."""
        named = None if proxy_bypass(self._host) else getproxies().get("https" if self._secure else "http")
        if named is None:
            return None
        # The address may contain a password, so it is never shown.
        parts = parse_url(named if "://" in named else f"http://{named}", ("http",))
        if parts is None or not parts.hostname:
            raise ConfigError(
                "HTTP_PROXY or HTTPS_PROXY should be an address such as http://proxy.example:3128, found another "
                "text; to use no proxy for a host, add the host to NO_PROXY"
            )
        return parts

    def _idle_or_new(self) -> http.client.HTTPConnection:
        with contextlib.suppress(IndexError):
            while True:
                connection, poll = self._idle.pop(), select.poll()
                poll.register(connection.sock, select.POLLIN)
                # An idle connection has something to read only if the server has closed it.
                if not poll.poll(0):
                    return connection
                connection.close()
        host, port, proxy = self._host, self._port, self._proxy()
        if proxy is not None:
            host, port = proxy.hostname or "", proxy.port or 80
        if not self._secure:
            return http.client.HTTPConnection(host, port, timeout=self._timeout)
        connection = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=trusted())
        if proxy is not None:
            connection.set_tunnel(self._host, self._port, _proxy_header(proxy))
        return connection

    def _lost(self, error: Exception) -> Exception:
        if isinstance(error, ssl.SSLCertVerificationError):
            return ConfigError(
                f"{self.origin}: its certificate is not trusted ({error.verify_message}); set SSL_CERT_FILE to a file "
                "with the certificate of your authority"
            )
        if isinstance(error, TimeoutError):
            return EngineError(
                f"{self.origin}: no reply within {self._timeout:g} seconds (⟨timeout_s⟩)", True, code="time-out"
            )
        if isinstance(error, http.client.HTTPException) and not isinstance(error, ConnectionError):
            return EngineError(f"{self.origin}: not an HTTP reply ({type(error).__name__})", transient=True)
        why = getattr(error, "strerror", None) or type(error).__name__
        proxy = self._proxy()
        who = "engine runs" if proxy is None else "proxy of the environment and the engine run"
        problem = f"{self.origin}: no connection ({why}); check that the {who}"
        code = "connection-lost" if isinstance(error, ConnectionResetError | BrokenPipeError) else "no-connection"
        return EngineError(problem, transient=True, code=code, proxy=proxy is not None)


def read_json(reply: Reply, origin: str) -> Any:
    """The JSON of a reply."""
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        raise EngineError(f"{origin}: the reply is not JSON; check ⟨url⟩") from None


def status_error(origin: str, status: int, headers: Mapping[str, str], has_secret: bool) -> EngineError:
    """The error of an HTTP status. The server's own message is not shown, because it may quote the query."""
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "unknown"
    problem, headers = f"{origin}: HTTP status {status} ({phrase})", {k.lower(): v for k, v in headers.items()}
    if status in TRANSIENT:
        return EngineError(problem, transient=True, retry_after=retry_after(headers.get("retry-after")))
    if 300 <= status < 400:
        to = urlsplit(headers.get("location", ""))
        where = f"{to.scheme}://{to.netloc.rpartition('@')[2]}" if to.netloc else "another path"
        return EngineError(f"{problem}: it redirects to {where}, which is not followed; give that address in ⟨url⟩")
    if status in (401, 403):
        advice = "the engine rejected the secret" if has_secret else "give a secret with ⟨auth_env⟩ or ⟨auth_file⟩"
    elif status == 404:
        advice = "there is nothing at this path; check ⟨url⟩ and the name of the index"
    else:
        advice = "the engine refused the query; if it refuses all queries, check the settings"
    return EngineError(f"{problem}: {advice}", code="refused", status=status)


def parse_url(url: str, schemes: Collection[str]) -> SplitResult | None:
    """The parts of an address with one of these schemes; None if the text is not such an address."""
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in schemes and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    return parts if is_sound and url.isprintable() and " " not in url else None


def checked_url(url: str) -> SplitResult:
    """Check an HTTP or HTTPS address without user information, and return its parts."""
    parts = parse_url(url, ("http", "https"))
    if parts is None or not parts.hostname:
        raise ConfigError("⟨url⟩ should be an http or https address such as http://localhost:9200, found another text")
    if "@" in parts.netloc or parts.fragment:
        raise ConfigError("⟨url⟩ should have no user name, password or #fragment; give a secret with ⟨auth_env⟩")
    return parts


def close_all(connections: deque[Any]) -> None:
    """Close and remove all connections. Some clients of databases have nothing to close."""
    while connections:
        getattr(connections.pop(), "close", lambda: None)()


def _proxy_header(proxy: SplitResult) -> dict[str, str]:
    user = proxy.netloc.rpartition("@")[0]
    return {"Proxy-Authorization": f"Basic {base64.b64encode(unquote(user).encode()).decode()}"} if user else {}


@cache
def trusted() -> ssl.SSLContext:
    """The trusted certificates, from the system or SSL_CERT_FILE. They are read once, because reading is slow."""
    return ssl.create_default_context()
