"""Effectiveness: every measure of ir_measures, and RR and AP also by a columnar path for large jobs.

All of them see the ranking under askew's order rule. ir_measures' own providers break ties in three
different ways; here tied documents are put in order before any of them looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError, DataError, UnknownName
from askew.core.measure import Direction, Measure
from askew.core.ranking import ORDERS, Floats, Ints, Rankings
from askew.measures.common import number, rounded, text
from askew.plugins.kinds import Inputs, Judged, Parameter

COLUMNAR = {"RR": "RR", "MRR": "RR", "AP": "AP", "MAP": "AP"}
_OURS = ("order", "unjudged", "digits")
_SHARED = {
    "order": Parameter("score", "by score as trec_eval does, or as the lines come in the file", ORDERS),
    "unjudged": Parameter(
        "error", "a query without judgements: an error, zero, or left out", ("error", "zero", "absent")
    ),
    "digits": Parameter(None, "round the value of each query to so many decimals"),
}


class Effectiveness:
    """A measure that reads judgements."""

    positional: tuple[str, ...] = ()
    reads = frozenset({"judgements"})

    def __init__(self, name: str) -> None:
        self.name = name
        if name in COLUMNAR:
            self.about = "columnar, agrees with trec_eval"
            own = {"rel": Parameter(1, "the lowest relevance that counts as relevant")}
        else:
            found = _ir_measures().measures.registry[name]
            self.about = str(getattr(found, "SHORT_DESC", "")) or str(getattr(found, "PRETTY_NAME", name))
            own = _own_parameters(found)
        self.parameters: Mapping[str, Parameter] = {**own, **_SHARED}

    def direction(self, measure: Measure) -> Direction:
        """More is better."""
        return Direction.UP

    def score(self, measure: Measure, inputs: Inputs) -> Floats:
        """One value per query; NaN for a query without judgements where that is what is asked for."""
        if inputs.judgements is None:
            raise ConfigError(f"{self.name} needs judgements: give them with --qrels")
        rankings = inputs.ranked(text(measure, "order"))
        if text(measure, "unjudged") == "error":
            _refuse_unjudged(inputs, rankings, inputs.judgements)
        compute = columnar if self.name in COLUMNAR else _through_ir_measures
        values = compute(measure, rankings, inputs.judgements, inputs)
        unjudged = np.nan if text(measure, "unjudged") == "absent" else 0.0
        return rounded(measure, np.where(inputs.judgements.judged, values, unjudged))


def _ir_measures() -> Any:
    import ir_measures

    return ir_measures


def _own_parameters(found: Any) -> dict[str, Parameter]:
    own = {}
    for key, info in found.SUPPORTED_PARAMS.items():
        default = info.default if isinstance(info.default, str | int | float | bool) else None
        if key != found.AT_PARAM:
            own[key] = Parameter(default, str(info.desc or ""))
    return own


def effectiveness_names() -> list[str]:
    """The names that ir_measures knows, without those that askew plugs into it."""
    return sorted(
        name
        for name, found in _ir_measures().measures.registry.items()
        if not getattr(found, "IS_ASKEW", False) and found.AT_PARAM == "cutoff"
    )


def _refuse_unjudged(inputs: Inputs, rankings: Rankings, judged: Judged) -> None:
    without = np.flatnonzero(~judged.judged)
    if len(without):
        query = rankings.query_ids[int(without[0])].as_py()
        raise DataError(
            f"{inputs.run_name}: {len(without)} of {len(rankings)} queries have no judgement, the first is {query!r}; "
            "leave them out with --unjudged absent, or count them as zero with --unjudged zero"
        )


def columnar(measure: Measure, rankings: Rankings, judged: Judged, _inputs: Inputs) -> Floats:
    """RR and AP over columns. Equal to trec_eval's, the order of addition included."""
    relevant = _Relevant(judged, int(number(measure, "rel")), rankings)
    values = np.zeros(len(rankings))
    for rows, part in rankings.parts():
        found, summed = np.zeros(len(part)), np.zeros(len(part))
        for rank, docs, _ in part.columns(measure.cutoff):
            hits = relevant.at(rows, docs)
            if COLUMNAR[measure.name] == "RR":
                summed[hits & (summed == 0)] = 1.0 / rank
            else:
                found += hits
                summed += np.where(hits, found / rank, 0.0)
        values[rows] = summed
    return values if COLUMNAR[measure.name] == "RR" else values / np.maximum(relevant.totals, 1)


class _Relevant:
    """Which documents are relevant to which query, to be asked for a column of documents at a time."""

    # Up to so many relevant documents a query, comparing with each of them beats a binary search.
    FEW = 4

    def __init__(self, judged: Judged, level: int, rankings: Rankings) -> None:
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
        """Whether the document of each of these rows is relevant; -1 never is."""
        if self.each is not None:
            hits = np.zeros(len(docs), np.bool_)
            for column in self.each:
                hits |= column[rows] == docs
            return hits
        wanted = np.arange(rows.start, rows.stop) * self.width + docs
        places = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.asarray((self.keys[places] == wanted) & (docs >= 0))


def _through_ir_measures(measure: Measure, rankings: Rankings, judged: Judged, inputs: Inputs) -> Floats:
    ir_measures = _ir_measures()
    own = {key: value for key, value in measure.params if key not in _OURS}
    try:
        asked = ir_measures.parse_measure(str(replace(measure, params=tuple(sorted(own.items())))))
        scores = ir_measures.iter_calc([asked], _qrels(rankings, judged, inputs), _run(rankings, inputs))
        values = np.zeros(len(rankings))
        rows = {query: row for row, query in enumerate(rankings.query_ids.to_pylist())}
        for metric in scores:
            if metric.query_id in rows:
                values[rows[metric.query_id]] = metric.value
    except (ValueError, AssertionError, RuntimeError) as error:
        raise ConfigError(f"measure {measure}: ir_measures cannot compute it: {str(error).splitlines()[0]}") from None
    return values


def _qrels(rankings: Rankings, judged: Judged, inputs: Inputs) -> dict[str, dict[str, int]]:
    ids = inputs.doc_ids
    qrels = {}
    for row, query in enumerate(rankings.query_ids.to_pylist()):
        part = slice(int(judged.offsets[row]), int(judged.offsets[row + 1]))
        docs = ids.take(judged.docs[part]).to_pylist()
        qrels[query] = dict(zip(docs, judged.relevance[part].tolist(), strict=True))
    return qrels


def _run(rankings: Rankings, inputs: Inputs) -> dict[str, dict[str, float]]:
    """Scores that say the rank: no ties are left for anybody to break."""
    docs = inputs.doc_ids.take(rankings.docs).to_pylist()
    return {
        query: {doc: float(-rank) for rank, doc in enumerate(docs[start:stop])}
        for query, start, stop in zip(
            rankings.query_ids.to_pylist(), rankings.offsets[:-1].tolist(), rankings.offsets[1:].tolist(), strict=True
        )
    }


def find_effectiveness(name: str) -> Effectiveness:
    """The family of this name, or an error that names the nearest."""
    if name not in COLUMNAR and name not in _ir_measures().measures.registry:
        raise UnknownName("measure", name, [*COLUMNAR, *effectiveness_names()])
    return Effectiveness(name)
