"""Where the token is given."""

from __future__ import annotations

from askew.web.markup import element, is_local, tag
from askew.web.pages import parts as p
from askew.web.pages.shell import Page


def login_page(place: str, wrong: bool = False) -> Page:
    """A box for the token; what was typed is never shown again."""
    words = [p.notice(tag("p", "This is not the token."), kind="warn", role="alert")] if wrong else []
    box = element(
        "input",
        type="password",
        id="f-token",
        name="token",
        required=True,
        autofocus=True,
        autocomplete="current-password",
    )
    form = element(
        "form",
        p.field("Token", box, "token", "wide"),
        *p.kept(next=place if is_local(place) else "/"),
        element("button", "Open", type="submit"),
        action="/login",
        method="post",
        class_="ask",
    )
    why = tag("p", "This service can be reached by others, so it asks for its token.")
    return Page("Token", (tag("h1", "A token is needed"), why, *words, form))
