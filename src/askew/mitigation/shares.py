# mypy: allow-untyped-decorators
"""Reorder results so that groups of documents get a share of the top ranks: DetConstSort and FA*IR.

A document belongs to the group that it names most, or to no group if it names none, or two equally often.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numba import prange

from askew.compiled import compiled
from askew.core.errors import ConfigError
from askew.core.ranking import Floats, Hits, Ints
from askew.mitigation.fair_order import EVEN, even_targets, fair_order, read_targets
from askew.plugins.limits import Share
from askew.plugins.mitigation import MitigationTask

NEUTRAL, NO_GROUP = 0, "neutral"


def document_groups(counts: npt.NDArray[np.int32]) -> Ints:
    """The group of each document, from 1: the one that it names most; NEUTRAL for none, or two equally often.

    Only the highest count matters: a document with 3, 2 and 2 mentions of three groups belongs to the first.
    """
    most = counts.max(axis=1)
    alone = (counts == most[:, None]).sum(axis=1) == 1
    return np.where((most > 0) & alone, counts.argmax(axis=1) + 1, NEUTRAL).astype(np.int64)


def own_shares(offsets: Ints, groups: Ints, names: int) -> Floats:
    """The share of each group in each list, one row for each list."""
    lists = len(offsets) - 1
    row = np.repeat(np.arange(lists), np.diff(offsets))
    counted = np.bincount(row * names + groups, minlength=lists * names).reshape(lists, names)
    return np.asarray(counted / np.maximum(np.diff(offsets), 1)[:, None], np.float64)


class _ByShares:
    """Base of the methods with target shares: the targets, and how far lists are moved toward them."""

    strengths: ClassVar[tuple[float, ...]] = (0.25, 0.5, 0.75, 1.0)

    def __init__(self, name: str, strength: float, targets: str | Mapping[str, float]) -> None:
        self._name, self._strength, self._targets = name, float(strength), targets

    def _wanted(self, task: MitigationTask) -> tuple[Ints, Floats]:
        """The group of each entry, and the target shares of each list."""
        if len(task.groups) < 2:
            raise ConfigError(
                f"method {self._name}: expected two groups or more, found {', '.join(task.groups)}; name "
                "the groups with groups="
            )
        names = (NO_GROUP, *task.groups)
        groups = document_groups(task.counts)[task.first.docs]
        given, offsets = read_targets(self._targets, names), np.asarray(task.first.offsets, np.int64)
        targets = even_targets(offsets, groups, len(names), NEUTRAL) if given is None else np.atleast_2d(given)
        own = own_shares(offsets, groups, len(names))
        return groups, (1 - self._strength) * own + self._strength * targets


class DetConstSort(_ByShares):
    """Gives each group its target share of every top k, at the least cost in scores (Geyik et al. 2019).

    ``targets``: ``even``, or shares such as ``neutral:0.5,male:0.25,female:0.25``. ``strength`` interpolates from the
    shares that a list has (0) to the targets (1).
    """

    def __init__(self, strength: Share = 1.0, targets: str | Mapping[str, float] = EVEN) -> None:
        super().__init__("detconstsort", strength, targets)

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
        super().__init__("fairtopk", strength, targets)
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
