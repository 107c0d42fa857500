"""Tokenizers by name. These plain versions define the tokens; every faster implementation must give the same ones.

``blank``        the rule of the published bias scripts: lower-case, then split on the one character U+0020 and
                 nothing else, so that "he," is not "he" and two blanks give an empty token.
``word``         lower-cased runs of letters, marks, numbers, connector punctuation and
                 joiners (Unicode categories L, M, N, Pc and U+200C, U+200D); "man's" is "man", "s".
``unclipped``    the default: as ``word``, without words that lost their first letter: a lower-case word right
                 after a full stop that itself follows a word or a closing sign. MS MARCO's passages have hundreds
                 of clipped words, such as a "The" in "channels.he remains". The rule also leaves out the end of an
                 address such as "www.men.com".
``seyedsalehi``  the rule behind the published LIWC values: tags and some punctuation are deleted
                 (not replaced by a blank), then runs of Python's ``\\w``.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

from askew.core import porter
from askew.core.errors import DataError
from askew.core.lexicon import Lexicon

# Porter's stem of a lower-cased word. Recent results are cached, because words recur.
stem = lru_cache(maxsize=1 << 16)(porter.stem)
Tokenizer = Callable[[str], list[str]]

_TAGS = re.compile(r"<[^>]*>")
_DELETED = str.maketrans("", "", ".,?!()-_*#@$%^+/{}[]|")
_PYTHON_WORD = re.compile(r"\w+")
_ASCII_WORD = re.compile(r"[a-z0-9_]+")
# A full stop after one of these characters, or after a word, ends a sentence.
CLOSING = ")]\"'%"
_JOINERS = "\u200c\u200d"
# Beyond this code point Unicode has no word characters today, except the variation selectors.
_LAST_WORD_PLANE = 0x3FFFF
_VARIATION_SELECTORS = range(0xE0100, 0xE01F0)


def blank(text: str) -> list[str]:
    """Split at single blanks, as the published scripts do."""
    return text.lower().split(" ")


def word(text: str) -> list[str]:
    """Unicode words."""
    return word_pattern(text.isascii()).findall(text.lower())


def unclipped(text: str) -> list[str]:
    """Unicode words without clipped words, such as "he" in "channels.he remains"; the default."""
    return word(without_clipped(text))


def without_clipped(text: str) -> str:
    """The text with blanks in place of clipped words, so that all other words keep their positions."""
    if "." not in text:
        return text
    return _clipped_pattern(text.isascii()).sub(lambda match: "." + " " * (len(match[0]) - 1), text)


def end_of_word(text: str, at: int) -> int:
    """The end of the word that begins at this position."""
    while at < len(text) and is_word_character(text[at]):
        at += 1
    return at


def mended(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_clipped(text: str, at: int) -> bool:
    """Whether ``unclipped`` leaves out the word that begins at this position."""
    if at < 2 or text[at - 1] != "." or not "a" <= text[at] <= "z":
        return False
    return is_word_character(text[at - 2]) or text[at - 2] in CLOSING


def seyedsalehi(text: str) -> list[str]:
    """The tokens of the published LIWC measure."""
    return _PYTHON_WORD.findall(strip_for_seyedsalehi(text).lower())


def strip_for_seyedsalehi(text: str) -> str:
    """Delete tags and punctuation as the published LIWC code does."""
    return _TAGS.sub("", text).translate(_DELETED)


def is_word_character(char: str) -> bool:
    """Whether ``word`` keeps this character inside a token."""
    return unicodedata.category(char)[0] in "LMN" or unicodedata.category(char) == "Pc" or char in _JOINERS


@cache
def word_code_points() -> frozenset[int]:
    """All code points that ``word`` keeps inside a token."""
    candidates = [*range(_LAST_WORD_PLANE + 1), *_VARIATION_SELECTORS]
    return frozenset(c for c in candidates if is_word_character(chr(c)))


@cache
def _clipped_pattern(is_ascii: bool) -> re.Pattern[str]:
    inside = "[A-Za-z0-9_]" if is_ascii else _word_class()
    # The pattern begins with the full stop, so that the search skips all other characters.
    return re.compile(f"\\.(?<={inside[:-1]}{re.escape(CLOSING)}]\\.)[a-z]{inside}*")


@cache
def word_pattern(is_ascii: bool) -> re.Pattern[str]:
    """The pattern of the tokens of ``word`` in a lower-cased text."""
    # In ASCII texts the word characters are letters, digits and the underscore. This pattern is six times faster.
    return _ASCII_WORD if is_ascii else re.compile(f"{_word_class()}+")


@cache
def _word_class() -> str:
    points = sorted(word_code_points())
    ranges, start, previous = [], points[0], points[0]
    for point in [*points[1:], -1]:
        if point != previous + 1:
            ranges.append((start, previous))
            start = point
        previous = point
    inner = "".join(f"{re.escape(chr(a))}-{re.escape(chr(b))}" for a, b in ranges)
    return f"[{inner}]"


# The tokens of a lexicon's terms under a tokenizer: single tokens, phrases of several tokens, prefixes.

MAX_GROUPS = 32
_SHOWN = 10


@dataclass(frozen=True)
class GroupVocabulary:
    """Words, phrases and prefixes, each with a mask of its groups: one bit per group, in the order of ``groups``."""

    groups: tuple[str, ...]
    words: dict[str, int] = field(default_factory=dict)
    phrases: dict[str, list[tuple[tuple[str, ...], int]]] = field(default_factory=dict)
    prefixes: dict[str, int] = field(default_factory=dict)

    def match(self, tokens: Sequence[str], at: int) -> tuple[int, int]:
        """The mask of the term at this token (0 if none) and how many tokens it uses up."""
        token = tokens[at]
        for phrase, mask in self.phrases.get(token, ()):
            if tuple(tokens[at : at + len(phrase)]) == phrase:
                return mask, len(phrase)
        if self.prefixes:
            for end in range(1, len(token) + 1):
                if token[:end] in self.prefixes:
                    return self.prefixes[token[:end]], 1
        return self.words.get(token, 0), 1

    def count(self, tokens: Sequence[str]) -> list[int]:
        """How often the tokens name each group. Every faster implementation must give the same counts."""
        counts = [0] * len(self.groups)
        at = 0
        while at < len(tokens):
            mask, used = self.match(tokens, at)
            if mask:
                for group in range(len(counts)):
                    counts[group] += mask >> group & 1
            at += used
        return counts


_MOST_SPELLINGS = 64


def _spellings(term: str) -> set[str]:
    """The term with each accented letter as one character (NFC) and as letter and mark (NFD): texts may have either."""
    composed, decomposed = (unicodedata.normalize(form, term) for form in ("NFC", "NFD"))
    each = [{char, unicodedata.normalize("NFD", char)} for char in composed]
    if composed == decomposed or math.prod(map(len, each)) > _MOST_SPELLINGS:
        return {composed, decomposed}
    return set(map("".join, itertools.product(*each)))


def build_vocabulary(lexicon: Lexicon, tokenize: Tokenizer, tokenizer_name: str) -> GroupVocabulary:
    """Tokenize the terms of a lexicon as texts are tokenized."""
    # Terms of a lexicon are never clipped: "m.d." must not lose its "d".
    tokenize = word if tokenize is unclipped else tokenize
    if len(lexicon.groups) > MAX_GROUPS:
        raise DataError(f"lexicon {lexicon.name!r}: expected at most {MAX_GROUPS} groups, found {len(lexicon.groups)}")
    vocabulary = GroupVocabulary(lexicon.group_names)
    # Name all terms of several tokens that end in ``*``, so that a user can correct them at once.
    ends = [term for terms in lexicon.groups.values() for term in terms if term.endswith("*")]
    wrong = [repr(term) for term in ends if len([token for token in tokenize(term.rstrip("*")) if token]) > 1]
    if wrong:
        shown = ", ".join(wrong[:_SHOWN]) + (f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else "")
        rule = f"a term that ends in '*' must be a single token, but the tokenizer {tokenizer_name!r} splits {shown}"
        forms = "list their forms instead, such as 'police officer' and 'police officers'"
        raise DataError(f"lexicon {lexicon.name!r}: {rule}; {forms}", code="long-prefix")
    for bit, terms in enumerate(lexicon.groups.values()):
        for term in terms:
            for spelling in _spellings(term.rstrip("*")):
                tokens = [token for token in tokenize(spelling) if token]
                if not tokens:
                    why = f"has no token under the tokenizer {tokenizer_name!r}, so it can never match a text"
                    raise DataError(f"lexicon {lexicon.name!r}: the term {term!r} {why}", code="no-token")
                if len(tokens) > 1:
                    vocabulary.phrases.setdefault(tokens[0], []).append((tuple(tokens), 1 << bit))
                else:
                    masks = vocabulary.prefixes if term.endswith("*") else vocabulary.words
                    masks[tokens[0]] = masks.get(tokens[0], 0) | 1 << bit
    for start, phrases in vocabulary.phrases.items():
        merged: dict[tuple[str, ...], int] = {}
        for phrase, mask in phrases:
            merged[phrase] = merged.get(phrase, 0) | mask
        vocabulary.phrases[start] = sorted(merged.items(), key=lambda item: (-len(item[0]), item[0]))
    return vocabulary


# The salt of the split of queries into parts, by their normal text.
SALT = "askew-1"


def normal(text: str) -> str:
    """The normalized text: texts that differ only in case, blanks or punctuation become equal."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(word(folded)) or " ".join(folded.split())
