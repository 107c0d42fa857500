"""The table of negatives.py: every method and strength against the usual training with the same seeds.

A value of a query is the mean over the seeds; measures that are best at zero count by their distance from zero, query
by query. Intervals and tests are over queries, for the seeds that were trained; the change of each seed stands beside
them. p is corrected by Holm over all rows and measures of a collection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from negatives_data import NO_DOCUMENT, TESTS, TRAIN, Seen, TestSet, documents, frame, open_test_set, print_facts
from negatives_train import NO_PLACE, Kept

import askew
from askew.core.measure import Direction
from askew.data.collection import open_collection
from askew.measures.statistics.intervals import mean_with_interval, size_bounds
from askew.search.retrieve import write_run
from askew.study.bench.results import BenchMeasure, Cell, compared

MEASURES = (
    "nDCG@10", "RR@10", "ARaB(tf)@10", "ARaB(tf,lexicon=rekabsaz2021)@10", "NFaiRR@10", "ARaB(tf,who=generic)@10",
)  # fmt: skip
TITLES = {"BoolQ": ("boolq",), "FairytaleQA": ("fairytaleqa",), "DL 2019 and 2020": ("dl19", "dl20")}
ORIGINAL = "original-0"
BM25 = "bm25"


def evaluate(folder: Path, data: Path, runs_folder: Path | None = None) -> None:
    """Measure the kept rankings, and write them as runs where a folder is given."""
    kept = Kept.read([folder], TESTS)
    if not kept.about["rows"]:
        raise SystemExit(f"{folder}: expected kept results of negatives.py train, found none")
    print(f"trained on {kept.about['hardware']}: {pace_of(kept)}")
    print_facts(kept.about["facts"])
    seen = Seen.of(documents(data, TRAIN)["text"].to_list())
    values: dict[str, dict[str, Any]] = {}
    for name in TESTS:
        test = open_test_set(data, name, seen, kept.about["facts"].get("most"))
        refuse_other(test, kept.about["facts"]["tests"][name])
        runs = runs_of(test, kept.places[name])
        if runs_folder is not None:
            write_runs(runs_folder / name, test, runs)
        values[name], requests = values_of(data, test, runs)
    for title, names in TITLES.items():
        print_table(title, joined([values[name] for name in names]), requests)


def refuse_other(test: TestSet, expected: Mapping[str, Any]) -> None:
    """The kept places mean nothing with other candidates."""
    if test.digest != expected["digest"]:
        raise SystemExit(
            f"{test.name}: expected candidates with the digest {expected['digest']}, found {test.digest}; the data or "
            "BM25 differ from those of the kept results: prepare and train again"
        )


def pace_of(kept: Kept) -> str:
    """How the rankers were trained, for people."""
    pace = next(iter(kept.about["rows"].values()))["pace"]
    return ", ".join(f"{name} {pace[name]}" for name in ("epochs", "batch_size", "learning_rate"))


def runs_of(test: TestSet, places: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """The candidates in the order of BM25, and the top documents of every training."""
    every = np.broadcast_to(np.arange(test.candidates.shape[1]), test.candidates.shape)
    runs = {BM25: run_of(test, np.where(test.candidates == NO_DOCUMENT, -1, every))}
    for name, top in places.items():
        runs[name] = run_of(test, np.where(top == NO_PLACE, -1, top.astype(np.int64)))
    return runs


def run_of(test: TestSet, places: Any) -> pl.DataFrame:
    """The lines of a run: places among the candidates, best first, -1 where there is none."""
    row, rank = np.nonzero(places >= 0)
    docs = test.candidates[row, places[row, rank]]
    return pl.DataFrame(
        {
            "query_id": pl.Series(test.query_ids, dtype=pl.String).gather(row),
            "doc_id": pl.Series(test.doc_ids, dtype=pl.String).gather(docs),
            "rank": rank + 1,
            "score": -rank.astype(np.float64),
        }
    )


def write_runs(folder: Path, test: TestSet, runs: Mapping[str, pl.DataFrame]) -> None:
    """Files for ``askew bench COLLECTION --queries queries.tsv --method run:FILE``."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = (f"{query}\t{text}\n" for query, text in zip(test.query_ids, test.queries, strict=True))
    (folder / "queries.tsv").write_text("".join(lines), encoding="utf-8")
    for name, run in runs.items():
        write_run([run], folder / f"{name}.run", name)


