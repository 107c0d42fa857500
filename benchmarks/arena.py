"""Mitigation methods side by side on BoolQ, FairytaleQA and TREC DL 2019 and 2020: the table and the page.

    python benchmarks/arena.py run boolq --data DATA --work WORK     search, measure, and keep the scores of every query
    python benchmarks/arena.py run dl --seed 8 --data DATA --work WORK   the rewriting model alone, with another seed
    python benchmarks/arena.py show [--out PAGE]                     tables and the page again, from the kept scores
    python benchmarks/arena.py effects --data DATA                   what each method changes beyond chance

``run`` calls askew.bench with METHODS and keeps what it writes to ``tables/scores.parquet`` under ``benchmarks/arena``.
The queries are those of negatives.py, and its rankers take part as runs, three seeds each: they were trained on SQuAD,
which shares no document with these collections. The kept scores of selectors are of those of selector.py, also trained
on SQuAD; their lean-aware rule has left askew. No model of askew was trained on the queries. The base is BM25 with 100
documents per query; with ``--base dense`` the methods that need no training are built on a dense ranker
(all-MiniLM-L6-v2) instead.

``show`` is ``askew bench --from benchmarks/arena/boolq.parquet --from ... --out PAGE``.

``effects`` runs EFFECTS on samples of the judged queries, also on placebo lists (see askew.measures.effects), and
measures them with the words of a second lexicon that the default one does not have.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from negatives_data import TESTS, Seen, documents, open_test_set

import askew
from askew.core.lexicon import load_lexicon
from askew.study.bench.bench import show_bench
from askew.study.bench.results import SCORES, compared, merged_seeds

KEPT = Path(__file__).with_name("arena")
# The collections, by the test sets of negatives.py that they are made of.
COLLECTIONS = {"boolq": ("boolq",), "fairytaleqa": ("fairytaleqa",), "dl": ("dl19", "dl20")}
# Of one judgement per query, AP@10 is RR@10: it is measured on DL only.
EFFECTIVENESS = {"boolq": "nDCG@10 RR@10", "fairytaleqa": "nDCG@10 RR@10", "dl": "nDCG@10 RR@10 AP@10"}
LEAN = "ARaB(tf)@10 ARaB(tf,lexicon=rekabsaz2021)@10 LexiconShare@10 NFaiRR@10 ARaB(tf,who=generic)@10"
REORDERED = ("greedy@2,3,5,10", "mmr@0.25,0.5,0.75,0.9", "detconstsort@0.25,0.5,0.75,1", "fairtopk@0.25,0.5,0.75,1")
# How many reformulations are searched: the strength of the rewriting model.
SWEEP = "reformulate:rewrite@1,3,5,10"
REFORMULATED = (
    "reformulate:reduce", "reformulate:reduce:one-search", "reformulate:rewrite:one-search",
    SWEEP, "reformulate:rewrite", "reformulate:rewrite+greedy@2,3,5",
    "reformulate:rewrite:one-search+greedy@3", "reformulate:rewrite:oracle",
)  # fmt: skip
METHODS = {
    "bm25": ("qld", "rm3", "dense", "fusion:bm25,dense", *REORDERED, "fusion:bm25,dense+greedy@3", *REFORMULATED),
    "dense": ("bm25", *REORDERED, *REFORMULATED),
}
# Methods that the conclusions of docs/results.md name; and those compared with the greedy window, query by query.
NAMED = (
    "greedy@3", "greedy@10", "mmr@0.75", "detconstsort@1", "fairtopk@1", "dense", "fusion:bm25,dense+greedy@3",
    "reformulate:reduce", "reformulate:rewrite:one-search", "reformulate:rewrite:one-search+greedy@3",
    "reformulate:rewrite", "reformulate:rewrite+greedy@3", "reformulate:rewrite:selector", "reformulate:rewrite:oracle",
    "run:cross-encoder", "run:negatives@0.5", "run:lean-list@0.5", "run:adversary@1",
)  # fmt: skip
# What ``effects`` runs by default (methods without a neural network), and the number of queries.
EFFECTS = (
    "qld", "rm3", "greedy@3", "greedy@10", "mmr@0.75", "detconstsort@1", "fairtopk@1", "reformulate:reduce",
    "reformulate:reduce:one-search", "reformulate:reduce+greedy@3",
)  # fmt: skip
SAMPLE, SEED = 500, 20
GREEDY = "greedy@3"
RIVALS = tuple(one for one in NAMED if one.startswith("reformulate:rewrite") and "oracle" not in one)
SHOWN = {
    "nDCG@10": "nDCG@10", "ARaB(tf)@10": "|ARaB(tf)|", "ARaB(tf,lexicon=rekabsaz2021)@10": "other lexicon",
    "ARaB(tf,who=generic)@10": "generic mentions",
}  # fmt: skip
# The measures as headers of a Markdown table, and the collections as a reader knows them.
HEADER = tuple(label.replace("|", r"\|") for label in SHOWN.values())
NAMES = {
    "boolq, base bm25": "BoolQ", "fairytaleqa, base bm25": "FairytaleQA", "dl, base bm25": "DL",
    "dl, base dense": "DL, dense base",
}  # fmt: skip
# What a trained cross-encoder costs: one search, and each of its 100 documents read with the query.
COSTS = {"searches": 1, "model_calls": 100}


def write_collection(data: Path, name: str, work: Path) -> Path:
    """A folder with the documents, the queries and the judgements."""
    folder = work / name
    folder.mkdir(parents=True, exist_ok=True)
    source = data / TESTS[COLLECTIONS[name][0]][0].partition("@")[0]
    shutil.copyfile(source / "docs.tsv", folder / "docs.tsv")
    # What rankers were trained on: queries that reach it are not in these sets.
    seen = Seen.of(documents(data, "squad_part")["text"].to_list())
    tests = [open_test_set(data, one, seen) for one in COLLECTIONS[name]]
    lines = [f"{query}\t{text}\n" for test in tests for query, text in zip(test.query_ids, test.queries, strict=True)]
    (folder / "queries.tsv").write_text("".join(lines), encoding="utf-8")
    judged = "".join(path.read_text(encoding="utf-8") for path in sorted(source.glob("qrels*.txt")))
    (folder / "qrels.txt").write_text(judged, encoding="utf-8")
    return folder


def trained_runs(runs: Path, name: str) -> dict[str, Any]:
    """The runs of negatives.py by the names that a bench reads: METHOD@STRENGTH#SEED."""
    found: dict[str, Any] = {}
    for one in sorted((runs / COLLECTIONS[name][0]).glob("*-seed*.run")):
        parts = [runs / test / one.name for test in COLLECTIONS[name]]
        method, strength, seed = one.stem.rsplit("-", 2)
        shown = "cross-encoder" if method == "original" else f"{method}@{strength}"
        rows = [line.split() for part in parts for line in part.read_text(encoding="utf-8").splitlines()]
        found[f"{shown}#{seed.removeprefix('seed')}"] = pl.DataFrame(
            {
                "query_id": [row[0] for row in rows],
                "doc_id": [row[2] for row in rows],
                "score": [float(row[4]) for row in rows],
            }
        )
    return found


