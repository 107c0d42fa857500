"""Published LLM reformulations (QueryGym) replayed as candidates: each method chooses among its own, and is measured.

``--data`` holds msmarco_dl1920 (docs.tsv, queries.SPLIT.tsv, qrels.SPLIT.txt) and querygym (SPLIT.tsv). For every
method: all its candidates as they are, and the pair that the selection of Refairmulate takes for each query, if any.
Queries without a chosen pair keep their original. The lean is the distance from zero.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from askew.core.measure import new_column, old_column
from askew.core.store.store import Store
from askew.measures.statistics.intervals import change_interval
from askew.pairs.plan import prepare
from askew.pairs.recipe import Recipe

EFFECTIVENESS, BIAS, HELD_OUT = "nDCG@10", "ARaB(tf)@10", "ARaB(bool)@10"
MEASURES = (EFFECTIVENESS, "RR(rel=2)@10", BIAS, HELD_OUT)


def recipe(data: Path, split: str, methods: list[str]) -> Recipe:
    file = str(data / "querygym" / f"{split}.tsv")
    replayed = [{"method": "replay", "file": file, "where": f"method={name}", "name": name} for name in methods]
    return Recipe(f"querygym-{split}", {
        "collection": {"source": str(data / "msmarco_dl1920"), "split": split},
        "reformulate": replayed,
        "retrieve": {"ranker": "bm25-msmarco", "k": 100},
        "evaluate": {"measures": list(MEASURES)},
        "select": {"selector": "refairmulate-paper", "effectiveness": EFFECTIVENESS, "bias": BIAS, "per": "method"},
    })  # fmt: skip


def change(pairs: pl.DataFrame, measure: str) -> str:
    old, new = (pairs[column(measure)].to_numpy() for column in (old_column, new_column))
    if measure.startswith("ARaB"):
        old, new = np.abs(old), np.abs(new)
    query = pairs["query_id"].rank("dense").to_numpy().astype(np.int64) - 1
    low, high = change_interval(query, old, new)
    part = 100 * (new.mean() / old.mean() - 1)
    return f"{old.mean():.3f} -> {new.mean():.3f} ({part:+.0f}% [{low:+.0f}, {high:+.0f}])"


def with_originals(pairs: pl.DataFrame, chosen: pl.DataFrame) -> pl.DataFrame:
    """The chosen pair of each query; where there is none, the original stays as it was."""
    others = pairs.filter(~pl.col("query_id").is_in(chosen["query_id"].implode())).unique(
        "query_id", maintain_order=True
    )
    stay = others.with_columns(pl.col(old_column(name)).alias(new_column(name)) for name in MEASURES)
    return pl.concat([chosen, stay])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    for split in ("dl19", "dl20"):
        methods = pl.read_csv(
            options.data / "querygym" / f"{split}.tsv", separator="\t", columns=["method"], quote_char=None
        )["method"].unique().sort().to_list()  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            store = Store(folder)
            build = prepare(recipe(options.data, split, methods), store)
            outcomes = build.plan.run(store)
            pairs = pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(outcomes["pairs"].manifest))))
        print(f"{split}: {pairs['query_id'].n_unique()} queries, {pairs.height:,} candidates; bm25-msmarco on the pool")
        for method in methods:
            own = pairs.filter(pl.col("method") == method)
            # A query may have an Optimal and an Effective pair: the better score counts.
            chosen = own.filter("fair").sort("score", descending=True, maintain_order=True)
            best = chosen.unique("query_id", keep="first", maintain_order=True)
            queries = own["query_id"].n_unique()
            print(f"  {method}: {own.height:,} candidates, a pair for {best.height} of {queries} queries")
            for measure in MEASURES:
                shown = f"|{measure}|" if measure.startswith("ARaB") else measure
                after = change(with_originals(own, best), measure)
                print(f"    {shown:16} all {change(own, measure):38} chosen {after}")


if __name__ == "__main__":
    main()
