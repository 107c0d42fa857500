"""Where the token is given."""

from __future__ import annotations

from askew.web.markup import element, is_local, tag
from askew.web.pages import parts as p
from askew.web.pages.shell import Page


def login_page(place: str, wrong: bool = False) -> Page:
    """A box for the token; what was typed is never shown again."""
    words = (
        [p.notice(tag("p", "This is not the token. Check it and try again."), kind="warn", role="alert")]
        if wrong
        else []
    )
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
        element("button", "Sign in", type="submit"),
        action="/login",
        method="post",
        class_="ask",
    )
    why = tag("p", "Other machines can reach this service, so it needs a token: the one that it was started with.")
    return Page("Token", (tag("h1", "Token needed"), why, *words, form))
