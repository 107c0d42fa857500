"""What an audit finds out: the worst queries, reformulations, another order of the results, other ways to measure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from askew.core import defaults
from askew.core.defaults import TOKENIZER
from askew.core.errors import ConfigError
from askew.core.groups import LEARNED, WHO, Groups
from askew.core.measure import Measure
from askew.core.outcome import Outcome, outcome_of, verdict
from askew.measures.catalogue import find_family
from askew.measures.effects import Effect, effects_of_runs, lean_without_sign
from askew.measures.headline import Headline
from askew.measures.lists import QrelsLike, as_judgements
from askew.measures.measure import MeasureReport, measure, parts_of
from askew.measures.mentions import Mark, Marker, can_mark
from askew.measures.requested import comparable, key_of
from askew.measures.resolver import class_probabilities, default_resolver, open_resolver
from askew.rewrite.equivalence import EquivalenceFilter, chosen_model
from askew.rewrite.reformulate import (
    Suggestion,
    best_suggestions,
    default_methods,
    make_filter,
    make_reformulator,
    reformulate,
)
from askew.study.audit.engine import AuditedEngine, AuditedRun, AuditMeasures, Progress, of_query, toward
from askew.study.audit.report import Alternative, AuditSensitivity, MarkedResult, Tried, WorstQuery
from askew.study.audit.settings import AuditSettings
from askew.study.sensitivity import axes_of, lexicons_with

# The queries with the largest lean, and the counted words in their results.

# How many characters of a text are shown, and how many of them are before the first marked word.
_LONGEST, _BEFORE = 360, 60


def documents_of(lines: pl.DataFrame) -> dict[str, list[str]]:
    """Return the ranked documents of each query."""
    ranked: dict[str, list[str]] = {}
    for query, doc in lines.sort("query_id", "rank").select("query_id", "doc_id").iter_rows():
        ranked.setdefault(query, []).append(doc)
    return ranked


def worst_queries(run: AuditedRun, measured: MeasureReport, first: Headline, count: int) -> list[WorstQuery]:
    """Return the neutral queries that lean beyond chance, the least probable first."""
    measures, lean = run.measures, of_query(measured, run.measures.lean.text)
    chosen = [query for query in first.deciding.beyond if lean.get(query)][:count]
    marker, worst = marker_of(measures), []
    ranked = documents_of(run.lines.filter(pl.col("query_id").is_in(chosen)))
    for query in chosen:
        texts = {doc: run.docs.get(doc, "") for doc in ranked[query][: measures.cutoff]}
        marks = [marker.find(text) for text in texts.values()]
        results = tuple(
            MarkedResult(rank, doc, _pieces(text, found), marker.count(found))
            for rank, ((doc, text), found) in enumerate(zip(texts.items(), marks, strict=True), start=1)
        )
        mentions: Counter[str] = Counter()
        for one in results:
            mentions.update(one.mentions)
        in_names = None
        if set(marker.groups) <= set(LEARNED) and default_resolver():
            # The number of counted words that are part of a name; each mention has its most probable class.
            rows = [(row, mark.start, mark.end) for row, found in enumerate(marks) for mark in found]
            places = np.array(rows, np.int64).reshape(-1, 3)
            classes = class_probabilities(open_resolver(), list(texts.values()), *places.T).argmax(axis=1)
            in_names = int((classes == WHO.index("name")).sum())
        named = tuple(dict.fromkeys(group for mark in marker.find(run.queries[query]) for group in mark.groups))
        worst.append(WorstQuery(query, lean[query], named, dict(mentions), in_names, run.queries[query], results))
    return worst


def words_per_query(run: AuditedRun) -> dict[str, float]:
    """Return the mean number of words of each group in the results of a query, over queries with results."""
    marker, ranked = marker_of(run.measures), documents_of(run.lines)
    tops = Counter(doc for found in ranked.values() for doc in found[: run.measures.cutoff])
    total: Counter[str] = Counter()
    for doc, times in tops.items():
        counts = marker.count(marker.find(run.docs.get(doc, "")))
        total.update({group: count * times for group, count in counts.items()})
    return {group: total[group] / max(len(ranked), 1) for group in run.measures.lean.groups}


def marker_of(measures: AuditMeasures) -> Marker:
    """Return the marker of the words that the deciding measure counts."""
    key = key_of(measures.lean)
    assert key is not None, f"the deciding measure must count words, as ARaB does; found {measures.lean.text}"
    tokens = key.tokens if can_mark(key.tokens) else TOKENIZER
    return Marker(measures.lexicon, tokens, key.overlap, measures.lean.groups or None)


def _pieces(text: str, marks: Sequence[Mark]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Cut an excerpt that begins shortly before the first marked word into marked and unmarked pieces."""
    start = 0 if not marks or len(text) <= _LONGEST else max(0, marks[0].start - _BEFORE)
    start = text.find(" ", start) + 1 if start else 0
    start = min([start, *(mark.start for mark in marks[:1])])
    end = len(text) if len(text) - start <= _LONGEST else start + _LONGEST
    # A marked word is never cut: it is shown whole or left out.
    end = min([end, *(mark.start for mark in marks if mark.start < end < mark.end)])
    pieces: list[tuple[str, tuple[str, ...]]] = [("… ", ())] if start else []
    at = start
    for mark in marks:
        if mark.end <= end:
            pieces += [(text[at : mark.start], ()), (text[mark.start : mark.end], mark.groups)]
            at = mark.end
    pieces.append((text[at:end] + (" …" if end < len(text) else ""), ()))
    return tuple(piece for piece in pieces if piece[0])


