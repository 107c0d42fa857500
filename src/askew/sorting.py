"""Sorting functions for compiled code. For each data type, NumPy's sorts compile for seconds; these compile faster."""

from __future__ import annotations

from typing import Any

import numpy as np

from askew.compiled import compiled

_FEW = 16
_DEEPEST = 64


@compiled
def sort_ascending(values: Any) -> None:
    """Sort numbers in place in ascending order: quicksort, with insertion sort for short parts."""
    left, right = np.empty(_DEEPEST, np.int64), np.empty(_DEEPEST, np.int64)
    left[0], right[0], open_parts = 0, len(values) - 1, 1
    while open_parts > 0:
        open_parts -= 1
        low, high = left[open_parts], right[open_parts]
        while high - low > _FEW:
            i = _partition(values, low, high)
            # Push the longer part on the stack: its depth is then at most the binary logarithm of the length.
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
    """Partition values around the median of three, and return where the larger ones begin. Neither part is empty."""
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
    """Sort row numbers in place by the keys of the rows. The sort is stable."""
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
