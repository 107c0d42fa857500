"""Keep the k best documents so far, as 64-bit keys.

A key has the bits of the score in its high half and the reversed document number in its low half. One comparison
orders keys by score and, for equal scores, by the order of the collection.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from askew.compiled import compiled
from askew.sorting import sort_ascending

_SMALL_K = 48
# A sum this close below a 32-bit score may round to it, and win the tie by its earlier position in the collection.
TIE = 1.0 - 1.2e-7


class KeptHits(NamedTuple):
    """The keys that are kept, and the score that a document must reach (``floor[0]``)."""

    keys: Any
    floor: Any
    as_float: Any
    as_bits: Any


@compiled
def keep_best(keys: Any, size: int, k: int) -> None:
    """Move the k highest keys to the front (quickselect)."""
    low, high = 0, size - 1
    while low < high:
        pivot = keys[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while keys[i] > pivot:
                i += 1
            while keys[j] < pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            return


@compiled
def _lowest(keys: Any, size: int) -> Any:
    lowest = keys[0]
    for i in range(1, size):
        lowest = min(lowest, keys[i])
    return lowest


@compiled
def lowest_score(best: KeptHits, size: int) -> Any:
    """The lowest score among the first ``size`` keys."""
    best.as_bits[0] = np.uint32(_lowest(best.keys, size) >> np.uint64(32))
    return np.float64(best.as_float[0])


@compiled(forceinline=True)
def offer(score: Any, doc: int, k: int, size: int, best: KeptHits) -> int:
    """Add a document to the best so far, and return the new number of keys."""
    keys = best.keys
    best.as_float[0] = score
    key = np.uint64(best.as_bits[0]) << np.uint64(32) | np.uint64(0xFFFFFFFF - doc)
    if k <= _SMALL_K:
        # For small k the keys are kept sorted, and the floor is always the k-th score.
        if size == k and key < keys[size - 1]:
            return size
        at = size if size < k else k - 1
        while at > 0 and keys[at - 1] < key:
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = key
        size = min(size + 1, k)
        if size == k:
            best.as_bits[0] = np.uint32(keys[k - 1] >> np.uint64(32))
            best.floor[0] = max(best.floor[0], np.float64(best.as_float[0]) * TIE)
        return size
    keys[size] = key
    size += 1
    if size == 2 * k:
        keep_best(keys, size, k)
        best.floor[0] = max(best.floor[0], lowest_score(best, k) * TIE)
        return k
    return size


@compiled
def sort_best(best: KeptHits, size: int, k: int) -> int:
    """Sort the k best of the first ``size`` keys, the best first, and return their number."""
    keys = best.keys
    if size > k:
        keep_best(keys, size, k)
        size = k
    sort_ascending(keys[:size])
    for i in range(size >> 1):
        keys[i], keys[size - 1 - i] = keys[size - 1 - i], keys[i]
    return size


@compiled
def write_best(best: KeptHits, size: int, docs: Any, scores: Any) -> None:
    """Write the documents and scores of the keys."""
    for i in range(size):
        best.as_bits[0] = np.uint32(best.keys[i] >> np.uint64(32))
        scores[i] = best.as_float[0]
        docs[i] = np.int32(np.uint64(0xFFFFFFFF) - (best.keys[i] & np.uint64(0xFFFFFFFF)))
