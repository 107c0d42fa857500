"""Compare mitigation methods with askew bench: another ranker, trained rankers, a reranker, reformulated queries.

    python benchmarks/negatives.py evaluate KEPT --data DATA --runs RUNS
    python benchmarks/mitigation.py RUNS --data DATA

The queries are the neutral ones of BoolQ that negatives.py samples; the trained rankers, which never saw a document of
BoolQ, rerank the top 100 of BM25 and take part as runs, by their first seed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

METHODS = (
    "qld", "rerank:detconstsort", "reformulate:fairfeedback", "reformulate:extract", "reformulate:extract:oracle",
)  # fmt: skip
MEASURES = "RR@10 ARaB(tf)@10 ARaB(tf,lexicon=rekabsaz2021)@10 LexiconShare@10 NFaiRR@10"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    folder = (options.runs / "boolq").absolute()
    runs = [f"run:{file.name}" for file in sorted(folder.glob("*-seed1.run"))]
    if not runs:
        raise SystemExit(f"{folder}: expected runs of negatives.py evaluate --runs, found none")
    methods = [word for one in (*runs, *METHODS) for word in ("--method", one)]
    collection, queries = (options.data / "boolq").absolute(), folder / "queries.tsv"
    askew = Path(sys.executable).with_name("askew")
    with tempfile.TemporaryDirectory() as scratch:
        words = ["--measures", MEASURES, "--queries", queries, "--store", f"{scratch}/store", *methods]
        command = [askew, "bench", collection, *words, "--out", f"{scratch}/report"]
        subprocess.run(command, check=True, cwd=folder, env={**os.environ, "COLUMNS": "110"})


if __name__ == "__main__":
    main()
