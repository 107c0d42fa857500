"""The definition of a specializing reformulation, its terms and its vocabulary; ``pairs`` finds reformulations.

It follows the GSQR paper (Raj et al., Patterns of Gender-Specializing Query Reformulation, SIGIR 2023).

**Terms.** A query is lower-cased, curly quotes become straight ones, and it is cut at white space and control
characters. Quotes, brackets and the marks ``, . ; : ! ?`` are stripped from both ends of each part. A part without a
letter, a digit or a non-ASCII character is not a term. So "Women's" becomes ``women's``, and "-men" (which excludes a
word) does not become ``men``.

**Specializing.** The second query has all terms of the first, in order, and one contiguous block of added terms at any
place: before, between or after them.

**For a group.** The block is a sequence of group terms and prepositions, with at least one group term. Terms of several
words ("according to") match if their words are adjacent.

Details that the GSQR paper does not define: a block may have several group terms (section 4.1 says "at least one"). An
event with terms of more than one group is assigned to ``several`` and to no single group. If terms repeat, the block
can have several positions. The leftmost position where it is a block for a group is taken, or else the leftmost one. If
a block can be segmented in several ways, the longest term from the left is taken. A block of more than 64 words is
never a block for a group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from askew.core.errors import ConfigError
from askew.core.files import DATA
from askew.core.lexicon import Lexicon, load_lexicon

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
    """The terms joined by single spaces. Queries with equal canonical texts are the same query."""
    return " ".join(terms(query))


@dataclass(frozen=True, eq=False)
class LogVocabulary:
    """Group terms and prepositions as canonical texts. A mask has one bit per group, in order."""

    groups: tuple[str, ...]
    masks: Mapping[str, int]
    prefixes: Mapping[str, int]
    prepositions: frozenset[str]

    @cached_property
    def longest(self) -> int:
        """The number of words of the longest term."""
        return max(text.count(" ") + 1 for text in (*self.masks, *self.prepositions, ""))

    def mask(self, text: str) -> int | None:
        """The mask of the groups that a term names; 0 for a preposition, None for any other text."""
        mask = self.masks.get(text, 0)
        if " " not in text:
            for prefix, groups in self.prefixes.items():
                mask |= groups if text.startswith(prefix) else 0
        return mask if mask or text in self.prepositions else None


@lru_cache(maxsize=1 << 16)  # the same few blocks are added again and again
def read_block(block: str, vocabulary: LogVocabulary) -> tuple[int, int]:
    """The mask of the groups of a block, and its number of group terms; zeros if it is not for a group."""
    words = block.split(" ")
    count = len(words)
    if count > MOST_WORDS:
        return 0, 0
    # From right to left: after a term, the remaining words must be terms too.
    sizes, masks = [0] * count, [0] * count
    for start in reversed(range(count)):
        for end in range(min(start + vocabulary.longest, count), start, -1):
            mask = vocabulary.mask(" ".join(words[start:end])) if end == count or sizes[end] else None
            if mask is not None:
                sizes[start], masks[start] = end - start, mask
                break
    at = groups = group_terms = 0
    while at < count and sizes[at]:
        groups, group_terms, at = groups | masks[at], group_terms + (masks[at] > 0), at + sizes[at]
    return (groups, group_terms) if at == count else (0, 0)


class Specialization(NamedTuple):
    """A second query with a block of added terms; ``head`` and ``tail`` are the terms before and after it.

    ``mask`` has the groups of the block and ``terms`` its number of group terms; both are 0 if it is not for a group.
    """

    head: str
    block: str
    tail: str
    mask: int
    terms: int


def specialization(first: str, second: str, vocabulary: LogVocabulary) -> Specialization | None:
    """How the second of two canonical queries specializes the first, or None if it does not."""
    old, new = first.split(" "), second.split(" ")
    added = len(new) - len(old)
    if added < 1:
        return None
    lead = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), len(old))
    backward = zip(reversed(old), reversed(new), strict=False)
    trail = next((at for at, (a, b) in enumerate(backward) if a != b), len(old))
    leftmost = None
    for place in range(len(old) - trail, lead + 1):
        end = place + added
        block = " ".join(new[place:end])
        mask, terms = read_block(block, vocabulary)
        if mask or leftmost is None:
            specialized = Specialization(" ".join(new[:place]), block, " ".join(new[end:]), mask, terms)
            if mask:
                return specialized
            leftmost = specialized
    return leftmost


def build_vocabulary(lexicon: Lexicon, prepositions: Iterable[str] | None = None) -> LogVocabulary:
    """Build the vocabulary of a lexicon and of prepositions (default: the 16 of the GSQR paper)."""
    if taken := [group for group in lexicon.groups if group in (ALL, SEVERAL)]:
        raise ConfigError(
            f"lexicon {lexicon.name!r}: a group has the name {taken[0]!r}, which is reserved; rename the group"
        )
    masks: dict[str, int] = {}
    prefixes: dict[str, int] = {}
    for number, words in enumerate(lexicon.groups.values()):
        for word in words:
            # A trailing star marks a prefix term and is not part of the text.
            prefix = word.endswith("*") and " " not in word
            text = canonical(word.removesuffix("*"))
            if text:
                table = prefixes if prefix else masks
                table[text] = table.get(text, 0) | 1 << number
    if len(lexicon.groups) > MOST_GROUPS:
        raise ConfigError(
            f"lexicon {lexicon.name!r}: expected at most {MOST_GROUPS} groups, found {len(lexicon.groups)}"
        )
    texts = published_prepositions() if prepositions is None else prepositions
    return LogVocabulary(lexicon.group_names, masks, prefixes, frozenset(filter(None, map(canonical, texts))))


@lru_cache(maxsize=1)
def published_prepositions() -> tuple[str, ...]:
    """The 16 prepositions of the GSQR paper."""
    return load_lexicon(LOG_DATA / "gsqr2023-prepositions.toml").groups["preposition"]
