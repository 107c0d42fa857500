"""Levers on one collection and one set of queries. The whole of ``askew bench``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.app.bench.choosing import check_agree
from askew.app.bench.methods import DEFAULTS, GROUPS, REFORMULATE, RERANK, Lever, read_levers
from askew.app.bench.page import write_page
from askew.app.bench.results import BenchReport, Row, compared, fronts
from askew.app.bench.runs import Criteria, MethodRun, World
from askew.app.bench.saved import check_place, write_runs
from askew.app.bench.scoring import BenchScorer, ask_measures, effectiveness_of, leans_of
from askew.app.build.built_pairs import LEAN
from askew.app.train.held_out import HELD_OUT, seen_by
from askew.core.errors import ConfigError, DataError
from askew.corpora.collection import Collection
from askew.corpora.queries import read_queries
from askew.engine.store import Store

# So much is done, of so much, and of what.
Progress = Callable[[int, int, str], None]


def bench(
    source: str,
    levers: Sequence[str] | None = None,
    *,
    base: str = "bm25",
    measures: str | Sequence[str] | None = None,
    k: int = 100,
    agree: float = 0.5,
    queries: str | Path | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    out: Path | None = None,
    store: str | Path = ".askew",
    progress: Progress | None = None,
) -> BenchReport:
    """Run levers on the judged queries of a collection, and compare each with the base ranker.

    Every lever answers the same queries with at most ``k`` documents each. ``queries`` is a file with those to take,
    such as those that no model was trained on; ``settings`` are those of a lever by its text. With ``out`` the report,
    its tables and the runs are written there.
    """
    if k < 1:
        raise ConfigError(f"bench: expected k of 1 or more, found {k}")
    asked = ask_measures(measures)
    first, others = read_levers(DEFAULTS if levers is None else levers, base, settings)
    choice = Criteria(effectiveness_of(asked)[0].text, leans_of(asked)[0].text, check_agree(agree))
    if out is not None:
        check_place(out, [first, *others])
    notes: list[str] = []
    world = World(source, Store(store), first, k)
    world.set_queries(_queries(world.resources.collection, queries, notes))
    notes += _seen(others, world.queries["text"].to_pylist())
    texts = [one.text for one in asked]
    # A trained selector reads this lean of the results, whether it is asked for or not.
    more = [LEAN] if LEAN not in texts and any(lever.trained for lever in others) else []
    scorer = BenchScorer([*texts, *more], world.resources, world.query_ids)
    finders = {lever: world.open(lever, choice) for lever in others}
    scorer.prepare()
    found = {first: world.search_base(scorer, _told(progress, first.text))}
    for lever, find in finders.items():
        found[lever] = find(_told(progress, lever.text))
    report = _report(world, scorer, asked, choice, found, notes, k)
    if out is not None:
        write_page(report, out)
        write_runs(out, {lever: one.hits for lever, one in found.items()}, world.query_ids, world.resources.doc_ids)
    return report


def _told(progress: Progress | None, label: str) -> Callable[[int, int], None]:
    def told(done: int, total: int) -> None:
        if progress is not None:
            progress(done, total, label)

    return told


def _queries(collection: Collection, wanted: str | Path | None, notes: list[str]) -> pa.Table:
    """The judged queries, or those of them that a file names; who is left out is counted."""
    every = collection.queries
    judged = collection.judged_queries()
    notes += collection.notes("queries", "judgements")
    if judged.num_rows < every.num_rows:
        notes.append(f"{every.num_rows - judged.num_rows:,} of {every.num_rows:,} queries have no judgement: left out")
    if wanted is None:
        return judged
    ids = read_queries(Path(wanted))["query_id"]
    chosen = judged.filter(pc.is_in(judged["query_id"], value_set=ids.combine_chunks()))
    if not chosen.num_rows:
        raise DataError(
            f"queries {wanted}: none of its {len(ids):,} is among the {judged.num_rows:,} judged queries of "
            f"{collection.id}; give queries of this collection"
        )
    if chosen.num_rows < len(ids):
        notes.append(f"{len(ids) - chosen.num_rows:,} of {len(ids):,} queries of {wanted} are no judged queries here")
    notes.append(f"{judged.num_rows - chosen.num_rows:,} of {judged.num_rows:,} judged queries were not asked for")
    return chosen


def _seen(levers: Sequence[Lever], texts: Sequence[str]) -> list[str]:
    """Models that are asked what they were trained on: that flatters them."""
    told = []
    for lever in levers:
        folder = Path(lever.choice if lever.trained else lever.name)
        seen = seen_by(folder, texts) if lever.trained or lever.kind == RERANK else None
        if seen:
            told.append(
                f"{lever.text}: {seen:,} of {len(texts):,} queries were not held out when it was trained, which "
                f"flatters it; give --queries {folder / HELD_OUT}"
            )
    return told


def _report(
    world: World, scorer: BenchScorer, asked: Sequence[Any], choice: Criteria, found: Mapping[Lever, MethodRun],
    notes: list[str], k: int,
) -> BenchReport:  # fmt: skip
    texts = [one.text for one in asked]
    values = {lever.text: scorer.score(one.hits, only=texts) for lever, one in found.items()}
    complete = [one for one in scorer.asked if one.text in texts]
    cells = compared(values, complete)
    leans = [one.text for one in leans_of(complete)]
    systems = [lever.text for lever in found if not lever.bound]
    front = fronts(cells, systems, choice.effectiveness, leans, scorer.directions)
    empty = {lever: int((np.diff(one.hits.offsets) == 0).sum()) for lever, one in found.items()}
    rows = [
        Row(lever, cells[lever.text], front[lever.text], empty[lever], one.otherwise, one.seconds)
        for lever, one in found.items()
    ]
    told = [f"{lever.text}: {note}" for lever, one in found.items() for note in one.notes]
    told += [f"{lever.text}: {n:,} of {len(world.query_ids):,} queries find nothing" for lever, n in empty.items() if n]
    return BenchReport(
        world.resources.collection.id, world.query_ids, k, choice.agree, complete,
        [one.text for one in effectiveness_of(complete)], leans, rows, rules_of(list(found), choice, k),
        [*notes, *told, *_short(cells, len(world.query_ids))], values,
    )  # fmt: skip


def _short(cells: Mapping[str, Mapping[str, Any]], queries: int) -> list[str]:
    """Measures that are not over all queries."""
    base = next(iter(cells.values()))
    return [
        f"{name}: over the {cell.n:,} of {queries:,} queries for which every lever has a value"
        for name, cell in base.items()
        if cell.n < queries
    ]


def rules_of(levers: Sequence[Lever], choice: Criteria, k: int) -> list[str]:
    """How levers choose, and what counts for a query that finds nothing; only what is used here."""
    said = []
    base, *others = levers
    asking = [lever for lever in others if lever.kind == REFORMULATE]
    if any(not lever.choice for lever in asking):
        said.append(
            f"reformulate:METHOD searches every candidate with {base.text} and takes the one whose own results lean "
            f"least by {choice.lean}, of those that lean less than the original's and keep at least "
            f"{100 * choice.agree:g}% of its first ten; else the original. No judgement is read."
        )
    if any(lever.trained for lever in asking):
        said.append(
            "reformulate:METHOD:FOLDER lets a trained selector choose. No judgement is read; it is judged honestly "
            "only on queries that it was not trained on (--queries)."
        )
    if any(lever.bound for lever in asking):
        said.append(
            f"reformulate:METHOD:oracle takes, by the judgements, the candidate that leans least by {choice.lean} of "
            f"those that lose no {choice.effectiveness}: the most that the method could do without a loss, an upper "
            "bound that no system can reach."
        )
    if any(lever.kind == RERANK and lever.name == GROUPS for lever in others):
        said.append(
            f"rerank:{GROUPS} gives the groups of documents even shares of the first places of {base.text}'s list; it "
            "counts words of a lexicon as ARaB does, and knows nothing of the query."
        )
    said.append(
        "A query that finds nothing has an effectiveness of 0 and no lean. A measure is over the queries for which "
        "every lever has a value."
    )
    said.append(f"Levers rank up to {k:,} documents a query; a measure with a background has what {base.text} found.")
    return said
