"""The web application, made from settings by one function."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from askew.core.errors import AskewError
from askew.core.version import __version__
from askew.ui.web import api
from askew.ui.web.guard import Guard
from askew.ui.web.pages import routes, store_routes
from askew.ui.web.replies import Problem, problem_of, show_problem, too_many
from askew.ui.web.settings import Settings
from askew.ui.web.site import Site, warm
from askew.ui.web.work import Busy

_ABOUT = (
    "Search a collection and measure the bias (lean) of the results toward the groups that `setting.groups` names. "
    "Find reformulations of a query that lean less and are as effective as the original query. An error "
    "response has the form `{error: {code, message}}`. Counts of lexicon words are not bias by themselves."
)


def create_app(settings: Settings | None = None) -> FastAPI:
    """Make a service. Its sources are opened when it starts, unless they are open."""
    chosen = settings or Settings()
    site = Site(chosen)

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().run_in_executor(None, warm, site.opened.explorer)
        yield
        site.close()

    # FastAPI's own documentation pages load scripts from other sites, so there are none.
    app = FastAPI(
        title="askew", version=__version__, description=_ABOUT, lifespan=living, docs_url=None, redoc_url=None,
        openapi_url="/openapi.json",
    )  # fmt: skip
    app.state.site = site
    # The guard checks the token; this says in the OpenAPI document that one is needed.
    token = [] if chosen.token is None else [Depends(HTTPBearer(scheme_name="token", auto_error=False))]
    app.include_router(api.router, dependencies=token)
    app.include_router(routes.router)
    app.include_router(store_routes.router)
    kinds = {
        Problem: lambda error: error,
        AskewError: problem_of,
        Busy: lambda error: too_many(error.seconds),
        RequestValidationError: _invalid,
        # The details of other errors may name internals; those of too large requests state the limit.
        HTTPException: lambda error: Problem(
            error.status_code, error.detail if error.status_code == 413 else "", headers=error.headers
        ),
    }
    for kind, problem in kinds.items():

        async def handle(request: Request, error: Any, problem: Callable[[Any], Problem] = problem) -> Response:
            return show_problem(request.scope, problem(error))

        app.add_exception_handler(kind, handle)
    app.add_middleware(cast(Any, Guard), settings=chosen, access=site.access, rate=site.rate)
    return app


def _invalid(error: RequestValidationError) -> Problem:
    """Describe the first error, without the data that was sent."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first.get("loc", ()) if part not in ("query", "body"))
    return Problem(422, f"{place or 'the request'}: {first.get('msg', 'not as expected')}")
