"""Compare an audit with an earlier one (the baseline), and check the conditions under which it fails."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from askew.core.defaults import counted
from askew.core.errors import ConfigError
from askew.core.measure import Direction
from askew.measures.catalogue import MeasureRequest
from askew.measures.measure import MeasureReport
from askew.measures.statistics.significance import ALPHA, SAME, Paired, holm, paired
from askew.study.audit.engine import of_query
from askew.study.audit.report import AuditReport
from askew.study.gate import ABOVE, WORSE, Condition, check_measures


def check_conditions(
    conditions: Sequence[Condition],
    asked: Sequence[MeasureRequest],
    baseline: AuditReport | None,
    query_ids: Collection[str],
) -> None:
    """Refuse a condition that cannot be checked, before any query is sent."""
    if baseline is not None and baseline.scores and not set(query_ids) & set(baseline.scores):
        raise ConfigError("⟨baseline⟩: it has no query in common with this audit (by query id); audit the same queries")
    known = {one.text: one for one in asked}
    check_measures(conditions, list(known))
    for one in conditions:
        if known[one.measure].measure.param("background") == "self":
            raise ConfigError(
                f"⟨fail_if⟩: {one.measure} compares the engine with itself and is near 1 for any engine, so that it "
                "cannot be a condition; use ARaB(tf,sign=abs)@10 or its excess"
            )
        if not one.needs_baseline:
            continue
        if baseline is None:
            raise ConfigError(
                f"⟨fail_if⟩: a condition on {one.measure} needs an earlier audit to compare with; give ⟨baseline⟩"
            )
        earlier = baseline.measures.get(one.measure)
        if earlier is None:
            raise ConfigError(
                f"⟨baseline⟩: it does not have the measure {one.measure}; its measures are "
                f"{', '.join(baseline.measures)}"
            )
        if earlier.signature != known[one.measure].signature:
            raise ConfigError(
                f"⟨baseline⟩: the earlier audit computed {one.measure} with the parameters {earlier.signature}, and "
                f"this audit with {known[one.measure].signature}; run both audits with the same settings"
            )


def failures(conditions: Sequence[Condition], measured: MeasureReport, baseline: AuditReport | None) -> list[str]:
    """Return one line for each condition that is true."""
    asked = {one.text: one for one in measured.asked}
    compared = {
        one.measure: _compared(asked[one.measure], measured, baseline)
        for one in conditions
        if one.needs_baseline and one.measure in asked
    }
    worse = dict.fromkeys(one.measure for one in conditions if one.verb == WORSE and one.measure in asked)
    ps = [1.0 if (pair := compared[text]) is None or pair.p is None else pair.p for text in worse]
    corrected = dict(zip(worse, holm(ps), strict=True))
    lines = []
    for one in conditions:
        pair = compared.get(one.measure)
        if one.measure not in asked:
            lines.append(f"{one.measure} is not defined for any query")
        elif one.verb == WORSE:
            lines.append(_worse(one.measure, pair, corrected[one.measure]))
        elif line := _beyond(one, asked[one.measure], measured, baseline):
            if one.relative and pair is not None and pair.p is not None and pair.p >= ALPHA:
                queries = counted(pair.n, "query", "queries")
                line += f"; the change is not significant (p = {pair.p:.2f}, n = {queries})"
            lines.append(line)
    return [line for line in lines if line]


def against_baseline(measured: MeasureReport, baseline: AuditReport) -> dict[str, Paired]:
    """Compare each measure with the baseline, over the queries of both audits.

    Measures that the baseline does not have, or has with other parameters, are left out.
    """
    found = {}
    for one in measured.asked:
        earlier = baseline.measures.get(one.text)
        same = earlier is not None and earlier.signature == one.signature
        if same and (pair := _compared(one, measured, baseline)) is not None:
            found[one.text] = pair
    return found


def coverage_notes(conditions: Sequence[Condition], measured: MeasureReport, baseline: AuditReport) -> list[str]:
    """Return a note for each compared measure that is defined for another number of queries than in the baseline."""
    said = []
    for measure in dict.fromkeys(one.measure for one in conditions if one.needs_baseline):
        now = len(of_query(measured, measure)) if measure in measured.runs[0].values else 0
        before = sum(measure in values for values in baseline.scores.values())
        if now != before:
            said.append(
                f"{measure} is defined for {now:,} queries of this audit and for {before:,} of the baseline, so their "
                "means are over different queries. The condition 'worse' compares only queries of both audits"
            )
    return said


def _beyond(one: Condition, asked: MeasureRequest, measured: MeasureReport, baseline: AuditReport | None) -> str:
    at_zero = asked.direction is Direction.ZERO
    value, limit, to = measured[asked.text].mean, one.amount, f"{one.amount:g}"
    value = abs(value) if at_zero else value
    if one.relative and baseline is not None:
        before = baseline.measures[one.measure].mean
        before = abs(before) if at_zero else before
        limit = before * (1 + one.amount / 100)
        to = f"{limit:.4f} ({one.amount:+g}% of {before:.4f} in the baseline)"
    beyond = value > limit + SAME if one.verb == ABOVE else value < limit - SAME
    name = f"|{one.measure}|" if at_zero else one.measure
    return f"{name} is {value:.4f}, {'above' if one.verb == ABOVE else 'below'} {to}" if beyond else ""


def _worse(measure: str, found: Paired | None, p: float) -> str:
    if found is None:
        return f"{measure} has no query in common with the baseline"
    if found.gain >= 0 or p >= ALPHA:
        return ""
    said = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    return f"{measure} is worse than in the baseline by {-found.gain:.4f} ({said}, n = {found.n} queries)"


def _compared(asked: MeasureRequest, measured: MeasureReport, baseline: AuditReport | None) -> Paired | None:
    assert baseline is not None, "checked before"
    text, now = asked.text, of_query(measured, asked.text)
    before = {query: values[text] for query, values in baseline.scores.items() if text in values}
    shared = [query for query in now if query in before]
    if not shared:
        return None
    old, new = (np.array([side[query] for query in shared], np.float64) for side in (before, now))
    return paired(old, new, asked.direction, asked.bounds)
