"""The steps of ``measure``: read, choose the measures, restrict to queries, score; with what they hand on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from askew.core.errors import ConfigError, DataError
from askew.core.measure import split_measures
from askew.core.ranking import Rankings
from askew.corpora.judgements import QrelsFile, read_judgements
from askew.corpora.queries import read_queries
from askew.corpora.runs import RunFile
from askew.measures.catalogue import Asked, Catalogue, Preset
from askew.plugins.kinds import DocMentions, Inputs
from askew.stages.report import MeasureReport, RunScores
from askew.stages.texts import DocumentSource, Key, Progress, count_needed
from askew.stages.universe import RunLike, Universe, as_run, note_on_ranks, only_queries

DEFAULT_MEASURES = ("ARaB(tc)@10", "ARaB(tf)@10", "ARaB(bool)@10", "NFaiRR@10", "LexiconShare@10")
DEFAULT_WITH_QRELS = ("RR@10", "AP@10", "nDCG@10")

_NOTHING = "nothing to measure with: give --docs for measures of lean, --qrels for effectiveness"


class Job:
    """One use of ``measure``. Its methods are called in the order in which they stand here."""

    def __init__(self, preset: Preset | None, overrides: Mapping[str, Any]) -> None:
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
        """The runs and the judgements."""
        if not runs:
            raise ConfigError("no run was given")
        self.runs = [as_run(run, name, form, self.published) for name, run in runs.items()]
        self.background = None if background is None else as_run(background, "background", form, self.published)
        self.notes += self.background.notes if self.background else []
        if isinstance(qrels, pl.DataFrame):
            self.qrels: QrelsFile | None = QrelsFile(qrels.select("query_id", "doc_id", "relevance"))
        else:
            self.qrels = None if qrels is None else read_judgements(Path(qrels))
        self.notes += self.qrels.notes if self.qrels else []

    def choose_measures(self, measures: str | Sequence[str] | None, docs: bool) -> None:
        """The measures asked for, complete, each with the input it needs."""
        self._choose_background()
        if measures is not None:
            texts = split_measures(measures) if isinstance(measures, str) else list(measures)
        elif self.preset:
            texts = list(self.preset.measures)
        else:
            texts = [*(DEFAULT_WITH_QRELS if self.qrels else ()), *(DEFAULT_MEASURES if docs else ())]
        if measures is None and not texts:
            raise ConfigError(_NOTHING)
        if len(set(texts)) < len(texts):
            raise ConfigError(f"the measure {next(t for t in texts if texts.count(t) > 1)!r} is asked for twice")
        asked = self.catalogue.complete(texts)
        lacks = {one.text: self._lacks(one, docs) for one in asked}
        if measures is None:
            asked = self._only_possible(asked, lacks)
        for one in asked:
            one.check()
            if lacks[one.text]:
                raise ConfigError(f"the measure {one.text} {lacks[one.text]}")
        self.asked = asked
        if self.background and not any(one.measure.param("background") == "run" for one in asked):
            self.notes.append("the background run is not used: no measure asked for compares with one")

    def _choose_background(self) -> None:
        """Without a background run NFaiRR is against the run itself; a preset that says otherwise stays."""
        fixed = self.preset and "background" in self.preset.defaults.get("NFaiRR", {})
        if self.background is None and not fixed:
            self.catalogue.overrides = {**self.catalogue.overrides, "background": "self"}

    def _lacks(self, one: Asked, docs: bool) -> str:
        """What is not there that a measure needs, and how to give it; empty where all is there."""
        if "judgements" in one.family.reads and self.qrels is None:
            return "needs judgements: give them with --qrels"
        if "mentions" in one.family.reads and not docs:
            return "needs the texts: give the documents with --docs"
        if one.measure.param("background") == "run" and self.background is None:
            return f"needs a background run: give --background RUN, or ask for {one.family.name}(background=self)"
        return ""

    def _only_possible(self, asked: list[Asked], lacks: Mapping[str, str]) -> list[Asked]:
        """Of the measures nobody named, those whose input is there; the rest is told."""
        left = [one.text for one in asked if lacks[one.text]]
        if left:
            self.notes.append(f"left out for want of --qrels, --docs or --background: {', '.join(left)}")
        possible = [one for one in asked if not lacks[one.text]]
        if not possible:
            raise ConfigError(_NOTHING)
        return possible

    def restrict(self, queries: str | Path | Sequence[str] | None, label: str | None) -> None:
        """Only the queries asked for; what was noticed on the way is noted."""
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
        """Every measure for every query of every run."""
        frames = [run.lines for run in self.runs]
        frames += [self.background.lines] if self.background else []
        frames += [self.qrels.lines] if self.qrels else []
        universe = Universe.of(frames)
        orders = sorted({str(a.measure.param("order")) for a in self.asked})
        rankings = [{order: universe.rankings(run, order) for order in orders} for run in self.runs]
        background = (
            universe.rankings(self.background, "file" if self.published else "score") if self.background else None
        )
        found = self._count(source, universe, rankings, background, progress)
        report = MeasureReport(self.asked, [], self.notes, seed, self.preset.mean_digits if self.preset else None)
        for run, ranked in zip(self.runs, rankings, strict=True):
            judged = universe.judged(self.qrels.lines, ranked[orders[0]]) if self.qrels else None
            inputs = Inputs(
                run.name, universe.doc_ids, ranked, (lambda *key: found[key]) if found else None, judged, background
            )
            report.runs.append(self._score_run(run, inputs, ranked[orders[0]]))
        return report

    def _count(
        self, source: DocumentSource | None, universe: Universe, rankings: Sequence[Mapping[str, Rankings]],
        background: Rankings | None, progress: Progress | None,
    ) -> dict[Key, DocMentions]:  # fmt: skip
        keys = sorted({key for a in self.asked if (key := _key_of(a)) is not None})
        if not keys or source is None:
            return {}
        needed = _needed(self.asked, rankings, background, len(universe.doc_ids))
        found, notes = count_needed(source, universe.doc_ids, needed, keys, self.catalogue.lexicons, progress)
        self.notes += notes
        return found

    def _score_run(self, run: RunFile, inputs: Inputs, rankings: Rankings) -> RunScores:
        values = {}
        for asked in self.asked:
            values[asked.text] = asked.family.score(asked.measure, inputs)
            left = int(np.isnan(values[asked.text]).sum())
            if left == len(rankings):
                raise DataError(f"{run.name}: {asked.text} is not defined for any of the {left} queries")
            if left:
                self.notes.append(
                    f"{run.name}: {asked.text} leaves out {left} of {len(rankings)} queries for which it is not defined"
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
        present = set(run.lines["query_id"].unique().to_list())
        absent = [q for q in first.to_list() if q not in present]
        if absent:
            raise DataError(
                f"run {run.name}: {len(absent)} queries of {runs[0].name} are not in it, the first is {absent[0]!r}; "
                "this preset compares the same queries only"
            )
