"""askew's measures of bias (lean) for ir_measures. For PyTerrier see ``askew.pyterrier``.

    import ir_measures
    from ir_measures import RR
    from askew.irm import ARaB, NFaiRR, use_documents

    use_documents("docs.tsv")
    ir_measures.calc_aggregate([RR @ 10, ARaB(kind="tf") @ 10, NFaiRR @ 10], qrels, run)

Importing this module registers the measures and their provider. A measure may also name its documents itself:
``ARaB(kind="tf", docs="docs.tsv") @ 10``. A mean is over the queries of the run. A judged query that is not in the run
retrieved nothing and has no lean, so it is left out; the measures of ir_measures count such a query as zero. Queries
for which a measure is undefined are also left out of its mean. They never count as zero.

``measures`` makes measures that are bound to documents and groups. These follow the rule of ir_measures: one value for
each judged query.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ir_measures
from ir_measures import providers
from ir_measures.measures import Measure as IrMeasure
from ir_measures.measures import ParamInfo
from ir_measures.providers.base import Any as AnyValue

from askew.core import plugins as registry
from askew.core.errors import ConfigError, DataError
from askew.core.groups import Groups, GroupsLike
from askew.data.collection import Collection, open_collection
from askew.measures.catalogue import Catalogue, find_family
from askew.measures.measure import measure
from askew.measures.requested import MeasuresLike, as_measure, measure_texts

_documents: dict[str, object] = {}


def use_documents(docs: object) -> None:
    """Set the documents of all measures that do not name their own: a path, or a mapping of id to text."""
    _documents["default"] = docs


class _MeanOfThose:
    """The mean over the queries that have a value."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, value: float) -> None:
        if not math.isnan(value):
            self.total, self.count = self.total + value, self.count + 1

    def result(self) -> float:
        return self.total / self.count if self.count else math.nan


class _Lean(IrMeasure):  # type: ignore[misc]
    """A measure of lean, as a measure of ir_measures."""

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
    supported["docs"] = ParamInfo(dtype=str, default=None, desc="the path of the file or folder of the documents")
    facts = {"NAME": name, "PRETTY_NAME": name, "SHORT_DESC": family.about, "SUPPORTED_PARAMS": supported}
    return type(name, (_Lean,), {**facts, "__name__": name, "__doc__": family.about})()


# ir_measures passes measures on as a set. Numbering the measures restores their requested order in tables.
_NUMBERS = itertools.count()


@dataclass(frozen=True, eq=False)
class _Input:
    """The input that the measures of one ``measures`` call share, and the value for an undefined measure."""

    docs: Collection
    groups: Groups | None
    undefined: float
    settings: Mapping[str, Any]


class _BoundMeasure(_Lean):
    """A measure of lean that is bound to documents and groups."""

    NAME = "askew"

    def __init__(self, name: str = "askew", text: str = "", given: _Input | None = None) -> None:
        super().__init__()
        self.name, self.text, self.given = name, text, given
        self.number = next(_NUMBERS)

    def __call__(self, **_: Any) -> Any:
        raise ConfigError(
            f"measure {self.name}: its parameters and cutoff cannot be changed; make a new measure with measures()"
        )

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BoundMeasure) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, str, int]:
        return self.name, self.text, id(self.given)


def measures(
    requested: MeasuresLike | Mapping[str, MeasuresLike],
    docs: object,
    groups: GroupsLike | None = None,
    *,
    undefined: float = math.nan,
    **settings: Any,
) -> list[Any]:
    """Make measures of lean for ir_measures and PyTerrier that are bound to documents and groups.

    ``requested`` are texts or objects, such as ``["ARaB(tf)@10", NFaiRR @ 10]``. A mapping also names the measures, so
    that one measure can be used with several ``groups``. ``docs`` are documents or a collection; ``settings`` are those
    of ``askew.measure``. Each judged query has a value. If the query has no ranked documents, or the measure is not
    defined for it, this value is the argument ``undefined``. ir_measures leaves NaN out of a mean; in PyTerrier, a mean
    over NaN is NaN.
    """
    named = requested if isinstance(requested, Mapping) else {text: text for text in measure_texts(requested) or ()}
    counted = None if groups is None else Groups.of(groups)
    texts = []
    for name, measured in named.items():
        several = measure_texts(measured) or []
        if len(several) != 1:
            message = f"measure {name!r}: expected one measure, found {len(several)}"
            raise ConfigError(message, code="several", name=name)
        texts += several
    for one in Catalogue(groups=counted).complete(texts):
        if one.judged:
            raise ConfigError(
                f"measure {one.text}: it measures effectiveness, not lean; take this measure from ir_measures"
            )
    given = _Input(open_collection(docs), counted, undefined, settings)
    return [_BoundMeasure(name, text, given) for name, text in zip(named, texts, strict=True)]