def link_selectors(folders: list[Path], work: Path) -> list[str]:
    """Selectors that differ by their seeds as methods: their folders under short names, selector#1 and so on."""
    for seed, folder in enumerate(folders, 1):
        link = work / f"selector#{seed}"
        link.unlink(missing_ok=True)
        link.symlink_to(folder.resolve(), target_is_directory=True)
    return [f"reformulate:rewrite:selector#{seed}" for seed in range(1, len(folders) + 1)]


def run(options: argparse.Namespace) -> None:
    """One collection, and its scores."""
    folder = write_collection(options.data, options.collection, options.work)
    methods = list(METHODS[options.base]) if options.seed is None else [SWEEP]
    runs = (
        {}
        if options.base != "bm25" or options.seed is not None or not options.runs
        else trained_runs(options.runs, options.collection)
    )
    chosen = link_selectors(options.selectors, options.work) if options.base == "bm25" and options.selectors else []
    measures = f"{EFFECTIVENESS[options.collection]} {LEAN}"
    out = options.work.resolve() / f"{options.collection}-{options.base}-{options.seed or 'first'}"
    settings = askew.BenchSettings(
        options.base,
        100,
        method_settings={f"run:{name}": COSTS for name in runs} | seeded(options.seed),
        out=out,
        store=options.work.resolve() / "store",
    )
    last = ""

    def progress(done: int, total: int, label: str) -> None:
        nonlocal last
        if label != last:
            print(label, file=sys.stderr, flush=True)
        last = label

    # By its name alone: the place of the folder is no part of what is kept.
    os.chdir(folder.parent)
    askew.bench(folder.name, [*methods, *chosen], measures, runs=runs or None, settings=settings, progress=progress)
    end = f"-seed{options.seed}" if options.seed is not None else "" if options.base == "bm25" else f"-{options.base}"
    keep(out / SCORES, KEPT / f"{options.collection}{end}.parquet")


