"""Access control: a token in a header, or a cookie that the login page sets for the token."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie

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
        return self._is_cookie(_cookie(headers.get("cookie", "")))

    def cookie(self) -> str:
        """Make a new cookie."""
        until = str(int(self._clock()) + SECONDS)
        return f"{until}.{self._sign(until)}"

    def _is_cookie(self, given: str) -> bool:
        until, _, signed = given.partition(".")
        if not until.isascii() or not until.isdigit() or len(until) > 12:
            return False
        right = hmac.compare_digest(signed.encode("utf-8", "replace"), self._sign(until).encode())
        return right and int(until) > self._clock()

    def _sign(self, until: str) -> str:
        assert self._token is not None
        return hmac.new(self._token, f"askew cookie {until}".encode(), hashlib.sha256).hexdigest()


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value
