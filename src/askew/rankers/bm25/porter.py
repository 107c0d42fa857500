"""Porter's stemmer (1980) in the variant Lucene uses, written from the published rules.

Lucene follows Martin Porter's own later program, which departs from the paper in three places: words of two letters
are left alone, -abli becomes -ble as -bli does, and -logi becomes -log.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

_VOWELS = frozenset("aeiou")

_STEP_2 = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble")),
    *(("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate")),
    *(("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al")),
    *(("iviti", "ive"), ("biliti", "ble"), ("logi", "log")),
)
_STEP_3 = (
    *(("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")),
)
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ou", "ism", "ate", "iti"),
    *("ous", "ive", "ize"),
)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The stem of a lower-cased word. Words come again and again, so the last are remembered."""
    # Java counts a character beyond U+FFFF as two.
    if len(word) + sum(char > "\uffff" for char in word) <= 2:
        return word
    word = _step_1a(word)
    word = _step_1b(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replace(word, _STEP_2)
    word = _replace(word, _STEP_3)
    return _step_5(_step_4(word))


def _is_consonant(word: str, i: int) -> bool:
    if word[i] in _VOWELS:
        return False
    if word[i] == "y":
        return i == 0 or not _is_consonant(word, i - 1)
    return True


def _has_vowel(word: str) -> bool:
    return any(not _is_consonant(word, i) for i in range(len(word)))


def _measure(word: str) -> int:
    """m in [C](VC)^m[V]: how often a vowel is followed by a consonant."""
    kinds = [_is_consonant(word, i) for i in range(len(word))]
    return sum(not before and after for before, after in pairwise(kinds))


def _ends_double(word: str) -> bool:
    return len(word) >= 2 and word[-1] == word[-2] and _is_consonant(word, len(word) - 1)


def _ends_cvc(word: str) -> bool:
    """Consonant, vowel, consonant, and the last is not w, x or y: -hop, not -snow."""
    n = len(word)
    if n < 3 or word[-1] in "wxy":
        return False
    return _is_consonant(word, n - 1) and not _is_consonant(word, n - 2) and _is_consonant(word, n - 3)


def _step_1a(word: str) -> str:
    if word.endswith("sses") or word.endswith("ies"):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _step_1b(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix):
            start = word[: -len(suffix)]
            return _tidy(start) if _has_vowel(start) else word
    return word


def _tidy(word: str) -> str:
    """After -ed or -ing went: conflat(ed) -> conflate, hopp(ing) -> hop, fil(ing) -> file."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _ends_double(word) and word[-1] not in "lsz":
        return word[:-1]
    if _measure(word) == 1 and _ends_cvc(word):
        return word + "e"
    return word


def _replace(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    """The longest suffix that fits decides, whether or not its condition holds."""
    fitting = [rule for rule in rules if word.endswith(rule[0])]
    if not fitting:
        return word
    suffix, new = max(fitting, key=lambda rule: len(rule[0]))
    start = word[: -len(suffix)]
    return start + new if _measure(start) > 0 else word


def _step_4(word: str) -> str:
    fitting = [suffix for suffix in _STEP_4 if word.endswith(suffix)]
    if word.endswith(("sion", "tion")):
        fitting.append("ion")
    if not fitting:
        return word
    start = word[: -len(max(fitting, key=len))]
    return start if _measure(start) > 1 else word


def _step_5(word: str) -> str:
    if word.endswith("e"):
        start = word[:-1]
        m = _measure(start)
        if m > 1 or (m == 1 and not _ends_cvc(start)):
            word = start
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word