# Try reformulations of the worst queries on the audited engine.

_EQUIVALENCE = "equivalence"
_LOSES_NOTHING = (Outcome.BETTER_LESS.value, Outcome.SAME_LESS.value)
# The candidates by a unique name: the reformulation, the id of its query, and its method.
_Candidates = Mapping[str, tuple[Suggestion, str, str]]


@dataclass(frozen=True)
class Trial:
    """The tried reformulations, and the number of dropped candidates by reason."""

    tried: list[Tried] = field(default_factory=list)
    model: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)


def _strict(given: Mapping[str, Any]) -> dict[str, Any]:
    """Raise the thresholds of the neural model, because a choice by lean prefers reformulations that differ more."""
    is_neural = chosen_model(str(given.get("model", "auto"))) == "neural"
    return {**(dict.fromkeys(("same", "natural"), defaults.STRICT) if is_neural else {}), **given}


class Reformulating:
    """Generates reformulations, searches them, and compares their results with those of the original queries.

    The constructor checks the names of methods and their settings, before any query is sent.
    """

    def __init__(self, settings: AuditSettings, groups: Groups | None) -> None:
        self._settings = settings
        names = default_methods() if settings.methods is None else settings.methods
        own = settings.method_settings
        unknown = [name for name in own if name not in {*names, _EQUIVALENCE}]
        if unknown:
            raise ConfigError(
                f"⟨method_settings⟩: {unknown[0]!r} is not one of the reformulators of this audit ({', '.join(names)})"
            )
        self._methods = [make_reformulator({"method": name, **own.get(name, {})}, groups) for name in names]
        reading = next((one.method for one in self._methods if one.reads), None)
        if reading is not None:
            raise ConfigError(
                f"⟨methods⟩: {reading!r} cannot be used in an audit, because it needs an index of a collection; leave "
                "it out"
            )
        self._rules = make_filter({"filter": "rules"}, groups)
        judge = make_filter({"filter": _EQUIVALENCE, **_strict(own.get(_EQUIVALENCE, {}))})
        assert isinstance(judge, EquivalenceFilter), "the filter 'equivalence' must be the one that askew ships"
        self._judge = judge

    def run(
        self, engine: AuditedEngine, run: AuditedRun, measured: MeasureReport, worst: Sequence[WorstQuery],
        qrels: QrelsLike | None, progress: Progress,
    ) -> Trial:  # fmt: skip
        """Search the best reformulations of each of the worst queries."""
        if not worst or not self._settings.tries or not self._methods:
            return Trial()
        chosen, dropped = self._written({one.query_id: one.text or "" for one in worst}, progress)
        model = str(self._judge.settings()["model"])
        if not chosen:
            return Trial([], model, dropped)
        table = pa.table({"query_id": list(chosen), "text": [one.text for one, _, _ in chosen.values()]})
        lines = engine.search(table, self._settings.k, "searching reformulations", progress)
        texts = {name: chosen[name][0].text for name in lines["query_id"].unique(maintain_order=True).to_list()}
        new = replace(run, lines=lines, docs=engine.texts, queries=texts)
        tried = _with_suggested(_compared(chosen, measured, _measured(new, chosen, qrels), run, new), self._settings)
        return Trial(tried, model, dropped)

    def _written(
        self, queries: Mapping[str, str], progress: Progress
    ) -> tuple[dict[str, tuple[Suggestion, str, str]], Counter[str]]:
        """Return the best candidates, and counts of dropped ones by reason."""
        rows, dropped = [], Counter[str]()
        # One query at a time, to report progress: a language model takes seconds for each query.
        for done, (query, text) in enumerate(queries.items()):
            progress(done, len(queries), "reformulating")
            found, tallies = reformulate(pa.table({"query_id": [query], "text": [text]}), self._methods, [self._rules])
            rows += found.select("query_id", "text", "method").rows()
            dropped += sum((tally.rejected for tally in tallies), Counter[str]())
        progress(0, 0, "comparing meanings")
        scores = self._judge.score([queries[query] for query, _, _ in rows], [text for _, text, _ in rows])
        kept: dict[str, list[Suggestion]] = defaultdict(list)
        made_by: dict[tuple[str, str], str] = {}
        for (query, text, method), score in zip(rows, scores, strict=True):
            reason = self._judge.reason(score)
            if reason is not None:
                dropped[reason] += 1
            elif (query, text) not in made_by:
                made_by[query, text] = method
                kept[query].append(Suggestion(text, score["same"], score["natural"]))
        chosen = {
            f"{place}.{number}": (one, query, made_by[query, one.text])
            for place, (query, text) in enumerate(queries.items())
            for number, one in enumerate(best_suggestions(text, kept[query], self._settings.tries))
        }
        return chosen, dropped


