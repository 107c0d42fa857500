"""Merge shards into one index. A shard is an index of a range of the documents.

The merged index has the same bytes as an index of all documents built at once. Shards are read and the index is written
in pieces, so memory use does not grow with the collection.
"""

from __future__ import annotations

import itertools
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.compiled import compiled
from askew.core import machine
from askew.core.errors import ConfigError, StoreError
from askew.core.whole_files import HALF_WRITTEN
from askew.rankers.blocks import BlockWriter, Known, check_file
from askew.rankers.bm25.index import ARRAYS, KIND, STRINGS, Index, dtype_of
from askew.rankers.disk import (
    TEXTS,
    TextsWriter,
    read_header,
    read_strings,
    refuse_repeats,
    write_header,
    write_strings,
)

# Postings that are merged at a time.
_PIECE = 1 << 22
# Header fields that are sums over the shards.
_SUMS = ("documents", "postings", "tokens", "filled", "blank")


def merge_shards(shards: Sequence[Path | str], out: Path | str, threads: int | None = None) -> Index:
    """Merge indexes of ranges of documents, in the given order, into a new folder, completely or not at all.

    The merged index has texts if every shard has texts.
    """
    out = Path(out)
    with _whole_folder(out) as folder:
        write_merged([Path(shard) for shard in shards], folder, threads or machine.threads())
    return Index.open(out)


