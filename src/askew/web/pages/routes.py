"""Which address shows which page."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from starlette.responses import HTMLResponse, RedirectResponse

from askew.app.explore.answers import ORDERS
from askew.app.explore.explorer import MOST_RESULTS, TOP, Explorer
from askew.app.explore.opening import Opening, demo_queries
from askew.app.scoring.comparable import listed
from askew.core.errors import DataError
from askew.web import schemas as s
from askew.web.access import COOKIE, SECONDS
from askew.web.api import Here
from askew.web.guard import client_of
from askew.web.markup import is_local
from askew.web.pages import ask, compare, login
from askew.web.pages.shell import TYPES, Page, render, static_files
from askew.web.problems import CODES, MESSAGES, Problem, too_many
from askew.web.site import Site

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
_EXAMPLES = 8
# A wrong token costs as much as so many pages.
_GUESS = 10.0


def html(page: Page, status: int = 200) -> Response:
    """A page as it is sent."""
    return HTMLResponse(render(page), status)


async def kept_html(site: Site, key: Hashable, make: Callable[[], Page]) -> Response:
    """A page that is always the same for the same address."""
    return HTMLResponse(await site.work.bytes_of(("page", key), lambda: render(make())))


def note_of(opened: Opening) -> str:
    """What is open, for the foot of a page."""
    if opened.explorer is None:
        return ""
    one = opened.explorer.setting
    built = f"Built by the recipe {opened.built_by}. " if opened.built_by else ""
    words = f"{built}Collection {one.collection}, {one.documents:,} documents, searched with {one.ranker}."
    return " ".join([words, f"Groups {listed(one.groups)}.", *opened.notes])


@router.get("/static/{name}")
async def static(name: str) -> Response:
    """A file of the package; the names are known, so none leads elsewhere."""
    found = static_files().get(name)
    if found is None:
        raise Problem(404, CODES[404], MESSAGES[404])
    kind = TYPES["." + name.rpartition(".")[2]]
    return Response(found, media_type=kind, headers={"cache-control": "public, max-age=31536000, immutable"})


@router.get("/")
async def ask_page(
    site: Here, q: s.ShortText = "", k: Annotated[int, Query(ge=1, le=MOST_RESULTS)] = TOP, sort: s.ShortText = ""
) -> Response:
    """Ask."""
    if not q.strip() and site.opened_now is None and site.settings.sources.is_demo:
        # The first page does not wait: the demo's queries are known before it is open.
        return html(ask.empty_page(examples_of(demo_queries()), "", ""))
    opened = await site.opened()
    note, explorer = note_of(opened), opened.explorer
    if explorer is None or not q.strip():
        known = [] if explorer is None else list(explorer.searched.known.texts.values())
        return html(ask.empty_page(examples_of(known), opened.reason, note))
    order = sort if sort in ORDERS else ""
    return await kept_html(site, ("ask", q, k, order), lambda: _asked(explorer, q, k, order, note))


def _asked(explorer: Explorer, query: str, k: int, sort: str, note: str) -> Page:
    answer = explorer.search(query, k)
    found = explorer.reformulate(query) if answer.results else None
    return ask.ask_page(answer, found, k, sort, note)


def examples_of(known: Sequence[str]) -> list[str]:
    """Some queries of the collection, from all over it."""
    return list(known[1 :: max(1, len(known) // _EXAMPLES)][:_EXAMPLES])


@router.get("/compare")
async def compare_page(
    site: Here, q: s.ShortText = "", to: s.ShortText = "", k: Annotated[int, Query(ge=1, le=MOST_RESULTS)] = TOP,
    query_id: s.ShortText = "",
) -> Response:  # fmt: skip
    """A query and a reformulation."""
    if not q.strip() or not to.strip():
        raise DataError("a comparison needs two queries: the original and a reformulation of it")
    explorer = await site.explorer()
    note = note_of(await site.opened())
    return await kept_html(
        site,
        ("compare", q, to, k, query_id),
        lambda: compare.compare_page(explorer.compare(q, to, k, query_id), k, note),
    )


@router.get("/login")
async def login_page(site: Here, next_: Annotated[str, Query(alias="next", max_length=4000)] = "/") -> Response:
    """Where the token is given."""
    if not site.access.needed:
        return RedirectResponse("/", 303)
    return html(login.login_page(next_))


@router.post("/login")
async def log_in(
    request: Request,
    site: Here,
    token: Annotated[str, Form(max_length=4000)] = "",
    next_: Annotated[str, Form(alias="next", max_length=4000)] = "/",
) -> Response:
    """Give a cookie for the token."""
    if not site.access.is_token(token):
        wait = site.rate.take(client_of(request.scope), _GUESS)
        if wait:
            raise too_many(wait, "too many wrong tokens from here")
        return html(login.login_page(next_, wrong=True), 401)
    reply = RedirectResponse(next_ if is_local(next_) else "/", 303)
    secure = request.url.scheme == "https"
    reply.set_cookie(COOKIE, site.access.cookie(), max_age=SECONDS, httponly=True, samesite="strict", secure=secure)
    return reply
