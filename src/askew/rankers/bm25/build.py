"""Build an index from a stream of documents: several threads tokenize texts, and tokens are sorted into postings.

The collection is never held in memory. After a fixed number of tokens, a part of the index is written to disk. At the
end the parts are merged in the same way as shards.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core import machine
from askew.core.feedback import BLANK
from askew.core.whole_files import HALF_WRITTEN
from askew.rankers.blocks import BlockWriter, Known
from askew.rankers.bm25.analyze import Analyzed, Analyzer, TermReader, TermVocabulary
from askew.rankers.bm25.index import ARRAYS, KIND, STRINGS, Index
from askew.rankers.bm25.invert import count_tokens, invert, turn_forward
from askew.rankers.bm25.shards import write_merged
from askew.rankers.disk import flat, new_folder, refuse_repeats, write_header, write_strings

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
    vocabulary = analyzer.vocabulary()
    parts: list[Future[Path]] = []
    part = _Part(analyzer.name, vocabulary)
    try:
        with ThreadPoolExecutor(1) as writer:
            for doc_ids, found, blank in _read(analyzer, vocabulary, batches, threads):
                part.add(doc_ids, found, blank)
                if part.size >= _MOST_TOKENS:
                    if parts:
                        parts[-1].result()  # write at most one part while the next is read
                    parts.append(writer.submit(part.write, spare / str(len(parts))))
                    part = _Part(analyzer.name, vocabulary)
            if parts:
                parts.append(writer.submit(part.write, spare / str(len(parts))))
            folders = [one.result() for one in parts]
        if parts:
            write_merged(folders, folder, threads)
        else:
            part.write(folder)
    finally:
        shutil.rmtree(spare, ignore_errors=True)
    return Index.open(folder)


def _read(
    analyzer: Analyzer, vocabulary: TermVocabulary, batches: Iterable[pa.Table], threads: int
) -> Iterator[tuple[pa.Array, Analyzed, int]]:
    """Yield the terms of documents in order. Several threads analyze a few batches ahead."""
    own = threading.local()

    def read(texts: pa.Array) -> tuple[Analyzed, int]:
        if not hasattr(own, "reader"):
            own.reader = TermReader(analyzer, vocabulary)
        found = own.reader.read(texts)
        return found, _count_blank(texts, found)

    waiting: list[tuple[pa.Array, Future[tuple[Analyzed, int]]]] = []
    with ThreadPoolExecutor(threads) as pool:
        for batch in batches:
            for start in range(0, batch.num_rows, _ROWS):
                part = batch.slice(start, _ROWS)
                texts = flat(part["text"]).cast(pa.large_string()).fill_null("")
                waiting.append((flat(part["doc_id"]).cast(pa.string()), pool.submit(read, texts)))
                if len(waiting) > 2 * threads:
                    doc_ids, future = waiting.pop(0)
                    yield doc_ids, *future.result()
        for doc_ids, future in waiting:
            yield doc_ids, *future.result()


def _count_blank(texts: pa.Array, found: Analyzed) -> int:
    """The number of texts that are only white space. Only texts without words are tested."""
    wordless = texts.filter(pa.array(found.words == 0))
    return int(pc.sum(pc.equal(pc.utf8_trim(wordless, BLANK), "")).as_py() or 0)


class _Part:
    """The tokens of consecutive documents, collected until they are written as a partial index."""

    def __init__(self, analyzer: str, vocabulary: TermVocabulary) -> None:
        self.analyzer, self.vocabulary = analyzer, vocabulary
        self.doc_ids: list[pa.Array] = [pa.array([], pa.string())]
        self.tokens: list[Any] = []
        self.counts: list[Any] = [np.zeros(0, np.int32)]
        self.size, self.blank = 0, 0

    def add(self, doc_ids: pa.Array, found: Analyzed, blank: int) -> None:
        """Add documents; ``blank`` is the number of texts that are only white space."""
        self.doc_ids.append(doc_ids)
        self.tokens.append(found.terms)
        self.counts.append(found.counts)
        self.size += len(found.terms)
        self.blank += blank

    def write(self, folder: Path) -> Path:
        """Write the index to a folder. The header is written last."""
        folder.mkdir(parents=True, exist_ok=True)
        doc_ids = pa.concat_arrays(self.doc_ids)
        refuse_repeats(doc_ids)
        place, totals, names = self._terms()
        postings, sizes = invert(self.tokens, self.counts[1:], place, totals)
        self.tokens = []  # as large as the postings, and not needed any more
        forward = turn_forward(postings, sizes)
        lengths = np.concatenate(self.counts)
        arrays = (
            postings.offsets, postings.docs, postings.tf, lengths, postings.over, forward.offsets, forward.terms,
            forward.tf,
        )  # fmt: skip
        known = {name: _write(folder / name, array) for name, array in zip(ARRAYS, arrays, strict=True)}
        write_strings(folder / "terms.arrow", names)
        write_strings(folder / "doc_ids.arrow", doc_ids)
        facts = {
            "analyzer": self.analyzer, "documents": len(doc_ids), "terms": len(names), "postings": len(postings.docs),
            "tokens": int(lengths.sum(dtype=np.int64)), "filled": int((lengths > 0).sum()), "blank": self.blank,
        }  # fmt: skip
        write_header(folder, KIND, [*ARRAYS, *STRINGS], facts, known)
        return folder

    def _terms(self) -> tuple[Any, Any, pa.Array]:
        """The final number of each term, the token count of each final number, and the terms in byte order."""
        known = self.vocabulary.terms()
        totals = count_tokens(self.tokens, len(known))
        used = np.flatnonzero(totals)
        names = known.take(pa.array(used))
        order = pc.array_sort_indices(names).to_numpy()
        place = np.full(len(known), -1, np.int32)
        place[used[order]] = np.arange(len(used), dtype=np.int32)
        return place, totals[used[order]], names.take(pa.array(order))


def _write(path: Path, array: Any) -> Known:
    with BlockWriter(path) as file:
        file.write(array)
    return file.known
