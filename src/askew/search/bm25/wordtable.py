"""A hash table of distinct words as bytes, for compiled loops. Each word has a number; a new word gets the next one.

A slot has a key beside a number. The key of a word of up to eight bytes is the word itself, so one memory access is
enough. The key of a longer word is a hash, and its bytes are compared as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from askew.core.compiled import compiled

SEED, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
SHORT = 8
_MIX, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
_ONE = np.uint64(1)
# The most bytes of a word. A table always has room for one more word.
LONGEST = 1 << 11


class WordTable:
    """Words by number. Compiled loops fill the arrays and stop when they are full; ``grow`` enlarges them."""

    def __init__(self) -> None:
        self.slots = np.zeros((1 << 12, 2), np.uint64)
        self.spans = np.empty((1 << 11, 2), np.int64)
        self.blob = np.empty(1 << 16, np.uint8)
        self.known, self.used = 0, 0

    def grow(self) -> None:
        """Enlarge the table to four times as many words."""
        self.slots = np.zeros((4 * len(self.slots), 2), np.uint64)
        self.spans = np.concatenate(
            [self.spans[: self.known], np.empty((len(self.slots) // 2 - self.known, 2), np.int64)]
        )
        self.blob = np.concatenate([self.blob[: self.used], np.empty(4 * len(self.blob) - self.used, np.uint8)])
        _fill_slots(self.blob, self.spans, self.known, self.slots)

    def words(self, first: int = 0) -> list[str]:
        """The words from number ``first`` on."""
        if first == self.known:
            return []
        start = int(self.spans[first, 0])
        text = self.blob[start : self.used].tobytes()
        return [text[a:b].decode() for a, b in (self.spans[first : self.known] - start).tolist()]


@compiled(forceinline=True)
def key_of(size: int, first: Any, hashed: Any) -> Any:
    """The key of a word, from its size in bytes, its first eight bytes as a number, and a hash of the other bytes."""
    return first if size <= SHORT else (first * _MIX) ^ hashed


@compiled
def key_of_bytes(blob: Any, start: int, stop: int) -> Any:
    """The key of a word in the blob."""
    first, hashed = np.uint64(0), SEED
    for i in range(start, stop):
        if i - start < SHORT:
            first |= np.uint64(blob[i]) << np.uint64(8 * (i - start))
        else:
            hashed = (hashed ^ np.uint64(blob[i])) * PRIME
    return key_of(stop - start, first, hashed)


@compiled(forceinline=True)
def _slot_of(key: Any, slots: Any) -> Any:
    mixed = key * _MIX
    return np.int64((mixed ^ mixed >> _HALF) & np.uint64(len(slots) - 1))


@compiled(forceinline=True)
def number_of(blob: Any, start: int, stop: int, key: Any, slots: Any, spans: Any, known: int) -> int:
    """The number of a word in the table. A new word is added under ``known``, the next free number."""
    slot = _slot_of(key, slots)
    is_long = np.uint64(stop - start > SHORT)
    while slots[slot, 1] != 0:
        if slots[slot, 0] == key and slots[slot, 1] & _ONE == is_long:
            word = np.int64(slots[slot, 1] >> _ONE) - 1
            if not is_long or _is_same(blob, start, stop, spans[word, 0], spans[word, 1]):
                return int(word)
        slot = (slot + 1) & (len(slots) - 1)
    slots[slot, 0], slots[slot, 1] = key, np.uint64(known + 1) << _ONE | is_long
    spans[known, 0], spans[known, 1] = start, stop
    return known


@compiled
def _is_same(blob: Any, start: int, stop: int, other: int, other_stop: int) -> bool:
    if other_stop - other != stop - start:
        return False
    for i in range(stop - start):  # noqa: SIM110 - compiled, a generator is not
        if blob[other + i] != blob[start + i]:
            return False
    return True


@compiled
def _fill_slots(blob: Any, spans: Any, known: int, slots: Any) -> None:
    for word in range(known):
        key = key_of_bytes(blob, spans[word, 0], spans[word, 1])
        slot = _slot_of(key, slots)
        while slots[slot, 1] != 0:
            slot = (slot + 1) & (len(slots) - 1)
        is_long = np.uint64(spans[word, 1] - spans[word, 0] > SHORT)
        slots[slot, 0], slots[slot, 1] = key, np.uint64(word + 1) << _ONE | is_long