def keep(scores: Path, file: Path) -> None:
    """Scores with 32 bits: enough for the printed digits, and half as large."""
    table = pq.read_table(scores)
    narrow = [field.with_type(pa.float32()) if pa.types.is_float64(field.type) else field for field in table.schema]
    schema = pa.schema(narrow, table.schema.metadata)
    pq.write_table(
        table.cast(schema),
        file,
        compression="zstd",
        compression_level=19,
        write_statistics=False,
        use_dictionary=["method", "query_id"],
    )


def seeded(seed: int | None) -> dict[str, dict[str, int]]:
    """The setting of the rewriting model that samples with another seed than its default."""
    return {} if seed is None else {SWEEP: {"seed": seed}}


def show(options: argparse.Namespace) -> None:
    """The tables from the kept scores."""
    files = [KEPT / f"{name}{end}.parquet" for end in ("", "-dense") for name in COLLECTIONS]
    reports = {}
    for report in show_bench([file for file in files if file.is_file()], options.out):
        # By its name alone: where the folder was is no part of a result.
        title = f"{Path(report.collection).name}, base {report.rows[0].method.text}"
        print(f"\n{title}: {len(report.query_ids):,} queries")
        print_table(report)
        reports[title] = report
    print("\nmethods of the conclusions: change against the base [95%]\n")
    print_row("method", "collection", *HEADER, "top 10 kept", "searches", "model calls")
    print_row("---", "---", *["--:"] * (len(HEADER) + 3))
    for name in NAMED:
        for title, report in reports.items():
            print_named(name, title, report)
    print(f"\nchange against {GREEDY}, paired by query [95%]\n")
    print_row(f"method, against {GREEDY}", "collection", *HEADER)
    print_row("---", "---", *["--:"] * len(HEADER))
    for name in RIVALS:
        for title, report in reports.items():
            print_rival(name, title, report)
    print_seeds()


def print_seeds() -> None:
    """The sweep of the rewriting model: the changes with each seed, and their range."""
    print("\nstrength of the rewriting model (reformulations searched per query): change with each seed\n")
    print_row("method", "collection", "seeds", *HEADER)
    print_row("---", "---", "--:", *["--:"] * len(HEADER))
    method, _, strengths = SWEEP.partition("@")
    for name in COLLECTIONS:
        files = [KEPT / f"{name}.parquet", *sorted(KEPT.glob(f"{name}-seed*.parquet"))]
        rows = [row for report in show_bench(files) for row in report.rows]
        for strength in strengths.split(",") if len(files) > 1 else []:
            found = [row.cells for row in rows if row.method.row_text == f"{method}@{strength}"]
            assert len(found) == len(files), f"expected {method}@{strength} in each of {files}"
            cells = (" / ".join(f"{one[key].change:+.1f}%" for one in found) for key in SHOWN)
            print_row(f"`{method}@{strength}`", NAMES[f"{name}, base bm25"], f"{len(found)}", *cells)


def print_row(*cells: str) -> None:
    """A row of a Markdown table."""
    print(f"| {' | '.join(cells)} |", flush=True)


def print_named(name: str, title: str, report: Any) -> None:
    """One method on one collection: a row. The base has no change."""
    for row in report.rows:
        if row.method.row_text == name and not row.base:
            costs = (f"{row.costs.kept:.0%}", count_text(row.costs.searches), count_text(row.costs.model_calls))
            print_row(f"`{name.removeprefix('run:')}`", NAMES[title], *changes(row.cells), *costs)


def print_rival(name: str, title: str, report: Any) -> None:
    """One method against the greedy window on one collection: a row."""
    values = merged_seeds(report.scored, report.asked)
    if name in values and GREEDY in values:
        cells = compared({GREEDY: values[GREEDY], name: values[name]}, report.asked)
        print_row(f"`{name}`", NAMES[title], *changes(cells[name]))


def changes(cells: Any) -> list[str]:
    return [cell_text(cells[name]) for name in SHOWN]


def effects(options: argparse.Namespace) -> None:
    """What each method changes beyond chance, and what happens to each group."""
    first, second = load_lexicon("rekabsaz2020"), load_lexicon("rekabsaz2021")
    used = {term for terms in first.groups.values() for term in terms}
    rows = [(term, group) for group, terms in second.groups.items() for term in terms if term not in used]
    print(f"disjoint lexicon: the {len(rows)} words of {second.name} that are not in {first.name}\n")
    print_row(
        "method", "collection", "queries", "nDCG@10", "lean", "by chance", "excess before, after", "its change",
        "words for women", "words for men", "nobody", "disjoint lexicon", "verdict",
    )  # fmt: skip
    print_row("---", "---", *["--:"] * 10, "---")
    with tempfile.TemporaryDirectory() as work:
        disjoint = Path(work) / "disjoint.csv"
        disjoint.write_text("".join(f'"{term}",{group}\n' for term, group in rows), encoding="utf-8")
        measures = ["nDCG@10", "ARaB(tf)@10", f"ARaB(tf,lexicon='{disjoint}')@10"]
        for name in options.collections:
            sample = sampled_collection(options.data, name, options.queries, Path(work))
            settings = askew.BenchSettings(store=Path(work) / "store")
            found = askew.bench(sample, options.methods, measures, settings=settings)
            for row in found.rows[1:]:
                print_effect(row, NAMES[f"{name}, base bm25"], len(found.query_ids))


