"""What the two stemmers of Martin Porter share: vowels, the regions R1 and R2, and rules by the longest ending.

A ``y`` that stands for a consonant (at the start, or after a vowel) is written ``Y`` while a word is being stemmed.
R1 begins after the first consonant that follows a vowel, R2 is R1 of R1. "The stem has measure m > 0" in the words of
1980 says that the ending lies in R1, and m > 1 that it lies in R2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

VOWELS = frozenset("aeiouy")
_CONSONANT_Y = re.compile("(^|[aeiouy])y")
_REGION = re.compile("[^aeiouy]*[aeiouy]+[^aeiouy]")
_SHORT_SYLLABLE = re.compile("[^aeiouy][aeiouy][^aeiouywxY]$")


@dataclass(frozen=True)
class EndingRules:
    """Endings with what takes their place; the longest that a word has is the one that counts."""

    endings: Mapping[str, str]
    longest: int

    def find(self, word: str) -> str | None:
        """The longest ending that the word has."""
        for length in range(min(self.longest, len(word)), 0, -1):
            if word[-length:] in self.endings:
                return word[-length:]
        return None

    def apply(self, word: str, region: int = 0) -> str:
        """The word with its longest ending replaced, if that lies in the region."""
        ending = self.find(word)
        if ending is None or len(word) - len(ending) < region:
            return word
        return word[: len(word) - len(ending)] + self.endings[ending]


def rules(table: Mapping[str, str] | None = None, drop: str = "") -> EndingRules:
    """Rules from endings and their replacements, and from endings (between blanks) that go."""
    endings = {**(table or {}), **dict.fromkeys(drop.split(), "")}
    return EndingRules(endings, max(map(len, endings)))


def mark_consonant_y(word: str) -> str:
    """Write ``Y`` for every y that stands for a consonant."""
    return _CONSONANT_Y.sub(r"\1Y", word)


def region_after(word: str, start: int = 0) -> int:
    """Where the region begins that follows the first consonant after a vowel, or the end of the word."""
    found = _REGION.match(word, start)
    return found.end() if found else len(word)


def has_vowel(word: str) -> bool:
    """Whether there is a vowel; ``Y`` is none."""
    return not VOWELS.isdisjoint(word)


def ends_in_short_syllable(word: str) -> bool:
    """Consonant, vowel, consonant, and the last is not w, x or y: -hop, not -snow."""
    return _SHORT_SYLLABLE.search(word) is not None


def ends_in_double(word: str) -> bool:
    """Whether the word ends in the same consonant twice."""
    return len(word) > 1 and word[-1].lower() == word[-2].lower() and word[-1] not in VOWELS
