"""The BM25 index on disk: postings and all other data of the search, memory-mapped and checked at first use.

Weights (BM25 with any k1 and b, query likelihood) are computed from the postings at first use and stored in the index
folder, so new parameters do not require the texts again. ``askew.search.bm25.build`` makes an index.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core.compiled import compiled
from askew.search.bm25.postings import Model, Weights, weigh, write_weights
from askew.search.disk import CheckedArray, bytes_of, open_header, read_strings

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
def _find_terms(data: Any, offsets: Any, known: Any, known_offsets: Any, numbers: Any) -> None:
    """Find terms by binary search: hashing all known terms would take longer than most batches."""
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
