"""Stemmed queries: every word is stemmed by one of the eight stemmers of ReQue (Tamannaee et al., CIKM 2020).

Most stemmers have no rules for apostrophes, so a possessive ending is removed first, as in Lucene's English analysis:
women's is stemmed as women. A word with an apostrophe elsewhere (don't, o'brien) is not changed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from importlib import import_module, metadata
from operator import itemgetter
from typing import Any

from askew.core.errors import MissingExtra
from askew.core.files import DATA
from askew.core.porter import (
    VOWELS,
    ends_in_double,
    ends_in_short_syllable,
    has_vowel,
    mark_consonant_y,
    region_after,
    rules,
)
from askew.core.protocols import Candidates, QueryBatch
from askew.core.text import stem as porter_stem
from askew.core.text import word
from askew.rewrite.lexical import SAME

_TABLES = tomllib.loads((DATA / "stemmers.toml").read_text(encoding="utf-8"))

# The ending, the letters before it that forbid the rule, the replacement, and the minimum length of the word.
_RULES = (("ies", "ae", "y", 6), ("es", "aeo", "e", 5), ("s", "us", "", 4))


def s_stem(word: str) -> str:
    """Remove the plural s: -ies becomes -y, -es becomes -e, -s is removed."""
    for ending, forbidden, new, least in _RULES:
        start = word[: -len(ending)]
        if len(word) >= least and word.endswith(ending) and start[-1] not in forbidden:
            return start + new
    return word


# Porter2, the English stemmer of Snowball, from its published rules as they were from 2006 to 2024.

_PORTER2 = _TABLES["porter2"]
_WHOLE_WORDS: dict[str, str] = {**_PORTER2["words"], **{word: word for word in _PORTER2["unchanged"].split()}}
_WHOLE_AFTER_PLURALS = frozenset(_PORTER2["after_plurals"].split())
_WHOLE_BEGINNINGS = ("gener", "commun", "arsen")
_POSSESSIVES = rules(drop="' 's 's'")
_STEP_2, _STEP_3 = rules(_PORTER2["step_2"]), rules(_PORTER2["step_3"])
# These two endings are removed only after certain letters.
_BEFORE = {"ogi": "l", "li": "cdeghkmnrt"}
_STEP_4 = rules(drop="al ance ence er ic able ible ant ement ment ent ism ate iti ous ive ize ion")
_PORTER2_DOUBLES = frozenset("bdfgmnprt")


def porter2_stem(word: str) -> str:
    """The stem of a lower-cased word."""
    if word in _WHOLE_WORDS or len(word) <= 2:
        return _WHOLE_WORDS.get(word, word)
    word = mark_consonant_y(word.removeprefix("'"))
    r1 = next((len(start) for start in _WHOLE_BEGINNINGS if word.startswith(start)), None) or region_after(word)
    r2 = region_after(word, r1)
    word = _POSSESSIVES.apply(word)
    if word.endswith("sses"):
        word = word[:-2]
    elif word.endswith(("ied", "ies")):
        word = word[:-2] if len(word) > 4 else word[:-1]
    elif word.endswith("s") and not word.endswith(("us", "ss")) and has_vowel(word[:-2]):
        word = word[:-1]
    if word in _WHOLE_AFTER_PLURALS:
        return word
    word = _step_1b(word, r1)
    if len(word) > 2 and word[-1] in "yY" and word[-2] not in VOWELS:
        word = word[:-1] + "i"
    ending = _STEP_2.find(word)
    if ending not in _BEFORE or word[: -len(ending)][-1:] in tuple(_BEFORE[ending]):
        word = _STEP_2.apply(word, r1)
    word = _STEP_3.apply(word, r2 if _STEP_3.find(word) == "ative" else r1)
    if _STEP_4.find(word) != "ion" or word.endswith(("sion", "tion")):
        word = _STEP_4.apply(word, r2)
    at = len(word) - 1
    if (word.endswith("e") and (at >= r2 or (at >= r1 and not _ends_short(word[:-1])))) or (
        word.endswith("ll") and at >= r2
    ):
        word = word[:-1]
    return word.lower()


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
    if ends_in_double(word) and word[-1] in _PORTER2_DOUBLES:
        return word[:-1]
    return word + "e" if len(word) == r1 and _ends_short(word) else word


def _ends_short(word: str) -> bool:
    """Whether a word ends in a short syllable, or consists of a vowel and a consonant."""
    return ends_in_short_syllable(word) or (len(word) == 2 and word[0] in VOWELS and word[1] not in VOWELS)


# The Paice/Husk stemmer (Another stemmer, SIGIR Forum 24, 1990), with the 115 rules of the paper.

_RULE = re.compile(r"([a-z]+)(\*?)(\d)([a-z]*)([>.])")


_BY_LAST_LETTER: dict[str, list[tuple[str, bool, int, str, bool]]] = {}
for _ending, _star, _cut, _new, _mark in _RULE.findall(_TABLES["paicehusk"]["rules"]):
    _rule = (_ending[::-1], _star == "*", int(_cut), _new, _mark == ">")
    _BY_LAST_LETTER.setdefault(_ending[0], []).append(_rule)


def paicehusk_stem(word: str) -> str:
    """The stem of a lower-cased word; a word with digits is not changed."""
    intact, goes_on = True, True
    while goes_on and word.isalpha():
        # The first usable rule: what is left must be acceptable as a stem.
        goes_on = False
        for ending, only_intact, cut, added, continues in _BY_LAST_LETTER.get(word[-1], ()):
            new = word[: len(word) - cut] + added
            if word.endswith(ending) and (intact or not only_intact) and _is_acceptable(new):
                word, goes_on, intact = new, continues, False
                break
    return word


def _is_acceptable(stem: str) -> bool:
    """Whether a stem has two letters and begins with a vowel, or has three letters with a vowel or y among them."""
    if stem[:1] in tuple("aeiou"):
        return len(stem) >= 2
    return len(stem) >= 3 and not frozenset("aeiouy").isdisjoint(stem)


# The Lovins stemmer (Development of a stemming algorithm, Mechanical Translation 11, 1968).

_LOVINS = _TABLES["lovins"]
_DOUBLES = frozenset(letter * 2 for letter in "bdglmnprst")
_RESPELLED = _LOVINS["respelled"]
_CHECKS = {name: (least, re.compile(f"(?:{end})$", re.DOTALL)) for name, (least, end) in _LOVINS["conditions"].items()}
ENDINGS = {ending: _CHECKS[name] for name, endings in _LOVINS["endings"].items() for ending in endings.split()}
_LONGEST, _ANY = max(map(len, ENDINGS)), re.compile("")


def lovins_stem(word: str) -> str:
    """The stem of a lower-cased word."""
    for length in range(min(_LONGEST, len(word) - 2), 0, -1):
        least, end = ENDINGS.get(word[-length:], (len(word), _ANY))
        rest = word[:-length]
        if len(rest) >= least and end.search(rest):
            word = rest
            break
    if word[-2:] in _DOUBLES:
        word = word[:-1]
    for length in range(4, 1, -1):
        if word[-length:] in _RESPELLED:
            new, not_after = _RESPELLED[word[-length:]]
            rest = word[:-length]
            return word if rest[-1:] and rest[-1] in not_after else rest + new
    return word


Stemmer = Callable[[str], str]
_APOSTROPHES = "'\u2019\uff07"
# Increased when the same stemmer gives other candidates.
_VERSION = 2


class StemReformulator:
    """Replaces each word of the query, lower-cased and without a possessive ending, by its stem; keeps the order."""

    reads: frozenset[str] = frozenset()

    def __init__(self, name: str, stem: Stemmer, version: str = "1") -> None:
        self.method = f"stem.{name}"
        self._name, self._stem, self._version = name, stem, version

    def settings(self) -> dict[str, Any]:
        """Return the stemmer, its version, and the version of the splitting into words."""
        return {"stemmer": self._name, "version": self._version, "words": _VERSION}

    def reformulate(self, batch: QueryBatch) -> Candidates:
        """One candidate for each query in which a stem differs from its word."""
        candidates = Candidates()
        # Queries share most of their words, so each distinct word is stemmed once.
        stems: dict[str, str] = {}
        for row, text in enumerate(batch.texts):
            words = words_of(text)
            for typed in words:
                if typed not in stems:
                    owner = typed.removesuffix("'s")
                    stems[typed] = owner if "'" in owner else self._stem(owner) or owner
            changed = [stems[typed] for typed in words]
            if not words:
                candidates.reject("nothing found")
            elif changed == words:
                candidates.reject(SAME)
            else:
                candidates.add(row, " ".join(changed))
        return candidates


def words_of(text: str) -> list[str]:
    """The words of a text, lower-cased. An apostrophe between two letters belongs to the word, and is written ``'``."""
    lowered, words, end = text.lower(), list[str](), 0
    for part in word(text):
        start = lowered.index(part, end)
        if words and start == end + 1 and lowered[end] in _APOSTROPHES:
            words[-1] += f"'{part}"
        else:
            words.append(part)
        end = start + len(part)
    return words


