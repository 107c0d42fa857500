"""Conditions under which an audit fails, for use in continuous integration.

``ARaB(tf)@10 > 0.2``     the mean is above 0.2; if zero is the best value of a measure, its absolute mean is compared
``NFaiRR@10 < 0.8``       the mean is below 0.8
``ARaB(tf)@10 > +10%``    the mean is more than 10% above the mean of the baseline
``nDCG@10 < -5%``         the mean is more than 5% below the mean of the baseline
``ARaB(tf)@10 worse``     the measure is significantly worse than in the baseline (5% level, queries of both audits)
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from askew.app.audit.measures import EngineScores
from askew.core.errors import AskewError, ConfigError, DataError
from askew.core.figures import counted
from askew.core.measure import Direction, Measure
from askew.measures.catalogue import MeasureRequest
from askew.statistics.significance import ALPHA, SAME, Paired, holm, paired

_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_CONDITION = re.compile(
    rf"(?P<measure>\S.*?)\s*(?:(?P<sign>[<>])\s*(?P<amount>[+-]?{_NUMBER})(?P<percent>%)?|\s(?P<worse>worse))"
)
_FORMS = "'MEASURE > 0.2', 'MEASURE < 0.8', 'MEASURE > +10%', 'MEASURE < -5%' or 'MEASURE worse'"


@dataclass(frozen=True)
class AuditCondition:
    """A condition on one measure; ``sign`` is <, > or empty for "significantly worse"."""

    measure: str
    sign: str
    amount: float
    relative: bool

    @property
    def needs_baseline(self) -> bool:
        """Whether the condition compares with an earlier audit."""
        return self.relative or not self.sign


@dataclass(frozen=True)
class Baseline:
    """The numbers of an earlier audit: means, signatures, and the values of each query."""

    path: str
    measures: Mapping[str, Mapping[str, Any]]
    per_query: Mapping[str, Mapping[str, float]]


def read_conditions(texts: str | Sequence[str]) -> list[AuditCondition]:
    """Parse one or several conditions, written as on the command line."""
    found = []
    for text in [texts] if isinstance(texts, str) else texts:
        match = _CONDITION.fullmatch(text.strip())
        try:
            measure = None if match is None else Measure.parse(match["measure"]).text
        except AskewError:
            measure = None
        if match is None or measure is None:
            raise ConfigError(f"fail_if=: expected {_FORMS}; found {text!r}")
        found.append(
            AuditCondition(measure, match["sign"] or "", float(match["amount"] or 0), match["percent"] is not None)
        )
    return found


def read_baseline(path: str | Path) -> Baseline:
    """Read the audit.json of an earlier audit."""
    try:
        read = json.loads(Path(path).read_text(encoding="utf-8"))
        measures, values = read["measures"], read["per_query"]
        numbers = [one["mean"] for one in measures.values()]
        numbers += [number for one in values.values() for number in one.values()]
        sound = all(isinstance(one, float | int) for one in numbers)
        sound = sound and all(isinstance(one["signature"], str) for one in measures.values())
    except OSError as error:
        raise ConfigError(
            f"baseline= {path}: cannot be read ({error.strerror}); give an audit.json that askew audit wrote"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise DataError(f"baseline= {path}: not the result of an audit; give an audit.json that askew audit wrote")
    return Baseline(str(path), measures, values)


def check_conditions(
    conditions: Sequence[AuditCondition],
    asked: Sequence[MeasureRequest],
    baseline: Baseline | None,
    query_ids: Collection[str],
) -> None:
    """Refuse a condition that cannot be checked, before any query is sent."""
    if baseline is not None and baseline.per_query and not set(query_ids) & set(baseline.per_query):
        raise ConfigError(
            f"baseline= {baseline.path}: it has no query in common with this audit (compared by query id); audit the "
            "same queries"
        )
    known = {one.text: one for one in asked}
    for one in conditions:
        if one.measure not in known:
            raise ConfigError(
                f"fail_if=: {one.measure!r} is not a measure of this audit; its measures are {', '.join(known)}"
            )
        if not one.needs_baseline:
            continue
        if baseline is None:
            raise ConfigError(
                f"fail_if=: a condition on {one.measure} needs an earlier audit to compare with; give baseline="
            )
        earlier = _of_baseline(baseline, one.measure)
        if earlier["signature"] != known[one.measure].signature:
            raise ConfigError(
                f"baseline= {baseline.path}: the earlier audit computed {one.measure} with the parameters "
                f"{earlier['signature']}, and this audit with {known[one.measure].signature}; run both audits with the "
                "same settings"
            )


def failures(conditions: Sequence[AuditCondition], measured: EngineScores, baseline: Baseline | None) -> list[str]:
    """Return one line for each condition that is true."""
    asked = {one.text: one for one in measured.report.asked}
    compared = {
        one.measure: _compared(asked[one.measure], measured, baseline)
        for one in conditions
        if not one.sign and one.measure in asked
    }
    ps = [1.0 if found is None or found.p is None else found.p for found in compared.values()]
    corrected = dict(zip(compared, holm(ps), strict=True))
    lines = []
    for one in conditions:
        if one.measure not in asked:
            lines.append(f"{one.measure} is not defined for any query")
        elif one.sign:
            line = _beyond(one, asked[one.measure], measured, baseline)
            lines.append(f"{line}{_significance(one, asked[one.measure], measured, baseline)}" if line else "")
        else:
            lines.append(_worse(one.measure, compared[one.measure], corrected[one.measure]))
    return [line for line in lines if line]


def against_baseline(measured: EngineScores, baseline: Baseline | None) -> dict[str, Paired]:
    """Compare each measure with the baseline, over the queries of both audits.

    Measures that the baseline does not have, or has with other parameters, are left out.
    """
    if baseline is None:
        return {}
    found = {}
    for one in measured.report.asked:
        same = baseline.measures.get(one.text, {}).get("signature") == one.signature
        if same and (pair := _compared(one, measured, baseline)) is not None:
            found[one.text] = pair
    return found


def coverage_notes(
    conditions: Sequence[AuditCondition], measured: EngineScores, baseline: Baseline | None
) -> list[str]:
    """Return a note for each compared measure that is defined for another number of queries than in the baseline."""
    if baseline is None:
        return []
    said = []
    for measure in dict.fromkeys(one.measure for one in conditions if one.needs_baseline):
        now = len(measured.of_query(measure)) if any(one.text == measure for one in measured.report.asked) else 0
        before = sum(measure in values for values in baseline.per_query.values())
        if now != before:
            said.append(
                f"{measure} is defined for {now:,} queries of this audit and for {before:,} of the baseline, so their "
                "means are over different queries. The condition 'worse' compares only queries of both audits"
            )
    return said


def _beyond(one: AuditCondition, asked: MeasureRequest, measured: EngineScores, baseline: Baseline | None) -> str:
    value, limit, to = _size(measured.mean(asked.text).mean, asked), one.amount, f"{one.amount:g}"
    if one.relative:
        assert baseline is not None, "checked before"
        before = _size(_of_baseline(baseline, one.measure)["mean"], asked)
        limit = before * (1 + one.amount / 100)
        to = f"{limit:.4f} ({one.amount:+g}% of {before:.4f} in the baseline)"
    beyond = value > limit + SAME if one.sign == ">" else value < limit - SAME
    name = f"|{one.measure}|" if asked.direction is Direction.ZERO else one.measure
    return f"{name} is {value:.4f}, {'above' if one.sign == '>' else 'below'} {to}" if beyond else ""


def _significance(one: AuditCondition, asked: MeasureRequest, measured: EngineScores, baseline: Baseline | None) -> str:
    """Say that a change relative to the baseline may be due to chance."""
    found = _compared(asked, measured, baseline) if one.relative else None
    if found is None or found.p is None or found.p < ALPHA:
        return ""
    return f"; the change is not significant (p = {found.p:.2f}, n = {counted(found.n, 'query', 'queries')})"


def _worse(measure: str, found: Paired | None, p: float) -> str:
    if found is None:
        return f"{measure} has no query in common with the baseline"
    if found.gain >= 0 or p >= ALPHA:
        return ""
    said = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    return f"{measure} is worse than in the baseline by {-found.gain:.4f} ({said}, n = {found.n} queries)"


def _compared(asked: MeasureRequest, measured: EngineScores, baseline: Baseline | None) -> Paired | None:
    assert baseline is not None, "checked before"
    text = asked.text
    now = measured.of_query(text)
    before = {query: float(values[text]) for query, values in baseline.per_query.items() if text in values}
    shared = [query for query in now if query in before]
    if not shared:
        return None
    old, new = (np.array([side[query] for query in shared], np.float64) for side in (before, now))
    return paired(old, new, asked.direction, asked.bounds)


def _of_baseline(baseline: Baseline, measure: str) -> Mapping[str, Any]:
    if measure not in baseline.measures:
        raise ConfigError(
            f"baseline= {baseline.path}: it does not have the measure {measure}; its measures are "
            f"{', '.join(baseline.measures)}"
        )
    return baseline.measures[measure]


def _size(value: float, asked: MeasureRequest) -> float:
    return abs(value) if asked.direction is Direction.ZERO else value