def values_of(data: Path, test: TestSet, runs: Mapping[str, pl.DataFrame]) -> tuple[dict[str, Any], list[BenchMeasure]]:
    """The value of every query by run and measure, in one order; the distance from zero where that is best."""
    folder = TESTS[test.name][0]
    judged = frame(open_collection(f"{data}/{folder}").judgements.select(["query_id", "doc_id", "relevance"]))
    judged = judged.filter(pl.col("query_id").is_in(test.query_ids))
    docs = pl.DataFrame({"doc_id": test.doc_ids, "text": test.docs})
    report = askew.measure(
        dict(runs), docs=docs, qrels=judged, measures=list(MEASURES), background=runs[BM25]
    )  # fmt: skip
    place = {query: at for at, query in enumerate(test.query_ids)}
    found = {}
    for run in report.runs:
        order = np.argsort([place[query] for query in run.query_ids])
        found[run.name] = {one.text: sizes(run.values[one.text][order], one.direction) for one in report.asked}
    asked = [BenchMeasure(one.text, one.signature, one.direction, one.bounds, one.judged) for one in report.asked]
    return found, asked


def sizes(values: Any, direction: Direction) -> Any:
    """Values as they are compared."""
    return np.abs(values) if direction is Direction.ZERO else values


def joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The queries of several collections as one."""
    first = parts[0]
    return {run: {text: np.concatenate([part[run][text] for part in parts]) for text in first[run]} for run in first}


def by_row(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """The runs of each method and strength by its name; only seeds that every one of them has."""
    found: dict[str, dict[str, str]] = {}
    for name in values:
        row, _, seed = name.rpartition("-seed")
        if row:
            found.setdefault(row, {})[seed] = name
    if ORIGINAL not in found:
        raise SystemExit("kept results: expected those of the usual training (original), found none; train it too")
    seeds = sorted(set.intersection(*(set(one) for one in found.values())))
    if not seeds:
        raise SystemExit("kept results: expected one seed or more that every method has, found none")
    rows = [ORIGINAL, *(row for row in found if row != ORIGINAL)]
    return {row: [found[row][seed] for seed in seeds] for row in rows}


def mean_over(values: Mapping[str, Any], runs: Sequence[str]) -> dict[str, Any]:
    """The mean of some runs, query by query."""
    return {text: np.mean([values[run][text] for run in runs], axis=0) for text in values[runs[0]]}


def print_table(title: str, values: Mapping[str, Any], requests: Sequence[Any]) -> None:
    """All methods and strengths on one collection."""
    rows = by_row(values)
    seeds = [run.rpartition("-seed")[2] for run in rows[ORIGINAL]]
    means = {row: mean_over(values, runs) for row, runs in rows.items()}
    cells = compared(means, requests)
    each = [
        compared({row: values[runs[at]] for row, runs in rows.items()}, requests) for at in range(len(seeds))
    ]  # fmt: skip
    number = len(next(iter(means[ORIGINAL].values())))
    print(f"\n{title}: {number:,} queries; mean of the seeds {', '.join(seeds)}, change against {ORIGINAL}")
    print(f"BM25: {'  '.join(f'{label(one)} {np.nanmean(values[BM25][one.text]):.4f}' for one in requests)}")
    for row in rows:
        print(row)
        for line in lines_of(row, means[row], cells[row], [one[row] for one in each], requests):
            print(line)


def lines_of(
    row: str, mean: Mapping[str, Any], cells: Mapping[str, Cell], each: Sequence[Mapping[str, Cell]], requests: Any
) -> Iterator[str]:
    """One line for each measure: the mean with its interval, or the change against the usual training."""
    for one in requests:
        cell = cells[one.text]
        line = f"  {label(one):36} {cell.mean:.4f}"
        if row == ORIGINAL:
            found = mean_with_interval(mean[one.text], bounds_of(one))
            yield f"{line} [{number(found.low)}, {number(found.high)}] n={cell.n:,}"
            continue
        seeds = " ".join(percent(seed[one.text].change) for seed in each)
        change = f"{percent(cell.change)} [{percent(cell.low)}, {percent(cell.high)}]"
        p = "-" if cell.p_holm is None else f"{cell.p_holm:.4f}" if cell.p_holm >= 0.0001 else "<0.0001"
        yield f"{line} {change} p {p}; by seed {seeds}"


def label(request: Any) -> str:
    """A measure as tables name it."""
    return f"|{request.text}|" if request.direction is Direction.ZERO else str(request.text)


def bounds_of(request: Any) -> Any:
    """The bounds of the values that are compared."""
    return size_bounds(request.bounds) if request.direction is Direction.ZERO else request.bounds


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f}%"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
