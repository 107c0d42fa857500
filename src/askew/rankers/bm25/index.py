"""The index on disk: postings with everything the search needs, memory-mapped, checked, built by streaming.

Building never holds the collection: texts become term numbers block by block (all cores), numbers become postings by
counting. Weights (BM25 with any k1 and b, query likelihood) are computed from the postings when first asked for and
kept beside them, so other parameters never mean reading the texts again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.compiled import compiled
from askew.core import machine
from askew.core.feedback import BLANK
from askew.rankers.blocks import CheckedArray
from askew.rankers.bm25.analyze import Analyzer, number_terms
from askew.rankers.bm25.bounds import Weights, read_weights, write_weights
from askew.rankers.bm25.weights import Model, Statistics, weigh
from askew.rankers.disk import flat, new_folder, open_header, read_strings, refuse_repeats, write_header, write_strings
from askew.sorting import sort_ascending

_FORWARD = ("forward_offsets.i64", "forward_terms.i32", "forward_tf.i32")
_ARRAYS = ("offsets.i64", "docs.i32", "tf.u8", "lengths.i32", "over.i64", *_FORWARD)
_DTYPES = {"i64": np.int64, "i32": np.int32, "u8": np.uint8}
_MOST_TF = 255


class Builder:
    """Collects postings document by document, then writes the index."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer, self.vocabulary = analyzer, analyzer.vocabulary()
        self.doc_ids: list[pa.Array] = []
        self.terms: list[Any] = []
        self.tf: list[Any] = []
        self.sizes: list[Any] = []
        self.lengths: list[Any] = []
        self.blank = 0

    def add(self, doc_ids: pa.Array, split: tuple[list[str], Any, Any], blank: int = 0) -> None:
        """Add a batch that was split into words, ``blank`` of its texts being white space only."""
        found = number_terms(split, self.vocabulary)
        starts = np.concatenate([[0], np.cumsum(found.counts)]).astype(np.int64)
        terms, tf, sizes = _count_terms(found.terms, starts)
        self.doc_ids.append(doc_ids.cast(pa.string()))
        self.terms.append(terms)
        self.tf.append(tf)
        self.sizes.append(sizes)
        self.lengths.append(found.counts)
        self.blank += blank

    def write(self, folder: Path) -> None:
        """Write the index to a new folder; it is there when its header is."""
        new_folder(folder)
        doc_ids = pa.concat_arrays(self.doc_ids) if self.doc_ids else pa.array([], pa.string())
        refuse_repeats(doc_ids)
        # By their bytes, which for UTF-8 is also the order of code points.
        names = sorted(self.vocabulary.numbers)
        place = np.empty(len(names), np.int64)
        for final, name in enumerate(names):
            place[self.vocabulary.numbers[name]] = final
        offsets = self._offsets(place, len(names))
        docs, tf = np.empty(int(offsets[-1]), np.int32), np.empty(int(offsets[-1]), np.uint8)
        over = self._invert(place, offsets, docs, tf)
        lengths = np.concatenate(self.lengths) if self.lengths else np.zeros(0, np.int32)
        files = {
            "offsets.i64": offsets,
            "docs.i32": docs,
            "tf.u8": tf,
            "lengths.i32": lengths.astype(np.int32),
            "over.i64": over,
        }
        for name, array in files.items():
            array.tofile(folder / name)
        self._write_forward(folder, place)
        write_strings(folder / "terms.arrow", pa.array(names, pa.string()))
        write_strings(folder / "doc_ids.arrow", doc_ids)
        written = [*files, *_FORWARD, "terms.arrow", "doc_ids.arrow"]
        facts = {
            "analyzer": self.analyzer.name, "documents": len(doc_ids), "terms": len(names), "postings": len(docs),
            "tokens": int(lengths.sum(dtype=np.int64)), "filled": int((lengths > 0).sum()),
            "blank": self.blank,
        }  # fmt: skip
        write_header(folder, "bm25", written, facts)

    def _write_forward(self, folder: Path, place: Any) -> None:
        """The terms of each document, for feedback; written part by part, it is as large as the postings."""
        with (folder / "forward_terms.i32").open("wb") as terms, (folder / "forward_tf.i32").open("wb") as counts:
            for numbers, tf in zip(self.terms, self.tf, strict=True):
                place[numbers].astype(np.int32).tofile(terms)
                tf.astype(np.int32).tofile(counts)
        sizes = np.concatenate(self.sizes) if self.sizes else np.zeros(0, np.int64)
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64).tofile(folder / "forward_offsets.i64")

    def _offsets(self, place: Any, terms: int) -> Any:
        frequency = np.zeros(terms + 1, np.int64)
        for part in self.terms:
            np.add(frequency[1:], np.bincount(place[part], minlength=terms), out=frequency[1:])
        return np.cumsum(frequency)

    def _invert(self, place: Any, offsets: Any, docs: Any, tf: Any) -> Any:
        cursor = offsets[:-1].copy()
        over: list[tuple[int, int]] = []
        first = 0
        for terms, counts, sizes in zip(self.terms, self.tf, self.sizes, strict=True):
            high = _fill(place[terms], counts, sizes, first, cursor, docs, tf)
            over += [(int(p), int(c)) for p, c in high]
            first += len(sizes)
        return np.array(sorted(over), np.int64).reshape(len(over), 2)


