"""A search function over the embedded demo collection: the smallest engine that can be audited.

``askew audit callable:tools/demo_search.py:find --queries demo`` needs nothing but askew.
"""

from __future__ import annotations

from functools import cache

from askew.data.collection import open_collection
from askew.testing.servers import ToyEngine


@cache
def _engine() -> ToyEngine:
    docs: dict[str, str] = {}
    for batch in open_collection("demo").documents():
        docs |= dict(zip(batch["doc_id"].to_pylist(), batch["text"].to_pylist(), strict=True))
    return ToyEngine(docs)


def find(query: str, k: int) -> list[tuple[str, float, str]]:
    """Return the k documents that contain the words of a query most often: id, score and text."""
    return _engine().search(query, k)
