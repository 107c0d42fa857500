"""Build an index from a stream of documents: several threads tokenize texts, and tokens are sorted into postings.

The collection is never held in memory. After a fixed number of tokens, a part of the index is written to disk. At the
end the parts are merged in the same way as shards.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core import machine
from askew.core.compiled import compiled
from askew.core.files import HALF_WRITTEN
from askew.core.folders import refuse_full
from askew.search.bm25.analyze import Analyzer, Ints, TermReader, TermVocabulary
from askew.search.bm25.index import ARRAYS, KIND, STRINGS, Index
from askew.search.disk import (
    TEXT_OFFSETS,
    TEXTS,
    check_file,
    dtype_of,
    flat,
    new_folder,
    read_header,
    read_strings,
    refuse_repeats,
    write_header,
    write_strings,
)
from askew.search.feedback import BLANK

# Merge shards into one index. A shard is an index of a range of the documents.

# Postings that are merged at a time.
_PIECE = 1 << 22
# Pieces that threads prepare at a time.
_AHEAD = 3
# Header fields that are sums over the shards.
_SUMS = ("documents", "postings", "tokens", "filled", "blank")


def merge_shards(shards: Sequence[Path | str], out: Path | str) -> Index:
    """Merge indexes of ranges of documents, in the given order, into a new folder, completely or not at all.

    All shards are made with the same settings.
    """
    out = Path(out)
    refuse_full(out)
    with tempfile.TemporaryDirectory(prefix=HALF_WRITTEN, dir=out.parent) as temporary:
        folder = Path(temporary, out.name)
        folder.mkdir()
        write_merged([Path(shard) for shard in shards], folder, machine.threads())
        folder.rename(out)
    return Index(out)


def write_merged(folders: Sequence[Path], out: Path, threads: int) -> None:
    """Write the index of all shards to a folder. The header is written last."""
    with ThreadPoolExecutor(threads) as pool:
        shards = _open(folders, pool)
        doc_ids = pa.concat_arrays([shard.doc_ids for shard in shards])
        refuse_repeats(doc_ids)
        terms = pc.unique(pa.concat_arrays([shard.terms for shard in shards]))
        terms = terms.take(pc.array_sort_indices(terms))  # in byte order
        for shard in shards:
            shard.number = pc.index_in(shard.terms, value_set=terms).to_numpy().astype(np.int32)
        write_strings(out / "terms.arrow", terms)
        write_strings(out / "doc_ids.arrow", doc_ids)
        _write_arrays(shards, len(terms), out, pool)
    headers = [shard.header for shard in shards]
    facts: dict[str, Any] = {name: sum(header[name] for header in headers) for name in _SUMS}
    facts |= {"analyzer": headers[0]["analyzer"], "terms": len(terms)}
    write_header(out, KIND, [*ARRAYS, *STRINGS], facts)


class _Shard:
    """A verified shard. It is read in pieces, because a memory-mapped file would fill the memory."""

    def __init__(self, folder: Path, header: dict[str, Any]) -> None:
        self.folder, self.header, self.first = folder, header, 0
        self.documents, self.postings = int(header["documents"]), int(header["postings"])
        self.terms, self.doc_ids = (read_strings(folder / name) for name in STRINGS)
        self.offsets = self.read("offsets.i64")
        self.number: Any = None

    def read(self, name: str, start: int = 0, count: int = -1) -> Any:
        """Read ``count`` numbers of a file from ``start`` on; by default all of them."""
        dtype = dtype_of(name)
        return np.fromfile(self.folder / name, dtype, count, offset=start * dtype.itemsize)

    def frequencies(self, terms: int) -> Any:
        """The number of postings in this shard for each term of the merged index."""
        counts = np.zeros(terms, np.int64)
        counts[self.number] = np.diff(self.offsets)
        return counts


def _open(folders: Sequence[Path], pool: ThreadPoolExecutor) -> list[_Shard]:
    """Open shards and verify every byte of them."""
    headers = [read_header(folder) for folder in folders]
    files = [(f / name, facts) for f, h in zip(folders, headers, strict=True) for name, facts in h["files"].items()]
    list(pool.map(lambda file: check_file(*file), files))
    shards = [_Shard(folder, header) for folder, header in zip(folders, headers, strict=True)]
    for before, shard in itertools.pairwise(shards):
        shard.first = before.first + before.documents
    return shards


def _write_arrays(shards: Sequence[_Shard], terms: int, out: Path, pool: ThreadPoolExecutor) -> None:
    def write(name: str, pieces: Iterable[Any]) -> None:
        with (out / name).open("wb") as file:
            for piece in pieces:
                piece.tofile(file)

    offsets = np.zeros(terms + 1, np.int64)
    for shard in shards:
        offsets[1:] += shard.frequencies(terms)
    offsets = np.cumsum(offsets)
    write("offsets.i64", [offsets])
    write("lengths.i32", (shard.read("lengths.i32") for shard in shards))
    write("over.i64", [_merged_over(shards, offsets)])
    with (out / "docs.i32").open("wb") as docs, (out / "tf.u8").open("wb") as tf:
        for some_docs, some_tf in _merged_postings(shards, offsets, pool):
            some_docs.tofile(docs)
            some_tf.tofile(tf)
    write("forward_offsets.i64", _joined_offsets(shards, "forward_offsets.i64"))
    write("forward_terms.i32", (shard.number[piece] for shard, piece in _pieces(shards, "forward_terms.i32")))
    write("forward_tf.i32", (piece for _, piece in _pieces(shards, "forward_tf.i32")))
    if TEXTS in shards[0].header["files"]:
        write(TEXTS, (piece for _, piece in _pieces(shards, TEXTS)))
        write(TEXT_OFFSETS, _joined_offsets(shards, TEXT_OFFSETS))


def _pieces(shards: Sequence[_Shard], name: str) -> Iterator[tuple[_Shard, Any]]:
    for shard in shards:
        size = shard.header["files"][name]["size"] // dtype_of(name).itemsize
        for start in range(0, size, _PIECE):
            yield shard, shard.read(name, start, min(_PIECE, size - start))


def _joined_offsets(shards: Sequence[_Shard], name: str) -> Iterator[Any]:
    end = np.zeros(1, np.int64)
    yield end
    for shard in shards:
        offsets = shard.read(name) + end
        yield offsets[1:]
        end = offsets[-1:]


def _merged_over(shards: Sequence[_Shard], offsets: Any) -> Any:
    """The counts above 255 with the new positions of their postings."""
    moved, begins = [], offsets[:-1].copy()
    for shard in shards:
        over = shard.read("over.i64").reshape(-1, 2)
        term = np.searchsorted(shard.offsets, over[:, 0], side="right") - 1
        places = begins[shard.number[term]] + over[:, 0] - shard.offsets[term]
        moved.append(np.stack([places, over[:, 1]], axis=1))
        begins += shard.frequencies(len(begins))
    over = np.concatenate(moved)
    return over[np.argsort(over[:, 0])]


def _merged_postings(shards: Sequence[_Shard], offsets: Any, pool: ThreadPoolExecutor) -> Iterator[tuple[Any, Any]]:
    """Yield the merged postings in pieces, ordered by term. Several threads prepare a few pieces ahead."""
    edges = [0]
    while edges[-1] < len(offsets) - 1:
        stop = int(np.searchsorted(offsets, offsets[edges[-1]] + _PIECE, side="right")) - 1
        edges.append(max(stop, edges[-1] + 1))
    yield from machine.in_order(pool, partial(_piece, shards, offsets), itertools.pairwise(edges), _AHEAD)


def _piece(shards: Sequence[_Shard], offsets: Any, terms: tuple[int, int]) -> tuple[Any, Any]:
    first, stop = terms
    size = int(offsets[stop] - offsets[first])
    docs, tf = np.empty(size, np.int32), np.empty(size, np.uint8)
    cursor = offsets[first:stop] - offsets[first]
    for shard in shards:
        a, b = np.searchsorted(shard.number, (first, stop)).tolist()
        begin, end = int(shard.offsets[a]), int(shard.offsets[b])
        if begin < end:
            _append(
                shard.read("docs.i32", begin, end - begin), shard.read("tf.u8", begin, end - begin),
                shard.offsets[a : b + 1] - begin, shard.number[a:b] - first, shard.first, cursor, docs, tf,
            )  # fmt: skip
    return docs, tf


@compiled
def _append(
    docs: Any, tf: Any, offsets: Any, numbers: Any, first_doc: int, cursor: Any, out_docs: Any, out_tf: Any
) -> None:
    for i in range(len(numbers)):
        at = cursor[numbers[i]]
        for p in range(offsets[i], offsets[i + 1]):
            out_docs[at], out_tf[at] = docs[p] + first_doc, tf[p]
            at += 1
        cursor[numbers[i]] = at


# Convert the tokens of documents to postings by counting sort.

_MOST_TF = 255
Longs = np.ndarray[Any, np.dtype[np.int64]]


def invert(tokens: Sequence[Any], counts: Sequence[Any], place: Ints, totals: Longs) -> tuple[Any, Any, Any, Any, Any]:
    """Make postings from the tokens of batches: their offsets by term, documents, frequencies, those above 255 as
    position and frequency, and the number of distinct terms per document.

    ``place`` is the final number of each term, and ``totals`` the number of tokens of each final number.
    """
    edges = np.concatenate([[0], np.cumsum(totals)]).astype(np.int64)
    docs = np.empty(int(edges[-1]), np.int32)
    cursor, first = edges[:-1].copy(), 0
    for part, sizes in zip(tokens, counts, strict=True):
        _scatter(part, sizes, place, first, cursor, docs)
        first += len(sizes)
    tf, offsets, sizes = np.empty(len(docs), np.uint8), np.zeros(len(edges), np.int64), np.zeros(first, np.int64)
    over = _count_repeats(edges, docs, tf, offsets, sizes)
    used = int(offsets[-1])
    return offsets, docs[:used], tf[:used], np.array(over, np.int64).reshape(len(over), 2), sizes


@compiled
def _count(tokens: Any, totals: Any) -> None:
    for i in range(len(tokens)):
        totals[tokens[i]] += 1


@compiled
def _scatter(tokens: Any, sizes: Any, place: Any, first: int, cursor: Any, docs: Any) -> None:
    at = 0
    for doc in range(len(sizes)):
        for _ in range(sizes[doc]):
            term = place[tokens[at]]
            docs[cursor[term]] = first + doc
            cursor[term] += 1
            at += 1


@compiled
def _count_repeats(edges: Any, docs: Any, tf: Any, offsets: Any, sizes: Any) -> Any:
    """Merge adjacent equal documents into one posting, in place. Returns positions and counts of those above 255."""
    high = [(np.int64(0), np.int64(0)) for _ in range(0)]
    used = 0
    for term in range(len(edges) - 1):
        at, stop = edges[term], edges[term + 1]
        while at < stop:
            doc, begin = docs[at], at
            while at < stop and docs[at] == doc:
                at += 1
            docs[used], tf[used] = doc, min(at - begin, _MOST_TF)
            if at - begin > _MOST_TF:
                high.append((np.int64(used), np.int64(at - begin)))
            sizes[doc] += 1
            used += 1
        offsets[term + 1] = used
    return high


@compiled
def _turn(offsets: Any, docs: Any, tf: Any, over: Any, cursor: Any, out_terms: Any, out_tf: Any) -> None:
    high = 0
    for term in range(len(offsets) - 1):
        for p in range(offsets[term], offsets[term + 1]):
            at = cursor[docs[p]]
            cursor[docs[p]] = at + 1
            out_terms[at], out_tf[at] = term, tf[p]
            if high < len(over) and over[high, 0] == p:
                out_tf[at] = over[high, 1]
                high += 1


# Documents that one thread reads at a time.
_ROWS = 8192
# Tokens in memory before a part is written: some hundred MB, including the data computed from them.
_MOST_TOKENS = 1 << 25
_PARTS = f"{HALF_WRITTEN}parts"


def build_index(
    batches: Iterable[pa.Table], folder: Path, analyzer: Analyzer | None = None, threads: int | None = None
) -> Index:
    """Index batches of (doc_id, text). To index in shards, index ranges of documents and use ``merge_shards``."""
    analyzer, threads = analyzer or Analyzer(), threads or machine.threads()
    new_folder(folder)
    spare = folder / _PARTS
    shutil.rmtree(spare, ignore_errors=True)  # left by an interrupted build
    vocabulary = TermVocabulary(analyzer.to_terms)
    parts: list[Future[Path]] = []
    part = _Part(analyzer.name, vocabulary)
    try:
        with ThreadPoolExecutor(1) as writer:
            for doc_ids, terms, counts, blank in _read(analyzer, vocabulary, batches, threads):
                part.add(doc_ids, terms, counts, blank)
                if part.size >= _MOST_TOKENS:
                    if parts:
                        parts[-1].result()  # write at most one part while the next is read
                    parts.append(writer.submit(part.write, spare / str(len(parts))))
                    part = _Part(analyzer.name, vocabulary)
            if parts:
                parts.append(writer.submit(part.write, spare / str(len(parts))))
            folders = [part_folder.result() for part_folder in parts]
        if parts:
            write_merged(folders, folder, threads)
        else:
            part.write(folder)
    finally:
        shutil.rmtree(spare, ignore_errors=True)
    return Index(folder)


def _read(
    analyzer: Analyzer, vocabulary: TermVocabulary, batches: Iterable[pa.Table], threads: int
) -> Iterator[tuple[pa.Array, Ints, Ints, int]]:
    """Yield the terms of documents in order. Several threads analyze a few batches ahead."""
    own = threading.local()

    def read(documents: pa.Table) -> tuple[pa.Array, Ints, Ints, int]:
        if not hasattr(own, "reader"):
            own.reader = TermReader(analyzer, vocabulary)
        texts = flat(documents["text"]).cast(pa.large_string()).fill_null("")
        terms, counts, words = own.reader.read(texts)
        # Only texts without words can be only white space.
        wordless = texts.filter(pa.array(words == 0))
        blank = int(pc.sum(pc.equal(pc.utf8_trim(wordless, BLANK), "")).as_py() or 0)
        return flat(documents["doc_id"]).cast(pa.string()), terms, counts, blank

    parts = (batch.slice(start, _ROWS) for batch in batches for start in range(0, batch.num_rows, _ROWS))
    with ThreadPoolExecutor(threads) as pool:
        yield from machine.in_order(pool, read, parts, 2 * threads + 1)


class _Part:
    """The tokens of consecutive documents, collected until they are written as a partial index."""

    def __init__(self, analyzer: str, vocabulary: TermVocabulary) -> None:
        self.analyzer, self.vocabulary = analyzer, vocabulary
        self.doc_ids: list[pa.Array] = [pa.array([], pa.string())]
        self.tokens: list[Any] = []
        self.counts: list[Any] = [np.zeros(0, np.int32)]
        self.size, self.blank = 0, 0

    def add(self, doc_ids: pa.Array, terms: Ints, counts: Ints, blank: int) -> None:
        """Add documents; ``blank`` is the number of texts that are only white space."""
        self.doc_ids.append(doc_ids)
        self.tokens.append(terms)
        self.counts.append(counts)
        self.size += len(terms)
        self.blank += blank

    def write(self, folder: Path) -> Path:
        """Write the index to a folder. The header is written last."""
        folder.mkdir(parents=True, exist_ok=True)
        doc_ids = pa.concat_arrays(self.doc_ids)
        refuse_repeats(doc_ids)
        place, totals, names = self._terms()
        offsets, docs, tf, over, sizes = invert(self.tokens, self.counts[1:], place, totals)
        self.tokens = []  # as large as the postings, and not needed any more
        # The terms of each document in ascending order, with their frequencies, for feedback.
        forward_offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        forward_terms, forward_tf = np.empty(len(docs), np.int32), np.empty(len(docs), np.int32)
        _turn(offsets, docs, tf, over, forward_offsets[:-1].copy(), forward_terms, forward_tf)
        lengths = np.concatenate(self.counts)
        arrays = (offsets, docs, tf, lengths, over, forward_offsets, forward_terms, forward_tf)
        for name, array in zip(ARRAYS, arrays, strict=True):
            array.tofile(folder / name)
        write_strings(folder / "terms.arrow", names)
        write_strings(folder / "doc_ids.arrow", doc_ids)
        facts = {"analyzer": self.analyzer, "documents": len(doc_ids), "terms": len(names), "postings": len(docs)}
        facts |= {"tokens": int(lengths.sum(dtype=np.int64)), "filled": int((lengths > 0).sum()), "blank": self.blank}
        write_header(folder, KIND, [*ARRAYS, *STRINGS], facts)
        return folder

    def _terms(self) -> tuple[Any, Any, pa.Array]:
        all_terms = self.vocabulary.terms()
        totals = np.zeros(len(all_terms), np.int64)
        for part in self.tokens:
            _count(part, totals)
        used = np.flatnonzero(totals)
        names = all_terms.take(pa.array(used))
        order = pc.array_sort_indices(names).to_numpy()
        place = np.full(len(all_terms), -1, np.int32)
        place[used[order]] = np.arange(len(used), dtype=np.int32)
        return place, totals[used[order]], names.take(pa.array(order))
