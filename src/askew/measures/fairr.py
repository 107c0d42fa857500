"""FaiRR and NFaiRR (Rekabsaz, Kopeinik and Schedl 2021): discounted neutrality, as a sum and divided by its ideal.

    neutrality(d) = 1                                   if the mentions of all groups are at most the threshold
                  = 1 - sum_g |share_g - target_g| / D  otherwise, D = 2 (1 - the smallest target)
    FaiRR_t  = sum over ranks r <= t of neutrality(d_r) / log2(r + 1)
    NFaiRR_t = FaiRR_t / IFaiRR_t, the same sum over the most neutral documents of a background

The published formula is for two groups with equal targets, where D is 1. With more groups, D keeps neutrality between
0 and 1.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from askew.core.errors import ConfigError, DataError
from askew.core.measure import LARGEST, Bounds, Direction, Measure
from askew.core.protocols import Inputs, Parameter
from askew.core.ranking import Floats, Rankings
from askew.measures.common import (
    EXCESS,
    MOST_DIGITS,
    TARGETS,
    chosen_groups,
    discount,
    known_to,
    lean_parameters,
    mentions_for,
    number,
    rounded,
    target_shares,
    text,
    with_texts,
)

_NEUTRALITY = {
    "threshold": Parameter(
        1, "the neutrality of a document with at most this many mentions of the groups is 1", number="any", least=0
    ),
    "groups": Parameter("all", "the groups that are compared, joined by '+'"),
    "targets": TARGETS,
    "neutrality_digits": Parameter(
        None,
        "the number of decimals that neutralities are rounded to; the published script writes six",
        number="whole",
        least=0,
        most=MOST_DIGITS,
    ),
    "malformed": Parameter(
        "zero",
        "only with reading='published': a line of the document file that does not have two columns counts as a "
        "document that names no group ('zero') or as a document without a text ('missing'), to which the parameter "
        "'missing' applies",
        ("zero", "missing"),
        quiet=True,
    ),
    **{key: value for key, value in lean_parameters("rekabsaz2021").items() if key not in EXCESS},
}


def neutrality(counts: npt.NDArray[np.int32], targets: Floats, threshold: float = 1.0) -> Floats:
    """How evenly each document names the groups."""
    total = counts.sum(axis=1, dtype=np.float64)
    some = np.maximum(total, 1.0)
    distance = np.zeros(len(counts))
    for group, target in enumerate(targets.tolist()):
        distance += np.abs(counts[:, group] / some - target)
    worst = 2.0 * (1.0 - float(targets.min()))
    return np.where(total <= threshold, 1.0, 1.0 - distance / worst)


def as_written(values: Floats, digits: int) -> Floats:
    """Numbers as they are read from a file that was written with this many decimals.

    NumPy's rounding scales the numbers first and is sometimes off by one in the last digit. There are few distinct
    values, so formatting each of them is fast.
    """
    distinct, where = np.unique(values, return_inverse=True)
    return np.array([float(f"{value:.{digits}f}") for value in distinct.tolist()], np.float64)[where]


class _FaiRR:
    """FaiRR: discounted neutrality, not normalized."""

    name = "FaiRR"
    about = "how evenly each document names the groups (its neutrality), summed with a rank discount"
    positional: tuple[str, ...] = ()
    reads = frozenset({"mentions"})
    parameters = _NEUTRALITY

    def direction(self, measure: Measure) -> Direction:
        return Direction.UP

    def bounds(self, measure: Measure) -> Bounds:
        """Neutrality is at most 1 at each rank."""
        k = measure.cutoff
        return 0.0, math.inf if k is None else math.fsum(discount(rank) for rank in range(1, k + 1))

    def check(self, measure: Measure) -> None:
        """Raise ConfigError if the parameter ``targets`` does not fit the parameter ``groups``."""
        groups = tuple(text(measure, "groups").split("+"))
        target_shares(measure, chosen_groups(measure, groups))

    def score(self, measure: Measure, inputs: Inputs) -> Floats:
        """One value per query; NaN for a query without any document that has a text."""
        known, neutral = _neutralities(measure, inputs)
        ranked = inputs.ranked(text(measure, "order"))
        return rounded(measure, _reached(measure, inputs, ranked, known, neutral))


class _NFaiRR(_FaiRR):
    """NFaiRR: FaiRR divided by that of the most neutral ranking of a background's documents."""

    name = "NFaiRR"
    about = "FaiRR divided by the FaiRR of an ideal ranking: documents of a background run, the most neutral first"
    reads = frozenset({"mentions", "background"})
    parameters = {
        **_NEUTRALITY,
        "background": Parameter(
            "self",
            "the run whose documents form the ideal ranking: 'run' for the background run (the default if a "
            "background run is given), 'self' for the measured run",
            ("run", "self"),
        ),
        "depth": Parameter(
            200,
            "how many top-ranked documents of the background run are used for each query",
            number="whole",
            least=1,
            most=LARGEST,
        ),
        "unmatched": Parameter(
            "error",
            "a query that is not in the background run: 'error' stops with an error, 'absent' leaves the query out",
            ("error", "absent"),
        ),
        "zero_ideal": Parameter(
            "absent",
            "a query whose ideal FaiRR is zero: 'absent' leaves the query out, 'zero' gives it the value 0, 'error' "
            "stops with an error",
            ("absent", "zero", "error"),
        ),
    }

    def bounds(self, measure: Measure) -> Bounds:
        """At most 1 if the run is its own background. Above 1 if it is more neutral than another background."""
        return 0.0, 1.0 if text(measure, "background") == "self" else math.inf

    def unread(self, measure: Measure) -> frozenset[str]:
        """The parameters without effect: those of a background run, if the run is its own background."""
        return frozenset({"depth", "unmatched"} if text(measure, "background") == "self" else ())

    def score(self, measure: Measure, inputs: Inputs) -> Floats:
        """One value per query; NaN for a query that the parameters leave out."""
        known, neutral = _neutralities(measure, inputs)
        ranked = inputs.ranked(text(measure, "order"))
        reached = _reached(measure, inputs, ranked, known, neutral)
        ideal = self._ideal(measure, inputs, ranked, known, neutral)
        zero = (ideal == 0) & ~np.isnan(reached)
        if text(measure, "zero_ideal") == "error" and zero.any():
            query = ranked.query_ids[int(np.flatnonzero(zero)[0])].as_py()
            raise DataError(
                f"{inputs.run_name}: the background of query {query!r} has only documents of neutrality 0, so "
                "NFaiRR would be 0/0 (the published script gives nan); "
                "leave such queries out with NFaiRR(zero_ideal=absent)"
            )
        with np.errstate(invalid="ignore", divide="ignore"):
            found = np.where(ideal > 0, reached / ideal, np.nan)
        return rounded(measure, np.where(zero, 0.0, found) if text(measure, "zero_ideal") == "zero" else found)

    def _ideal(
        self, measure: Measure, inputs: Inputs, ranked: Rankings, known: npt.NDArray[np.bool_], neutral: Floats
    ) -> Floats:
        if text(measure, "background") == "self":
            own = with_texts(measure, inputs, ranked, known, None)
            return _best(own, neutral, measure.cutoff)
        background = inputs.background_ranked(text(measure, "order"))
        if background is None:
            raise ConfigError(
                "NFaiRR needs a background run: give one with the argument 'background', or use "
                "NFaiRR(background=self), which takes the measured run as the background run"
            )
        background = background.cut(int(number(measure, "depth")))
        # The row of each query in the background; -1 if the background does not have the query.
        found = pc.index_in(ranked.query_ids, value_set=background.query_ids)
        rows = np.asarray(found.fill_null(-1).to_numpy(), np.int64)
        if (rows < 0).any() and text(measure, "unmatched") == "error":
            query = ranked.query_ids[int(np.flatnonzero(rows < 0)[0])].as_py()
            raise DataError(
                f"{inputs.run_name}: {int((rows < 0).sum())} queries are not in the background run, "
                f"the first is {query!r}; give a background that has them, "
                "or leave them out with NFaiRR(unmatched=absent)"
            )
        background = with_texts(measure, inputs, background, known, None)
        ideal = np.full(len(ranked), np.nan)
        ideal[rows >= 0] = _best(_distinct(background.select(rows[rows >= 0])), neutral, measure.cutoff)
        return ideal


