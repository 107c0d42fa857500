"""Small operations on result lists and their texts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from askew.app.explore.reasons import ShownMark
from askew.core.ranking import Floats, Hits
from askew.mentions.marks import Mark


def shortened(text: str, marks: Sequence[Mark | ShownMark], longest: int) -> str:
    """Cut a long text, but never within a marked word."""
    if len(text) <= longest:
        return text
    cut = text.rfind(" ", 0, longest)
    end = cut if cut > longest // 2 else longest
    return text[: next((mark.start for mark in marks if mark.start < end < mark.end), end)].rstrip()


def number(value: float) -> float | None:
    """Return a value, or None if it is not defined."""
    return float(value) if math.isfinite(value) else None


def only(hits: Hits, row: int) -> Hits:
    """Return one of several lists."""
    start, end = int(hits.offsets[row]), int(hits.offsets[row + 1])
    return Hits(np.array([0, end - start], np.int64), hits.docs[start:end], hits.scores[start:end])


def top(hits: Hits, depth: int) -> Hits:
    """Return the top-ranked documents of a list."""
    if len(hits.docs) <= depth:
        return hits
    return Hits(np.array([0, depth], np.int64), hits.docs[:depth], hits.scores[:depth])


def agreements(hits: Hits, sizes: Sequence[int], depth: int) -> Floats:
    """Return the share of the top documents of the first list of a query that each of its lists has among its own.

    The first ``sizes[0]`` lists belong to the first query, and so on.
    """
    ends = zip(hits.offsets[:-1].tolist(), hits.offsets[1:].tolist(), strict=True)
    tops = [set(hits.docs[start : min(start + depth, end)].tolist()) for start, end in ends]
    firsts = [tops[start] for start, size in zip(np.cumsum([0, *sizes[:-1]]), sizes, strict=True) for _ in range(size)]
    return np.array([len(first & top) / max(len(first), 1) for first, top in zip(firsts, tops, strict=True)])
