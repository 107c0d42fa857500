"""The posting lists of a query: their positions, their upper bounds, and their scores for a document.

Three tables bound the score of a list before a posting is looked up. The maximum of the list bounds all documents. A
list with more than one posting per 256 documents has a byte for every sixteen documents: the most that it adds to one
of them. A list with more than one posting per 64 documents also has a bit for every document, set if the document has
the term, and for every 64 documents the position of their first posting. Counting bits then finds the posting of a
document.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import prange

from askew.core.compiled import compiled, count_bits, sort_ascending
from askew.core.errors import ConfigError
from askew.search.disk import FORMAT, CheckedArray, check_files, describe_file, read_sealed, write_sealed

# The impacts of postings: BM25 and query likelihood as Lucene computes them, with the same float arithmetic.

LENGTHS = ("lucene", "exact")
Floats = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Bm25:
    """BM25. ``lengths='lucene'`` rounds document lengths to one byte as Lucene does; 'exact' does not."""

    k1: float = 0.9
    b: float = 0.4
    lengths: str = "lucene"

    def __post_init__(self) -> None:
        if not (self.k1 >= 0 and 0 <= self.b <= 1) or self.lengths not in LENGTHS:
            raise ConfigError(f"bm25: expected k1 >= 0, 0 <= b <= 1 and ⟨lengths⟩ of {LENGTHS}; found {self}")

    @property
    def id(self) -> str:
        """The name of these weights in file names."""
        return f"bm25-{self.k1:g}-{self.b:g}-{self.lengths}"


@dataclass(frozen=True)
class Qld:
    """Query likelihood with Dirichlet smoothing."""

    mu: float = 1000.0
    lengths: str = "lucene"

    def __post_init__(self) -> None:
        if not self.mu > 0 or self.lengths not in LENGTHS:
            raise ConfigError(f"qld: expected mu > 0 and ⟨lengths⟩ of {LENGTHS}; found {self}")

    @property
    def id(self) -> str:
        """The name of these weights in file names."""
        return f"qld-{self.mu:g}-{self.lengths}"


Model = Bm25 | Qld

# Settings that papers use, by name.
MODELS: dict[str, Model] = {"bm25": Bm25(), "bm25-msmarco": Bm25(0.82, 0.68), "qld": Qld()}


def shorten(lengths: np.ndarray[Any, np.dtype[np.int32]]) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Document lengths as Lucene stores them: exact up to 40, above with four significant bits of length - 24."""
    values = np.maximum(lengths.astype(np.int64) - 24, 0)
    bits = np.frexp(values.astype(np.float64))[1]
    drop = np.maximum(bits - 4, 0)
    rounded = (values >> drop) << drop
    return np.where(lengths < 24, lengths, rounded + 24).astype(np.int32)


def term_totals(offsets: Any, tf: Any) -> Any:
    """The number of occurrences of each term in the collection."""
    return np.add.reduceat(tf.astype(np.int64), offsets[:-1]) if len(tf) else np.zeros(0, np.int64)


