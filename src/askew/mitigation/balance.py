# mypy: allow-untyped-decorators
"""Reorder results so that the groups balance from the top: a greedy window, and maximal marginal relevance.

Both need one search and no model. They count the words of the groups in documents and ignore the query.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numba import prange

from askew.compiled import compiled
from askew.core.ranking import Floats, Hits, Ints
from askew.plugins.limits import Count, Share
from askew.plugins.mitigation import MitigationTask


class GreedyWindow:
    """At each rank after the first, takes the document that brings the running lean closest to zero.

    ``strength`` is the size of the window: how many of the best remaining documents are compared at each rank. With 1
    the order does not change. For each group, ln(1 + count) is summed over the ranks so far; the running lean is the
    difference between the largest and the smallest sum.
    """

    strengths: ClassVar[tuple[float, ...]] = (2, 3, 5, 10)

    def __init__(self, strength: Count = 3) -> None:
        self._window = int(strength)

    def rank(self, task: MitigationTask) -> Hits:
        """Return the results of the first search in a new order."""
        order = np.arange(len(task.first.docs), dtype=np.int64)
        _greedy(np.asarray(task.first.offsets, np.int64), task.weights(), self._window, order)
        return task.reordered(order)


class MarginalRelevance:
    """Maximal marginal relevance with balance in place of novelty (after Carbonell and Goldstein, 1998).

    Takes at each rank the document with the highest (1 - strength) * relevance - strength * lean. Relevance is the
    score of the first search, scaled to 0..1 within the list. Lean is that of all documents so far including this one,
    divided by the rank and by the largest lean of a document in the list.
    """

    strengths: ClassVar[tuple[float, ...]] = (0.25, 0.5, 0.75, 0.9)

    def __init__(self, strength: Share = 0.5) -> None:
        self._strength = float(strength)

    def rank(self, task: MitigationTask) -> Hits:
        """Return the results of the first search in a new order."""
        offsets = np.asarray(task.first.offsets, np.int64)
        order = np.arange(len(task.first.docs), dtype=np.int64)
        _mmr(offsets, _relevance(offsets, task.first.scores), task.weights(), self._strength, order)
        return task.reordered(order)


def _relevance(offsets: Ints, scores: Any) -> Floats:
    """Scale the scores of each list to 0..1; to 1 if all scores of a list are equal."""
    values = np.asarray(scores, np.float64)
    if not len(values):
        return values
    sizes = np.diff(offsets)
    starts = offsets[:-1][sizes > 0]
    low, high = (np.repeat(one.reduceat(values, starts), sizes[sizes > 0]) for one in (np.minimum, np.maximum))
    spread = high - low
    return np.where(spread > 0, (values - low) / np.where(spread > 0, spread, 1.0), 1.0)


@compiled
def _lean(sums: Any) -> Any:
    """Return the difference between the largest and the smallest sum; for one group, its sum."""
    return sums[0] if len(sums) == 1 else sums.max() - sums.min()


@compiled(parallel=True)
def _greedy(offsets: Any, weights: Any, window: int, order: Any) -> None:
    for i in prange(len(offsets) - 1):
        start, stop = offsets[i], offsets[i + 1]
        if stop == start:
            continue
        sums = weights[start].copy()
        # The best remaining documents by score, best first.
        waiting = np.empty(window, np.int64)
        held, following = 0, start + 1
        for place in range(start + 1, stop):
            while held < window and following < stop:
                waiting[held] = following
                held += 1
                following += 1
            best, least = 0, np.inf
            for one in range(held):
                lean = _lean(sums + weights[waiting[one]])
                if lean < least - 1e-12:
                    best, least = one, lean
            taken = waiting[best]
            sums += weights[taken]
            order[place] = taken
            for one in range(best, held - 1):
                waiting[one] = waiting[one + 1]
            held -= 1


@compiled(parallel=True)
def _mmr(offsets: Any, relevance: Any, weights: Any, strength: float, order: Any) -> None:
    for i in prange(len(offsets) - 1):
        start, stop = offsets[i], offsets[i + 1]
        largest = 0.0
        for entry in range(start, stop):
            largest = max(largest, _lean(weights[entry]))
        if largest == 0.0:
            continue
        sums = np.zeros(weights.shape[1])
        left = np.arange(start, stop)
        size = stop - start
        for place in range(start, stop):
            best, highest = 0, -np.inf
            for one in range(size):
                lean = _lean(sums + weights[left[one]]) / ((place - start + 1) * largest)
                value = (1.0 - strength) * relevance[left[one]] - strength * lean
                if value > highest + 1e-12:
                    best, highest = one, value
            order[place] = left[best]
            sums += weights[left[best]]
            for one in range(best, size - 1):
                left[one] = left[one + 1]
            size -= 1
