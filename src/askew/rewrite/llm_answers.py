"""Candidates from an answer, which is untrusted text. Every rejected part is counted by its reason."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from askew.rewrite.lexical import SAME
from askew.rewrite.llm_client import Completion
from askew.rewrite.prompts import Prompt

# Split an answer into items: JSON, fenced code, numbered or bulleted lists, plain lines. Nothing is executed.

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


def read_list(text: str, cut: bool) -> tuple[list[str], Counter[str]]:
    """Return the items of an answer, and the rejected parts counted by reason. ``cut``: the answer is incomplete."""
    fence = _FENCE.search(text)
    body = fence[1] if fence is not None and fence[1].strip() else text
    values, start = _json_items(body)
    if values is not None:
        before = text[: fence.start()] if fence is not None and body is not text else body[:start]
        items = [item for value in values if (item := _text_of(value)) is not None]
        reasons = {"preamble line": int(bool(before.strip())), "not a text": len(values) - len(items)}
        marks = [_MARKER.match(item) for item in items]
        if len(items) > 1 and all(marks):  # list marks; a single "1. FC" may be a name
            items = [item[mark.end() :] for item, mark in zip(items, marks, strict=True) if mark]
        return items, Counter({reason: count for reason, count in reasons.items() if count})
    if body.lstrip().startswith(("{", "[")) or '"queries"' in body:
        return list(_whole_strings(body)), Counter(["cut off" if cut else "broken JSON"])
    # The lines of a list without list marks; if only some lines have marks, the others are rejected.
    rejected: Counter[str] = Counter()
    lines = [line.strip() for line in body.split("\n") if line.strip()]
    if cut and lines:
        lines.pop()
        rejected["cut off"] += 1
    marked = [line[marker.end() :] for line in lines if (marker := _MARKER.match(line))]
    if marked and len(marked) < len(lines):
        rejected["preamble line"] += len(lines) - len(marked)
    return marked or lines, rejected


def _json_items(text: str) -> tuple[list[object] | None, int]:
    """Return the list in the first JSON value that contains one, and the position of that value."""
    for start in (match.end() - 1 for match in islice(_JSON_START.finditer(text), _TRIES)):
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
        while text[at : at + 1] in (" ", "\n", ","):
            at += 1
        if text[at : at + 1] != '"':
            return
        try:
            value, at = _DECODER.raw_decode(text, at)
        except ValueError:
            return
        yield value


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


# The version of these rules is part of the settings: cached answers are read by the current rules.
CLEANING = 1

_TALK = re.compile(
    r":$|^(?:sure|certainly|of course|absolutely|okay|ok|great)[,!.]\s*(?:$|here|below|i\b|let|these|this)|"
    r"^(?:here|below|these|the following)\b.{0,40}\b(?:is|are|'s)\b.{0,60}"
    r"\b(?:list|quer(?:y|ies)|reformulations?|versions?|variants?|variations?|keywords?|passage|paragraph|questions?)\b|"
    r"^here(?: is|'s| are) (?:a|the|some|\d+|\w+ (?:different|alternative|possible|more|neutral))\b.*\b(?:of|for)\b|"
    r"^(?:i hope (?:this|these|that) (?:helps?|meets?|is|are)|(?:please )?let me know if you|"
    r"(?:please )?feel free to (?:ask|let|modify|adjust|use)|note that (?:these|this|i|the quer))\b",
    re.IGNORECASE,
)
# "sorry, I can't stop" is a valid query: a refusal must also name the refused task.
_REFUSAL = re.compile(
    r"^(?:(?:i['’]m|i am) (?:very |so )?sorry|sorry|i apologi[sz]e|unfortunately)\b.{0,40}"
    r"\b(?:can(?:['’]t|not)|unable to|not able to|won['’]t)\b.{0,15}"
    r"\b(?:assist|help|comply|fulfil\w*|provide|generate|answer|create|write|rewrite|do (?:that|this))\b|"
    r"^i (?:can(?:['’]t|not)|am unable to|am not able to|won['’]t) "
    r"(?:assist|help (?:you )?with|comply|fulfil\w*|generate|rewrite)\b|"
    r"^as an ai(?: language)? (?:model|assistant)\b[, ]+i\b",
    re.IGNORECASE,
)


@dataclass
class Sieve:
    """Collects the distinct candidates of one query from its answers, and counts rejected texts by reason."""

    query: str
    prompt: Prompt
    count: int
    rejected: Counter[str] = field(default_factory=Counter)
    _seen: set[str] = field(default_factory=set)

    def take(self, answer: Completion) -> list[str]:
        """Return the new candidates of one more answer, in their order."""
        # The answer after the thinking that some models show, and None if the thinking does not end.
        rest = _THINKING.sub("", plain(answer.text), count=1)
        text = None if _OPEN_THINKING.match(rest) else rest
        if answer.refused or (text is not None and _REFUSAL.search(text.strip())):
            self.rejected["refused"] += 1
        elif text is None:
            self.rejected["cut off"] += 1
        elif not text.strip():
            self.rejected["empty answer"] += 1
        elif self.prompt.answer == "passage":
            return self._passage(text)
        elif self.prompt.answer == "keywords":
            return self._keywords(text, answer)
        else:
            return self._limited([item for item in self._items(text, answer) if self._is_new(item)])
        return []

    def _keywords(self, text: str, answer: Completion) -> list[str]:
        words = self._items(text, answer)
        if len(words) == 1:
            words = [part for part in map(one_line, re.split(r"[,;]", words[0])) if part]
        first: dict[str, str] = {}
        for word in words:
            first.setdefault(_key(word), word)
        unique = list(first.values())
        if len(unique) < len(words):
            self.rejected["duplicate"] += len(words) - len(unique)
        joined = _clipped(" ".join(self._limited(unique)), self.prompt.max_chars)
        return self._with_query(joined) if unique else []

    def _passage(self, text: str) -> list[str]:
        passage = _clipped(read_passage(text, _TALK), self.prompt.max_chars)
        if not any(char.isalnum() for char in passage):
            self.rejected["no words"] += 1
            return []
        if passage.endswith(":") and _TALK.search(passage):
            self.rejected["preamble line"] += 1
            return []
        return self._with_query(passage)

    def _items(self, text: str, answer: Completion) -> list[str]:
        """Return the items of a list that can be a query or a keyword."""
        items, rejected = read_list(text, cut=answer.finish == "length")
        self.rejected.update(rejected)
        if not items and not rejected:
            self.rejected["nothing found"] += 1
        lines = []
        for item in items:
            line = bare(plain(item))
            reason = self._why_not(line)
            if reason is None:
                lines.append(one_line(line))
            else:
                self.rejected[reason] += 1
        return lines

    def _why_not(self, line: str) -> str | None:
        if "\n" in line:
            return "not one line"
        if len(line) > self.prompt.max_chars:
            return "too long"
        if not line:
            return "empty text"
        if not any(char.isalnum() for char in line):
            return "no words"
        if _REFUSAL.search(line):
            return "refused"
        return "preamble line" if _TALK.search(line) else None

    def _is_new(self, text: str) -> bool:
        same = _key(text)
        if same != _key(self.query) and same not in self._seen:
            self._seen.add(same)
            return True
        self.rejected["duplicate" if same in self._seen else SAME] += 1
        return False

    def _limited(self, texts: list[str]) -> list[str]:
        if len(texts) > self.count:
            self.rejected["more than asked"] += len(texts) - self.count
        return texts[: self.count]

    def _with_query(self, text: str) -> list[str]:
        candidate = " ".join([self.query] * self.prompt.query_times + [text])
        return [candidate] if self._is_new(candidate) else []


def _clipped(text: str, most: int) -> str:
    """Return at most ``most`` characters of a text, cut between words if possible."""
    if len(text) <= most:
        return text
    whole, blank, _ = text[: most + 1].rpartition(" ")
    return (whole if blank else text[:most]).strip()


def clip(text: str, most: int) -> str:
    """Return a document's text as a prompt shows it: one line of at most ``most`` characters."""
    return _clipped(one_line(text), most)


def _key(text: str) -> str:
    return " ".join(text.casefold().split())
