"""Does a rewriting model that was trained to lean less lean less? Faithful against steered samples, three rankers.

    python benchmarks/steering.py --samples SAMPLES --data DATA --work WORK    search, and write steering.json
    python benchmarks/steering.py                                              print the table from steering.json

``SAMPLES`` has samples of two models for the queries of DL 2019, DL 2020 and FairytaleQA: ``smollm2-rewrite`` and the
same with a low-rank change of weights that DPO trained toward texts with less lean of resolved mentions and no loss of
reciprocal rank (2,186 pairs of BoolQ and SQuAD; their documents are in none of the test collections). Samples with both
probabilities of the equivalence judge of at least LEAST are kept, the first COUNT of a query. A value of a query is the
mean over its kept samples: what a search engine gets that takes any of them. Both models are compared on the queries
that both have samples for, by askew's own paired tests: that of nDCG holds for every distribution and also tests that
nothing is lost beyond the margin; that of lean, which has no bounds, is studentized.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from dataset import PARTS, Part, make_collection

import askew
from askew.core.measure import UNBOUNDED, Direction
from askew.measures.statistics.significance import paired

KEPT = Path(__file__).with_name("steering.json")
LEAST, COUNT = 0.7, 10
MODELS, MARGIN = ("faithful", "less1"), 0.05
ENDS = {"original": "", "faithful": "_new", "leaning less": "_new_less"}
COMPARED = (("original", "faithful"), ("original", "leaning less"), ("faithful", "leaning less"))
RANKERS = ("bm25-msmarco", "qld", "dense")
COLLECTIONS = {
    "DL 2019 and 2020": {"dl19": PARTS["dl19"], "dl20": PARTS["dl20"]},
    "FairytaleQA": {"fairy": Part("fairytaleqa", "FairytaleQA", "Apache-2.0")},
}
LEAN = ("ARaB_tf_who_generic_10", "ARaB_tf_10")
MEASURES = ["nDCG@10", "ARaB(tf,who=generic)@10", "ARaB(tf)@10"]


def kept_samples(rows: list[list[Any]]) -> dict[str, list[str]]:
    """The texts of each query that pass."""
    least = np.log(LEAST / (1 - LEAST))
    found: dict[str, list[str]] = {}
    for query, text, _, same, natural in rows:
        if min(same, natural) >= least:
            found.setdefault(query, []).append(text)
    return {query: texts[:COUNT] for query, texts in found.items()}


def search(texts: dict[str, list[str]], part: Part, data: Path, work: Path, ranker: str, most: int) -> Any:
    """A row for each query: the values of the original, and the means over its samples."""
    work.mkdir(parents=True, exist_ok=True)
    chosen = sorted(texts)[:most]
    file = work / "samples.tsv"
    lines = [f"{query}\t{' '.join(text.split())}" for query in chosen for text in texts[query]]
    file.write_text("query_id\ttext\n" + "\n".join(lines) + "\n", encoding="utf-8")
    make_collection(part, data, work / "collection", file)
    recipe = work / "recipe.toml"
    recipe.write_text(
        f'title = "steering"\n[collection]\nsource = "{work / "collection"}"\n[[reformulate]]\nmethod = "replay"\n'
        f'file = "{file}"\n[retrieve]\nranker = "{ranker}"\nk = 20\n[evaluate]\nmeasures = {json.dumps(MEASURES)}\n',
        encoding="utf-8",
    )
    table = askew.build(str(recipe), store=str(work.parent / "store")).table("scores")
    names = [name for name in table.columns if name.endswith("_10")]
    table = table.with_columns(pl.col([name for name in names if name in LEAN]).abs())
    old = table.filter(pl.col("method") == "original").select("query_id", *names)
    new = table.filter(pl.col("method") != "original").group_by("query_id").agg(pl.col(names).mean())
    return old.join(new, on="query_id", suffix="_new").sort("query_id")


def compare(tables: dict[str, Any]) -> dict[str, Any]:
    """Both models on the queries that both have samples for."""
    shared = tables["faithful"].join(tables["less1"], on="query_id", suffix="_less")
    found: dict[str, Any] = {"queries": shared.height}
    for name in [one for one in tables["faithful"].columns if one.endswith("_10")]:
        values = {key: shared[f"{name}{end}"].to_numpy() for key, end in ENDS.items()}
        found[name] = {key: float(one.mean()) for key, one in values.items()}
        lean = name in LEAN
        direction, bounds = (Direction.DOWN, UNBOUNDED) if lean else (Direction.UP, (0.0, 1.0))
        for old, new in COMPARED:
            one = paired(values[old], values[new], direction, bounds, margin=None if lean else MARGIN)
            kept = {"gain": one.gain, "low": one.low, "high": one.high, "p": one.p, "no loss": one.p_no_loss}
            found[name][f"{old} to {new}"] = kept
    return found


def show(kept: dict[str, Any]) -> None:
    def text(one: dict[str, Any]) -> str:
        no_loss = "" if one["no loss"] is None else f", no loss of {MARGIN}: p {one['no loss']:.3f}"
        between = "" if one["low"] is None else f" [{one['low']:+.4f}, {one['high']:+.4f}] p {one['p']:.3f}"
        return f"{one['gain']:+.4f}{between}{no_loss}"

    print("gains: positive is better (more nDCG, less lean); means over queries")
    for collection, by_ranker in kept.items():
        for ranker, found in by_ranker.items():
            print(f"{collection}, {ranker}, {found['queries']} queries")
            for name, one in found.items():
                if name != "queries":
                    means = ", ".join(f"{key} {one[key]:.4f}" for key in ENDS)
                    print(f"  {name}: {means}")
                    for old, new in COMPARED:
                        print(f"    {old} to {new}: {text(one[f'{old} to {new}'])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--most", type=int, default=400, help="queries of a collection")
    given = parser.parse_args()
    if given.samples is None:
        show(json.loads(KEPT.read_text(encoding="utf-8")))
        return
    samples = json.loads(gzip.decompress(given.samples.read_bytes()))
    kept: dict[str, Any] = {}
    for collection, parts in COLLECTIONS.items():
        for ranker in RANKERS:
            tables: dict[str, list[Any]] = {model: [] for model in MODELS}
            for name, part in parts.items():
                texts = {model: kept_samples(samples[f"{model}_{name}"]) for model in MODELS}
                both = set(texts["faithful"]) & set(texts["less1"])
                for model in MODELS:
                    work = given.work.resolve() / f"{name}-{model}-{ranker}"
                    here = {query: texts[model][query] for query in both}
                    tables[model].append(search(here, part, given.data.resolve(), work, ranker, given.most))
            kept.setdefault(collection, {})[ranker] = compare({key: pl.concat(one) for key, one in tables.items()})
            show({collection: {ranker: kept[collection][ranker]}})
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
