"""The BM25 index on disk: postings and all other data of the search, memory-mapped and checked at first use.

Weights (BM25 with any k1 and b, query likelihood) are computed from the postings at first use and stored in the index
folder, so new parameters do not require the texts again. ``askew.search.bm25.build`` makes an index.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numba import prange

from askew.core.compiled import compiled, sort_ascending
from askew.search.disk import (
    FORMAT,
    CheckedArray,
    bytes_of,
    check_files,
    describe_file,
    open_header,
    read_sealed,
    read_strings,
    write_sealed,
)

# The impacts of postings: BM25 and query likelihood as Lucene computes them, with the same float arithmetic.

LENGTHS = ("lucene", "exact")
Floats = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Bm25:
    """BM25. ``lengths='lucene'`` rounds document lengths to one byte as Lucene does; 'exact' does not."""

    k1: float = 0.9
    b: float = 0.4
    lengths: str = "lucene"

    @property
    def id(self) -> str:
        """The name of these weights in file names."""
        return f"bm25-{self.k1:g}-{self.b:g}-{self.lengths}"


@dataclass(frozen=True)
class Qld:
    """Query likelihood with Dirichlet smoothing."""

    mu: float = 1000.0
    lengths: str = "lucene"

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


# The impacts of all postings, and bounds for skipping documents: computed once, stored and memory-mapped.
#
# Three tables bound the score of a list before a posting is looked up. The maximum of the list bounds all documents. A
# list with more than one posting per 256 documents has a byte for every sixteen documents: the most that it adds to one
# of them. A list with more than one posting per 64 documents also has a bit for every document, set if the document has
# the term, and for every 64 documents the position of their first posting. Counting bits then finds the posting of a
# document. Shorter lists are short enough to search.

KTH = (10, 100, 1000)
BLOCK = 64
# A range has sixteen documents, which was the fastest size from 8 to 128. A long list has one byte per range.
RANGE_BITS = 4
WORD_BITS = 6
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
    temporary = Path(tempfile.mkdtemp(prefix=".writing-", dir=folder.parent))
    try:
        block_offsets = np.concatenate([[0], np.cumsum(-(-np.diff(offsets) // BLOCK))]).astype(np.int64)
        block_max = np.zeros(int(block_offsets[-1]), np.float32)
        term_max = np.zeros(len(offsets) - 1, np.float32)
        kth = [np.zeros(len(offsets) - 1, np.float32) for _ in KTH]
        _bounds(offsets, impacts, block_offsets, block_max, term_max, *kth)
        ranges = _ranges(offsets, docs, impacts, term_max, documents)
        arrays = (impacts, block_offsets, block_max, term_max, *ranges, *_members(offsets, docs, documents), *kth)
        for file, array in zip(_FILES, arrays, strict=True):
            array.tofile(temporary / file)
        checksums = {file: describe_file(temporary / file) for file in _FILES}
        write_sealed(temporary / "header.json", {"model": name, "format": FORMAT, "files": checksums})
        temporary.chmod(0o755)
        try:
            temporary.rename(folder)
        except OSError:
            if not (folder / "header.json").exists():  # left by an interrupted write
                shutil.rmtree(folder)
                temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


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


KIND = "bm25"
FORWARD = ("forward_offsets.i64", "forward_terms.i32", "forward_tf.i32")
ARRAYS = ("offsets.i64", "docs.i32", "tf.u8", "lengths.i32", "over.i64", *FORWARD)
STRINGS = ("terms.arrow", "doc_ids.arrow")


class Index:
    """An index opened for searching. Its files are checked; large arrays stay on disk, and are checked when read."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = folder = Path(folder)
        self.header = open_header(folder, KIND, lazily=ARRAYS)
        files = self.header["files"]
        self._arrays = {name: CheckedArray(folder / name, files.get(name, {})) for name in ARRAYS}
        self.offsets, self.docs = self._arrays["offsets.i64"], self._arrays["docs.i32"]
        self.lengths = self._arrays["lengths.i32"]
        self.terms = read_strings(folder / "terms.arrow")
        self.doc_ids = read_strings(folder / "doc_ids.arrow")

    def __len__(self) -> int:
        return int(self.header["documents"])

    @property
    def with_text(self) -> int:
        """The number of documents that Anserini would index: all except those with a blank text."""
        return len(self) - int(self.header["blank"])

    def document_terms(self, doc: int) -> tuple[Any, Any]:
        """The term numbers of a document and their frequencies."""
        offsets, terms, tf = (self._arrays[name] for name in FORWARD)
        part = slice(int(offsets[doc]), int(offsets[doc + 1]))
        return terms[part], tf[part]

    def term_frequencies(self) -> Any:
        """The term frequency of each posting."""
        tf = self._arrays["tf.u8"].whole()
        over = self._arrays["over.i64"].whole().reshape(-1, 2)
        if not len(over):
            return tf
        full = tf.astype(np.int32)
        full[over[:, 0]] = over[:, 1]
        return full

    def term_numbers(self, terms: list[str]) -> Any:
        """The numbers of terms; -1 for terms that no document has."""
        numbers = np.full(len(terms), -1, np.int64)
        if len(terms) and len(self.terms):
            _find_terms(*bytes_of(pa.array(terms, pa.large_string())), *bytes_of(self.terms), numbers)
        return numbers

    def weights(self, model: Model) -> Weights:
        """The weights of a model, computed once and stored in the index folder."""
        folder = self.folder / f"weights-{model.id}"
        if not (folder / "header.json").exists():
            offsets, docs = self.offsets.whole(), self.docs.whole()
            impacts = np.empty(len(docs), np.float32)
            weigh(model, self.header["filled"], self.lengths.whole(), offsets, docs, self.term_frequencies(), impacts)
            write_weights(folder, model.id, offsets, docs, impacts, len(self))
        return Weights(folder)


@compiled
def _find_terms(data: Any, offsets: Any, terms: Any, known_offsets: Any, numbers: Any) -> None:
    """Find terms by binary search: hashing all known terms would take longer than most batches."""
    for i in range(len(numbers)):
        low, high = 0, len(known_offsets) - 1
        while low < high:
            middle = (low + high) >> 1
            order = _compare(data, offsets[i], offsets[i + 1], terms, known_offsets[middle], known_offsets[middle + 1])
            if order == 0:
                numbers[i] = middle
                break
            if order < 0:
                high = middle
            else:
                low = middle + 1


@compiled
def _compare(first: Any, a: int, a_stop: int, right: Any, b: int, b_stop: int) -> int:
    while a < a_stop and b < b_stop:
        if first[a] != right[b]:
            return -1 if first[a] < right[b] else 1
        a += 1
        b += 1
    return (a_stop - a > 0) - (b_stop - b > 0)
