"""AWRF, EXP and TExFAIR: how much attention the groups get, by the ranks of the documents that belong to them.

m_g(d) is the degree to which document d belongs to group g (see ``askew.measures.exposure``), and w(r) the attention
of rank r:

    exposure_g = sum over ranks r <= t of m_g(d_r) w(r)          share_g = exposure_g / sum of all exposures

    AWRF = 1 - distance(shares, targets)
    EXP  = smallest / largest of exposure_g / sum of m_g(d_r), or the largest minus the smallest
    TExFAIR = 1 - B F, m_g(d) = mentions of g / tokens of d, w(r) = 1 / log2(r + 1)
              B = sum_g |share_g - target_g| / D, D = 2 (1 - the smallest target)
              F = attention of the documents that name a group / attention of all

AWRF: Sapiezynski et al. 2019; with Jensen-Shannon divergence: Overview of the TREC 2021 and 2022 Fair Ranking Tracks.
EXP: Singh and Joachims 2018; ratio and difference as in FairRankTune (Cachel and Rundensteiner 2023). TExFAIR:
Abolghasemi et al. 2024. The product of term share and attention is that of the paper. w, B and F follow the paper's
description; its code is not public, so they are not checked against it. D is 1 for two groups with equal targets.
"""

from __future__ import annotations

import math

import numpy as np

from askew.core.errors import ConfigError
from askew.core.measure import Bounds, Direction, Measure
from askew.core.protocols import DocMentions, Inputs, Parameter
from askew.core.ranking import Floats, Rankings
from askew.measures.common import (
    TARGETS,
    chosen_groups,
    counted_lists,
    discount,
    lean_parameters,
    number,
    rounded,
    target_shares,
    text,
)

# Code that the measures of group shares have in common: the groups of a document, and the target shares.

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
            f"measure {measure.name}: ⟨neutral=group⟩ adds a group named '{NEUTRAL}', but the lexicon already has a "
            "group of this name; use ⟨neutral=drop⟩"
        )
    return (*chosen, NEUTRAL)


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
                f"measure {measure.name}: ⟨neutral=group⟩ makes a group of the documents that name no group, but "
                "⟨member=mentions⟩ counts mentions, which these documents do not have; use ⟨member=share⟩"
            )

    def score(self, measure: Measure, inputs: Inputs) -> Floats:
        """One value per query; NaN if the formula is not defined for a query."""
        mentions, rankings = counted_lists(measure, inputs)
        targets = self.targets(measure, mentions.groups)
        members = self.members(measure, mentions)
        members = np.vstack([members, np.zeros((1, members.shape[1]))])  # the padding, document -1
        values = np.full(len(rankings), np.nan)
        for rows, part in rankings.parts():
            values[rows] = self.summarize(measure, part, members, targets)
        # Rounding in sums can exceed a bound in the last digit.
        return rounded(measure, np.clip(values, *self.bounds(measure)))

    def members(self, measure: Measure, mentions: DocMentions) -> Floats:
        """The degree to which each document belongs to each compared group."""
        chosen = chosen_groups(measure, mentions.groups)
        counts = mentions.counts[:, [mentions.groups.index(group) for group in chosen]].astype(np.float64)
        total = counts.sum(axis=1, keepdims=True)
        members = counts if text(measure, "member") == "mentions" else counts / np.maximum(total, 1.0)
        return np.hstack([members, total == 0]) if text(measure, "neutral") == "group" else members

    def unread(self, measure: Measure) -> frozenset[str]:
        """The parameters without effect: ``p``, unless the attention is geometric."""
        return frozenset(() if measure.param("attention", "geometric") == "geometric" else ("p",))

    def summarize(self, measure: Measure, rankings: Rankings, members: Floats, targets: Floats) -> Floats:
        """One number for each query."""
        raise NotImplementedError


ATTENTION = ("log", "trec", "geometric", "uniform")
_P = Parameter(
    0.5,
    "with attention='geometric', the share of the remaining attention that each document takes",
    number="any",
    least=1e-6,
    most=1.0,
)


def attention(measure: Measure, rank: int) -> float:
    """How much attention a rank gets.

    ``geometric`` is the attention of rank-biased precision with a persistence of 1 - p.
    """
    model = text(measure, "attention")
    if model == "geometric":
        p = number(measure, "p")
        return math.pow(1.0 - p, rank - 1) * p
    if model == "trec":
        return 1.0 / math.log2(max(rank, 2))
    return discount(rank) if model == "log" else 1.0


def distance(measure: Measure, shares: Floats, targets: Floats) -> Floats:
    """The distance of each row of shares from the targets; the Jensen-Shannon divergence in bits is from 0 to 1."""
    kind = text(measure, "distance")
    if kind == "tv":
        return np.asarray(np.abs(shares - targets).sum(axis=1)) / 2
    middle = (shares + targets) / 2
    both = relative_entropy(shares, middle) + relative_entropy(np.broadcast_to(targets, shares.shape), middle)
    return both / 2 * (math.log(2) if kind == "js-nats" else 1.0)


