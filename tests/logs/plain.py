"""The definition of askew.logs.definition in plain Python. The analysis of a log must agree with it."""

import functools
import operator
from dataclasses import dataclass

from askew.logs.definition import MOST_WORDS, terms


def longest(vocabulary):
    """The number of words of the longest term."""
    return max(text.count(" ") + 1 for text in (*vocabulary.masks, *vocabulary.prepositions, ""))


def mask_of(words, vocabulary):
    """The mask of the groups that this term names; 0 for a preposition, None for any other text."""
    text = " ".join(words)
    found = vocabulary.masks.get(text, 0)
    if len(words) == 1:
        for prefix, mask in vocabulary.prefixes.items():
            found |= mask if text.startswith(prefix) else 0
    return found if found or text in vocabulary.prepositions else None


@dataclass(frozen=True)
class Specialization:
    """An added block: its position in the second query, its terms, the mask of its groups and its group terms."""

    place: int
    block: tuple[str, ...]
    mask: int = 0
    group_terms: int = 0


def specialization(first, second, vocabulary):
    """How the second query specializes the first, or None if it does not. A mask of 0 means: not for a group."""
    old, new = terms(first), terms(second)
    added = len(new) - len(old)
    if not old or added < 1:
        return None
    places = [p for p in range(len(old) + 1) if new[:p] == old[:p] and new[p + added :] == old[p:]]
    for place in places:
        read = read_block(new[place : place + added], vocabulary)
        if any(read or ()):
            mask = functools.reduce(operator.or_, read or [])
            return Specialization(place, new[place : place + added], mask, sum(one > 0 for one in read or []))
    return Specialization(places[0], new[places[0] : places[0] + added]) if places else None


def read_block(block, vocabulary):
    """The masks of a block's terms (0 for a preposition), or None if the block has any other word."""
    if len(block) > MOST_WORDS:
        return None
    # From right to left, each position once: after a term, the remaining words must be readable, too.
    sizes, masks = [0] * len(block), [0] * len(block)
    for start in reversed(range(len(block))):
        for size in range(min(longest(vocabulary), len(block) - start), 0, -1):
            mask = mask_of(block[start : start + size], vocabulary)
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
