"""The steps of ``measure``: choose the measures, read the files, restrict to queries, score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from askew.app.measure.values import MeasureReport, RunScores
from askew.app.scoring.lists import ScoredLists
from askew.app.scoring.query_notes import (
    judgement_notes,
    left_out_by_judgements,
    note_on_grades,
    unanswered_note,
    without_relevant,
)
from askew.app.scoring.relevance import RelevanceSource
from askew.app.scoring.requested import CountKey, fields_of, key_of, keys_of, reads_as_published, texts_of
from askew.app.scoring.scorer import Scorer
from askew.app.scoring.texts import DocumentSource, Progress, count_needed, gather_texts
from askew.app.scoring.universe import QrelsLike, RunLike, Universe, as_judgements, as_run, note_on_ranks, only_queries
from askew.core.errors import ConfigError, DataError
from askew.core.groups import Groups
from askew.core.measure import Measure
from askew.core.ranking import Floats
from askew.corpora.queries import read_queries
from askew.corpora.runs import Run
from askew.measures.catalogue import Catalogue, MeasureRequest, Preset
from askew.measures.common import documents_read, known_to, way_of_reading
from askew.plugins.kinds import DocMentions, Inputs, Judgements

# Selects the measures to score, given the requested measures and the inputs of each run.
Keep = Callable[[list[MeasureRequest], Sequence[Inputs]], list[MeasureRequest]]
_NOTHING = "nothing can be measured; give docs= for measures of lean, or qrels= for measures of effectiveness"


class MeasureJob:
    """One call of ``measure``. The public methods must be called in the order of their definition.

    ``brief`` leaves out the notes on single measures, for jobs with very many measures.
    """

    def __init__(
        self, preset: Preset | None, overrides: Mapping[str, Any], groups: Groups | None = None, brief: bool = False
    ) -> None:
        self.preset, self._brief = preset, brief
        self.catalogue = Catalogue(preset, overrides, groups=groups)
        self.notes: list[str] = []
        # Loads the texts of the queries. It is called only if relevance is estimated.
        self.query_texts: Callable[[], Mapping[str, str]] = dict

    def choose_measures(
        self, measures: str | Sequence[str] | None, docs: bool, qrels: bool, background: bool, fields: tuple[str, ...]
    ) -> None:
        """Complete the requested measures and check their inputs. They determine how the files are read."""
        self._given = {"docs": docs, "qrels": qrels, "background": background}
        self._choose_background()
        texts = texts_of(measures, self.preset, qrels, docs)
        if measures is None and not texts:
            raise ConfigError(_NOTHING)
        if len(set(texts)) < len(texts):
            raise ConfigError(f"the measure {next(t for t in texts if texts.count(t) > 1)!r} is requested twice")
        asked = self.catalogue.complete(texts)
        lacks = {one.text: self._lacks(one) for one in asked}
        if measures is None:
            asked = self._only_possible(asked, lacks)
        for one in asked:
            one.check()
            if lacks[one.text]:
                raise ConfigError(lacks[one.text])
        self.asked = asked
        self.published = reads_as_published(asked, self.preset)
        self.fields = fields_of(asked, fields)
        if background and not any(one.measure.param("background") == "run" for one in asked):
            self.notes.append(
                "the background run is not used, because no requested measure compares with a background run"
            )

    def _choose_background(self) -> None:
        """Without a background run, NFaiRR uses the run itself as background, unless the preset sets another."""
        fixed = self.preset and "background" in self.preset.defaults.get("NFaiRR", {})
        if not self._given["background"] and not fixed:
            self.catalogue.overrides = {**self.catalogue.overrides, "background": "self"}

    def _lacks(self, one: MeasureRequest) -> str:
        """The error message for an input that a measure needs and does not have; empty if nothing is missing."""
        if one.judged and not self._given["qrels"]:
            return f"the measure {one.text} needs judgements: give them with qrels="
        if "mentions" in one.family.reads and not self._given["docs"]:
            return f"the measure {one.text} needs the texts of the documents: give them with docs="
        if one.measure.param("background") == "run" and not self._given["background"]:
            instead = f"{one.family.name}(background=self)"
            return f"the measure {one.text} needs a background run: give background=, or request {instead}"
        return ""

    def _only_possible(self, asked: list[MeasureRequest], lacks: Mapping[str, str]) -> list[MeasureRequest]:
        """The default measures whose input is given. A note lists those that are left out."""
        left = [one.text for one in asked if lacks[one.text]]
        if left:
            self.notes.append(
                f"measures left out, because qrels=, docs= or background= is not given: {', '.join(left)}"
            )
        possible = [one for one in asked if not lacks[one.text]]
        if not possible:
            raise ConfigError(_NOTHING)
        return possible

    def read(self, runs: Mapping[str, RunLike], background: RunLike | None, qrels: QrelsLike | None, form: str) -> None:
        """Read the runs and the judgements."""
        if not runs:
            raise ConfigError("no run was given; give at least one run")
        self.runs = [as_run(run, name, form, self.published) for name, run in runs.items()]
        self.background = None if background is None else as_run(background, "background", form, self.published)
        self.notes += self.background.notes if self.background else []
        self.qrels = None if qrels is None else as_judgements(qrels)
        if self.qrels is not None:
            self.notes += self.qrels.notes
            self.notes += [] if self._brief else note_on_grades(self.asked, self.qrels.lines["relevance"].unique())

    def restrict(self, queries: str | Path | Sequence[str] | None, label: str | None) -> None:
        """Restrict the runs to the requested queries, and collect the notes on the runs."""
        wanted = _wanted_queries(queries, label)
        self._unanswered = {run.name: self._unanswered_by(run, wanted) for run in self.runs}
        if wanted is not None:
            self.runs = [only_queries(run, wanted) for run in self.runs]
        if self.preset and self.preset.same_queries:
            _refuse_other_queries(self.runs)
        for run in self.runs:
            self.notes += run.notes
            if any(asked.measure.param("order") == "score" for asked in self.asked):
                self.notes += filter(None, [note_on_ranks(run)])

    def _unanswered_by(self, run: Run, wanted: Sequence[str] | None) -> list[str]:
        """The judged queries without a document in a run, if some measure counts them as zero."""
        if self.qrels is None:
            return []
        present = set(run.lines["query_id"].unique().to_list())
        judged = self.qrels.lines["query_id"].unique(maintain_order=True).to_list()
        if wanted is not None:
            requested = set(wanted)
            judged = [query for query in judged if query in requested]
        found = [query for query in judged if query not in present]
        self.notes += unanswered_note(run.name, self.asked, found, len(judged))
        return found if any(one.measure.param("unanswered") == "zero" for one in self.asked) else []

    def score(
        self, source: DocumentSource | None, progress: Progress | None, keep: Keep | None = None
    ) -> MeasureReport:
        """Score every measure for every query of every run. ``keep`` selects measures after the texts are counted."""
        frames = [run.lines if run.all_lines is None else run.all_lines for run in self.runs]
        frames += [self.background.lines] if self.background else []
        frames += [self.qrels.lines] if self.qrels else []
        universe = Universe.of(frames)
        found: dict[CountKey, DocMentions] = {}
        judged = None if self.qrels is None else universe.judged(self.qrels.lines)
        self.relevance = RelevanceSource(judged, self.query_texts, lambda: self._texts(source, universe.doc_ids))
        count = None if source is None else found.__getitem__
        scorer = Scorer(self.asked, universe.doc_ids, count, judged, self.relevance)
        if self.background:
            self._set_background(scorer, universe.lists(self.background))
        lists = [universe.lists(run) for run in self.runs]
        inputs = [scorer.inputs(one, scorer.asked, run.name) for run, one in zip(self.runs, lists, strict=True)]
        if source is not None:
            found.update(self._count(source, inputs, progress))
        if keep is not None:
            self.asked = keep(self.asked, inputs)
        report = MeasureReport(self.asked, [], self.notes, self.preset.mean_digits if self.preset else None)
        for run, one, lean in zip(self.runs, lists, inputs, strict=True):
            more = self._unanswered[run.name]
            # Measures of effectiveness read all lines, and include judged queries without a document in the run.
            differ = self.qrels is not None and (more or run.all_lines is not None)
            every = universe.lists(run, more, every=True) if differ else one
            whole = scorer.inputs(every, scorer.asked, run.name) if differ else lean
            report.runs.append(self._score_run(scorer, run.name, every.ids.to_pylist(), lean, whole))
        return report

    def _set_background(self, scorer: Scorer, lists: ScoredLists) -> None:
        """Set the background run. Its content hash is part of signatures; a note reports another requested hash."""
        scorer.set_background(lists)
        self.asked = scorer.asked
        for one in self.asked:
            wanted = str(Measure.parse(one.text).param("background", ""))
            if wanted.startswith("run@") and wanted != f"run@{one.background}":
                self.notes.append(
                    f"{one.text}: this measure names another background run than the given run@{one.background}"
                )

    def _count(
        self, source: DocumentSource, inputs: Sequence[Inputs], progress: Progress | None
    ) -> dict[CountKey, DocMentions]:
        keys = keys_of(self.asked)
        if not keys:
            return {}
        needed = np.zeros(len(inputs[0].doc_ids), np.bool_)
        # Measures with the same way of reading need the same documents, so one measure per way of reading is checked.
        for one in {way_of_reading(one.measure): one for one in self.asked if key_of(one) is not None}.values():
            for given in inputs:
                needed |= documents_read(one.measure, given)
        self._needed = needed
        found, notes = count_needed(source, inputs[0].doc_ids, needed, keys, self.catalogue.lexicons, progress)
        self.notes += notes
        return found

    def _texts(self, source: DocumentSource | None, doc_ids: pa.Array) -> pa.Array:
        """The texts of the documents that the measures read."""
        assert source is not None
        return gather_texts(source, doc_ids, self._needed)

    def _score_run(self, scorer: Scorer, name: str, query_ids: list[str], lean: Inputs, whole: Inputs) -> RunScores:
        """The values of every measure per query. A query without a document in the run has no lean."""
        answered = len(query_ids) - len(self._unanswered[name])
        values = {}
        for asked in self.asked:
            reads = asked.judged
            found = scorer.values(whole if reads else lean, [asked])[asked.text]
            self._tell_undefined(name, asked, found, whole.judgements if reads else None, answered)
            values[asked.text] = np.append(found, np.full(len(query_ids) - len(found), np.nan))
        self.notes += [] if self._brief else _missing_notes(name, self.asked, lean)
        if whole.judgements is not None:
            self.notes += judgement_notes(name, self.asked, whole.judgements, answered)
        return RunScores(name, query_ids, values)

    def _tell_undefined(
        self, name: str, asked: MeasureRequest, values: Floats, judged: Judgements | None, answered: int
    ) -> None:
        left = int(np.isnan(values).sum())
        if left == len(values):
            bare = 0 if judged is None else without_relevant(asked, judged)
            why = "" if not bare else f"; {bare} have no relevant document (no_relevant='zero' counts them as 0)"
            raise DataError(f"{name}: {asked.text} is not defined for any of the {left} queries{why}")
        left -= 0 if judged is None else left_out_by_judgements(asked, judged, answered)
        if left > 0 and not self._brief:
            self.notes.append(
                f"{name}: {asked.text} leaves out {left} of {len(values)} queries for which it is not defined"
            )


def _missing_notes(name: str, asked: Sequence[MeasureRequest], inputs: Inputs) -> list[str]:
    """A note on the documents without text that the measures read, unless ``missing`` is "error"."""
    most = 0
    policies: set[str] = set()
    for one in asked:
        key, policy = key_of(one), str(one.measure.param("missing"))
        if key is None or policy == "error":
            continue
        known = known_to(one.measure, inputs.mentions(*key))
        unknown = int((documents_read(one.measure, inputs) & ~known).sum())
        if unknown:
            most, policies = max(most, unknown), {*policies, policy}
    what = ", ".join(sorted(policies))
    return [f"{name}: up to {most} ranked documents have no text (missing={what})"] if most else []


def _wanted_queries(queries: str | Path | Sequence[str] | None, label: str | None) -> list[str] | None:
    if queries is None:
        if label is not None:
            raise ConfigError("label= selects queries of a file by their label; give the file with queries=")
        return None
    if not isinstance(queries, str | Path):
        return list(queries)
    table = read_queries(Path(queries))
    if label is None:
        return list(table["query_id"].to_pylist())
    labels = set(table["label"].to_pylist())
    if label not in labels:
        known = ", ".join(sorted(repr(str(found)) for found in labels if found is not None))
        also = f"the labels in this file are {known}" if known else "this file has no labels"
        raise DataError(f"queries {queries}: no query has the label {label!r}; {also}")
    pairs = zip(table["query_id"].to_pylist(), table["label"].to_pylist(), strict=True)
    return [query for query, found in pairs if found == label]


def _refuse_other_queries(runs: Sequence[Run]) -> None:
    """Raise an error for different queries, because the published script fails if a run lacks a query of the first."""
    first = runs[0].lines["query_id"].unique(maintain_order=True)
    for run in runs[1:]:
        present = set(run.lines["query_id"].unique().to_list())
        absent = [q for q in first.to_list() if q not in present]
        if absent:
            raise DataError(
                f"run {run.name}: {len(absent)} queries of the run {runs[0].name} are not in this run (the first is "
                f"{absent[0]!r}); this preset needs runs with the same queries"
            )
