# mypy: allow-untyped-decorators
"""Reranking by target shares: each group of documents gets its share of every top k, at the least cost in scores.

DetConstSort of Geyik, Ambler and Kenthapadi (2019): in the top k, a group with the target share p has at least
floor(k p) documents, as long as it has documents left. A place is assigned when a group's minimum rises; the document
then moves up past documents with lower scores as far as their deadlines allow. Documents that no minimum requires
follow by score.

The targets ``even`` keep the share of neutral documents in each list and divide the remaining share evenly between the
groups, so that the number of neutral documents fits the list. This is a baseline: it ignores the query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import prange

from askew.compiled import compiled
from askew.core.errors import ConfigError, DataError
from askew.core.ranking import Floats, Ints

EVEN = "even"
_SLACK = 1e-9


def read_targets(given: str | Mapping[str, float], names: Sequence[str]) -> Floats | None:
    """Read ``male:0.3,female:0.3,neutral:0.4`` as shares in the order of ``names``; None for ``even``."""
    if given == EVEN:
        return None
    try:
        parts = given if isinstance(given, Mapping) else dict(part.split(":") for part in given.split(","))
        shares = {name.strip(): float(share) for name, share in parts.items()}
    except ValueError:
        raise ConfigError(
            f"targets: expected {EVEN!r} or shares such as '{names[0]}:0.3,{names[-1]}:0.7', found {given!r}"
        ) from None
    fine = set(shares) == set(names) and all(0 <= share <= 1 for share in shares.values())
    if not fine or abs(sum(shares.values()) - 1.0) > _SLACK:
        raise ConfigError(f"targets: expected shares of {', '.join(names)} that add up to 1, found {given!r}")
    return np.array([shares[name] for name in names])


def even_targets(offsets: Ints, groups: Ints, names: int, neutral: int = 0) -> Floats:
    """Return the targets of each list: its own share of neutral documents, and the remaining share divided evenly."""
    lists = len(offsets) - 1
    row = np.repeat(np.arange(lists), np.diff(offsets))
    count = np.bincount(row, weights=(groups == neutral).astype(np.float64), minlength=lists)
    share = count / np.maximum(np.diff(offsets), 1)
    targets = np.repeat(((1.0 - share) / max(names - 1, 1))[:, None], names, axis=1)
    targets[:, neutral] = share
    return targets


def fair_order(offsets: Ints, scores: npt.ArrayLike, groups: Ints, targets: Floats, k: int | None = None) -> Ints:
    """Return the positions of each list's documents in their new order, list after list.

    List i is ``offsets[i]:offsets[i + 1]``, best first; ``groups`` numbers the group of each document; ``targets`` is
    one row of shares for all lists, or one row for each. The top ``k`` meets the minimums; all other documents follow
    by score.
    """
    values = np.ascontiguousarray(scores, np.float64)
    lists, shares = len(offsets) - 1, np.atleast_2d(np.asarray(targets, np.float64))
    shares = np.ascontiguousarray(np.broadcast_to(shares, (lists, shares.shape[1])))
    if len(groups) != len(values) or int(offsets[-1]) != len(values):
        raise DataError(f"fair order: expected a group for each of {len(values)} documents, found {len(groups)} groups")
    if len(groups) and not 0 <= int(groups.min()) <= int(groups.max()) < shares.shape[1]:
        raise DataError(f"fair order: expected group numbers from 0 to {shares.shape[1] - 1}, found {groups.max()}")
    row = np.repeat(np.arange(lists), np.diff(offsets))
    within = np.argsort(-values, kind="stable")
    by_score = within[np.argsort(row[within], kind="stable")]
    order = np.empty(len(values), np.int64)
    most = int(np.diff(offsets).max(initial=0)) if k is None else k
    _order(np.asarray(offsets, np.int64), values, np.asarray(groups, np.int64), by_score, shares, most, order)
    return order


@compiled(parallel=True)
def _order(offsets: Any, scores: Any, groups: Any, by_score: Any, targets: Any, most: int, order: Any) -> None:
    for i in prange(len(offsets) - 1):
        start, stop = offsets[i], offsets[i + 1]
        _one(scores, groups, by_score[start:stop], targets[i], min(most, stop - start), order[start:stop])


@compiled
def _one(scores: Any, groups: Any, docs: Any, targets: Any, most: int, order: Any) -> None:
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
    while filled < most and k < 2 * size + names:
        k += 1
        while filled < most:
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
    """The place of the next document of a group."""
    while start < len(docs) and groups[docs[start]] != group:
        start += 1
    return start
