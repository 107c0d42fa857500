"""Middleware that checks every request first: host, origin, rate, size and token. It also adds security headers.

It wraps the whole application, so that rejecting a request is cheap and error responses have the same headers.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from askew.ui.web.connections import SCARCE, TASK, client_key
from askew.ui.web.lane import LaneFailed
from askew.ui.web.replies import Problem, place_of, show_problem, too_many, wants_json
from askew.ui.web.settings import Settings, is_loopback
from askew.ui.web.work import CLIENT

# Limits of requests: a token bucket for the rate of each client, and a limit of concurrent requests.

MOST_CLIENTS = 10_000


class Rate:
    """A token bucket per client: ``burst`` tokens at first, ``rate`` new tokens per second."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, cost: float = 1.0) -> int:
        """Take tokens of a client. Return 0, or the seconds until there are enough tokens."""
        now = self._clock()
        left, when = self._buckets.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - when) * self._rate)
        enough = left >= cost
        self._buckets[client] = (left - cost if enough else left, now)
        if len(self._buckets) > MOST_CLIENTS:
            # Remove the client that was inactive for the longest time: its bucket is full or nearly full.
            self._buckets.popitem(last=False)
        return 0 if enough else max(1, math.ceil((min(cost, self._burst) - left) / self._rate))

    def __len__(self) -> int:
        return len(self._buckets)


# Access control: a token in a header, or a cookie that the login page sets for the token.

COOKIE = "askew"
SECONDS = 12 * 3600
# These paths need no token: the login page sets the cookie, and the health check must always work.
OPEN = ("/login", "/api/health")
OPEN_BELOW = "/static/"


class Access:
    """Checks tokens and cookies. A cookie contains an expiry time, signed with the token, and not the token."""

    def __init__(self, token: str | None, clock: Callable[[], float] = time.time) -> None:
        self._token = None if token is None else token.encode()
        self._clock = clock

    @property
    def needed(self) -> bool:
        """Whether a token is needed at all."""
        return self._token is not None

    def is_token(self, given: str) -> bool:
        """Whether this is the token. The comparison takes constant time."""
        return self._token is not None and hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    def allows(self, path: str, headers: Mapping[str, str]) -> bool:
        """Whether a request is allowed."""
        if self._token is None or path in OPEN or path.startswith(OPEN_BELOW):
            return True
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self.is_token(given.strip()):
            return True
        until, _, signed = cookie_parser(headers.get("cookie", "")).get(COOKIE, "").partition(".")
        if not until.isascii() or not until.isdigit() or len(until) > 12:
            return False
        right = hmac.compare_digest(signed.encode("utf-8", "replace"), self._sign(until).encode())
        return right and int(until) > self._clock()

    def cookie(self) -> str:
        """Make a new cookie."""
        until = str(int(self._clock()) + SECONDS)
        return f"{until}.{self._sign(until)}"

    def _sign(self, until: str) -> str:
        assert self._token is not None
        return hmac.new(self._token, f"askew cookie {until}".encode(), hashlib.sha256).hexdigest()


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_log = logging.getLogger("askew.ui.web")