class _Evaluator(providers.Evaluator):  # type: ignore[misc]
    def iter_calc(self, run: Any) -> Iterator[Any]:
        """Compute the values of the queries of the run, or of the judged queries for bound measures."""
        table = ir_measures.util.RunConverter(run).as_dict_of_dict()
        by_docs: dict[str | None, list[Any]] = {}
        bound: dict[_Input, list[_BoundMeasure]] = {}
        for asked in sorted(self.measures, key=lambda one: getattr(one, "number", 0)):
            if isinstance(asked, _BoundMeasure):
                assert asked.given is not None
                bound.setdefault(asked.given, []).append(asked)
            else:
                by_docs.setdefault(asked["docs"], []).append(asked)
        for docs, asked in by_docs.items():
            if docs is None and "default" not in _documents:
                do = "call askew.irm.use_documents(docs) first, or give ⟨docs⟩..."
                raise DataError(f"measures of lean need the document texts: {do}")
            by_text = {}
            for one in asked:
                found = as_measure(one)
                by_text[found.with_params({key: value for key, value in found.params if key != "docs"}).text] = one
            documents = _documents["default"] if docs is None else docs
            for text, values in _values(table, documents, list(by_text)).items():
                known = {query: value for query, value in values.items() if not math.isnan(value)}
                yield from (ir_measures.Metric(query, by_text[text], value) for query, value in known.items())
        for given, several in bound.items():
            yield from _score_judged(table, given, several, sorted(self.qrel_qids))


def _score_judged(
    run: dict[str, dict[str, float]], given: _Input, requested: Sequence[_BoundMeasure], judged: Sequence[str]
) -> Iterator[Any]:
    """Compute one value for each measure and judged query."""
    answered = {query: run[query] for query in judged if run.get(query)}
    values: dict[str, dict[str, float]] = {one.text: {} for one in requested}
    if answered:
        values = _values(answered, given.docs, list(values), groups=given.groups, **given.settings)
    for one in requested:
        found = {query: values[one.text].get(query, math.nan) for query in judged}
        missing = sum(map(math.isnan, found.values()))
        if missing and math.isnan(given.undefined):
            warnings.warn(
                f"{one.name}: {missing} of {len(judged)} judged queries have no value (NaN); ir_measures leaves these "
                "queries out of a mean, and in PyTerrier the mean becomes NaN; to count these queries, set undefined= "
                "to a number",
                stacklevel=2,
            )
        for query, value in found.items():
            filled = given.undefined if math.isnan(value) else value
            yield ir_measures.Metric(query_id=query, measure=one, value=filled)


def _values(
    run: dict[str, dict[str, float]], docs: object, texts: list[str], **settings: Any
) -> dict[str, dict[str, float]]:
    """The value of each measure for each query of a run; NaN if it is not defined."""
    (scores,) = measure({"run": run}, docs, measures=texts, **settings).runs
    return {text: dict(zip(scores.query_ids, scores.values[text].tolist(), strict=True)) for text in texts}


class _Provider(providers.Provider):  # type: ignore[misc]
    """askew: measures of lean."""

    NAME = "askew"
    SUPPORTED_MEASURES: list[Any] = []

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> _Evaluator:
        measures = list(measures)
        for name, count in Counter(map(str, measures)).items():
            if count > 1:
                raise ConfigError(
                    f"{count} measures are called {name!r}: give them different names, as in "
                    "measures({NAME: MEASURE})"
                )
        judged = ir_measures.util.QrelsConverter(qrels).as_dict_of_dict()
        return _Evaluator(list(measures), set(judged))


def _register() -> dict[str, Any]:
    """Register the measures and the provider with ir_measures, only once even if this module is loaded again."""
    made = {}
    for name in registry.names("measure"):
        known = ir_measures.measures.registry.get(name)
        made[name] = known if known is not None else _as_ir_measure(name)
        ir_measures.measures.registry.setdefault(name, made[name])
    if "askew" not in providers.registry:
        provider = _Provider()
        provider.SUPPORTED_MEASURES = [m(**{key: AnyValue() for key in m.SUPPORTED_PARAMS}) for m in made.values()]
        provider.SUPPORTED_MEASURES.append(_BoundMeasure())
        ir_measures.DefaultPipeline.providers.append(providers.register(provider))
    return made


_MADE = _register()
RaB = _MADE["RaB"]
ARaB = _MADE["ARaB"]
FaiRR = _MADE["FaiRR"]
NFaiRR = _MADE["NFaiRR"]
LexiconShare = _MADE["LexiconShare"]
AWRF = _MADE["AWRF"]
EXP = _MADE["EXP"]
TExFAIR = _MADE["TExFAIR"]
Skew = _MADE["Skew"]
NDKL = _MADE["NDKL"]
