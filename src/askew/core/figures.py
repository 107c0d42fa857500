"""The data on which selected pairs were measured: held-out data, or in-sample (the data that selected the pairs)."""

from __future__ import annotations

HELD_OUT, IN_SAMPLE = "held-out", "in-sample"
# With fewer queries, the interval of a change is too wide or too inaccurate to be useful.
FEWEST = 5


def size_of(subset: str, pairs: int, queries: int) -> str:
    """The name of a subset with its numbers of pairs and queries, such as ``fair: 1 pair of 1 query``."""
    pair, query = "pair" if pairs == 1 else "pairs", "query" if queries == 1 else "queries"
    return f"{subset}: {pairs:,} {pair} of {queries:,} {query}"
