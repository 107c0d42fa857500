"""Exact top-k search in compiled code, without the GIL.

Terms are ordered by their upper bounds (the most that they can add to a score). Terms whose bounds together cannot
reach the k-th best score so far (the floor) are not essential: documents that contain only these terms are skipped. The
floor starts at the highest k-th impact of any term. For small k, each essential list is read in turn, the highest bound
first, and blocks of 64 postings are skipped by their maxima. For large k, all essential lists are read together, window
by window, and a sample of the documents gives the expected floor first. Before a document is looked up in the other
lists, tables bound the score that these lists can add.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from askew.core import machine
from askew.core.compiled import compiled, count_bits, lowest_bit, sort_ascending
from askew.core.errors import ConfigError
from askew.core.ranking import Hits
from askew.search.bm25.index import BLOCK, KTH, RANGE_BITS, WORD_BITS, Weights
from askew.search.disk import CheckedArray


class Bags(NamedTuple):
    """The weighted terms of distinct bags, and in ``which`` the bag of each query."""

    offsets: np.ndarray[Any, np.dtype[np.int64]]
    terms: np.ndarray[Any, np.dtype[np.int64]]
    weights: np.ndarray[Any, np.dtype[np.float64]]
    which: np.ndarray[Any, np.dtype[np.int64]]


# The posting lists of a query: their positions, their upper bounds, and their scores for a document.


class Lists(NamedTuple):
    """All posting lists of an index, as arrays."""

    docs: Any
    impacts: Any
    block_max: Any
    ranges: Any
    bits: Any
    ranks: Any


class TermTables(NamedTuple):
    """For each term: its bounds, and where its postings, blocks, ranges and bits begin."""

    offsets: Any
    block_offsets: Any
    term_max: Any
    term_kth: Any
    range_offsets: Any
    bit_offsets: Any


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
def order_lists(terms: Any, weights: Any, tables: TermTables, query: QueryLists, floor: Any) -> int:
    """Sort the lists of a query by bound, and return their number.

    ``floor``, the score that a document must reach, is raised to the highest k-th impact of a list.
    """
    offsets, columns, weight, reach, step = tables.offsets, query.columns, query.weight, query.reach, query.step
    count = 0
    for i in range(len(terms)):
        t = terms[i]
        if offsets[t] == offsets[t + 1]:
            continue
        most = weights[i] * np.float64(tables.term_max[t])
        place = count
        while place > 0 and reach[place - 1] > most:
            for column in range(_COLUMNS):  # a row assigned at once takes two seconds to compile
                columns[place, column] = columns[place - 1, column]
            weight[place], reach[place], step[place] = weight[place - 1], reach[place - 1], step[place - 1]
            place -= 1
        columns[place, AT], columns[place, STOP] = offsets[t], offsets[t + 1]
        columns[place, BEGIN], columns[place, BLOCKS] = offsets[t], tables.block_offsets[t]
        columns[place, RANGES], columns[place, BITS] = tables.range_offsets[t], tables.bit_offsets[t]
        # The byte of a range is rounded up; the factor makes up for the rounding of this product.
        weight[place], reach[place], step[place] = weights[i], most, most / 255.0 * (1.0 + 1e-9)
        count += 1
        # Slightly lower, so that documents with exactly this score are kept.
        floor[0] = max(floor[0], weights[i] * np.float64(tables.term_kth[t]) * (1.0 - 1e-6))
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
        is_member = np.float64((lists.bits[query.table_bits[m] + word] >> shift) & np.uint64(1))
        total += is_member * query.table_step[m] * np.float64(lists.ranges[query.table_at[m] + (doc >> RANGE_BITS)])
    return _most_without_bits(doc, total, dense, tables, query, lists)


@compiled(forceinline=True)
def _most_without_bits(doc: int, total: Any, dense: int, tables: int, query: QueryLists, lists: Lists) -> Any:
    for m in range(dense, tables):
        total += query.table_step[m] * np.float64(lists.ranges[query.table_at[m] + (doc >> RANGE_BITS)])
    return total


@compiled
def add_dense(count: int, others: int, query: QueryLists, lists: Lists, candidates: Open) -> None:
    """Add to some documents their scores in those of the first lists that have bits.

    For each list, all positions are computed first and then read, so that the memory loads can overlap.
    """
    for j in range(others):
        if query.columns[j, BITS] < 0:
            continue
        first, begin, members = query.columns[j, BITS], query.columns[j, BEGIN], np.int64(0)
        for c in range(count):
            word, shift = first + (candidates.docs[c] >> WORD_BITS), np.uint64(candidates.docs[c] & 63)
            bits = lists.bits[word]
            before = np.int64(count_bits(bits & ((np.uint64(1) << shift) - np.uint64(1))))
            candidates.rows[members], candidates.places[members] = c, begin + lists.ranks[word] + before
            members += np.int64((bits >> shift) & np.uint64(1))
        for i in range(members):
            candidates.sums[candidates.rows[i]] += query.weight[j] * np.float64(lists.impacts[candidates.places[i]])


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
        score = 0.0
        if place < query.columns[j, STOP] and lists.docs[place] == doc:
            score = query.weight[j] * np.float64(lists.impacts[place])
        # Replace the bound of this list by its actual score.
        total += score
        most += score - might
    return total


# Keep the k best documents so far, as 64-bit keys.

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


class Work(NamedTuple):
    """What the search of one query reads and writes. A document is kept once: then ``seen`` has the query's stamp."""

    query: QueryLists
    lists: Lists
    best: KeptHits
    window: Window
    left: Open
    seen: Any


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
def _collect(start: int, size: int, rest: Any, floor: Any, window: Window, candidates: Open) -> int:
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
            candidates.docs[some], candidates.sums[some] = start + i, total
            some += total + rest >= floor[0]
    return some


