"""Make responses: JSON, pages and errors."""

from __future__ import annotations

import json
from functools import cache
from typing import Any
from urllib.parse import parse_qs

from pydantic import TypeAdapter
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from askew.app.explore.explorer import TOP
from askew.web.pages.search import refused_page
from askew.web.pages.shell import Page, problem_page, render
from askew.web.problems import Problem

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
    page = _with_query(scope, problem) or problem_page(problem.status, problem.message)
    return HTMLResponse(render(page), problem.status, problem.headers)


def _with_query(scope: Scope, problem: Problem) -> Page | None:
    """Show an error on the search page with the query still in its box."""
    if str(scope["path"]) != "/" or problem.status in (401, 421):
        return None
    given = parse_qs(bytes(scope.get("query_string", b"")).decode("latin-1"), errors="replace").get("q", [""])
    return refused_page(given[0][:_MOST_SHOWN], TOP, problem.message)
