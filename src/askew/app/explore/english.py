"""Whether a text is likely English: what the lexicons, rules and models of the explorer are written for."""

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
    """False where function words or letters speak for another language, or the script is another one."""
    return not _check().refuses(text)


def counts_english(lexicon: Lexicon) -> bool:
    """Whether a lexicon has English words; one that does not say its language may have any."""
    return lexicon.language == ENGLISH


def not_english_note(count: int, of: int, lexicon: str) -> str:
    """What to say of results in another language."""
    those = "The text of the result" if of == 1 else f"The texts of {count} of {of} results"
    verb = "does" if of == 1 else "do"
    return (
        f"{those} {verb} not look like English, and {lexicon} lists English words: what is counted there may be wrong."
    )
