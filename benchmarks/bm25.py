"""BM25: askew against bm25s and PISA, the same passages, tokens and queries, back to back in one run.

Passages are drawn from a Zipf law over a vocabulary of 300,000 words, some forty tokens each; a query is six words of
one passage. The peers need ``pip install bm25s pyterrier-pisa``. ``--grow`` measures build time, size and memory at
several sizes instead, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from askew.rankers.bm25.analyze import Analyzer
from askew.rankers.bm25.build import build_index
from askew.rankers.bm25.index import Index
from askew.rankers.bm25.ranker import Bags, Bm25Ranker

WORDS = 300_000
BATCH = 50_000


def passages(count: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Batches of passages as rows of word numbers; -1 pads."""
    rng = np.random.default_rng(seed)
    weights = 1.0 / (np.arange(WORDS) + 2.7) ** 1.05
    edges = np.cumsum(weights) / weights.sum()
    for start in range(0, count, BATCH):
        size = min(BATCH, count - start)
        lengths = np.clip(rng.lognormal(3.6, 0.45, size), 8, 120).astype(int)
        tokens = np.searchsorted(edges, rng.random((size, 120)))
        tokens[np.arange(120) >= lengths[:, None]] = -1
        yield tokens


def texts(tokens: np.ndarray) -> list[str]:
    return [" ".join([f"w{t}" for t in row if t >= 0]) for row in tokens.tolist()]


def tables(count: int) -> Iterator[pa.Table]:
    start = 0
    for tokens in passages(count):
        ids = [f"d{start + i}" for i in range(len(tokens))]
        start += len(tokens)
        yield pa.table({"doc_id": ids, "text": pa.array(texts(tokens), pa.large_string())})


def queries(count: int, size: int) -> list[str]:
    rng = np.random.default_rng(99)
    tokens = next(passages(min(size, BATCH)))
    found = []
    while len(found) < count:
        row = tokens[rng.integers(len(tokens))]
        words = np.unique(row[row >= 0])
        if len(words) >= 6:
            found.append(" ".join(f"w{t}" for t in rng.choice(words, 6, replace=False)))
    return found


def cpu_ms(function: Callable[[], object], queries: int, times: int = 3) -> tuple[float, float]:
    """The least CPU and wall milliseconds a query."""
    tries = []
    for _ in range(times):
        cpu, wall = time.process_time(), time.perf_counter()
        function()
        tries.append((time.process_time() - cpu, time.perf_counter() - wall))
    return 1e3 * min(t[0] for t in tries) / queries, 1e3 * min(t[1] for t in tries) / queries


def compare(size: int, count: int) -> None:
    asked = queries(count, size)
    folder = Path(tempfile.mkdtemp())
    try:
        index = build_index(tables(size), folder / "askew", Analyzer("plain"))
        ours = Bm25Ranker(index, threads=1)
        two = Bm25Ranker(index, threads=2)
        array = pa.array(asked, pa.large_string())
        peers = {"bm25s": _bm25s(size, asked), "pisa": _pisa(size, asked, folder)}
        print(f"{size:,} passages, {count} queries of 6 words; milliseconds a query")
        for k in (10, 1000):
            ours.search(array[:20], k)
            mine, wall_one = cpu_ms(lambda k=k: ours.search(array, k), count)
            _, wall_two = cpu_ms(lambda k=k: two.search(array, k), count)
            print(
                f"k={k}: askew {mine:.3f} CPU (one thread {wall_one:.3f} wall, two {wall_two:.3f}: "
                f"{wall_one / wall_two:.2f}x)",
                flush=True,
            )
            for name, search in peers.items():
                theirs, _ = cpu_ms(lambda s=search, k=k: s(k), count, 2)
                print(f"        {name} {theirs:.3f} CPU: askew is {theirs / mine:.1f}x faster", flush=True)
    finally:
        shutil.rmtree(folder)


def _bm25s(size: int, asked: list[str]) -> Callable[[int], object]:
    import bm25s

    ids = [[t for t in row if t >= 0] for tokens in passages(size) for row in tokens.tolist()]
    used = sorted({t for row in ids for t in row})
    place = {t: i for i, t in enumerate(used)}
    model = bm25s.BM25(method="lucene", k1=0.9, b=0.4, backend="numba")
    vocabulary = {f"w{t}": i for t, i in place.items()}
    model.index(bm25s.tokenization.Tokenized([[place[t] for t in row] for row in ids], vocabulary), show_progress=False)
    del ids
    numbers = [[vocabulary[word] for word in query.split() if word in vocabulary] for query in asked]
    tokenized = bm25s.tokenization.Tokenized(numbers, vocabulary)
    return lambda k: model.retrieve(tokenized, k=k, show_progress=False, n_threads=0)


