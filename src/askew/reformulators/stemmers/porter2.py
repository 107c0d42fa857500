"""Porter2, the English stemmer of Snowball, from its published rules as they were from 2006 to 2024.

Snowball 3 (2025) changed some of them (added -> add, biologist -> biolog, more exceptions). Published work uses the
earlier rules, as NLTK does. Source: snowballstem.org, the English stemmer.
"""

from __future__ import annotations

from askew.core.porter import (
    VOWELS,
    ends_in_double,
    ends_in_short_syllable,
    has_vowel,
    mark_consonant_y,
    region_after,
    rules,
)

_WHOLE_WORDS = {
    "skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "idly": "idl", "gently": "gentl",
    "ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl",
    **{word: word for word in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")},
}  # fmt: skip
_WHOLE_AFTER_PLURALS = frozenset(("inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"))
_WHOLE_BEGINNINGS = ("gener", "commun", "arsen")
_POSSESSIVES = rules(drop="' 's 's'")
_STEP_2 = rules({
    "tional": "tion", "enci": "ence", "anci": "ance", "abli": "able", "entli": "ent", "izer": "ize", "ization": "ize",
    "ational": "ate", "ation": "ate", "ator": "ate", "alism": "al", "aliti": "al", "alli": "al", "fulness": "ful",
    "ousli": "ous", "ousness": "ous", "iveness": "ive", "iviti": "ive", "biliti": "ble", "bli": "ble", "ogi": "og",
    "fulli": "ful", "lessli": "less", "li": "",
})  # fmt: skip
# These two endings are removed only after certain letters.
_BEFORE = {"ogi": "l", "li": "cdeghkmnrt"}
_STEP_3 = rules({
    "ational": "ate", "tional": "tion", "alize": "al", "icate": "ic", "iciti": "ic", "ical": "ic", "ful": "",
    "ness": "", "ative": "",
})  # fmt: skip
_STEP_4 = rules(drop="al ance ence er ic able ible ant ement ment ent ism ate iti ous ive ize ion")
_DOUBLES = frozenset("bdfgmnprt")


def stem(word: str) -> str:
    """The stem of a lower-cased word."""
    if word in _WHOLE_WORDS or len(word) <= 2:
        return _WHOLE_WORDS.get(word, word)
    word = mark_consonant_y(word.removeprefix("'"))
    r1 = next((len(start) for start in _WHOLE_BEGINNINGS if word.startswith(start)), None) or region_after(word)
    r2 = region_after(word, r1)
    word = _step_1a(_POSSESSIVES.apply(word))
    if word in _WHOLE_AFTER_PLURALS:
        return word
    word = _step_1c(_step_1b(word, r1))
    word = _step_3(_step_2(word, r1), r1, r2)
    return _step_5(_step_4(word, r2), r1, r2).lower()


def _step_1a(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and has_vowel(word[:-2]):
        return word[:-1]
    return word


def _step_1b(word: str, r1: int) -> str:
    for ending in ("eedly", "eed"):
        if word.endswith(ending):
            start = len(word) - len(ending)
            return word[:start] + "ee" if start >= r1 else word
    for ending in ("ingly", "edly", "ing", "ed"):
        if word.endswith(ending):
            rest = word[: -len(ending)]
            return _tidy(rest, r1) if has_vowel(rest) else word
    return word


def _tidy(word: str, r1: int) -> str:
    """Repair a stem after -ed or -ing was removed: luxuriat(ed) -> luxuriate, hopp(ing) -> hop, hop(ing) -> hope."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if ends_in_double(word) and word[-1] in _DOUBLES:
        return word[:-1]
    return word + "e" if len(word) == r1 and _ends_short(word) else word


def _ends_short(word: str) -> bool:
    """Whether a word ends in a short syllable, or consists of a vowel and a consonant."""
    return ends_in_short_syllable(word) or (len(word) == 2 and word[0] in VOWELS and word[1] not in VOWELS)


def _step_1c(word: str) -> str:
    return word[:-1] + "i" if len(word) > 2 and word[-1] in "yY" and word[-2] not in VOWELS else word


def _step_2(word: str, r1: int) -> str:
    ending = _STEP_2.find(word)
    if ending in _BEFORE and word[: -len(ending)][-1:] not in tuple(_BEFORE[ending]):
        return word
    return _STEP_2.apply(word, r1)


def _step_3(word: str, r1: int, r2: int) -> str:
    return _STEP_3.apply(word, r2 if _STEP_3.find(word) == "ative" else r1)


def _step_4(word: str, r2: int) -> str:
    if _STEP_4.find(word) == "ion" and not word.endswith(("sion", "tion")):
        return word
    return _STEP_4.apply(word, r2)


def _step_5(word: str, r1: int, r2: int) -> str:
    at = len(word) - 1
    if word.endswith("e"):
        return word[:-1] if at >= r2 or (at >= r1 and not _ends_short(word[:-1])) else word
    return word[:-1] if word.endswith("ll") and at >= r2 else word
