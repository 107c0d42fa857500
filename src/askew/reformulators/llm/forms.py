"""Split an answer into items: JSON, fenced code, numbered or bulleted lists, plain lines. Nothing is executed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

# Some endpoints send the closing tag of the thinking without the opening tag.
_THINKING = re.compile(r"\A.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_OPEN_THINKING = re.compile(r"\A\s*<(?:think|thinking|reasoning)>", re.IGNORECASE)
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_MARKER = re.compile(r"\s*(?:[-*+•·‣–—]|\(?\d{1,3}[.):])\s+")
_LABEL = re.compile(
    r"(?:(?:re-?(?:written|formulated|phrased) |search |neutral )?(?:query|queries|question|reformulation|variant|"
    r"keywords?|passage|answer))\s*\d{0,3}\s*:\s+(?=\S)",
    re.IGNORECASE,
)
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "‘": "’", "«": "»", "`": "`"}
_LIST_NAMES = ("queries", "keywords", "questions", "reformulations", "variants")
_TEXT_NAMES = ("query", "text", "passage", "keyword", "question", "answer")
# Bidirectional overrides and invisible marks, which make a text look different. Joiners are part of words and stay.
_UNSEEN = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF, 0x200B, 0x200E, 0x200F, 0xAD])
_UNSEEN |= dict.fromkeys(range(0xE0000, 0xE0080))
_CONTROLS = dict.fromkeys([*range(0x09), *range(0x0E, 0x1C), *range(0x7F, 0x85), *range(0x86, 0xA0)]) | _UNSEEN
_LINE_ENDS = str.maketrans(dict.fromkeys("\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", "\n") | {"\x1f": " ", "\t": " "})
_JSON_START = re.compile(r"\{|^[ \t]*\[", re.MULTILINE)
_DECODER = json.JSONDecoder()
_TRIES = 5


def plain(text: str) -> str:
    """The text without control characters; every kind of line end becomes one line feed."""
    return text.translate(_CONTROLS).replace("\r\n", "\n").translate(_LINE_ENDS)


def one_line(text: str) -> str:
    """The text in one line with single blanks."""
    return " ".join(plain(text).split())


def without_thinking(text: str) -> str | None:
    """Return the answer after the thinking that some models show; None if the thinking does not end."""
    rest = _THINKING.sub("", text, count=1)
    return None if _OPEN_THINKING.match(rest) else rest


def read_list(text: str, cut: bool) -> tuple[list[str], Counter[str]]:
    """Return the items of an answer, and the rejected parts counted by reason. ``cut``: the answer is incomplete."""
    fence = _FENCE.search(text)
    body = fence[1] if fence is not None and fence[1].strip() else text
    values, start = _json_items(body)
    if values is not None:
        before = text[: fence.start()] if fence is not None and body is not text else body[:start]
        items = [item for value in values if (item := _text_of(value)) is not None]
        reasons = {"preamble line": int(bool(before.strip())), "not a text": len(values) - len(items)}
        return _unmarked(items), Counter({reason: count for reason, count in reasons.items() if count})
    if body.lstrip().startswith(("{", "[")) or '"queries"' in body:
        return list(_whole_strings(body)), Counter(["cut off" if cut else "broken JSON"])
    return _lines(body, cut)


def _json_items(text: str) -> tuple[list[object] | None, int]:
    """Return the list in the first JSON value that contains one, and the position of that value."""
    for start in (found.end() - 1 for found in islice(_JSON_START.finditer(text), _TRIES)):
        try:
            value, _ = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        items = _listed(value)
        if items is not None and (not items or any(_text_of(item) is not None for item in items)):
            return items, start
    return None, 0


def _listed(value: object) -> list[object] | None:
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return None
    named = [value[name] for name in _LIST_NAMES if name in value]
    lists = [part for part in named or value.values() if isinstance(part, list)]
    if len(lists) == 1 or (named and lists):
        return lists[0]
    single = [part for name, part in value.items() if name.isdigit() or name in (*_LIST_NAMES, *_TEXT_NAMES)]
    return single or None


def _text_of(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return next((value[name] for name in _TEXT_NAMES if isinstance(value.get(name), str)), None)
    return None


def _whole_strings(text: str) -> Iterator[str]:
    """Yield the strings of a broken JSON list, up to the first incomplete one."""
    at = text.find("[") + 1
    while at > 0:
        at = _next_sign(text, at)
        if text[at : at + 1] != '"':
            return
        try:
            value, at = _DECODER.raw_decode(text, at)
        except ValueError:
            return
        yield value


def _next_sign(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\n", ","):
        at += 1
    return at


def _lines(text: str, cut: bool) -> tuple[list[str], Counter[str]]:
    """Return the lines of a list without list marks; if only some lines have marks, the others are rejected."""
    rejected: Counter[str] = Counter()
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if cut and lines:
        lines.pop()
        rejected["cut off"] += 1
    marked = [line[found.end() :] for line in lines if (found := _MARKER.match(line))]
    if marked and len(marked) < len(lines):
        rejected["preamble line"] += len(lines) - len(marked)
    return marked or lines, rejected


def _unmarked(items: list[str]) -> list[str]:
    """Remove list marks if there are several items and each has one: a single "1. FC" may be a name."""
    found = [_MARKER.match(item) for item in items]
    if len(items) < 2 or not all(found):
        return items
    return [item[mark.end() :] for item, mark in zip(items, found, strict=True) if mark]


def read_passage(text: str, is_talk: re.Pattern[str]) -> str:
    """Return the passage of an answer in one line, without fences, labels and introductory text."""
    fence = _FENCE.search(text)
    body = (fence[1] if fence is not None else text).strip()
    values = _json_items(body)[0] if body.startswith("{") else None
    if values and isinstance(values[0], str):
        body = values[0]
    first, _, rest = body.partition("\n")
    if rest.strip() and is_talk.search(first.strip()):
        body = rest
    return bare(one_line(body))


def bare(line: str) -> str:
    """Remove the label, quotation marks, bold type and stray comma that models put around a line."""
    line = _LABEL.sub("", line.strip(), count=1) if _LABEL.match(line.strip()) else line.strip()
    for _ in range(3):
        line = line[:-1] if len(line) > 1 and line.endswith(('",', "',")) else line
        if len(line) > 4 and line.startswith("**") and line.endswith("**"):
            line = line[2:-2].strip()
        if len(line) < 2 or _QUOTES.get(line[0]) != line[-1] or line[0] in line[1:-1]:
            break
        line = line[1:-1].strip()
    return line
