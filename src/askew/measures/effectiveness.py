"""Effectiveness: the measures of ir_measures. RR and AP are computed here over columns, which is faster for large jobs.

All of them get the ranking in askew's order. The providers of ir_measures break ties in three different ways, so tied
documents are ordered before a provider gets them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError, DataError, UnknownName
from askew.core.measure import LARGEST, Bounds, Direction, Measure
from askew.core.ranking import ORDERS, Floats, Ints, Rankings
from askew.measures.borrowed import check_computable, compute, effectiveness_names, ir_measures, own_parameters
from askew.measures.common import DIGITS, READING, number, rounded, text
from askew.plugins.kinds import Inputs, Judgements, Parameter

COLUMNAR = ("RR", "AP")
UNJUDGED = ("error", "zero", "absent")
UNANSWERED = ("zero", "absent")
NO_RELEVANT = ("absent", "zero")
# Measures of ir_measures with values between 0 and 1 for every run.
_WITHIN_ONE = frozenset({
    "AP", "AP_IA", "Accuracy", "Bpref", "Compat", "ERR", "ERR_IA", "IPrec", "Judged", "P", "P_IA", "R", "RBP", "RR",
    "Rprec", "SetAP", "SetF", "SetP", "SetR", "StRecall", "Success", "alpha_nDCG", "infAP", "nDCG", "nERR_IA", "nNRBP",
})  # fmt: skip
# Measures that are meaningful for a query without any relevant document.
_NEED_NO_RELEVANT = frozenset({"Judged", "NumQ", "NumRel", "NumRet"})
_SHARED = {
    "order": Parameter(
        "score",
        "the order of the documents of a query: 'score' orders by score as in trec_eval, 'file' keeps the order of the "
        "lines in the run file",
        ORDERS,
    ),
    "unjudged": Parameter(
        "error",
        "how to treat a query without judgements: 'error' stops with an error, 'zero' gives the query the value 0, "
        "'absent' leaves the query out",
        UNJUDGED,
    ),
    "unanswered": Parameter(
        "zero",
        "how to treat a judged query without documents in the run: 'zero' gives the query the value 0, 'absent' leaves "
        "the query out",
        UNANSWERED,
    ),
    "no_relevant": Parameter(
        "absent",
        "how to treat a judged query without relevant documents: 'absent' leaves the query out, 'zero' gives the query "
        "the value 0",
        NO_RELEVANT,
    ),
    "digits": DIGITS,
    "reading": READING,
}


class Effectiveness:
    """A measure that reads judgements."""

    positional: tuple[str, ...] = ()
    reads = frozenset({"judgements"})

    def __init__(self, name: str) -> None:
        """``name`` may be an alias: MRR is RR, and NumRelRet is NumRet with a relevance level."""
        found = ir_measures().measures.registry[name]
        self.name = str(found.NAME)
        self.about = str(getattr(found, "SHORT_DESC", "")) or str(getattr(found, "PRETTY_NAME", name))
        if self.name in COLUMNAR:
            about = "the lowest grade that counts as relevant"
            own = {"rel": Parameter(1, about, number="whole", least=-LARGEST, most=LARGEST)}
        else:
            own = own_parameters(found)
        self.parameters: Mapping[str, Parameter] = {**own, **_SHARED}
        self.needs_relevant = self.name not in _NEED_NO_RELEVANT

    def direction(self, measure: Measure) -> Direction:
        """More is better."""
        return Direction.UP

    def bounds(self, measure: Measure) -> Bounds:
        """Most measures are between 0 and 1. Counts and sums that are not normalized have no upper bound."""
        return (0.0, 1.0) if self.name in _WITHIN_ONE else (0.0, math.inf)

    def check(self, measure: Measure) -> None:
        """Raise ConfigError if no installed provider computes this measure with these parameters."""
        if self.name not in COLUMNAR:
            check_computable(measure, own_part(measure))

    def score(self, measure: Measure, inputs: Inputs) -> Floats:
        """One value per query; NaN for a query that the parameters leave out."""
        if inputs.judgements is None:
            raise ConfigError(f"{self.name} needs judgements: give them with qrels=")
        rankings = inputs.ranked(text(measure, "order"))
        if text(measure, "unjudged") == "error":
            _refuse_unjudged(inputs, rankings, inputs.judgements)
        if self.name in COLUMNAR:
            values = columnar(measure, rankings, inputs.judgements)
        else:
            values = compute(measure, own_part(measure), rankings, inputs.judgements)
        unjudged = np.nan if text(measure, "unjudged") == "absent" else 0.0
        values = np.where(inputs.judgements.judged, values, unjudged)
        return rounded(measure, np.where(self._left_out(measure, rankings, inputs.judgements), np.nan, values))

    def _left_out(self, measure: Measure, rankings: Rankings, judged: Judgements) -> npt.NDArray[np.bool_]:
        """The judged queries that do not count: those without a relevant document, or without results."""
        left_out = np.zeros(len(rankings), np.bool_)
        if text(measure, "unanswered") == "absent":
            left_out |= judged.judged & (rankings.lengths == 0)
        if text(measure, "no_relevant") == "absent" and self.needs_relevant:
            left_out |= judged.judged & (judged.relevant(relevance_level(measure)) == 0)
        return left_out


def relevance_level(measure: Measure) -> int:
    """The lowest grade that counts as relevant for a measure."""
    level = measure.param("rel")
    return int(level) if isinstance(level, int) else 1


def own_part(measure: Measure) -> Measure:
    """The measure as ir_measures defines it, without the parameters that askew adds."""
    return measure.with_params({key: value for key, value in measure.params if key not in _SHARED})


def _refuse_unjudged(inputs: Inputs, rankings: Rankings, judged: Judgements) -> None:
    without = np.flatnonzero(~judged.judged)
    if len(without):
        query = rankings.query_ids[int(without[0])].as_py()
        raise DataError(
            f"{inputs.run_name}: {len(without)} of {len(rankings)} queries have no judgement, the first is {query!r}; "
            "leave them out with unjudged='absent', or count them as zero with unjudged='zero'"
        )


def columnar(measure: Measure, rankings: Rankings, judged: Judgements) -> Floats:
    """RR and AP over columns. The values equal those of trec_eval, because terms are added in the same order."""
    relevant = _Relevant(judged, int(number(measure, "rel")), rankings)
    values = np.zeros(len(rankings))
    for rows, part in rankings.parts():
        found, summed = np.zeros(len(part)), np.zeros(len(part))
        for rank, docs, _ in part.columns(measure.cutoff):
            hits = relevant.at(rows, docs)
            if measure.name == "RR":
                summed[hits & (summed == 0)] = 1.0 / rank
            else:
                found += hits
                summed += np.where(hits, found / rank, 0.0)
        values[rows] = summed
    return values if measure.name == "RR" else values / np.maximum(relevant.totals, 1)


class _Relevant:
    """The relevant documents of each query, for lookups of a whole column of documents."""

    # With at most this many relevant documents per query, comparing with each of them is faster than a binary search.
    FEW = 4

    def __init__(self, judged: Judgements, level: int, rankings: Rankings) -> None:
        wanted = judged.relevance >= level
        rows = np.repeat(np.arange(len(judged.offsets) - 1), np.diff(judged.offsets))[wanted]
        docs = judged.docs[wanted]
        self.totals = np.bincount(rows, minlength=len(rankings))
        self.width = int(max(rankings.docs.max(initial=-1), docs.max(initial=-1))) + 2
        self.keys = rows * self.width + docs
        self.each: list[Ints] | None = None
        if int(self.totals.max(initial=0)) <= self.FEW:
            place = np.arange(len(rows)) - np.repeat(np.cumsum(self.totals) - self.totals, self.totals)
            self.each = [np.full(len(rankings), -2, np.int64) for _ in range(int(self.totals.max(initial=0)))]
            for i, column in enumerate(self.each):
                column[rows[place == i]] = docs[place == i]

    def at(self, rows: slice, docs: Ints) -> npt.NDArray[np.bool_]:
        """Whether the document of each of these rows is relevant. Document -1 never is."""
        if self.each is not None:
            hits = np.zeros(len(docs), np.bool_)
            for column in self.each:
                hits |= column[rows] == docs
            return hits
        wanted = np.arange(rows.start, rows.stop) * self.width + docs
        places = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.asarray((self.keys[places] == wanted) & (docs >= 0))


def find_effectiveness(name: str) -> Effectiveness:
    """The measure of ir_measures with this name. An unknown name is an error that suggests the closest name."""
    if name not in ir_measures().measures.registry:
        raise UnknownName("measure", name, effectiveness_names())
    return Effectiveness(name)
