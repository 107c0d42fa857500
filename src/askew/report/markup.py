"""Markup that is safe by construction: everything that is not made by ``tag`` is text, and text is escaped.

The same functions write HTML and SVG. Their output is also well-formed XML, so that it can be checked.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from askew.core.defaults import FEWEST

# Escape texts of unknown origin: in Markdown a query is shown as words, never as a link, a tag or a table cell.

# These characters are not escaped: they have no meaning in Markdown or HTML unless they begin a line. A link needs
# another character, except for bare names such as www.example.com, so a dot within a word is escaped as well.
_HARMLESS = frozenset(" ,;?'\"-()/%+=")
_INNER_DOT = re.compile(r"\.(?=\S)")
_LIST = re.compile(r"[-+=]|\d+(?=[.)])")
_JOINERS = frozenset("\u200c\u200d")
_PLAIN_CODE = re.compile(r"[A-Za-z0-9 .,:;@/+()\[\]='\"_*%#~-]*[A-Za-z0-9)\]'\"]")
_LONG = 300


def one_line(text: str) -> str:
    """The text on one line: without control characters and direction marks, with runs of blanks as one blank."""
    return " ".join("".join(char if _shown(char) else " " for char in text).split())


def markdown(text: object, longest: int = _LONG) -> str:
    """Escape a text for a line or a table cell of Markdown, so that every character is shown literally."""
    line = one_line(str(text))
    line = line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
    inner = {match.start() for match in _INNER_DOT.finditer(line)}
    if begins_list := _LIST.match(line):
        # These characters would make the line a list item or a heading.
        inner |= {0, begins_list.end()} if line[0].isdigit() else {0}
    return "".join(char if i not in inner and _plain(char) else f"&#{ord(char)};" for i, char in enumerate(line))


def code(text: object) -> str:
    """A name as inline code if it has plain characters only, else as escaped text; fits in a table cell."""
    shown = str(text)
    return f"`{shown}`" if len(shown) <= _LONG and _PLAIN_CODE.fullmatch(shown) else markdown(shown)


def fenced(text: str, language: str = "") -> list[str]:
    """The lines of a code block; its fence is longer than any run of backticks in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    lines = ["".join(char if char == "\t" or _shown(char) else " " for char in line) for line in text.splitlines()]
    return [f"{fence}{language}", *lines, fence]


def yaml_text(text: str) -> str:
    """A YAML value in double quotes; characters that are not printable are escaped."""
    quoted = json.dumps(one_line(text), ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted)


def _shown(char: str) -> bool:
    return char in _JOINERS or unicodedata.category(char)[0] not in "CZ" or char == " "


def _plain(char: str) -> bool:
    return char.isalnum() or char in _HARMLESS or char == "." or not char.isascii()


# Format numbers for readers: a dash for a missing number, a typographic minus sign for a negative one.

NONE = "–"
MINUS = "\N{MINUS SIGN}"


def count(value: float | None) -> str:
    """A whole number, in groups of three."""
    return NONE if _absent(value) else f"{value:,.0f}".replace("-", MINUS)


def mean(value: float | None, digits: int = 4) -> str:
    """A mean of scores."""
    return NONE if value is None or _absent(value) else _signless(f"{value:,.{digits}f}")


def change(value: float | None) -> str:
    """A change in percent, always with its sign."""
    return NONE if value is None or _absent(value) else _signless(f"{value:+,.1f}", "+0.0") + "%"


def change_interval(low: float | None, high: float | None) -> str:
    """The ends of an interval of a change in percent."""
    return NONE if low is None or high is None else f"[{change(low)[:-1]}, {change(high)[:-1]}]"


def interval_of(row: Mapping[str, Any], n: str = "queries") -> str:
    """The interval of the change in a row of a table; a dash if there are too few queries."""
    return NONE if row[n] < FEWEST else change_interval(row["low"], row["high"])


def share(value: float | None, digits: int = 1) -> str:
    """A share as a percentage."""
    return NONE if value is None or _absent(value) else f"{100 * value:.{digits}f}%"


def share_interval(low: float | None, high: float | None) -> str:
    """The ends of an interval of a share, in percent."""
    return NONE if low is None or high is None else f"[{100 * low:.1f}, {100 * high:.1f}]"


def p_value(value: float | None) -> str:
    """A p-value."""
    if value is None or _absent(value):
        return NONE
    return "<0.001" if value < 0.001 else f"{value:.3f}"


_PARTS = {
    "offtopic": "off topic",
    "asked": "asked for",
    "warranted": "on topic",
    "real": "a real person",
    "fictional": "a fictional character",
    "generic": "people in general",
    "name": "part of a name",
    "other": "no person",
}


def part_name(name: str) -> str:
    """The name of a part of a measure of lean on pages."""
    return _PARTS.get(name, name)


def _absent(value: float | None) -> bool:
    return value is None or not math.isfinite(value)


def _signless(text: str, zero: str = "") -> str:
    """The text of a number; zero has no minus sign."""
    if float(text.replace(",", "")) == 0:
        return zero or text.lstrip("-")
    return text.replace("-", MINUS)


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
    is_empty = name in _EMPTY and not children
    # A page loads no other files.
    return drawn(name, children, attributes, is_empty, lambda key, text: key == "href" and text.startswith("#"))


def drawn(
    name: str, children: Sequence[object], attributes: Mapping[str, Value], is_empty: bool,
    allows: Callable[[str, str], bool],
) -> Markup:  # fmt: skip
    """An element whose name is allowed; ``allows`` says whether an attribute may have an address.

    ``True`` writes an attribute without a value; ``None`` and ``False`` leave it out.
    """
    head = name
    for given, value in attributes.items():
        key = given.rstrip("_").replace("_", "-")
        text = number(value) if isinstance(value, float) else str(value)
        if not _ATTRIBUTE.fullmatch(key) or key.lower().startswith("on"):
            raise ValueError(f"a page of askew must not have an HTML attribute {key!r}")
        if value is None or value is False:
            continue
        if key in _ADDRESSES and not allows(key, text):
            raise ValueError(f"a page of askew must not have the HTML attribute {key}={text!r}")
        head += f" {key}" if value is True else f' {key}="{escape(text)}"'
    return Markup(f"<{head}/>") if is_empty else Markup(f"<{head}>{join(children)}</{name}>")


def join(parts: Iterable[object], between: str = "") -> Markup:
    """Concatenate children; those that are text are escaped. ``between`` is not escaped and must be a constant."""
    return Markup(between.join(part if isinstance(part, Markup) else escape(part) for part in parts))


def quoted(text: object, longest: int = 300) -> Markup:
    """A text of unknown origin, isolated so that its writing direction does not change the text around it."""
    line = shown(text)
    cut = line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
    return tag("bdi", cut, dir="auto")
