"""Porter's stemmer (An algorithm for suffix stripping, Program 14, 1980), from the published rules.

As in Martin Porter's own later program, which departs from the paper in three places: words of two letters are left
alone, -bli becomes -ble, and -logi becomes -log. That is also what Lucene does.
"""

from __future__ import annotations

from askew.reformulators.stemmers.regions import (
    ends_in_double,
    ends_in_short_syllable,
    has_vowel,
    mark_consonant_y,
    region_after,
    rules,
)

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
    if len(word) <= 2:
        return word
    word = mark_consonant_y(word)
    r1 = region_after(word)
    r2 = region_after(word, r1)
    word = _step_1b(_PLURALS.apply(word), r1)
    if word[-1] in "yY" and has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _STEP_3.apply(_STEP_2.apply(word, r1), r1)
    return _step_5(_step_4(word, r2), r1, r2).lower()


def _step_1b(word: str, r1: int) -> str:
    if word.endswith("eed"):
        return word[:-1] if len(word) - 3 >= r1 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            start = word[: -len(ending)]
            return _tidy(start, r1) if has_vowel(start) else word
    return word


def _tidy(word: str, r1: int) -> str:
    """After -ed or -ing went: conflat(ed) -> conflate, hopp(ing) -> hop, fil(ing) -> file."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if ends_in_double(word) and word[-1] not in "lsz":
        return word[:-1]
    return word + "e" if len(word) == r1 and ends_in_short_syllable(word) else word


def _step_4(word: str, r2: int) -> str:
    # -ion goes only after s or t, which stay.
    if word.endswith(("sion", "tion")):
        return word[:-3] if len(word) - 3 >= r2 else word
    return _STEP_4.apply(word, r2)


def _step_5(word: str, r1: int, r2: int) -> str:
    at = len(word) - 1
    if word.endswith("e") and (at >= r2 or (at >= r1 and not ends_in_short_syllable(word[:-1]))):
        word, at = word[:-1], at - 1
    return word[:-1] if word.endswith("ll") and at >= r2 else word