@compiled
def _search_window(start: int, width: int, first: int, count: int, k: int, size: int, work: Work) -> int:
    query, lists, best, window, candidates = work.query, work.lists, work.best, work.window, work.left
    _add_window(start, start + width, first, count, query, lists, best.floor, window)
    some = _collect(start, width, query.reach[first - 1] if first > 0 else 0.0, best.floor, window, candidates)
    dense, tables, fixed = choose_tables(first, query)
    remaining = 0
    for c in range(some):
        most = most_near(candidates.docs[c], candidates.sums[c] + fixed, dense, tables, query, lists)
        candidates.docs[remaining], candidates.sums[remaining] = candidates.docs[c], candidates.sums[c]
        remaining += most >= best.floor[0]
    add_dense(remaining, first, query, lists, candidates)
    for c in range(remaining):
        doc = candidates.docs[c]
        total = finish(doc, candidates.sums[c], first, dense, tables, fixed, query, lists, best.floor)
        if total >= best.floor[0]:
            size = offer(np.float32(total), doc, k, size, best)
    return size


@compiled
def _walk_list(t: int, p: int, k: int, size: int, work: Work, stamp: int) -> int:
    """Read one list from a position on, and look its documents up in the lists with lower bounds.

    Blocks of postings that cannot reach the floor are skipped.
    """
    query, lists, best, candidates, seen = work.query, work.lists, work.best, work.left, work.seen
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
            candidates.docs[some], candidates.sums[some] = doc, total
            some += most >= floor[0]
        p = limit
        add_dense(some, t, query, lists, candidates)
        for c in range(some):
            doc = candidates.docs[c]
            total = finish(doc, candidates.sums[c], t, dense, tables, fixed, query, lists, floor)
            if total >= floor[0] and seen[doc] != stamp:
                seen[doc] = stamp
                size = offer(np.float32(total), doc, k, size, best)
    return size


@compiled
def _walk_lists(k: int, count: int, work: Work, stamp: int) -> int:
    """For small k: read each essential list in turn, the one with the highest bound first.

    Rare words come first and raise the floor early, so most long lists are never read. The first list that contains a
    document gives it its complete score, and later lists give it a lower one. So only documents that were kept must be
    recognized in later lists.
    """
    size = 0
    for t in range(count - 1, -1, -1):
        if work.query.reach[t] < work.best.floor[0]:
            break
        rewind(t, work.query)
        size = _walk_list(t, work.query.columns[t, BEGIN], k, size, work, stamp)
    return size