class Guard:
    """The middleware."""

    def __init__(self, app: ASGIApp, settings: Settings, access: Access, rate: Rate) -> None:
        self.app, self._settings, self._access, self._rate = app, settings, access, rate
        self._hosts = tuple(name.strip("[]").lower() for name in settings.allowed_hosts)
        self._open = asyncio.Semaphore(settings.limits.open)
        self._uploading = asyncio.Semaphore(settings.limits.uploading)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application, or reject it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, start = False, time.perf_counter()

        async def reply(message: Message) -> None:
            """Add headers to a response and log a line, which never contains text of a query, a header or a body."""
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
                took = 1000 * (time.perf_counter() - start)
                # The path itself may contain anything, so the pattern of the route is logged.
                route = getattr(scope.get("route"), "path", "-")
                _log.info("%s %s %d %.0f ms", scope["method"], route, message["status"], took)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, reply)
            return
        # A request waits for no place: uploads take one of their few places, and all others one of the rest.
        places = self._uploading if is_upload(scope) else self._open
        if places.locked():
            await show_problem(scope, too_many(1))(scope, receive, reply)
            return
        limits, most = self._settings.limits, self._most_bytes(scope)
        async with places:
            CLIENT.set(client_of(scope))
            scope[TASK] = asyncio.current_task()
            try:
                await self.app(scope, limited(receive, most, limits.body_seconds, limits.whole_seconds), reply)
            except (Exception, asyncio.CancelledError) as error:
                # Cancelled: the client has gone, or the service ends and waits no longer.
                problem = self._failure(error) if isinstance(error, Exception) else Problem(503)
                # A response that has begun stays incomplete, and the server closes the connection.
                if not begun:
                    await show_problem(scope, problem)(scope, receive, reply)

    def _failure(self, error: Exception) -> Problem:
        """Log the kind and place of an error. Its message may contain a query, so it is not logged."""
        if isinstance(error, OSError) and error.errno in SCARCE:
            _log.error("no file descriptors are left; raise the limit (ulimit -n) before you start askew serve")
            return Problem(503, headers={"retry-after": "1"})
        what = str(error) if isinstance(error, LaneFailed) else f"{type(error).__name__} at {place_of(error)}"
        _log.error("internal error: %s", what)
        return Problem(500)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        try:
            self._check_host(headers)
            self._check_origin(scope, headers)
            if wait := self._rate.take(client_of(scope)):
                raise too_many(wait, "too many requests from your address")
            size, most = headers.get("content-length", ""), self._most_bytes(scope)
            if size.isdigit() and (len(size) > 15 or int(size) > most):
                raise too_large(most)
        except Problem as problem:
            return show_problem(scope, problem)
        if self._access.allows(scope["path"], headers):
            return None
        if wants_json(scope) or scope["method"] != "GET":
            return show_problem(scope, Problem(401, headers={"www-authenticate": "Bearer"}))
        query = scope["query_string"].decode("latin-1")
        wanted = scope["path"] + (f"?{query}" if query else "")
        return RedirectResponse("/login?" + urlencode({"next": wanted}), 303)

    def _most_bytes(self, scope: Scope) -> int:
        limits = self._settings.limits
        return limits.upload_bytes if is_upload(scope) else limits.body_bytes

    def _check_host(self, headers: Headers) -> None:
        """Accept only known host names, to prevent DNS rebinding."""
        name, settings = host_of(f"//{headers.get('host', '')}"), self._settings
        known = is_loopback(name) or name in (*self._hosts, settings.host.strip("[]").lower())
        if not known and (settings.loopback or settings.allowed_hosts):
            raise Problem(421)

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """Reject POST requests from pages of other sites (cross-site request forgery)."""
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None:
            own = site in ("same-origin", "none")
        else:
            # A proxy may change the Host header, so allowed host names count too.
            same_host = origin is None or origin.partition("://")[2] == headers.get("host")
            own = same_host or host_of(str(origin)) in self._hosts
        if not own:
            raise Problem(403)


def host_of(address: str) -> str:
    """Return the host in an address, or an empty text."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def is_upload(scope: Scope) -> bool:
    """Whether a request uploads files and may therefore be larger."""
    return bool(scope["path"] == "/runs" and scope["method"] == "POST")


def client_of(scope: Scope) -> str:
    """Identify the client of a request by its address."""
    return client_key(str((scope.get("client") or ("unknown",))[0]))


def too_large(most: int) -> Problem:
    """Make the error for a request that is too large."""
    return Problem(413, f"the request is too large: at most {most:,} bytes are accepted")


def limited(receive: Receive, most: int, pause: float, whole: float) -> Receive:
    """Limit the bytes of a body that really arrive, and the seconds that they take.

    The body may ``pause`` for some seconds, and must be complete after ``whole`` seconds.
    """
    seen, done, until = 0, False, time.monotonic() + whole

    async def counted() -> Message:
        nonlocal seen, done
        # After the body only the end of the connection is received, which has no time limit.
        try:
            async with asyncio.timeout(None if done else min(pause, until - time.monotonic())):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408) from None
        seen, done = seen + len(message.get("body", b"")), not message.get("more_body", False)
        if seen > most:
            raise HTTPException(413, too_large(most).message)
        return message

    return counted
