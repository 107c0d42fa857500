"""Exact top-k search in compiled code, without the GIL.

Terms are ordered by their upper bounds (the most that they can add to a score). Terms whose bounds together cannot
reach the k-th best score so far (the floor) are not essential: documents that contain only these terms are skipped. The
floor starts at the highest k-th impact of any term. For small k, each essential list is read in turn, the highest bound
first, and blocks of 64 postings are skipped by their maxima. For large k, all essential lists are read together, window
by window, and a sample of the documents gives the expected floor first. Before a document is looked up in the other
lists, tables bound the score that these lists can add.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from askew.compiled import compiled, lowest_bit
from askew.rankers.bm25.best import TIE, KeptHits, keep_best, lowest_score, offer, sort_best, write_best
from askew.rankers.bm25.lists import (
    AT,
    BEGIN,
    BLOCK,
    BLOCKS,
    STOP,
    Lists,
    Open,
    QueryLists,
    add_dense,
    choose_tables,
    essential_from,
    finish,
    most_near,
    order_lists,
    rewind,
    room_for_lists,
    room_for_open,
    seek,
)

_WINDOW = 1 << 14
_NO_DOC = 0x7FFFFFFF
# Up to this k, reading list by list is faster than window by window.
FEW = 100
# The sample has one document in 32, in runs of 512. The expected floor is the score at rank n of the sample, where n is
# the expected number of top-k documents in the sample plus three standard deviations.
_SHARE, _SAMPLE, _DEVIATIONS = 32, 512, 3.0


class Window(NamedTuple):
    """The partial scores of a window of documents, and a bit for each document that has one."""

    sums: Any
    touched: Any


@compiled
def _add_window(
    start: int, end: int, first: int, count: int, query: QueryLists, lists: Lists, floor: Any, window: Window
) -> None:
    """Sum the essential terms over one window of documents, the term with the highest bound first.

    A document without an earlier term is skipped if this term and the bounds of all later terms cannot reach the floor.
    """
    docs, impacts, sums, touched = lists.docs, lists.impacts, window.sums, window.touched
    for t in range(count - 1, first - 1, -1):
        p, last, w = query.columns[t, AT], query.columns[t, STOP], query.weight[t]
        enough = floor[0] - (query.reach[t - 1] if t > 0 else 0.0)
        while p < last and docs[p] < end:
            i = docs[p] - start
            add = w * np.float64(impacts[p])
            p += 1
            if sums[i] == 0.0:
                if add < enough:
                    continue
                touched[i >> 6] |= np.uint64(1) << np.uint64(i & 63)
            sums[i] += add
        query.columns[t, AT] = p


@compiled
def _collect(start: int, size: int, rest: Any, floor: Any, window: Window, left: Open) -> int:
    """Collect the documents of a window that may still reach the floor, and reset the sums and bits."""
    sums, touched = window.sums, window.touched
    some = 0
    for word in range(size >> 6):
        bits = touched[word]
        touched[word] = 0
        while bits != 0:
            i = (word << 6) + np.int64(lowest_bit(bits))
            bits &= bits - np.uint64(1)
            total = sums[i]
            sums[i] = 0.0
            left.docs[some], left.sums[some] = start + i, total
            some += total + rest >= floor[0]
    return some


@compiled
def _search_window(
    start: int, width: int, first: int, count: int, k: int, size: int, query: QueryLists, lists: Lists, best: KeptHits,
    window: Window, left: Open,
) -> int:  # fmt: skip
    """Search one window of documents, and return the new number of kept documents."""
    _add_window(start, start + width, first, count, query, lists, best.floor, window)
    some = _collect(start, width, query.reach[first - 1] if first > 0 else 0.0, best.floor, window, left)
    dense, tables, fixed = choose_tables(first, query)
    kept = 0
    for c in range(some):
        most = most_near(left.docs[c], left.sums[c] + fixed, dense, tables, query, lists)
        left.docs[kept], left.sums[kept] = left.docs[c], left.sums[c]
        kept += most >= best.floor[0]
    add_dense(kept, first, query, lists, left)
    for c in range(kept):
        doc = left.docs[c]
        total = finish(doc, left.sums[c], first, dense, tables, fixed, query, lists, best.floor)
        if total >= best.floor[0]:
            size = offer(np.float32(total), doc, k, size, best)
    return size


@compiled
def _walk_list(
    t: int,
    p: int,
    k: int,
    size: int,
    query: QueryLists,
    lists: Lists,
    best: KeptHits,
    left: Open,
    seen: Any,
    stamp: int,
) -> int:
    """Read one list from a position on, and look its documents up in the lists with lower bounds.

    Blocks of postings that cannot reach the floor are skipped.
    """
    docs, impacts, floor = lists.docs, lists.impacts, best.floor
    dense, tables, fixed = choose_tables(t, query)
    rest = query.reach[t - 1] if t > 0 else 0.0
    end, begin, w = query.columns[t, STOP], query.columns[t, BEGIN], query.weight[t]
    while p < end:
        number = (p - begin) // BLOCK
        limit = min(begin + (number + 1) * BLOCK, end)
        if w * np.float64(lists.block_max[query.columns[t, BLOCKS] + number]) + rest < floor[0]:
            p = limit
            continue
        # First bound the whole block without branches, then score the few documents that may reach the floor.
        some = 0
        for q in range(p, limit):
            doc, total = np.int64(docs[q]), w * np.float64(impacts[q])
            most = most_near(doc, total + fixed, dense, tables, query, lists)
            left.docs[some], left.sums[some] = doc, total
            some += most >= floor[0]
        p = limit
        add_dense(some, t, query, lists, left)
        for c in range(some):
            doc = left.docs[c]
            total = finish(doc, left.sums[c], t, dense, tables, fixed, query, lists, floor)
            if total >= floor[0] and seen[doc] != stamp:
                seen[doc] = stamp
                size = offer(np.float32(total), doc, k, size, best)
    return size


@compiled
def _walk_lists(
    k: int, count: int, query: QueryLists, lists: Lists, best: KeptHits, left: Open, seen: Any, stamp: int
) -> int:
    """For small k: read each essential list in turn, the one with the highest bound first.

    Rare words come first and raise the floor early, so most long lists are never read. The first list that contains a
    document gives it its complete score, and later lists give it a lower one. So only documents that were kept must be
    recognized in later lists.
    """
    size = 0
    for t in range(count - 1, -1, -1):
        if query.reach[t] < best.floor[0]:
            break
        rewind(t, query)
        size = _walk_list(t, query.columns[t, BEGIN], k, size, query, lists, best, left, seen, stamp)
    return size


@compiled
def _walk_windows(
    k: int,
    count: int,
    query: QueryLists,
    lists: Lists,
    best: KeptHits,
    window: Window,
    left: Open,
    seen: Any,
    stamp: int,
) -> int:
    """For large k: MaxScore, window by window over the essential lists, then over the last list alone."""
    size = 0
    first = essential_from(query.reach, count, best.floor)
    while first < count - 1:
        start = np.int64(_NO_DOC)
        for t in range(first, count):
            if query.columns[t, AT] < query.columns[t, STOP]:
                start = min(start, np.int64(lists.docs[query.columns[t, AT]]))
        if start == _NO_DOC:
            break
        size = _search_window(start, _WINDOW, first, count, k, size, query, lists, best, window, left)
        first = essential_from(query.reach, count, best.floor)
    if first == count - 1:
        size = _walk_list(first, query.columns[first, AT], k, size, query, lists, best, left, seen, stamp)
    return size


@compiled
def _expected_floor(
    k: int, count: int, documents: int, query: QueryLists, lists: Lists, best: KeptHits, window: Window, left: Open
) -> Any:
    """A lower bound of the k-th best score, estimated from a sample of the documents; -1 without an estimate."""
    wanted = np.int64(k / _SHARE + _DEVIATIONS * np.sqrt(k / _SHARE)) + 1
    first = essential_from(query.reach, count, best.floor)
    postings = 0
    for t in range(first, count):
        postings += query.columns[t, STOP] - query.columns[t, BEGIN]
    if postings < 2 * _SHARE * wanted:  # too few to be worth it
        return -1.0
    size = 0
    for start in range(_SAMPLE * _SHARE // 2, documents, _SAMPLE * _SHARE):
        for t in range(first, count):
            query.columns[t, AT] = seek(lists.docs, query.columns[t, AT], query.columns[t, STOP], start)
        size = _search_window(start, _SAMPLE, first, count, wanted, size, query, lists, best, window, left)
        first = essential_from(query.reach, count, best.floor)
    rewind(count, query)
    if size < wanted:
        return -1.0
    keep_best(best.keys, size, wanted)
    return lowest_score(best, wanted) * TIE


@compiled
def _search_many(
    k: int,
    count: int,
    query: QueryLists,
    lists: Lists,
    best: KeptHits,
    window: Window,
    left: Open,
    seen: Any,
    stamp: int,
) -> int:
    """Run ``_walk_windows`` with the expected floor; if that floor was too high, run it again without."""
    floor = best.floor[0]
    expected = _expected_floor(k, count, len(seen) - 1, query, lists, best, window, left)
    if expected > floor:
        best.floor[0] = expected
        size = _walk_windows(k, count, query, lists, best, window, left, seen, stamp)
        if size >= k:
            keep_best(best.keys, size, k)
            # No document below the expected floor can tie with the last one.
            if lowest_score(best, k) * TIE >= expected:
                return k
        rewind(count, query)
    best.floor[0] = floor
    return int(_walk_windows(k, count, query, lists, best, window, left, seen, stamp + 1))


@compiled
def search_bags(
    bags: Any, bag_offsets: Any, bag_terms: Any, bag_weights: Any, k: int, offsets: Any, docs: Any, impacts: Any,
    block_offsets: Any, block_max: Any, term_max: Any, term_kth: Any, range_offsets: Any, ranges: Any,
    bit_offsets: Any, bits: Any, ranks: Any, out_docs: Any, out_scores: Any, out_counts: Any, seen: Any, stamp: int,
) -> None:  # fmt: skip
    """Search some bags of weighted terms. Row i of the output belongs to bag i.

    A query marks the documents that it has kept in ``seen`` with a number of its own. Each row has two such numbers,
    from ``stamp`` on.
    """
    widest = 1
    for bag in bags:
        widest = max(widest, bag_offsets[bag + 1] - bag_offsets[bag])
    lists, query = Lists(docs, impacts, block_max, ranges, bits, ranks), room_for_lists(widest)
    window = Window(np.zeros(_WINDOW), np.zeros(_WINDOW >> 6, np.uint64))
    left = room_for_open(_WINDOW)
    as_float = np.zeros(1, np.float32)
    best = KeptHits(np.zeros(2 * k + 2, np.uint64), np.zeros(1), as_float, as_float.view(np.uint32))
    for bag in bags:
        part = slice(bag_offsets[bag], bag_offsets[bag + 1])
        best.floor[0] = -1.0
        count = order_lists(
            bag_terms[part], bag_weights[part], offsets, block_offsets, term_max, term_kth, range_offsets, bit_offsets,
            query, best.floor,
        )  # fmt: skip
        if k <= FEW:
            size = _walk_lists(k, count, query, lists, best, left, seen, stamp + 2 * bag)
        else:
            size = _search_many(k, count, query, lists, best, window, left, seen, stamp + 2 * bag)
        size = sort_best(best, size, k)
        out_counts[bag] = size
        write_best(best, size, out_docs[bag], out_scores[bag])
