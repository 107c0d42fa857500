"""Make responses: JSON, pages and errors."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qs

from pydantic import TypeAdapter
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from askew.core.errors import AskewError, ConfigError, DataError, MissingExtra, StoreError
from askew.ui.explorer.explorer import TOP
from askew.ui.web.pages.search import refused_page
from askew.ui.web.pages.shell import problem_page, render

# Errors of the service, for JSON and for pages. They reveal no internal details.


@dataclass(frozen=True)
class ErrorFacts:
    """``code`` is one word for programs, ``message`` one line for people."""

    code: str
    message: str


@dataclass(frozen=True)
class ErrorBody:
    """The body of every error of the REST service."""

    error: ErrorFacts


# The code of each error status for programs, and its message for people unless an error has its own.
ERRORS = {
    400: ("bad_request", "the request cannot be carried out; the message says what to do"),
    401: ("unauthorized", "a token is needed; send the header 'Authorization: Bearer TOKEN'"),
    403: ("forbidden", "only pages of this service may send POST requests to it"),
    404: ("not_found", "there is nothing at this address"),
    405: ("method_not_allowed", "this address does not support this method"),
    408: ("too_slow", "the request was not complete in time"),
    413: ("too_large", "the request is too large"),
    415: ("wrong_type", "the type of the body is not supported"),
    421: ("wrong_host", "this service does not answer requests for this host name; --allowed-host adds one"),
    422: ("invalid", "a parameter or the body is not valid"),
    429: ("too_many_requests", "too many requests; the header Retry-After says when to try again"),
    500: ("internal", "internal error (please report it); the log of the service says where the error occurred"),
    503: ("unavailable", "the service lacks resources, such as file descriptors; try again in a moment"),
}


class Problem(Exception):
    """An error that is sent as the response. The code and the message are by default those of the status."""

    def __init__(
        self, status: int, message: str = "", code: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        usual_code, usual_message = ERRORS.get(status, ("error", "the request failed"))
        self.status, self.code, self.message = status, code or usual_code, message or usual_message
        self.headers = dict(headers or {})
        # All arguments, so that pickle can make the error again.
        super().__init__(status, self.message, self.code, self.headers)

    def __str__(self) -> str:
        return self.message


def problem_of(error: AskewError) -> Problem:
    """Convert an error of askew: a user error (400), or a damaged store or missing extra (503)."""
    if isinstance(error, StoreError | MissingExtra):
        return Problem(503, str(error), "store" if isinstance(error, StoreError) else "missing_extra")
    code = "config" if isinstance(error, ConfigError) else "data" if isinstance(error, DataError) else "stage"
    return Problem(400, str(error), code)


def too_many(seconds: int, why: str = "too many requests at once") -> Problem:
    """Make the error for too many requests; ``seconds`` says when to try again."""
    return Problem(429, f"{why}; try again in {seconds} s", headers={"retry-after": str(seconds)})


def place_of(error: BaseException) -> str:
    """Return the file and line where an error was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return f"{last[0].filename}:{last[0].lineno}" if last else "an unknown place"


JSON = "application/json"
_MOST_SHOWN = 500


def as_json(kind: Any, value: object) -> bytes:
    """Serialize a dataclass value as JSON."""
    return _adapter(kind).dump_json(value)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def json_reply(data: bytes) -> Response:
    """Send bytes that are JSON."""
    return Response(data, media_type=JSON)


def wants_json(scope: Scope) -> bool:
    """Whether the client expects JSON instead of a page."""
    path = str(scope["path"])
    return path.startswith("/api/") or path == "/openapi.json"


def show_problem(scope: Scope, problem: Problem) -> Response:
    """Send an error as JSON or as a page, whichever the client expects."""
    if wants_json(scope):
        body = json.dumps({"error": {"code": problem.code, "message": problem.message}})
        return Response(body, problem.status, problem.headers, JSON)
    page = problem_page(problem.status, problem.message)
    if str(scope["path"]) == "/" and problem.status not in (401, 421):
        # On the search page, the query is still in its box.
        given = parse_qs(bytes(scope.get("query_string", b"")).decode("latin-1"), errors="replace").get("q", [""])
        page = refused_page(given[0][:_MOST_SHOWN], TOP, problem.message)
    return HTMLResponse(render(page), problem.status, problem.headers)
