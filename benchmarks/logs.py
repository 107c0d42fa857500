"""Query logs: ten million rows in bounded memory, and askew against a plain loop over rows with the same definition.

The log is made up (two searches a session, AOL columns). The peer does per row what a short script would do: split the
line, read the time, cut the query into terms, see whether the user and the session go on, and compare the terms with
those of the query before. It counts the same events; the program stops if it does not. ``rows`` is everything after
reading, ``file`` everything from the file on. The figures for the whole log include all tables.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from log_generator import Planted, SyntheticLog, write_log

from askew.core.lexicon import load_lexicon
from askew.logs.definition import LogVocabulary, build_vocabulary, terms
from askew.logs.pairs import Walk, walk
from askew.logs.reading import log_sources, read_log
from askew.logs.tables import canonical_column

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "logs"))
from plain import read_block

GAP = 30 * 60
# The peak of this process alone: getrusage would count what its parent held when it was started.
CHILD = """
import re, resource, sys, time
from pathlib import Path
from askew.logs.analyze import LogSettings, logs
wall = time.perf_counter()
report = logs(sys.argv[1], format=sys.argv[2], settings=LogSettings(threads=2))
used = resource.getrusage(resource.RUSAGE_SELF)
peak = int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
print(time.perf_counter() - wall, used.ru_utime + used.ru_stime, peak, report.counts["rows_read"])
"""


def added(old: tuple[str, ...], new: tuple[str, ...], vocabulary: LogVocabulary) -> str:
    """What the second query is to the first, as ``askew.logs.definition`` has it, on terms that are cut already."""
    more = len(new) - len(old)
    if more < 1:
        return "other"
    found = "other"
    for place in range(len(old) + 1):
        if new[:place] == old[:place] and new[place + more :] == old[place:]:
            found = "specializing"
            if any(read_block(new[place : place + more], vocabulary) or ()):
                return "for_group"
    return found


def loop(rows: Iterator[tuple[str, float, str]], vocabulary: LogVocabulary) -> Counter[str]:
    """The plain loop: rows of a user come together and in order."""
    counts: Counter[str] = Counter()
    before: tuple[str, ...] = ("",)
    user, when = "", 0.0
    for who, moment, text in rows:
        words = terms(text)
        if who == user and moment - when <= GAP:
            if words != before:
                counts[added(before, words, vocabulary)] += 1
        else:
            counts["sessions"] += 1
        user, when, before = who, moment, words
    return counts


def lines_of(path: Path) -> Iterator[tuple[str, float, str]]:
    with path.open(encoding="utf-8") as file:
        next(file)
        for line in file:
            columns = line.rstrip("\n").split("\t")
            if len(columns) == 5:
                yield columns[0], datetime.fromisoformat(columns[2]).timestamp(), columns[1]


def best(work: Callable[[], object], times: int = 3) -> tuple[float, float]:
    """The least CPU and wall seconds of several tries."""
    tries = []
    for _ in range(times):
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        tries.append((time.process_time() - cpu, time.perf_counter() - wall))
    return min(t[0] for t in tries), min(t[1] for t in tries)


def ratio(name: str, rows: int, plain: tuple[float, float], ours: tuple[float, float]) -> None:
    print(
        f"{name}: plain loop {1e6 * plain[0] / rows:.2f} us, askew {1e6 * ours[0] / rows:.3f} (CPU) | "
        f"{plain[0] / ours[0]:.0f}x CPU, {plain[1] / ours[1]:.0f}x wall"
    )


def columns_of(read: list[tuple[str, float, str]]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "user": np.unique([row[0] for row in read], return_inverse=True)[1].astype(np.uint64),
            "time": [round(1000 * row[1]) for row in read],
            "query": pl.Series(canonical_column(pa.array([row[2] for row in read]))),
            "line": np.arange(len(read)),
        }
    )


def compare(path: Path, rows: int) -> None:
    vocabulary = build_vocabulary(load_lexicon("gsqr2023"))
    how = Walk(vocabulary, 1000 * GAP)
    read = list(lines_of(path))
    frame = columns_of(read)
    plain, ours = loop(iter(read), vocabulary), walk(frame, how).counts
    if (plain["for_group"], plain["sessions"]) != (ours["for_group"], ours["sessions"]):
        raise SystemExit(f"the two do not agree: {plain} and {ours}")
    found = f"{ours['pairs']:,} pairs, {ours['specializing']:,} specializing, {ours['for_group']:,} for a group"
    print(f"{rows:,} rows: {found}")
    ratio("rows", rows, best(lambda: loop(iter(read), vocabulary), 2), best(lambda: walk(frame, how)))
    peer = best(lambda: loop(lines_of(path), vocabulary), 2)
    for threads in (1, 2):
        ours_too = best(lambda t=threads: read_log(log_sources(path, "aol"), how, threads=t))
        ratio(f"file, {threads} thread(s)", rows, peer, ours_too)


def whole(path: Path, form: str) -> None:
    done = subprocess.run([sys.executable, "-c", CHILD, path, form], capture_output=True, text=True, check=True)
    wall, cpu, peak, rows = (float(word) for word in done.stdout.split())
    size = path.stat().st_size / 2**20
    print(
        f"{rows:,.0f} rows, {size:,.0f} MiB of {form}, all tables, two threads: {wall:.1f} s, {cpu:.1f} s CPU, "
        f"{rows / wall / 1e6:.2f} million rows a second, peak {peak:,.0f} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--part", type=int, default=500_000, help="rows for the comparison with the loop")
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        part = SyntheticLog(Planted(sessions=options.part // 2, users=options.part // 15), pages=False)
        compare(write_log(part, folder / "part.txt", "aol", "user"), options.part)
        for rows, order in ((options.rows // 4, "user"), (options.rows, "user"), (options.rows, "time")):
            start = time.perf_counter()
            log = SyntheticLog(Planted(sessions=rows // 2, users=rows // 15), pages=False)
            path = write_log(log, folder / f"{order}.txt", "aol", order)
            print(f"\nmade in {time.perf_counter() - start:.0f} s, sorted by {order}")
            whole(path, "aol")
            path.unlink()
        pages = SyntheticLog(Planted(sessions=options.rows // 20, users=options.rows // 150))
        print("\nwith ten results on each page")
        whole(write_log(pages, folder / "pages.parquet"), "parquet")


if __name__ == "__main__":
    main()
