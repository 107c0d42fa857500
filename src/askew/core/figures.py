"""The data on which selected pairs were measured: held-out data, or in-sample (the data that selected the pairs)."""

from __future__ import annotations

HELD_OUT, IN_SAMPLE = "held-out", "in-sample"
# With fewer queries, the interval of a change is too wide or too inaccurate to be useful.
FEWEST = 5


def counted(n: int, one: str, several: str) -> str:
    """A number with its noun, such as ``1 query`` or ``1,200 queries``."""
    return f"{n:,} {one if n == 1 else several}"


def size_of(subset: str, pairs: int, queries: int) -> str:
    """The name of a subset with its numbers of pairs and queries, such as ``fair: 1 pair of 1 query``."""
    return f"{subset}: {counted(pairs, 'pair', 'pairs')} of {counted(queries, 'query', 'queries')}"