@compiled
def _walk_windows(k: int, count: int, work: Work, stamp: int) -> int:
    """For large k: MaxScore, window by window over the essential lists, then over the last list alone."""
    query, lists, best, size = work.query, work.lists, work.best, 0
    first = essential_from(query.reach, count, best.floor)
    while first < count - 1:
        start = np.int64(_NO_DOC)
        for t in range(first, count):
            if query.columns[t, AT] < query.columns[t, STOP]:
                start = min(start, np.int64(lists.docs[query.columns[t, AT]]))
        if start == _NO_DOC:
            break
        size = _search_window(start, _WINDOW, first, count, k, size, work)
        first = essential_from(query.reach, count, best.floor)
    if first == count - 1:
        size = _walk_list(first, query.columns[first, AT], k, size, work, stamp)
    return size


@compiled
def _expected_floor(k: int, count: int, documents: int, work: Work) -> Any:
    """A lower bound of the k-th best score, estimated from a sample of the documents; -1 without an estimate."""
    query, lists, best = work.query, work.lists, work.best
    rank = np.int64(k / _SHARE + _DEVIATIONS * np.sqrt(k / _SHARE)) + 1
    first = essential_from(query.reach, count, best.floor)
    postings = 0
    for t in range(first, count):
        postings += query.columns[t, STOP] - query.columns[t, BEGIN]
    if postings < 2 * _SHARE * rank:  # too few to be worth it
        return -1.0
    size = 0
    for start in range(_SAMPLE * _SHARE // 2, documents, _SAMPLE * _SHARE):
        for t in range(first, count):
            query.columns[t, AT] = seek(lists.docs, query.columns[t, AT], query.columns[t, STOP], start)
        size = _search_window(start, _SAMPLE, first, count, rank, size, work)
        first = essential_from(query.reach, count, best.floor)
    rewind(count, query)
    if size < rank:
        return -1.0
    keep_best(best.keys, size, rank)
    return lowest_score(best, rank) * TIE


@compiled
def _search_many(k: int, count: int, work: Work, stamp: int) -> int:
    """Run ``_walk_windows`` with the expected floor; if that floor was too high, run it again without."""
    best, floor = work.best, work.best.floor[0]
    expected = _expected_floor(k, count, len(work.seen) - 1, work)
    if expected > floor:
        best.floor[0] = expected
        size = _walk_windows(k, count, work, stamp)
        if size >= k:
            keep_best(best.keys, size, k)
            # No document below the expected floor can tie with the last one.
            if lowest_score(best, k) * TIE >= expected:
                return k
        rewind(count, work.query)
    best.floor[0] = floor
    return int(_walk_windows(k, count, work, stamp + 1))


@compiled
def search_bags(
    rows: Any, bags: Bags, k: int, lists: Lists, terms: TermTables, out_docs: Any, out_scores: Any, out_counts: Any,
    seen: Any, stamp: int,
) -> None:  # fmt: skip
    """Search some of the bags. Row i of the output belongs to bag i.

    A query marks the documents that it has kept in ``seen`` with a number of its own. Each row has two such numbers,
    from ``stamp`` on.
    """
    widest = 1
    for row in rows:
        widest = max(widest, bags.offsets[row + 1] - bags.offsets[row])
    as_float = np.zeros(1, np.float32)
    best = KeptHits(np.zeros(2 * k + 2, np.uint64), np.zeros(1), as_float, as_float.view(np.uint32))
    window = Window(np.zeros(_WINDOW), np.zeros(_WINDOW >> 6, np.uint64))
    work = Work(room_for_lists(widest), lists, best, window, room_for_open(_WINDOW), seen)
    for row in rows:
        part = slice(bags.offsets[row], bags.offsets[row + 1])
        best.floor[0] = -1.0
        count = order_lists(bags.terms[part], bags.weights[part], terms, work.query, best.floor)
        if k <= FEW:
            size = _walk_lists(k, count, work, stamp + 2 * row)
        else:
            size = _search_many(k, count, work, stamp + 2 * row)
        size = sort_best(best, size, k)
        out_counts[row] = size
        write_best(best, size, out_docs[row], out_scores[row])


# Search bags of weighted terms in several threads. Equal bags are searched once.

MOST = 1000
# Searching this many postings takes a millisecond or two.
_SMALL = 500_000


class BagSearcher:
    """Searches weighted postings. The data of a term is compared with its checksums at its first search."""

    def __init__(
        self, offsets: CheckedArray, docs: CheckedArray, weights: Weights, documents: int, threads: int | None = None
    ) -> None:
        self.offsets, self.docs, self.weights, self.documents = offsets, docs, weights, documents
        self._checked = np.zeros(max(len(offsets) - 1, 0), np.bool_)
        self.threads = threads or machine.threads()
        self._pool = ThreadPoolExecutor(self.threads)
        self._own = threading.local()
        self._stamp, self._lock = 1, threading.Lock()

    def _seen(self) -> Any:
        if not hasattr(self._own, "seen"):
            self._own.seen = np.zeros(self.documents + 1, np.int32)
        return self._own.seen

    def _check(self, terms: Any) -> None:
        """Check all data that a search of these terms may read, for terms that were not searched before."""
        if self._checked[terms].all():
            return
        new = np.unique(terms[~self._checked[terms]])
        self.offsets.check(new, new + 2)
        starts, stops = self.offsets.raw[new], self.offsets.raw[new + 1]
        self.docs.check(starts, stops)
        self.weights.arrays["impacts"].check(starts, stops)
        self.weights.check(new, stops - starts, self.documents)
        self._checked[new] = True

    def search(self, bags: Bags, k: int) -> Hits:
        """Search the distinct bags in several threads, and return the results of every query."""
        if not 1 <= k <= MOST:
            raise ConfigError(f"k must be from 1 to {MOST}, found {k}")
        self._check(bags.terms)
        count = len(bags.offsets) - 1
        docs, scores = np.zeros((count, k), np.int32), np.zeros((count, k), np.float32)
        sizes = np.zeros(count, np.int64)
        with self._lock:
            # Each query has two numbers that no earlier query had.
            if self._stamp + 2 * count >= 1 << 31:
                self._own, self._stamp = threading.local(), 1
            stamp, self._stamp = self._stamp, self._stamp + 2 * count
        raw = {name: array.raw for name, array in self.weights.arrays.items()}
        lists = Lists(self.docs.raw, *(raw[name] for name in Lists._fields[1:]))
        raw |= {"offsets": self.offsets.raw, "term_kth": raw[f"kth{min(size for size in KTH if size >= k)}"]}
        terms = TermTables(*(raw[name] for name in TermTables._fields))

        def work(rows: Any) -> None:
            search_bags(rows, bags, k, lists, terms, docs, scores, sizes, self._seen(), stamp)

        # A small search has one part: it ends before other threads would start.
        starts = self.offsets.raw
        small = int((starts[bags.terms + 1] - starts[bags.terms]).sum()) < _SMALL
        count = 1 if small or self.threads == 1 else max(1, min(count, 8 * self.threads))
        parts = np.array_split(np.arange(len(sizes)), count)
        if len(parts) == 1:
            work(parts[0])
        else:
            list(self._pool.map(work, parts))
        offsets = np.concatenate([[0], np.cumsum(sizes[bags.which])]).astype(np.int64)
        all_docs, all_scores = np.empty(int(offsets[-1]), np.int32), np.empty(int(offsets[-1]), np.float32)
        _copy_rows(bags.which, offsets, docs, scores, all_docs, all_scores)
        return Hits(offsets, all_docs, all_scores)


def distinct_bags(offsets: Any, terms: Any, weights: Any) -> Bags:
    """Merge equal bags."""
    seen: dict[bytes, int] = {}
    which = np.empty(len(offsets) - 1, np.int64)
    first: list[int] = []
    edges = offsets.tolist()
    for query in range(len(which)):
        a, b = edges[query], edges[query + 1]
        key = terms[a:b].tobytes() + weights[a:b].tobytes()
        which[query] = seen.setdefault(key, len(seen))
        if len(seen) > len(first):
            first.append(query)
    chosen = np.array(first, np.int64)
    sizes = np.diff(offsets)[chosen]
    new = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    take = np.arange(int(new[-1])) - np.repeat(new[:-1], sizes) + np.repeat(offsets[chosen], sizes)
    return Bags(new, terms[take].astype(np.int64), weights[take], which)


@compiled
def _copy_rows(which: Any, offsets: Any, docs: Any, scores: Any, all_docs: Any, all_scores: Any) -> None:
    for query in range(len(which)):
        row, start = which[query], offsets[query]
        for i in range(offsets[query + 1] - start):
            all_docs[start + i], all_scores[start + i] = docs[row, i], scores[row, i]
