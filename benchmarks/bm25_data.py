"""Passages and queries for ``bm25.py``: drawn from a Zipf law, or real ones. Both are rows of word numbers.

A word is written ``w`` and its number, so that every system sees the same tokens whatever its own tokenizer does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.data.documents import read_documents
from askew.data.queries import read_queries
from askew.search.bm25.analyze import Analyzer, TermReader, TermVocabulary

WORDS = 300_000
BATCH = 50_000


@dataclass(frozen=True)
class Rows:
    """Word numbers of passages in a row; passage i has those from ``offsets[i]`` to ``offsets[i + 1]``."""

    numbers: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def texts(self) -> pa.Array:
        words = pa.array([f"w{i}" for i in range(int(self.numbers.max(initial=0)) + 1)], pa.string())
        lists = pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), words.take(pa.array(self.numbers)))
        return pc.binary_join(lists, " ").cast(pa.large_string())

    def lists(self) -> list[list[int]]:
        numbers, edges = self.numbers.tolist(), self.offsets.tolist()
        return [numbers[a:b] for a, b in pairwise(edges)]


class Collection(Protocol):
    """What a benchmark searches."""

    @property
    def size(self) -> int: ...

    @property
    def about(self) -> str: ...

    def passages(self) -> Iterator[Rows]: ...

    def queries(self, count: int) -> list[str]: ...


def tables(collection: Collection) -> Iterator[pa.Table]:
    """The passages as documents."""
    start = 0
    for rows in collection.passages():
        ids = pa.array([f"d{start + i}" for i in range(len(rows))])
        start += len(rows)
        yield pa.table({"doc_id": ids, "text": rows.texts()})


@dataclass(frozen=True)
class Synthetic:
    """Passages of some forty tokens from a Zipf law over 300,000 words; a query is six words of one passage."""

    size: int

    @property
    def about(self) -> str:
        return f"{self.size:,} synthetic passages"

    def passages(self) -> Iterator[Rows]:
        rng = np.random.default_rng(0)
        weights = 1.0 / (np.arange(WORDS) + 2.7) ** 1.05
        edges = np.cumsum(weights) / weights.sum()
        for start in range(0, self.size, BATCH):
            size = min(BATCH, self.size - start)
            lengths = np.clip(rng.lognormal(3.6, 0.45, size), 8, 120).astype(int)
            drawn = rng.random((size, 120))[np.arange(120) < lengths[:, None]]
            yield Rows(np.searchsorted(edges, drawn), _offsets(lengths))

    def queries(self, count: int) -> list[str]:
        rng, found = np.random.default_rng(99), []
        rows = next(Synthetic(min(self.size, BATCH)).passages()).lists()
        while len(found) < count:
            words = np.unique(rows[rng.integers(len(rows))])
            if len(words) >= 6:
                found.append(" ".join(f"w{t}" for t in rng.choice(words, 6, replace=False)))
        return found


class Real:
    """Real passages and queries of folders, analyzed as Anserini does.

    Passages beyond those there are have the first half of one passage and the second half of another, drawn at random.
    """

    def __init__(self, folders: list[Path], size: int | None = None) -> None:
        analyzer = Analyzer()
        self._reader = TermReader(analyzer, TermVocabulary(analyzer.to_terms))
        batches = [b["text"] for folder in folders for b in read_documents(folder / "docs.tsv")]
        self._rows = self._read(pa.concat_arrays([chunk for text in batches for chunk in text.chunks]))
        self._known = int(self._rows.numbers.max()) + 1
        self._folders, self.size = folders, size or len(self._rows)
        made = max(0, self.size - len(self._rows))
        self.about = f"{len(self._rows):,} passages of {' and '.join(folder.name for folder in folders)}"
        self.about += f" and {made:,} recombined from them" if made else ""

    def _read(self, texts: pa.Array) -> Rows:
        terms, sizes, _ = self._reader.read(texts.cast(pa.large_string()))
        return Rows(terms, _offsets(sizes))

    def passages(self) -> Iterator[Rows]:
        yield self._rows
        rng, rows = np.random.default_rng(0), self._rows
        middles = (rows.offsets[:-1] + rows.offsets[1:]) // 2
        for start in range(len(rows), self.size, BATCH):
            one, other = rng.integers(len(rows), size=(2, min(BATCH, self.size - start)))
            begins = np.stack([rows.offsets[one], middles[other]], axis=1).ravel()
            sizes = np.stack([middles[one], rows.offsets[other + 1]], axis=1).ravel() - begins
            offsets = _offsets(sizes)
            take = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes) + np.repeat(begins, sizes)
            yield Rows(rows.numbers[take], offsets[::2].copy())

    def queries(self, count: int) -> list[str]:
        """Queries that have a word of the passages, in random order; all words that no passage has are left out."""
        files = [path for folder in self._folders for path in sorted(folder.glob("queries*.tsv"))]
        texts = pa.concat_arrays([chunk for path in files for chunk in read_queries(path)["text"].chunks])
        lists = [[t for t in row if t < self._known] for row in self._read(texts).lists()]
        lists = [row for row in lists if row]
        chosen = np.random.default_rng(99).permutation(len(lists))[:count]
        return [" ".join(f"w{t}" for t in lists[i]) for i in chosen]


def _offsets(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
