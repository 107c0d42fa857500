"""BM25: askew against bm25s and PISA, the same passages, tokens and queries, back to back in one run.

The passages are synthetic (``bm25_data.py``), or real ones with real queries: ``--real FOLDER FOLDER``, each with
docs.tsv and queries*.tsv. The peers need ``pip install bm25s pyterrier-pisa``. ``--grow`` measures build time, size and
memory at several sizes instead, from Parquet files, each in a process of its own. ``--shards`` compares an index merged
from shards with one that was built at once.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bm25_data import Collection, Real, Synthetic, tables

from askew.core import machine
from askew.search.bm25.analyze import Analyzer
from askew.search.bm25.build import build_index, merge_shards
from askew.search.bm25.index import Index
from askew.search.bm25.ranker import Bm25Ranker
from askew.search.bm25.search import Bags


def cpu_ms(function: Callable[[], object], queries: int, times: int = 3) -> tuple[float, float]:
    """The least CPU and wall milliseconds a query."""
    tries = []
    for _ in range(times):
        cpu, wall = time.process_time(), time.perf_counter()
        function()
        tries.append((time.process_time() - cpu, time.perf_counter() - wall))
    return 1e3 * min(t[0] for t in tries) / queries, 1e3 * min(t[1] for t in tries) / queries


def compare(collection: Collection, count: int) -> None:
    asked = collection.queries(count)
    count = len(asked)
    folder = Path(tempfile.mkdtemp())
    try:
        index = build_index(tables(collection), folder / "askew", Analyzer("plain"))
        ours = Bm25Ranker(index, threads=1)
        two = Bm25Ranker(index, threads=2)
        array = pa.array(asked, pa.large_string())
        peers = {"bm25s": _bm25s(collection, asked), "pisa": _pisa(collection, asked, folder)}
        words = sum(len(query.split()) for query in asked) / count
        print(f"{collection.about}, {count} queries of {words:.1f} words; milliseconds a query")
        for k in (10, 1000):
            ours.search(array[:20], k)
            mine, wall_one = cpu_ms(lambda k=k: ours.search(array, k), count, 5)
            _, wall_two = cpu_ms(lambda k=k: two.search(array, k), count)
            print(
                f"k={k}: askew {mine:.3f} CPU (one thread {wall_one:.3f} wall, two {wall_two:.3f}: "
                f"{wall_one / wall_two:.2f}x)",
                flush=True,
            )
            for name, search in peers.items():
                search(k)
                theirs, _ = cpu_ms(lambda s=search, k=k: s(k), count)
                print(f"        {name} {theirs:.3f} CPU: askew is {theirs / mine:.1f}x faster", flush=True)
        print(_load())
    finally:
        shutil.rmtree(folder)


def _bm25s(collection: Collection, asked: list[str]) -> Callable[[int], object]:
    import bm25s

    ids = [row for rows in collection.passages() for row in rows.lists()]
    used = sorted({t for row in ids for t in row})
    place = {t: i for i, t in enumerate(used)}
    model = bm25s.BM25(method="lucene", k1=0.9, b=0.4, backend="numba")
    vocabulary = {f"w{t}": i for t, i in place.items()}
    model.index(bm25s.tokenization.Tokenized([[place[t] for t in row] for row in ids], vocabulary), show_progress=False)
    del ids
    numbers = [[vocabulary[word] for word in query.split() if word in vocabulary] for query in asked]
    tokenized = bm25s.tokenization.Tokenized(numbers, vocabulary)
    return lambda k: model.retrieve(tokenized, k=k, show_progress=False, n_threads=0)


def _pisa(collection: Collection, asked: list[str], folder: Path) -> Callable[[int], object]:
    import pandas as pd
    from pyterrier_pisa import PisaIndex, PisaQueryAlgorithm

    index = PisaIndex(str(folder / "pisa"), "text", stemmer="none", stops="none")
    docs = (
        {"docno": i, "text": t}
        for table in tables(collection)
        for i, t in zip(table["doc_id"].to_pylist(), table["text"].to_pylist(), strict=True)
    )
    index.index(docs)
    frame = pd.DataFrame({"qid": [str(i) for i in range(len(asked))], "query": asked})
    models = {k: index.bm25(0.9, 0.4, num_results=k, query_algorithm=PisaQueryAlgorithm.maxscore) for k in (10, 1000)}
    return lambda k: models[k].transform(frame)


def check(collection: Collection, count: int) -> None:
    """Every answer against exhaustive scoring."""
    folder = Path(tempfile.mkdtemp())
    try:
        index = build_index(tables(collection), folder / "askew", Analyzer("plain"))
        ranker = Bm25Ranker(index)
        asked = pa.array(collection.queries(count), pa.large_string())
        count = len(asked)
        bags = ranker.bags(asked)
        for k in (10, 1000):
            hits, same, worst = ranker.search(asked, k), 0, 0.0
            for i in range(count):
                docs, scores = _exhaustive(index, ranker, bags, bags.which[i], k)
                part = slice(hits.offsets[i], hits.offsets[i + 1])
                same += np.array_equal(docs, hits.docs[part])
                worst = max(worst, float(np.abs(scores - hits.scores[part]).max()))
            print(
                f"{collection.about}, k={k}: {same} of {count} lists are those of exhaustive scoring, largest score "
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
        totals[index.docs[part]] += bags.weights[j] * ranker.weights.arrays["impacts"][part].astype(np.float64)
    scores = totals.astype(np.float32)
    order = np.lexsort((np.arange(len(scores)), -scores))[:k]
    order = order[scores[order] > 0]
    return order.astype(np.int32), scores[order]


def shards(collection: Collection, count: int) -> None:
    """An index merged from shards of uneven sizes against one that was built at once: files and lists."""
    folder = Path(tempfile.mkdtemp())
    try:
        build_index(tables(collection), folder / "whole", Analyzer("plain"))
        every = pa.concat_tables(tables(collection))
        edges = [0, *sorted(np.random.default_rng(1).choice(len(every), 6, replace=False).tolist()), len(every)]
        parts = [folder / f"shard{i}" for i in range(len(edges) - 1)]
        for part, a, b in zip(parts, edges[:-1], edges[1:], strict=True):
            build_index([every.slice(a, b - a)], part, Analyzer("plain"), threads=1)
        merge_shards(parts, folder / "merged")
        names = sorted(path.name for path in (folder / "whole").iterdir())
        same = [n for n in names if (folder / "whole" / n).read_bytes() == (folder / "merged" / n).read_bytes()]
        print(f"{collection.about}: {len(parts)} shards, {len(same)} of {len(names)} files with the bytes of one build")
        asked = collection.queries(count)
        one, other = (Bm25Ranker(folder / name).search(asked, 1000) for name in ("whole", "merged"))
        equal = np.array_equal(one.docs, other.docs) and np.array_equal(one.scores, other.scores)
        print(f"{len(asked)} queries, k=1000: lists and scores are {'identical' if equal else 'NOT identical'}")
    finally:
        shutil.rmtree(folder)


def grow(sizes: list[int], count: int) -> None:
    for size in sizes:
        folder = Path(tempfile.gettempdir()) / f"askew-bm25-{size}"
        shutil.rmtree(folder, ignore_errors=True)
        for part in ("write", "build", "search"):
            command = [sys.executable, __file__, "--child", part, "--size", str(size), "--count", str(count)]
            done = subprocess.run([*command, "--folder", folder], capture_output=True, text=True, check=False)
            if done.stdout or done.returncode:
                print(done.stdout.strip() or done.stderr.strip()[-400:], flush=True)
        shutil.rmtree(folder, ignore_errors=True)


def child(part: str, size: int, count: int, folder: Path) -> None:
    collection, index = Synthetic(size), folder / "index"
    if part == "write":
        folder.mkdir()
        for number, table in enumerate(tables(collection)):
            pq.write_table(table, folder / f"{number:04}.parquet")
    elif part == "build":
        _build(collection, folder, index)
    else:
        _search(collection, count, index)


def _build(collection: Collection, folder: Path, index: Path) -> None:
    files = sorted(folder.glob("*.parquet"))
    start, cpu = time.perf_counter(), time.process_time()
    build_index(map(pq.read_table, files), index, Analyzer("plain"))
    built, used = time.perf_counter() - start, time.process_time() - cpu
    peak = _peak()
    Bm25Ranker(index)
    weighed = time.perf_counter() - start - built
    disk = sum(p.stat().st_size for p in index.rglob("*") if p.is_file()) >> 20
    print(
        f"{collection.size:>9,} passages: built in {built:.0f} s ({used:.0f} s CPU, peak {peak:,} MiB), weighted in "
        f"{weighed:.0f} s (peak {_peak():,} MiB), {disk:,} MiB on disk; {_load()}"
    )


def _search(collection: Collection, count: int, index: Path) -> None:
    start = time.perf_counter()
    Index(index)
    opened = time.perf_counter() - start
    ranker = Bm25Ranker(index, threads=1)
    array = pa.array(collection.queries(count), pa.large_string())
    shown = []
    for k in (10, 1000):
        ranker.search(array, k)
        shown.append(f"k={k} {cpu_ms(lambda k=k: ranker.search(array, k), count)[0]:.3f}")
    print(f"{'':>9} opened in {opened:.2f} s; CPU ms a query: {', '.join(shown)}; peak {_peak():,} MiB")


def _load() -> str:
    """How busy the machine was: seconds grow with it, CPU seconds little."""
    return f"load {os.getloadavg()[0]:.0f} on {machine.cores()} cores"


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, help="passages; a million, or as many as there are real ones")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--real", type=Path, nargs="+", help="folders of real passages and queries")
    parser.add_argument("--check", action="store_true", help="compare with exhaustive scoring instead")
    parser.add_argument("--shards", action="store_true", help="compare merged shards with one index instead")
    parser.add_argument("--grow", type=json.loads, help="sizes such as [100000,1000000]")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.size, options.count, options.folder)
    elif options.grow:
        grow(options.grow, options.count)
    else:
        job = check if options.check else shards if options.shards else compare
        job(Real(options.real, options.size) if options.real else Synthetic(options.size or 1_000_000), options.count)


if __name__ == "__main__":
    main()
