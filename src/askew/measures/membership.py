"""What the measures of group shares have in common: to which groups a document belongs, and which shares are wanted.

Only mentions are known, so that a document belongs to groups in part: by the share of its mentions that name each
(``member=share``: every document that names a group counts once), or once for each mention (``member=mentions``). A
document that names no group belongs to none and keeps its rank (``neutral=drop``), or to a group of its own
(``neutral=group``).
"""

from __future__ import annotations

import math

import numpy as np

from askew.core.errors import ConfigError
from askew.core.measure import Bounds, Measure
from askew.core.ranking import Floats, Rankings
from askew.measures.common import (
    TARGETS,
    chosen_groups,
    lean_parameters,
    mentions_for,
    rounded,
    target_shares,
    text,
    with_texts,
)
from askew.plugins.kinds import DocMentions, Inputs, Parameter

NEUTRAL = "neutral"
GROUPS = Parameter("all", "the groups that are compared, joined by '+'")
MEMBER = Parameter(
    "share",
    "a document belongs to a group by the group's share of its mentions (share), or once per mention (mentions)",
    ("share", "mentions"),
)
NO_GROUP = Parameter(
    "drop",
    f"a document that names no group belongs to none (drop), or to the group '{NEUTRAL}', which then has a target too "
    "(group)",
    ("drop", "group"),
)


def member_parameters() -> dict[str, Parameter]:
    """The parameters of a measure that holds the groups of documents against targets."""
    return {
        "groups": GROUPS, "targets": TARGETS, "member": MEMBER, "neutral": NO_GROUP, **lean_parameters("rekabsaz2021")
    }  # fmt: skip


def compared(measure: Measure, groups: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The groups that are compared, of those of the lexicon; the neutral one comes last."""
    chosen = chosen_groups(measure, groups or tuple(text(measure, "groups").split("+")))
    if measure.param("neutral") != "group":
        return chosen
    if NEUTRAL in chosen:
        raise ConfigError(f"measure {measure.name}: the lexicon has a group '{NEUTRAL}' itself; give neutral=drop")
    return (*chosen, NEUTRAL)


def memberships(measure: Measure, mentions: DocMentions) -> Floats:
    """How far each document belongs to each group that is compared."""
    chosen = chosen_groups(measure, mentions.groups)
    counts = mentions.counts[:, [mentions.groups.index(group) for group in chosen]].astype(np.float64)
    total = counts.sum(axis=1, keepdims=True)
    members = counts if text(measure, "member") == "mentions" else counts / np.maximum(total, 1.0)
    return np.hstack([members, total == 0]) if text(measure, "neutral") == "group" else members


def divided(amounts: Floats, by: Floats, otherwise: float = math.nan) -> Floats:
    """Each amount divided, or the other value where there is nothing to divide by."""
    return np.asarray(np.divide(amounts, by, out=np.full(amounts.shape, otherwise), where=by > 0))


def shares_of(amounts: Floats) -> Floats:
    """Amounts by group as shares of their sum; NaN where there is none at all."""
    return divided(amounts, amounts.sum(axis=1, keepdims=True))


def relative_entropy(shares: Floats, others: Floats) -> Floats:
    """The Kullback-Leibler divergence of each row, in bits; a share of 0 adds nothing."""
    ratio = np.divide(shares, others, out=np.ones(shares.shape), where=shares > 0)
    return np.asarray((shares * np.log2(ratio)).sum(axis=1))


class GroupShares:
    """What the families have in common; each says how the documents of many queries become a value of each."""

    name = ""
    positional: tuple[str, ...] = ()
    reads = frozenset({"mentions"})
    parameters = member_parameters()
    # A logarithm of share / target needs targets above 0.
    positive_targets = False

    def bounds(self, measure: Measure) -> Bounds:
        """A share, unless a family says otherwise."""
        return 0.0, 1.0

    def targets(self, measure: Measure, groups: tuple[str, ...] | None = None) -> Floats:
        """The share that each compared group should have; equal ones for a family that has no targets."""
        names = compared(measure, groups)
        if "targets" not in self.parameters:
            return np.full(len(names), 1.0 / len(names))
        found = target_shares(measure, names)
        if self.positive_targets and not found.min() > 0:
            raise ConfigError(
                f"measure {measure.name}: it divides by the targets, so each must be above 0; "
                f"found {text(measure, 'targets')!r}"
            )
        return found

    def check(self, measure: Measure) -> None:
        """The groups, their targets and the kind of membership must fit, whatever the documents say."""
        self.targets(measure)
        if measure.param("neutral") == "group" and measure.param("member") == "mentions":
            raise ConfigError(f"measure {measure.name}: a neutral document has no mention to count; give member=share")

    def score(self, measure: Measure, inputs: Inputs) -> Floats:
        """One value per query; NaN where the formula is not defined for a query."""
        mentions = mentions_for(measure, inputs)
        targets = self.targets(measure, mentions.groups)
        members = self.members(measure, mentions)
        members = np.vstack([members, np.zeros((1, members.shape[1]))])  # the padding, ordinal -1
        ranked = inputs.ranked(text(measure, "order"))
        rankings = with_texts(measure, inputs, ranked, mentions.known, measure.cutoff)
        values = np.full(len(rankings), np.nan)
        for rows, part in rankings.parts():
            values[rows] = self.summarize(measure, part, members, targets)
        # Sums of fractions may pass a bound in the last digit.
        return rounded(measure, np.clip(values, *self.bounds(measure)))

    def members(self, measure: Measure, mentions: DocMentions) -> Floats:
        """How far each document belongs to each group."""
        return memberships(measure, mentions)

    def summarize(self, measure: Measure, rankings: Rankings, members: Floats, targets: Floats) -> Floats:
        """One number for each query."""
        raise NotImplementedError
