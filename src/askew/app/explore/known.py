"""The queries of a collection, found by their text, and their judgements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pyarrow as pa

from askew.app.build.variants import ORIGINAL
from askew.corpora.collection import Collection
from askew.engine.files import LocalFiles
from askew.engine.manifest import Manifest
from askew.engine.store import Store


def words_of(text: str) -> str:
    """Normalize a query for lookup: white space and case are ignored."""
    return " ".join(text.split()).casefold()


@dataclass(frozen=True)
class Known:
    """Queries and judgements; a text that several queries share belongs to the first of them."""

    texts: Mapping[str, str] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
    grades: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def find(self, text: str, query_id: str | None = None) -> str | None:
        """Return the id of the query with this text; ``query_id`` chooses among several."""
        named = self.texts.get(query_id) if query_id is not None else None
        if named is not None and words_of(named) == words_of(text):
            return query_id
        return self.ids.get(words_of(text))

    def judged(self, query_id: str | None) -> Mapping[str, int] | None:
        """Return the judgements of a query; None if it has none."""
        return None if query_id is None else self.grades.get(query_id)


def known_of(collection: Collection) -> Known:
    """Return the queries and judgements of a collection; a collection may have none."""
    if not collection.has_queries:
        return Known()
    table = collection.queries
    texts = dict(zip(table["query_id"].to_pylist(), table["text"].to_pylist(), strict=True))
    return Known(texts, _by_words(texts), _grades(collection) if collection.has_judgements else {})


def remembered(store: Store, scores: Manifest | None) -> Known:
    """Return the queries of a store, without judgements, from the step that scored them."""
    if scores is None:
        return Known()
    rows = originals_of(store, scores).select("query_id", "text")
    texts = dict(rows.iter_rows())
    return Known(texts, _by_words(texts))


def originals_of(store: Store, scores: Manifest) -> pl.DataFrame:
    """Return the original queries of a scoring step, with their values."""
    is_original = pl.col("method") == ORIGINAL
    if not scores.parts:
        return pl.DataFrame(schema={"query_id": pl.String, "text": pl.String})
    if not isinstance(store.files, LocalFiles):
        return pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(scores)))).filter(is_original)
    folder = store.folder(scores.step, scores.key)
    return pl.scan_parquet([folder / part.file for part in scores.parts]).filter(is_original).collect()


def _by_words(texts: Mapping[str, str]) -> dict[str, str]:
    ids: dict[str, str] = {}
    for query_id, text in texts.items():
        ids.setdefault(words_of(text), query_id)
    return ids


def _grades(collection: Collection) -> dict[str, dict[str, int]]:
    table = collection.judgements
    relevance = table["relevance"].to_numpy().astype(np.int64).tolist()
    found: dict[str, dict[str, int]] = {}
    for query, doc, grade in zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), relevance, strict=True):
        found.setdefault(query, {})[doc] = grade
    return found
