"""The impacts of all postings, and bounds for skipping documents: computed once, stored and memory-mapped."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import prange

from askew.compiled import compiled
from askew.rankers.blocks import CheckedArray, describe_file
from askew.rankers.bm25.lists import BLOCK, RANGE_BITS, WORD_BITS
from askew.rankers.disk import FORMAT, check_files, read_sealed, write_sealed
from askew.sorting import sort_ascending

KTH = (10, 100, 1000)
# Lists with at most one posting per 256 documents have no ranges, and those with at most one per 64 have no bits (see
# ``askew.rankers.bm25.lists``): they are short enough to search.
_SPARSE, _LESS_DENSE = 256, 64
_DTYPES = {"f32": np.float32, "i64": np.int64, "i32": np.int32, "u8": np.uint8, "u64": np.uint64}


@dataclass(frozen=True)
class Weights:
    """The impacts of all postings under one model, with the bounds that the search needs."""

    impacts: CheckedArray
    block_offsets: CheckedArray
    block_max: CheckedArray
    term_max: CheckedArray
    range_offsets: CheckedArray
    ranges: CheckedArray
    bit_offsets: CheckedArray
    bits: CheckedArray
    ranks: CheckedArray
    kth: dict[int, CheckedArray]

    def check(self, terms: Any, sizes: Any, documents: int) -> None:
        """Check all data that a search for ``terms`` reads, except the impacts (the scores of the postings).

        ``sizes`` has the number of postings of each term in ``terms``.
        """
        for values in (self.block_offsets, self.term_max, self.range_offsets, self.bit_offsets, *self.kth.values()):
            values.check(terms, terms + 1)
        first = self.block_offsets.raw[terms]
        self.block_max.check(first, first + -(-sizes // BLOCK))
        tables = self.range_offsets.raw[terms]
        tables = tables[tables >= 0]
        self.ranges.check(tables, tables + (documents >> RANGE_BITS) + 1)
        words = self.bit_offsets.raw[terms]
        words = words[words >= 0]
        for values in (self.bits, self.ranks):
            values.check(words, words + (documents >> WORD_BITS) + 1)


def write_weights(folder: Path, name: str, offsets: Any, docs: Any, impacts: Any, documents: int) -> None:
    """Write the impacts of all postings and their bounds to a folder, completely or not at all.

    Several processes may do this at the same time: the first to finish creates the folder, and the others discard their
    identical copies.
    """
    made = Path(tempfile.mkdtemp(prefix=".writing-", dir=folder.parent))
    try:
        _write(made, name, offsets, docs, impacts, documents)
        made.chmod(0o755)
        try:
            made.rename(folder)
        except OSError:
            if not (folder / "header.json").exists():  # left by an interrupted write
                shutil.rmtree(folder)
                made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _write(folder: Path, name: str, offsets: Any, docs: Any, impacts: Any, documents: int) -> None:
    block_offsets = np.concatenate([[0], np.cumsum(-(-np.diff(offsets) // BLOCK))]).astype(np.int64)
    block_max = np.zeros(int(block_offsets[-1]), np.float32)
    term_max = np.zeros(len(offsets) - 1, np.float32)
    kth = [np.zeros(len(offsets) - 1, np.float32) for _ in KTH]
    _bounds(offsets, impacts, block_offsets, block_max, term_max, *kth)
    starts, ranges = _ranges(offsets, docs, impacts, term_max, documents)
    bit_starts, bits, ranks = _members(offsets, docs, documents)
    files: dict[str, Any] = {
        "range_offsets.i64": starts,
        "ranges.u8": ranges,
        "bit_offsets.i64": bit_starts,
        "bits.u64": bits,
        "ranks.i32": ranks,
        "impacts.f32": impacts,
        "block_offsets.i64": block_offsets,
        "block_max.f32": block_max,
        "term_max.f32": term_max,
    }
    files |= {f"kth{k}.f32": values for k, values in zip(KTH, kth, strict=True)}
    for file, array in files.items():
        array.tofile(folder / file)
    known = {file: describe_file(folder / file) for file in files}
    write_sealed(folder / "header.json", {"model": name, "format": FORMAT, "files": known})


def read_weights(folder: Path) -> Weights:
    """Memory-map weights from disk. They are checked at first use."""
    header = read_sealed(folder / "header.json", f"weights {folder}")
    files = header["files"]
    check_files(folder, header, lazily=files)

    def read(name: str) -> CheckedArray:
        return CheckedArray(folder / name, _DTYPES[name.rpartition(".")[2]], files.get(name, {}))

    offsets = read("block_offsets.i64")
    if "bits.u64" in files:
        bits = read("bit_offsets.i64"), read("bits.u64"), read("ranks.i32")
    else:  # written by a version without bits
        none = np.full(len(offsets) - 1, -1, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.int32)
        bits = CheckedArray.of(none[0]), CheckedArray.of(none[1]), CheckedArray.of(none[2])
    return Weights(
        read("impacts.f32"), offsets, read("block_max.f32"), read("term_max.f32"), read("range_offsets.i64"),
        read("ranges.u8"), *bits, {k: read(f"kth{k}.f32") for k in KTH},
    )  # fmt: skip


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
