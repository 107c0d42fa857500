"""Escape texts of unknown origin: in Markdown a query is shown as words, never as a link, a tag or a table cell."""

from __future__ import annotations

import json
import re
import unicodedata

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
    inner = {found.start() for found in _INNER_DOT.finditer(line)} | _first_mark(line)
    return "".join(char if i not in inner and _plain(char) else f"&#{ord(char)};" for i, char in enumerate(line))


def _first_mark(line: str) -> set[int]:
    """The positions of the characters that would make the line a list item or a heading."""
    found = _LIST.match(line)
    return set() if found is None else {0, found.end()} if line[0].isdigit() else {0}


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
