"""Skew and NDKL (Geyik, Ambler and Kenthapadi 2019): the share of each group in the top documents versus its target.

With share_g(i) the share of group g in the first i documents (see ``askew.measures.exposure``) and T = min(t, n):

    Skew_g = ln(share_g(T) / target_g)              MaxSkew, MinSkew: the largest and the smallest of the groups
    NDKL   = sum over i <= T of KL(shares(i), targets) / log2(i + 1), divided by the sum of 1 / log2(i + 1)

For an absent group the logarithm would be minus infinity, so a ratio below ``floor`` counts as ``floor``. The ranks
before the first document that names a group have no shares; NDKL leaves them out of both sums.
"""

from __future__ import annotations

import math

import numpy as np

from askew.core.errors import check_name
from askew.core.measure import Bounds, Direction, Measure
from askew.core.protocols import Parameter
from askew.core.ranking import Floats, Rankings
from askew.measures.common import discount, number, text
from askew.measures.exposure import GroupShares, compared, divided, member_parameters, relative_entropy, shares_of

_ENDS = {"max": Direction.DOWN, "min": Direction.UP}


class _Skew(GroupShares):
    """Skew: the logarithm of share / target for one group, or the largest or smallest over all groups."""

    name = "Skew"
    about = (
        "skew of a group: ln(share of the group in the top t documents / target share of the group); the value is the "
        "largest skew (MaxSkew), the smallest skew (MinSkew) or the skew of one group"
    )
    positional = ("of",)
    positive_targets = True
    parameters = {
        "of": Parameter(
            "max",
            "the group whose skew is the value: 'max' (the group with the largest skew), 'min' (the group with the "
            "smallest skew), or the name of a group",
        ),
        "floor": Parameter(
            0.001,
            "the lower limit of the ratio of a group's share to its target share; a smaller ratio is replaced by it",
            number="any",
            least=1e-12,
            most=1.0,
        ),
        **member_parameters(),
    }

    def direction(self, measure: Measure) -> Direction:
        """Every skew is best at 0. MaxSkew is never below 0, MinSkew never above 0."""
        return _ENDS.get(text(measure, "of"), Direction.ZERO)

    def bounds(self, measure: Measure) -> Bounds:
        """From the logarithm of the floor to the value of a list of only this group."""
        of, targets = text(measure, "of"), self.targets(measure)
        target = float(targets.min()) if of in _ENDS else float(targets[compared(measure).index(of)])
        return 0.0 if of == "max" else math.log(number(measure, "floor")), 0.0 if of == "min" else -math.log(target)

    def check(self, measure: Measure) -> None:
        """Raise an error if the group in ``of`` is not one of the compared groups."""
        super().check(measure)
        check_name("group", text(measure, "of"), (*_ENDS, *compared(measure)), f"measure {measure.name}")

    def summarize(self, measure: Measure, rankings: Rankings, members: Floats, targets: Floats) -> Floats:
        """The skew of the documents up to the cutoff. Their order does not matter."""
        amounts = np.zeros((len(rankings), len(targets)))
        for _, docs, _ in rankings.columns(measure.cutoff):
            amounts += members[docs]
        skews = np.log(np.maximum(shares_of(amounts) / targets, number(measure, "floor")))
        of = text(measure, "of")
        if of in _ENDS:
            return np.asarray(skews.max(axis=1) if of == "max" else skews.min(axis=1))
        return np.asarray(skews[:, compared(measure).index(of)])


class _NDKL(GroupShares):
    """NDKL: the discounted mean divergence of the group shares in the top 1, 2, ... t from the targets."""

    name = "NDKL"
    about = (
        "rank-discounted mean, over the ranks i = 1, 2, ..., t, of the Kullback-Leibler divergence of the group shares "
        "in the top i documents from the target shares"
    )
    positive_targets = True

    def direction(self, measure: Measure) -> Direction:
        """Lower is better: at 0 the shares equal the targets at every rank."""
        return Direction.DOWN

    def bounds(self, measure: Measure) -> Bounds:
        """A list of only the group with the smallest target is farthest from the targets."""
        return 0.0, -math.log(float(self.targets(measure).min()))

    def summarize(self, measure: Measure, rankings: Rankings, members: Floats, targets: Floats) -> Floats:
        """The weighted mean over the ranks from the first document that names a group on."""
        amounts = np.zeros((len(rankings), len(targets)))
        total, weight = np.zeros((2, len(rankings)))
        for rank, docs, _ in rankings.columns(measure.cutoff):
            amounts += members[docs]
            counts = (docs >= 0) & amounts.any(axis=1)
            found = relative_entropy(shares_of(amounts), np.broadcast_to(targets, amounts.shape)) * math.log(2)
            total += np.where(counts, found * discount(rank), 0.0)
            weight += counts * discount(rank)
        return divided(total, weight)


Skew = _Skew()
NDKL = _NDKL()
