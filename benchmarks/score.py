"""Scoring rankings: askew's columns against loops over queries as the published scripts have them, one run.

500,000 rankings of 10 documents, RR@10, AP@10, ARaB tc/tf/bool@10 and NFaiRR@10. The peer is written with plain sums
where the published scripts call numpy on ten numbers at a time, which is slower still; it runs on a part of the
rankings, and its values are compared with askew's.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
import pyarrow as pa

from askew.core.protocols import DocMentions, Inputs, Judgements
from askew.core.ranking import Rankings
from askew.measures.catalogue import Catalogue

MEASURES = ["RR@10", "AP@10", "ARaB(tc)@10", "ARaB(tf)@10", "ARaB(bool)@10", "NFaiRR@10"]
DISCOUNTS = [1 / math.log2(r + 1) for r in range(1, 11)]


def published_loops(runs, qrels, magnitudes, neutrality, background):
    rows = []
    for query, docs in runs.items():
        relevant = qrels[query]
        rr, hits, precision = 0.0, 0, 0.0
        for rank, doc in enumerate(docs, start=1):
            if relevant.get(doc, 0) > 0:
                hits += 1
                precision += hits / rank
                rr = rr or 1 / rank
        row = [rr, precision / len(relevant)]
        for kind in ("tc", "tf", "bool"):
            leans = [magnitudes[kind][doc] for doc in docs]
            for component in range(3):
                values = [lean[component] for lean in leans]
                running = [sum(values[:t]) / t for t in range(1, len(values) + 1)]
                average = sum(running) / len(running)
                if component == 0:
                    row.append(-average)
        reached = sum(neutrality[doc] * p for doc, p in zip(docs, DISCOUNTS, strict=True))
        best = sorted((neutrality[doc] for doc in set(background[query])), reverse=True)[:10]
        row.append(reached / sum(n * p for n, p in zip(best, DISCOUNTS, strict=True)))
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rankings", type=int, default=500_000)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--peer", type=int, default=20_000, help="rankings the peer works on")
    options = parser.parse_args()
    n, size = options.rankings, options.documents
    rng = np.random.default_rng(0)
    docs = rng.integers(0, size // 10, (n, 10)) * 10 + np.arange(10)
    counts = np.where(rng.random((size, 2)) < 0.7, 0, rng.poisson(1.5, (size, 2))).astype(np.int32)
    judged = np.where(rng.random(n) < 0.6, docs[np.arange(n), rng.integers(0, 10, n)], rng.integers(0, size, n))
    offsets = np.arange(0, 10 * n + 1, 10)
    rankings = Rankings(pa.array([str(i) for i in range(n)]), offsets, docs.ravel())
    mentions = DocMentions(("female", "male"), counts, counts.sum(axis=1), np.ones(size, bool))
    judgements = Judgements(np.arange(n + 1), judged, np.ones(n, np.int64), np.ones(n, bool))
    inputs = Inputs("bench", pa.array([], pa.string()), {"score": rankings}, lambda *_: mentions, judgements, rankings)
    asked = Catalogue().complete(MEASURES)
    start = time.process_time()
    mine = [a.family.score(a.measure, inputs) for a in asked]
    cpu = time.process_time() - start
    print(f"askew: {n:,} rankings x {len(MEASURES)} measures: {cpu:.2f} CPU s, {n / cpu:,.0f} rankings a CPU s")
    part = options.peer
    runs = {str(i): [str(d) for d in docs[i]] for i in range(part)}
    needed = {int(d) for row in docs[:part] for d in row}
    qrels = {str(i): {str(judged[i]): 1} for i in range(part)}
    tables = {"tc": {}, "tf": {}, "bool": {}}
    neutrality = {}
    for d in needed:
        f, m = int(counts[d, 0]), int(counts[d, 1])
        tables["tc"][str(d)] = (f - m, f, m)
        tables["tf"][str(d)] = (math.log(1 + f) - math.log(1 + m), math.log(1 + f), math.log(1 + m))
        tables["bool"][str(d)] = ((f > 0) - (m > 0), f > 0, m > 0)
        neutrality[str(d)] = 1.0 if f + m <= 1 else 1 - abs(f - m) / (f + m)
    start = time.process_time()
    peer = np.array(published_loops(runs, qrels, tables, neutrality, runs))
    spent = time.process_time() - start
    same = np.abs(peer - np.array([column[:part] for column in mine]).T).max()
    print(f"loops: {part:,} rankings in {spent:.2f} CPU s: {part / spent:,.0f} rankings a CPU s")
    print(f"ratio: {(spent / part) / (cpu / n):.0f}x CPU; largest difference of a value: {same:.1e}")


if __name__ == "__main__":
    main()
