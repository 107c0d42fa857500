"""Shorter queries: the frame of a question ("can you tell me what is the ...") is removed, then all stop words.

Frames and stop words are in a data file (``data/questions-en.toml``), which was written for askew; a user's file with
the same keys can replace it. Verbose queries often retrieve better without their stop structure (Huston and Croft,
SIGIR 2010).
"""

from __future__ import annotations

import re
from typing import Any

from askew.core.errors import ConfigError, DataError
from askew.core.text import word
from askew.plugins.methods import Candidates, QueryBatch
from askew.reformulators.lexical import question_rules

_PART = re.compile(r"\w+(\|\w+)*\??")
# The part after an apostrophe becomes a separate word with a mark, so that "vitamin d" keeps its d: i'd is "i _d".
_NOT = re.compile(r"(?<=\w)n['’]t\b", re.IGNORECASE)
_ENDING = re.compile(r"(?<=\w)['’](?=(?:s|d|ll|m|re|ve)\b)", re.IGNORECASE)
_MARKED = {"_nt": "n't", **{f"_{end}": f"'{end}" for end in ("s", "d", "ll", "m", "re", "ve")}}


class ReduceReformulator:
    """Removes the frame of a question, then every stop word.

    ``keep``: words that are never removed, separated by blanks, such as "not no". ``rules``: your own file of frames
    and stop words. ``shortest``: the minimum number of words of a candidate.
    """

    method = "reduce"
    reads: frozenset[str] = frozenset()

    def __init__(self, keep: str = "", rules: str | None = None, shortest: int = 1) -> None:
        if shortest < 1:
            raise ConfigError(f"reduce: expected shortest= to be 1 or more, found {shortest}")
        self._rules, self._keep, self._shortest = question_rules(rules), _kept(keep), shortest
        self._frames = [_pattern(frame) for frame in self._rules.frames]
        self._closings = [_pattern(closing, backwards=True) for closing in self._rules.closings]

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with the rules identified by their content."""
        return {"keep": sorted(self._keep), "rules": self._rules.hash, "shortest": self._shortest}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return up to two candidates for each query: the query without its frame, and only its content words."""
        found = Candidates()
        for row, text in enumerate(asked.texts):
            words = word(_ENDING.sub(" _", _NOT.sub(" _nt", text)))
            if not words:
                found.reject("nothing found")
                continue
            seen = [words]
            unframed = self._without_frame(words)
            for shorter in (unframed, self._content(unframed)):
                if len(shorter) < self._shortest:
                    found.reject("nothing left")
                elif shorter in seen:
                    found.reject("same as the original" if shorter == words else "same as another")
                else:
                    seen.append(shorter)
                    found.add(row, _joined(shorter))
        return found

    def _without_frame(self, words: list[str]) -> list[str]:
        """Remove frames from the front, then closings from the end; at least one word is left."""
        while size := self._size(self._frames, words):
            words = words[size:]
        while size := self._size(self._closings, words[::-1]):
            words = words[:-size]
        return words

    def _size(self, rules: list[re.Pattern[str]], words: list[str]) -> int:
        """Return how many words the longest matching rule removes.

        A rule must not remove all words, a word to keep, or a part of "don't".
        """
        line = "".join(f"{one} " for one in words)
        sizes = (match.group().count(" ") for rule in rules if (match := rule.match(line)))
        fit = (n for n in sizes if n < len(words) and self._keep.isdisjoint(words[:n]) and words[n] not in _MARKED)
        return max(fit, default=0)

    def _content(self, words: list[str]) -> list[str]:
        """Return the content words. A part after an apostrophe is removed with its word, except a kept "n't"."""
        content, stays = [], False
        for one in words:
            hangs = one in _MARKED and not stays
            stays = one in self._keep or one not in self._rules.stop_words
            if stays and not hangs:
                content.append(one)
            elif stays and one == "_nt":
                content.append("not")
        return content


def _kept(keep: str) -> frozenset[str]:
    """Return the words to keep; "n't" is kept if "not" is."""
    words = frozenset(word(keep))
    return words | {"_nt"} if "not" in words else words


def _joined(words: list[str]) -> str:
    """Join the words, with their apostrophes restored."""
    parts: list[str] = []
    for one in words:
        if one in _MARKED and parts:
            parts[-1] += _MARKED[one]
        else:
            parts.append(one.removeprefix("_") if one in _MARKED else one)
    return " ".join(parts)


def _pattern(rule: str, backwards: bool = False) -> re.Pattern[str]:
    """Compile a rule to a pattern over words that each end in a blank; ``backwards`` begins with the last word."""
    parts = []
    for part in rule.split()[:: -1 if backwards else 1]:
        if not _PART.fullmatch(part):
            raise DataError(
                "question rules: expected words, with '|' between alternatives ('is|are') and '?' after an optional "
                f"word ('the?'); found {part!r} in {rule!r}"
            )
        parts.append(f"(?:(?:{part.removesuffix('?')}) )" + ("?" if part.endswith("?") else ""))
    return re.compile("".join(parts))
