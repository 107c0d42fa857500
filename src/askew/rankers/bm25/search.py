"""Exact top-k search, compiled, no lock held.

Terms are ordered by the most they can add. Those whose bounds together cannot reach the k-th best score found so far
(the floor) are not essential: documents that only they contain need no look. The floor starts at the highest k-th
impact of any term. For few answers each essential list is walked in turn, the rarest word first; for many, all of them
together, window by window. Before a document is looked up in a list, a byte says the most that list adds anywhere near
it; and blocks of 64 postings are passed over by their maxima.

Ties: the higher score first; equal scores (as 32-bit floats) in the order of the collection.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from askew.compiled import compiled, lowest_bit
from askew.sorting import sort_ascending

BLOCK = 64
# A range has sixteen documents: of 8 to 128, sixteen were fastest, at a byte per range and long list.
RANGE_BITS = 4
_WINDOW = 1 << 14
_SMALL_K = 48
# A sum this little below a 32-bit score may still round to it, and win the tie by standing earlier in the collection.
_TIE = 1.0 - 1.2e-7
_NO_DOC = 0x7FFFFFFF
# Up to so many answers, list by list is faster than window by window.
_FEW = 100


@compiled(forceinline=True)
def _seek(docs: Any, start: int, stop: int, doc: int) -> int:
    """The first place at or after ``start`` whose document is not before ``doc``: by leaps, then by halves."""
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
def _keep_best(keys: Any, size: int, k: int) -> None:
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


@compiled(forceinline=True)
def _offer(score: Any, doc: int, k: int, keys: Any, size: int, floor: Any, as_float: Any, as_bits: Any) -> int:
    """Take a document into the best; the new number held. ``floor[0]`` is the score to reach from now on.

    A key is the bits of the score above the reversed document number, so that one comparison settles both.
    """
    as_float[0] = score
    key = np.uint64(as_bits[0]) << np.uint64(32) | np.uint64(0xFFFFFFFF - doc)
    if k <= _SMALL_K:
        # Few are held sorted; the floor is always the k-th.
        if size == k and key < keys[size - 1]:
            return size
        at = size if size < k else k - 1
        while at > 0 and keys[at - 1] < key:
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = key
        size = min(size + 1, k)
        if size == k:
            as_bits[0] = np.uint32(keys[k - 1] >> np.uint64(32))
            floor[0] = max(floor[0], np.float64(as_float[0]) * _TIE)
        return size
    keys[size] = key
    size += 1
    if size == 2 * k:
        _keep_best(keys, size, k)
        as_bits[0] = np.uint32(_lowest(keys, k) >> np.uint64(32))
        floor[0] = max(floor[0], np.float64(as_float[0]) * _TIE)
        return k
    return size


# Columns of the lists of a query: where we are, where it ends and began, the first of its blocks and of its ranges.
_AT, _STOP, _BEGIN, _BLOCKS, _RANGES = range(5)
_COLUMNS = 5


@compiled
def _choose_tables(others: int, lists: Any, step: Any, reach: Any, table_at: Any, table_step: Any) -> Any:
    """The range tables of the first lists, side by side, and the most that lists without a table can add."""
    tables, fixed = 0, 0.0
    for j in range(others):
        if lists[j, _RANGES] >= 0:
            table_at[tables], table_step[tables] = lists[j, _RANGES], step[j]
            tables += 1
        else:
            fixed += reach[j] - (reach[j - 1] if j > 0 else 0.0)
    return tables, fixed * (1.0 + 1e-12)


@compiled(forceinline=True)
def _most_near(doc: int, total: Any, tables: int, table_at: Any, table_step: Any, ranges: Any) -> Any:
    """The most a document can come to, told from the most each list adds anywhere near it.

    A long list has a byte for every sixteen documents; a look at it is far cheaper than finding the document. There is
    no early way out of this little sum: a wrong guess would cost more than adding it all up.
    """
    for m in range(tables):
        total += table_step[m] * np.float64(ranges[table_at[m] + (doc >> RANGE_BITS)])
    return total


@compiled
def _essential_from(reach: Any, count: int, floor: Any) -> int:
    """The first term that a document must contain one of, to have a chance."""
    first = 0
    while first < count and reach[first] < floor[0]:
        first += 1
    return first


@compiled
def _order_lists(
    terms: Any, weights: Any, offsets: Any, block_offsets: Any, term_max: Any, term_kth: Any, range_offsets: Any,
    lists: Any, weight: Any, reach: Any, step: Any, floor: Any,
) -> int:  # fmt: skip
    """Lay out the lists of a query, the term that can add least first; ``reach`` sums up what they can add."""
    count = 0
    for i in range(len(terms)):
        t = terms[i]
        if offsets[t] == offsets[t + 1]:
            continue
        most = weights[i] * np.float64(term_max[t])
        place = count
        while place > 0 and reach[place - 1] > most:
            for column in range(_COLUMNS):  # a row assigned at once takes two seconds to compile
                lists[place, column] = lists[place - 1, column]
            weight[place], reach[place], step[place] = weight[place - 1], reach[place - 1], step[place - 1]
            place -= 1
        lists[place, _AT], lists[place, _STOP] = offsets[t], offsets[t + 1]
        lists[place, _BEGIN], lists[place, _BLOCKS] = offsets[t], block_offsets[t]
        lists[place, _RANGES] = range_offsets[t]
        # A byte of a range is rounded up; the little more makes up for the rounding of this product.
        weight[place], reach[place], step[place] = weights[i], most, most / 255.0 * (1.0 + 1e-9)
        count += 1
        # A little below, since documents with exactly this score are still wanted.
        floor[0] = max(floor[0], weights[i] * np.float64(term_kth[t]) * (1.0 - 1e-6))
    for i in range(1, count):
        reach[i] += reach[i - 1]
    return count


@compiled
def _add_window(
    start: int, first: int, count: int, lists: Any, weight: Any, reach: Any, floor: Any, docs: Any, impacts: Any,
    sums: Any, touched: Any,
) -> None:  # fmt: skip
    """Add up the essential terms over one window of documents, the term that can add most first.

    A document that no earlier term has seen needs enough from this term and all that can come after it.
    """
    end = start + _WINDOW
    for t in range(count - 1, first - 1, -1):
        p, last, w = lists[t, _AT], lists[t, _STOP], weight[t]
        enough = floor[0] - (reach[t - 1] if t > 0 else 0.0)
        while p < last and docs[p] < end:
            i = docs[p] - start
            add = w * np.float64(impacts[p])
            p += 1
            if sums[i] == 0.0:
                if add < enough:
                    continue
                touched[i >> 6] |= np.uint64(1) << np.uint64(i & 63)
            sums[i] += add
        lists[t, _AT] = p


@compiled
def _collect(
    start: int, first: int, lists: Any, step: Any, reach: Any, ranges: Any, sums: Any, touched: Any, floor: Any,
    open_docs: Any, open_sums: Any, open_most: Any, table_at: Any, table_step: Any,
) -> int:  # fmt: skip
    """The documents of a window that may still make it; sums and marks are clean afterwards."""
    left = 0
    rest = reach[first - 1] if first > 0 else 0.0
    for word in range(_WINDOW >> 6):
        bits = touched[word]
        touched[word] = 0
        while bits != 0:
            i = (word << 6) + np.int64(lowest_bit(bits))
            bits &= bits - np.uint64(1)
            total = sums[i]
            sums[i] = 0.0
            open_docs[left], open_sums[left] = start + i, total
            left += total + rest >= floor[0]
    tables, fixed = _choose_tables(first, lists, step, reach, table_at, table_step)
    kept = 0
    for c in range(left):
        most = _most_near(open_docs[c], open_sums[c] + fixed, tables, table_at, table_step, ranges)
        open_docs[kept], open_sums[kept], open_most[kept] = open_docs[c], open_sums[c], most
        kept += most >= floor[0]
    return kept


@compiled
def _search_one(
    terms: Any, weights: Any, k: int, offsets: Any, docs: Any, impacts: Any, block_offsets: Any, block_max: Any,
    term_max: Any, term_kth: Any, range_offsets: Any, ranges: Any, lists: Any, weight: Any,
    reach: Any, step: Any, sums: Any, touched: Any, open_docs: Any, open_sums: Any, open_most: Any,
    table_at: Any, table_step: Any, seen: Any, stamp: int, keys: Any, as_float: Any, as_bits: Any,
) -> int:  # fmt: skip
    """The best k of one query as sorted keys; how many there are."""
    floor = np.full(1, -1.0)
    count = _order_lists(
        terms, weights, offsets, block_offsets, term_max, term_kth, range_offsets, lists, weight, reach, step, floor
    )
    if k <= _FEW:
        size = _walk_lists(
            k, count, lists, weight, reach, step, floor, docs, impacts, block_max, ranges, table_at, table_step,
            open_docs, open_sums, open_most, seen, stamp, keys, as_float, as_bits,
        )  # fmt: skip
    else:
        size = _walk_windows(
            k, count, lists, weight, reach, step, floor, docs, impacts, block_max, ranges, table_at, table_step, sums,
            touched, open_docs, open_sums, open_most, seen, stamp, keys, as_float, as_bits,
        )  # fmt: skip
    if size > k:
        _keep_best(keys, size, k)
        size = k
    sort_ascending(keys[:size])
    for i in range(size >> 1):
        keys[i], keys[size - 1 - i] = keys[size - 1 - i], keys[i]
    return int(size)


@compiled(forceinline=True)
def _finish(
    doc: int, total: Any, most: Any, others: int, lists: Any, weight: Any, reach: Any, step: Any, floor: Any, docs: Any,
    impacts: Any, ranges: Any,
) -> Any:  # fmt: skip
    """Add what the lists that can add less have for a document; -1 as soon as it cannot be enough.

    ``most`` starts as the bound with all lists; each look-up puts what is there in the place of what might have been.
    """
    most *= 1.0 + 1e-9
    for j in range(others - 1, -1, -1):
        if lists[j, _RANGES] >= 0:
            might = step[j] * np.float64(ranges[lists[j, _RANGES] + (doc >> RANGE_BITS)])
        else:
            might = reach[j] - (reach[j - 1] if j > 0 else 0.0)
        if might == 0.0:
            continue
        place = _seek(docs, lists[j, _AT], lists[j, _STOP], doc)
        lists[j, _AT] = place
        found = 0.0
        if place < lists[j, _STOP] and docs[place] == doc:
            found = weight[j] * np.float64(impacts[place])
            total += found
        most += found - might
        if most < floor[0]:
            return -1.0
    return total


@compiled
def _walk_list(
    t: int, p: int, k: int, lists: Any, weight: Any, reach: Any, step: Any, floor: Any, docs: Any, impacts: Any,
    block_max: Any, ranges: Any, table_at: Any, table_step: Any, open_docs: Any, open_sums: Any, open_most: Any,
    seen: Any, stamp: int, keys: Any, size: int, as_float: Any, as_bits: Any,
) -> int:  # fmt: skip
    """Walk one list from a place on, looking its documents up in the lists that can add less.

    Blocks of postings that have nothing high enough are passed over.
    """
    tables, fixed = _choose_tables(t, lists, step, reach, table_at, table_step)
    rest = reach[t - 1] if t > 0 else 0.0
    end, begin, w = lists[t, _STOP], lists[t, _BEGIN], weight[t]
    while p < end:
        number = (p - begin) // BLOCK
        limit = min(begin + (number + 1) * BLOCK, end)
        if w * np.float64(block_max[lists[t, _BLOCKS] + number]) + rest < floor[0]:
            p = limit
            continue
        # The block as a whole first, and only then its few documents that may make it: no branch to guess wrong.
        left = 0
        for q in range(p, limit):
            doc, total = np.int64(docs[q]), w * np.float64(impacts[q])
            most = _most_near(doc, total + fixed, tables, table_at, table_step, ranges)
            open_docs[left], open_sums[left], open_most[left] = doc, total, most
            left += most >= floor[0]
        p = limit
        for c in range(left):
            doc, total, most = open_docs[c], open_sums[c], open_most[c]
            if most < floor[0]:
                continue
            total = _finish(doc, total, most, t, lists, weight, reach, step, floor, docs, impacts, ranges)
            if total >= floor[0] and seen[doc] != stamp:
                seen[doc] = stamp
                size = _offer(np.float32(total), doc, k, keys, size, floor, as_float, as_bits)
    return size


@compiled
def _walk_lists(
    k: int, count: int, lists: Any, weight: Any, reach: Any, step: Any, floor: Any, docs: Any, impacts: Any,
    block_max: Any, ranges: Any, table_at: Any, table_step: Any, open_docs: Any, open_sums: Any, open_most: Any,
    seen: Any, stamp: int, keys: Any, as_float: Any, as_bits: Any,
) -> int:  # fmt: skip
    """For few answers: each essential list in turn, the one that can add most first.

    The rare words come first and raise the floor at once; most of the longer lists are then never opened. A document
    met again in a later list was given its whole score by the first; what a later list adds up for it is less, so only
    the ones that made it need to be known again.
    """
    size = 0
    for t in range(count - 1, -1, -1):
        if reach[t] < floor[0]:
            break
        for j in range(t):
            lists[j, _AT] = lists[j, _BEGIN]
        size = _walk_list(
            t, lists[t, _BEGIN], k, lists, weight, reach, step, floor, docs, impacts, block_max, ranges, table_at,
            table_step, open_docs, open_sums, open_most, seen, stamp, keys, size, as_float, as_bits,
        )  # fmt: skip
    return size


@compiled
def _walk_windows(
    k: int, count: int, lists: Any, weight: Any, reach: Any, step: Any, floor: Any, docs: Any, impacts: Any,
    block_max: Any, ranges: Any, table_at: Any, table_step: Any, sums: Any, touched: Any, open_docs: Any,
    open_sums: Any, open_most: Any, seen: Any, stamp: int, keys: Any, as_float: Any, as_bits: Any,
) -> int:  # fmt: skip
    """For many answers: MaxScore, window by window over the essential lists, then the last one alone."""
    size = 0
    first = _essential_from(reach, count, floor)
    while first < count - 1:
        start = np.int64(_NO_DOC)
        for t in range(first, count):
            if lists[t, _AT] < lists[t, _STOP]:
                start = min(start, np.int64(docs[lists[t, _AT]]))
        if start == _NO_DOC:
            break
        _add_window(start, first, count, lists, weight, reach, floor, docs, impacts, sums, touched)
        left = _collect(
            start, first, lists, step, reach, ranges, sums, touched, floor, open_docs, open_sums, open_most, table_at,
            table_step,
        )  # fmt: skip
        for c in range(left):
            doc, total, most = open_docs[c], open_sums[c], open_most[c]
            total = _finish(doc, total, most, first, lists, weight, reach, step, floor, docs, impacts, ranges)
            if total >= floor[0]:
                size = _offer(np.float32(total), doc, k, keys, size, floor, as_float, as_bits)
        first = _essential_from(reach, count, floor)
    if first == count - 1:
        size = _walk_list(
            first, lists[first, _AT], k, lists, weight, reach, step, floor, docs, impacts, block_max, ranges, table_at,
            table_step, open_docs, open_sums, open_most, seen, stamp, keys, size, as_float, as_bits,
        )  # fmt: skip
    return size


@compiled
def search_bags(
    bags: Any, bag_offsets: Any, bag_terms: Any, bag_weights: Any, k: int, offsets: Any, docs: Any, impacts: Any,
    block_offsets: Any, block_max: Any, term_max: Any, term_kth: Any, range_offsets: Any,
    ranges: Any, out_docs: Any, out_scores: Any, out_counts: Any, seen: Any, stamp: int,
) -> None:  # fmt: skip
    """Search some bags of weighted terms; row i of the output belongs to bag i.

    ``seen`` remembers which documents a query was offered, by a number that no other query has: ``stamp`` plus its row.
    """
    widest = 1
    for bag in bags:
        widest = max(widest, bag_offsets[bag + 1] - bag_offsets[bag])
    lists = np.zeros((widest, _COLUMNS), np.int64)
    weight, reach, step = np.zeros(widest), np.zeros(widest), np.zeros(widest)
    sums, touched = np.zeros(_WINDOW), np.zeros(_WINDOW >> 6, np.uint64)
    open_docs, open_sums, open_most = np.zeros(_WINDOW + 1, np.int64), np.zeros(_WINDOW + 1), np.zeros(_WINDOW + 1)
    table_at, table_step = np.zeros(widest, np.int64), np.zeros(widest)
    keys = np.zeros(2 * k + 2, np.uint64)
    as_float = np.zeros(1, np.float32)
    as_bits = as_float.view(np.uint32)
    for bag in bags:
        part = slice(bag_offsets[bag], bag_offsets[bag + 1])
        size = _search_one(
            bag_terms[part], bag_weights[part], k, offsets, docs, impacts, block_offsets, block_max, term_max, term_kth,
            range_offsets, ranges, lists, weight, reach, step, sums, touched, open_docs, open_sums,
            open_most, table_at, table_step, seen, stamp + bag, keys, as_float, as_bits,
        )  # fmt: skip
        out_counts[bag] = size
        for i in range(size):
            as_bits[0] = np.uint32(keys[i] >> np.uint64(32))
            out_scores[bag, i] = as_float[0]
            out_docs[bag, i] = np.int32(np.uint64(0xFFFFFFFF) - (keys[i] & np.uint64(0xFFFFFFFF)))
