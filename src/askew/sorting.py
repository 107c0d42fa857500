"""Sorting in compiled loops. NumPy's sorts there take seconds to compile for each type of value; these a fraction."""

from __future__ import annotations

from typing import Any

import numpy as np

from askew.compiled import compiled

_FEW = 16
_DEEPEST = 64


@compiled
def sort_ascending(values: Any) -> None:
    """Put numbers in ascending order, where they are: quicksort, and an insertion sort for what is short."""
    left, right = np.empty(_DEEPEST, np.int64), np.empty(_DEEPEST, np.int64)
    left[0], right[0], open_parts = 0, len(values) - 1, 1
    while open_parts > 0:
        open_parts -= 1
        low, high = left[open_parts], right[open_parts]
        while high - low > _FEW:
            i = _partition(values, low, high)
            # The longer part waits: so no more parts wait than a length can be halved.
            if i - low > high - i:
                left[open_parts], right[open_parts] = low, i - 1
                low = i
            else:
                left[open_parts], right[open_parts] = i, high
                high = i - 1
            open_parts += 1
        for i in range(low + 1, high + 1):
            value, place = values[i], i
            while place > low and values[place - 1] > value:
                values[place] = values[place - 1]
                place -= 1
            values[place] = value


@compiled
def _partition(values: Any, low: int, high: int) -> int:
    """Small ones before large ones, around the median of three; where the large ones begin. Neither part is empty."""
    middle = (low + high) >> 1
    if values[middle] < values[low]:
        values[middle], values[low] = values[low], values[middle]
    if values[high] < values[middle]:
        values[high], values[middle] = values[middle], values[high]
        if values[middle] < values[low]:
            values[middle], values[low] = values[low], values[middle]
    pivot = values[middle]
    i, j = low, high
    while i <= j:
        while values[i] < pivot:
            i += 1
        while pivot < values[j]:
            j -= 1
        if i <= j:
            values[i], values[j] = values[j], values[i]
            i += 1
            j -= 1
    return i


@compiled
def sort_rows(rows: Any, keys: Any) -> None:
    """Put numbers of rows in the order of the rows' keys, where they are; equal keys stay in their order."""
    n, width = len(rows), 1
    spare = np.empty(n, np.int64)
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for place in range(start, stop):
                if i < middle and (j == stop or keys[rows[i]] <= keys[rows[j]]):
                    spare[place] = rows[i]
                    i += 1
                else:
                    spare[place] = rows[j]
                    j += 1
        for i in range(n):
            rows[i] = spare[i]
        width *= 2
