"""Compare an audit with an earlier one (the baseline), and check the conditions under which it fails."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from askew.core.defaults import counted
from askew.core.errors import ConfigError
from askew.core.measure import Direction
from askew.measures.catalogue import MeasureRequest
from askew.measures.measure import MeasureReport
from askew.measures.statistics.intervals import SAME, size_bounds
from askew.measures.statistics.significance import ALPHA, Paired, holm_by_family, paired
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
        if not one.relative and one.verb != WORSE:
            _check_reach(one, known[one.measure])
        if not one.needs_baseline:
            continue
        if baseline is None:
            raise ConfigError(
                f"⟨fail_if⟩: a condition on {one.measure} needs an earlier audit to compare with; give ⟨baseline⟩"
            )
        if one.relative and one.verb != ABOVE and one.amount <= -100:
            raise ConfigError(f"⟨fail_if⟩: {one.measure} cannot be more than 100% below the baseline")
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


def _check_reach(one: Condition, asked: MeasureRequest) -> None:
    """Refuse a condition that can never hold, or that compares something else than it says."""
    low, high = asked.bounds
    if asked.direction is Direction.ZERO:
        if one.verb != ABOVE or one.amount < 0:
            raise ConfigError(
                f"⟨fail_if⟩: the best value of {one.measure} is 0, so its absolute value is compared, and the only "
                f"condition is '{one.measure} > X' with X of 0 or more; found {one.verb} {one.amount:g}",
                code="signed-condition",
            )
        low, high = size_bounds(asked.bounds)
    if one.amount >= high if one.verb == ABOVE else one.amount <= low:
        raise ConfigError(
            f"⟨fail_if⟩: {one.measure} {one.verb} {one.amount:g} can never hold, because the values of this measure "
            f"are from {low:g} to {high:g}",
            code="never-holds",
        )


def outcomes(
    conditions: Sequence[Condition], measured: MeasureReport, baseline: AuditReport | None
) -> tuple[list[str], list[str]]:
    """Return one line with the compared value for each condition: first of those that hold, then of the others."""
    asked = {one.text: one for one in measured.asked} if conditions else {}
    compared = {
        one.measure: _compared(asked[one.measure], measured, baseline)
        for one in conditions
        if one.needs_baseline and one.measure in asked
    }
    worse = dict.fromkeys(one.measure for one in conditions if one.verb == WORSE and one.measure in asked)
    corrected = holm_by_family({text: _p(compared[text]) for text in worse}, lambda text: asked[text].judged)
    lines: tuple[list[str], list[str]] = [], []
    for one in conditions:
        pair = compared.get(one.measure)
        if one.measure not in asked:
            holds, line = True, f"{one.measure} is not defined for any query"
        elif one.verb == WORSE:
            holds, line = _worse(one.measure, pair, corrected[one.measure])
        else:
            holds, line = _beyond(one, asked[one.measure], measured, baseline)
            if holds and one.relative and pair is not None and _p(pair) >= ALPHA:
                queries = counted(pair.n, "query", "queries")
                line += f"; the change is not significant (p = {_p(pair):.2f}, n = {queries})"
        lines[0 if holds else 1].append(line)
    return lines


def _p(pair: Paired | None) -> float:
    return 1.0 if pair is None or pair.p is None else pair.p


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


def _beyond(
    one: Condition, asked: MeasureRequest, measured: MeasureReport, baseline: AuditReport | None
) -> tuple[bool, str]:
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
    return beyond, f"{name} is {value:.4f}, {'' if beyond else 'not '}{'above' if one.verb == ABOVE else 'below'} {to}"


def _worse(measure: str, found: Paired | None, p: float) -> tuple[bool, str]:
    if found is None:
        return True, f"{measure} has no query in common with the baseline"
    holds = found.gain < 0 and p < ALPHA
    said = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    by = f"by {-found.gain:.4f}" if holds else f"with a gain of {found.gain:+.4f}"
    verb = "is worse than" if holds else "is not significantly worse than"
    return holds, f"{measure} {verb} in the baseline {by} ({said}, n = {found.n} queries)"


def _compared(asked: MeasureRequest, measured: MeasureReport, baseline: AuditReport | None) -> Paired | None:
    assert baseline is not None, "checked before"
    text, now = asked.text, of_query(measured, asked.text)
    before = {query: values[text] for query, values in baseline.scores.items() if text in values}
    shared = [query for query in now if query in before]
    if not shared:
        return None
    old, new = (np.array([side[query] for query in shared], np.float64) for side in (before, now))
    return paired(old, new, asked.direction, asked.bounds)
