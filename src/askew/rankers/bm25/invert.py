"""Convert the tokens of documents to postings by counting sort.

Tokens are sorted by term. Tokens of the same document are then adjacent and become one posting with a count. Sorting
the postings by document gives the terms of each document in ascending order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from askew.compiled import compiled

_MOST_TF = 255
Ints = np.ndarray[Any, np.dtype[np.int32]]
Longs = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Postings:
    """The documents of each term with term frequencies. Those > 255 are in ``over``, as position and frequency."""

    offsets: Longs
    docs: Ints
    tf: np.ndarray[Any, np.dtype[np.uint8]]
    over: Longs


@dataclass(frozen=True)
class Forward:
    """The terms of each document with their frequencies, for feedback."""

    offsets: Longs
    terms: Ints
    tf: Ints


def count_tokens(tokens: Sequence[Any], terms: int) -> Longs:
    """The number of tokens of each term."""
    totals = np.zeros(terms, np.int64)
    for part in tokens:
        _count(part, totals)
    return totals


def invert(tokens: Sequence[Any], counts: Sequence[Any], place: Ints, totals: Longs) -> tuple[Postings, Longs]:
    """Make postings from the tokens of batches. Also returns the number of distinct terms per document.

    ``place`` is the final number of each term, and ``totals`` the number of tokens of each final number.
    """
    edges = np.concatenate([[0], np.cumsum(totals)]).astype(np.int64)
    docs = np.empty(int(edges[-1]), np.int32)
    cursor, first = edges[:-1].copy(), 0
    for part, sizes in zip(tokens, counts, strict=True):
        _scatter(part, sizes, place, first, cursor, docs)
        first += len(sizes)
    tf, offsets, sizes = np.empty(len(docs), np.uint8), np.zeros(len(edges), np.int64), np.zeros(first, np.int64)
    over = _count_repeats(edges, docs, tf, offsets, sizes)
    used = int(offsets[-1])
    return Postings(offsets, docs[:used], tf[:used], np.array(over, np.int64).reshape(len(over), 2)), sizes


def turn_forward(postings: Postings, sizes: Longs) -> Forward:
    """Make the list of terms of each document, in ascending order. ``sizes`` are the numbers of terms per document."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    terms, tf = np.empty(len(postings.docs), np.int32), np.empty(len(postings.docs), np.int32)
    _turn(postings.offsets, postings.docs, postings.tf, postings.over, offsets[:-1].copy(), terms, tf)
    return Forward(offsets, terms, tf)


@compiled
def _count(tokens: Any, totals: Any) -> None:
    for i in range(len(tokens)):
        totals[tokens[i]] += 1


@compiled
def _scatter(tokens: Any, sizes: Any, place: Any, first: int, cursor: Any, docs: Any) -> None:
    """Write the document of each token to the range of its term, in the order of documents."""
    at = 0
    for doc in range(len(sizes)):
        for _ in range(sizes[doc]):
            term = place[tokens[at]]
            docs[cursor[term]] = first + doc
            cursor[term] += 1
            at += 1


@compiled
def _count_repeats(edges: Any, docs: Any, tf: Any, offsets: Any, sizes: Any) -> Any:
    """Merge adjacent equal documents into one posting, in place. Returns positions and counts of those above 255."""
    high = [(np.int64(0), np.int64(0)) for _ in range(0)]
    used = 0
    for term in range(len(edges) - 1):
        at, stop = edges[term], edges[term + 1]
        while at < stop:
            doc, begin = docs[at], at
            while at < stop and docs[at] == doc:
                at += 1
            docs[used], tf[used] = doc, min(at - begin, _MOST_TF)
            if at - begin > _MOST_TF:
                high.append((np.int64(used), np.int64(at - begin)))
            sizes[doc] += 1
            used += 1
        offsets[term + 1] = used
    return high


@compiled
def _turn(offsets: Any, docs: Any, tf: Any, over: Any, cursor: Any, out_terms: Any, out_tf: Any) -> None:
    high = 0
    for term in range(len(offsets) - 1):
        for p in range(offsets[term], offsets[term + 1]):
            at = cursor[docs[p]]
            cursor[docs[p]] = at + 1
            out_terms[at], out_tf[at] = term, tf[p]
            if high < len(over) and over[high, 0] == p:
                out_tf[at] = over[high, 1]
                high += 1
