"""Measure runs: read, count, score, summarise. The whole of ``askew measure`` as one function."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from askew.analysis.intervals import Mean, mean_with_interval
from askew.core.errors import ConfigError, DataError
from askew.core.measure import split_measures
from askew.core.ranking import Floats, Rankings
from askew.corpora.judgements import QrelsFile, read_judgements
from askew.corpora.queries import read_queries
from askew.corpora.runs import RunFile
from askew.engine.store import Store
from askew.measures.catalogue import Asked, Catalogue, Preset, find_preset
from askew.plugins.kinds import DocMentions, Inputs
from askew.stages.texts import DocumentSource, Key, Progress, count_needed
from askew.stages.universe import RunLike, Universe, as_run, note_on_ranks, only_queries, unique_names

DEFAULT_MEASURES = ("ARaB(tc)@10", "ARaB(tf)@10", "ARaB(bool)@10", "NFaiRR@10", "LexiconShare@10")
DEFAULT_WITH_QRELS = ("RR@10", "AP@10", "nDCG@10")


@dataclass(frozen=True)
class RunScores:
    """What every measure says of every query of one run. NaN: left out for a reason given in the notes."""

    name: str
    query_ids: list[str]
    values: dict[str, Floats]


@dataclass
class MeasureReport:
    """The answer of ``measure``."""

    asked: list[Asked]
    runs: list[RunScores]
    notes: list[str] = field(default_factory=list)
    seed: int = 0
    mean_digits: int | None = None

    def mean(self, run: RunScores, asked: Asked) -> Mean:
        """The mean of a measure over the queries of a run, with its interval."""
        found = mean_with_interval(run.values[asked.text], self.seed)
        if self.mean_digits is None:
            return found
        return Mean(round(found.mean, self.mean_digits), found.low, found.high, found.n, found.absent)

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """The report as JSON values."""
        runs = []
        for run in self.runs:
            entry: dict[str, Any] = {"run": run.name, "measures": {}}
            for asked in self.asked:
                found = self.mean(run, asked)
                entry["measures"][asked.text] = {
                    "mean": found.mean,
                    "low": found.low, "high": found.high, "n": found.n,
                    "signature": asked.signature,
                }  # fmt: skip
            if per_query:
                entry["per_query"] = _per_query(run, self.asked)
            runs.append(entry)
        return {"runs": runs}


def _per_query(run: RunScores, asked: Sequence[Asked]) -> dict[str, dict[str, float]]:
    columns = {a.text: run.values[a.text].tolist() for a in asked}
    return {
        query: {text: column[row] for text, column in columns.items() if not math.isnan(column[row])}
        for row, query in enumerate(run.query_ids)
    }


def measure(
    runs: Sequence[RunLike] | Mapping[str, RunLike],
    docs: object = None,
    *,
    qrels: str | Path | pl.DataFrame | None = None,
    queries: str | Path | Sequence[str] | None = None,
    label: str | None = None,
    background: RunLike | None = None,
    measures: str | Sequence[str] | None = None,
    preset: str | None = None,
    lexicon: str | None = None,
    tokens: str | None = None,
    missing: str | None = None,
    unjudged: str | None = None,
    order: str | None = None,
    fields: Sequence[str] = (),
    run_format: str = "auto",
    store: str | Path | None = None,
    progress: Progress | None = None,
    seed: int = 0,
) -> MeasureReport:
    """Score runs for lean and effectiveness.

    ``runs`` are files, or a mapping of names to files, data frames or ``{query: {document: score}}``.
    ``docs`` is a file or folder, a mapping of document id to text, or a data frame with doc_id and text.
    """
    chosen = find_preset(preset) if preset else None
    options = {"lexicon": lexicon, "tokens": tokens, "missing": missing, "unjudged": unjudged, "order": order}
    job = _Job(chosen, {key: value for key, value in options.items() if value is not None})
    named = (
        runs
        if isinstance(runs, Mapping)
        else {str(r) if isinstance(r, str | Path) else f"run {i}": r for i, r in enumerate(runs, 1)}
    )
    job.read(named, background, qrels, run_format)
    job.choose_measures(measures, background is not None, docs is not None, qrels is not None)
    job.restrict(queries, label)
    source = None if docs is None else DocumentSource(docs, tuple(fields), job.published, _store(store))
    return job.score(source, progress, seed)


def _store(path: str | Path | None) -> Store | None:
    return Store(path) if path is not None and Path(path).is_dir() else None


class _Job:
    """The steps of ``measure``, with what they hand on."""

    def __init__(self, preset: Preset | None, overrides: dict[str, Any]) -> None:
        self.preset = preset
        self.published = bool(preset and preset.published_reading)
        self.catalogue = Catalogue(preset, overrides)
        self.notes: list[str] = []

    def read(
        self,
        runs: Mapping[str, RunLike],
        background: RunLike | None,
        qrels: str | Path | pl.DataFrame | None,
        form: str,
    ) -> None:
        if not runs:
            raise ConfigError("no run was given")
        self.runs = [as_run(run, name, form, self.published) for name, run in runs.items()]
        unique_names([run.name for run in self.runs])
        self.background = None if background is None else as_run(background, "background", form, self.published)
        if isinstance(qrels, pl.DataFrame):
            self.qrels: QrelsFile | None = QrelsFile(qrels.select("query_id", "doc_id", "relevance"))
        else:
            self.qrels = None if qrels is None else read_judgements(Path(qrels))
        self.notes += self.qrels.notes if self.qrels else []

    def choose_measures(self, measures: str | Sequence[str] | None, background: bool, docs: bool, qrels: bool) -> None:
        self._choose_background(background)
        if measures is not None:
            texts = split_measures(measures) if isinstance(measures, str) else list(measures)
        elif self.preset:
            texts = list(self.preset.measures)
        else:
            texts = [*(DEFAULT_WITH_QRELS if qrels else ()), *(DEFAULT_MEASURES if docs else ())]
            if not texts:
                raise ConfigError(
                    "nothing to measure with: give --docs for measures of lean, --qrels for effectiveness"
                )
        if len(set(texts)) < len(texts):
            raise ConfigError(f"the measure {next(t for t in texts if texts.count(t) > 1)!r} is asked for twice")
        asked = self.catalogue.complete(texts)
        if measures is None:
            asked = self._only_possible(asked, background, docs, qrels)
        self.asked = asked

    def _choose_background(self, background: bool) -> None:
        """Without a background run NFaiRR is against the run itself; a preset that says otherwise stays."""
        fixed = self.preset and "background" in self.preset.defaults.get("NFaiRR", {})
        if not background and not fixed:
            self.catalogue.overrides = {**self.catalogue.overrides, "background": "self"}

    def _only_possible(self, asked: list[Asked], background: bool, docs: bool, qrels: bool) -> list[Asked]:
        """Of the measures nobody named, those whose input is there; the rest is told."""
        have = {"judgements": qrels, "mentions": docs, "background": True}
        possible: list[Asked] = []
        left: list[Asked] = []
        for one in asked:
            needs_run = one.measure.param("background") == "run" and not background
            (possible if all(have[r] for r in one.family.reads) and not needs_run else left).append(one)
        if left:
            self.notes.append(
                f"left out for want of --qrels, --docs or --background: {', '.join(a.text for a in left)}"
            )
        if not possible:
            raise ConfigError("nothing to measure with: give --docs for measures of lean, --qrels for effectiveness")
        return possible

    def restrict(self, queries: str | Path | Sequence[str] | None, label: str | None) -> None:
        wanted = _wanted_queries(queries, label)
        if wanted is not None:
            self.runs = [only_queries(run, wanted) for run in self.runs]
        if self.preset and self.preset.same_queries:
            _refuse_other_queries(self.runs)
        for run in self.runs:
            self.notes += run.notes
            if any(asked.measure.param("order") == "score" for asked in self.asked):
                self.notes += filter(None, [note_on_ranks(run)])

    def score(self, source: DocumentSource | None, progress: Progress | None, seed: int) -> MeasureReport:
        frames = [run.lines for run in self.runs]
        frames += [self.background.lines] if self.background else []
        frames += [self.qrels.lines] if self.qrels else []
        universe = Universe.of(frames)
        orders = sorted({str(a.measure.param("order")) for a in self.asked})
        rankings = [{order: universe.rankings(run, order) for order in orders} for run in self.runs]
        background = (
            universe.rankings(self.background, "file" if self.published else "score") if self.background else None
        )
        keys = sorted({key for a in self.asked if (key := _key_of(a)) is not None})
        found: dict[Key, DocMentions] = {}
        if keys and source is not None:
            needed = _needed(self.asked, rankings, background, len(universe.doc_ids))
            found = count_needed(source, universe.doc_ids, needed, keys, self.catalogue.lexicons, progress)
        report = MeasureReport(self.asked, [], self.notes, seed, self.preset.mean_digits if self.preset else None)
        for run, ranked in zip(self.runs, rankings, strict=True):
            judged = universe.judged(self.qrels.lines, ranked[orders[0]]) if self.qrels else None
            inputs = Inputs(
                run.name, universe.doc_ids, ranked, (lambda *key: found[key]) if found else None, judged, background
            )
            report.runs.append(self._score_run(run, inputs, ranked[orders[0]]))
        return report

    def _score_run(self, run: RunFile, inputs: Inputs, rankings: Rankings) -> RunScores:
        values = {}
        for asked in self.asked:
            values[asked.text] = asked.family.score(asked.measure, inputs)
            left = int(np.isnan(values[asked.text]).sum())
            if left == len(rankings):
                raise DataError(f"{run.name}: {asked.text} is not defined for any of the {left} queries")
            if left:
                self.notes.append(
                    f"{run.name}: {asked.text} leaves out {left} of {len(rankings)} queries that lack its input"
                )
        self.notes += _missing_notes(run.name, self.asked, inputs)
        if inputs.judgements is not None and not inputs.judgements.judged.all():
            without = int((~inputs.judgements.judged).sum())
            self.notes.append(f"{run.name}: {without} of {len(rankings)} queries have no judgement")
        return RunScores(run.name, rankings.query_ids.to_pylist(), values)


def _missing_notes(name: str, asked: Sequence[Asked], inputs: Inputs) -> list[str]:
    """How many ranked documents had no text, where the measures were told to go on without."""
    found: dict[str, int] = {}
    for one in asked:
        key, policy = _key_of(one), str(one.measure.param("missing"))
        if key is not None and policy != "error":
            ranked = inputs.ranked(str(one.measure.param("order"))).cut(one.measure.cutoff)
            unknown = int((~inputs.mentions(*key).known[ranked.docs]).sum())
            found[policy] = max(found.get(policy, 0), unknown)
    return [f"{name}: {n} ranked documents have no text (missing={p})" for p, n in sorted(found.items()) if n]


def _key_of(asked: Asked) -> Key | None:
    if "mentions" not in asked.family.reads:
        return None
    param = asked.measure.param
    return str(param("lexicon")), str(param("tokens")), str(param("overlap"))


def _needed(
    asked: Sequence[Asked], rankings: Sequence[Mapping[str, Rankings]], background: Rankings | None, size: int
) -> npt.NDArray[np.bool_]:
    """Which documents need a text: those within the cutoffs, and the backgrounds."""
    needed = np.zeros(size, np.bool_)
    for one in asked:
        if "mentions" not in one.family.reads:
            continue
        own = one.measure.param("background") == "self" or one.measure.param("missing") == "drop"
        for ranked in rankings:
            needed[ranked[str(one.measure.param("order"))].cut(None if own else one.measure.cutoff).docs] = True
        if background is not None and one.measure.param("background") == "run":
            needed[background.cut(int(str(one.measure.param("depth")))).docs] = True
    return needed


def _wanted_queries(queries: str | Path | Sequence[str] | None, label: str | None) -> list[str] | None:
    if queries is None:
        if label is not None:
            raise ConfigError("--label chooses among the labels of a queries file: give one with --queries")
        return None
    if not isinstance(queries, str | Path):
        return list(queries)
    table = read_queries(Path(queries))
    if label is None:
        return list(table["query_id"].to_pylist())
    labels = set(table["label"].to_pylist())
    if label not in labels:
        known = ", ".join(sorted(str(x) for x in labels))
        raise DataError(f"queries {queries}: no query has the label {label!r}; found {known}")
    pairs = zip(table["query_id"].to_pylist(), table["label"].to_pylist(), strict=True)
    return [query for query, found in pairs if found == label]


def _refuse_other_queries(runs: Sequence[RunFile]) -> None:
    """The published script looks every query of the first run up in the others, and crashes."""
    first = runs[0].lines["query_id"].unique(maintain_order=True)
    for run in runs[1:]:
        absent = [q for q in first.to_list() if q not in set(run.lines["query_id"].to_list())]
        if absent:
            raise DataError(
                f"run {run.name}: {len(absent)} queries of {runs[0].name} are not in it, the first is {absent[0]!r}; "
                "this preset compares the same queries only"
            )
