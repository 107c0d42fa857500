"""A table of distinct words as bytes, for compiled loops: each word has a number, new ones the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from askew.compiled import compiled

SEED, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
# No word takes more bytes; a table has always room for one more.
LONGEST = 1 << 11


class WordTable:
    """Words by number. Compiled loops fill the arrays and stop when they are full; ``grow`` makes room."""

    def __init__(self) -> None:
        self.slots = np.full(1 << 12, -1, np.int32)
        self.spans = np.empty((1 << 11, 2), np.int64)
        self.blob = np.empty(1 << 16, np.uint8)
        self.known, self.used = 0, 0

    def grow(self) -> None:
        """Make room for four times as many words."""
        self.slots = np.full(4 * len(self.slots), -1, np.int32)
        self.spans = np.concatenate(
            [self.spans[: self.known], np.empty((len(self.slots) // 2 - self.known, 2), np.int64)]
        )
        self.blob = np.concatenate([self.blob[: self.used], np.empty(4 * len(self.blob) - self.used, np.uint8)])
        _fill_slots(self.blob, self.spans, self.known, self.slots)

    def words(self, first: int = 0) -> list[str]:
        """The words from a number on."""
        if first == self.known:
            return []
        start = int(self.spans[first, 0])
        text = self.blob[start : self.used].tobytes()
        return [text[a:b].decode() for a, b in (self.spans[first : self.known] - start).tolist()]


@compiled
def hash_bytes(blob: Any, start: int, stop: int) -> Any:
    """The hash of a word (FNV-1a)."""
    hashed = SEED
    for i in range(start, stop):
        hashed = (hashed ^ np.uint64(blob[i])) * PRIME
    return hashed


@compiled(forceinline=True)
def _slot_of(hashed: Any, slots: Any) -> Any:
    return np.int64((hashed ^ hashed >> np.uint64(29)) & np.uint64(len(slots) - 1))


@compiled(forceinline=True)
def number_of(blob: Any, start: int, stop: int, hashed: Any, slots: Any, spans: Any, known: int) -> int:
    """The number of this word in the table; ``known``, the next free number, if it is new."""
    slot = _slot_of(hashed, slots)
    while slots[slot] >= 0:
        word = slots[slot]
        a, b = spans[word, 0], spans[word, 1]
        if b - a == stop - start:
            same = True
            for i in range(stop - start):
                if blob[a + i] != blob[start + i]:
                    same = False
                    break
            if same:
                return int(word)
        slot = (slot + 1) & (len(slots) - 1)
    slots[slot] = known
    spans[known, 0], spans[known, 1] = start, stop
    return known


@compiled
def _fill_slots(blob: Any, spans: Any, known: int, slots: Any) -> None:
    for word in range(known):
        slot = _slot_of(hash_bytes(blob, spans[word, 0], spans[word, 1]), slots)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = word
