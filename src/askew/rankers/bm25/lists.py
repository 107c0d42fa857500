"""The posting lists of a query: their positions, their upper bounds, and their scores for a document.

Three tables bound the score of a list before a posting is looked up. The maximum of the list bounds all documents. A
list with more than one posting per 256 documents has a byte for every sixteen documents: the most that it adds to one
of them. A list with more than one posting per 64 documents also has a bit for every document, set if the document has
the term, and for every 64 documents the position of their first posting. Counting bits then finds the posting of a
document.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from askew.compiled import compiled, count_bits

BLOCK = 64
# A range has sixteen documents, which was the fastest size from 8 to 128. A long list has one byte per range.
RANGE_BITS = 4
WORD_BITS = 6


class Lists(NamedTuple):
    """All posting lists of an index, as arrays."""

    docs: Any
    impacts: Any
    block_max: Any
    ranges: Any
    bits: Any
    ranks: Any


class QueryLists(NamedTuple):
    """The lists of one query, the one with the lowest bound first.

    ``columns`` has a row for each list (see below). ``weight`` is the weight of its term, ``reach`` the sum of the
    bounds of this and all earlier lists, and ``step`` 1/255 of its bound. The ``table`` arrays are for lists with
    tables.
    """

    columns: Any
    weight: Any
    reach: Any
    step: Any
    table_at: Any
    table_bits: Any
    table_step: Any


class Open(NamedTuple):
    """Candidate documents and their scores so far; ``rows`` and ``places`` are for ``add_dense``."""

    docs: Any
    sums: Any
    rows: Any
    places: Any


# Columns: the current position, the end and the start of the list, and its first block, first range and first bit word.
AT, STOP, BEGIN, BLOCKS, RANGES, BITS = range(6)
_COLUMNS = 6


@compiled
def room_for_lists(count: int) -> QueryLists:
    """Allocate arrays for this many lists."""
    return QueryLists(
        np.zeros((count, _COLUMNS), np.int64), np.zeros(count), np.zeros(count), np.zeros(count),
        np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count),
    )  # fmt: skip


@compiled
def room_for_open(count: int) -> Open:
    """Allocate arrays for this many documents, and one more that is written but not kept."""
    return Open(
        np.zeros(count + 1, np.int64), np.zeros(count + 1), np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    )


@compiled
def order_lists(
    terms: Any, weights: Any, offsets: Any, block_offsets: Any, term_max: Any, term_kth: Any, range_offsets: Any,
    bit_offsets: Any, query: QueryLists, floor: Any,
) -> int:  # fmt: skip
    """Sort the lists of a query by bound, and return their number.

    ``floor``, the score that a document must reach, is raised to the highest k-th impact of a list.
    """
    columns, weight, reach, step = query.columns, query.weight, query.reach, query.step
    count = 0
    for i in range(len(terms)):
        t = terms[i]
        if offsets[t] == offsets[t + 1]:
            continue
        most = weights[i] * np.float64(term_max[t])
        place = count
        while place > 0 and reach[place - 1] > most:
            for column in range(_COLUMNS):  # a row assigned at once takes two seconds to compile
                columns[place, column] = columns[place - 1, column]
            weight[place], reach[place], step[place] = weight[place - 1], reach[place - 1], step[place - 1]
            place -= 1
        columns[place, AT], columns[place, STOP] = offsets[t], offsets[t + 1]
        columns[place, BEGIN], columns[place, BLOCKS] = offsets[t], block_offsets[t]
        columns[place, RANGES], columns[place, BITS] = range_offsets[t], bit_offsets[t]
        # The byte of a range is rounded up; the factor makes up for the rounding of this product.
        weight[place], reach[place], step[place] = weights[i], most, most / 255.0 * (1.0 + 1e-9)
        count += 1
        # Slightly lower, so that documents with exactly this score are kept.
        floor[0] = max(floor[0], weights[i] * np.float64(term_kth[t]) * (1.0 - 1e-6))
    for i in range(1, count):
        reach[i] += reach[i - 1]
    return count


@compiled
def rewind(count: int, query: QueryLists) -> None:
    """Reset the first ``count`` lists to their start."""
    for t in range(count):
        query.columns[t, AT] = query.columns[t, BEGIN]


@compiled
def essential_from(reach: Any, count: int, floor: Any) -> int:
    """The first essential term. A document needs this or a later term to reach the floor."""
    first = 0
    while first < count and reach[first] < floor[0]:
        first += 1
    return first


@compiled(forceinline=True)
def seek(docs: Any, start: int, stop: int, doc: int) -> int:
    """The first position from ``start`` on with a document >= ``doc``, found by galloping and binary search."""
    if start >= stop or docs[start] >= doc:
        return start
    step, low = 1, start
    while low + step < stop and docs[low + step] < doc:
        low += step
        step <<= 1
    high = min(low + step, stop)
    while high - low > 1:
        middle = (low + high) >> 1
        if docs[middle] < doc:
            low = middle
        else:
            high = middle
    return high


@compiled
def choose_tables(others: int, query: QueryLists) -> Any:
    """Collect the tables of the first ``others`` lists, those with bits first.

    Returns the number of tables with bits, the number of tables, and the sum of the bounds of lists without a table.
    """
    dense, tables, fixed = 0, 0, 0.0
    for with_bits in (True, False):
        for j in range(others):
            if query.columns[j, RANGES] < 0 or (query.columns[j, BITS] >= 0) != with_bits:
                continue
            query.table_at[tables], query.table_step[tables] = query.columns[j, RANGES], query.step[j]
            query.table_bits[tables] = query.columns[j, BITS]
            tables += 1
        dense = tables if with_bits else dense
    for j in range(others):
        if query.columns[j, RANGES] < 0:
            fixed += query.reach[j] - (query.reach[j - 1] if j > 0 else 0.0)
    return dense, tables, fixed * (1.0 + 1e-12)


@compiled(forceinline=True)
def most_near(doc: int, total: Any, dense: int, tables: int, query: QueryLists, lists: Lists) -> Any:
    """An upper bound of the score of a document from the tables, which is much faster than a look-up in the lists.

    The loop has no early exit: a mispredicted branch would cost more than the whole sum.
    """
    word, shift = doc >> WORD_BITS, np.uint64(doc & 63)
    for m in range(dense):
        there = np.float64((lists.bits[query.table_bits[m] + word] >> shift) & np.uint64(1))
        total += there * query.table_step[m] * np.float64(lists.ranges[query.table_at[m] + (doc >> RANGE_BITS)])
    return _most_without_bits(doc, total, dense, tables, query, lists)


@compiled(forceinline=True)
def _most_without_bits(doc: int, total: Any, dense: int, tables: int, query: QueryLists, lists: Lists) -> Any:
    for m in range(dense, tables):
        total += query.table_step[m] * np.float64(lists.ranges[query.table_at[m] + (doc >> RANGE_BITS)])
    return total


@compiled
def add_dense(count: int, others: int, query: QueryLists, lists: Lists, left: Open) -> None:
    """Add to some documents their scores in those of the first lists that have bits.

    For each list, all positions are computed first and then read, so that the memory loads can overlap.
    """
    for j in range(others):
        if query.columns[j, BITS] < 0:
            continue
        first, begin, found = query.columns[j, BITS], query.columns[j, BEGIN], np.int64(0)
        for c in range(count):
            word, shift = first + (left.docs[c] >> WORD_BITS), np.uint64(left.docs[c] & 63)
            bits = lists.bits[word]
            before = np.int64(count_bits(bits & ((np.uint64(1) << shift) - np.uint64(1))))
            left.rows[found], left.places[found] = c, begin + lists.ranks[word] + before
            found += np.int64((bits >> shift) & np.uint64(1))
        for i in range(found):
            left.sums[left.rows[i]] += query.weight[j] * np.float64(lists.impacts[left.places[i]])


@compiled(forceinline=True)
def finish(
    doc: int, total: Any, others: int, dense: int, tables: int, fixed: Any, query: QueryLists, lists: Lists, floor: Any
) -> Any:
    """Add a document's scores in those of the first lists that have no bits; -1 if it cannot reach the floor."""
    if dense == others:
        return total
    most = _most_without_bits(doc, total + fixed, dense, tables, query, lists) * (1.0 + 1e-9)
    for j in range(others - 1, -1, -1):
        if query.columns[j, BITS] >= 0:
            continue
        if most < floor[0]:
            return -1.0
        if query.columns[j, RANGES] >= 0:
            might = query.step[j] * np.float64(lists.ranges[query.columns[j, RANGES] + (doc >> RANGE_BITS)])
        else:
            might = query.reach[j] - (query.reach[j - 1] if j > 0 else 0.0)
        if might == 0.0:
            continue
        place = seek(lists.docs, query.columns[j, AT], query.columns[j, STOP], doc)
        query.columns[j, AT] = place
        found = 0.0
        if place < query.columns[j, STOP] and lists.docs[place] == doc:
            found = query.weight[j] * np.float64(lists.impacts[place])
        # Replace the bound of this list by its actual score.
        total += found
        most += found - might
    return total
