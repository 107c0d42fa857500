"""Code that the measures of group shares have in common: the groups of a document, and the target shares.

Only mentions are known, so a document can belong partly to several groups. It belongs to a group by the share of its
mentions that name the group (``member=share``: every document that names a group counts once), or once for each
mention (``member=mentions``). A document that names no group belongs to no group and keeps its rank
(``neutral=drop``), or belongs to an additional group (``neutral=group``).
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
    "how much a document counts for a group: 'share' is the share of its mentions that name the group, 'mentions' is "
    "the number of these mentions",
    ("share", "mentions"),
)
NO_GROUP = Parameter(
    "drop",
    "how to treat a document that names no group: 'drop' assigns the document to no group, 'group' assigns the "
    f"document to an extra group '{NEUTRAL}', which has a target share like every group",
    ("drop", "group"),
)


def member_parameters() -> dict[str, Parameter]:
    """The parameters of a measure that compares the groups of documents with targets."""
    return {
        "groups": GROUPS, "targets": TARGETS, "member": MEMBER, "neutral": NO_GROUP, **lean_parameters("rekabsaz2021")
    }  # fmt: skip


def compared(measure: Measure, groups: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The groups of the lexicon that are compared. With ``neutral=group``, the neutral group is the last."""
    chosen = chosen_groups(measure, groups or tuple(text(measure, "groups").split("+")))
    if measure.param("neutral") != "group":
        return chosen
    if NEUTRAL in chosen:
        raise ConfigError(
            f"measure {measure.name}: neutral='group' adds a group named '{NEUTRAL}', but the lexicon already has a "
            "group of this name; use neutral='drop'"
        )
    return (*chosen, NEUTRAL)


def memberships(measure: Measure, mentions: DocMentions) -> Floats:
    """The degree to which each document belongs to each compared group."""
    chosen = chosen_groups(measure, mentions.groups)
    counts = mentions.counts[:, [mentions.groups.index(group) for group in chosen]].astype(np.float64)
    total = counts.sum(axis=1, keepdims=True)
    members = counts if text(measure, "member") == "mentions" else counts / np.maximum(total, 1.0)
    return np.hstack([members, total == 0]) if text(measure, "neutral") == "group" else members


def divided(amounts: Floats, by: Floats, otherwise: float = math.nan) -> Floats:
    """Each amount divided by its divisor; ``otherwise`` if the divisor is 0."""
    return np.asarray(np.divide(amounts, by, out=np.full(amounts.shape, otherwise), where=by > 0))


def shares_of(amounts: Floats) -> Floats:
    """The amounts of the groups as shares of their sum; NaN if the sum is 0."""
    return divided(amounts, amounts.sum(axis=1, keepdims=True))


def relative_entropy(shares: Floats, others: Floats) -> Floats:
    """The Kullback-Leibler divergence of each row from ``others``, in bits. A share of 0 adds nothing."""
    ratio = np.divide(shares, others, out=np.ones(shares.shape), where=shares > 0)
    return np.asarray((shares * np.log2(ratio)).sum(axis=1))


class GroupShares:
    """The base class of measures of group shares. Each family defines in ``summarize`` how a query gets its value."""

    name = ""
    positional: tuple[str, ...] = ()
    reads = frozenset({"mentions"})
    parameters = member_parameters()
    # True for a measure with a logarithm of share / target, which needs targets above 0.
    positive_targets = False

    def bounds(self, measure: Measure) -> Bounds:
        """From 0 to 1, unless a family overrides it."""
        return 0.0, 1.0

    def targets(self, measure: Measure, groups: tuple[str, ...] | None = None) -> Floats:
        """The share that each compared group should have. A family without targets has equal shares."""
        names = compared(measure, groups)
        if "targets" not in self.parameters:
            return np.full(len(names), 1.0 / len(names))
        found = target_shares(measure, names)
        if self.positive_targets and not found.min() > 0:
            raise ConfigError(
                f"measure {measure.name}: the measure divides by the targets, so each target must be above 0; "
                f"found {text(measure, 'targets')!r}"
            )
        return found

    def check(self, measure: Measure) -> None:
        """Raise ConfigError if ``targets`` does not fit ``groups``, or if ``member`` does not fit ``neutral``."""
        self.targets(measure)
        if measure.param("neutral") == "group" and measure.param("member") == "mentions":
            raise ConfigError(
                f"measure {measure.name}: neutral='group' makes a group of the documents that name no group, but "
                "member='mentions' counts mentions, which these documents do not have; use member='share'"
            )

    def score(self, measure: Measure, inputs: Inputs) -> Floats:
        """One value per query; NaN if the formula is not defined for a query."""
        mentions = mentions_for(measure, inputs)
        targets = self.targets(measure, mentions.groups)
        members = self.members(measure, mentions)
        members = np.vstack([members, np.zeros((1, members.shape[1]))])  # the padding, document -1
        ranked = inputs.ranked(text(measure, "order"))
        rankings = with_texts(measure, inputs, ranked, mentions.known, measure.cutoff)
        values = np.full(len(rankings), np.nan)
        for rows, part in rankings.parts():
            values[rows] = self.summarize(measure, part, members, targets)
        # Rounding in sums can exceed a bound in the last digit.
        return rounded(measure, np.clip(values, *self.bounds(measure)))

    def members(self, measure: Measure, mentions: DocMentions) -> Floats:
        """The degree to which each document belongs to each group."""
        return memberships(measure, mentions)

    def summarize(self, measure: Measure, rankings: Rankings, members: Floats, targets: Floats) -> Floats:
        """One number for each query."""
        raise NotImplementedError
