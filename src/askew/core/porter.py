"""Porter's stemmer (An algorithm for suffix stripping, Program 14, 1980), written from the published rules.

Like Lucene and Martin Porter's own later program, it departs from the paper in three places: words of two letters are
not stemmed, -bli becomes -ble, and -logi becomes -log.

A ``y`` that is a consonant (at the start, or after a vowel) is written ``Y`` while a word is being stemmed. R1 is the
region after the first consonant that follows a vowel, and R2 is R1 of R1. The paper's condition m > 0 means that the
ending is in R1, and m > 1 that it is in R2. The rules of Porter2 use the same regions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

VOWELS = frozenset("aeiouy")
_CONSONANT_Y = re.compile("(^|[aeiouy])y")
_REGION = re.compile("[^aeiouy]*[aeiouy]+[^aeiouy]")
_SHORT_SYLLABLE = re.compile("[^aeiouy][aeiouy][^aeiouywxY]$")


@dataclass(frozen=True)
class Rules:
    """Endings with their replacements. For each word only its longest ending is considered."""

    endings: Mapping[str, str]
    longest: int

    def find(self, word: str) -> str | None:
        """The longest ending that the word has."""
        for length in range(min(self.longest, len(word)), 0, -1):
            if word[-length:] in self.endings:
                return word[-length:]
        return None

    def apply(self, word: str, region: int = 0) -> str:
        """The word with its longest ending replaced, if the ending starts in the region."""
        ending = self.find(word)
        if ending is None or len(word) - len(ending) < region:
            return word
        return word[: len(word) - len(ending)] + self.endings[ending]


def rules(table: Mapping[str, str] | None = None, drop: str = "") -> Rules:
    """Rules from a table of endings and replacements, and from ``drop``, the endings to remove, separated by blanks."""
    endings = {**(table or {}), **dict.fromkeys(drop.split(), "")}
    return Rules(endings, max(map(len, endings)))


def mark_consonant_y(word: str) -> str:
    """Write ``Y`` for every y that is a consonant."""
    return _CONSONANT_Y.sub(r"\1Y", word)


def region_after(word: str, start: int = 0) -> int:
    """The start of the region after the first consonant that follows a vowel, or else the length of the word."""
    found = _REGION.match(word, start)
    return found.end() if found else len(word)


def has_vowel(word: str) -> bool:
    """Whether the word has a vowel. ``Y`` does not count as a vowel."""
    return not VOWELS.isdisjoint(word)


def ends_in_short_syllable(word: str) -> bool:
    """Whether the word ends in consonant, vowel, consonant, and the last is not w, x or y: -hop, not -snow."""
    return _SHORT_SYLLABLE.search(word) is not None


def ends_in_double(word: str) -> bool:
    """Whether the word ends in the same consonant twice."""
    return len(word) > 1 and word[-1].lower() == word[-2].lower() and word[-1] not in VOWELS


PLURALS = rules({"sses": "ss", "ies": "i", "ss": "ss", "s": ""})
STEP_2 = rules({
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
    "logi": "log",
})  # fmt: skip
STEP_3 = rules({"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""})
STEP_4 = rules(drop="al ance ence er ic able ible ant ement ment ent ou ism ate iti ous ive ize")


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The stem of a lower-cased word. Recent results are cached, because words recur."""
    # Java, and so Lucene, counts a character beyond U+FFFF as two.
    if len(word) + sum(char > "\uffff" for char in word) <= 2:
        return word
    word = mark_consonant_y(word)
    r1 = region_after(word)
    r2 = region_after(word, r1)
    word = _step_1b(PLURALS.apply(word), r1)
    if word[-1] in "yY" and has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = STEP_3.apply(STEP_2.apply(word, r1), r1)
    return _step_5(_step_4(word, r2), r1, r2).replace("Y", "y")


def _step_1b(word: str, r1: int) -> str:
    if word.endswith("eed"):
        return word[:-1] if len(word) - 3 >= r1 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            start = word[: -len(ending)]
            return _tidy(start, r1) if has_vowel(start) else word
    return word


def _tidy(word: str, r1: int) -> str:
    """Correct a word after -ed or -ing was removed: conflat(ed) -> conflate, hopp(ing) -> hop, fil(ing) -> file."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if ends_in_double(word) and word[-1] not in "lsz":
        return word[:-1]
    return word + "e" if len(word) == r1 and ends_in_short_syllable(word) else word


def _step_4(word: str, r2: int) -> str:
    # -ion is removed only after s or t, which are kept.
    if word.endswith(("sion", "tion")):
        return word[:-3] if len(word) - 3 >= r2 else word
    return STEP_4.apply(word, r2)


def _step_5(word: str, r1: int, r2: int) -> str:
    at = len(word) - 1
    if word.endswith("e") and (at >= r2 or (at >= r1 and not ends_in_short_syllable(word[:-1]))):
        word, at = word[:-1], at - 1
    return word[:-1] if word.endswith("ll") and at >= r2 else word
