"""Markup that is safe by construction: everything that is not made by ``tag`` is text, and text is escaped.

The same functions write HTML and SVG. Their output is also well-formed XML, so that it can be checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Control characters, direction marks, invisible characters, surrogates, and code points that are no characters.
_UNSHOWN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)
_BLANKS = re.compile("(?:(?!\u00a0)\\s)+")
_SPECIAL = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;", ord("'"): "&#39;"}
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9]*")
_ATTRIBUTE = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
# Written as <name/>: these HTML elements have no end tag, or they are shapes of SVG.
_EMPTY = frozenset(["br", "hr", "meta", "wbr", "circle", "ellipse", "line", "path", "polygon", "polyline", "rect"])
_REFUSED = frozenset(["script", "iframe", "object", "embed", "link", "base", "foreignObject", "form", "input"])
_ADDRESSES = frozenset(["href", "src", "action", "formaction", "style"])

Value = str | int | float | bool | None


class Markup(str):
    """A text that is markup already. It is only made in this module and from constants."""

    __slots__ = ()


def shown(text: object) -> str:
    """The text on one line; control characters and invisible characters are replaced by a visible mark."""
    return _BLANKS.sub(" ", _UNSHOWN.sub("\ufffd", str(text))).strip()


def escape(text: object) -> str:
    """Escape a text for use between tags and in attributes. Line breaks stay."""
    return _UNSHOWN.sub("\ufffd", str(text)).translate(_SPECIAL)


def number(value: float) -> str:
    """A coordinate with at most two decimals, without trailing zeros."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def tag(name: str, /, *children: object, **attributes: Value) -> Markup:
    """An element. Children that are not ``Markup`` are escaped; ``aria_label`` is aria-label, ``class_`` is class."""
    if not _NAME.fullmatch(name) or name in _REFUSED:
        raise ValueError(f"a page of askew must not have an HTML element {name!r}")
    head = name + "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if name in _EMPTY and not children:
        return Markup(f"<{head}/>")
    return Markup(f"<{head}>{join(children)}</{name}>")


def _attribute(key: str, value: Value) -> str:
    name = key.rstrip("_").replace("_", "-")
    text = number(value) if isinstance(value, float) else str(value)
    if not _ATTRIBUTE.fullmatch(name) or name.lower().startswith("on"):
        raise ValueError(f"a page of askew must not have an HTML attribute {name!r}")
    if name in _ADDRESSES and not (name == "href" and text.startswith("#")):
        raise ValueError(f"a page of askew must not load other files, found {name}={text!r}")
    return f' {name}="{escape(text)}"'


def join(parts: Iterable[object], between: str = "") -> Markup:
    """Concatenate children; those that are text are escaped. ``between`` is not escaped and must be a constant."""
    return Markup(between.join(part if isinstance(part, Markup) else escape(part) for part in parts))


def quoted(text: object, longest: int = 300) -> Markup:
    """A text of unknown origin, isolated so that its writing direction does not change the text around it."""
    line = shown(text)
    cut = line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
    return tag("bdi", cut, dir="auto")