def _pisa(size: int, asked: list[str], folder: Path) -> Callable[[int], object]:
    import pandas as pd
    from pyterrier_pisa import PisaIndex, PisaQueryAlgorithm

    index = PisaIndex(str(folder / "pisa"), "text", stemmer="none", stops="none")
    docs = (
        {"docno": i, "text": t}
        for table in tables(size)
        for i, t in zip(table["doc_id"].to_pylist(), table["text"].to_pylist(), strict=True)
    )
    index.index(docs)
    frame = pd.DataFrame({"qid": [str(i) for i in range(len(asked))], "query": asked})
    models = {k: index.bm25(0.9, 0.4, num_results=k, query_algorithm=PisaQueryAlgorithm.maxscore) for k in (10, 1000)}
    return lambda k: models[k].transform(frame)


def check(size: int, count: int) -> None:
    """Every answer against exhaustive scoring."""
    folder = Path(tempfile.mkdtemp())
    try:
        index = build_index(tables(size), folder / "askew", Analyzer("plain"))
        ranker = Bm25Ranker(index)
        asked = pa.array(queries(count, size), pa.large_string())
        bags = ranker.bags(asked)
        for k in (10, 1000):
            hits, same, worst = ranker.search(asked, k), 0, 0.0
            for i in range(count):
                docs, scores = _exhaustive(index, ranker, bags, bags.which[i], k)
                part = slice(hits.offsets[i], hits.offsets[i + 1])
                same += np.array_equal(docs, hits.docs[part])
                worst = max(worst, float(np.abs(scores - hits.scores[part]).max()))
            print(
                f"{size:,} passages, k={k}: {same} of {count} lists are those of exhaustive scoring, largest score "
                f"difference {worst:.1e}",
                flush=True,
            )
    finally:
        shutil.rmtree(folder)


def _exhaustive(index: Index, ranker: Bm25Ranker, bags: Bags, bag: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    totals = np.zeros(len(index))
    for j in range(bags.offsets[bag], bags.offsets[bag + 1]):
        term = bags.terms[j]
        part = slice(index.offsets[term], index.offsets[term + 1])
        totals[index.docs[part]] += bags.weights[j] * ranker.weights.impacts[part].astype(np.float64)
    scores = totals.astype(np.float32)
    order = np.lexsort((np.arange(len(scores)), -scores))[:k]
    order = order[scores[order] > 0]
    return order.astype(np.int32), scores[order]


def grow(sizes: list[int], count: int) -> None:
    for size in sizes:
        for part in ("build", "search"):
            folder = Path(tempfile.gettempdir()) / f"askew-bm25-{size}"
            command = [sys.executable, __file__, "--child", part, "--size", str(size), "--count", str(count)]
            done = subprocess.run([*command, "--folder", folder], capture_output=True, text=True, check=False)
            print(done.stdout.strip() or done.stderr.strip()[-400:], flush=True)
        shutil.rmtree(folder, ignore_errors=True)


def child(part: str, size: int, count: int, folder: Path) -> None:
    start = time.perf_counter()
    if part == "build":
        shutil.rmtree(folder, ignore_errors=True)
        build_index(tables(size), folder, Analyzer("plain"))
        built = time.perf_counter() - start
        Bm25Ranker(folder)
        weighed = time.perf_counter() - start - built
        disk = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) >> 20
        print(
            f"{size:>9,} passages: built in {built:.0f} s (making the text included), weighted in {weighed:.0f} s, "
            f"{disk:,} MiB on disk, peak {_peak():,} MiB"
        )
        return
    Index.open(folder)
    opened = time.perf_counter() - start
    ranker = Bm25Ranker(folder, threads=1)
    array = pa.array(queries(count, size), pa.large_string())
    shown = []
    for k in (10, 1000):
        ranker.search(array, k)
        shown.append(f"k={k} {cpu_ms(lambda k=k: ranker.search(array, k), count)[0]:.3f}")
    print(f"{'':>9} opened in {opened:.2f} s; CPU ms a query: {', '.join(shown)}; peak {_peak():,} MiB")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--check", action="store_true", help="compare with exhaustive scoring instead")
    parser.add_argument("--grow", type=json.loads, help="sizes such as [100000,1000000]")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.size, options.count, options.folder)
    elif options.check:
        check(options.size, options.count)
    elif options.grow:
        grow(options.grow, options.count)
    else:
        compare(options.size, options.count)


if __name__ == "__main__":
    main()