def krovetz() -> StemReformulator:
    """Stems every word by Krovetz's rules with his dictionary (1993); needs the package krovetzstemmer."""
    try:
        package, version = import_module("krovetzstemmer"), metadata.version("krovetzstemmer")
    except ImportError:
        raise MissingExtra("the Krovetz stemmer (krovetzstemmer)", "stemmers") from None
    # The algorithm includes a dictionary of about 30,000 head words, so it is not implemented again here, and the
    # release of the package determines the stems.
    return StemReformulator("krovetz", package.Stemmer().stem, version)


def _maker(name: str, stem: Stemmer, about: str) -> Callable[[], StemReformulator]:
    def make() -> StemReformulator:
        return StemReformulator(name, stem)

    make.__doc__ = about
    return make


lovins = _maker("lovins", lovins_stem, "Stems every word by Lovins's 294 endings (1968).")
paicehusk = _maker("paicehusk", paicehusk_stem, "Stems every word by the rules of Paice and Husk (Lancaster, 1990).")
porter = _maker(
    "porter", porter_stem, "Stems every word by Porter's rules (1980, with the changes of his own program)."
)
porter2 = _maker("porter2", porter2_stem, "Stems every word by Porter2, the English rules of Snowball.")
sstemmer = _maker("sstemmer", s_stem, "Removes the plural s from every word (Harman 1991).")
trunc4 = _maker("trunc4", itemgetter(slice(4)), "Cuts every word after its first four characters.")
trunc5 = _maker("trunc5", itemgetter(slice(5)), "Cuts every word after its first five characters.")
