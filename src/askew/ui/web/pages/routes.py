"""Routes of the pages for search, comparison and login."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from starlette.responses import HTMLResponse, RedirectResponse

from askew.measures.requested import listed
from askew.ui.explorer.answers import Alternatives
from askew.ui.explorer.explorer import TOP, Explorer
from askew.ui.explorer.opening import Opening
from askew.ui.explorer.pairs import ShortText
from askew.ui.web import schemas as s
from askew.ui.web.api import Here
from askew.ui.web.guard import COOKIE, SECONDS, client_of
from askew.ui.web.markup import element, is_local, tag
from askew.ui.web.pages import compare, search
from askew.ui.web.pages import parts as p
from askew.ui.web.pages.reformulations import NOW, fragment
from askew.ui.web.pages.shell import TYPES, Page, render, static_files
from askew.ui.web.replies import Problem, too_many
from askew.ui.web.site import Site

# The login page for the token.


def login_form(place: str, wrong: bool = False) -> Page:
    """Show a box for the token. A typed token is never shown again."""
    problem = "Wrong token. Check the token and try again."
    words = [p.notice(tag("p", problem), kind="warn", role="alert")] if wrong else []
    box = element("input", type="password", id="f-token", name="token", required=True, autofocus=True,
                  autocomplete="current-password")  # fmt: skip
    kept = p.kept(next=place if is_local(place) else "/")
    form = p.form("/login", "Sign in", p.field("Token", box, "token", "wide"), *kept, method="post")
    why = "This service needs a token, because other machines can reach it. Enter the token of the service."
    return Page("Token", (tag("h1", "Token needed"), tag("p", why), *words, form))


router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
_EXAMPLES = 8
# A wrong token counts as this many requests in the rate limit.
_GUESS = 10.0


def html(page: Page, status: int = 200) -> Response:
    """Send a page."""
    return HTMLResponse(render(page), status)


async def kept_html(site: Site, key: Hashable, make: Callable[[], Page]) -> Response:
    """Send a page that is cached, because it is always the same for the same address."""
    return HTMLResponse(await site.work.bytes_of(("page", key), lambda: render(make())))


def note_of(opened: Opening) -> str:
    """Describe what is open, for the footer of a page."""
    if opened.explorer is None:
        return ""
    one = opened.explorer.setting
    built = f"Built by the recipe {opened.built_by}. " if opened.built_by else ""
    words = f"{built}Collection {one.collection}, {one.documents:,} documents, searched with {one.ranker}."
    return " ".join([words, f"Groups {listed(one.groups)}.", *opened.notes])


@router.get("/static/{name}")
async def static(name: str) -> Response:
    """Send a static file. Only known names are accepted, so no path leads outside."""
    found = static_files().get(name)
    if found is None:
        raise Problem(404)
    kind = TYPES["." + name.rpartition(".")[2]]
    return Response(found, media_type=kind, headers={"cache-control": "public, max-age=31536000, immutable"})


@router.get("/")
async def search_page(site: Here, q: ShortText = "", k: s.Results = TOP, reformulations: ShortText = "") -> Response:
    """Search. Reformulations are loaded after the results, or shown with them if the link requests it."""
    opened = site.opened
    note, explorer = note_of(opened), opened.explorer
    if explorer is None or not q.strip():
        known = [] if explorer is None else list(explorer.searched.known.texts.values())
        return html(search.empty_page(examples_of(known), opened.reason, note))
    if reformulations != NOW:
        return await kept_html(site, ("search", q, k), lambda: _searched(explorer, q, k, note))
    made = site.writing.once(("page", "search", q, k), lambda: _reformulated(site, explorer, q, k, note))
    return HTMLResponse(await made)


def _searched(explorer: Explorer, query: str, k: int, note: str) -> Page:
    answer = explorer.search(query, k)
    if not answer.results:
        known = examples_of(list(explorer.searched.known.texts.values()))
        return search.nothing_page(answer, k, explorer.why_nothing(query), known, note)
    return search.search_page(answer, None, k, note)


async def _reformulated(site: Site, explorer: Explorer, query: str, k: int, note: str) -> bytes:
    answer = await site.work.run(lambda: explorer.search(query, k))
    if not answer.results:
        return await site.work.run(lambda: render(_searched(explorer, query, k, note)))
    return await site.reformulated(query, lambda made: render(search.search_page(answer, made, k, note)))


@router.get("/reformulations")
async def reformulations_part(site: Here, q: s.QueryText, k: s.Results = TOP) -> Response:
    """Send the reformulations, which are loaded into the page of a query."""

    def show(made: Alternatives) -> bytes:
        return fragment(made, k).encode("utf-8", "replace")

    return HTMLResponse(await site.writing.once(("reformulations", q, k), lambda: site.reformulated(q, show)))


@router.get("/verdict")
async def verdict_part(site: Here, q: s.QueryText, to: s.QueryText, query_id: ShortText = "") -> Response:
    """Send the verdict on a typed reformulation, which is loaded into the page."""
    explorer = site.explorer

    def make() -> bytes:
        return compare.verdict_notice(explorer.compare(q, to, 1, query_id)).encode("utf-8", "replace")

    return HTMLResponse(await site.work.bytes_of(("verdict", q, to, query_id), make))


def examples_of(known: Sequence[str]) -> list[str]:
    """Choose example queries, evenly spaced over the collection."""
    return list(known[1 :: max(1, len(known) // _EXAMPLES)][:_EXAMPLES])


@router.get("/compare")
async def compare_page(
    site: Here, q: ShortText = "", to: ShortText = "", k: s.Results = TOP, query_id: ShortText = ""
) -> Response:
    """Compare a query and a reformulation."""
    note = note_of(site.opened)
    if not q.strip() or not to.strip():
        return html(compare.incomplete_page(q, to, k, note), 400)
    explorer, key = site.explorer, ("compare", q, to, k, query_id)
    return await kept_html(site, key, lambda: compare.compare_page(explorer.compare(q, to, k, query_id), k, note))


@router.get("/login")
async def login_page(site: Here, next_: Annotated[str, Query(alias="next", max_length=4000)] = "/") -> Response:
    """The login page for the token."""
    if not site.access.needed:
        return RedirectResponse("/", 303)
    return html(login_form(next_))


@router.post("/login")
async def log_in(
    request: Request, site: Here, token: Annotated[str, Form(max_length=4000)] = "",
    next_: Annotated[str, Form(alias="next", max_length=4000)] = "/",
) -> Response:  # fmt: skip
    """Set a cookie if the token is right."""
    if not site.access.is_token(token):
        if wait := site.rate.take(client_of(request.scope), _GUESS):
            raise too_many(wait, "too many attempts with a wrong token from your IP address")
        return html(login_form(next_, wrong=True), 401)
    reply = RedirectResponse(next_ if is_local(next_) else "/", 303)
    # The connection from the proxy has no TLS, but the connection from the browser to the proxy has.
    secure = bool(site.settings.proxies) or request.url.scheme == "https"
    reply.set_cookie(COOKIE, site.access.cookie(), max_age=SECONDS, httponly=True, samesite="strict", secure=secure)
    return reply
