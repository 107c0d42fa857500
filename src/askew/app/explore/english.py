"""Detect whether a text is likely English: the lexicons, rules and models of the explorer are for English."""

from __future__ import annotations

from functools import cache

from askew.core.lexicon import Lexicon
from askew.filters.language import LanguageCheck

ENGLISH = "en"
NOT_ENGLISH = (
    "The query does not look like English, so rules and methods that were written for English are not applied."
)


@cache
def _check() -> LanguageCheck:
    return LanguageCheck(ENGLISH)


def is_english(text: str) -> bool:
    """Whether function words, letters and script do not indicate another language."""
    return not _check().refuses(text)


def counts_english(lexicon: Lexicon) -> bool:
    """Whether a lexicon declares English as its language."""
    return lexicon.language == ENGLISH


def not_english_note(count: int, of: int, lexicon: str) -> str:
    """Return a note on results in another language."""
    why = f"The lexicon {lexicon} lists English words, so the counts may be wrong."
    if of == 1:
        return f"The text of the result does not look like English. {why}"
    return f"The texts of {count} of {of} results do not look like English. {why}"
