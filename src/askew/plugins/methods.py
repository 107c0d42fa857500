"""The shapes of plugins for reformulation: reformulators, classifiers of queries, filters of candidates.

Queries and candidates travel as columns; a candidate says which query it belongs to, and which document it came from.
What a plugin does with one query must not depend on its company: then the size of a batch never changes a result.
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
    """A document that a first search found for a query."""

    doc_id: str
    text: str
    score: float


@runtime_checkable
class CollectionStatistics(Protocol):
    """What a collection knows of its terms. Terms are analysed words (for the default index: stems).

    ``documents`` counts the documents whose text is not blank, ``tokens`` the terms of all of them.
    """

    documents: int
    tokens: int

    def split(self, text: str) -> list[tuple[str, str | None]]:
        """The words of a text in order, lower-cased, each with its term; None for a stop word."""

    def split_many(self, texts: Sequence[str]) -> list[list[tuple[str, str | None]]]:
        """As ``split`` for many texts together, which is much faster."""

    def document_frequency(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """In how many documents each term stands; 0 for an unknown one."""

    def collection_frequency(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """How often each term stands in the collection; 0 for an unknown one."""


@dataclass(frozen=True)
class QueryBatch:
    """Queries to be reformulated. ``passages`` are the first answers of each, best first.

    ``contexts`` says who asked and when, in one line, where the queries come from a log that knows.
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
    """What came of a batch: candidate i is another text for the query of row ``rows[i]``.

    ``kinds`` says of which kind each is, where the method has kinds. ``rejected`` counts what was made and thrown away,
    by reason: nothing is dropped in silence.
    """

    rows: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    doc_ids: list[str | None] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    kinds: list[str | None] = field(default_factory=list)

    def add(self, row: int, text: str, doc_id: str | None = None, kind: str | None = None) -> None:
        """A candidate for the query of a row, with the document it came from and its kind where there are such."""
        self.rows.append(row)
        self.texts.append(text)
        self.doc_ids.append(doc_id)
        self.kinds.append(kind)

    def reject(self, reason: str, count: int = 1) -> None:
        """Count what was thrown away."""
        self.rejected[reason] += count

    def __len__(self) -> int:
        return len(self.rows)


@runtime_checkable
class ReformulatorPlugin(Protocol):
    """Queries in, candidates out; the same for the same settings and seed.

    ``method`` is its name; ``reads`` says what it needs of ``QueryBatch`` besides the texts: "passages", "statistics".
    One that makes a candidate of several passages (``doc_id`` None) may have ``mixes``: of how many, best first.
    """

    method: str
    reads: frozenset[str]

    def settings(self) -> Mapping[str, Any]:
        """What the candidates depend on besides the queries, as JSON values; a model by its weights."""

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Reformulations of each query, best first."""


@dataclass(frozen=True)
class Classified:
    """A probability for each label (columns) of each text (rows); ``chosen`` is -1 where the classifier abstains."""

    labels: tuple[str, ...]
    probabilities: npt.NDArray[np.float64]
    chosen: npt.NDArray[np.int64]

    def names(self) -> list[str | None]:
        """The label of each text; None where the classifier abstains."""
        return [None if i < 0 else self.labels[i] for i in self.chosen.tolist()]


@runtime_checkable
class ClassifierPlugin(Protocol):
    """Which group a query asks about, or none (neutral)."""

    name: str
    labels: tuple[str, ...]

    def settings(self) -> Mapping[str, Any]:
        """What the answer depends on besides the texts, as JSON values."""

    def classify(self, texts: Sequence[str]) -> Classified:
        """A label with its probability for each text."""


@runtime_checkable
class FilterPlugin(Protocol):
    """Which candidates are kept.

    ``check`` gets the original and the candidate of each pair; ``rows`` says which pairs belong to the same query, in
    the order in which its candidates were made. It gives a reason for each that is to go, and None for those that stay.
    """

    name: str

    def settings(self) -> Mapping[str, Any]:
        """What the answer depends on besides the texts, as JSON values."""

    def check(self, originals: Sequence[str], candidates: Sequence[str], rows: Sequence[int]) -> list[str | None]:
        """Why each candidate goes, or None."""


@runtime_checkable
class ScoringFilter(Protocol):
    """A filter that can say how sure it is."""

    def score(self, originals: Sequence[str], candidates: Sequence[str]) -> list[dict[str, float]]:
        """What it decides by, for each pair."""


@runtime_checkable
class JudgingFilter(ScoringFilter, Protocol):
    """A filter whose scores are the probabilities ``same`` and ``natural``, and decide alone."""

    def reason(self, scores: Mapping[str, float]) -> str | None:
        """Why a pair of these probabilities is dropped; None where it is kept."""


def seed_for(seed: int, *parts: str) -> int:
    """A seed of its own for each query and method, so that company and order never change what is drawn."""
    text = "\0".join([str(seed), *parts])
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1
