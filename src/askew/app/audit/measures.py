"""Choose the measures of an audit, and measure the results of the engine with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from askew.app.measure.inputs import MeasuresLike, measure_texts
from askew.app.measure.measure import MeasureReport, measure_defined
from askew.app.scoring.comparable import catalogue_of, comparable, is_signed, named_groups
from askew.app.scoring.decompose import has_parts
from askew.app.scoring.requested import key_of
from askew.app.scoring.universe import QrelsLike
from askew.core.errors import ConfigError, DataError
from askew.core.groups import Groups
from askew.core.lexicon import Lexicon
from askew.core.measure import Measure, Value
from askew.core.ranking import Floats
from askew.corpora.collection import Collection
from askew.measures.catalogue import MeasureRequest
from askew.statistics.intervals import Mean

# Signed values of different queries can cancel out in the mean, so the absolute value is measured too.
_LEAN = ("ARaB(tf)", "ARaB(tf,sign=abs)", "NFaiRR", "LexiconShare")
_EFFECTIVENESS = ("nDCG", "RR")
_CUTOFF = 10
NEITHER = "neither"
# Measures of lean also count the queries without judgements.
_UNJUDGED: dict[str, Value] = {"unjudged": "absent"}


@dataclass(frozen=True)
class AuditMeasures:
    """The measures of an audit, with all their parameters.

    ``lean`` is the deciding measure: it decides which queries are worst. ``effectiveness`` shows whether a
    reformulation loses effectiveness. ``groups`` are the groups that the caller gave. ``named`` are the groups that the
    deciding measure counts; None only for the published pair of groups, for which each measure has its own word list.
    """

    asked: tuple[MeasureRequest, ...]
    lean: MeasureRequest
    effectiveness: MeasureRequest | None
    groups: Groups | None
    named: Groups | None
    lexicon: Lexicon

    @property
    def texts(self) -> list[str]:
        """The measures as texts."""
        return [one.text for one in self.asked]

    @property
    def cutoff(self) -> int | None:
        """How many results the deciding measure reads."""
        return self.lean.measure.cutoff


def choose_measures(
    measures: MeasuresLike | None, groups: Groups | None, k: int, judged: bool, missing: str | None = None
) -> AuditMeasures:
    """Return the given measures, or else the default measures that can compare these groups."""
    texts = measure_texts(measures)
    if texts is None:
        cut = min(k, _CUTOFF)
        texts = [f"{name}@{cut}" for name in _EFFECTIVENESS] if judged else []
        texts += comparable([f"{name}@{cut}" for name in _LEAN], groups)
    # The catalogue has the options of the measurement, so that signatures can be compared with those of a baseline
    # before any query is sent.
    catalogue = catalogue_of(groups, {**_UNJUDGED, **({} if missing is None else {"missing": missing})})
    # Measures are written in canonical form, because conditions and baselines name them by their texts.
    asked = tuple(catalogue.complete([Measure.parse(text).text for text in texts]))
    for one in asked:
        one.check()
        _refuse_deeper(one, k)
        if one.judged and not judged:
            raise ConfigError(f"the measure {one.text} needs judgements: give them with qrels=")
    lean = next((one for one in asked if key_of(one) is not None), None)
    if lean is None:
        raise ConfigError(
            f"measures=: expected a measure that counts words of groups, such as ARaB(tf)@{min(k, _CUTOFF)}"
        )
    effectiveness = next((one for one in asked if one.judged), None)
    lexicon = catalogue.lexicons[str(lean.measure.param("lexicon"))]
    named = named_groups(lean, catalogue) if groups is None else groups
    return AuditMeasures(asked, lean, effectiveness, groups, named, lexicon)


def _refuse_deeper(one: MeasureRequest, k: int) -> None:
    """Refuse a measure that reads more than the k results: its value would differ from that of the full list."""
    if one.measure.cutoff is None or one.measure.cutoff > k:
        raise ConfigError(
            f"measures=: {one.text} reads more than {k} results of each query; give a lower cutoff or a larger k="
        )


@dataclass(frozen=True)
class EngineScores:
    """The values of the measures for each query of one run."""

    report: MeasureReport
    lean: MeasureRequest
    notes: list[str]

    def mean(self, text: str) -> Mean:
        """The mean of a measure over queries, with its interval."""
        return self.report[self.report.runs[0].name, text]

    @property
    def values(self) -> dict[str, Floats]:
        """The values of each measure, in the order of ``query_ids``; NaN if a measure is not defined."""
        return self.report.runs[0].values

    @property
    def query_ids(self) -> list[str]:
        """The queries that have values."""
        return self.report.runs[0].query_ids

    def of_query(self, text: str) -> dict[str, float]:
        """The values of one measure by query id, without the queries for which it is not defined."""
        pairs = zip(self.query_ids, self.values[text].tolist(), strict=True)
        return {query: value for query, value in pairs if not math.isnan(value)}


def measure_lines(
    name: str, lines: pl.DataFrame, docs: Mapping[str, str], queries: Mapping[str, str], measures: AuditMeasures,
    **options: Any,
) -> EngineScores:  # fmt: skip
    """Measure the lines of a run; measures that are not defined for any of its queries are left out, with a note."""
    collection = Collection.open(dict(docs), queries=dict(queries))
    report, left_out = measure_defined(
        {name: lines}, collection, measures.texts, groups=measures.groups, queries=list(queries), **_UNJUDGED, **options
    )
    lean = next((one for one in report.asked if one.text == measures.lean.text), None)
    if lean is None:
        raise DataError(f"audit: {measures.lean.text} is not defined for any query; give another measure in measures=")
    return EngineScores(report, lean, [*report.notes, *left_out])


def measure_engine(
    name: str, lines: pl.DataFrame, docs: Mapping[str, str], queries: Mapping[str, str], measures: AuditMeasures,
    qrels: QrelsLike | None, missing: str | None, resolver: str,
) -> EngineScores:  # fmt: skip
    """Measure the results of an engine, with the parts of the measures that have parts."""
    decompose = any(has_parts(one) for one in measures.asked)
    return measure_lines(
        name, lines, docs, queries, measures, qrels=qrels, missing=missing, decompose=decompose, resolver=resolver
    )


def toward(one: MeasureRequest, found: Mean) -> str | None:
    """Return the group that a mean leans toward by its interval, or ``neither``; None without a sign or an interval."""
    if not is_signed(one) or found.low is None or found.high is None:
        return None
    return one.groups[0] if found.low > 0 else one.groups[1] if found.high < 0 else NEITHER


def without_judgements(measures: AuditMeasures) -> AuditMeasures:
    """Return only the measures that need no judgements."""
    kept = tuple(one for one in measures.asked if "judgements" not in one.family.reads)
    return replace(measures, asked=kept, effectiveness=None)
