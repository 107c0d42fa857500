"""askew's measures of lean inside ir_measures, and so inside PyTerrier experiments.

    import ir_measures
    from ir_measures import RR
    from askew.irm import ARaB, NFaiRR, use_documents

    use_documents("docs.tsv")
    ir_measures.calc_aggregate([RR @ 10, ARaB(kind="tf") @ 10, NFaiRR @ 10], qrels, run)

Importing this module registers the measures and their provider. A measure may also name its documents itself:
``ARaB(kind="tf", docs="docs.tsv") @ 10``. Means are over the queries of the run: a query that only the judgements have
retrieved nothing, so it has no lean, whereas ir_measures' own measures count it as zero. Queries for which a measure is
not defined are left out of its mean as well; they never count as zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import ir_measures
from ir_measures import providers
from ir_measures.measures import Measure as IrMeasure
from ir_measures.measures import ParamInfo
from ir_measures.providers.base import Any as AnyValue

from askew.app.measure.measure import measure
from askew.core.errors import DataError
from askew.measures.catalogue import find_family
from askew.plugins import registry

_documents: dict[str, object] = {}


def use_documents(docs: object) -> None:
    """The documents of all measures that do not name their own: a path, or a mapping of id to text."""
    _documents["default"] = docs


class _MeanOfThose:
    """The mean of the queries that have a value."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, value: float) -> None:
        if not math.isnan(value):
            self.total, self.count = self.total + value, self.count + 1

    def result(self) -> float:
        return self.total / self.count if self.count else math.nan


class _Lean(IrMeasure):  # type: ignore[misc]
    """A measure of lean as ir_measures knows measures."""

    IS_ASKEW = True
    DEFAULT = math.nan

    def aggregator(self) -> _MeanOfThose:
        return _MeanOfThose()


def _as_ir_measure(name: str) -> Any:
    family = find_family(name)
    supported = {
        key: ParamInfo(default=parameter.default, desc=parameter.about) for key, parameter in family.parameters.items()
    }
    supported["cutoff"] = ParamInfo(dtype=int, required=False, desc="ranking cutoff")
    supported["docs"] = ParamInfo(dtype=str, default=None, desc="path of the documents")
    facts = {
        "__name__": name,
        "NAME": name,
        "PRETTY_NAME": name,
        "SHORT_DESC": family.about,
        "SUPPORTED_PARAMS": supported,
        "__doc__": family.about,
    }
    return type(name, (_Lean,), facts)()


class _Evaluator(providers.Evaluator):  # type: ignore[misc]
    def iter_calc(self, run: Any) -> Iterator[Any]:
        """Values of the queries of the run; queries that only the judgements have are not made up."""
        table = ir_measures.util.RunConverter(run).as_dict_of_dict()
        by_docs: dict[str | None, list[Any]] = {}
        for asked in self.measures:
            by_docs.setdefault(asked["docs"], []).append(asked)
        for docs, asked in by_docs.items():
            yield from _score(table, docs if docs is not None else _default_documents(), asked)


def _default_documents() -> object:
    if "default" not in _documents:
        raise DataError("measures of lean need the texts: call askew.irm.use_documents(docs) first, or give docs=...")
    return _documents["default"]


def _score(run: dict[str, dict[str, float]], docs: object, asked: Iterable[Any]) -> Iterator[Any]:
    by_text = {_text(one): one for one in asked}
    report = measure({"run": run}, docs, measures=list(by_text))
    (scores,) = report.runs
    for text, one in by_text.items():
        for query, value in zip(scores.query_ids, scores.values[text].tolist(), strict=True):
            if not math.isnan(value):
                yield ir_measures.Metric(query_id=query, measure=one, value=value)


def _text(asked: Any) -> str:
    params = {key: value for key, value in asked.params.items() if key not in ("cutoff", "docs")}
    inner = ",".join(f"{key}={value!r}" for key, value in sorted(params.items()))
    cut = f"@{asked['cutoff']}" if "cutoff" in asked.params else ""
    return f"{asked.NAME}({inner}){cut}"


class _Provider(providers.Provider):  # type: ignore[misc]
    """askew: measures of lean."""

    NAME = "askew"
    SUPPORTED_MEASURES: list[Any] = []

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> _Evaluator:
        judged = ir_measures.util.QrelsConverter(qrels).as_dict_of_dict()
        return _Evaluator(list(measures), set(judged))


def _register() -> dict[str, Any]:
    """Add the measures and the provider once, however often this module is loaded."""
    made = {}
    for name in registry.names("measure"):
        known = ir_measures.measures.registry.get(name)
        made[name] = known if known is not None else _as_ir_measure(name)
        ir_measures.measures.registry.setdefault(name, made[name])
    if "askew" not in providers.registry:
        provider = _Provider()
        provider.SUPPORTED_MEASURES = [m(**{key: AnyValue() for key in m.SUPPORTED_PARAMS}) for m in made.values()]
        ir_measures.DefaultPipeline.providers.append(providers.register(provider))
    return made


_MADE = _register()
RaB = _MADE["RaB"]
ARaB = _MADE["ARaB"]
FaiRR = _MADE["FaiRR"]
NFaiRR = _MADE["NFaiRR"]
LexiconShare = _MADE["LexiconShare"]
