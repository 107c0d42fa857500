"""RaB and ARaB (Rekabsaz and Schedl 2020): the mean lean of the first t documents, and its average over t.

For documents d_1..d_n, T = min(t, n) and a magnitude x of each document: the difference between two groups in counts
(``tc``), in ln(1 + count) (``tf``) or in presence (``bool``):

    RaB_t  = mean of x(d_1) .. x(d_T)          ARaB_t = mean of RaB_1 .. RaB_T

Positive is male-leaning by default, as in the published values of whole models.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from askew.core.measure import Measure
from askew.core.protocols import DocMentions, Inputs, Parameter
from askew.core.ranking import Floats, Rankings
from askew.measures.common import (
    DIFFERENCE,
    GroupDifference,
    lean_of,
    lean_parameters,
    relevance_parameters,
    rounded,
    text,
)

KINDS = ("tc", "tf", "bool")
SIGNS = ("signed", "abs", "running-abs")


def magnitudes(kind: str, counts: npt.NDArray[np.int32]) -> Floats:
    """The magnitude of each group in each document."""
    if kind == "tf":
        return np.log1p(counts)
    if kind == "bool":
        return (counts > 0).astype(np.float64)
    return counts.astype(np.float64)


class _Running(GroupDifference):
    """The base class of RaB and ARaB."""

    positional = ("kind",)
    parameters = {
        "kind": Parameter(
            "tf",
            "the value of a document with n words that name a group: 'tc' is n, 'tf' is ln(1 + n), 'bool' is 1 if "
            "n > 0 and otherwise 0",
            KINDS,
        ),
        "groups": Parameter("auto", f"{DIFFERENCE}; the name of one group measures this group alone"),
        "sign": Parameter(
            "signed",
            "'signed' keeps the sign of the lean, 'abs' takes the absolute value of the measure for each query, "
            "'running-abs' takes the absolute value of the mean lean of the top i documents at every rank i",
            SIGNS,
        ),
        **relevance_parameters(),
        **lean_parameters("rekabsaz2020"),
    }

    def lean(self, measure: Measure, mentions: DocMentions) -> Floats:
        """The difference of the groups' magnitudes."""
        return lean_of(measure, magnitudes(text(measure, "kind"), mentions.counts), mentions.groups)

    def score(self, measure: Measure, inputs: Inputs) -> Floats:
        """One value per query; NaN for a query without any document that has a text."""
        rankings, lean = self.read(measure, inputs)
        sign = text(measure, "sign")
        values = np.full(len(rankings), np.nan)
        for rows, part in rankings.parts():
            values[rows] = self.summarize(part, lean, measure.cutoff, sign == "running-abs")
        return rounded(measure, np.abs(values) if sign == "abs" else values)

    @staticmethod
    def summarize(rankings: Rankings, lean: Floats, k: int | None, absolute: bool) -> Floats:
        """One number for each query."""
        raise NotImplementedError


def _running_means(
    rankings: Rankings, lean: Floats, k: int | None, absolute: bool
) -> Iterator[tuple[Floats, npt.NDArray[np.bool_] | None]]:
    """RaB_1, RaB_2, ... of all queries at once, and which queries have a document at that rank."""
    running = np.zeros(len(rankings))
    for rank, docs, there in rankings.columns(k):
        running += lean[docs]
        mean = running / rank
        yield np.abs(mean) if absolute else mean, there


class _RaB(_Running):
    """RaB: the running mean at the cutoff."""

    name = "RaB"
    about = "rank bias: mean lean of the top t documents, where t is the cutoff"

    def weights(self, measure: Measure, rankings: Rankings) -> Floats:
        """1 / T."""
        return 1.0 / np.repeat(rankings.lengths, rankings.lengths)

    @staticmethod
    def summarize(rankings: Rankings, lean: Floats, k: int | None, absolute: bool) -> Floats:
        last = np.full(len(rankings), np.nan)
        for mean, there in _running_means(rankings, lean, k, absolute):
            last = mean if there is None else np.where(there, mean, last)
        return last


class _ARaB(_Running):
    """ARaB: the average of the running means up to the cutoff."""

    name = "ARaB"
    about = "average rank bias: mean of RaB@1, RaB@2, ..., RaB@t, where t is the cutoff"

    def weights(self, measure: Measure, rankings: Rankings) -> Floats:
        """Rank r counts 1 / i in each RaB_i with i >= r: (H_T - H_(r-1)) / T, with harmonic numbers H."""
        lengths = np.repeat(rankings.lengths, rankings.lengths)
        harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, int(lengths.max(initial=0)) + 1))])
        return np.asarray((harmonic[lengths] - harmonic[rankings.ranks() - 1]) / lengths)

    @staticmethod
    def summarize(rankings: Rankings, lean: Floats, k: int | None, absolute: bool) -> Floats:
        total = np.zeros(len(rankings))
        for mean, there in _running_means(rankings, lean, k, absolute):
            total += mean if there is None else np.where(there, mean, 0.0)
        lengths = rankings.lengths if k is None else np.minimum(rankings.lengths, k)
        with np.errstate(invalid="ignore"):
            return total / lengths


RaB = _RaB()
ARaB = _ARaB()
