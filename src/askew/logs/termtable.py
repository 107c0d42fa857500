"""Hash tables of terms for the compiled loops. A term of any number of words is looked up by its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from askew.compiled import compiled
from askew.logs.definition import LogVocabulary

_OFFSET = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_SHIFT = np.uint64(32)


@dataclass(frozen=True)
class TermTable:
    """A hash table. Slots point to entries; entry i is the text from ``bounds[i]`` to ``bounds[i + 1]``, with a value.

    ``prefixes`` are the lengths in bytes of the prefix terms.
    """

    slots: Any
    texts: Any
    bounds: Any
    values: Any
    is_prefix: Any
    prefixes: Any
    longest: int

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arguments for the compiled loops."""
        return self.slots, self.texts, self.bounds, self.values, self.is_prefix, self.prefixes, self.longest


def vocabulary_table(vocabulary: LogVocabulary) -> TermTable:
    """The table of group terms with their masks and prepositions with 0."""
    values = {**dict.fromkeys(vocabulary.prepositions, 0), **vocabulary.masks}
    return build_table(values, vocabulary.prefixes)


def build_table(values: Mapping[str, int], prefixes: Mapping[str, int] | None = None) -> TermTable:
    """Build a table of canonical texts and prefixes with their values."""
    given = prefixes or {}
    entries = [*((t, v, False) for t, v in values.items()), *((t, v, True) for t, v in given.items())]
    encoded = [text.encode() for text, _, _ in entries]
    bounds = np.zeros(len(entries) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=bounds[1:])
    texts = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
    size = 1 << max(4, (2 * len(entries)).bit_length())
    slots = np.full(size, -1, np.int64)
    is_prefix = np.array([flag for _, _, flag in entries] or [False], np.bool_)
    for number in range(len(entries)):
        slot = int(_hash(texts, int(bounds[number]), int(bounds[number + 1]))) & (size - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = number
    lengths = sorted({len(text.encode()) for text in given})
    longest = max((text.count(" ") + 1 for text in values), default=1)
    masks = np.array([value for _, value, _ in entries] or [-1], np.int64)
    return TermTable(slots, texts, bounds, masks, is_prefix, np.array(lengths, np.int64), longest)


@compiled
def _hash(data: Any, start: int, end: int) -> Any:
    value = _OFFSET
    for at in range(start, end):
        value = (value ^ np.uint64(data[at])) * _PRIME
    return value ^ value >> _SHIFT


@compiled
def find(data: Any, start: int, end: int, prefix: bool, slots: Any, texts: Any, bounds: Any, is_prefix: Any) -> int:
    """The entry with the text ``data[start:end]``, or -1."""
    slot = np.int64(_hash(data, start, end) & np.uint64(len(slots) - 1))
    while slots[slot] >= 0:
        entry = slots[slot]
        begin = bounds[entry]
        if bounds[entry + 1] - begin == end - start and is_prefix[entry] == prefix:
            same = True
            for i in range(end - start):
                if texts[begin + i] != data[start + i]:
                    same = False
                    break
            if same:
                return int(entry)
        slot = (slot + 1) & (len(slots) - 1)
    return -1


@compiled
def value_of(
    data: Any, start: int, end: int, one_word: bool,
    slots: Any, texts: Any, bounds: Any, values: Any, is_prefix: Any, prefixes: Any,
) -> Any:  # fmt: skip
    """The value of ``data[start:end]``, combined for a single word with its matching prefixes; -1 if there is none."""
    entry = find(data, start, end, False, slots, texts, bounds, is_prefix)
    value: Any = np.int64(-1) if entry < 0 else values[entry]
    if one_word:
        for size in prefixes:
            if size <= end - start:
                entry = find(data, start, start + size, True, slots, texts, bounds, is_prefix)
                if entry >= 0:
                    value = max(value, 0) | values[entry]
    return value