def _measured(new: AuditedRun, chosen: _Candidates, qrels: QrelsLike | None) -> MeasureReport | None:
    """Measure the candidates by the judgements of their queries; None if no candidate finds a document."""
    if not new.lines.height:
        return None
    judged = None
    if new.measures.effectiveness is not None and qrels is not None:
        # The judgements of the original queries, under the names of their reformulations.
        owners = pl.DataFrame({"name": list(chosen), "query_id": [query for _, query, _ in chosen.values()]})
        judged = as_judgements(qrels).lines.join(owners, on="query_id").drop("query_id")
        judged = judged.rename({"name": "query_id"}) if judged.height else None
    wanted = new if judged is not None else new.without_judgements()
    return wanted.measured(qrels=judged, missing=new.missing)


def _compared(
    chosen: _Candidates, measured: MeasureReport, scored: MeasureReport | None, run: AuditedRun, new: AuditedRun
) -> list[Tried]:
    """Compare the values and the results of each candidate with those of its query."""
    lean, effect = run.measures.lean, run.measures.effectiveness
    old_lean, new_lean = (of_query(side, lean.text) if side else {} for side in (measured, scored))
    old_effect, new_effect = (
        of_query(side, effect.text) if side and effect and effect.text in side.runs[0].values else {}
        for side in (measured, scored)
    )
    old_docs, new_docs = documents_of(run.lines), documents_of(new.lines)
    tried = []
    for name, (one, query, method) in chosen.items():
        before, after = old_lean[query], new_lean.get(name)
        judged = old_effect.get(query), new_effect.get(name)
        gain = None if after is None else lean.direction.gain(before, after)
        better = None
        if effect is not None and judged[0] is not None and judged[1] is not None:
            better = effect.direction.gain(judged[0], judged[1])
        decided, outcome = verdict(before, after, lean.direction), outcome_of(better, gain)
        tried.append(Tried(
            query, method, one.same, one.natural,
            len({*old_docs[query]} & {*new_docs.get(name, ())}) / max(len(old_docs[query]), 1), before, after,
            None if decided is None else decided.lean, *judged, None if outcome is None else outcome.value, gain,
            text=one.text,
        ))  # fmt: skip
    return tried


