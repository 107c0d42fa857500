"""From what was found to what is sent: JSON, pages, refusals."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from askew.web.pages.shell import problem_page, render
from askew.web.problems import Problem

JSON = "application/json"


def as_json(kind: Any, value: object) -> bytes:
    """A value of a dataclass as the bytes of JSON."""
    return _adapter(kind).dump_json(value)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def json_reply(data: bytes) -> Response:
    """Bytes that are JSON already."""
    return Response(data, media_type=JSON)


def wants_json(scope: Scope) -> bool:
    """Whether a program asks."""
    path = str(scope["path"])
    return path.startswith("/api/") or path == "/openapi.json"


def show_problem(scope: Scope, problem: Problem) -> Response:
    """A refusal in the form that the asker can read."""
    if wants_json(scope):
        body = json.dumps({"error": {"code": problem.code, "message": problem.message}})
        return Response(body, problem.status, problem.headers, JSON)
    return HTMLResponse(render(problem_page(problem.status, problem.message)), problem.status, problem.headers)
