"""Measures that ir_measures computes: their names and parameters, the installed providers, and the calls.

An error in one of the providers is reported as one line that names the measure.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from askew.core.errors import AskewError, ConfigError, DataError
from askew.core.measure import LARGEST, Measure
from askew.core.ranking import Floats, Rankings
from askew.plugins.kinds import Judgements, Parameter

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
        elif info.dtype is bool:
            own[key] = Parameter(default, about, (True, False))
        else:
            own[key] = Parameter(default, about, tuple(info.choices) if isinstance(info.choices, list | tuple) else ())
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
    if not there:
        raise ConfigError(f"measure {own}: {_who_could(could)}")


def _who_could(providers: list[Any]) -> str:
    if not providers:
        return "no provider of ir_measures computes this measure with this cutoff and these parameters"
    names = " or ".join(
        f"{provider.NAME} ({provider.install_instructions() or 'see ir_measures'})" for provider in providers
    )
    return f"ir_measures needs a provider that is not installed: {names}"


def compute(measure: Measure, own: Measure, rankings: Rankings, judged: Judgements) -> Floats:
    """One value per query, computed by a provider of ir_measures.

    Queries and documents are passed as numbers: some providers write them to files and accept only numbers there.
    """
    values = np.zeros(len(rankings))
    if _provider(own) == "gdeval":
        _refuse_high_grades(own, rankings, judged)
    with _one_line(measure, own, DataError):
        for metric in ir_measures().iter_calc([_as_theirs(own)], _qrels(own, rankings, judged), _run(rankings)):
            # Some providers also return the mean of all queries, under a name.
            if metric.query_id.isdecimal() and 1 <= int(metric.query_id) <= len(rankings):
                values[int(metric.query_id) - 1] = metric.value
    return values


def _provider(own: Measure) -> str:
    """The name of the provider that ir_measures uses for a measure: the first installed one that computes it."""
    asked = _as_theirs(own)
    there = (one for one in ir_measures().DefaultPipeline.providers if one.is_available() and one.supports(asked))
    return next((str(one.NAME) for one in there), "")


def _refuse_high_grades(own: Measure, rankings: Rankings, judged: Judgements) -> None:
    high = np.flatnonzero(judged.relevance > _HIGHEST_OF_GDEVAL)
    if len(high):
        row = int(np.searchsorted(judged.offsets, high[0], side="right")) - 1
        raise DataError(
            f"measure {own}: gdeval, which computes this measure, accepts grades up to {_HIGHEST_OF_GDEVAL}, but query "
            f"{rankings.query_ids[row].as_py()!r} has a judgement of grade {judged.relevance[high[0]]}. "
            f"Use nDCG@{own.cutoff}, which accepts any grade, or give judgements with lower grades"
        )


def _as_theirs(own: Measure) -> Any:
    found = ir_measures().measures.registry[own.name]
    info = found.SUPPORTED_PARAMS
    # ir_measures does not accept 1 for 1.0.
    params = {key: float(value) if key in info and info[key].dtype is float else value for key, value in own.params}
    return found(**params) if own.cutoff is None else found(**params, cutoff=own.cutoff)


@contextlib.contextmanager
def _one_line(measure: Measure, own: Measure, fault: type[AskewError]) -> Iterator[None]:
    """Turn the exception of a provider, with the stderr output of its program, into one error of one line."""
    with tempfile.TemporaryFile() as said:
        try:
            with _stderr_to(said):
                yield
        except MemoryError:
            raise
        except Exception as error:
            said.seek(0)
            lines = [*said.read().decode(errors="replace").splitlines(), *str(error).splitlines()]
            why = next((line.strip() for line in lines if line.strip()), type(error).__name__)
            raise fault(f"measure {own}: ir_measures cannot compute {measure.name}: {why}") from error
        said.seek(0)
        if left := said.read():
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
