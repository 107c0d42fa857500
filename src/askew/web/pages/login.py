"""The login page for the token."""

from __future__ import annotations

from askew.web.markup import element, is_local, tag
from askew.web.pages import parts as p
from askew.web.pages.shell import Page


def login_page(place: str, wrong: bool = False) -> Page:
    """Show a box for the token. A typed token is never shown again."""
    words = (
        [p.notice(tag("p", "Wrong token. Check the token and try again."), kind="warn", role="alert")] if wrong else []
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
    why = tag(
        "p",
        "This service needs a token, because other machines can reach it. Enter the token of the service.",
    )
    return Page("Token", (tag("h1", "Token needed"), why, *words, form))
