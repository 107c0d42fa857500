"""The interface of a mitigation method: it gets queries with the results of a first search, and returns ranked lists.

A method is a class or a function that makes an object with ``rank``. It is registered by an entry point in the group
``askew.mitigation``, or given by its file: ``askew bench COLLECTION --method my_method.py:MyMethod``. A parameter
``strength`` can be set after an ``@``: ``--method my_method.py:MyMethod@0.5``. The class attribute ``strengths`` lists
the values of a sweep. ``bound = True`` says that the method reads judgements, so it is a bound and not a system.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from askew.core.errors import DataError
from askew.core.ranking import Floats, Hits, Ints


@dataclass(frozen=True)
class MitigationTask:
    """The input of a mitigation method: queries, their first results, and how often each document names each group.

    ``first`` has a list for each query, best first; its ``docs`` are document numbers. Row d of ``counts`` belongs to
    document d, and has a column for each of ``groups``. ``search`` retrieves documents for any texts with the base
    ranker. ``reformulate`` takes the name of a reformulator and returns the reformulations of each query that keep its
    meaning. ``text_of`` returns the text of a document. Each call is counted as a cost. These three functions are None
    if only a run is given.
    """

    query_ids: Sequence[str]
    texts: Sequence[str]
    first: Hits
    groups: tuple[str, ...]
    counts: npt.NDArray[np.int32]
    search: Callable[[Sequence[str]], Hits] | None = None
    reformulate: Callable[[str], list[list[str]]] | None = None
    text_of: Callable[[int], str] | None = None

    @property
    def ranks(self) -> Ints:
        """The rank of each entry of the first results, from 0."""
        return np.arange(len(self.first.docs)) - np.repeat(self.first.offsets[:-1], np.diff(self.first.offsets))

    def weights(self) -> Floats:
        """Return ln(1 + count) of each group, for each entry of the first results; ARaB(tf) sums these values."""
        return np.log1p(self.counts[self.first.docs].astype(np.float64))

    def reordered(self, order: Ints) -> Hits:
        """Return the first results in another order; scores decrease by one per rank, as only the order is known."""
        return Hits(self.first.offsets, self.first.docs[order], -self.ranks.astype(np.float32))


@runtime_checkable
class MitigationPlugin(Protocol):
    """A mitigation method: one ranked list for each query of a task."""

    def rank(self, task: MitigationTask) -> Hits:
        """Return the results of each query, best first."""


def check_lists(hits: Hits, task: MitigationTask, who: str) -> Hits:
    """Return the lists of a method; refuse them if they are not lists of documents of the collection."""
    queries, documents = len(task.query_ids), len(task.counts)
    if len(hits.offsets) != queries + 1:
        raise DataError(
            f"method {who}: expected a list for each of {queries:,} queries, found {len(hits.offsets) - 1} lists"
        )
    docs = np.asarray(hits.docs)
    if len(docs) != int(hits.offsets[-1]) or len(hits.scores) != len(docs):
        raise DataError(
            f"method {who}: expected {int(hits.offsets[-1]):,} documents, each with a score, "
            f"found {len(docs):,} documents and {len(hits.scores):,} scores"
        )
    if len(docs) and not 0 <= int(docs.min()) <= int(docs.max()) < documents:
        raise DataError(f"method {who}: expected document numbers from 0 to {documents - 1:,}, found another number")
    pairs = hits.rows().astype(np.int64) * max(documents, 1) + docs
    if len(np.unique(pairs)) < len(pairs):
        raise DataError(f"method {who}: a list has a document twice; return each document once for a query")
    return hits
