"""Reorder results so that the groups balance: target shares, a greedy window, and maximal marginal relevance.

All need one search and no model. They count the words of the groups in documents and ignore the query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numba import prange

from askew.core.compiled import compiled
from askew.core.errors import ConfigError, DataError
from askew.core.plugins import Count, Share
from askew.core.protocols import MitigationTask
from askew.core.ranking import Floats, Hits, Ints

# mypy: allow-untyped-decorators

EVEN = "even"
_SLACK = 1e-9


def read_targets(targets: str | Mapping[str, float], names: Sequence[str]) -> Floats | None:
    """Read ``male:0.3,female:0.3,neutral:0.4`` as shares in the order of ``names``; None for ``even``."""
    if targets == EVEN:
        return None
    try:
        parts = targets if isinstance(targets, Mapping) else dict(part.split(":") for part in targets.split(","))
        shares = {name.strip(): float(share) for name, share in parts.items()}
    except ValueError:
        raise ConfigError(
            f"targets: expected {EVEN!r} or shares such as '{names[0]}:0.3,{names[-1]}:0.7', found {targets!r}"
        ) from None
    fine = set(shares) == set(names) and all(0 <= share <= 1 for share in shares.values())
    if not fine or abs(sum(shares.values()) - 1.0) > _SLACK:
        raise ConfigError(
            f"targets: expected shares of {', '.join(names)} that add up to 1, found {targets!r}", code="bad-shares"
        )
    return np.array([shares[name] for name in names])


def fair_order(offsets: Ints, scores: npt.ArrayLike, groups: Ints, targets: Floats) -> Ints:
    """Return the positions of each list's documents in their new order, list after list.

    List i is ``offsets[i]:offsets[i + 1]``, best first; ``groups`` numbers the group of each document; ``targets`` is
    one row of shares for all lists, or one row for each.
    """
    values = np.ascontiguousarray(scores, np.float64)
    lists, shares = len(offsets) - 1, np.atleast_2d(np.asarray(targets, np.float64))
    shares = np.ascontiguousarray(np.broadcast_to(shares, (lists, shares.shape[1])))
    if len(groups) != len(values) or int(offsets[-1]) != len(values):
        raise DataError(f"fair order: expected a group for each of {len(values)} documents, found {len(groups)} groups")
    if len(groups) and not 0 <= int(groups.min()) <= int(groups.max()) < shares.shape[1]:
        problem = f"fair order: expected group numbers from 0 to {shares.shape[1] - 1}, found {groups.max()}"
        raise DataError(problem, code="unknown-group", most=shares.shape[1] - 1, found=int(groups.max()))
    row = np.repeat(np.arange(lists), np.diff(offsets))
    within = np.argsort(-values, kind="stable")
    by_score = within[np.argsort(row[within], kind="stable")]
    order = np.empty(len(values), np.int64)
    _order(np.asarray(offsets, np.int64), values, np.asarray(groups, np.int64), by_score, shares, order)
    return order


@compiled(parallel=True)
def _order(offsets: Any, scores: Any, groups: Any, by_score: Any, targets: Any, order: Any) -> None:
    for i in prange(len(offsets) - 1):
        start, stop = offsets[i], offsets[i + 1]
        _one(scores, groups, by_score[start:stop], targets[i], order[start:stop])


@compiled
def _one(scores: Any, groups: Any, docs: Any, targets: Any, order: Any) -> None:
    """Order one list: ``docs`` are sorted by score, and ``order`` is filled."""
    names, size = len(targets), len(docs)
    next_of = np.zeros(names, np.int64)  # the position of each group's next document
    least = np.zeros(names, np.int64)
    deadline = np.zeros(size + 1, np.int64)
    taken = np.zeros(size, np.bool_)
    for group in range(names):
        next_of[group] = _following(groups, docs, group, 0)
    filled, k = 0, 0
    # A minimum may be due after the last place, because floors leave places that later minimums fill.
    while filled < size and k < 2 * size + names:
        k += 1
        while filled < size:
            # Of the groups whose minimum has risen, the one with the best next document.
            best = -1
            for group in range(names):
                if next_of[group] == size or int(np.floor(k * targets[group] + 1e-9)) <= least[group]:
                    continue
                if best < 0 or scores[docs[next_of[group]]] > scores[docs[next_of[best]]]:
                    best = group
            if best < 0:
                break
            least[best] += 1
            taken[next_of[best]] = True
            order[filled], deadline[filled] = docs[next_of[best]], k
            place = filled
            while place > 0 and deadline[place - 1] > place and scores[order[place - 1]] < scores[order[place]]:
                order[place - 1], order[place] = order[place], order[place - 1]
                deadline[place - 1], deadline[place] = deadline[place], deadline[place - 1]
                place -= 1
            next_of[best] = _following(groups, docs, best, next_of[best] + 1)
            filled += 1
    for place in range(size):
        if not taken[place]:
            order[filled] = docs[place]
            filled += 1


@compiled
def _following(groups: Any, docs: Any, group: int, start: int) -> int:
    while start < len(docs) and groups[docs[start]] != group:
        start += 1
    return start


NEUTRAL, NO_GROUP = 0, "neutral"


def document_groups(counts: npt.NDArray[np.int32]) -> Ints:
    """The group of each document, from 1: the one that it names most; NEUTRAL for none, or two equally often.

    Only the highest count matters: a document with 3, 2 and 2 mentions of three groups belongs to the first.
    """
    most = counts.max(axis=1)
    alone = (counts == most[:, None]).sum(axis=1) == 1
    return np.where((most > 0) & alone, counts.argmax(axis=1) + 1, NEUTRAL).astype(np.int64)


class _ByShares:
    """Base of the methods with target shares: the targets, and how far lists are moved toward them."""

    strengths: ClassVar[tuple[float, ...]] = (0.25, 0.5, 0.75, 1.0)

    def __init__(self, strength: Share = 1.0, targets: str | Mapping[str, float] = EVEN) -> None:
        self._strength, self._targets = float(strength), targets

    def _wanted(self, task: MitigationTask) -> tuple[Ints, Floats]:
        """The group of each entry, and the target shares of each list."""
        if len(task.groups) < 2:
            text = f"method {type(self).__name__.lower()}: expected two groups or more, found {', '.join(task.groups)}"
            raise ConfigError(f"{text}; name the groups with ⟨groups⟩", code="too-few-groups", groups=task.groups)
        names = (NO_GROUP, *task.groups)
        groups, lists = document_groups(task.counts)[task.first.docs], len(task.first)
        counted = np.bincount(task.first.rows() * len(names) + groups, minlength=lists * len(names))
        own = counted.reshape(lists, len(names)) / np.maximum(np.diff(task.first.offsets), 1)[:, None]
        targets = read_targets(self._targets, names)
        if targets is None:
            # Each list keeps its share of documents without a group; the groups share the rest evenly.
            targets = np.repeat((1.0 - own[:, :1]) / len(task.groups), len(names), axis=1)
            targets[:, NEUTRAL] = own[:, NEUTRAL]
        return groups, (1 - self._strength) * own + self._strength * targets


class DetConstSort(_ByShares):
    """Gives each group its target share of every top k, at the least cost in scores (Geyik et al. 2019).

    ``targets``: ``even``, or shares such as ``neutral:0.5,male:0.25,female:0.25``. ``strength`` interpolates from the
    shares that a list has (0) to the targets (1).
    """

    def rank(self, task: MitigationTask) -> Hits:
        """Return the results of the first search in a new order."""
        groups, shares = self._wanted(task)
        return task.reordered(fair_order(task.first.offsets, -task.ranks.astype(np.float64), groups, shares))


class FairTopK(_ByShares):
    """Gives each group a minimum number of documents in every top k by a binomial test (FA*IR, Zehlike et al. 2017).

    A list fails the test at k if a group has fewer documents than the quantile ``alpha`` of the binomial distribution
    of its target share; then the group's best document is moved up. Unlike the published method, any number of groups
    has a minimum, and ``alpha`` is not adjusted for the tests at all k.
    """

    def __init__(self, strength: Share = 1.0, alpha: Share = 0.1, targets: str | Mapping[str, float] = EVEN) -> None:
        super().__init__(strength, targets)
        self._alpha = alpha

    def rank(self, task: MitigationTask) -> Hits:
        """Return the results of the first search in a new order."""
        from scipy.stats import binom

        groups, shares = self._wanted(task)
        offsets = np.asarray(task.first.offsets, np.int64)
        longest = int(np.diff(offsets).max(initial=0))
        # Neutral documents have no minimum.
        which, at = np.unique(shares[:, 1:], return_inverse=True)
        least = binom.ppf(self._alpha, np.arange(1, longest + 1)[None, :], which[:, None]).astype(np.int64)
        order = np.arange(len(task.first.docs), dtype=np.int64)
        _with_minimums(offsets, groups, least, at.reshape(shares[:, 1:].shape), order)
        return task.reordered(order)


@compiled(parallel=True)
def _with_minimums(offsets: Any, groups: Any, least: Any, at: Any, order: Any) -> None:
    """Put ``least[at[i, g], k]`` documents of group g + 1 in the top k + 1 of list i, as long as it has any."""
    for i in prange(len(offsets) - 1):
        start, stop = offsets[i], offsets[i + 1]
        names = at.shape[1]
        have = np.zeros(names + 1, np.int64)
        taken = np.zeros(stop - start, np.bool_)
        for place in range(start, stop):
            behind, missing = -1, 0
            for group in range(names):
                lack = least[at[i, group], place - start] - have[group + 1]
                if lack > missing and _next_of(groups, taken, start, stop, group + 1) >= 0:
                    behind, missing = group + 1, lack
            entry = _next_of(groups, taken, start, stop, behind)
            taken[entry - start] = True
            have[groups[entry]] += 1
            order[place] = entry


@compiled
def _next_of(groups: Any, taken: Any, start: int, stop: int, group: int) -> int:
    """Return the best remaining entry of a group, or of any group for -1; -1 if there is none."""
    for entry in range(start, stop):
        if not taken[entry - start] and (group < 0 or groups[entry] == group):
            return entry
    return -1


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
    low, high = (np.repeat(end.reduceat(values, starts), sizes[sizes > 0]) for end in (np.minimum, np.maximum))
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
            for candidate in range(held):
                lean = _lean(sums + weights[waiting[candidate]])
                if lean < least - 1e-12:
                    best, least = candidate, lean
            taken = waiting[best]
            sums += weights[taken]
            order[place] = taken
            for candidate in range(best, held - 1):
                waiting[candidate] = waiting[candidate + 1]
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
        remaining = np.arange(start, stop)
        size = stop - start
        for place in range(start, stop):
            best, highest = 0, -np.inf
            for candidate in range(size):
                lean = _lean(sums + weights[remaining[candidate]]) / ((place - start + 1) * largest)
                value = (1.0 - strength) * relevance[remaining[candidate]] - strength * lean
                if value > highest + 1e-12:
                    best, highest = candidate, value
            order[place] = remaining[best]
            sums += weights[remaining[best]]
            for candidate in range(best, size - 1):
                remaining[candidate] = remaining[candidate + 1]
            size -= 1
