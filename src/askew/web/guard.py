"""Middleware that checks every request first: host, origin, rate, size and token. It also adds security headers.

It wraps the whole application, so that rejecting a request is cheap and error responses have the same headers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import traceback
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from askew.web.access import Access
from askew.web.connections import SCARCE, client_key
from askew.web.lane import LaneFailed
from askew.web.limits import Rate, Room
from askew.web.problems import CODES, MESSAGES, Problem, too_many
from askew.web.replies import wants_json
from askew.web.settings import Settings, is_loopback

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
_log = logging.getLogger("askew.web")
Show = Callable[[Scope, Problem], Response]


class Guard:
    """The middleware. ``show`` turns a rejection into a page or JSON."""

    def __init__(self, app: ASGIApp, settings: Settings, access: Access, rate: Rate, show: Show) -> None:
        self.app, self._settings, self._access, self._rate, self._show = app, settings, access, rate, show
        self._hosts = tuple(name.strip("[]").lower() for name in settings.allowed_hosts)
        self._open, self._uploading = Room(settings.limits.open), Room(settings.limits.uploading)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application, or reject it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        telling = _Telling(scope, send)
        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, telling)
            return
        rooms = [self._open, self._uploading] if is_upload(scope) else [self._open]
        if not all(room.free for room in rooms):
            await self._show(scope, too_many(1, "too many requests at once"))(scope, receive, telling)
            return
        with contextlib.ExitStack() as stack:
            for room in rooms:
                stack.enter_context(room)
            await self._answer(scope, receive, telling)

    async def _answer(self, scope: Scope, receive: Receive, telling: _Telling) -> None:
        limits = self._settings.limits
        most = limits.upload_bytes if is_upload(scope) else limits.body_bytes
        try:
            await self.app(scope, limited(receive, most, limits.body_seconds, limits.whole_seconds), telling)
        except Exception as error:
            problem = self._failure(error)
            # A response that has begun stays incomplete, and the server closes the connection.
            if not telling.begun:
                await self._show(scope, problem)(scope, receive, telling)

    def _failure(self, error: Exception) -> Problem:
        """Log the kind and place of an error. Its message may contain a query, so it is not logged."""
        if isinstance(error, OSError) and error.errno in SCARCE:
            _log.error("no file descriptors are left; raise the limit (ulimit -n) before you start askew serve")
            return Problem(503, CODES[503], MESSAGES[503], {"retry-after": "1"})
        what = str(error) if isinstance(error, LaneFailed) else f"{type(error).__name__} at {place_of(error)}"
        _log.error("internal error: %s", what)
        return Problem(500, CODES[500], MESSAGES[500])

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        try:
            self._check_host(headers)
            self._check_origin(scope, headers)
            self._check_rate(scope)
            self._check_size(scope, headers)
        except Problem as problem:
            return self._show(scope, problem)
        if self._access.allows(scope["path"], headers):
            return None
        return self._ask_for_token(scope)

    def _check_host(self, headers: Headers) -> None:
        """Accept only known host names, to prevent DNS rebinding."""
        name, given = host_of(f"//{headers.get('host', '')}"), self._settings
        known = is_loopback(name) or name in (*self._hosts, given.host.strip("[]").lower())
        if not known and (given.loopback or given.allowed_hosts):
            raise Problem(
                421,
                CODES[421],
                "this service does not answer requests for this host name; --allowed-host adds a host name",
            )

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """Reject POST requests from pages of other sites (cross-site request forgery)."""
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None and site not in ("same-origin", "none"):
            raise Problem(403, CODES[403], "only pages of this service may send POST requests to it")
        if site is None and origin is not None and not self._is_own(origin, headers):
            raise Problem(403, CODES[403], "only pages of this service may send POST requests to it")

    def _is_own(self, origin: str, headers: Headers) -> bool:
        """Whether an origin is this service. A proxy may change the Host header, so allowed host names count too."""
        return origin.partition("://")[2] == headers.get("host") or host_of(origin) in self._hosts

    def _check_rate(self, scope: Scope) -> None:
        wait = self._rate.take(client_of(scope))
        if wait:
            raise too_many(wait, "too many requests from your address")

    def _check_size(self, scope: Scope, headers: Headers) -> None:
        given, limits = headers.get("content-length", ""), self._settings.limits
        most = limits.upload_bytes if is_upload(scope) else limits.body_bytes
        if given.isdigit() and (len(given) > 15 or int(given) > most):
            raise too_large(most)

    def _ask_for_token(self, scope: Scope) -> Response:
        if wants_json(scope) or scope["method"] != "GET":
            problem = Problem(401, CODES[401], "a token is needed; send the header 'Authorization: Bearer TOKEN'",
                              {"www-authenticate": "Bearer"})  # fmt: skip
            return self._show(scope, problem)
        query = scope["query_string"].decode("latin-1")
        wanted = scope["path"] + (f"?{query}" if query else "")
        return RedirectResponse("/login?" + urlencode({"next": wanted}), 303)


class _Telling:
    """Adds headers to a response and logs a line, which never contains text of a query, a header or a body."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send, self._start = scope, send, time.perf_counter()
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("cache-control", "no-store")
            took = 1000 * (time.perf_counter() - self._start)
            _log.info("%s %s %d %.0f ms", self._scope["method"], route_of(self._scope), message["status"], took)
        await self._send(message)


def host_of(address: str) -> str:
    """Return the host in an address, or an empty text."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def is_upload(scope: Scope) -> bool:
    """Whether a request uploads files and may therefore be larger."""
    return bool(scope["path"] in ("/runs", "/audit") and scope["method"] == "POST")


def client_of(scope: Scope) -> str:
    """Identify the client of a request by its address."""
    return client_key(str((scope.get("client") or ("unknown",))[0]))


def place_of(error: BaseException) -> str:
    """Return the file and line where an error was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return f"{last[0].filename}:{last[0].lineno}" if last else "an unknown place"


def route_of(scope: Scope) -> str:
    """Return the pattern of the route for the log. The path itself may contain anything and is not logged."""
    route: Any = scope.get("route")
    return str(getattr(route, "path", "-"))


def too_large(most: int) -> Problem:
    """Make the error for a request that is too large."""
    return Problem(413, CODES[413], f"the request is too large: at most {most:,} bytes are accepted")


def limited(receive: Receive, most: int, pause: float, whole: float) -> Receive:
    """Limit the bytes of a body that really arrive, and the seconds that they take.

    The body may ``pause`` for some seconds, and must be complete after ``whole`` seconds.
    """
    seen, done, until = 0, False, time.monotonic() + whole

    async def counted() -> Message:
        nonlocal seen, done
        # After the body only the end of the connection is received, which has no time limit.
        message = await receive() if done else await _soon(receive, min(pause, until - time.monotonic()))
        seen, done = seen + len(message.get("body", b"")), not message.get("more_body", False)
        if seen > most:
            raise HTTPException(413, too_large(most).message)
        return message

    return counted


async def _soon(receive: Receive, seconds: float) -> Message:
    try:
        async with asyncio.timeout(seconds):
            return await receive()
    except TimeoutError:
        raise HTTPException(408, MESSAGES[408]) from None