def sampled_collection(data: Path, name: str, queries: int, work: Path) -> askew.Collection:
    """A collection with some of its judged queries; those of both years of DL."""
    source, folder = data / TESTS[COLLECTIONS[name][0]][0].partition("@")[0], work / name
    folder.mkdir()
    (folder / "docs.tsv").symlink_to((source / "docs.tsv").resolve())
    for kind, file in (("queries*.tsv", "queries.tsv"), ("qrels*.txt", "qrels.txt")):
        whole = "".join(path.read_text(encoding="utf-8") for path in sorted(source.glob(kind)))
        (folder / file).write_text(whole, encoding="utf-8")
    judged = askew.Collection.open(folder).judged_queries()
    rows = np.sort(np.random.default_rng(SEED).permutation(judged.num_rows)[:queries])
    some = judged.take(pa.array(rows))
    texts = dict(zip(some["query_id"].to_pylist(), some["text"].to_pylist(), strict=True))
    return askew.Collection.open(folder, queries=texts)


def print_effect(row: Any, collection: str, queries: int) -> None:
    """What one method changes: a row."""
    effect, (quality, _, other) = row.effect, row.cells.values()
    change, low, high = effect.excess_change
    interval = "" if low is None or high is None else f" [{low:+.4f}, {high:+.4f}]"
    exposure = (effect.words[group] for group in ("female", "male"))
    words = (f"{before:.1f} to {after:.1f} ({after / before - 1:+.0%})" for before, after in exposure)
    print_row(
        f"`{row.method.row_text}`", collection, f"{queries}", cell_text(quality), f"{effect.change:+.1%}",
        f"{effect.by_chance:+.1%}", f"{effect.excess[0]:.4f}, {effect.excess[1]:.4f}", f"{change:+.4f}{interval}",
        *words, f"{effect.nobody[0]:.0%} to {effect.nobody[1]:.0%}", cell_text(other), effect.verdict,
    )  # fmt: skip


def count_text(count: float | None) -> str:
    return "-" if count is None else f"{count:.1f}"


def print_table(report: Any) -> None:
    """A line for each method: means of effectiveness, changes of lean with intervals, costs."""
    labels = "".join(f"{one:>22}" for one in SHOWN.values())
    print(f"{'method':<42}{labels}{'kept':>6}{'searches':>9}{'model':>7}  Pareto")
    for row in report.rows:
        cells = "".join(f"{cell_text(row.cells[name]):>22}" for name in SHOWN)
        costs = f"{count_text(row.costs.searches):>9}{count_text(row.costs.model_calls):>7}"
        marks = " ".join(label for name, label in SHOWN.items() if name in row.pareto)
        print(f"{row.label.removeprefix('run:'):<42}{cells}{100 * row.costs.kept:>5.0f}%{costs}  {marks}")


def cell_text(cell: Any) -> str:
    """The mean of the base, or the change with its interval."""
    if cell.against is None:
        return f"{cell.mean:.4f}"
    if cell.change is None:
        return "-"
    interval = "" if cell.low is None or cell.high is None else f" [{cell.low:+.0f}, {cell.high:+.0f}]"
    return f"{cell.change:+.1f}%{interval}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("run")
    one.add_argument("collection", choices=list(COLLECTIONS))
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--work", type=Path, required=True)
    one.add_argument("--base", choices=list(METHODS), default="bm25")
    one.add_argument("--seed", type=int, help="only the sweep of the rewriting model, sampled with this seed")
    one.add_argument("--runs", type=Path, help="the folder of negatives.py evaluate --runs")
    one.add_argument("--selectors", nargs="*", type=Path, default=[], help="of askew train selector, by seed")
    one.set_defaults(do=run)
    one = parts.add_parser("show")
    one.add_argument("--out", type=Path)
    one.set_defaults(do=show)
    one = parts.add_parser("effects")
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--queries", type=int, default=SAMPLE)
    one.add_argument("--collections", nargs="*", choices=list(COLLECTIONS), default=list(COLLECTIONS))
    one.add_argument("--methods", nargs="*", default=list(EFFECTS))
    one.set_defaults(do=effects)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
