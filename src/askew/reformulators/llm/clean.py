"""Candidates from an answer, which is untrusted text. Every rejected part is counted by its reason."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from askew.reformulators.llm.forms import bare, one_line, plain, read_list, read_passage, without_thinking
from askew.reformulators.llm.prompts import Prompt
from askew.reformulators.llm.wire import Completion

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
        text = self._said(answer)
        if text is None:
            return []
        if self.prompt.answer == "passage":
            made = self._passage(text)
        elif self.prompt.answer == "keywords":
            made = self._keywords(text, answer)
        else:
            made = self._queries(text, answer)
        return made

    def _said(self, answer: Completion) -> str | None:
        """Return the text of an answer without its thinking; None if it is a refusal, cut off or empty."""
        text = without_thinking(plain(answer.text))
        if answer.refused or (text is not None and _REFUSAL.search(text.strip())):
            self._reject("refused")
        elif text is None:
            self._reject("cut off")
        elif not text.strip():
            self._reject("empty answer")
        else:
            return text
        return None

    def _queries(self, text: str, answer: Completion) -> list[str]:
        return self._limited([item for item in self._items(text, answer) if self._is_new(item)])

    def _keywords(self, text: str, answer: Completion) -> list[str]:
        words = self._items(text, answer)
        words = [part for word in words for part in _parts(word)] if len(words) == 1 else words
        first: dict[str, str] = {}
        for word in words:
            first.setdefault(_key(word), word)
        unique = list(first.values())
        if len(unique) < len(words):
            self.rejected["duplicate"] += len(words) - len(unique)
        candidate = self._with_query(_clipped(" ".join(self._limited(unique)), self.prompt.max_chars))
        return [candidate] if unique and self._is_new(candidate) else []

    def _passage(self, text: str) -> list[str]:
        passage = _clipped(read_passage(text, _TALK), self.prompt.max_chars)
        if not any(char.isalnum() for char in passage):
            self._reject("no words")
            return []
        if passage.endswith(":") and _TALK.search(passage):
            self._reject("preamble line")
            return []
        candidate = self._with_query(passage)
        return [candidate] if self._is_new(candidate) else []

    def _items(self, text: str, answer: Completion) -> list[str]:
        """Return the items of a list that can be a query or a keyword."""
        found, rejected = read_list(text, cut=answer.finish == "length")
        self.rejected.update(rejected)
        if not found and not rejected:
            self._reject("nothing found")
        kept = []
        for item in found:
            line = bare(plain(item))
            reason = self._why_not(line)
            if reason is None:
                kept.append(one_line(line))
            else:
                self._reject(reason)
        return kept

    def _why_not(self, line: str) -> str | None:
        if "\n" in line:
            return "not one line"
        if len(line) > self.prompt.max_chars:
            return "too long"
        return _why_not_text(line)

    def _is_new(self, text: str) -> bool:
        same, query = _key(text), _key(self.query)
        if same == query:
            self._reject("same as the original")
        elif same in self._seen:
            self._reject("duplicate")
        else:
            self._seen.add(same)
            return True
        return False

    def _limited(self, texts: list[str]) -> list[str]:
        if len(texts) > self.count:
            self.rejected["more than asked"] += len(texts) - self.count
        return texts[: self.count]

    def _with_query(self, text: str) -> str:
        return " ".join([self.query] * self.prompt.query_times + [text])

    def _reject(self, reason: str) -> None:
        self.rejected[reason] += 1


def _why_not_text(line: str) -> str | None:
    if not line:
        return "empty text"
    if not any(char.isalnum() for char in line):
        return "no words"
    if _REFUSAL.search(line):
        return "refused"
    if _TALK.search(line):
        return "preamble line"
    return None


def _parts(text: str) -> list[str]:
    """Split a line of keywords at commas and semicolons."""
    return [part for part in (one_line(part) for part in re.split(r"[,;]", text)) if part]


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
