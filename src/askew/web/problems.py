"""Errors of the service, for JSON and for pages. They reveal no internal details."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from askew.core.errors import AskewError, ConfigError, DataError, MissingExtra, StoreError


@dataclass(frozen=True)
class ErrorFacts:
    """``code`` is one word for programs, ``message`` one line for people."""

    code: str
    message: str


@dataclass(frozen=True)
class ErrorBody:
    """The body of every error of the REST service."""

    error: ErrorFacts


class Problem(Exception):
    """An error that is sent as the response."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, dict(headers or {})


CODES = {
    400: "bad_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    408: "too_slow", 413: "too_large", 415: "wrong_type", 421: "wrong_host", 422: "invalid", 429: "too_many_requests",
    500: "internal", 503: "unavailable",
}  # fmt: skip
MESSAGES = {
    404: "there is nothing at this address",
    405: "this address does not support this method",
    408: "the request was not complete in time",
    503: "the service has no free file descriptors; try again in a moment",
    500: "internal error (please report it); the log of the service says where the error occurred",
}


def problem_of(error: AskewError) -> Problem:
    """Convert an error of askew: a user error (400), or a damaged store or missing extra (503)."""
    if isinstance(error, StoreError):
        return Problem(503, "store", str(error))
    if isinstance(error, MissingExtra):
        return Problem(503, "missing_extra", str(error))
    code = "config" if isinstance(error, ConfigError) else "data" if isinstance(error, DataError) else "stage"
    return Problem(400, code, str(error))


def too_many(seconds: int, why: str) -> Problem:
    """Make the error for too many requests; ``seconds`` says when to try again."""
    return Problem(429, CODES[429], f"{why}; try again in {seconds} s", {"retry-after": str(seconds)})
