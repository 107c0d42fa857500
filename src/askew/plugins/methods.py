"""The interfaces of plugins for reformulation: reformulators, classifiers of queries, filters of candidates.

Queries and candidates are passed as columns; a candidate names its query and the document it came from. The result for
one query must not depend on the other queries of a batch, so that the size of a batch never changes a result.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Passage:
    """A document that a first search retrieved for a query."""

    doc_id: str
    text: str
    score: float


@runtime_checkable
class CollectionStatistics(Protocol):
    """The statistics of the terms of a collection. Terms are analyzed words (for the default index: stems).

    ``documents`` counts the documents whose text is not blank, ``tokens`` the terms of all of them.
    """

    documents: int
    tokens: int

    def split(self, text: str) -> list[tuple[str, str | None]]:
        """The words of a text in order, lower-cased, each with its term; None for a stop word."""

    def split_many(self, texts: Sequence[str]) -> list[list[tuple[str, str | None]]]:
        """As ``split`` for many texts together, which is much faster."""

    def document_frequency(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the number of documents that contain each term; 0 for an unknown term."""

    def collection_frequency(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return how often each term occurs in the collection; 0 for an unknown term."""


@dataclass(frozen=True)
class QueryBatch:
    """Queries to be reformulated. ``passages`` are the results of a first search for each query, best first.

    ``contexts`` gives the user and the time of each query in one line, if the queries come from a log with both.
    """

    query_ids: tuple[str, ...]
    texts: tuple[str, ...]
    passages: tuple[tuple[Passage, ...], ...] | None = None
    statistics: CollectionStatistics | None = None
    contexts: tuple[str | None, ...] | None = None

    def __len__(self) -> int:
        return len(self.query_ids)


@dataclass
class Candidates:
    """The candidates of a batch: candidate i is a reformulation of the query of row ``rows[i]``.

    ``kinds`` has the kind of each candidate, if the method has kinds. ``rejected`` counts rejected texts by reason:
    nothing is dropped silently.
    """

    rows: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    doc_ids: list[str | None] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    kinds: list[str | None] = field(default_factory=list)

    def add(self, row: int, text: str, doc_id: str | None = None, kind: str | None = None) -> None:
        """Add a candidate for the query of a row, with the document it came from and its kind, if there are any."""
        self.rows.append(row)
        self.texts.append(text)
        self.doc_ids.append(doc_id)
        self.kinds.append(kind)

    def reject(self, reason: str, count: int = 1) -> None:
        """Count rejected texts."""
        self.rejected[reason] += count

    def __len__(self) -> int:
        return len(self.rows)


@runtime_checkable
class ReformulatorPlugin(Protocol):
    """Makes candidates for queries; the same settings and seed give the same candidates.

    ``method`` is its name; ``reads`` names the data of ``QueryBatch`` that it needs besides the texts: "passages",
    "statistics". A method that makes one candidate from several passages (``doc_id`` None) may have the attribute
    ``mixes``: the number of top-ranked passages that it uses.
    """

    method: str
    reads: frozenset[str]

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates, as JSON; models by their weights."""

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return the reformulations of each query, best first."""


@dataclass(frozen=True)
class Classified:
    """A probability for each label (columns) of each text (rows); ``chosen`` is -1 if the classifier abstains."""

    labels: tuple[str, ...]
    probabilities: npt.NDArray[np.float64]
    chosen: npt.NDArray[np.int64]

    def names(self) -> list[str | None]:
        """The label of each text; None where the classifier abstains."""
        return [None if i < 0 else self.labels[i] for i in self.chosen.tolist()]


@runtime_checkable
class ClassifierPlugin(Protocol):
    """Predicts which group a query asks about, or none (neutral)."""

    name: str
    labels: tuple[str, ...]

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the texts that determines the result, as JSON values."""

    def classify(self, texts: Sequence[str]) -> Classified:
        """Return a label and its probability for each text."""


@runtime_checkable
class FilterPlugin(Protocol):
    """Decides which candidates are kept.

    ``check`` gets the original and the candidate of each pair. Pairs with the same value in ``rows`` belong to the same
    query, in the order in which its candidates were made. ``check`` returns a reason for each candidate that is
    dropped, and None for each that is kept.
    """

    name: str

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the texts that determines the result, as JSON values."""

    def check(self, originals: Sequence[str], candidates: Sequence[str], rows: Sequence[int]) -> list[str | None]:
        """For each candidate reformulation, return the reason why it is dropped, or None to keep it."""


@runtime_checkable
class ScoringFilter(Protocol):
    """A filter that can return its scores."""

    def score(self, originals: Sequence[str], candidates: Sequence[str]) -> list[dict[str, float]]:
        """Return the scores of each pair, by which the filter decides."""


@runtime_checkable
class JudgingFilter(ScoringFilter, Protocol):
    """A filter that decides only by its scores, the probabilities ``same`` and ``natural``."""

    def reason(self, scores: Mapping[str, float]) -> str | None:
        """Return the reason why a pair with these probabilities is dropped; None if it is kept."""


def seed_for(seed: int, *parts: str) -> int:
    """Return a separate seed for each query and method, so that other queries and their order never change a sample."""
    text = "\0".join([str(seed), *parts])
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1
