"""The frame of every page: head, navigation and footer. Styles and scripts are files of this package."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from askew.pairs.dataset.card import NOT_BIAS
from askew.report.page import CSS
from askew.ui.web.markup import element, shown, tag
from askew.ui.web.pages.parts import notice

STATIC = Path(__file__).parent.parent / "static"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_PAGES = {
    "/": "Search", "/pairs": "Dataset", "/runs": "Runs", "/audit": "Audit", "/logs": "Logs", "/plan": "Plan",
}  # fmt: skip
_STYLES, _SCRIPTS = ("style.css", "search.css"), ("app.js", "search.js")


@dataclass(frozen=True)
class Page:
    """A page: its title, its content, and which part of the service it belongs to."""

    title: str
    body: tuple[object, ...]
    part: str = ""
    note: str = ""


def empty_page(
    title: str, part: str, reason: str, note: str,
    how: tuple[str, str, str] = ("To build a dataset, run ", "askew run demo --store STORE", "askew serve STORE"),
) -> Page:  # fmt: skip
    """Show a page without content: the reason, and the two commands that create the content."""
    words, make, serve = how
    said = tag("p", words, tag("code", make), ", then ", tag("code", serve), ".")
    return Page(title, (tag("h1", title), notice(tag("p", reason), said, role="status")), part, note)


@cache
def static_files() -> dict[str, bytes]:
    """Return the static files by name. The style sheet includes the style of reports."""
    found = {path.name: path.read_bytes() for path in sorted(STATIC.iterdir()) if path.suffix in TYPES}
    found["style.css"] = CSS.encode() + b"\n" + found["style.css"]
    return found


@cache
def version() -> str:
    """Return a hash of the static files, so that a browser can cache them until they change."""
    return hashlib.sha256(b"\0".join(static_files().values())).hexdigest()[:12]


def render(page: Page) -> bytes:
    """Render the complete page."""
    title = f"{shown(page.title)} · askew" if page.title else "askew"
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        *(element("link", rel="stylesheet", href=f"/static/{name}?v={version()}") for name in _STYLES),
        element("link", rel="icon", type="image/svg+xml", href=f"/static/icon.svg?v={version()}"),
        *(element("script", type="module", src=f"/static/{name}?v={version()}") for name in _SCRIPTS),
    ]
    links = [
        tag("li", element("a", name, href=path, aria_current="page" if path == page.part else None))
        for path, name in _PAGES.items()
    ]
    brand = element("a", "askew", href="/", class_="brand")
    rest = tag("p", element("a", "REST interface (OpenAPI)", href="/openapi.json"))
    body = [
        element("a", "Skip to content", href="#main", class_="skip"),
        tag("header", brand, tag("nav", tag("ul", *links), aria_label="Pages"), class_="top"),
        tag("main", *page.body, id="main", tabindex="-1"),
        tag("footer", *([tag("p", page.note)] if page.note else []), tag("p", NOT_BIAS), rest),
    ]
    html = tag("html", tag("head", *head), "\n", tag("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{html}\n".encode("utf-8", "replace")


def problem_page(status: int, message: str) -> Page:
    """Show an error, with a link to the search page."""
    title = {401: "Token needed", 404: "Page not found", 413: "Too large", 429: "Too many requests"}.get(
        status, "Request failed" if status < 500 else "Internal error"
    )
    again = element("a", "Search", href="/")
    return Page(title, (tag("h1", title), tag("p", message, class_="lead", role="alert"), tag("p", again)))
