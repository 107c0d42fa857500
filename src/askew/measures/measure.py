"""Measure runs: read, count, score, summarize. This is ``askew measure`` as a function."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import polars as pl
import pyarrow as pa

from askew.core import defaults
from askew.core import plugins as registry
from askew.core.errors import ConfigError, DataError, Note, check_name
from askew.core.files import check_file
from askew.core.groups import Groups, GroupsLike
from askew.core.lexicon import Lexicon, load_lexicon, shipped_lexicons
from askew.core.measure import Measure
from askew.core.protocols import DocMentions, Inputs, Judgements
from askew.core.ranking import ORDERS, Flags, Floats, Rankings
from askew.core.store.store import Store
from askew.data.collection import Collection, open_collection
from askew.data.judgements import QrelsFile
from askew.data.layout import folder_and_split
from askew.data.queries import read_queries
from askew.data.runs import Run
from askew.measures.articles import Articles
from askew.measures.catalogue import Catalogue, MeasureRequest, Preset, find_preset
from askew.measures.common import MISSING, documents_read, known_to, way_of_reading
from askew.measures.counts import DocumentSource, Progress, count_needed, gather_texts, group_shares
from askew.measures.decompose import Decomposition, decomposable, decompose_run
from askew.measures.effectiveness import NO_RELEVANT, UNANSWERED, UNJUDGED, relevance_level
from askew.measures.lists import (
    QrelsLike,
    RunLike,
    Universe,
    as_judgements,
    as_run,
    named_runs,
    note_on_ranks,
    only_queries,
)
from askew.measures.relevance import RelevanceSource
from askew.measures.requested import (
    CountKey,
    MeasureLike,
    MeasuresLike,
    as_measure,
    count_key,
    default_measures,
    fields_of,
    key_of,
    keys_of,
    measure_list,
    note_on_resolver,
    reads_as_published,
)
from askew.measures.scorer import Scorer
from askew.measures.statistics.intervals import Mean, mean_with_interval
from askew.report.table import NAME, Cell, Column, Estimate, Table, TableView, table


def as_runs(runs: RunLike | Sequence[RunLike] | Mapping[str, RunLike]) -> Sequence[RunLike] | Mapping[str, RunLike]:
    """Return a sequence or mapping of runs. ``{query: {document: score}}`` is one run, ``{name: run}`` several."""
    if isinstance(runs, Mapping):
        first = next(iter(runs.values()), None)
        is_run = isinstance(first, Mapping) and all(isinstance(score, Real) for score in first.values())
        return [runs] if is_run else runs
    return runs if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]


def parts_of(collection: object, docs: object, qrels: QrelsLike | None) -> tuple[object, QrelsLike | None]:
    """The documents and judgements: those of the collection, but a given ``qrels`` overrides its judgements."""
    if collection is None:
        return docs, qrels
    if docs is not None:
        raise ConfigError("docs: the documents are given twice, as a collection and as ⟨docs⟩; give only one of them")
    opened = open_collection(collection) if _is_whole(collection) else collection
    if not isinstance(opened, Collection):
        return opened, qrels
    judged = opened.qrels_file().lines if qrels is None and opened.has_judgements else qrels
    # Keep the path of a folder, because it is the key of earlier counts in the store.
    return collection if isinstance(collection, str | Path) and Path(collection).is_dir() else opened, judged


def _query_texts(collection: object, queries: str | Path | Sequence[str] | None) -> dict[str, str]:
    """The query texts by id, from a file or from the collection; empty if neither has them."""
    if isinstance(queries, str | Path):
        table = read_queries(Path(queries))
    else:
        opened = open_collection(collection) if _is_whole(collection) else collection
        if not isinstance(opened, Collection) or not opened.has_queries:
            return {}
        table = opened.queries
    return dict(zip(table["query_id"].to_pylist(), table["text"].to_pylist(), strict=True))


def _is_whole(collection: object) -> bool:
    """Whether the argument names a whole collection and not only a file of documents."""
    if isinstance(collection, str) and (collection == "demo" or collection.startswith("irds:")):
        return True
    if not isinstance(collection, str | Path):
        return False
    path = Path(collection)
    return path.is_dir() or (not path.exists() and folder_and_split(path) is not None)


# The report of ``measure``: a value for every run, measure and query, and their means.


@dataclass(frozen=True)
class RunScores:
    """The values of every measure for every query of one run. NaN: left out for a reason given in the notes."""

    name: str
    query_ids: list[str]
    values: dict[str, Floats]


@dataclass(repr=False)
class MeasureReport(TableView):
    """The report of ``measure``.

    ``runs`` has the value of each query for each run and measure. ``notes`` says which queries or documents were left
    out, and why. With ``decompose=True``, ``parts`` divides the mean of a measure of lean in two ways: by why a group
    is mentioned in the results, and by who is mentioned. ``left_out`` are the notes on measures that
    ``undefined="drop"`` left out.
    """

    asked: list[MeasureRequest]
    runs: list[RunScores]
    notes: list[str] = field(default_factory=list)
    mean_digits: int | None = None
    parts: list[Decomposition] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def mean(self, run: RunScores, asked: MeasureRequest) -> Mean:
        """The mean of a measure over the queries of a run, with its interval."""
        found = mean_with_interval(run.values[asked.text], asked.bounds)
        if self.mean_digits is None:
            return found
        return replace(found, mean=round(found.mean, self.mean_digits))

    def __getitem__(self, key: MeasureLike | tuple[str, MeasureLike]) -> Mean:
        """The mean of a measure over the queries of a run: ``report["bm25.run", "nDCG@10"]``.

        If there is only one run, its name may be left out: ``report["nDCG@10"]``.
        """
        name, wanted = key if isinstance(key, tuple) else (self.runs[0].name if len(self.runs) == 1 else "", key)
        text = wanted if isinstance(wanted, str) else as_measure(wanted).text
        for run in self.runs:
            for one in self.asked:
                if (run.name, one.text) == (name, text):
                    return self.mean(run, one)
        raise ConfigError(
            f"report: there is no run {name!r} with the measure {text!r}; the runs of the report are "
            f"{', '.join(run.name for run in self.runs)}, and the measures are "
            f"{', '.join(one.text for one in self.asked)}"
        )

    def to_polars(self) -> pl.DataFrame:
        """One row per run and measure: mean, 95% interval, n, and the method of the interval."""
        # The name of a file may not be UTF-8; Arrow stores nothing else.
        rows = [
            {"run": run.name.encode("utf-8", "replace").decode(), "measure": one.text, **self._figures(run, one)}
            for run in self.runs
            for one in self.asked
        ]
        return pl.DataFrame(rows, schema_overrides={"low": pl.Float64, "high": pl.Float64})

    def _figures(self, run: RunScores, one: MeasureRequest) -> dict[str, Any]:
        figures = asdict(self.mean(run, one))
        figures["interval"] = figures.pop("method")
        return {**figures, "signature": one.signature}

    def to_pandas(self) -> Any:
        """As ``to_polars``, for pandas, which must be installed."""
        return self.to_polars().to_pandas()

    def per_query(self) -> pl.DataFrame:
        """One row for each run and query, one column for each measure; null where a measure is not defined."""
        parts = [
            pl.DataFrame({"run": [run.name] * len(run.query_ids), "query_id": run.query_ids, **run.values})
            for run in self.runs
        ]
        return pl.concat(parts).fill_nan(None)

    def table(self) -> Table:
        """The means with their intervals: one row for each run, one column for each measure."""
        columns = [Column("run", NAME), *(Column(one.text, direction=one.direction) for one in self.asked)]
        rows: list[list[Cell]] = []
        for run in self.runs:
            means = [self.mean(run, one) for one in self.asked]
            rows.append([run.name, *(Estimate(one.mean, one.low, one.high, one.n) for one in means)])
        return table("measures", "mean over queries [95% interval]", columns, rows)

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """The report as JSON values."""
        runs = []
        for run in self.runs:
            entry = {"run": run.name, "measures": {one.text: self._figures(run, one) for one in self.asked}}
            if per_query:
                columns = {one.text: run.values[one.text].tolist() for one in self.asked}
                entry["per_query"] = {
                    query: {text: column[row] for text, column in columns.items() if not math.isnan(column[row])}
                    for row, query in enumerate(run.query_ids)
                }
            runs.append(entry)
        return {"runs": runs, **({"parts": [one.to_dict() for one in self.parts]} if self.parts else {})}


# The steps of ``measure``: choose the measures, read the files, restrict to queries, count, score. Each returns values.


def choose_measures(
    catalogue: Catalogue, measures: Sequence[str | Measure] | None, docs: bool, qrels: bool
) -> tuple[list[MeasureRequest], list[str]]:
    """The complete measures, whose inputs are given, and notes. ``docs`` and ``qrels`` say which inputs are given.

    ``measures=None`` is the measures of the preset or the default measures, as far as their inputs are given.
    """
    requested = (
        default_measures(catalogue.preset, qrels, docs, catalogue.has_background) if measures is None else measures
    )
    asked = [] if measures is None and not requested else catalogue.complete(requested)
    texts = [one.text for one in asked]
    if len(set(texts)) < len(texts):
        raise ConfigError(f"the measure {next(t for t in texts if texts.count(t) > 1)!r} is requested twice")
    notes: list[str] = []
    lacks = {one.text: _lacks(one, docs, qrels, catalogue.has_background) for one in asked}
    if measures is None:
        if any(lacks.values()):
            texts = [text for text, lack in lacks.items() if lack]
            words = f"measures left out, because ⟨qrels⟩, ⟨docs⟩ or ⟨background⟩ is not given: {', '.join(texts)}"
            notes.append(Note(words, code="not-given", measures=texts))
        asked = [one for one in asked if not lacks[one.text]]
        if not asked:
            raise ConfigError(
                "nothing can be measured; give ⟨docs⟩ for measures of lean, or ⟨qrels⟩ for measures of effectiveness"
            )
    for one in asked:
        one.check()
        if lacks[one.text]:
            raise ConfigError(lacks[one.text])
    if catalogue.has_background and not any(one.measure.param("background") == "run" for one in asked):
        notes.append("the background run is not used, because no requested measure compares with a background run")
    return asked, notes


def _lacks(one: MeasureRequest, docs: bool, qrels: bool, background: bool) -> str:
    """The error message for an input that a measure needs and does not have; empty if nothing is missing."""
    if one.judged and not qrels:
        return f"the measure {one.text} needs judgements: give them with ⟨qrels⟩"
    if "mentions" in one.family.reads and not docs:
        return f"the measure {one.text} needs the texts of the documents: give them with ⟨docs⟩"
    if one.measure.param("background") == "run" and not background:
        instead = f"{one.family.name}(background=self)"
        return f"the measure {one.text} needs a background run: give ⟨background⟩, or request {instead}"
    return ""


@dataclass(frozen=True)
class MeasuredRuns:
    """The runs to measure, restricted to the requested queries, and their judgements.

    ``unanswered`` are the judged queries without a document in a run, by run, if some measure counts them as zero.
    """

    runs: list[Run]
    background: Run | None
    qrels: QrelsFile | None
    unanswered: dict[str, list[str]]
    notes: list[str]


def read_runs(
    asked: Sequence[MeasureRequest], runs: Mapping[str, RunLike], *, published: bool, run_format: str,
    background: RunLike | None = None, qrels: QrelsLike | None = None,
    queries: str | Path | Sequence[str] | None = None, label: str | None = None, same_queries: bool = False,
    brief: bool = False,
) -> MeasuredRuns:  # fmt: skip
    """Read the runs and the judgements, and restrict the runs to the requested queries.

    ``brief`` leaves out the notes on single measures, for jobs with very many measures.
    """
    if not runs:
        raise ConfigError("no run was given; give at least one run")
    read = [as_run(run, name, run_format, published) for name, run in runs.items()]
    other = None if background is None else as_run(background, "background", run_format, published)
    judged = None if qrels is None else as_judgements(qrels)
    notes = list(other.notes) if other else []
    wanted = _wanted_queries(queries, label)
    answerable: list[str] = []
    if judged is not None:
        notes += judged.notes
        notes += [] if brief else note_on_grades(asked, judged.lines["relevance"].unique())
        answerable = judged.lines["query_id"].unique(maintain_order=True).to_list()
    if wanted is not None:
        requested = set(wanted)
        answerable = [query for query in answerable if query in requested]
    count_as_zero = any(one.measure.param("unanswered") == "zero" for one in asked)
    unanswered = {}
    for run in read:
        present = set(run.query_ids)
        absent = [query for query in answerable if query not in present]
        unanswered[run.name] = absent if count_as_zero else []
        notes += _unanswered_note(run.name, asked, absent, len(answerable))
    if wanted is not None:
        read = [only_queries(run, wanted) for run in read]
    for run in read:
        # The published script fails if a run lacks a query of the first run.
        present = set(run.query_ids) if same_queries else set()
        if same_queries and (absent := [query for query in read[0].query_ids if query not in present]):
            raise DataError(
                f"run {run.name}: {len(absent)} queries of the run {read[0].name} are not in this run (the first is "
                f"{absent[0]!r}); this preset needs runs with the same queries"
            )
        notes += run.notes
        if any(one.measure.param("order") == "score" for one in asked):
            notes += note_on_ranks(run)
    return MeasuredRuns(read, other, judged, unanswered, notes)


def note_on_grades(asked: Sequence[MeasureRequest], grades: Iterable[int]) -> list[str]:
    """A note on the grades that count as relevant, if there are several above zero and a measure does not name one."""
    positive = sorted({grade for grade in grades if grade > 0})
    by_level: dict[int, list[str]] = {}
    for one in asked if len(positive) > 1 else ():
        level = one.measure.param("rel") if one.judged else None
        if isinstance(level, int) and Measure.parse(one.text).param("rel") is None:
            by_level.setdefault(level, []).append(one.text)
    return [
        Note(
            f"{', '.join(texts)}: grades of {level} or more count as relevant, and the judgements have grades up to "
            f"{positive[-1]}; to change this, set rel, as in "
            f"{Measure.parse(texts[0])(rel=next(grade for grade in positive if grade != level)).text}",
            code="graded",
            measures=texts,
            relevant=level,
            highest=positive[-1],
        )
        for level, texts in by_level.items()
    ]


def _unanswered_note(name: str, asked: Sequence[MeasureRequest], unanswered: Sequence[str], judged: int) -> list[str]:
    """A note on judged queries for which a run has no document."""
    ways = {one.measure.param("unanswered") for one in asked} - {None}
    if not unanswered or not ways:
        return []
    what = f"{name}: no document for {len(unanswered)} of {judged} judged queries, such as {unanswered[0]!r}"
    if "zero" in ways:
        what += (
            ": their effectiveness is 0 and their lean is missing. If they were not searched, leave them out: "
            "name the searched queries with ⟨queries⟩, or set ⟨unanswered=absent⟩"
        )
    else:
        what += ": left out (⟨unanswered=zero⟩: their effectiveness is 0)"
    return [Note(what, code="unanswered", run=name, queries=len(unanswered))]


@dataclass(frozen=True)
class ScoringInputs:
    """All that measures read: the lists of each run (``inputs``), with counted mentions, and the relevance."""

    asked: list[MeasureRequest]
    measured: MeasuredRuns
    universe: Universe
    scorer: Scorer
    lists: list[Rankings]
    inputs: list[Inputs]
    relevance: RelevanceSource
    notes: list[str]


def count_inputs(
    asked: Sequence[MeasureRequest], measured: MeasuredRuns, source: DocumentSource | None,
    lexicons: Mapping[str, Lexicon], query_texts: Callable[[], Mapping[str, str]] = dict,
    progress: Progress | None = None,
) -> ScoringInputs:  # fmt: skip
    """Count the mentions in the documents that the measures read.

    ``query_texts`` loads the texts of the queries. It is called only if relevance is estimated.
    """
    frames = [run.lines if run.all_lines is None else run.all_lines for run in measured.runs]
    frames += [one.lines for one in (measured.background, measured.qrels) if one is not None]
    universe = Universe.of(frames)
    doc_ids, needed = universe.doc_ids, np.zeros(len(universe.doc_ids), np.bool_)
    counts: dict[CountKey, DocMentions] = {}
    judged = None if measured.qrels is None else universe.judged(measured.qrels.lines)

    def texts() -> pa.Array:
        assert source is not None
        return gather_texts(source, doc_ids, needed)

    shares: dict[tuple[CountKey, tuple[int, ...]], Floats] = {}

    def shares_in_collection(one: Measure, columns: Sequence[int]) -> Floats:
        assert source is not None
        key = count_key(one), tuple(columns)
        if key not in shares:
            lexicon = lexicons[key[0].lexicon]
            manifest = source.stored(lexicon, key[0])
            counted = None if manifest is None else source.read_stored(manifest)
            shares[key] = group_shares(source.batches, lexicon, *key, counted)
        return shares[key]

    relevance = RelevanceSource(judged, query_texts, texts)
    articles = Articles(
        doc_ids,
        lambda docs: [text or "" for text in relevance.texts.take(docs).to_pylist()],
        lambda: np.flatnonzero(needed & ~np.asarray(relevance.texts.is_null())),
    )
    scorer = Scorer(
        asked, doc_ids, None if source is None else counts.__getitem__, judged, relevance, articles=articles.of,
        shares=shares_in_collection,
    )  # fmt: skip
    notes = []
    if measured.background is not None:
        scorer.set_background(universe.lists(measured.background))
    for one in scorer.asked if measured.background is not None else ():
        wanted = str(Measure.parse(one.text).param("background", ""))
        if wanted.startswith("run@") and wanted != f"run@{one.background}":
            notes.append(f"{one.text}: this measure names another background run than the given run@{one.background}")
    lists = [universe.lists(run) for run in measured.runs]
    inputs = [scorer.inputs(one, scorer.asked, run.name) for one, run in zip(lists, measured.runs, strict=True)]
    if source is not None and (keys := keys_of(asked)):
        # Measures with the same way of reading need the same documents, so one measure per way of reading is checked.
        for one in {way_of_reading(one.measure): one for one in scorer.asked if key_of(one) is not None}.values():
            for each in inputs:
                needed |= documents_read(one.measure, each)
        found, more = count_needed(source, doc_ids, needed, keys, lexicons, progress)
        counts |= found
        notes += more
    return ScoringInputs(scorer.asked, measured, universe, scorer, lists, inputs, relevance, notes)


def score_runs(
    given: ScoringInputs, asked: Sequence[MeasureRequest], mean_digits: int | None = None,
    drop_undefined: bool = False, brief: bool = False,
) -> MeasureReport:  # fmt: skip
    """Score measures for every query of every run. A query without a document in the run has no lean.

    A measure that is not defined for any query of a run is an error; with ``drop_undefined`` it is left out.
    """
    runs: list[RunScores] = []
    judgements: list[Judgements | None] = []
    undefined: dict[str, str] = {}
    for run, own, lean in zip(given.measured.runs, given.lists, given.inputs, strict=True):
        # Measures of effectiveness read all lines, and include judged queries without a document in the run.
        unanswered, lists, whole = given.measured.unanswered[run.name], own, lean
        if given.measured.qrels is not None and (unanswered or run.all_lines is not None):
            lists = given.universe.lists(run, unanswered, every=True)
            whole = given.scorer.inputs(lists, given.scorer.asked, run.name)
        scores = RunScores(run.name, lists.query_ids.to_pylist(), {})
        for one in asked:
            found = given.scorer.values(whole if one.judged else lean, [one])[one.text]
            if np.isnan(found).all() and one.text not in undefined:
                bare = 0 if whole.judgements is None else without_relevant(one, whole.judgements)
                why = f"; {bare} have no relevant document (⟨no_relevant=zero⟩ counts them as 0)" if bare else ""
                undefined[one.text] = f"{run.name}: {one.text} is not defined for any of the {len(found)} queries{why}"
                if not drop_undefined or len(undefined) == len(asked):
                    raise DataError(undefined[one.text])
            scores.values[one.text] = np.append(found, np.full(len(lists) - len(found), np.nan))
        runs.append(scores)
        judgements.append(whole.judgements)
    defined = [one for one in asked if one.text not in undefined]
    notes = []
    for scores, lists, lean, judged in zip(runs, given.lists, given.inputs, judgements, strict=True):
        for text in undefined:
            del scores.values[text]
        answered = len(scores.query_ids) - len(given.measured.unanswered[scores.name])
        if not brief:
            notes += _undefined_notes(scores, defined, len(lists), judged, answered)
            notes += _missing_notes(scores.name, defined, lean)
        if judged is not None:
            notes += _judgement_notes(scores.name, defined, judged, answered)
    left_out: list[str] = [Note(f"left out: {why}", code="undefined") for why in undefined.values()]
    return MeasureReport(defined, runs, [*notes, *left_out], mean_digits, left_out=left_out)


def without_relevant(asked: MeasureRequest, judged: Judgements) -> int:
    """The number of judged queries without a relevant document, if the measure needs one; otherwise 0."""
    return int(_bare(asked, judged).sum())


def _bare(asked: MeasureRequest, judged: Judgements) -> Flags:
    """The judged queries without a relevant document, if the measure needs one."""
    if not getattr(asked.family, "needs_relevant", False):
        return np.zeros(len(judged.judged), np.bool_)
    return np.asarray(judged.judged & (judged.relevant(relevance_level(asked.measure)) == 0))


def _judgement_notes(name: str, asked: Sequence[MeasureRequest], judged: Judgements, answered: int) -> list[str]:
    """Notes on queries without a relevant document and on queries of the run without a judgement."""
    notes: list[str] = []
    counted: dict[tuple[int, str], list[str]] = {}
    for one in asked:
        key = without_relevant(one, judged), str(one.measure.param("no_relevant"))
        counted.setdefault(key, []).append(one.text)
    for (count, way), texts in counted.items():
        if count:
            bare = f"{name}: {count} of {int(judged.judged.sum())} judged queries have no relevant document"
            measures = ", ".join(texts)
            words = (
                f"{bare}; these queries are left out of {measures} (⟨no_relevant=zero⟩ counts them as 0)"
                if way == "absent"
                else f"{bare}; these queries count as 0 in {measures} (⟨no_relevant=absent⟩ leaves them out)"
            )
            notes.append(Note(words, code="no-relevant", run=name, queries=count))
    if unjudged := int((~judged.judged).sum()):
        ways = {str(one.measure.param("unjudged")) for one in asked if one.measure.param("unjudged")}
        bare = f"{name}: {unjudged} of {answered} queries of the run have no judgement"
        notes.append(
            f"{bare}; these queries are left out of the measures of effectiveness"
            if ways == {"absent"}
            else f"{bare}; the effectiveness of these queries is 0"
        )
    return notes


def _undefined_notes(
    scores: RunScores, asked: Sequence[MeasureRequest], listed: int, judged: Judgements | None, answered: int
) -> list[str]:
    """Notes on measures that are not defined for some queries, unless other notes give the reason."""
    notes = []
    for one in asked:
        size = len(scores.query_ids) if one.judged else listed
        left = int(np.isnan(scores.values[one.text][:size]).sum())
        if one.judged and judged is not None:
            param = one.measure.param
            reported = _bare(one, judged) & (param("no_relevant") == "absent")
            reported |= ~judged.judged & (param("unjudged") == "absent")
            reported[answered:] |= param("unanswered") == "absent"
            left -= int(reported.sum())
        if left > 0:
            notes.append(f"{scores.name}: {one.text} leaves out {left} of {size} queries for which it is not defined")
    return notes


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
    words = f"{name}: up to {most} ranked documents have no text (missing={what})"
    return [Note(words, code="missing-texts", run=name, documents=most)] if most else []


def _wanted_queries(queries: str | Path | Sequence[str] | None, label: str | None) -> list[str] | None:
    if queries is None:
        if label is not None:
            raise ConfigError("⟨label⟩ selects queries of a file by their label; give the file with ⟨queries⟩")
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


__all__ = ["MeasureReport", "RunScores", "measure"]


class MeasureOptions(TypedDict, total=False):
    """The options of ``measure``, for functions that pass them on."""

    groups: GroupsLike | None
    docs: object
    qrels: QrelsLike | None
    queries: str | Path | Sequence[str] | None
    label: str | None
    background: RunLike | None
    preset: str | None
    tokens: str | None
    missing: str | None
    unjudged: str | None
    unanswered: str | None
    no_relevant: str | None
    undefined: str
    order: str | None
    fields: Sequence[str]
    run_format: str
    store: str | Path | None
    progress: Progress | None


def measure(
    runs: RunLike | Sequence[RunLike] | Mapping[str, RunLike],
    collection: object = None,
    measures: MeasuresLike | None = None,
    *,
    groups: GroupsLike | None = None,
    docs: object = None,
    qrels: QrelsLike | None = None,
    queries: str | Path | Sequence[str] | None = None,
    label: str | None = None,
    background: RunLike | None = None,
    preset: str | None = None,
    tokens: str | None = None,
    missing: str | None = None,
    unjudged: str | None = None,
    unanswered: str | None = None,
    no_relevant: str | None = None,
    undefined: str = "error",
    order: str | None = None,
    fields: Sequence[str] = (),
    run_format: str = defaults.RUN_FORMAT,
    store: str | Path | None = None,
    decompose: bool = False,
    progress: Progress | None = None,
    before_scoring: Callable[[list[MeasureRequest]], None] | None = None,
) -> MeasureReport:
    """Score runs for bias (lean) and effectiveness.

    The inputs:

    - ``runs``: one run or several. A run is a file, a ``Run``, a data frame or ``{query: {document: score}}``. Several
      runs are a list, or a mapping from names to runs.
    - ``collection``: a ``Collection``, or anything that ``Collection.open`` accepts. A file, a mapping from document id
      to text, or a data frame gives documents only.
    - ``measures``: texts or objects, such as ``"RR@10 ARaB(tf)@10"`` or ``[nDCG @ 10]``. A measure of your own is
      ``"FILE.py:CLASS@10"``, or an object with the measure protocol (``MeasureFamily``). Measures of ir_measures are
      accepted as well. By default, the measures of the preset are used. Without a preset, the default depends on the
      inputs. If there are judgements, it includes RR@10, AP@10 and nDCG@10. If there are documents, it includes
      LexiconShare@10 and the variants tc, tf and bool of ARaB@10, and NFaiRR@10 if there is a background run.
    - ``groups``: the groups to count. A measure that names its own lexicon does not use this argument.
    - ``docs``: the documents, if no collection is given.
    - ``qrels``: the judgements: a file, a data frame or ``{query: {document: relevance}}``. They override those of the
      collection.
    - ``queries``: use only these queries: a file of queries or a list of ids.
    - ``label``: with a file of queries, use only the queries with this label.
    - ``background``: a run. NFaiRR is normalized with the documents of this run. By default, each run is its own
      background.
    - ``preset``: the name of a preset, which has the measures and settings of a publication.

    Options for how values are computed. A measure can also set an option, as in ``"ARaB(tf,tokens=word)@10"``, and so
    can the preset. The option in the measure overrides the argument, the argument overrides the preset, and the preset
    overrides the defaults below:

    - ``tokens``: the tokenizer. Default: ``unclipped``.
    - ``missing``: how to treat a ranked document without text: ``error`` (stop), ``zero`` (it names no group), ``drop``
      (remove it before the cutoff) or ``skip`` (remove it after the cutoff). Default: ``error``.
    - ``unjudged``: how to treat a query without judgements: ``error`` (stop), ``zero`` (its effectiveness is 0) or
      ``absent`` (left out). Default: ``error``.
    - ``unanswered``: how to treat a judged query without a document in the run: ``zero`` (its effectiveness is 0) or
      ``absent``. Such a query has no value of lean. Default: ``zero``.
    - ``no_relevant``: how to treat a judged query without a relevant document: ``absent`` (it has no value of
      effectiveness) or ``zero``. Default: ``absent``. The number of queries that count can therefore differ between
      measures.
    - ``undefined``: how to treat a measure that is not defined for any query of a run: ``error`` (stop) or ``drop``
      (leave the measure out, with a note). Default: ``error``.
    - ``order``: how to rank the documents of a query: ``score`` (by score) or ``file`` (in the order of the lines in
      the run file). Default: ``score``.
    - ``fields``: the fields that make up the text of a document, such as ``("title", "text")``.
    - ``run_format``: the format of run files: ``auto``, ``trec``, ``tsv``, ``jsonl`` or ``parquet``.

    Further arguments:

    - ``decompose``: also split the mean of ARaB into parts: by whether mentions of a group are on topic, and by who is
      mentioned, such as a real or a fictional person. The attribute ``parts`` of the report has the parts. The
      decomposition needs the extra ``neural`` and the texts of the queries: give a collection that has them, or a file
      as ``queries``.
    - ``store``: a folder that ``askew annotate`` wrote. Documents with counts in this folder are not counted again.
    - ``progress``: a function that is called with the amount of finished work and the total amount (0 if unknown).
    - ``before_scoring``: a function that is called with the requested measures before any file is read.
    """
    chosen = find_preset(preset) if preset else None
    given = {
        "tokens": tokens, "missing": missing, "unjudged": unjudged, "unanswered": unanswered,
        "no_relevant": no_relevant, "order": order,
    }  # fmt: skip
    options = {key: value for key, value in given.items() if value is not None}
    # An invalid option is an error even if no measure uses it.
    for key, allowed in _ALLOWED.items():
        if (value := {**options, "undefined": undefined}.get(key, allowed[0])) not in allowed:
            raise ConfigError(f"⟨{key}⟩: expected one of {', '.join(allowed)}; found {value!r}")
    check_name("tokenizer", options.get("tokens", defaults.TOKENIZER), registry.names("tokenizer"))
    if fields:
        options["fields"] = "+".join(fields)
    docs, qrels = parts_of(collection, docs, qrels)
    named = named_runs(as_runs(runs))
    for run in named.values():
        if isinstance(run, str | Path):
            check_file(Path(run), "run")
    counted = None if groups is None else Groups.of(groups)
    catalogue = Catalogue(chosen, options, groups=counted, has_background=background is not None)
    requested = None if measures is None else measure_list(measures)
    asked, notes = choose_measures(catalogue, requested, docs is not None, qrels is not None)
    divided = decomposable(asked, measures is not None) if decompose else []
    if before_scoring is not None:
        before_scoring(asked)
    published = reads_as_published(asked, chosen)
    measured = read_runs(
        asked, named, published=published, run_format=run_format, background=background, qrels=qrels, queries=queries,
        label=label, same_queries=chosen is not None and chosen.same_queries,
    )  # fmt: skip
    notes += measured.notes
    if background is None and len(named) > 1:
        notes += _note_on_own_backgrounds(asked, chosen)
    notes += [*_note_on_liwc(asked), *note_on_resolver(asked, divided)]
    kept = Store(store) if store is not None and Path(store).is_dir() else None
    source = None if docs is None else DocumentSource(docs, fields_of(asked, tuple(fields)), published, kept)
    inputs = count_inputs(
        asked, measured, source, catalogue.lexicons, lambda: _query_texts(collection, queries), progress
    )
    report = score_runs(inputs, inputs.asked, chosen.mean_digits if chosen else None, undefined == "drop")
    report.notes = _once([*notes, *inputs.notes, *report.notes], [run.name for run in report.runs])
    for one in divided:
        if one.text in report.runs[0].values:
            lexicon = catalogue.lexicons[str(one.measure.param("lexicon"))]
            report.parts += [decompose_run(one, each, inputs.relevance, lexicon) for each in inputs.inputs]
    return report


def _once(notes: Sequence[str], names: Sequence[str]) -> list[str]:
    """The notes, with one note for several runs of which the same is said: "a.run, b.run: 3 queries of the run ..."."""
    of_run = {note: next((name for name in names if note.startswith(f"{name}: ")), "") for note in notes}
    same: dict[str, list[str]] = {}
    for note, name in of_run.items():
        same.setdefault(note.removeprefix(f"{name}: ") if name else note, []).append(note)
    merged: list[str] = []
    for first, *others in same.values():
        runs = [of_run[first], *(of_run[one] for one in others)]
        plain = first.template if isinstance(first, Note) else first
        text = f"{', '.join(runs)}: {plain.removeprefix(f'{runs[0]}: ')}"
        if not others:
            merged.append(first)
        else:
            values = {**first.values, "runs": runs} if isinstance(first, Note) else {}
            merged.append(Note(text, code=first.code, **values) if isinstance(first, Note) else text)
    return merged


_ALLOWED = {
    "missing": MISSING, "unjudged": UNJUDGED, "unanswered": UNANSWERED, "no_relevant": NO_RELEVANT, "order": ORDERS,
    "undefined": ("error", "drop"),
}  # fmt: skip


def _note_on_own_backgrounds(asked: Sequence[MeasureRequest], preset: Preset | None) -> list[str]:
    """A note if each run is its own background: runs of different depth then have different ideal values."""
    own = [one for one in asked if one.measure.param("background") == "self"]
    if not own:
        return []
    settings = {} if preset is None else preset.defaults
    # If a preset or a measure fixes the background, giving a background run alone would have no effect.
    fixed = [
        one
        for one in own
        if "background" in settings.get(one.family.name, {}) or "background" in dict(Measure.parse(one.text).params)
    ]
    advice = (
        f"to use the same background for all runs, request the measure {fixed[0].family.name}(background=run) and set "
        "the option ⟨background⟩ to a run"
        if fixed
        else "to use the same background for all runs, set the option ⟨background⟩ to a run"
    )
    texts = ", ".join(one.text for one in own)
    words = f"{texts}: the background of each run is the documents that it retrieved itself; {advice}"
    return [Note(words, code="own-backgrounds")]


def _note_on_liwc(asked: Sequence[MeasureRequest]) -> list[str]:
    """A note if a shipped lexicon is used in place of LIWC, which is not part of askew."""
    named = [one for one in asked if Measure.parse(one.text).name == "LIWC"]
    notes: list[str] = []
    for lexicon in dict.fromkeys(str(one.measure.param("lexicon")) for one in named):
        name = lexicon.partition("@")[0]
        if name in shipped_lexicons() and load_lexicon(name).id == lexicon:
            texts = ", ".join(one.text for one in named if one.measure.param("lexicon") == lexicon)
            words = (
                f"{texts}: the open lexicon {name} is used in place of LIWC; "
                "give the LIWC dictionary, a .dic file, with ⟨lexicon⟩"
            )
            notes.append(Note(words, code="no-liwc"))
    return notes