@contextmanager
def _whole_folder(out: Path) -> Iterator[Path]:
    """A temporary folder that is renamed to ``out`` on success and deleted on failure."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StoreError(f"index {out}: expected a new or an empty folder, found files there; give another folder")
    made = out.parent / f"{HALF_WRITTEN}{secrets.token_hex(4)}-{out.name}"
    made.mkdir(parents=True)
    try:
        yield made
        made.rename(out)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def write_merged(folders: Sequence[Path], out: Path, threads: int) -> None:
    """Write the index of all shards to a folder. The header is written last."""
    with ThreadPoolExecutor(threads) as pool:
        shards = _open(folders, pool)
        texts = _with_texts(shards)
        doc_ids = pa.concat_arrays([shard.doc_ids for shard in shards])
        refuse_repeats(doc_ids)
        terms = _all_terms([shard.terms for shard in shards])
        for shard in shards:
            shard.number = pc.index_in(shard.terms, value_set=terms).to_numpy().astype(np.int32)
        write_strings(out / "terms.arrow", terms)
        write_strings(out / "doc_ids.arrow", doc_ids)
        if texts:
            _write_texts(shards, out)
        known = _write_arrays(shards, len(terms), out, pool)
    headers = [shard.header for shard in shards]
    facts: dict[str, Any] = {name: sum(header[name] for header in headers) for name in _SUMS}
    facts |= {"analyzer": headers[0]["analyzer"], "terms": len(terms)}
    write_header(out, KIND, [*ARRAYS, *STRINGS], facts, known)


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
        dtype = np.dtype(dtype_of(name))
        return np.fromfile(self.folder / name, dtype, count, offset=start * dtype.itemsize)

    def frequencies(self, terms: int) -> Any:
        """The number of postings in this shard for each term of the merged index."""
        found = np.zeros(terms, np.int64)
        found[self.number] = np.diff(self.offsets)
        return found


def _open(folders: Sequence[Path], pool: ThreadPoolExecutor) -> list[_Shard]:
    """Open shards, verify every byte of them, and check that they can be merged."""
    if not folders:
        raise ConfigError("shards: expected at least one index, found none")
    headers = [read_header(folder) for folder in folders]
    for folder, header in zip(folders, headers, strict=True):
        if header["kind"] != KIND:
            raise ConfigError(
                f"index {folder}: made for the ranker {header['kind']!r}; only indexes for {KIND!r} can be merged"
            )
        if header["analyzer"] != headers[0]["analyzer"]:
            raise ConfigError(
                f"index {folder}: made with the analyzer {header['analyzer']!r}, but the first shard was made with the "
                f"analyzer {headers[0]['analyzer']!r}; index all shards with the same analyzer"
            )
    files = [(f / name, known) for f, h in zip(folders, headers, strict=True) for name, known in h["files"].items()]
    list(pool.map(lambda file: check_file(*file), files))
    shards = [_Shard(folder, header) for folder, header in zip(folders, headers, strict=True)]
    for before, shard in itertools.pairwise(shards):
        shard.first = before.first + before.documents
    return shards


def _with_texts(shards: Sequence[_Shard]) -> bool:
    kept = [TEXTS in shard.header["files"] for shard in shards]
    if any(kept) and not all(kept):
        odd = shards[kept.index(False)].folder
        raise ConfigError(f"index {odd}: it has no texts, but other shards have texts; index all shards with texts")
    return all(kept)


def _all_terms(lists: Sequence[pa.Array]) -> pa.Array:
    """The terms of all shards, in byte order."""
    known = pc.unique(pa.concat_arrays(lists))
    return known.take(pc.array_sort_indices(known))


def _write_texts(shards: Sequence[_Shard], out: Path) -> None:
    with TextsWriter(out / TEXTS) as writer:
        for shard in shards:
            reader = pa.ipc.open_file(pa.OSFile(str(shard.folder / TEXTS)))
            for number in range(reader.num_record_batches):
                writer.write(reader.get_batch(number).column(0))


def _write_arrays(shards: Sequence[_Shard], terms: int, out: Path, pool: ThreadPoolExecutor) -> dict[str, Known]:
    known: dict[str, Known] = {}

    def write(name: str, pieces: Iterator[Any]) -> None:
        with BlockWriter(out / name) as file:
            for piece in pieces:
                file.write(piece)
        known[name] = file.known

    offsets = np.zeros(terms + 1, np.int64)
    for shard in shards:
        offsets[1:] += shard.frequencies(terms)
    offsets = np.cumsum(offsets)
    write("offsets.i64", iter([offsets]))
    write("lengths.i32", (shard.read("lengths.i32") for shard in shards))
    write("over.i64", iter([_merged_over(shards, offsets)]))
    with BlockWriter(out / "docs.i32") as docs, BlockWriter(out / "tf.u8") as tf:
        for some_docs, some_tf in _merged_postings(shards, offsets, pool):
            docs.write(some_docs)
            tf.write(some_tf)
    known |= {"docs.i32": docs.known, "tf.u8": tf.known}
    write("forward_offsets.i64", _forward_offsets(shards))
    write("forward_terms.i32", (s.number[piece] for s, piece in _pieces(shards, "forward_terms.i32")))
    write("forward_tf.i32", (piece for _, piece in _pieces(shards, "forward_tf.i32")))
    return known


def _forward_offsets(shards: Sequence[_Shard]) -> Iterator[Any]:
    first = 0
    yield np.zeros(1, np.int64)
    for shard in shards:
        yield shard.read("forward_offsets.i64")[1:] + first
        first += shard.postings


def _pieces(shards: Sequence[_Shard], name: str) -> Iterator[tuple[_Shard, Any]]:
    for shard in shards:
        for start in range(0, shard.postings, _PIECE):
            yield shard, shard.read(name, start, min(_PIECE, shard.postings - start))


def _merged_over(shards: Sequence[_Shard], offsets: Any) -> Any:
    """The counts above 255 with the new positions of their postings."""
    found, begins = [], offsets[:-1].copy()
    for shard in shards:
        over = shard.read("over.i64").reshape(-1, 2)
        term = np.searchsorted(shard.offsets, over[:, 0], side="right") - 1
        places = begins[shard.number[term]] + over[:, 0] - shard.offsets[term]
        found.append(np.stack([places, over[:, 1]], axis=1))
        begins += shard.frequencies(len(begins))
    over = np.concatenate(found)
    return over[np.argsort(over[:, 0])]


def _merged_postings(shards: Sequence[_Shard], offsets: Any, pool: ThreadPoolExecutor) -> Iterator[tuple[Any, Any]]:
    """Yield the merged postings in pieces, ordered by term. Several threads prepare a few pieces ahead."""
    edges = [0]
    while edges[-1] < len(offsets) - 1:
        stop = int(np.searchsorted(offsets, offsets[edges[-1]] + _PIECE, side="right")) - 1
        edges.append(max(stop, edges[-1] + 1))
    jobs = [lambda a=a, b=b: _piece(shards, offsets, a, b) for a, b in itertools.pairwise(edges)]
    return _ahead(jobs, pool)


def _ahead(jobs: Sequence[Callable[[], Any]], pool: ThreadPoolExecutor, most: int = 3) -> Iterator[Any]:
    waiting = [pool.submit(job) for job in jobs[:most]]
    for number in range(len(jobs)):
        yield waiting.pop(0).result()
        if number + most < len(jobs):
            waiting.append(pool.submit(jobs[number + most]))


def _piece(shards: Sequence[_Shard], offsets: Any, first: int, stop: int) -> tuple[Any, Any]:
    """All postings of some terms of the merged index."""
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
    """Append the postings of one shard to those of the shards before it."""
    for i in range(len(numbers)):
        at = cursor[numbers[i]]
        for p in range(offsets[i], offsets[i + 1]):
            out_docs[at], out_tf[at] = docs[p] + first_doc, tf[p]
            at += 1
        cursor[numbers[i]] = at