def weigh(model: Model, documents: int, lengths: Any, offsets: Any, docs: Any, tf: Any, out: Floats) -> None:
    """Fill ``out`` with the impacts of all postings. ``documents`` counts the documents that have a term."""
    tokens = int(lengths.sum(dtype=np.int64))
    lengths = shorten(lengths) if model.lengths == "lucene" else lengths
    if isinstance(model, Qld):
        share = (term_totals(offsets, tf) + 1.0) / (tokens + 1.0)
        _weigh_qld(np.float64(np.float32(model.mu)), share, lengths, offsets, docs, tf, out)
        return
    average = np.float32(max(tokens, 1) / max(documents, 1))
    k1, b = np.float32(model.k1), np.float32(model.b)
    with np.errstate(divide="ignore"):
        norms = np.float32(1) / (k1 * ((np.float32(1) - b) + b * lengths.astype(np.float32) / average))
    frequency = np.diff(offsets).astype(np.float64)
    idf = np.log(1 + (documents - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)
    _weigh_bm25(idf, norms.astype(np.float32), offsets, docs, tf, out)


@compiled(parallel=True)
def _weigh_bm25(idf: Any, norms: Any, offsets: Any, docs: Any, tf: Any, out: Any) -> None:
    for term in prange(len(offsets) - 1):
        weight = idf[term]
        for p in range(offsets[term], offsets[term + 1]):
            out[p] = weight - weight / (np.float32(1) + np.float32(tf[p]) * norms[docs[p]])


@compiled(parallel=True)
def _weigh_qld(mu: Any, share: Any, lengths: Any, offsets: Any, docs: Any, tf: Any, out: Any) -> None:
    for term in prange(len(offsets) - 1):
        for p in range(offsets[term], offsets[term + 1]):
            gain = np.log(1.0 + np.float64(tf[p]) / (mu * share[term]))
            loss = np.log(mu / (np.float64(lengths[docs[p]]) + mu))
            out[p] = max(np.float32(gain + loss), np.float32(0))


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


# The impacts of all postings, and bounds for skipping documents: computed once, stored and memory-mapped.

KTH = (10, 100, 1000)
# Lists with at most one posting per 256 documents have no ranges, and those with at most one per 64 have no bits (see
# ``askew.search.bm25.postings``): they are short enough to search.
_SPARSE, _LESS_DENSE = 256, 64
_FILES = (
    *("impacts.f32", "block_offsets.i64", "block_max.f32", "term_max.f32", "range_offsets.i64", "ranges.u8"),
    *("bit_offsets.i64", "bits.u64", "ranks.i32", *(f"kth{k}.f32" for k in KTH)),
)


class Weights:
    """The impacts of all postings under one model, with the bounds that the search needs, each checked at first use."""

    def __init__(self, folder: Path) -> None:
        header = read_sealed(folder / "header.json", f"weights {folder}")
        check_files(folder, header, lazily=header["files"])
        self.arrays = {Path(n).stem: CheckedArray(folder / n, header["files"].get(n, {})) for n in _FILES}

    def check(self, terms: Any, sizes: Any, documents: int) -> None:
        """Check all data that a search for ``terms`` reads, except the impacts (the scores of the postings).

        ``sizes`` has the number of postings of each term in ``terms``.
        """
        for name in ("block_offsets", "term_max", "range_offsets", "bit_offsets", *(f"kth{k}" for k in KTH)):
            self.arrays[name].check(terms, terms + 1)
        first = self.arrays["block_offsets"].raw[terms]
        self.arrays["block_max"].check(first, first + -(-sizes // BLOCK))
        tables = self.arrays["range_offsets"].raw[terms]
        tables = tables[tables >= 0]
        self.arrays["ranges"].check(tables, tables + (documents >> RANGE_BITS) + 1)
        words = self.arrays["bit_offsets"].raw[terms]
        words = words[words >= 0]
        for name in ("bits", "ranks"):
            self.arrays[name].check(words, words + (documents >> WORD_BITS) + 1)


def write_weights(folder: Path, name: str, offsets: Any, docs: Any, impacts: Any, documents: int) -> None:
    """Write the impacts of all postings and their bounds to a folder, completely or not at all.

    Several processes may do this at the same time: the first to finish creates the folder, and the others discard their
    identical copies.
    """
    made = Path(tempfile.mkdtemp(prefix=".writing-", dir=folder.parent))
    try:
        block_offsets = np.concatenate([[0], np.cumsum(-(-np.diff(offsets) // BLOCK))]).astype(np.int64)
        block_max = np.zeros(int(block_offsets[-1]), np.float32)
        term_max = np.zeros(len(offsets) - 1, np.float32)
        kth = [np.zeros(len(offsets) - 1, np.float32) for _ in KTH]
        _bounds(offsets, impacts, block_offsets, block_max, term_max, *kth)
        ranges = _ranges(offsets, docs, impacts, term_max, documents)
        arrays = (impacts, block_offsets, block_max, term_max, *ranges, *_members(offsets, docs, documents), *kth)
        for file, array in zip(_FILES, arrays, strict=True):
            array.tofile(made / file)
        known = {file: describe_file(made / file) for file in _FILES}
        write_sealed(made / "header.json", {"model": name, "format": FORMAT, "files": known})
        made.chmod(0o755)
        try:
            made.rename(folder)
        except OSError:
            if not (folder / "header.json").exists():  # left by an interrupted write
                shutil.rmtree(folder)
                made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _ranges(offsets: Any, docs: Any, impacts: Any, term_max: Any, documents: int) -> tuple[Any, Any]:
    """The highest impact of a list in each range of documents, as a share of its maximum, rounded up to a byte."""
    long = np.flatnonzero(np.diff(offsets) * _SPARSE > documents)
    width = (documents >> RANGE_BITS) + 1
    starts = np.full(len(offsets) - 1, -1, np.int64)
    starts[long] = np.arange(len(long)) * width
    ranges = np.zeros(len(long) * width, np.uint8)
    _fill_ranges(long, starts, offsets, docs, impacts, term_max, ranges)
    return starts, ranges


def _members(offsets: Any, docs: Any, documents: int) -> tuple[Any, Any, Any]:
    """A bit for every document of a dense list, and for every 64 documents the number of postings before them."""
    dense = np.flatnonzero(np.diff(offsets) * _LESS_DENSE > documents)
    width = (documents >> WORD_BITS) + 1
    starts = np.full(len(offsets) - 1, -1, np.int64)
    starts[dense] = np.arange(len(dense)) * width
    bits, ranks = np.zeros(len(dense) * width, np.uint64), np.zeros(len(dense) * width, np.int32)
    _fill_members(dense, starts, offsets, docs, width, bits, ranks)
    return starts, bits, ranks


@compiled(parallel=True)
def _fill_members(dense: Any, starts: Any, offsets: Any, docs: Any, width: int, bits: Any, ranks: Any) -> None:
    for i in prange(len(dense)):
        term = dense[i]
        p = offsets[term]
        for word in range(width):
            ranks[starts[term] + word] = p - offsets[term]
            while p < offsets[term + 1] and docs[p] >> WORD_BITS == word:
                bits[starts[term] + word] |= np.uint64(1) << np.uint64(docs[p] & 63)
                p += 1


@compiled(parallel=True)
def _fill_ranges(long: Any, starts: Any, offsets: Any, docs: Any, impacts: Any, term_max: Any, ranges: Any) -> None:
    for i in prange(len(long)):
        term = long[i]
        for p in range(offsets[term], offsets[term + 1]):
            share = np.uint8(np.ceil(np.float64(impacts[p]) / np.float64(term_max[term]) * 255.0))
            at = starts[term] + (docs[p] >> RANGE_BITS)
            ranges[at] = max(ranges[at], share)


@compiled(parallel=True)
def _bounds(
    offsets: Any, impacts: Any, block_offsets: Any, block_max: Any, term_max: Any, kth10: Any, kth100: Any, kth1000: Any
) -> None:
    for term in prange(len(offsets) - 1):
        start, stop = offsets[term], offsets[term + 1]
        for block in range(block_offsets[term + 1] - block_offsets[term]):
            most = np.float32(0)
            for p in range(start + block * BLOCK, min(start + (block + 1) * BLOCK, stop)):
                most = max(most, impacts[p])
            block_max[block_offsets[term] + block] = most
            term_max[term] = max(term_max[term], most)
        if stop - start >= 10:
            ordered = impacts[start:stop].copy()
            sort_ascending(ordered)
            kth10[term] = ordered[-10]
            if stop - start >= 100:
                kth100[term] = ordered[-100]
            if stop - start >= 1000:
                kth1000[term] = ordered[-1000]
