"""Shared code of the lexical reformulators: the rules for English questions, and three modes of using synonyms."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard

from askew.core.errors import ConfigError, DataError
from askew.core.fingerprint import fingerprint
from askew.core.porter import stem
from askew.core.shipped import DATA
from askew.core.text import word
from askew.plugins.methods import Candidates, QueryBatch

Lookup = Callable[[str], list[str]]
_SHIPPED = DATA / "questions-en.toml"


@dataclass(frozen=True)
class QuestionRules:
    """The openings (frames) and closings of questions to remove, and the words that carry no content."""

    frames: tuple[str, ...]
    closings: tuple[str, ...]
    stop_words: frozenset[str]

    @property
    def hash(self) -> str:
        """A fingerprint of the content."""
        return fingerprint([list(self.frames), list(self.closings), sorted(self.stop_words)], length=12)


def question_rules(path: str | None = None) -> QuestionRules:
    """Return the shipped rules, or the rules of a user's TOML file with the same keys."""
    return _shipped_rules() if path is None else _read_rules(Path(path))


@cache
def _shipped_rules() -> QuestionRules:
    return _read_rules(_SHIPPED)


def _read_rules(path: Path) -> QuestionRules:
    data = read_toml(path, "question rules")
    frames, closings, stop_words = data.get("frames", []), data.get("closings", []), data.get("stop_words", "")
    if not is_texts(frames) or not is_texts(closings) or not isinstance(stop_words, str):
        raise DataError(
            f"question rules {path}: 'frames' (the openings of questions) and 'closings' (the ends of questions) must "
            "be lists of texts, and 'stop_words' must be one text with words separated by blanks"
        )
    return QuestionRules(tuple(frames), tuple(closings), frozenset(stop_words.split()))


def read_text(path: Path, what: str) -> str:
    """Read a file as UTF-8 text; an error names the file and the problem."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{what} file {path}: cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{what} file {path}: expected UTF-8 text, found an invalid byte at {error.start}") from None


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Read a TOML file; an error names the file and the problem."""
    try:
        return tomllib.loads(read_text(path, what))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{what} file {path}: not valid TOML: {error}") from None


def is_texts(value: object) -> TypeGuard[list[str]]:
    """Whether a value read from a file is a list of texts."""
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def one_line(text: str) -> str:
    """Replace every run of white space by one blank."""
    return " ".join(text.replace("\0", " ").split())


def synonym_mode(who: str, topn: int, replace: bool, each: bool) -> str:
    """How synonyms are used: ``expand``, ``replace`` or ``each``."""
    if topn < 1:
        raise ConfigError(f"{who}: expected topn= to be 1 or more, found {topn}")
    if replace and each:
        raise ConfigError(
            f"{who}: expected either replace= or each=, found both; each= already replaces words by synonyms"
        )
    return "each" if each else "replace" if replace else "expand"


def first_with_other_stems(head: str, names: Iterable[str], topn: int) -> list[str]:
    """Return the first ``topn`` names whose Porter stems differ from the head word's and from each other."""
    seen, taken = {_stems(head)}, []
    for name in names:
        stems = _stems(name)
        if stems and stems not in seen:
            seen.add(stems)
            taken.append(" ".join(word(name)))
            if len(taken) == topn:
                break
    return taken


def _stems(name: str) -> tuple[str, ...]:
    return tuple(stem(one) for one in word(name))


def use_synonyms(asked: QueryBatch, lookup: Lookup, mode: str, longest: int = 1) -> Candidates:
    """Make candidates from the synonyms of each query's words, or of its phrases of up to ``longest`` words."""
    found, known = Candidates(), dict[str, list[str]]()

    def remembered(phrase: str) -> list[str]:
        if phrase not in known:
            known[phrase] = lookup(phrase)
        return known[phrase]

    for row, text in enumerate(asked.texts):
        units = _units(word(text), remembered, longest)
        synonyms = [remembered(unit) for unit in units]
        made = _WAYS[mode](text, units, synonyms) if any(synonyms) else []
        for one in made:
            found.add(row, one)
        if not made:
            found.reject("nothing found")
    return found


def _units(words: Sequence[str], lookup: Lookup, longest: int) -> list[str]:
    """Split a query into phrases that have synonyms (the longest possible) and single words."""
    units, at = [], 0
    while at < len(words):
        size = next(
            (n for n in range(longest, 1, -1) if n <= len(words) - at and lookup(" ".join(words[at : at + n]))), 1
        )
        units.append(" ".join(words[at : at + size]))
        at += size
    return units


def _expand(text: str, units: Sequence[str], synonyms: Sequence[Sequence[str]]) -> list[str]:
    """Append to the query all synonyms that it does not contain yet."""
    new = dict.fromkeys(one for some in synonyms for one in some if one not in units)
    return [" ".join([one_line(text), *new])] if new else []


def _replace(text: str, units: Sequence[str], synonyms: Sequence[Sequence[str]]) -> list[str]:
    """Replace each word by its synonyms; a word without synonyms stays."""
    return [" ".join(one for unit, some in zip(units, synonyms, strict=True) for one in (some or [unit]))]


def _each(text: str, units: Sequence[str], synonyms: Sequence[Sequence[str]]) -> list[str]:
    """Replace one word by one synonym per candidate; the first synonyms of all words come before the second ones."""
    most = max(len(some) for some in synonyms)
    made = [
        " ".join([*units[:at], some[rank], *units[at + 1 :]])
        for rank in range(most)
        for at, some in enumerate(synonyms)
        if rank < len(some)
    ]
    return list(dict.fromkeys(made))


_WAYS = {"expand": _expand, "replace": _replace, "each": _each}
