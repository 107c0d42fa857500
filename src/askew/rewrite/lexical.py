"""Shared code of the lexical reformulators: the rules for English questions, and the use of synonyms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard

from askew.core.errors import DataError
from askew.core.files import DATA, fingerprint, parse_toml
from askew.core.plugins import Count
from askew.core.protocols import Candidates, QueryBatch
from askew.core.text import stem, word
from askew.data.files import read_text

# The reason for a candidate that repeats its query.
SAME = "same as the original"
Lookup = Callable[[str], list[str]]
_SHIPPED = DATA / "questions-en.toml"


@dataclass(frozen=True)
class QuestionRules:
    """The openings (frames) and closings of questions to remove, and the words that carry no content.

    ``degree`` are those of these words that stay before a word with content, as in "how many".
    """

    frames: tuple[str, ...]
    closings: tuple[str, ...]
    stop_words: frozenset[str]
    degree: frozenset[str] = frozenset()

    @property
    def hash(self) -> str:
        """A fingerprint of the content."""
        words = (sorted(self.stop_words), *([sorted(self.degree)] if self.degree else []))
        return fingerprint([list(self.frames), list(self.closings), *words], length=12)


def question_rules(path: str | None = None) -> QuestionRules:
    """Return the shipped rules, or the rules of a user's TOML file with the same keys."""
    return _read_rules(_SHIPPED) if path is None else _read_rules.__wrapped__(Path(path))


@cache
def _read_rules(path: Path) -> QuestionRules:
    data = read_toml(path, "question rules")
    frames, closings, stop_words = data.get("frames", []), data.get("closings", []), data.get("stop_words", "")
    if not is_texts(frames) or not is_texts(closings) or not isinstance(stop_words, str):
        raise DataError(
            f"question rules {path}: 'frames' (the openings of questions) and 'closings' (the ends of questions) must "
            "be lists of texts, and 'stop_words' must be one text with words separated by blanks"
        )
    degree = frozenset(str(data.get("degree", "")).split())
    return QuestionRules(tuple(frames), tuple(closings), frozenset(stop_words.split()), degree)


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Read a TOML file; an error names the file and the problem."""
    try:
        return parse_toml(read_text(path, what))
    except ValueError as error:
        raise DataError(f"{what} file {path}: not valid TOML: {error}") from None


def is_texts(value: object) -> TypeGuard[list[str]]:
    """Whether a value read from a file is a list of texts."""
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def one_line(text: str) -> str:
    """Replace every run of white space by one blank."""
    return " ".join(text.replace("\0", " ").split())


def first_with_other_stems(head: str, names: Iterable[str], topn: int) -> list[str]:
    """Return the first ``topn`` names whose Porter stems differ from the head word's and from each other."""
    seen, taken = {tuple(map(stem, word(head)))}, []
    for words in map(word, names):
        stems = tuple(map(stem, words))
        if stems and stems not in seen:
            seen.add(stems)
            taken.append(" ".join(words))
            if len(taken) == topn:
                break
    return taken


def use_synonyms(batch: QueryBatch, lookup: Lookup, replace: bool, longest: int = 1) -> Candidates:
    """Add the synonyms of a query's words, or of its phrases of up to ``longest`` words, or replace the words."""
    candidates, remembered = Candidates(), cache(lookup)
    for row, text in enumerate(batch.texts):
        # The query as phrases that have synonyms (the longest possible) and single words.
        words, units, at = word(text), list[str](), 0
        while at < len(words):
            longer = (n for n in range(longest, 1, -1) if n <= len(words) - at)
            size = next((n for n in longer if remembered(" ".join(words[at : at + n]))), 1)
            units.append(" ".join(words[at : at + size]))
            at += size
        synonyms = [remembered(unit) for unit in units]
        new = dict.fromkeys(synonym for some in synonyms for synonym in some if replace or synonym not in units)
        if not new:
            candidates.reject("nothing found")
        elif replace:  # a word without synonyms stays
            parts = (part for unit, some in zip(units, synonyms, strict=True) for part in (some or [unit]))
            candidates.add(row, " ".join(parts))
        else:
            candidates.add(row, " ".join([one_line(text), *new]))
    return candidates


# Shorter queries: the frame of a question ("can you tell me what is the ...") is removed, then all stop words.

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

    def __init__(self, keep: str = "", rules: str | None = None, shortest: Count = 1) -> None:
        protected = frozenset(word(keep))
        self._keep = protected | {"_nt"} if "not" in protected else protected  # the n't of "don't" is a "not"
        self._rules, self._shortest = question_rules(rules), shortest
        self._frames = [_pattern(frame) for frame in self._rules.frames]
        self._closings = [_pattern(closing, backwards=True) for closing in self._rules.closings]

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with the rules identified by their content."""
        return {"keep": sorted(self._keep), "rules": self._rules.hash, "shortest": self._shortest}

    def reformulate(self, batch: QueryBatch) -> Candidates:
        """Return up to two candidates for each query: the query without its frame, and only its content words."""
        candidates = Candidates()
        for row, text in enumerate(batch.texts):
            words = word(_ENDING.sub(" _", _NOT.sub(" _nt", text)))
            if not words:
                candidates.reject("nothing found")
                continue
            seen = [words]
            # Frames are removed from the front, then closings from the end; at least one word is left.
            unframed = words
            while size := self._size(self._frames, unframed):
                unframed = unframed[size:]
            while size := self._size(self._closings, unframed[::-1]):
                unframed = unframed[:-size]
            for shorter in (unframed, self._content(unframed)):
                if len(shorter) < self._shortest:
                    candidates.reject("nothing left")
                elif shorter in seen:
                    candidates.reject(SAME if shorter == words else "same as another")
                else:
                    seen.append(shorter)
                    candidates.add(row, _joined(shorter))
        return candidates

    def _size(self, rules: list[re.Pattern[str]], words: list[str]) -> int:
        """Return how many words the longest matching rule removes.

        A rule must not remove all words, a word to keep, or a part of "don't".
        """
        line = "".join(f"{part} " for part in words)
        sizes = (match.group().count(" ") for rule in rules if (match := rule.match(line)))
        fit = (n for n in sizes if n < len(words) and self._keep.isdisjoint(words[:n]) and words[n] not in _MARKED)
        return max(fit, default=0)

    def _content(self, words: list[str]) -> list[str]:
        """Return the content words. A part after an apostrophe is removed with its word, except a kept "n't"."""
        content, stays = [], False
        for part, follows in zip(words, [*words[1:], ""], strict=True):
            hangs = part in _MARKED and not stays
            stays = part in self._keep or part not in self._rules.stop_words
            # "How many" asks for a number, "many" does not.
            stays = stays or (part in self._rules.degree and follows not in {"", *self._rules.stop_words})
            if stays and not hangs:
                content.append(part)
            elif stays and part == "_nt":
                content.append("not")
        return content


def _joined(words: list[str]) -> str:
    """Join the words, with their apostrophes restored."""
    parts: list[str] = []
    for part in words:
        if part in _MARKED and parts:
            parts[-1] += _MARKED[part]
        else:
            parts.append(part.removeprefix("_") if part in _MARKED else part)
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