def _neutralities(measure: Measure, inputs: Inputs) -> tuple[npt.NDArray[np.bool_], Floats]:
    mentions = mentions_for(measure, inputs)
    groups = chosen_groups(measure, mentions.groups)
    counts = mentions.counts[:, [mentions.groups.index(group) for group in groups]]
    neutral = neutrality(counts, target_shares(measure, groups), number(measure, "threshold"))
    if measure.param("neutrality_digits") is not None:
        neutral = as_written(neutral, int(number(measure, "neutrality_digits")))
    return known_to(measure, mentions), np.append(neutral, 0.0)  # the value of the padding, which is document -1


def _reached(
    measure: Measure, inputs: Inputs, ranked: Rankings, known: npt.NDArray[np.bool_], neutral: Floats
) -> Floats:
    """FaiRR of each query."""
    rankings = with_texts(measure, inputs, ranked, known, measure.cutoff)
    values = np.zeros(len(rankings))
    for rows, part in rankings.parts():
        for rank, docs, _ in part.columns(measure.cutoff):
            values[rows] += neutral[docs] * discount(rank)
    # A query without documents has no value; 0 would mean documents of neutrality 0.
    values[rankings.lengths == 0] = np.nan
    return values


def _best(rankings: Rankings, neutral: Floats, k: int | None) -> Floats:
    """The discounted sum over the most neutral documents of each query."""
    values = np.zeros(len(rankings))
    for rows, part in rankings.parts():
        columns = [neutral[docs] for _, docs, _ in part.columns(None)]
        # NumPy sorts along the last axis much faster than along the first.
        ordered = np.sort(np.stack(columns, axis=1), axis=1).T[::-1] if columns else np.zeros((0, 0))
        for rank, best in enumerate(ordered[:k], start=1):
            values[rows] += best * discount(rank)
    return values


def _distinct(rankings: Rankings) -> Rankings:
    """The rankings of a background without repeated documents, so that each document counts once."""
    if not rankings.may_repeat:
        return rankings
    query = np.repeat(np.arange(len(rankings)), rankings.lengths)
    keep = np.zeros(len(rankings.docs), np.bool_)
    keep[np.unique(np.stack([query, rankings.docs]), axis=1, return_index=True)[1]] = True
    return rankings.keep(keep)


FaiRR = _FaiRR()
NFaiRR = _NFaiRR()
