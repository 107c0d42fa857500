"""Is a flipped bit anywhere in an index refused before an answer is given from it, and what does that cost?

An index of synthetic passages as ``bm25.py`` makes them, 380 MB with texts and weights. One random bit at a time is
flipped; then the index is opened anew, queries are searched one by one, with RM3 feedback and the texts of their best
documents, and compared with the answers of the undamaged index. Once as shipped (files up to 64 MiB are compared on
opening) and once with every array compared block by block as it is read, as in larger indexes. ``askew verify`` must
find the bits that no answer used. Warm searches (CPU time, the least of several) are compared with the same search
without the comparison.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
from bm25_data import Synthetic, tables

from askew.core.errors import AskewError
from askew.search import disk
from askew.search.bm25.analyze import Analyzer
from askew.search.bm25.build import build_index
from askew.search.bm25.ranker import Bm25Ranker, FeedbackRanker
from askew.search.disk import StoredTexts, check_index, keeping_texts
from askew.search.feedback import Rm3

_WARM_S, _LEAST_TURNS = 20.0, 8


def make(folder: Path, size: int) -> None:
    folder.mkdir(parents=True)
    build_index(keeping_texts(tables(Synthetic(size)), folder), folder, Analyzer("plain"))
    Bm25Ranker(folder)


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@contextlib.contextmanager
def compared_lazily(lazily: bool) -> Iterator[None]:
    with mock.patch.object(disk, "CHECK_WHOLE", 0 if lazily else disk.CHECK_WHOLE):
        yield


@contextlib.contextmanager
def not_compared() -> Iterator[None]:
    """As if there were no checksums: only sizes are looked at."""
    with mock.patch.object(disk, "check_file", disk.check_size), mock.patch.object(disk.CheckedArray, "check"):
        yield


def answer(ranker: Bm25Ranker, texts: StoredTexts, query: str) -> tuple[object, ...]:
    hits = ranker.search([query], 10)
    again = FeedbackRanker(ranker, Rm3(5, 10), "").search([query], 10)
    ids = ranker.doc_ids.take(pa.array(hits.docs)).to_pylist()
    found = [texts[doc] for doc in hits.docs.tolist()]
    return hits.docs.tolist(), hits.scores.tolist(), again.docs.tolist(), again.scores.tolist(), ids, found


def flip(path: Path, byte: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(byte)
        value = file.read(1)[0]
        file.seek(byte)
        file.write(bytes([value ^ (1 << bit)]))


def outcome(folder: Path, size: int, asked: list[str], right: list[tuple[object, ...]]) -> str:
    """What came of one flipped bit."""
    try:
        ranker, texts = Bm25Ranker(folder, threads=1), StoredTexts(folder)
    except AskewError:
        return "refused on opening"
    for query, expected in zip(asked, right, strict=True):
        try:
            if answer(ranker, texts, query) != expected:
                return "WRONG ANSWER"
        except AskewError:
            return "refused by a query, the answers before it right"
    found = check_index(folder).messages
    return "not read: all answers right, found by askew verify" if found else "NOT FOUND"


def flip_bits(folder: Path, size: int, flips: int, lazily: bool) -> None:
    rng = np.random.default_rng(7)
    asked = Synthetic(size).queries(20)
    with compared_lazily(lazily):
        ranker, texts = Bm25Ranker(folder, threads=1), StoredTexts(folder)
        right = [answer(ranker, texts, query) for query in asked]
        files = files_of(folder)
        ends = np.cumsum([path.stat().st_size for path in files])
        found: Counter[str] = Counter()
        for _ in range(flips):
            at = int(rng.integers(ends[-1]))
            number = int(np.searchsorted(ends, at, side="right"))
            byte, bit = at - (int(ends[number - 1]) if number else 0), int(rng.integers(8))
            flip(files[number], byte, bit)
            found[outcome(folder, size, asked, right)] += 1
            flip(files[number], byte, bit)
        assert not check_index(folder).messages
    how = "every array compared as it is read" if lazily else "as shipped"
    print(f"{flips} flipped bits, {len(asked)} queries after each, {how}:", flush=True)
    for name, count in found.most_common():
        print(f"  {count:4d} {name}", flush=True)


def seconds(function: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    function()
    return clock() - start


def warm(folder: Path, size: int, count: int) -> None:
    """The same ranker with and without the comparison, in turn for each call; the least CPU time of each, added up.

    The machine may be used by others, whose work disturbs these times; so the comparison is also timed alone.
    """
    asked = Synthetic(size).queries(count)
    with compared_lazily(True):
        ranker = Bm25Ranker(folder, threads=1)
    for how, parts in (("in one batch", [asked]), ("one by one", [[query] for query in asked])):
        for k in (10, 1000):
            best = least_times(ranker, parts, k)
            ours, bare, alone = (1e3 * float(np.sum(values)) for values in best)
            print(
                f"warm, {count} queries {how}, k={k}: {ours:.1f} ms with the comparison, {bare:.1f} ms without "
                f"({100 * (ours / bare - 1):+.2f}%); the comparison alone {alone:.3f} ms ({100 * alone / bare:.2f}%)",
                flush=True,
            )


def least_times(ranker: Bm25Ranker, parts: list[list[str]], k: int) -> list[np.ndarray]:
    """With, without and alone: the least seconds of each part."""
    check, skip = ranker._searcher._check, lambda _: None
    terms = [ranker.bags(pa.array(part, pa.large_string())).terms for part in parts]
    best = [np.full(len(parts), np.inf) for _ in range(3)]
    end, turn = time.perf_counter() + _WARM_S, 0
    while turn < _LEAST_TURNS or time.perf_counter() < end:
        turn += 1
        for i, part in enumerate(parts):
            for way in (0, 1) if (turn + i) % 2 else (1, 0):
                ranker._searcher._check = (check, skip)[way]  # type: ignore[method-assign]
                took = seconds(lambda part=part: ranker.search(part, k), time.process_time)
                best[way][i] = min(best[way][i], took)
            took = seconds(lambda i=i: check(terms[i]), time.process_time)
            best[2][i] = min(best[2][i], took)
    ranker._searcher._check = check  # type: ignore[method-assign]
    return best


def evict(folder: Path) -> None:
    """Ask the system to forget the files, so that they are read from disk again."""
    for path in files_of(folder):
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def cold(folder: Path, size: int) -> None:
    (query,) = Synthetic(size).queries(1)
    for state in ("in memory", "evicted"):
        for how, lazily, compared in (
            ("as shipped", False, True), ("block by block", True, True), ("without", True, False)
        ):  # fmt: skip
            if state == "evicted":
                evict(folder)
            with compared_lazily(lazily), contextlib.nullcontext() if compared else not_compared():
                opened: list[Bm25Ranker] = []
                opening = seconds(lambda opened=opened: opened.append(Bm25Ranker(folder, threads=1)))
                first = seconds(lambda opened=opened: opened[0].search([query], 10))
            print(f"files {state}, {how}: opening {1e3 * opening:.1f} ms, first query {1e3 * first:.1f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=400_000, help="passages")
    parser.add_argument("--flips", type=int, default=200)
    parser.add_argument("--queries", type=int, default=1000)
    given = parser.parse_args()
    root = Path(tempfile.mkdtemp())
    try:
        folder = root / "index"
        make(folder, given.size)
        total = sum(path.stat().st_size for path in files_of(folder))
        print(f"{given.size:,} passages, an index of {total / 1e6:.0f} MB in {len(files_of(folder))} files", flush=True)
        for lazily in (False, True):
            flip_bits(folder, given.size, given.flips, lazily)
        warm(folder, given.size, given.queries)
        cold(folder, given.size)
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
