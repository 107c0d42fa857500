"""Audit a live engine: search, measure, show the worst queries, try reformulations, and recommend what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from askew.app.audit.engine import AuditedEngine, Progress, answers_place, open_engine, tell
from askew.app.audit.gate import (
    against_baseline,
    check_conditions,
    coverage_notes,
    failures,
    read_baseline,
    read_conditions,
)
from askew.app.audit.measures import AuditMeasures, EngineScores, choose_measures, measure_engine, toward
from askew.app.audit.page import check_place, write_audit
from askew.app.audit.reformulations import Reformulations, ReformulationTrial
from askew.app.audit.report import AuditReport
from askew.app.audit.reranking import reranking_of
from askew.app.audit.settings import AuditSettings
from askew.app.audit.stability import Stability, stability_of, times_less
from askew.app.audit.worst import words_per_query, worst_queries
from askew.app.measure.inputs import MeasuresLike
from askew.app.scoring.universe import QrelsLike
from askew.app.search.retrieve import as_queries
from askew.core.errors import DataError
from askew.core.groups import Groups, GroupsLike

__all__ = ["AuditReport", "AuditSettings", "audit"]


def audit(
    engine: object,
    queries: object,
    *,
    engine_settings: Mapping[str, Any] | None = None,
    groups: GroupsLike | None = None,
    measures: MeasuresLike | None = None,
    docs: object = None,
    qrels: QrelsLike | None = None,
    baseline: str | Path | None = None,
    fail_if: str | Sequence[str] = (),
    settings: AuditSettings | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Audit a search engine: measure the bias (lean) of its results, find the worst queries, and try what reduces it.

    - ``engine``: one of these: a ranker by name with ``engine_settings`` (``"opensearch"``), a name with a file of
      settings (``"http:engine.toml"``), an address of a JSON interface, a function of a query and k, a retriever of
      LangChain or LlamaIndex, or any ranker.
    - ``queries``: a file, ``{id: text}``, a list of texts or a data frame.
    - ``engine_settings``: the settings of an engine that is given by name.
    - ``groups``: the groups whose words are counted.
    - ``measures``: as in ``measure``. The first measure of lean decides which queries are worst.
    - ``docs``: the texts of documents that the engine returns without a text.
    - ``qrels``: judgements, which are optional.
    - ``baseline``: the file audit.json of an earlier audit to compare with.
    - ``fail_if``: one condition or several. ``"ARaB(tf)@10 > 0.2"`` and ``"NFaiRR@10 < 0.8"`` compare the mean with a
      number; for a measure whose best value is zero, the absolute mean is compared. ``"ARaB(tf)@10 > +10%"`` and
      ``"nDCG@10 < -5%"`` compare the mean with the mean of the baseline. ``"ARaB(tf)@10 worse"`` holds if the measure
      is significantly worse than in the baseline. The attribute ``failures`` of the report lists the conditions that
      hold.
    - ``settings``: the settings of the audit.
    - ``progress``: a function that is called with the number of queries that are done, their total and the name of the
      step.
    """
    how = settings or AuditSettings()
    if how.out is not None:
        check_place(Path(how.out))
    counted = None if groups is None else Groups.of(groups)
    chosen = choose_measures(measures, counted, how.k, qrels is not None, how.missing)
    conditions, earlier = read_conditions(fail_if), None if baseline is None else read_baseline(baseline)
    table = as_queries(queries)
    check_conditions(conditions, chosen.asked, earlier, table["query_id"].to_pylist())
    trial = ReformulationTrial(how, chosen.named)
    opened = _opened(engine, engine_settings, table, docs, how)
    steps = _Steps(opened, table, chosen, qrels, how, progress)
    report = steps.report(trial)
    report.failures += failures(conditions, steps.measured, earlier)
    report.against = against_baseline(steps.measured, earlier)
    report.notes += [*coverage_notes(conditions, steps.measured, earlier), *opened.all_notes()]
    if how.out is not None:
        write_audit(report, Path(how.out), how.keep_queries)
    opened.finish()
    return report


def _opened(
    engine: object, settings: Mapping[str, Any] | None, queries: pa.Table, docs: object, how: AuditSettings
) -> AuditedEngine:
    ranker = open_engine(engine, settings, queries)
    opened = AuditedEngine(ranker, docs, how.missing)
    # An engine object of the caller keeps its answers as its own settings say.
    place = answers_place(ranker, how.out, how.store) if isinstance(engine, str) else None
    if place is not None:
        opened.keep_answers(place)
    return opened


class _Steps:
    """The steps of one audit, in order."""

    def __init__(
        self, engine: AuditedEngine, queries: pa.Table, measures: AuditMeasures, qrels: QrelsLike | None,
        how: AuditSettings, progress: Progress | None,
    ) -> None:  # fmt: skip
        self._engine, self._measures, self._qrels, self._how = engine, measures, qrels, how
        self._progress, self._started = progress, datetime.now(UTC)
        self._queries = dict(zip(queries["query_id"].to_pylist(), queries["text"].to_pylist(), strict=True))
        self._lines = engine.search(queries, how.k, "searching", progress)
        if not self._lines.height:
            raise DataError(
                f"engine {engine.id}: none of the {len(self._queries):,} queries finds a document. Check the "
                "settings of the engine: for example, join= may require that a document has every word of the query"
            )
        self.measured = self._measure()

    def _measure(self) -> EngineScores:
        tell(self._progress, 0, 0, "measuring")
        return measure_engine(
            self._engine.id, self._lines, self._engine.texts, self._queries, self._measures, self._qrels,
            self._how.missing, self._how.resolver,
        )  # fmt: skip

    def report(self, trial: ReformulationTrial) -> AuditReport:
        """Run the remaining steps and return the report."""
        engine, measures, how = self._engine, self._measures, self._how
        worst = worst_queries(self.measured, measures, self._lines, engine.texts, self._queries, how.worst)
        tried = trial.run(engine, worst, self._lines, measures, self._qrels, self._progress)
        tell(self._progress, 0, 0, "checking sensitivity")
        stable = self._stability(tried)
        order = reranking_of(engine.id, self._lines, engine.texts, self._queries, self.measured, measures)
        return AuditReport(
            engine.id, how.k, len(self._queries), measures, self.measured, worst, tried, stable, order, how,
            words_per_query(measures, self._lines, engine.texts), self._started,
            notes=[*self.measured.notes, *stable.notes],
        )  # fmt: skip

    def _stability(self, tried: Reformulations) -> Stability:
        engine, measures, missing = self._engine, self._measures, self._how.missing
        lean = self.measured.lean
        verdict = toward(lean, self.measured.mean(lean.text))
        found = stability_of(engine.id, self._lines, engine.texts, measures, verdict, missing)
        if tried.lines is None or not tried.lines.height:
            return found
        try:
            less, compared = times_less(self._lines, tried.lines, engine.texts, measures, missing)
        except DataError as error:
            # A measure that is defined for some queries of the audit may be undefined for the few with a suggestion.
            return replace(
                found,
                notes=(
                    *found.notes,
                    "not measured: whether the suggested reformulations also lean less with other measures, word lists "
                    f"and tokenizers ({error})",
                ),
            )
        return replace(found, less=less, compared=compared)
