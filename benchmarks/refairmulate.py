"""Refairmulate end to end on a real collection: subsets, Table 1, the cross-ranker table, time and memory, all rules.

``--data`` is a collection (docs.tsv, queries.tsv, qrels.txt). Runs ``askew run refairmulate`` with the dense ranker as
the second one, ``askew publish`` and ``askew verify`` as commands, and reads the tables from the store. Memory is the
largest sum over all processes of a command, seen every half second (shared pages are counted once for each).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
import psutil
import pyarrow as pa

from askew.core.store.store import Store
from askew.pairs.figures import Results
from askew.pairs.plan import prepare
from askew.pairs.recipe import read_recipe, with_settings
from askew.pairs.tables import cross_table


def run(words: list[str]) -> tuple[str, float, float]:
    """What a command printed, how long it took, and its most memory in MiB."""
    began, most = time.perf_counter(), 0.0
    process = psutil.Popen([str(Path(sys.executable).with_name("askew")), *words], stdout=subprocess.PIPE)
    said: list[bytes] = []
    while True:
        try:
            said.append(process.communicate(timeout=0.5)[0])
            break
        except subprocess.TimeoutExpired:
            most = max(most, memory(process))
    if process.returncode:
        sys.exit(f"askew {words[0]}: exit code {process.returncode}")
    return b"".join(said).decode(), time.perf_counter() - began, most


def memory(process: psutil.Popen) -> float:
    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            total += one.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / 2**20


def show(rows: list[dict[str, object]]) -> None:
    for row in rows:
        name = f"|{row['measure']}|" if row["of"] == "distance from zero" else str(row["measure"])
        change = f"{row['change']:+.1f}% [{row['low']:+.1f}, {row['high']:+.1f}]" if row["change"] is not None else "-"
        counts = f"n={row['queries']:,}  improved {row['improved_pairs']:,} worsened {row['worsened_pairs']:,} pairs"
        print(f"  {name:18} {row['old_mean']:8.4f} -> {row['new_mean']:8.4f}  {change:26} {counts}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--store", type=Path, help="keep the store here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = options.store or Path(folder) / "store"
        given = ["--set", f"collection.source={options.data}", "--set", "cross.0.ranker=dense", "--store", str(store)]
        printed, seconds, most = run(["run", "refairmulate-paper", *given, "--workers", "2", "--json"])
        for step in json.loads(printed)["steps"]:
            dropped = ", ".join(f"{count:,} {why}" for why, count in step["dropped"].items())
            print(f"{step['step']:20} {step['in']:>10,} in {step['out']:>10,} out  {dropped}")
        print(f"askew run: {seconds:.0f} s, {most:,.0f} MiB at most (driver and two workers)")
        dataset = Path(folder) / "dataset"
        _, seconds, most = run(["publish", "refairmulate-paper", *given, "--out", str(dataset)])
        print(f"askew publish: {seconds:.0f} s, {most:,.0f} MiB at most")
        printed, seconds, most = run(["verify", str(dataset)])
        print(f"askew verify: {seconds:.0f} s; {printed.strip().splitlines()[-1].partition(': ')[2]}")
        held = Store(store)
        changes = {"collection": {"source": str(options.data)}, "cross.0": {"ranker": "dense"}}
        build = prepare(with_settings(read_recipe("refairmulate-paper"), changes), held)
        outcomes = build.plan.run(held)
        table = Results(build, held, outcomes).in_sample
        assert table is not None, "the recipe chooses pairs"
        subsets = ["optimal", "effective", "fair"]
        print("\nTable 1: chosen by RR@10 and ARaB(tf)@10 under bm25-msmarco")
        for subset in subsets:
            rows = table.filter(pl.col("subset") == subset)
            print(f"{subset}: {rows['pairs'][0]:,} pairs")
            show(rows.to_dicts())
        pairs, dense = (
            pl.DataFrame(pl.from_arrow(pa.concat_tables(held.read(outcomes[name].manifest))))
            for name in ("pairs", "cross-dense")
        )
        other = cross_table(pairs, {"dense": dense}, build.evaluate.directions, subsets)
        print("\nThe same pairs under dense (all-MiniLM-L6-v2)")
        for subset in subsets:
            rows = other.filter(pl.col("subset") == subset)
            print(f"{subset}: {rows['pairs'][0]:,} pairs")
            show(rows.to_dicts())


if __name__ == "__main__":
    main()