@compiled
def _count_terms(terms: Any, starts: Any) -> Any:
    """Distinct terms of each document in order, and how often each stands there."""
    out_terms = np.empty(len(terms), np.int32)
    out_tf = np.empty(len(terms), np.int32)
    sizes = np.zeros(len(starts) - 1, np.int32)
    used = 0
    for doc in range(len(starts) - 1):
        ordered = terms[starts[doc] : starts[doc + 1]].copy()
        sort_ascending(ordered)
        before = used
        for i in range(len(ordered)):
            if i > 0 and ordered[i] == ordered[i - 1]:
                out_tf[used - 1] += 1
            else:
                out_terms[used], out_tf[used] = ordered[i], 1
                used += 1
        sizes[doc] = used - before
    return out_terms[:used].copy(), out_tf[:used].copy(), sizes


@compiled
def _fill(terms: Any, counts: Any, sizes: Any, first: int, cursor: Any, docs: Any, tf: Any) -> Any:
    """Write postings in the order of documents; returns the places and counts of the few above 255."""
    high = [(np.int64(0), np.int64(0)) for _ in range(0)]
    at = 0
    for doc in range(len(sizes)):
        for _ in range(sizes[doc]):
            p = cursor[terms[at]]
            cursor[terms[at]] += 1
            docs[p] = first + doc
            tf[p] = min(counts[at], _MOST_TF)
            if counts[at] > _MOST_TF:
                high.append((np.int64(p), np.int64(counts[at])))
            at += 1
    return high


def build_index(
    batches: Iterable[pa.Table], folder: Path, analyzer: Analyzer | None = None, threads: int | None = None
) -> Index:
    """Index batches of (doc_id, text)."""
    builder = Builder(analyzer or Analyzer())
    for doc_ids, (split, blank) in _in_order(builder.analyzer, batches, threads or machine.threads()):
        builder.add(doc_ids, split, blank)
    builder.write(folder)
    return Index.open(folder)


def _in_order(analyzer: Analyzer, batches: Iterable[pa.Table], threads: int) -> Iterator[tuple[pa.Array, Any]]:
    """Split batches in several threads, a few ahead, and hand them on in their order."""
    waiting: list[tuple[pa.Array, Any]] = []
    with ThreadPoolExecutor(threads) as pool:
        for batch in batches:
            for start in range(0, batch.num_rows, 8192):
                part = batch.slice(start, 8192)
                texts = flat(part["text"]).cast(pa.large_string()).fill_null("")
                waiting.append((flat(part["doc_id"]), pool.submit(_split, analyzer, texts)))
                if len(waiting) > 2 * threads:
                    doc_ids, future = waiting.pop(0)
                    yield doc_ids, future.result()
        for doc_ids, future in waiting:
            yield doc_ids, future.result()


def _split(analyzer: Analyzer, texts: pa.Array) -> tuple[tuple[list[str], Any, Any], int]:
    """The words of texts, and how many texts are blank: only those without a word need a look."""
    split = analyzer.split(texts)
    wordless = texts.filter(pa.array(split[2] == 0))
    return split, int(pc.sum(pc.equal(pc.utf8_trim(wordless, BLANK), "")).as_py() or 0)


