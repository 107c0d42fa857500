"""A filter by simple rules: length, repeats, lost numbers and names, negation, placeholders, language, characters."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from askew.core.errors import ConfigError
from askew.core.plugins import Positive
from askew.rewrite.names import KeptNames
from askew.rewrite.words import (
    LanguageCheck,
    adds_number,
    has_numbers,
    negation_differs,
    numbers,
    parts_of_numbers,
    readings,
    tokens,
)

FORBIDDEN = "forbidden character"
TOO_SHORT = "too short"
TOO_LONG = "too long"
OUT_OF_PROPORTION = "much longer than the original"
REPEATED = "original repeated"
DUPLICATE = "duplicate"
NUMBER_LOST = "number lost"
NUMBER_ADDED = "number added"
NAME_LOST = "name lost"
NEGATION_CHANGED = "negation changed"
OTHER_LANGUAGE = "other language"
PLACEHOLDER = "placeholder"

# Words that models write in place of a question word, and that people do not type: "which thing was X used for".
_PLACEHOLDERS = {(first, "thing") for first in ("the", "what", "which")} | {("the", "things"), ("which", "things")}

_THINGS = frozenset(("thing", "things"))

# At a certainty of 0.5, 1 in 100 candidates and 2 in 100 rewrites that keep the meaning are dropped
# (benchmarks/name_rule.py).
CERTAINTY = 0.5

# Control characters, line ends, marks that change the direction of writing, lone surrogates, and the replacement
# character. Joiners are allowed: Persian and Hindi need them.
_CONTROL = "\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffd\ufeff"


class _Original:
    """The facts about an original that the rules need, computed once for all its candidates."""

    def __init__(self, text: str, certainty: float) -> None:
        words = self.words = tokens(text)
        self.size = len(words)
        self.normal = " ".join(words)
        # The numbers as they are typed: a candidate that has the same words needs no further check of numbers.
        self.typed = parts_of_numbers(words)
        self.numbers = numbers(text) if self.typed else self.typed
        self.readings = readings(text) if self.typed else self.typed
        self.names = KeptNames(text, certainty)
        self.has_thing = not _THINGS.isdisjoint(words)


def _has_placeholder(words: Sequence[str]) -> bool:
    if _THINGS.isdisjoint(words):
        return False
    # People do type "the things to pack".
    places = zip(words, words[1:], [*words[2:], ""], strict=False)
    return any((first, second) in _PLACEHOLDERS and after != "to" for first, second, after in places)


@dataclass
class RulesFilter:
    """Drops candidates by simple rules: length, repeats, lost names, changed numbers and negation, language.

    The first rule that a candidate breaks is the reason. Case, blanks and punctuation are ignored when candidates are
    compared; of equal candidates the first that breaks no other rule is kept.

    ``max_ratio``      the maximum number of words of a candidate per word of its original; none: no limit.
    ``numbers_kept``   every number of the original must be in the candidate, as digits, spelled out in English, as an
                       ordinal or a Roman numeral (``1,000`` is ``1000``, "season 2" is "second season").
    ``added_numbers``  whether a candidate may have a number in digits that its original lacks.
    ``entities_kept``  every word of a name in the original must be in the candidate, in any case, as a plural, joined
                       ("spiderman") or abbreviated. Names are found in English queries in any case, see
                       ``askew.rewrite.names``; if only some words have capitals, these are names too. Switch it
                       off for languages that write all nouns with a capital.
    ``certainty``      the minimum probability that a word belongs to a name; above 1, only capitals mark names.
    ``negation_kept``  whether a candidate must have an English negation ("not", "without") if its original has one, and
                       none otherwise. Synonyms such as "lack" count as both.
    ``placeholders``   whether a candidate may have "which thing", "what thing" or "the thing" if its original has no
                       "thing".
    ``language``       a code such as "en", or "any": askew.rewrite.words describes the limits of this check.
    ``banned``         characters that no candidate may have, in addition to control characters.
    """

    name = "rules"

    min_words: int = 1
    max_words: int = 64
    max_ratio: Positive | None = None
    duplicates: bool = False
    same_as_original: bool = False
    numbers_kept: bool = True
    added_numbers: bool = False
    entities_kept: bool = True
    certainty: Positive = CERTAINTY
    negation_kept: bool = True
    placeholders: bool = False
    language: str = "any"
    banned: str = ""

    def __post_init__(self) -> None:
        """Check the limits, and prepare the check of the language."""
        if not 0 <= self.min_words <= self.max_words:
            raise ConfigError(
                "filter 'rules': expected 0 <= min_words <= max_words, "
                f"found min_words={self.min_words} and max_words={self.max_words}"
            )
        self._language = None if self.language == "any" else LanguageCheck(self.language)
        self._forbidden = re.compile(f"[{_CONTROL}{re.escape(self.banned)}]")

    def settings(self) -> Mapping[str, Any]:
        """All rules and their limits."""
        rules = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**rules, "banned": "".join(sorted(set(self.banned)))}

    def check(self, originals: Sequence[str], candidates: Sequence[str], rows: Sequence[int]) -> list[str | None]:
        """Return one value for each candidate: the first rule that the candidate breaks, or None if it breaks none."""
        # The model of names is for English.
        certainty = self.certainty if self.language in ("any", "en") else math.inf
        originals_by_text: dict[str, _Original] = {}
        passed: set[tuple[int, str]] = set()
        reasons: list[str | None] = []
        for text, candidate, row in zip(originals, candidates, rows, strict=True):
            original = originals_by_text.get(text)
            if original is None:
                original = originals_by_text[text] = _Original(text, certainty)
            words = tokens(candidate)
            normal = (row, " ".join(words))
            reason = self._broken(original, candidate, words, normal[1])
            if reason is None and not self.duplicates and normal in passed:
                reason = DUPLICATE
            if reason is None:
                passed.add(normal)
            reasons.append(reason)
        return reasons

    def _broken(self, original: _Original, candidate: str, words: list[str], normal: str) -> str | None:
        size = len(words)
        if self._forbidden.search(candidate):
            return FORBIDDEN
        if size < self.min_words:
            return TOO_SHORT
        if size > self.max_words:
            return TOO_LONG
        if self.max_ratio is not None and size > self.max_ratio * max(1, original.size):
            return OUT_OF_PROPORTION
        if not self.same_as_original and normal == original.normal:
            return REPEATED
        return self._lost(original, candidate, words, normal)

    def _lost(self, original: _Original, candidate: str, words: list[str], normal: str) -> str | None:
        typed = original.typed
        if self.numbers_kept and typed and not typed.issubset(words) and not has_numbers(candidate, original.numbers):
            return NUMBER_LOST
        # Without blanks, only letters are left in most candidates.
        has_digits = not normal.replace(" ", "").isalpha()
        if has_digits and not self.added_numbers and adds_number(candidate, original.readings):
            return NUMBER_ADDED
        if self.entities_kept and original.names.lost_in(candidate, words):
            return NAME_LOST
        english = self.language in ("any", "en")
        if self.negation_kept and english and negation_differs(original.words, words):
            return NEGATION_CHANGED
        return self._unfit(original, candidate, words)

    def _unfit(self, original: _Original, candidate: str, words: list[str]) -> str | None:
        if not self.placeholders and not original.has_thing and _has_placeholder(words):
            return PLACEHOLDER
        if self._language is not None and self._language.refuses(candidate):
            return OTHER_LANGUAGE
        return None
