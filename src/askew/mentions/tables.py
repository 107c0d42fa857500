"""The arrays of the compiled scan: a hash table of tokens, a trie of phrases, Unicode tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from askew.core.text import word_code_points
from askew.core.vocabulary import GroupVocabulary
from askew.mentions.layout import (
    ALL_BITS,
    EDGE_COLUMNS,
    ENTRY,
    ENTRY_COLUMNS,
    EXACT,
    FILTER_BIT_MASK,
    FILTER_BIT_SHIFT,
    FILTER_WORD_SHIFT,
    FILTER_WORDS,
    IS_PREFIX,
    KEY,
    LENGTH,
    MASK,
    MULTIPLIER,
    NEXT,
    NODE,
    SLOT_SHIFT,
    TEXT,
)

_CODE_POINTS = 0x110000
# Two characters that cannot be lower-cased one by one; see ``askew.mentions.scan``.
_CONTEXT_SENSITIVE = (0x0130, 0x03A3)
_Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class ScanTables:
    """The arrays of a vocabulary that the scan reads; see ``askew.mentions.layout`` for their columns."""

    maybe: _Array
    slots: _Array
    entries: _Array
    texts: _Array
    edges: _Array
    prefixes: _Array


class _Entries:
    """Numbers tokens and prefixes in the order of their first use."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[bytes, bool], int] = {}

    def number(self, text: str, prefix: bool = False) -> int:
        return self.numbers.setdefault((text.encode(), prefix), len(self.numbers))


def build_scan_tables(vocabulary: GroupVocabulary) -> ScanTables:
    """Convert a vocabulary to flat arrays."""
    found = _Entries()
    masks = {found.number(word): mask for word, mask in vocabulary.words.items()}
    masks |= {found.number(prefix, True): mask for prefix, mask in vocabulary.prefixes.items()}
    edges, roots = _build_trie(vocabulary, found.number)
    slots, entries, texts = _build_table(found.numbers)
    for entry in range(len(found.numbers)):
        entries[entry, MASK] = masks.get(entry, 0)
        entries[entry, NODE] = roots.get(entry, -1)
    lengths = sorted({len(prefix.encode()) for prefix in vocabulary.prefixes})
    return ScanTables(_build_filter(vocabulary), slots, entries, texts, edges, np.array(lengths, np.int64))


def _build_filter(vocabulary: GroupVocabulary) -> _Array:
    words = [0] * FILTER_WORDS
    for word in [*vocabulary.words, *vocabulary.phrases]:
        hashed = _hashed(_key(word.encode()))
        words[hashed >> FILTER_WORD_SHIFT] |= 1 << (hashed >> FILTER_BIT_SHIFT & FILTER_BIT_MASK)
    return np.array(words, np.uint64)


def _build_trie(vocabulary: GroupVocabulary, number: Callable[[str], int]) -> tuple[_Array, dict[int, int]]:
    """Edges (from node, entry, to node, mask of the phrase that ends there) and the root of each first token."""
    nodes: dict[tuple[int, int], int] = {}
    masks: dict[int, int] = {}
    roots: dict[int, int] = {}
    for phrases in vocabulary.phrases.values():
        for phrase, mask in phrases:
            first, *rest = (number(token) for token in phrase)
            node = roots.setdefault(first, -2 - first)
            for entry in rest:
                node = nodes.setdefault((node, entry), len(nodes))
            masks[node] = mask
    rows = [(start, entry, to, masks.get(to, 0)) for (start, entry), to in nodes.items()]
    # The number of a root must differ from -1 ("no phrase starts here") and from the number of any other node.
    renumbered = {root: len(nodes) + i for i, root in enumerate(roots.values())}
    rows = [(renumbered.get(start, start), entry, to, mask) for start, entry, to, mask in rows]
    edges = np.array(rows, np.int64).reshape(len(rows), EDGE_COLUMNS)
    return edges, {first: renumbered[root] for first, root in roots.items()}


def _build_table(numbers: dict[tuple[bytes, bool], int]) -> tuple[_Array, _Array, _Array]:
    """A hash table with open addressing on the first eight bytes. Entries with the same first bytes are chained."""
    size = 1 << max(6, (8 * max(len(numbers), 1)).bit_length())
    slots = np.full((size, 2), ALL_BITS, np.uint64)
    entries = np.zeros((max(len(numbers), 1), ENTRY_COLUMNS), np.int64)
    texts = bytearray()
    for (text, prefix), entry in numbers.items():
        key = _key(text)
        slot = _hashed(key) >> SLOT_SHIFT & (size - 1)
        while slots[slot, ENTRY] != ALL_BITS and slots[slot, KEY] != key:
            slot = (slot + 1) & (size - 1)
        entries[entry, NEXT] = -1 if slots[slot, ENTRY] == ALL_BITS else int(slots[slot, ENTRY])
        entries[entry, TEXT], entries[entry, LENGTH] = len(texts), len(text)
        entries[entry, IS_PREFIX] = prefix
        entries[entry, EXACT] = _exact(text) if not prefix else 0
        texts += text
        slots[slot, KEY], slots[slot, ENTRY] = key, entry
    return slots, entries, np.frombuffer(bytes(texts) or b"\0", np.uint8)


def _hashed(key: int) -> int:
    return key * MULTIPLIER & ALL_BITS


def _key(text: bytes) -> int:
    """The key as in the scan: the first eight bytes, folded. Fewer bytes are shifted to the upper end."""
    start = bytes(byte | 0x20 for byte in text[:8])
    return int.from_bytes(start, "little") << (64 - 8 * len(start))


def _exact(text: bytes) -> int:
    """The first eight bytes without folding, in the layout of ``_key``, as a signed number."""
    value = int.from_bytes(text[:8], "little") << (64 - 8 * len(text[:8]))
    return value - (1 << 64) if value >> 63 else value


@cache
def lower_table() -> _Array:
    """The lower case of each code point; -1 if it depends on context."""
    lower = np.arange(_CODE_POINTS, dtype=np.int32)
    for point in range(0x20000):
        lowered = chr(point).lower()
        if len(lowered) == 1:
            lower[point] = ord(lowered)
    lower[list(_CONTEXT_SENSITIVE)] = -1
    return lower


@cache
def word_table(python_rule: bool) -> _Array:
    """Which code points are inside a word: askew's rule, or Python's ``\\w``."""
    table = np.zeros(_CODE_POINTS, np.uint8)
    if python_rule:
        points = [p for p in range(0x40000) if chr(p).isalnum() or p == ord("_")]
    else:
        points = sorted(word_code_points())
    table[points] = 1
    return table
