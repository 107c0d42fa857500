"""Whether a short text may be in a language: by its script, then by function words and letters of known languages.

In doubt a text is accepted: "machu picchu altitude" passes as English and as German. A text is refused only if too many
of its letters belong to another script, or if at least two words or letters in it indicate another language and fewer
indicate the wanted one. Languages that share a script and have no word list here are not distinguished, and a mix of
two languages in one text is not detected. For a stricter check, classify the texts with a language model before askew.
"""

from __future__ import annotations

import tomllib
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

from askew.core.errors import UnknownName
from askew.filters.words import tokens

# Formulas, names and borrowed words may be in another script.
LEAST_SHARE = 0.8
_LEAST_EVIDENCE = 2


@cache
def _known() -> dict[str, Any]:
    text = (Path(__file__).parent / "languages.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def languages() -> list[str]:
    """The codes of the languages that can be checked."""
    return sorted(_known())


class LanguageCheck:
    """Finds texts that are clearly not in a given language."""

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
        """Whether the text is clearly in another language; ``words`` are its words, if they are known already."""
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
    """Return, for each function word and letter, the languages that have it."""
    found: dict[str, set[int]] = {}
    for i, code in enumerate(codes):
        for piece in [*_known()[code]["words"].split(), *_known()[code].get("letters", "")]:
            found.setdefault(piece, set()).add(i)
    return {piece: tuple(sorted(owners)) for piece, owners in found.items()}


@cache
def _script(char: str) -> str:
    return unicodedata.name(char, "UNKNOWN").split()[0]
