"""Selectors that ``askew train selector`` makes, measured by ``askew bench`` on BoolQ queries they never saw.

    python benchmarks/selector.py build --data DATA --work WORK    a store of each collection (recipe refairmulate)
    python benchmarks/selector.py train --work WORK                each training with seeds 1, 2 and 3
    python benchmarks/selector.py measure --work WORK              writes arena/selector/*.npz
    python benchmarks/selector.py evaluate                         the tables, from these files

Candidates are those of ``datasets/candidates`` that pass the filters of the recipe (see dataset.py). Trained on SQuAD,
a selector is measured on all BoolQ queries that have a candidate; trained on BoolQ, on those that its training held
out. ``measure`` keeps the values of every query, so that ``evaluate`` needs no collection and no model.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

KEPT = Path(__file__).resolve().parent / "arena" / "selector"
SEEDS = (1, 2, 3)
TRAINED_ON = {"squad": "SQuAD", "boolq": "BoolQ"}
TESTED = "boolq"
BASE, REPLAY, ORACLE = "bm25-msmarco", "reformulate:replay", "reformulate:replay:oracle"
LEANS = ("ARaB(tf)@10", "ARaB(tf,who=generic)@10")
EFFECTIVENESS = ("RR@10", "nDCG@10")
MEASURES = (*EFFECTIVENESS, *LEANS)
TOP10 = "share of the original top 10 kept"
# The share of the original top 10 that the simple rule demands; askew bench takes the first by default.
AGREE = (0.5, 0.7, 0.9)
ORIGINAL, RULE = "original query", "least leaning by results, top 10 kept"
# Stated beforehand: the largest loss of mean RR@10 that would not matter.
MARGIN = 0.01


def run_askew(folder: Path, *words: str) -> None:
    """A command of askew in a folder, so that recipes and cards name no place of this machine."""
    subprocess.run([str(Path(sys.executable).with_name("askew")), *words], check=True, cwd=folder)


def build(options: argparse.Namespace) -> None:
    """A store of each collection: the recipe of dataset.py without the other rankers."""
    from dataset import CANDIDATES, PARTS, make_collection, recipe

    for name in TRAINED_ON:
        folder = options.work.resolve() / name
        folder.mkdir(parents=True, exist_ok=True)
        candidates = folder / "candidates.tsv"
        candidates.write_bytes(gzip.decompress((CANDIDATES / f"{name}.tsv.gz").read_bytes()))
        make_collection(PARTS[name], options.data, folder / name, candidates)
        text = recipe(name, candidates.name).partition("[[cross]]")[0]
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
        run_askew(folder, "run", f"{name}.toml", "--until", "pairs", "--store", f"../store-{name}")


def model_of(work: Path, name: str, seed: int) -> Path:
    """The folder of a trained selector."""
    return work.resolve() / f"selector-{name}-seed{seed}"


def train(options: argparse.Namespace) -> None:
    """``askew train selector`` with its defaults, on each collection with each seed."""
    for name in TRAINED_ON:
        for seed in SEEDS:
            out = model_of(options.work, name, seed)
            run_askew(options.work, "train", "selector", f"store-{name}", "--out", out.name, "--seed", str(seed))


def measure(options: argparse.Namespace) -> None:
    """The values of every query by method and measure, for each training."""
    from askew.data.queries import read_queries
    from askew.train.common import HELD_OUT
    from askew.train.selector import read_built

    built = read_built(options.work / f"store-{TESTED}")
    replayed = options.work.resolve() / TESTED / "kept.tsv"
    lines = zip(built.table["query_id"], built.table["text"], strict=True)
    replayed.write_text("query_id\ttext\n" + "".join(f"{query}\t{text}\n" for query, text in lines), encoding="utf-8")
    for name in TRAINED_ON:
        models = [model_of(options.work, name, seed) for seed in SEEDS]
        queries = list(built.query_ids)
        if name == TESTED:
            queries = read_queries(models[0] / HELD_OUT)["query_id"].to_pylist()
        values, changed = bench_all(options.work, replayed, models, fixed_runs(built, options.work), queries)
        about = {
            "trained": [facts(one) for one in models], "changed": changed, "queries": len(queries),
            "candidates": int(built.table["query_id"].is_in(queries).sum()),
            "apart": [told_apart(built, one, queries) for one in models],
        }  # fmt: skip
        KEPT.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(KEPT / f"{name}.npz", about=json.dumps(about), query_ids=queries, **values)
        print(f"{name}: {len(queries):,} queries, {len(changed)} methods", flush=True)


def facts(model: Path) -> dict[str, Any]:
    """What the training itself measured on the queries that it held out."""
    found = json.loads((model / "measured.json").read_text(encoding="utf-8"))
    measured = found["measured"]
    return {name: measured[name] for name in ("queries", "examples", "threshold", "told apart")}


def fixed_runs(built: Any, work: Path) -> dict[str, Any]:
    """The runs of two choices that look at no result: a random candidate, and the one that most surely asks the same.

    A random candidate is drawn once with each seed.
    """
    from askew import Ranker

    (index,) = (work / f"store-{TESTED}").glob("index-bm25-*")
    ranker = Ranker.open(index, BASE)
    worths = {f"random candidate, seed {seed}": np.random.default_rng(seed).random(len(built.query)) for seed in SEEDS}
    worths["highest P(same)"] = built.table["p_same"].to_numpy()
    return {name: ranker.search(texts_of(built, worth), 100) for name, worth in worths.items()}


def texts_of(built: Any, worth: Any) -> dict[str, str]:
    """The candidate of the highest worth by query."""
    from askew.train.selector import best_candidate

    rows = best_candidate(built.query, len(built.query_ids), worth)
    return dict(zip(built.query_ids, built.table["text"].gather(rows), strict=True))


def bench_all(
    work: Path, replayed: Path, models: list[Path], runs: dict[str, Any], queries: list[str]
) -> tuple[dict[str, Any], dict[str, int]]:
    """All methods by ``askew bench``: values by "method | measure", and how many queries each reformulates."""
    selectors = {f"{REPLAY}:{model}": f"selector, seed {seed}" for model, seed in zip(models, SEEDS, strict=True)}
    values: dict[str, Any] = {}
    changed: dict[str, int] = {}
    for agree in AGREE:
        first = agree == AGREE[0]
        names = {BASE: ORIGINAL, REPLAY: f"{RULE} >= {agree:.0%}"}
        if first:
            names |= {ORACLE: "oracle (reads the judgements)", **selectors, **{f"run:{name}": name for name in runs}}
        report, kept = bench_once(work, replayed, names, agree, runs if first else {}, queries)
        for row in report.rows:
            text, name = row.method.text, names[row.method.text]
            changed[name] = len(queries) if text.startswith("run:") else row.reformulated or 0
            values |= {f"{name} | {one}": report.values[text][one] for one in MEASURES}
            values[f"{name} | {TOP10}"] = kept[text]
    return values, changed


def bench_once(
    work: Path, replayed: Path, names: dict[str, str], agree: float, runs: dict[str, Any], queries: list[str]
) -> tuple[Any, dict[str, Any]]:
    """One bench, and the share of the original top 10 that each method keeps for each query."""
    from askew import BenchSettings, bench
    from askew.study.bench.bench import run_names

    out = work / f"bench-{len(queries)}-{agree:g}"
    methods = [text for text in names if text.startswith(REPLAY)]
    settings = BenchSettings(
        base=BASE,
        agree=agree,
        method_settings={text: {"file": str(replayed)} for text in methods},
        out=out,
        store=work / f"store-{TESTED}",
    )
    source = str(work / TESTED / TESTED)
    report = bench(source, methods, list(MEASURES), runs=runs or None, queries=queries, settings=settings)
    files = run_names([row.method for row in report.rows])
    tops = {text: top10(out / "runs" / f"{file}.run") for text, file in files.items()}
    kept = {
        text: np.array([len(tops[BASE][query] & top.get(query, set())) / len(tops[BASE][query])
                        for query in report.query_ids])
        for text, top in tops.items()
    }  # fmt: skip
    assert list(report.query_ids) == queries
    return report, kept


def top10(run: Path) -> dict[str, set[str]]:
    """The top documents of each query of a TREC run."""
    found: dict[str, set[str]] = {}
    for line in run.read_text(encoding="utf-8").splitlines():
        query, _, doc, rank, *_ = line.split()
        if int(rank) <= 10:
            found.setdefault(query, set()).add(doc)
    return found


def told_apart(built: Any, model: Path, queries: list[str]) -> dict[str, float]:
    """How well the cross-encoder tells chosen candidates of these queries from negative ones, beside guessing."""
    from askew.measures.statistics.curves import average_precision
    from askew.train.crossencoder import CrossEncoder
    from askew.train.selector import NEITHER, POSITIVE, SelectorSettings, labels_for, read_rule, score_candidates

    settings = SelectorSettings(**{**read_rule(model)["settings"], "model": str(model)})
    labels = labels_for(built, settings.learns)
    rows = np.flatnonzero((labels != NEITHER) & built.table["query_id"].is_in(queries).to_numpy())
    encoder = CrossEncoder.load(settings.ranker())
    scores = score_candidates(encoder, built.texts(settings.passages != "none"), settings, rows)
    truth = (labels[rows] == POSITIVE).astype(np.int64)
    found = average_precision(scores, truth, built.table["query_id"].gather(rows).to_list())
    return {"value": found.value, "low": found.low, "high": found.high, "guessing": float(truth.mean())}


def evaluate(_: argparse.Namespace) -> None:
    """The tables of both trainings, from the kept values."""
    for name, title in TRAINED_ON.items():
        about, values = read_kept(name)
        where = "the held-out BoolQ queries" if name == TESTED else "all BoolQ queries"
        print(f"== trained on {title}, measured on {where} that have a candidate: "
              f"{about['queries']:,} queries, {about['candidates']:,} candidates")  # fmt: skip
        print_training(about)
        print("\nchange against the original query, of the mean [95%]; p: null hypothesis: the mean gain is 0, without")
        print(f"correction; *: the method chooses by {LEANS[0]}; a lean counts by its distance from zero")
        for method in values:
            print_method(method, values, about["changed"])
        print_against(values, "selector, mean of seeds", f"{RULE} >= {AGREE[0]:.0%}")
        print()


def read_kept(name: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """What is told of a training, and by method and measure the values of every query; leans without their sign.

    Methods with several seeds also have the mean of their seeds, query by query.
    """
    with np.load(KEPT / f"{name}.npz") as file:
        found = {key: file[key] for key in file.files}
    about = json.loads(str(found.pop("about")))
    del found["query_ids"]
    values: dict[str, dict[str, Any]] = {}
    for key, one in found.items():
        method, measured = key.split(" | ")
        values.setdefault(method, {})[measured] = np.abs(one) if measured in LEANS else one
    for kind in ("random candidate", "selector"):
        seeds = [f"{kind}, seed {seed}" for seed in SEEDS]
        mean = f"{kind}, mean of seeds"
        values[mean] = {one: np.mean([values[seed][one] for seed in seeds], axis=0) for one in (*MEASURES, TOP10)}
        about["changed"][mean] = np.mean([about["changed"][seed] for seed in seeds])
    shown = [ORIGINAL, "random candidate, mean of seeds", "highest P(same)"]
    rules = [f"{RULE} >= {agree:.0%}" for agree in AGREE]
    selectors = [*(f"selector, seed {seed}" for seed in SEEDS), "selector, mean of seeds"]
    return about, {name: values[name] for name in (*shown, *rules, *selectors, "oracle (reads the judgements)")}


def print_training(about: dict[str, Any]) -> None:
    """Average precision of each cross-encoder beside guessing, and what it learned from."""
    for seed, trained, apart in zip(SEEDS, about["trained"], about["apart"], strict=True):
        own = trained["told apart"]
        print(
            f"seed {seed}: {trained['examples']:,} examples of {trained['queries']['train']:,} queries; average "
            f"precision of the cross-encoder here {interval(apart)} (guessing {apart['guessing']:.4f}), on the "
            f"held-out queries of its own collection {interval(own)} (guessing {own['positive']:.4f}); chance "
            f"{trained['threshold']:.4f} or more"
        )


def interval(one: dict[str, float]) -> str:
    return f"{one['value']:.4f} [{one['low']:.4f}, {one['high']:.4f}]"


def compare(values: dict[str, dict[str, Any]], measured: str, old: str, new: str) -> tuple[Any, Any]:
    """The paired comparison of two methods and the interval of the change of the mean in percent."""
    from askew.core.measure import Direction
    from askew.measures.catalogue import Catalogue
    from askew.measures.statistics.intervals import change_interval, size_bounds
    from askew.measures.statistics.significance import paired

    (asked,) = Catalogue().complete([measured])
    direction, bounds = asked.direction, asked.bounds
    if direction is Direction.ZERO:
        direction, bounds = Direction.DOWN, size_bounds(bounds)
    # As askew bench: a mean is over the queries for which every method has a value.
    there = ~np.isnan([one[measured] for one in values.values()]).any(axis=0)
    before, after = values[old][measured][there], values[new][measured][there]
    margin = MARGIN if measured == EFFECTIVENESS[0] else None
    found = paired(before, after, direction, bounds, margin=margin)
    return found, change_interval(np.arange(len(before)), before, after, bounds)


def print_method(method: str, values: dict[str, dict[str, Any]], changed: dict[str, float]) -> None:
    count = len(values[method][TOP10])
    print(
        f"\n{method}: {changed[method]:,.0f} of {count:,} queries reformulated; {TOP10}: "
        f"{values[method][TOP10].mean():.1%}"
    )
    chooses = method.startswith((RULE, "selector", "oracle"))
    for measured in MEASURES:
        found, ends = compare(values, measured, ORIGINAL, method)
        name = f"|{measured}|{'*' if chooses and measured == LEANS[0] else ''}" if measured in LEANS else measured
        line = f"  {name:27} {found.new:.4f}"
        if method != ORIGINAL:
            line += f"  {change(found, ends)}; improved {found.improved:,}, worsened {found.worsened:,}"
        print(f"{line}; n = {found.n:,}")
    if method != ORIGINAL:
        found, _ = compare(values, EFFECTIVENESS[0], ORIGINAL, method)
        ruled = "is" if found.p_no_loss is not None and found.p_no_loss < 0.05 else "is not"
        print(
            f"  a loss of {MARGIN} or more of mean {EFFECTIVENESS[0]} {ruled} ruled out (p {p_text(found.p_no_loss)})"
        )


def change(found: Any, ends: tuple[float | None, float | None]) -> str:
    low, high = (or_dash(end) for end in ends)
    told = "-" if found.relative is None else f"{100 * found.relative:+.1f}%"
    return f"{told} [{low}, {high}] p {p_text(found.p)}"


def or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f}"


def p_text(value: float | None) -> str:
    return "-" if value is None else "<0.0001" if value < 0.0001 else f"{value:.4f}"


def print_against(values: dict[str, dict[str, Any]], selector: str, rule: str) -> None:
    """The selector against the simple rule, query by query."""
    print(f"\n{selector}, against: {rule}")
    for measured in MEASURES:
        found, _ = compare(values, measured, rule, selector)
        name = f"|{measured}|" if measured in LEANS else measured
        low, high = ("-" if end is None else f"{end:+.4f}" for end in (found.low, found.high))
        print(
            f"  {name:27} {found.old:.4f} -> {found.new:.4f}; gain {found.gain:+.4f} [{low}, {high}] "
            f"p {p_text(found.p)}; improved {found.improved:,}, worsened {found.worsened:,}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    for do in (build, train, measure):
        one = parts.add_parser(do.__name__)
        one.add_argument("--work", type=Path, required=True, help="folder for collections, stores and models")
        if do is build:
            one.add_argument("--data", type=Path, required=True, help="folder of the collections")
        one.set_defaults(do=do)
    parts.add_parser("evaluate").set_defaults(do=evaluate)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