def _with_suggested(tried: Sequence[Tried], how: AuditSettings) -> list[Tried]:
    """Mark for each query the acceptable reformulation that reduces the lean most.

    It must reduce lean enough, keep enough results, and, if judged, lose no effectiveness.
    """
    best: dict[str, tuple[float, int]] = {}
    for place, one in enumerate(tried):
        gain = one.gain or 0.0
        is_less = one.lean_verdict == "less" and gain >= how.reduction * abs(one.lean_before)
        if is_less and one.kept >= how.agree and one.outcome in (None, *_LOSES_NOTHING):
            best[one.query_id] = max(best.get(one.query_id, (gain, place)), (gain, place), key=lambda pair: pair[0])
    chosen = {place for _, place in best.values()}
    return [replace(one, suggested=place in chosen) for place, one in enumerate(tried)]


# Estimate how reranking the same results would change the lean, without a further request to the engine.

# Methods that need no model: one minimizes the lean, the other gives each group its share.
METHODS = ("greedy", "detconstsort")


def reranking_effects(run: AuditedRun, whole: object) -> dict[str, Effect]:
    """What reranking changes; nothing if a text is missing, as its groups are unknown, or there are not two groups.

    ``whole`` is the collection, if it is known.
    """
    lean = lean_without_sign([run.measures.lean])
    if lean is None or any(doc not in run.docs for doc in run.lines["doc_id"].unique().to_list()):
        return {}
    lexicons = {str(lean.measure.param("lexicon")): run.measures.lexicon}
    docs = dict(run.docs) if whole is None else parts_of(whole, None, None)[0]
    return effects_of_runs(run.lines, docs, lean, lexicons, methods=METHODS)


# Check whether the verdict of an audit is the same with other word lists and measures.

_MEASURES = ("ARaB(tf)", "ARaB(tc)", "ARaB(bool)", "AWRF", "LexiconShare")
# One of the tokenizers that count nearly the same words, and no lexicon that is meant for queries.
_TOKENS, _FOR_QUERIES = ("unclipped",), ("gsqr2023",)


def sensitivity_of(run: AuditedRun, verdict: str | None) -> tuple[AuditSensitivity, list[str]]:
    """Measure the results with every combination of a few measures and lexicons; also return notes."""
    counted, texts, missing = _counted(run.measures), _texts(run.measures), run.missing or "error"
    listed = {"tokens": _TOKENS, "who": ("any",), "missing": (missing,), "sign": _signs(texts, "signed")}
    axes = axes_of(counted, texts, lexicons_with(counted, _FOR_QUERIES), listed, None)
    choices = {measure.text: chosen for measure, chosen in axes.combinations()}
    scored = measure({run.name: run.lines}, dict(run.docs), list(choices), groups=counted, undefined="drop")
    found = []
    for one in scored.asked:
        mean, chosen = scored.mean(scored.runs[0], one), choices[one.text]
        label = " ".join(str(chosen[axis]) for axis in ("measure", "lexicon", "tokens") if axis in chosen)
        found.append(Alternative(label, one.text, mean.mean, mean.low, mean.high, mean.n, toward(one, mean)))
    decided = [one for one in found if one.toward is not None and verdict is not None]
    holds = sum(one.toward == verdict for one in decided)
    return AuditSensitivity(holds, len(decided), combinations=tuple(found)), scored.left_out


def _counted(measures: AuditMeasures) -> Groups:
    return Groups.of(defaults.SENSITIVITY_GROUPS) if measures.named is None else measures.named


def _signs(texts: Sequence[str], *signs: str) -> tuple[str, ...] | None:
    """Return the signs if a measure has the parameter ``sign``, else None."""
    return signs if any("sign" in find_family(Measure.parse(text).name).parameters for text in texts) else None


def _texts(measures: AuditMeasures) -> Sequence[str]:
    return comparable([f"{name}@{measures.cutoff}" for name in _MEASURES], _counted(measures))
