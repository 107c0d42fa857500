"""Whether a short text may be of a language: by its script, then by function words and letters of known languages.

The benefit of the doubt goes to the text: "machu picchu altitude" passes as English and as German. A text goes only if
too many of its letters belong to another script, or if at least two things in it speak for another language and fewer
for the one that is wanted. Languages that share a script and have no word list here are not told apart, nor are two
languages mixed in one text. For more, classify with a language model before askew.
"""

from __future__ import annotations

import tomllib
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

from askew.core.errors import UnknownName
from askew.filters.words import tokens

# Formulas, names and borrowed words are in other scripts now and then.
LEAST_SHARE = 0.8
_LEAST_EVIDENCE = 2


@cache
def _known() -> dict[str, Any]:
    text = (Path(__file__).parent / "languages.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def languages() -> list[str]:
    """The codes of the languages that can be asked for."""
    return sorted(_known())


class LanguageCheck:
    """Says which texts are surely not of one language."""

    def __init__(self, language: str) -> None:
        if language not in _known():
            raise UnknownName("language", language, [*languages(), "any"], "the rules filter")
        wanted = _known()[language]
        self._scripts = frozenset(wanted["scripts"])
        self._rivals = [
            code for code, facts in _known().items()
            if "words" in facts and "words" in wanted and facts["scripts"] == wanted["scripts"]
        ]  # fmt: skip
        self._wanted = self._rivals.index(language) if self._rivals else 0
        self._speakers = _speakers(tuple(self._rivals))

    def refuses(self, text: str, words: list[str] | None = None) -> bool:
        """Whether the text is surely of another language; its words are taken where they are known."""
        return self._other_script(text) or self._other_words(text, tokens(text) if words is None else words)

    def _other_script(self, text: str) -> bool:
        if text.isascii():
            return "LATIN" not in self._scripts and any(c.isalpha() for c in text)
        scripts = [_script(c) for c in unicodedata.normalize("NFKC", text) if c.isalpha()]
        return sum(s in self._scripts for s in scripts) < LEAST_SHARE * len(scripts)

    def _other_words(self, text: str, pieces: list[str]) -> bool:
        evidence = [0] * len(self._rivals)
        if not text.isascii():
            pieces = [*pieces, *{c for piece in pieces for c in piece if not c.isascii()}]
        for piece in pieces:
            for rival in self._speakers.get(piece, ()):
                evidence[rival] += 1
        most = max(evidence, default=0)
        return most >= _LEAST_EVIDENCE and most > evidence[self._wanted]


@cache
def _speakers(codes: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Which of the languages have a function word or a letter."""
    found: dict[str, set[int]] = {}
    for i, code in enumerate(codes):
        for piece in [*_known()[code]["words"].split(), *_known()[code].get("letters", "")]:
            found.setdefault(piece, set()).add(i)
    return {piece: tuple(sorted(owners)) for piece, owners in found.items()}


@cache
def _script(char: str) -> str:
    return unicodedata.name(char, "UNKNOWN").split()[0]
