"""Compare mitigation methods on one collection and one set of queries: the implementation of ``askew bench``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import ConfigError, DataError, Note, one_of
from askew.core.files import digest_file
from askew.core.folders import checksum_text, read_checksums
from askew.core.groups import Groups, GroupsLike
from askew.core.measure import Direction
from askew.core.protocols import MitigationPlugin
from askew.core.ranking import Hits
from askew.data.collection import Collection
from askew.data.queries import read_queries
from askew.measures.catalogue import MeasureRequest
from askew.measures.lists import RunLike, named_runs
from askew.measures.measure import as_runs
from askew.measures.requested import MeasuresLike, measure_texts
from askew.measures.statistics.significance import TESTS
from askew.report.page import check_out, slug
from askew.search.common import one_word
from askew.search.retrieve import run_lines, write_run
from askew.study.bench.input import check_groups, open_input
from askew.study.bench.methods import ONE_SEARCH, REORDER, RERANK, MitigationMethod, read_methods
from askew.study.bench.page import write_page
from askew.study.bench.results import BenchMeasure, BenchReport, Costs, Scored, make_report, read_scores
from askew.study.bench.runs import (
    BenchScorer,
    Criteria,
    MethodRun,
    MethodRunner,
    Search,
    ask_measures,
    effectiveness_of,
    leans_of,
    top_documents,
)
from askew.study.bench.settings import DEFAULT_METHODS, BenchSettings
from askew.train.common import HELD_OUT, seen_by
from askew.train.selector import kept_share

# Write the runs of a bench to a folder; other files in this folder are never overwritten.

# Lists the files of the last bench with their checksums; only these files are replaced.
LIST = "runs.sha256"


def check_place(out: Path, methods: Sequence[MitigationMethod]) -> None:
    """Refuse a folder that the report or the runs cannot be written to, before any work."""
    check_out(out)
    folder = out / "runs"
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ConfigError(f"{folder}: expected a folder or a new name, found another kind of file; give another ⟨out⟩")
    known = _known(folder)
    for name in run_names(methods).values():
        for path in (folder / f"{name}.run", folder / f"{name}.parquet"):
            if path.exists() and known.get(path.name) != digest_file(path):
                raise ConfigError(f"{path}: this file exists and is not a run of an earlier bench; give another ⟨out⟩")


def _known(folder: Path) -> dict[str, str]:
    path = folder / LIST
    return read_checksums(path.read_bytes().decode("utf-8", "replace"))[0] if path.is_file() else {}


def run_names(methods: Sequence[MitigationMethod]) -> dict[str, str]:
    """Return a file name (without an extension) for the run of each method, by the text of the method."""
    taken: dict[str, str] = {}
    for method in methods:
        taken[slug(method.text, taken, before="")] = method.text
    return {text: name for name, text in taken.items()}


def write_runs(
    out: Path, runs: Mapping[MitigationMethod, Hits], query_ids: Sequence[str], doc_ids: pa.Array
) -> list[Path]:
    """Write the results of each method to runs/*.run, or as Parquet if an id contains white space.

    Runs of an earlier bench are replaced, or removed if this bench has no run of that name.
    """
    folder = out / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    known, ids = _known(folder), pa.array(query_ids, pa.string())
    # White space inside an id would start another column in a TREC run.
    blank = any(pc.any(pc.match_substring_regex(one, r"\s")).as_py() for one in (ids, doc_ids))
    names, written = run_names(list(runs)), []
    for method, hits in runs.items():
        path = folder / f"{names[method.text]}{'.parquet' if blank else '.run'}"
        write_run([run_lines(ids, hits, doc_ids)], path, one_word(method.text))
        written.append(path)
    for name in known.keys() - {path.name for path in written}:
        if (folder / name).is_file() and digest_file(folder / name) == known[name]:
            (folder / name).unlink()
    (folder / LIST).write_text(checksum_text({path.name: digest_file(path) for path in written}), encoding="utf-8")
    return written


__all__ = ["BenchReport", "BenchSettings", "bench", "show_bench"]

# Called with the number of queries done, the total number, and the name of the method.
Progress = Callable[[int, int, str], None]


def bench(
    collection: object,
    methods: Sequence[str | MitigationPlugin] | None = None,
    measures: MeasuresLike | None = None,
    *,
    runs: RunLike | Sequence[RunLike] | Mapping[str, RunLike] | None = None,
    groups: GroupsLike | None = None,
    queries: str | Path | Sequence[str] | None = None,
    settings: BenchSettings | None = None,
    progress: Progress | None = None,
) -> BenchReport:
    """Run mitigation methods on the judged queries of a collection, and compare each with the base ranker.

    ``collection`` is a ``Collection``, anything that ``Collection.open`` accepts, a recipe (a ``Recipe`` or a .toml
    file) or the folder in which ``build`` kept its results (its store). A recipe or a build determines the collection
    and the groups. ``methods`` are objects with a method ``rank``, or texts such as ``"qld"``, ``"greedy@3"``
    (``greedy`` with strength 3) or ``"reformulate:rewrite+greedy"`` (``greedy`` reorders the results of
    ``reformulate:rewrite``). The default methods need no extra package. ``runs`` are runs of your own systems, which
    are compared with the base ranker too. A run is a file, a ``Run``, a data frame or ``{query: {document: score}}``;
    several runs are a list, or a mapping of names to runs. Runs whose names have the form ``NAME@STRENGTH#SEED`` and
    differ only in ``SEED`` are shown as one method. ``measures`` are texts or objects: at least one measure of
    effectiveness and one of bias (lean). Methods that select among reformulations use the first measure of
    effectiveness and the first measure of lean. ``groups`` are the groups whose words the measures and the methods
    count. ``queries`` is a file of queries or a list of ids: only these queries are used. If a method uses a trained
    model, give queries that the model was not trained on.
    """
    given = settings or BenchSettings()
    one_of(given.test, tuple(TESTS), "test")
    source = open_input(collection, given.store, groups)
    requests = ask_measures(measure_texts(measures), source.groups)
    held = {} if runs is None else named_runs(as_runs(runs))
    given_methods = DEFAULT_METHODS if methods is None else methods
    texts = [one for one in given_methods if isinstance(one, str)]
    plugins = {str(getattr(one, "name", type(one).__name__)): one for one in given_methods if not isinstance(one, str)}
    base, others = read_methods(texts, given.base, given.method_settings, list(held), given.sweep)
    others = [*others, *(MitigationMethod(name, REORDER, name) for name in plugins)]
    check_groups(others, leans_of(requests)[0], source.groups)
    out = None if given.out is None else Path(given.out)
    if out is not None:
        check_place(out, [base, *others])
    notes: list[str] = []
    wanted = _queries(source.resources.collection, queries, notes)
    notes += _seen(others, wanted["text"].to_pylist())
    asked = [one.text for one in requests]
    scorer = BenchScorer(asked, source.resources, wanted["query_id"].to_pylist(), source.groups)
    effect, lean = effectiveness_of(requests)[0].text, leans_of(requests)[0].text
    criteria = Criteria(effect, lean, given.agree, given.equivalence)
    runner = MethodRunner(source, wanted, scorer, criteria, base, given.k, held, plugins)
    searches = {method: runner.open(method) for method in others}
    tell = progress or (lambda *_: None)
    scorer.prepare()

    def labeled(label: str) -> Callable[[int, int], None]:
        tell(0, 0, label)
        return lambda done, total: tell(done, total, label)

    found = {base: runner.search_base(labeled(base.text))}
    for method, search in searches.items():
        found[method] = search(labeled(method.text))
    report = _report(runner, scorer, asked, criteria, found, searches, notes, given, source.groups, tell)
    if out is not None:
        write_page([report], out)
        hits = {method: one.hits for method, one in found.items()}
        write_runs(out, hits, runner.query_ids, source.resources.doc_ids)
    return report


def show_bench(scores: Sequence[str | Path], out: str | Path | None = None) -> list[BenchReport]:
    """Recompute the reports of earlier calls of ``bench`` from the scores that ``bench`` saved.

    If ``out`` is given, one page with all reports is written to this folder.
    ``scores`` are folders that ``bench`` wrote, or the files ``tables/scores.parquet`` in these folders.
    """
    reports = [read_scores(one) for one in scores]
    if not reports:
        raise ConfigError("⟨scores⟩: expected one or more folders that bench wrote, found none")
    if out is not None:
        check_place(Path(out), [])
        write_page(reports, Path(out))
    return reports


def _queries(collection: Collection, wanted: str | Path | Sequence[str] | None, notes: list[str]) -> pa.Table:
    """Return the judged queries, or the wanted ones among them; add notes on how many are left out."""
    every = collection.queries
    judged = collection.judged_queries()
    notes += collection.notes("queries", "judgements")
    if judged.num_rows < every.num_rows:
        left = every.num_rows - judged.num_rows
        words = f"{left:,} of {every.num_rows:,} queries have no judgement: left out"
        notes.append(Note(words, code="no-judgement", queries=left))
    if wanted is None:
        return judged
    if isinstance(wanted, str | Path):
        ids, name = read_queries(Path(wanted))["query_id"].to_pylist(), f"queries {wanted}"
    else:
        ids, name = list(wanted), "⟨queries⟩"
    chosen = judged.filter(pc.is_in(judged["query_id"], value_set=pa.array(ids, pa.string())))
    if not chosen.num_rows:
        raise DataError(
            f"{name}: none of its {len(ids):,} queries is among the {judged.num_rows:,} judged queries of "
            f"{collection.id}; give queries of this collection",
            code="no-judged-query",
            queries=len(ids),
            judged=judged.num_rows,
        )
    if chosen.num_rows < len(ids):
        left = len(ids) - chosen.num_rows
        words = f"{name}: {left:,} of {len(ids):,} queries are not judged queries of {collection.id}"
        notes.append(Note(words, code="not-judged", queries=left))
    left = judged.num_rows - chosen.num_rows
    words = f"{left:,} of {judged.num_rows:,} judged queries were not requested"
    notes.append(Note(words, code="not-requested", queries=left))
    return chosen


def _seen(methods: Sequence[MitigationMethod], texts: Sequence[str]) -> list[str]:
    """Return notes on models that are evaluated on queries they may have been trained on."""
    notes: list[str] = []
    for method in [part for one in methods for part in one.parts]:
        folder = Path(method.choice if method.trained else method.name)
        seen = seen_by(folder, texts) if method.trained or method.kind == RERANK else None
        if seen == len(texts):
            words = (
                f"{method.text}: none of the queries was held out when the model was trained; if the model was trained "
                "on queries of this collection, its scores are too high"
            )
            notes.append(Note(words, code="none-held-out"))
        elif seen:
            words = (
                f"{method.text}: {seen:,} of {len(texts):,} queries were not held out when the model was trained, so "
                f"its scores are too high; give ⟨queries⟩ {folder / HELD_OUT}"
            )
            notes.append(Note(words, code="not-held-out", queries=seen, held_out=folder / HELD_OUT))
    return notes


def _report(
    runner: MethodRunner, scorer: BenchScorer, texts: Sequence[str], criteria: Criteria,
    found: Mapping[MitigationMethod, MethodRun], searches: Mapping[MitigationMethod, Search], notes: list[str],
    given: BenchSettings, groups: Groups | None, progress: Progress,
) -> BenchReport:  # fmt: skip
    base_top = top_documents(runner.base.hits)
    meter, scored = scorer.effect_meter(runner.base.hits), []
    for method, one in found.items():
        # A query without results in the base has nothing to keep.
        kept = kept_share(base_top, top_documents(one.hits))[np.diff(runner.base.hits.offsets) > 0]
        empty = int((np.diff(one.hits.offsets) == 0).sum())
        costs = Costs(one.searches, one.model_calls, float(kept.mean()), empty, one.reformulated)
        effect = None
        if meter is not None and method in searches:
            progress(0, 0, f"placebo lists: {method.text}")
            effect = meter.effect(one.hits, runner.again(method, searches[method]))
        scored.append(Scored(method, scorer.score(one.hits, only=texts), costs, effect))
    complete = [
        BenchMeasure(one.text, _size_signature(one), one.direction, one.bounds, one.judged)
        for one in scorer.asked
        if one.text in texts
    ]
    queries = len(runner.query_ids)
    more = [note for one in found.values() for note in one.notes]
    more += [
        Note(
            f"{one.method.text}: {one.costs.empty:,} of {queries:,} queries have no results",
            code="no-results",
            queries=one.costs.empty,
        )
        for one in scored
        if one.costs.empty
    ]
    rules = rules_of(list(found), criteria, given.k)
    named = None
    if groups is not None:
        named = {"lexicon": groups.lexicon.id, "lexicon_name": groups.lexicon.name, "names": list(groups.names)}
    return make_report(
        runner.resources.collection.id, runner.query_ids, given.k, given.agree, complete, scored, rules,
        [*notes, *more], named, given.test,
    )  # fmt: skip


def _size_signature(one: MeasureRequest) -> str:
    """The signature of the reported values: the absolute values of a measure whose best value is 0."""
    if one.direction is not Direction.ZERO:
        return one.signature
    signed = one.measure.param("sign") == "signed"
    return replace(one, measure=one.measure(sign="abs")).signature if signed else f"|{one.signature}|"


def rules_of(methods: Sequence[MitigationMethod], criteria: Criteria, k: int) -> list[str]:
    """Explain how the methods of this bench select, and how a query without results counts."""
    base, *others = methods
    parts = [part for one in others for part in one.parts]
    rules = []
    if any(part.by_results for part in parts):
        rules.append(
            f"The method 'reformulate:METHOD' runs a search with {base.text} for every reformulation. A reformulation "
            f"is eligible if it leans less than the original query, measured by {criteria.lean}, and if at least "
            f"{100 * criteria.agree:g}% of the top 10 documents of the original query are also in the top 10 of the "
            "reformulation. The method selects the eligible reformulation that leans least. If none is eligible, the "
            "method keeps the original query. The method reads no judgements."
        )
    if any(part.by_results and part.strength is not None for part in parts):
        rules.append(
            "The method 'reformulate:METHOD@N' runs searches only for N reformulations of a query: those with the "
            "highest estimated probability of asking for the same thing as the query."
        )
    if any(part.choice == ONE_SEARCH for part in parts):
        rules.append(
            f"The method 'reformulate:METHOD:{ONE_SEARCH}' runs one search for each query. It replaces the query by "
            "the reformulation with the highest estimated probability of asking for the same thing as the query."
        )
    if any(part.trained for part in parts):
        rules.append(
            "The method 'reformulate:METHOD:FOLDER' selects a reformulation with the trained selector in FOLDER. The "
            "selector reads no judgements. Evaluate the selector only on queries that it was not trained on."
        )
    if any(part.bound for part in parts):
        rules.append(
            f"The method 'reformulate:METHOD:oracle' considers only the reformulations for which "
            f"{criteria.effectiveness} is not worse than for the original query. Among these, it selects the one that "
            f"leans least, measured by {criteria.lean}. This method reads the judgements, so it is not a usable system "
            "but an upper bound. The bound is the largest reduction of lean that selecting among these "
            "reformulations can give without a loss of effectiveness."
        )
    if any(part.kind == REORDER for part in parts):
        rules.append(
            "For each document, a method that reorders results counts the words that name a group. Such a method "
            f"counts the same words as {criteria.lean}. It does not use the text of the query."
        )
    if any(one.seed is not None for one in others):
        rules.append(
            "Runs of one method with several random seeds form one row of the table. The value of a query is the mean "
            "over the seeds."
        )
    return [
        *rules,
        "A query without results has an effectiveness of 0 and no value of lean. Means are computed over the queries "
        "for which every method has a value.",
        f"Methods rank up to {k:,} documents per query. Measures that compare a result list with a background set of "
        f"documents use the documents that {base.text} retrieves.",
    ]
