"""A search function over the embedded demo collection: the smallest engine that can be audited.

``askew audit callable:tools/demo_search.py:find --queries demo`` needs nothing but askew.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from askew.data.collection import open_collection


@cache
def _documents() -> dict[str, tuple[str, Counter[str]]]:
    """The text of each document and the number of occurrences of its words."""
    batches = [batch.select(["doc_id", "text"]).to_pylist() for batch in open_collection("demo").documents()]
    return {row["doc_id"]: (row["text"], Counter(row["text"].lower().split())) for rows in batches for row in rows}


def find(query: str, k: int) -> list[tuple[str, float, str]]:
    """Return the k documents that contain the words of a query most often: id, score and text."""
    terms = query.lower().split()
    scored = [(doc, float(sum(words[term] for term in terms)), text) for doc, (text, words) in _documents().items()]
    return sorted((result for result in scored if result[1] > 0), key=lambda result: -result[1])[:k]
