"""Effectiveness: the measures of ir_measures. RR and AP are computed here over columns, which is faster for large jobs.

All of them get the ranking in askew's order. The providers of ir_measures break ties in three different ways, so tied
documents are ordered before a provider gets them.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from askew.core.errors import AskewError, ConfigError, DataError, UnknownName
from askew.core.measure import LARGEST, Bounds, Direction, Measure
from askew.core.protocols import Inputs, Judgements, Parameter
from askew.core.ranking import ORDERS, Floats, Ints, Rankings
from askew.measures.common import DIGITS, READING, number, rounded, text

# Measures that ir_measures computes: their names and parameters, the installed providers, and the calls.

# gdeval reports a grade above this one as a format error, because its ERR is then no longer a probability.
_HIGHEST_OF_GDEVAL = 4
_holds_back = contextvars.ContextVar("holds_back", default=False)


def ir_measures() -> Any:
    """The library ir_measures, imported on the first call."""
    import ir_measures as library

    return library


def own_parameters(found: Any) -> dict[str, Parameter]:
    """The parameters of a measure of ir_measures, without the cutoff."""
    own = {}
    for key, info in found.SUPPORTED_PARAMS.items():
        if key == found.AT_PARAM:
            continue
        # A name may be an alias for a measure with a parameter value: SetRelP is SetP(relative=True).
        given = found.params.get(key, info.default)
        default = given if isinstance(given, str | int | float | bool) else None
        about = str(info.desc or "")
        if info.dtype is int:
            own[key] = Parameter(default, about, number="whole", least=-LARGEST, most=LARGEST)
        elif info.dtype is float:
            own[key] = Parameter(default, about, number="any")
        else:
            choices = (True, False) if info.dtype is bool else info.choices
            own[key] = Parameter(default, about, tuple(choices) if isinstance(choices, list | tuple) else ())
    return own


def effectiveness_names(available: bool = False) -> list[str]:
    """The names of the measures of ir_measures, without the measures that askew adds to it.

    With ``available``, only measures that an installed provider computes.
    """
    library = ir_measures()
    names = {
        name: found.NAME
        for name, found in library.measures.registry.items()
        if not getattr(found, "IS_ASKEW", False) and found.AT_PARAM == "cutoff"
    }
    if available:
        there = [provider for provider in library.DefaultPipeline.providers if provider.is_available()]
        computed = {measure.NAME for provider in there for measure in provider.SUPPORTED_MEASURES}
        names = {name: inner for name, inner in names.items() if inner in computed}
    return sorted(names)


def check_computable(measure: Measure, own: Measure) -> None:
    """Raise ConfigError if no installed provider computes the measure."""
    found = ir_measures().measures.registry[measure.name]
    cutoff = found.SUPPORTED_PARAMS.get("cutoff")
    if cutoff is None and measure.cutoff is not None:
        raise ConfigError(f"measure {measure.name}@{measure.cutoff}: it takes no cutoff; write it as {measure.name}")
    if cutoff is not None and cutoff.required and measure.cutoff is None:
        raise ConfigError(f"measure {measure.name}: it needs a cutoff; write it for instance as {measure.name}@10")
    for key, info in found.SUPPORTED_PARAMS.items():
        if info.required and key != "cutoff" and own.param(key) is None:
            raise ConfigError(f"measure {measure.name}: it needs the parameter {key} ({info.desc or 'a value'})")
    with _one_line(measure, own, ConfigError):
        asked = _as_theirs(own)
        could = [provider for provider in ir_measures().DefaultPipeline.providers if provider.supports(asked)]
        there = any(provider.is_available() for provider in could)
    if not could:
        raise ConfigError(
            f"measure {own}: no provider of ir_measures computes this measure with this cutoff and these parameters",
            code="no-provider",
        )
    if not there:
        names = " or ".join(f"{one.NAME} ({one.install_instructions() or 'see ir_measures'})" for one in could)
        raise ConfigError(f"measure {own}: ir_measures needs a provider that is not installed: {names}")


def compute(measure: Measure, own: Measure, rankings: Rankings, judged: Judgements) -> Floats:
    """One value per query, computed by a provider of ir_measures.

    Queries and documents are passed as numbers: some providers write them to files and accept only numbers there.
    """
    values = np.zeros(len(rankings))
    asked = _as_theirs(own)
    # ir_measures uses the first installed provider that computes a measure.
    there = (one for one in ir_measures().DefaultPipeline.providers if one.is_available() and one.supports(asked))
    high = np.flatnonzero(judged.relevance > _HIGHEST_OF_GDEVAL)
    if next((one.NAME for one in there), "") == "gdeval" and len(high):
        row = int(np.searchsorted(judged.offsets, high[0], side="right")) - 1
        raise DataError(
            f"measure {own}: gdeval, which computes this measure, accepts grades up to {_HIGHEST_OF_GDEVAL}, but query "
            f"{rankings.query_ids[row].as_py()!r} has a judgement of grade {judged.relevance[high[0]]}. "
            f"Use nDCG@{own.cutoff}, which accepts any grade, or give judgements with lower grades"
        )
    with _one_line(measure, own, DataError):
        for metric in ir_measures().iter_calc([asked], _qrels(own, rankings, judged), _run(rankings)):
            # Some providers also return the mean of all queries, under a name.
            if metric.query_id.isdecimal() and 1 <= int(metric.query_id) <= len(rankings):
                values[int(metric.query_id) - 1] = metric.value
    return values


def _as_theirs(own: Measure) -> Any:
    found = ir_measures().measures.registry[own.name]
    info = found.SUPPORTED_PARAMS
    # ir_measures does not accept 1 for 1.0.
    params = {key: float(value) if key in info and info[key].dtype is float else value for key, value in own.params}
    return found(**params) if own.cutoff is None else found(**params, cutoff=own.cutoff)


@contextlib.contextmanager
def _one_line(measure: Measure, own: Measure, fault: type[AskewError]) -> Iterator[None]:
    """Turn the exception of a provider, with the stderr output of its program, into one error of one line."""
    with tempfile.TemporaryFile() as output:
        try:
            with _stderr_to(output):
                yield
        except MemoryError:
            raise
        except Exception as error:
            output.seek(0)
            lines = [*output.read().decode(errors="replace").splitlines(), *str(error).splitlines()]
            why = next((line.strip() for line in lines if line.strip()), type(error).__name__)
            raise fault(f"measure {own}: ir_measures cannot compute {measure.name}: {why}") from error
        output.seek(0)
        if left := output.read():
            sys.stderr.write(left.decode(errors="replace"))


@contextlib.contextmanager
def quiet_programs() -> Iterator[None]:
    """Inside the block, capture the stderr output of the programs that compute measures.

    If a program fails, the error message quotes the output. Otherwise the output is written to ``sys.stderr`` at the
    end of the computation. Only the command line uses this: a library call must not redirect the file descriptors of
    its caller, because other threads write to them.
    """
    token = _holds_back.set(True)
    try:
        yield
    finally:
        _holds_back.reset(token)


@contextlib.contextmanager
def _stderr_to(file: IO[bytes]) -> Iterator[None]:
    """Redirect file descriptor 2 to the file if ``quiet_programs`` is active. Programs do not use ``sys.stderr``."""
    try:
        before = os.dup(2) if _holds_back.get() else None
    except OSError:  # the process has no stderr
        before = None
    if before is None:
        yield
        return
    try:
        os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _qrels(own: Measure, rankings: Rankings, judged: Judgements) -> dict[str, dict[str, int]]:
    """The judgements for ir_measures. Grades below zero become -1 for measures with a relevance level, 0 for others.

    Bpref and infAP interpret -1 as pooled but not judged, other measures as not relevant. Lower grades can make the
    code of trec_eval write beyond its memory, which ends the process.
    """
    lowest = -1 if "rel" in ir_measures().measures.registry[own.name].SUPPORTED_PARAMS else 0
    docs, relevance = [str(doc) for doc in judged.docs.tolist()], np.maximum(judged.relevance, lowest).tolist()
    edges = judged.offsets.tolist()
    return {
        str(row + 1): dict(zip(docs[edges[row] : edges[row + 1]], relevance[edges[row] : edges[row + 1]], strict=True))
        for row in range(len(rankings))
    }


def _run(rankings: Rankings) -> dict[str, dict[str, float]]:
    """The run for ir_measures. Its scores are negative ranks, so there are no ties. Queries without results are left
    out.
    """
    docs, edges = [str(doc) for doc in rankings.docs.tolist()], rankings.offsets.tolist()
    return {
        str(row + 1): {doc: float(-rank) for rank, doc in enumerate(docs[edges[row] : edges[row + 1]])}
        for row in range(len(rankings))
        if edges[row] < edges[row + 1]
    }


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
            raise ConfigError(f"{self.name} needs judgements: give them with ⟨qrels⟩")
        rankings = inputs.ranked(text(measure, "order"))
        without = np.flatnonzero(~inputs.judgements.judged)
        if text(measure, "unjudged") == "error" and len(without):
            raise DataError(
                f"{inputs.run_name}: {len(without)} of {len(rankings)} queries have no judgement, the first is "
                f"{rankings.query_ids[int(without[0])].as_py()!r}; leave them out with ⟨unjudged=absent⟩, or count "
                "them as zero with ⟨unjudged=zero⟩"
            )
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
