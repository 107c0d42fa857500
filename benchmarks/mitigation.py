"""Compare mitigation methods with askew bench: another ranker, a trained ranker, a reranker, reformulated queries.

    python benchmarks/mitigation.py PREPARED SCORES [SCORES ...] --data DATA

The collection, the held-out queries and the scores of the trained rankers are those of negatives.py (see there).
``--count`` of the neutral queries are sampled with the seed. The rankers reranked the top 100 of BM25, and take part as
runs; the cross-encoder "original" had the usual training.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from negatives import WAYS, _places, collection, read_prepared

from askew.app.search.classify import make_classifier
from askew.core.fingerprint import digest_file

METHODS = (
    "qld", "rerank:detconstsort", "reformulate:fairfeedback", "reformulate:extract", "reformulate:extract:oracle",
)  # fmt: skip
MEASURES = "RR@10 ARaB(tf)@10 ARaB(tf,lexicon=rekabsaz2021)@10 LexiconShare@10 NFaiRR@10"


def write_collection(folder: Path, data: Path, arrays: Any, count: int, seed: int) -> Any:
    """docs.tsv, queries.tsv and qrels.txt of some held-out neutral queries; their positions among the test queries."""
    docs, queries, judged = collection(data)
    test = queries[arrays["test"].tolist()]
    labels = make_classifier({"classifier": "lexical"}).classify(test["text"].to_list()).names()
    neutral = np.array([label == "neutral" for label in labels])
    kept = np.sort(np.random.default_rng(seed).permutation(np.flatnonzero(neutral))[:count])
    chosen = test[kept.tolist()]
    docs.write_csv(folder / "docs.tsv", separator="\t", include_header=False, quote_style="never")
    chosen.write_csv(folder / "queries.tsv", separator="\t", include_header=False, quote_style="never")
    lines = judged.filter(judged["query_id"].is_in(chosen["query_id"].implode()))
    rows = lines.select("query_id", "doc_id", "relevance").iter_rows()
    (folder / "qrels.txt").write_text("".join(f"{query} 0 {doc} {grade}\n" for query, doc, grade in rows))
    return kept, test["query_id"].to_list(), docs["doc_id"].to_list()


def write_runs(folder: Path, scores: list[Path], arrays: Any, kept: Any, queries: Any, docs: Any) -> list[str]:
    """A TREC run of each trained ranker, by its first seed."""
    wanted = np.isin(arrays["test_row"], kept)
    row, doc = arrays["test_row"][wanted], arrays["test_doc"][wanted]
    made = []
    for file in sorted((f for one in scores for f in one.glob("*.npz")), key=lambda f: list(WAYS).index(f.stem)):
        path = folder / f"{file.stem}.run"
        with np.load(file) as found:
            if "seed1" not in found.files:
                continue
            places = _places(arrays["test_row"], found["seed1"])[wanted]
        lines = zip(row.tolist(), doc.tolist(), places.tolist(), strict=True)
        path.write_text("".join(f"{queries[q]} Q0 {docs[d]} 0 {place:.1f} {file.stem}\n" for q, d, place in lines))
        made.append(path.name)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prepared", type=Path)
    parser.add_argument("scores", type=Path, nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    arrays, _ = read_prepared(options.prepared)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "boolq-squad"
        folder.mkdir()
        kept, queries, docs = write_collection(folder, options.data, arrays, options.count, options.seed)
        runs = write_runs(Path(scratch), options.scores, arrays, kept, queries, docs)
        print(f"data {digest_file(options.prepared / 'arrays.npz')[:16]}, seed {options.seed}; trained rankers: seed 1")
        methods = [word for one in (*(f"run:{run}" for run in runs), *METHODS) for word in ("--method", one)]
        words = ["bench", folder.name, "--measures", MEASURES, "--store", "store", *methods, "--out", "report"]
        sys.stdout.flush()
        askew = Path(sys.executable).with_name("askew")
        subprocess.run([askew, *words], check=True, cwd=scratch, env={**os.environ, "COLUMNS": "110"})


if __name__ == "__main__":
    main()