class Index:
    """An index opened for searching; its arrays stay on disk until they are read, and are checked then."""

    def __init__(self, folder: Path, header: dict[str, Any]) -> None:
        self.folder, self.header = folder, header
        self._arrays = {name: self._map(name) for name in _ARRAYS}
        self.offsets, self.docs = self._arrays["offsets.i64"], self._arrays["docs.i32"]
        self.lengths = self._arrays["lengths.i32"]
        self.terms = read_strings(folder / "terms.arrow")
        self.doc_ids = read_strings(folder / "doc_ids.arrow")

    @classmethod
    def open(cls, folder: Path | str) -> Index:
        """Open an index, checking its files."""
        folder = Path(folder)
        header = open_header(folder, "bm25", lazily=_ARRAYS)
        return cls(folder, header)

    def __len__(self) -> int:
        return int(self.header["documents"])

    @property
    def with_text(self) -> int:
        """How many documents Anserini would index: all but those whose text is blank.

        An index made before blank texts were counted takes every document without a term for one.
        """
        return len(self) - int(self.header.get("blank", len(self) - self.header["filled"]))

    def _map(self, name: str) -> CheckedArray:
        return CheckedArray(self.folder / name, _DTYPES[name.rpartition(".")[2]], self.header["files"].get(name, {}))

    def document_terms(self, doc: int) -> tuple[Any, Any]:
        """The term numbers of a document and how often each stands there."""
        offsets, terms, tf = (self._arrays[name] for name in _FORWARD)
        part = slice(int(offsets[doc]), int(offsets[doc + 1]))
        return terms[part], tf[part]

    def statistics(self) -> Statistics:
        """What the weighting formulas read."""
        tf, offsets = self.term_frequencies(), self.offsets.whole()
        totals = np.add.reduceat(tf.astype(np.int64), offsets[:-1]) if len(tf) else np.zeros(0, np.int64)
        lengths = self.lengths.whole()
        return Statistics(self.header["filled"], self.header["tokens"], lengths, np.diff(offsets), totals)

    def term_frequencies(self) -> Any:
        """How often each posting's term stands in its document."""
        tf = self._arrays["tf.u8"].whole()
        over = self._arrays["over.i64"].whole().reshape(-1, 2)
        if not len(over):
            return tf
        full = tf.astype(np.int32)
        full[over[:, 0]] = over[:, 1]
        return full

    def term_numbers(self, terms: list[str]) -> Any:
        """The numbers of terms; -1 for those no document has."""
        numbers = np.full(len(terms), -1, np.int64)
        if len(terms) and len(self.terms):
            _find_terms(*_bytes_of(pa.array(terms, pa.large_string())), *_bytes_of(self.terms), numbers)
        return numbers

    def weights(self, model: Model) -> Weights:
        """The weights of a model, computed once and kept in the index folder."""
        folder = self.folder / f"weights-{model.id}"
        if not (folder / "header.json").exists():
            offsets, docs = self.offsets.whole(), self.docs.whole()
            impacts = np.empty(len(docs), np.float32)
            weigh(model, self.statistics(), offsets, docs, self.term_frequencies(), impacts)
            write_weights(folder, model.id, offsets, docs, impacts, len(self))
        return read_weights(folder)


def _bytes_of(values: pa.Array) -> tuple[Any, Any]:
    buffers = values.buffers()
    size = np.int64 if values.type == pa.large_string() else np.int32
    data = np.frombuffer(buffers[2], np.uint8) if buffers[2] is not None else np.zeros(0, np.uint8)
    return data, np.frombuffer(buffers[1], size)[values.offset : values.offset + len(values) + 1]


@compiled
def _find_terms(data: Any, offsets: Any, known: Any, known_offsets: Any, numbers: Any) -> None:
    """Binary search among the sorted terms: hashing them all would take longer than most batches."""
    for i in range(len(numbers)):
        low, high = 0, len(known_offsets) - 1
        while low < high:
            middle = (low + high) >> 1
            order = _compare(data, offsets[i], offsets[i + 1], known, known_offsets[middle], known_offsets[middle + 1])
            if order == 0:
                numbers[i] = middle
                break
            if order < 0:
                high = middle
            else:
                low = middle + 1


@compiled
def _compare(left: Any, a: int, a_stop: int, right: Any, b: int, b_stop: int) -> int:
    while a < a_stop and b < b_stop:
        if left[a] != right[b]:
            return -1 if left[a] < right[b] else 1
        a += 1
        b += 1
    return (a_stop - a > 0) - (b_stop - b > 0)
