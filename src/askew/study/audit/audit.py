"""Audit a live engine: search, measure, show the worst queries, try reformulations, and recommend what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from askew.core.errors import DataError
from askew.core.groups import Groups, GroupsLike
from askew.core.measure import Measure
from askew.measures.decompose import has_parts
from askew.measures.headline import NEUTRAL, headlines
from askew.measures.lists import QrelsLike
from askew.measures.measure import MeasureReport
from askew.measures.requested import BETTER, MeasuresLike, drawn_groups, sign_of
from askew.measures.resolver import default_resolver
from askew.report.page import check_out
from askew.rewrite.classifiers import query_labels
from askew.search.engines.ranker import EngineRanker
from askew.search.retrieve import as_queries
from askew.study.audit.engine import (
    NEITHER,
    AuditedEngine,
    AuditedRun,
    Progress,
    answers_place,
    choose_measures,
    of_query,
    open_engine,
)
from askew.study.audit.findings import Reformulating, reranking_effects, sensitivity_of, words_per_query, worst_queries
from askew.study.audit.gate import against_baseline, check_conditions, coverage_notes, outcomes
from askew.study.audit.page import write_audit
from askew.study.audit.report import AuditedMean, AuditReport, AuditSensitivity, next_steps, read_audit
from askew.study.audit.settings import AuditSettings
from askew.study.gate import OF_AUDIT, read_conditions
from askew.study.tables import skew_notes

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
    - ``fail_if``: one condition or several. ``"ARaB(tf)@10 > 0.2"`` and ``"nDCG@10 < 0.4"`` compare the mean with a
      number; for a measure whose best value is zero, the absolute mean is compared. ``"ARaB(tf)@10 > +10%"`` and
      ``"nDCG@10 < -5%"`` compare the mean with the mean of the baseline. ``"ARaB(tf)@10 worse"`` holds if the measure
      is significantly worse than in the baseline. The attribute ``failures`` of the report lists the conditions that
      hold.
    - ``settings``: the settings of the audit.
    - ``progress``: a function that is called with the number of queries that are done, their total and the name of the
      step.
    """
    how, tell = settings or AuditSettings(), progress or (lambda *_: None)
    if how.out is not None:
        check_out(Path(how.out))
    chosen = choose_measures(measures, None if groups is None else Groups.of(groups), how, qrels is not None)
    conditions = [replace(one, measure=Measure.parse(one.measure).text) for one in read_conditions(fail_if, OF_AUDIT)]
    earlier = None if baseline is None else read_audit(baseline)
    table = as_queries(queries)
    texts = dict(zip(table["query_id"].to_pylist(), table["text"].to_pylist(), strict=True))
    check_conditions(conditions, chosen.asked, earlier, texts)
    trial = Reformulating(how, chosen.named)
    ranker = open_engine(engine, engine_settings, table)
    opened = AuditedEngine(ranker, docs, how.missing)
    # An engine object of the caller keeps its answers as its own settings say.
    place = answers_place(ranker, how.out, how.store) if isinstance(engine, str) else None
    if place is not None:
        opened.keep_answers(place)
    started = datetime.now(UTC)
    lines = opened.search(table, how.k, "searching", tell)
    if not lines.height:
        raise DataError(
            f"engine {ranker.id}: none of the {len(texts):,} queries finds a document. Check the settings of the "
            "engine: for example, ⟨join⟩ may require that a document has every word of the query"
        )
    run = AuditedRun(ranker.id, lines, opened.texts, texts, chosen, how.missing)
    tell(0, 0, "measuring")
    parts = default_resolver() is not None and any(has_parts(one) for one in chosen.asked)
    measured = run.measured(qrels=qrels, missing=how.missing, decompose=parts)
    # The whole collection, if the texts of the results are from it.
    whole = None if isinstance(ranker, EngineRanker) else docs
    report = _report(run, measured, query_labels(table, chosen.groups), trial, opened, how, qrels, tell, whole)
    report.audited = started.isoformat(timespec="seconds")
    report.failures, report.passed = outcomes(conditions, measured, earlier)
    if earlier is not None:
        report.against_baseline = against_baseline(measured, earlier)
        report.notes += coverage_notes(conditions, measured, earlier)
        for text, found in report.against_baseline.items():
            report.notes += skew_notes(text, {"this audit": found})
    report.notes += opened.all_notes()
    if how.out is not None:
        write_audit(report, Path(how.out), how.keep_queries)
    opened.finish()
    return report


def _report(
    run: AuditedRun, measured: MeasureReport, named: tuple[Mapping[str, str], str], trial: Reformulating,
    engine: AuditedEngine, how: AuditSettings, qrels: QrelsLike | None, progress: Progress, whole: object,
) -> AuditReport:  # fmt: skip
    """Find the worst queries, try reformulations and other choices, and return the report.

    ``named`` has the label of each query, and the name of the classifier. ``whole`` is the collection, if it is known.
    """
    lean, effect = run.measures.lean, run.measures.effectiveness
    progress(0, 0, "comparing with chance")
    labels, classifier = named
    (first,) = headlines(
        {run.name: run.lines}, dict(run.docs) if whole is None else whole, labels=labels, classifier=classifier,
        groups=run.measures.groups, cutoff=run.measures.cutoff or how.k, missing=how.missing,
        level=how.level,
    )  # fmt: skip
    if whole is None:
        known = "only the retrieved documents are known: the shares of the collection are those of these documents"
        first = replace(first, notes=(*first.notes, known))
    worst = worst_queries(run, measured, first, how.worst)
    tried = trial.run(engine, run, measured, worst, qrels, progress)
    progress(0, 0, "checking sensitivity")
    others = [query for query, label in labels.items() if label != NEUTRAL]
    neutral = replace(run, lines=run.lines.filter(~pl.col("query_id").is_in(others)))
    decides = first.deciding.lists > 1 and len(first.deciding.words) == 2
    verdict = (first.toward or NEITHER) if decides else None
    sensitive, notes = sensitivity_of(neutral, verdict) if neutral.lines.height else (AuditSensitivity(), [])
    words, values = words_per_query(run), {text: of_query(measured, text) for text in measured.runs[0].values}
    means = {}
    for one in measured.asked:
        found = measured[one.text]
        means[one.text] = AuditedMean(
            found.mean, found.low, found.high, found.n, found.method, BETTER[one.direction], one.signature
        )
    counts = " and ".join(f"{count:,.1f} words for {group}" for group, count in words.items())
    depth = run.measures.cutoff or how.k
    reading = f"{sign_of(lean)} On average the top {depth} results of a query have {counts}."
    if own := [one.text for one in measured.asked if one.measure.param("background") == "self"]:
        reading += f" {', '.join(own)}: the background run is the run of the engine itself."
    report = AuditReport(
        engine=run.name, k=how.k, queries=len(run.queries), unanswered=len(run.queries) - len(values[lean.text]),
        groups=drawn_groups(lean), deciding=lean.text, verdict=verdict,
        measures=means,
        scores={
            query: {text: scores[query] for text, scores in values.items() if query in scores}
            for query in measured.runs[0].query_ids
        },
        headline=first, parts=measured.parts, worst=worst,
        reformulations=tried.tried, dropped_reformulations=tried.dropped,
        sensitivity=sensitive, effects=reranking_effects(run, whole), words_per_query=words,
        reading=reading.strip(),
        effectiveness=None if effect is None else effect.text, agree=how.agree, reduction=how.reduction,
        model=tried.model, notes=[*measured.notes, *notes],
    )  # fmt: skip
    report.next_steps = next_steps(report)
    return report
