"""Compiled loops that turn the rows of a log into searches, pairs and added blocks, per user and in time order.

A search is a sequence of consecutive rows of one user with the same query in one session: a click, or the next page of
results, repeats the query. Two consecutive searches of a session are a pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from askew.compiled import compiled
from askew.logs.definition import MOST_WORDS
from askew.logs.termtable import value_of
from askew.sorting import sort_rows

# The relation of a search to the previous search of its session.
FIRST, OTHER, SPECIALIZING, FOR_GROUP = 0, 1, 2, 3

_BLANK = 32
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(32)


@compiled
def mix(user: Any, session: Any) -> Any:
    """One key for each user and session."""
    keys = np.empty(len(user), np.uint64)
    for i in range(len(user)):
        keys[i] = (user[i] ^ session[i] >> _HIGH) * _MIX ^ session[i]
    return keys


@compiled
def group_rows(keys: Any) -> Any:
    """Group rows by key: the row numbers, in their order within each group, and the start of each group."""
    n = len(keys)
    size = 16
    while size < 2 * n:
        size *= 2
    slots = np.full(size, -1, np.int32)
    group = np.empty(n, np.int32)
    first = np.empty(n, np.int32)
    groups = 0
    for i in range(n):
        if i > 0 and keys[i] == keys[i - 1]:
            group[i] = group[i - 1]
            continue
        slot = np.int64((keys[i] * _MIX >> _HIGH) & np.uint64(size - 1))
        while slots[slot] >= 0 and keys[first[slots[slot]]] != keys[i]:
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            slots[slot] = groups
            first[groups] = i
            groups += 1
        group[i] = slots[slot]
    starts = np.zeros(groups + 1, np.int64)
    for i in range(n):
        starts[group[i] + 1] += 1
    for g in range(groups):
        starts[g + 1] += starts[g]
    fill = starts[:-1].copy()
    order = np.empty(n, np.int64)
    for i in range(n):
        order[fill[group[i]]] = i
        fill[group[i]] += 1
    return order, starts


@compiled
def sort_times(order: Any, starts: Any, times: Any, examples: Any) -> int:
    """Sort the rows of each group by time, and return how many rows came after a row with a later time.

    The first few of these rows are written to ``examples``.
    """
    late = 0
    for g in range(len(starts) - 1):
        a, b = starts[g], starts[g + 1]
        latest, wrong = times[order[a]], 0
        for i in range(a + 1, b):
            if times[order[i]] < latest:
                if late + wrong < len(examples):
                    examples[late + wrong] = order[i]
                wrong += 1
            else:
                latest = times[order[i]]
        if wrong:
            late += wrong
            sort_rows(order[a:b], times)
    return late


@compiled
def _same(data: Any, offsets: Any, i: int, j: int) -> bool:
    size = offsets[i + 1] - offsets[i]
    if size != offsets[j + 1] - offsets[j]:
        return False
    for k in range(size):  # noqa: SIM110 - the compiler wants a plain loop
        if data[offsets[i] + k] != data[offsets[j] + k]:
            return False
    return True


@compiled
def find_searches(order: Any, starts: Any, times: Any, gap: int, data: Any, offsets: Any, first: Any, new: Any) -> Any:
    """Find where each search begins in ``order`` and whether it opens a session; return both counts.

    A session ends if more than ``gap`` milliseconds pass between two rows. A negative gap turns
    this rule off.
    """
    searches, sessions = 0, 0
    for g in range(len(starts) - 1):
        for i in range(starts[g], starts[g + 1]):
            opens = i == starts[g] or (gap >= 0 and times[order[i]] - times[order[i - 1]] > gap)
            if opens or not _same(data, offsets, order[i], order[i - 1]):
                first[searches] = i
                new[searches] = opens
                searches += 1
                sessions += opens
    first[searches] = len(order)
    return searches, sessions


@compiled
def match_pairs(
    searches: int, first: Any, new: Any, order: Any, data: Any, offsets: Any,
    slots: Any, texts: Any, bounds: Any, values: Any, is_prefix: Any, prefixes: Any, longest: int,
    kind: Any, block_start: Any, block_end: Any, mask: Any, group_terms: Any,
) -> None:  # fmt: skip
    """The relation of each search to the previous one; for a specializing search also its block, groups and terms."""
    read = np.zeros(4, np.int64)
    words = np.empty(MOST_WORDS + 1, np.int64)
    sizes = np.empty(MOST_WORDS + 1, np.int64)
    masks = np.empty(MOST_WORDS + 1, np.int64)
    for s in range(searches):
        kind[s] = FIRST
        if new[s]:
            continue
        kind[s] = OTHER
        one, two = order[first[s - 1]], order[first[s]]
        a, long_a = offsets[one], offsets[one + 1] - offsets[one]
        b, long_b = offsets[two], offsets[two + 1] - offsets[two]
        added = long_b - long_a
        if added < 2:
            continue
        lead = 0
        while lead < long_a and data[a + lead] == data[b + lead]:
            lead += 1
        tail = 0
        while tail < long_a and data[a + long_a - 1 - tail] == data[b + long_b - 1 - tail]:
            tail += 1
        # The block can begin at every word boundary from long_a - tail to lead.
        for place in range(long_a - tail, lead + 1):
            if place == 0:
                if data[b + added - 1] != _BLANK:
                    continue
                start, end = b, b + added - 1
            else:
                if (place < long_a and data[a + place] != _BLANK) or data[b + place] != _BLANK:
                    continue
                start, end = b + place + 1, b + place + added
            _read_block(
                data, start, end, slots, texts, bounds, values, is_prefix, prefixes, longest, words, sizes, masks, read
            )
            if kind[s] == OTHER or read[0] > 0:
                kind[s] = FOR_GROUP if read[0] > 0 else SPECIALIZING
                block_start[s], block_end[s] = start - b, end - b
                mask[s], group_terms[s] = read[0], read[1]
            if read[0] > 0:
                break


@compiled
def _read_block(
    data: Any, start: int, end: int, slots: Any, texts: Any, bounds: Any, values: Any, is_prefix: Any, prefixes: Any,
    longest: int, words: Any, sizes: Any, masks: Any, read: Any,
) -> None:  # fmt: skip
    """Write the mask of a block's groups to read[0] and its group terms to read[1]; 0 if it is not for a group."""
    read[0], read[1] = 0, 0
    count = 1
    words[0] = start
    for at in range(start, end):
        if data[at] == _BLANK:
            if count == MOST_WORDS:
                return
            words[count] = at + 1
            count += 1
    words[count] = end + 1
    gap = 0
    for i in range(count - 1, -1, -1):
        sizes[i] = 0
        for size in range(min(longest, count - i), 0, -1):
            if i + size < count and sizes[i + size] == 0:
                continue
            value = value_of(
                data, words[i], words[i + size] - 1, size == 1, slots, texts, bounds, values, is_prefix, prefixes
            )
            if value >= 0:
                sizes[i], masks[i] = size, value
                break
        # No term spans this many unreadable words, so the block is not for a group. This ends most blocks early.
        gap = 0 if sizes[i] > 0 else gap + 1
        if gap == longest:
            return
    at = 0
    while at < count and sizes[at] > 0:
        read[0] |= masks[at]
        read[1] += masks[at] > 0
        at += sizes[at]
    if at < count:
        read[0], read[1] = 0, 0
