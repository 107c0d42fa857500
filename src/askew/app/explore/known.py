"""The queries that a collection comes with, found by their words, and what is judged for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from askew.corpora.collection import Collection


def words_of(text: str) -> str:
    """A query as it is looked up: blanks and capitals make no other query of it."""
    return " ".join(text.split()).casefold()


@dataclass(frozen=True)
class Known:
    """Queries and judgements. A text that two queries share stands for the first of them."""

    texts: Mapping[str, str] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
    grades: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def find(self, text: str) -> str | None:
        """The id of the query with these words."""
        return self.ids.get(words_of(text))

    def judged(self, query_id: str | None) -> Mapping[str, int] | None:
        """The judgements of a query; None where it has none."""
        return None if query_id is None else self.grades.get(query_id)


def known_of(collection: Collection) -> Known:
    """What a collection knows; without queries or judgements it knows less, and that is no error."""
    if not collection.has_queries:
        return Known()
    table = collection.queries
    texts = dict(zip(table["query_id"].to_pylist(), table["text"].to_pylist(), strict=True))
    ids: dict[str, str] = {}
    for query_id, text in texts.items():
        ids.setdefault(words_of(text), query_id)
    return Known(texts, ids, _grades(collection) if collection.has_judgements else {})


def _grades(collection: Collection) -> dict[str, dict[str, int]]:
    table = collection.judgements
    relevance = table["relevance"].to_numpy().astype(np.int64).tolist()
    found: dict[str, dict[str, int]] = {}
    for query, doc, grade in zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), relevance, strict=True):
        found.setdefault(query, {})[doc] = grade
    return found
