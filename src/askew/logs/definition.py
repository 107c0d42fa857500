"""What a specializing reformulation is, in plain Python: the compiled loops must agree with this file.

**Terms.** A query is lower-cased, curly quotes become straight ones, and it is cut at white space and control
characters. Quotes, brackets and the marks ``, . ; : ! ?`` are taken off both ends of each part. A part without a
letter, a digit or a character beyond ASCII is no term. So "Women's" is ``women's``, and the excluded "-men" is not
``men``.

**Specializing.** The second query has all terms of the first, in order, and one contiguous block of added terms at any
place: before, between or after them.

**For a group.** The block is a sequence of group terms and prepositions, with at least one group term. Terms of several
words ("according to") count where their words stand together.

Where the paper leaves it open: a block may have several group terms (its section 4.1 says "at least one"). Terms of
more than one group make the event one of ``several`` groups, which belongs to no single group. Repeated terms can let
the block stand at several places; then it is the leftmost one that reads as a block for a group, or the leftmost one
when none does. Where a block can be read in several ways, the longest term from the left is taken. A block of more
than 64 words is never read as one for a group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from askew.core.errors import ConfigError
from askew.core.lexicon import Lexicon, load_lexicon
from askew.core.shipped import DATA

LOG_DATA = DATA / "logs"
ALL, SEVERAL = "all", "several"
MOST_GROUPS = 62
MOST_WORDS = 64
STRIPPED = "\"'`()[]{}<>,.;:!?"
APOSTROPHES = "\u2018\u2019\u02bc\u2032\uff07"
QUOTES = "\u201c\u201d\u201e\u00ab\u00bb\uff02"
BLANKS = "\x00-\x20\x7f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

_STRAIGHT = str.maketrans(dict.fromkeys(APOSTROPHES, "'") | dict.fromkeys(QUOTES, '"'))
_BLANK = re.compile(f"[{BLANKS}]+")
_IN_A_TERM = re.compile(r"[a-z0-9]|[^\x00-\x7f]")


def terms(query: str) -> tuple[str, ...]:
    """The terms of a query."""
    parts = (part.strip(STRIPPED) for part in _BLANK.split(query.lower().translate(_STRAIGHT)))
    return tuple(part for part in parts if _IN_A_TERM.search(part))


def canonical(query: str) -> str:
    """The terms with one blank between them: two queries with the same text are the same query."""
    return " ".join(terms(query))


@dataclass(frozen=True)
class LogVocabulary:
    """Group terms and prepositions as canonical texts; a mask has one bit for each group, in order."""

    groups: tuple[str, ...]
    masks: Mapping[str, int]
    prefixes: Mapping[str, int]
    prepositions: frozenset[str]

    @property
    def longest(self) -> int:
        """The most words that a term has."""
        return max(text.count(" ") + 1 for text in (*self.masks, *self.prepositions, ""))

    def mask(self, words: Sequence[str]) -> int | None:
        """The groups that these words together name; 0 for a preposition, None for anything else."""
        text = " ".join(words)
        found = self.masks.get(text, 0)
        if len(words) == 1:
            for prefix, mask in self.prefixes.items():
                found |= mask if text.startswith(prefix) else 0
        return found if found or text in self.prepositions else None


def build_vocabulary(lexicon: Lexicon, prepositions: Iterable[str] | None = None) -> LogVocabulary:
    """A lexicon, and the prepositions that may stand beside its terms (the published 16 unless others are given)."""
    if taken := [group for group in lexicon.groups if group in (ALL, SEVERAL)]:
        raise ConfigError(
            f"lexicon {lexicon.name!r}: a group called {taken[0]!r} means something else in the tables; rename it"
        )
    masks: dict[str, int] = {}
    prefixes: dict[str, int] = {}
    for number, words in enumerate(lexicon.groups.values()):
        for word in words:
            # The words of a prefix keep their star to themselves: it is no character of a query.
            prefix = word.endswith("*") and " " not in word
            text = canonical(word.removesuffix("*"))
            if text:
                table = prefixes if prefix else masks
                table[text] = table.get(text, 0) | 1 << number
    if len(lexicon.groups) > MOST_GROUPS:
        raise ConfigError(
            f"lexicon {lexicon.name!r}: expected at most {MOST_GROUPS} groups, found {len(lexicon.groups)}"
        )
    given = published_prepositions() if prepositions is None else prepositions
    return LogVocabulary(lexicon.group_names, masks, prefixes, frozenset(filter(None, map(canonical, given))))


@lru_cache(maxsize=1)
def published_prepositions() -> tuple[str, ...]:
    """The 16 prepositions of the paper."""
    return load_lexicon(LOG_DATA / "gsqr2023-prepositions.toml").groups["preposition"]


@dataclass(frozen=True)
class Specialization:
    """An added block: where it begins among the terms of the second query, its terms, and the groups it names."""

    place: int
    block: tuple[str, ...]
    mask: int = 0
    group_terms: int = 0


def specialization(first: str, second: str, vocabulary: LogVocabulary) -> Specialization | None:
    """How the second query specializes the first, or None when it does not; a mask of 0 says: not for a group."""
    old, new = terms(first), terms(second)
    added = len(new) - len(old)
    if not old or added < 1:
        return None
    places = [p for p in range(len(old) + 1) if new[:p] == old[:p] and new[p + added :] == old[p:]]
    for place in places:
        read = read_block(new[place : place + added], vocabulary)
        if any(read or ()):
            return _found(place, new[place : place + added], read or [])
    return Specialization(places[0], new[places[0] : places[0] + added]) if places else None


def read_block(block: Sequence[str], vocabulary: LogVocabulary) -> list[int] | None:
    """The masks of the terms that make up a block (0 for a preposition), or None where it cannot be read as such."""
    if len(block) > MOST_WORDS:
        return None
    # From the right: what a term leaves over must be readable too. Each place is looked at once.
    sizes, masks = [0] * len(block), [0] * len(block)
    for start in reversed(range(len(block))):
        for size in range(min(vocabulary.longest, len(block) - start), 0, -1):
            mask = vocabulary.mask(block[start : start + size])
            if mask is not None and (start + size == len(block) or sizes[start + size]):
                sizes[start], masks[start] = size, mask
                break
    read, at = [], 0
    while at < len(block):
        if not sizes[at]:
            return None
        read.append(masks[at])
        at += sizes[at]
    return read


def _found(place: int, block: tuple[str, ...], read: list[int]) -> Specialization:
    mask = 0
    for one in read:
        mask |= one
    return Specialization(place, block, mask, sum(one > 0 for one in read))
