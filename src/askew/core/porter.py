"""Porter's stemmer (An algorithm for suffix stripping, Program 14, 1980), which gives the stems of Lucene.

Porter2, in ``askew.rewrite.stem``, has the same rules of endings and regions. A character beyond ASCII is a consonant.
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
class Rules:
    """Endings with their replacements, the longest first. For each word only its longest ending is considered."""

    endings: Mapping[str, str]
    texts: tuple[str, ...]

    def find(self, word: str) -> str | None:
        """The longest ending that the word has."""
        return next(filter(word.endswith, self.texts)) if word.endswith(self.texts) else None

    def apply(self, word: str, region: int = 0) -> str:
        """The word with its longest ending replaced, if the ending starts in the region."""
        ending = self.find(word)
        if ending is None or len(word) - len(ending) < region:
            return word
        return word[: len(word) - len(ending)] + self.endings[ending]


def rules(table: Mapping[str, str] | None = None, drop: str = "") -> Rules:
    """Rules from a table of endings and replacements, and from ``drop``, the endings to remove, separated by blanks."""
    endings = {**(table or {}), **dict.fromkeys(drop.split(), "")}
    return Rules(endings, tuple(sorted(endings, key=len, reverse=True)))


def mark_consonant_y(word: str) -> str:
    """Write ``Y`` for every y that is a consonant."""
    return _CONSONANT_Y.sub(r"\1Y", word)


def region_after(word: str, start: int = 0) -> int:
    """The start of the region after the first consonant that follows a vowel, or else the length of the word."""
    match = _REGION.match(word, start)
    return match.end() if match else len(word)


def has_vowel(word: str) -> bool:
    """Whether the word has a vowel. ``Y`` does not count as a vowel."""
    return not VOWELS.isdisjoint(word)


def ends_in_short_syllable(word: str) -> bool:
    """Whether the word ends in consonant, vowel, consonant, and the last is not w, x or y: -hop, not -snow."""
    return _SHORT_SYLLABLE.search(word) is not None


def ends_in_double(word: str) -> bool:
    """Whether the word ends in the same consonant twice."""
    return len(word) > 1 and word[-1].lower() == word[-2].lower() and word[-1] not in VOWELS


_PLURALS = rules({"sses": "ss", "ies": "i", "ss": "ss", "s": ""})
_STEP_2 = rules({
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
    "logi": "log",
})  # fmt: skip
_STEP_3 = rules({"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""})
_STEP_4 = rules(drop="al ance ence er ic able ible ant ement ment ent ou ism ate iti ous ive ize")


def stem(word: str) -> str:
    """The stem of a lower-cased word."""
    # Java, and so Lucene, counts a character beyond U+FFFF as two.
    if len(word) <= 2 and len(word) + sum(char > "\uffff" for char in word) <= 2:
        return word
    word = mark_consonant_y(word)
    r1 = region_after(word)
    r2 = region_after(word, r1)
    word = _step_1b(_PLURALS.apply(word), r1)
    if word[-1] in "yY" and has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _STEP_3.apply(_STEP_2.apply(word, r1), r1)
    if not word.endswith(("sion", "tion")):
        word = _STEP_4.apply(word, r2)
    elif len(word) - 3 >= r2:
        # -ion is removed only after s or t, which are kept.
        word = word[:-3]
    last = len(word) - 1
    if word.endswith("e") and (last >= r2 or (last >= r1 and not ends_in_short_syllable(word[:-1]))):
        word, last = word[:-1], last - 1
    word = word[:-1] if word.endswith("ll") and last >= r2 else word
    return word.replace("Y", "y")


def _step_1b(word: str, r1: int) -> str:
    if word.endswith("eed"):
        return word[:-1] if len(word) - 3 >= r1 else word
    start = word[:-2] if word.endswith("ed") else word[:-3] if word.endswith("ing") else ""
    if not has_vowel(start):
        return word
    # conflat(ed) -> conflate, hopp(ing) -> hop, fil(ing) -> file
    if start.endswith(("at", "bl", "iz")):
        return start + "e"
    if ends_in_double(start) and start[-1] not in "lsz":
        return start[:-1]
    return start + "e" if len(start) == r1 and ends_in_short_syllable(start) else start
