"""The impacts of postings: BM25 and query likelihood as Lucene computes them, with the same float arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import prange

from askew.compiled import compiled
from askew.core.errors import ConfigError

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
            raise ConfigError(
                f"bm25: expected k1 >= 0, 0 <= b <= 1 and lengths= to be 'lucene' or 'exact'; found k1={self.k1}, "
                f"b={self.b}, lengths={self.lengths!r}"
            )

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
            raise ConfigError(
                f"qld: expected mu > 0 and lengths= to be 'lucene' or 'exact'; found mu={self.mu}, "
                f"lengths={self.lengths!r}"
            )

    @property
    def id(self) -> str:
        """The name of these weights in file names."""
        return f"qld-{self.mu:g}-{self.lengths}"


Model = Bm25 | Qld

# Settings that papers use, by name.
MODELS: dict[str, Model] = {
    "bm25": Bm25(),
    "bm25-msmarco": Bm25(0.82, 0.68),
    "qld": Qld(),
}


@dataclass(frozen=True)
class Statistics:
    """The statistics of a collection that the formulas need."""

    documents: int
    tokens: int
    lengths: np.ndarray[Any, np.dtype[np.int32]]
    frequencies: np.ndarray[Any, np.dtype[np.int64]]
    totals: np.ndarray[Any, np.dtype[np.int64]]


def shorten(lengths: np.ndarray[Any, np.dtype[np.int32]]) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Document lengths as Lucene stores them: exact up to 40, above with four significant bits of length - 24."""
    values = np.maximum(lengths.astype(np.int64) - 24, 0)
    bits = np.frexp(values.astype(np.float64))[1]
    drop = np.maximum(bits - 4, 0)
    rounded = (values >> drop) << drop
    return np.where(lengths < 24, lengths, rounded + 24).astype(np.int32)


def weigh(model: Model, facts: Statistics, offsets: Any, docs: Any, tf: Any, out: Floats) -> None:
    """Fill ``out`` with the impacts of all postings."""
    lengths = shorten(facts.lengths) if model.lengths == "lucene" else facts.lengths
    if isinstance(model, Qld):
        share = (facts.totals + 1.0) / (facts.tokens + 1.0)
        _weigh_qld(np.float64(np.float32(model.mu)), share, lengths, offsets, docs, tf, out)
        return
    average = np.float32(max(facts.tokens, 1) / max(facts.documents, 1))
    k1, b = np.float32(model.k1), np.float32(model.b)
    with np.errstate(divide="ignore"):
        norms = np.float32(1) / (k1 * ((np.float32(1) - b) + b * lengths.astype(np.float32) / average))
    frequency = facts.frequencies.astype(np.float64)
    idf = np.log(1 + (facts.documents - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)
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