class _AWRF(GroupShares):
    """AWRF: the share of attention that each group gets, compared with targets."""

    name = "AWRF"
    about = "attention-weighted rank fairness: compares the exposure of the groups with a target"
    positional = ("attention",)
    parameters = {
        "attention": Parameter(
            "log",
            "the attention of rank r: 'log' is 1/log2(r + 1), 'trec' is 1/log2(max(r, 2)), 'geometric' is "
            "p(1 - p)^(r - 1), 'uniform' is the same for all ranks",
            ATTENTION,
        ),
        "p": _P,
        "distance": Parameter(
            "js",
            "the distance to the target: 'js' is the Jensen-Shannon divergence in bits, 'js-nats' the same in nats, "
            "'tv' is half the sum of the absolute differences",
            ("js", "js-nats", "tv"),
        ),
        **member_parameters(),
    }

    def direction(self, measure: Measure) -> Direction:
        """Higher is better: at 1 the shares equal the targets."""
        return Direction.UP

    def bounds(self, measure: Measure) -> Bounds:
        """A list of only one group is farthest from the targets."""
        targets = self.targets(measure)
        return 1.0 - float(distance(measure, np.eye(len(targets)), targets).max()), 1.0

    def summarize(self, measure: Measure, rankings: Rankings, members: Floats, targets: Floats) -> Floats:
        """One minus the distance between the shares of attention and the targets."""
        exposure = np.zeros((len(rankings), len(targets)))
        for rank, docs, _ in rankings.columns(measure.cutoff):
            exposure += members[docs] * attention(measure, rank)
        return 1.0 - distance(measure, shares_of(exposure), targets)


class _EXP(GroupShares):
    """EXP: the mean exposure of the least exposed group compared with that of the most exposed group."""

    name = "EXP"
    about = "exposure parity: mean exposure of the least exposed group divided by that of the most exposed"
    positional = ("combine",)
    parameters = {
        "combine": Parameter(
            "ratio",
            "compares the groups: 'ratio' is the smallest mean exposure divided by the largest, 'difference' is the "
            "largest minus the smallest",
            ("ratio", "difference"),
        ),
        "attention": Parameter(
            "log",
            "the attention that users give to rank r: 'log' is 1/log2(r + 1), 'geometric' is p(1 - p)^(r - 1) with the "
            "parameter 'p'",
            ("log", "geometric"),
        ),
        "p": _P,
        "groups": GROUPS,
        "member": MEMBER,
        "neutral": NO_GROUP,
        **lean_parameters("rekabsaz2021"),
    }  # fmt: skip

    def direction(self, measure: Measure) -> Direction:
        """A ratio is best at 1, a difference at 0."""
        return Direction.UP if text(measure, "combine") == "ratio" else Direction.DOWN

    def bounds(self, measure: Measure) -> Bounds:
        """A mean exposure is at most the attention of rank 1."""
        return 0.0, 1.0 if text(measure, "combine") == "ratio" else attention(measure, 1)

    def summarize(self, measure: Measure, rankings: Rankings, members: Floats, targets: Floats) -> Floats:
        """The ratio or the difference. A group without any document in the list has an exposure of 0."""
        exposure, mass = np.zeros((2, len(rankings), len(targets)))
        for rank, docs, _ in rankings.columns(measure.cutoff):
            exposure += members[docs] * attention(measure, rank)
            mass += members[docs]
        means = divided(exposure, mass, otherwise=0.0)
        least, most = means.min(axis=1), means.max(axis=1)
        if text(measure, "combine") == "ratio":
            return divided(least, most)
        return np.where(most > 0, most - least, np.nan)


class _TExFAIR(GroupShares):
    """TExFAIR: the exposure of the terms of each group, compared with targets."""

    name = "TExFAIR"
    about = (
        "compares the exposure of the terms of each group with a target; documents that name no group raise the value"
    )
    parameters = {"groups": GROUPS, "targets": TARGETS, **lean_parameters("rekabsaz2021")}

    def direction(self, measure: Measure) -> Direction:
        """Higher is better: at 1 the shares equal the targets, or the list names no group."""
        return Direction.UP

    def members(self, measure: Measure, mentions: DocMentions) -> Floats:
        """The probability of the terms of each group in each document."""
        chosen = chosen_groups(measure, mentions.groups)
        counts = mentions.counts[:, [mentions.groups.index(group) for group in chosen]]
        return np.asarray(counts / np.maximum(mentions.tokens, 1)[:, None])

    def summarize(self, measure: Measure, rankings: Rankings, members: Floats, targets: Floats) -> Floats:
        """One minus the bias. The attention of documents that name no group reduces the bias."""
        exposure = np.zeros((len(rankings), len(targets)))
        named, whole = np.zeros((2, len(rankings)))
        for rank, docs, _ in rankings.columns(measure.cutoff):
            exposure += members[docs] * discount(rank)
            named += members[docs].any(axis=1) * discount(rank)
            whole += (docs >= 0) * discount(rank)
        bias = np.abs(shares_of(exposure) - targets).sum(axis=1) / (2.0 * (1.0 - float(targets.min())))
        factor = divided(named, whole)
        return 1.0 - np.where(factor == 0, 0.0, bias * factor)


AWRF = _AWRF()
EXP = _EXP()
TExFAIR = _TExFAIR()
