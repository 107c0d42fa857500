"""Interactive elements of pages: forms, links and the explorer's scripts. Like reports, they are safe by construction.

``publish.page.markup.tag`` refuses all elements that load or send something. The elements here may have addresses, but
only addresses of this service.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from askew.report.markup import Markup, Value, drawn, escape, join, shown, tag

_NAMES = frozenset([
    "a", "article", "button", "datalist", "fieldset", "form", "img", "input", "label", "legend", "li", "link", "mark",
    "meta", "option", "script", "select", "textarea",
])  # fmt: skip
_VOID = frozenset(["img", "input", "link", "meta"])
_LOCAL = re.compile(r"(/(?!/)|#|\?)[^\\\x00-\x20]*")

__all__ = ["Markup", "address", "below", "element", "escape", "is_local", "join", "shown", "tag"]


def element(name: str, /, *children: object, **attributes: Value) -> Markup:
    """Make an element. ``True`` writes an attribute without a value; ``None`` and ``False`` leave it out."""
    if name not in _NAMES:
        raise ValueError(f"the element {name!r} is not allowed in a page")
    if name == "script" and (children or "src" not in attributes):
        raise ValueError("a script must be a file: give src and no content")
    # Only addresses of this service are allowed.
    return drawn(
        name, children, attributes, name in _VOID, lambda key, text: key != "style" and bool(_LOCAL.fullmatch(text))
    )


def address(path: str, parameters: Mapping[str, object] | None = None, place: str = "") -> str:
    """Make a link within the service. Empty parameters are left out; a list gives a parameter several times."""
    given = [
        (key, str(value))
        for key, values in (parameters or {}).items()
        for value in (values if isinstance(values, list | tuple) else [values])
        if value not in ("", None)
    ]
    query = urlencode(given, errors="replace")
    return path + (f"?{query}" if query else "") + (f"#{place}" if place else "")


def below(path: str, name: str, rest: str = "") -> str:
    """Make an address that contains a quoted name."""
    return f"{path}/{quote(name, safe='')}{rest}"


def is_local(place: str) -> bool:
    """Whether an address is a path of this service that no browser reads as another site."""
    return place.startswith("/") and _LOCAL.fullmatch(place) is not None
