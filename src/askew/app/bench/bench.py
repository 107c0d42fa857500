"""Compare mitigation methods on one collection and one set of queries: the whole of ``askew bench``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.app.bench.methods import REFORMULATE, RERANK, MitigationMethod, read_methods
from askew.app.bench.page import write_page
from askew.app.bench.results import BenchReport, Row, compared, pareto_optimal
from askew.app.bench.runs import Criteria, MethodRun, MethodRunner
from askew.app.bench.saved import check_place, write_runs
from askew.app.bench.scoring import BenchScorer, ask_measures, effectiveness_of, leans_of
from askew.app.bench.settings import DEFAULT_METHODS, BenchSettings
from askew.app.bench.start import check_groups, open_input
from askew.app.build.built_pairs import LEAN
from askew.app.measure.inputs import MeasuresLike, as_runs, measure_texts
from askew.app.scoring.universe import RunLike, named_runs
from askew.app.train.held_out import HELD_OUT, seen_by
from askew.core.errors import DataError
from askew.core.groups import Groups, GroupsLike
from askew.corpora.collection import Collection
from askew.corpora.queries import read_queries
from askew.measures.catalogue import MeasureRequest
from askew.rankers.fairorder import EVEN

__all__ = ["BenchReport", "BenchSettings", "bench"]

# How much is done, of how much, and of what.
Progress = Callable[[int, int, str], None]


def bench(
    collection: object,
    methods: Sequence[str] | None = None,
    measures: MeasuresLike | None = None,
    *,
    runs: RunLike | Sequence[RunLike] | Mapping[str, RunLike] | None = None,
    groups: GroupsLike | None = None,
    queries: str | Path | Sequence[str] | None = None,
    settings: BenchSettings | None = None,
    progress: Progress | None = None,
) -> BenchReport:
    """Run mitigation methods on the judged queries of a collection, and compare each with the base ranker.

    ``collection`` is a ``Collection``, or whatever one can be opened from; or a recipe (a ``Recipe`` or a .toml file)
    or the store of a build, which bring their collection and groups. ``methods`` are texts such as ``"qld"``,
    ``"rerank:detconstsort"`` or ``"reformulate:extract"``; by default those that need nothing but askew. ``runs`` are
    compared too: a file, a ``Run``, a data frame, ``{query: {document: score}}``, or a mapping of names to such.
    ``measures`` are texts or objects, at least one of effectiveness and one of bias (lean); methods choose by the first
    of each. Measures and methods count ``groups``. ``queries`` restricts the queries: a file, or their ids; give those
    that no model was trained on.
    """
    given = settings or BenchSettings()
    source = open_input(collection, given.store, groups)
    requests = ask_measures(measure_texts(measures), source.groups)
    held = {} if runs is None else named_runs(as_runs(runs))
    texts = DEFAULT_METHODS if methods is None else methods
    base, others = read_methods(texts, given.base, given.method_settings, list(held))
    check_groups(others, leans_of(requests)[0], source.groups)
    out = None if given.out is None else Path(given.out)
    if out is not None:
        check_place(out, [base, *others])
    notes: list[str] = []
    wanted = _queries(source.resources.collection, queries, notes)
    notes += _seen(others, wanted["text"].to_pylist())
    scorer = BenchScorer(_scored(requests, others), source.resources, wanted["query_id"].to_pylist(), source.groups)
    criteria = Criteria(effectiveness_of(requests)[0].text, leans_of(requests)[0].text, given.agree)
    runner = MethodRunner(source, wanted, scorer, criteria, base, given.k, held)
    searches = {method: runner.open(method) for method in others}
    scorer.prepare()
    found = {base: runner.search_base(_labeled(progress, base.text))}
    for method, search in searches.items():
        found[method] = search(_labeled(progress, method.text))
    report = _report(runner, scorer, [one.text for one in requests], criteria, found, notes, given, source.groups)
    if out is not None:
        write_page(report, out)
        hits = {method: one.hits for method, one in found.items()}
        write_runs(out, hits, runner.query_ids, source.resources.doc_ids)
    return report


def _labeled(progress: Progress | None, label: str) -> Callable[[int, int], None]:
    def advance(done: int, total: int) -> None:
        if progress is not None:
            progress(done, total, label)

    return advance


def _scored(requests: Sequence[MeasureRequest], methods: Sequence[MitigationMethod]) -> list[str]:
    """The measures that are computed: a trained selector reads a certain lean of the results, requested or not."""
    texts = [one.text for one in requests]
    return [*texts, *([LEAN] if LEAN not in texts and any(method.trained for method in methods) else [])]


def _queries(collection: Collection, wanted: str | Path | Sequence[str] | None, notes: list[str]) -> pa.Table:
    """The judged queries, or some of them; how many are left out is noted."""
    every = collection.queries
    judged = collection.judged_queries()
    notes += collection.notes("queries", "judgements")
    if judged.num_rows < every.num_rows:
        notes.append(f"{every.num_rows - judged.num_rows:,} of {every.num_rows:,} queries have no judgement: left out")
    if wanted is None:
        return judged
    is_file = isinstance(wanted, str | Path)
    ids = read_queries(Path(wanted))["query_id"].to_pylist() if isinstance(wanted, str | Path) else list(wanted)
    name = f"queries {wanted}" if is_file else "queries="
    chosen = judged.filter(pc.is_in(judged["query_id"], value_set=pa.array(ids, pa.string())))
    if not chosen.num_rows:
        raise DataError(
            f"{name}: none of its {len(ids):,} is among the {judged.num_rows:,} judged queries of {collection.id}; "
            "give queries of this collection"
        )
    if chosen.num_rows < len(ids):
        notes.append(f"{name}: {len(ids) - chosen.num_rows:,} of {len(ids):,} queries are not judged queries here")
    notes.append(f"{judged.num_rows - chosen.num_rows:,} of {judged.num_rows:,} judged queries were not requested")
    return chosen


def _seen(methods: Sequence[MitigationMethod], texts: Sequence[str]) -> list[str]:
    """Models that are evaluated on queries they were trained on."""
    notes = []
    for method in methods:
        folder = Path(method.choice if method.trained else method.name)
        seen = seen_by(folder, texts) if method.trained or method.kind == RERANK else None
        if seen:
            notes.append(
                f"{method.text}: {seen:,} of {len(texts):,} queries were not held out when the model was trained, so "
                f"its results are too good; give queries= {folder / HELD_OUT}"
            )
    return notes


def _report(
    runner: MethodRunner, scorer: BenchScorer, texts: Sequence[str], criteria: Criteria,
    found: Mapping[MitigationMethod, MethodRun], notes: list[str], given: BenchSettings, groups: Groups | None,
) -> BenchReport:  # fmt: skip
    values = {method.text: scorer.score(one.hits, only=texts) for method, one in found.items()}
    complete = [one for one in scorer.asked if one.text in texts]
    cells = compared(values, complete)
    leans = [one.text for one in leans_of(complete)]
    systems = [method.text for method in found if not method.bound]
    optimal = pareto_optimal(cells, systems, criteria.effectiveness, leans, scorer.directions)
    empty = {method: int((np.diff(one.hits.offsets) == 0).sum()) for method, one in found.items()}
    rows = [
        Row(method, cells[method.text], optimal[method.text], empty[method], one.reformulated, one.seconds)
        for method, one in found.items()
    ]
    queries = len(runner.query_ids)
    more = [f"{method.text}: {note}" for method, one in found.items() for note in one.notes]
    more += [f"{method.text}: {n:,} of {queries:,} queries have no results" for method, n in empty.items() if n]
    return BenchReport(
        runner.resources.collection.id, runner.query_ids, given.k, criteria.agree, complete,
        [one.text for one in effectiveness_of(complete)], leans, rows, rules_of(list(found), criteria, given.k),
        [*notes, *more, *_incomplete(cells, queries)], values, groups,
    )  # fmt: skip


def _incomplete(cells: Mapping[str, Mapping[str, Any]], queries: int) -> list[str]:
    """Measures that are not over all queries."""
    base = next(iter(cells.values()))
    return [
        f"{name}: over the {cell.n:,} of {queries:,} queries for which every method has a value"
        for name, cell in base.items()
        if cell.n < queries
    ]


def rules_of(methods: Sequence[MitigationMethod], criteria: Criteria, k: int) -> list[str]:
    """How methods choose, and what counts for a query without results; only what is used here."""
    base, *others = methods
    rules = []
    choosing = [method for method in others if method.kind == REFORMULATE]
    if any(not method.choice for method in choosing):
        rules.append(
            f"reformulate:METHOD searches every reformulation with {base.text}. Of those whose results lean less than "
            f"those of the original query and keep at least {100 * criteria.agree:g}% of its top 10, it chooses the "
            f"one that leans least by {criteria.lean}; if there is none, the original query. It reads no judgement."
        )
    if any(method.trained for method in choosing):
        rules.append(
            "reformulate:METHOD:FOLDER chooses by a trained selector. It reads no judgement; evaluate it only on "
            "queries that it was not trained on."
        )
    if any(method.bound for method in choosing):
        rules.append(
            f"reformulate:METHOD:oracle chooses, by the judgements, the reformulation that leans least by "
            f"{criteria.lean} of those that lose no {criteria.effectiveness}: an upper bound of what the method can "
            "do without a loss."
        )
    for method in [method for method in others if method.reranks_groups]:
        shares = "its target shares" if method.settings.get("targets", EVEN) != EVEN else "even shares"
        rules.append(
            f"{method.text} gives the groups of documents {shares} of the top ranks of {base.text}. It counts the "
            "words that name a group, and does not read the query."
        )
    rules.append(
        "A query without results has an effectiveness of 0 and no lean. A mean is over the queries for which every "
        "method has a value."
    )
    rules.append(
        f"Methods rank up to {k:,} documents per query; the background of a measure is the documents of {base.text}."
    )
    return rules
