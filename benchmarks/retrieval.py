"""BM25 on real passages: lists against Lucene's own, and effectiveness with judgements.

``--data`` is a folder with msmarco_dl1920, boolq and squad_part (docs.tsv, queries, qrels). The DL19/20 passages are a
pool of judged and retrieved ones, not the full collection, so the figures are not those of the track. The comparison
with Lucene needs the extra ``lucene``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from anserini import Anserini, is_available

import askew
from askew.data.documents import read_documents
from askew.data.queries import read_queries
from askew.search.bm25.ranker import Bm25Ranker
from askew.search.retrieve import index as index_documents
from askew.search.retrieve import make_ranker, search_queries

COLLECTIONS = (
    ("msmarco_dl1920", "queries.dl19.tsv", "qrels.dl19.txt", "nDCG@10 AP(rel=2)@1000 RR(rel=2)@10"),
    ("msmarco_dl1920", "queries.dl20.tsv", "qrels.dl20.txt", "nDCG@10 AP(rel=2)@1000 RR(rel=2)@10"),
    ("boolq", "queries.tsv", "qrels.txt", "RR@10"),
    ("squad_part", "queries.tsv", "qrels.txt", "RR@10"),
)
MOST_QUERIES = 1500


def against_lucene(folder: Path, index: Path, queries: Path) -> None:
    texts = read_queries(queries)["text"].to_pylist()[:MOST_QUERIES]
    documents = [text for batch in read_documents(folder / "docs.tsv") for text in batch["text"].to_pylist()]
    ranker, peer = Bm25Ranker(index), Anserini(index.with_name(f"{index.name}-{queries.stem}-lucene"), documents)
    for k in (10, 1000):
        hits, theirs, same, worst = ranker.search(texts, k), peer.search("bm25", texts, k), 0, 0.0
        for i in range(len(texts)):
            ours, other = (slice(h.offsets[i], h.offsets[i + 1]) for h in (hits, theirs))
            same += np.array_equal(theirs.docs[other], hits.docs[ours])
            if other.stop - other.start == ours.stop - ours.start > 0:
                worst = max(worst, float(np.abs(theirs.scores[other] - hits.scores[ours]).max()))
        print(f"  k={k}: {same} of {len(texts)} lists identical to Lucene's, largest score difference {worst:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for name, queries, qrels, measures in COLLECTIONS:
            folder, index = options.data / name, Path(scratch) / name
            if not index.exists():
                index_documents(folder / "docs.tsv", index)
            print(f"{name}, {queries}:")
            if is_available():
                against_lucene(folder, index, folder / queries)
            for ranker in ("bm25", "bm25-msmarco", "qld"):
                out = Path(scratch) / f"{name}-{ranker}.run"
                made = make_ranker({"ranker": ranker, "index": str(index)})
                search_queries(read_queries(folder / queries), made, out, 1000 if "dl1" in name else 100)
                report = askew.measure([out], qrels=folder / qrels, measures=measures)
                means = [(a.text, report.mean(report.runs[0], a)) for a in report.asked]
                print(
                    f"  {ranker:13}"
                    + ", ".join(f"{t} {m.mean:.4f} [{m.low:.3f}, {m.high:.3f}]" for t, m in means)
                    + f" (n={means[0][1].n:,})"
                )


if __name__ == "__main__":
    main()
