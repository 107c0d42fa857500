"""Memory and time of ``askew run``, ``report`` and ``publish`` as the candidates grow.

Makes a collection of synthetic passages and queries, and a recipe whose reformulator makes ``--per-query`` candidates
of each query from a seed; all other stages are those of the recipe ``refairmulate``. Each
command is run as a process of its own. Memory is the peak of each process (``VmHWM``, resident pages with those of
mapped files): of the command itself, and the largest of its workers.

    python benchmarks/scale.py --candidates 1000000 3000000
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scale_text import SHAPE, word_of, write_collection

HERE = Path(__file__).parent
RECIPE = """\
title = "Scale"

[collection]
source = "{source}"

[[reformulate]]
method = "scale"
count = {count}

[retrieve]
ranker = "bm25-msmarco"
k = {k}

[evaluate]
measures = [
    "RR@10", "AP@10", "ARaB(tf)@10", "ARaB(tc)@10",
    "ARaB(bool)@10",
    "ARaB(tf)@10", "ARaB(tc)@10", "ARaB(bool)@10", "LexiconShare@10", "NFaiRR@10",
]

[select]
selector = "refairmulate"
effectiveness = "RR@10"
bias = "ARaB(tf)@10 ARaB(tc)@10 \
ARaB(bool)@10"
"""


class Synthetic:
    """Candidates made from a seed: a word of the query left out, put in or replaced."""

    method = "scale"
    reads: frozenset[str] = frozenset()

    def __init__(self, count: int = 49) -> None:
        self._count = count

    def settings(self) -> dict[str, Any]:
        """How many, and the version of how they are made."""
        return {"count": self._count, "made": 1}

    def reformulate(self, asked: Any) -> Any:
        """The same candidates for the same query, whatever the batch."""
        from askew.core.protocols import Candidates

        found = Candidates()
        for row, (query, text) in enumerate(zip(asked.query_ids, asked.texts, strict=True)):
            draw, words = random.Random(zlib.crc32(query.encode())), text.split()
            for _ in range(self._count):
                found.add(row, " ".join(changed(words, draw)))
        return found


def changed(words: list[str], draw: random.Random) -> list[str]:
    """The words with one or two of them left out, replaced, or others put in."""
    found = list(words)
    for _ in range(draw.randint(1, 2)):
        at, how = draw.randrange(len(found)), draw.random()
        new = word_of(int(SHAPE.words ** draw.random()) - 1)
        if how < 0.3 and len(found) > 2:
            del found[at]
        elif how < 0.6:
            found[at] = new
        else:
            found.insert(at, new)
    return found


@dataclass(frozen=True)
class Used:
    """What a command took: seconds, those of the processors, and the peak in MiB of it and of its largest worker."""

    seconds: float
    cpu: float
    driver: float
    worker: float


def measured(words: list[str], environment: dict[str, str], log: Path) -> Used:
    """Run a command of askew and watch its processes."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    program = [str(Path(sys.executable).with_name("askew")), *words]
    peaks: dict[int, float] = {}
    with log.open("wb") as said:
        process = subprocess.Popen(program, env=environment, stdout=said, stderr=subprocess.STDOUT)
        while process.poll() is None:
            for pid in family(process.pid):
                peaks[pid] = max(peaks.get(pid, 0.0), peak(pid))
            time.sleep(0.1)
    if process.returncode:
        sys.exit(f"askew {' '.join(words)}: exit code {process.returncode}\n{log.read_text()[-2000:]}")
    others = [value for pid, value in peaks.items() if pid != process.pid]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Used(time.perf_counter() - began, cpu, peaks[process.pid], max(others, default=0.0))


def family(pid: int) -> Iterator[int]:
    """A process and all its descendants."""
    yield pid
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = " ".join((one / "children").read_text() for one in threads)
    except OSError:
        return
    for child in children.split():
        yield from family(int(child))


def peak(pid: int) -> float:
    """The largest resident set of a process so far, in MiB."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def environment_of(folder: Path) -> dict[str, str]:
    """An environment in which askew finds the reformulator of this file."""
    plugin = folder / "plugin" / "askew_scale-1.dist-info"
    plugin.mkdir(parents=True, exist_ok=True)
    (plugin / "METADATA").write_text("Metadata-Version: 2.1\nName: askew-scale\nVersion: 1\n")
    (plugin / "entry_points.txt").write_text("[askew.reformulator]\nscale = scale:Synthetic\n")
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, known), str(plugin.parent)])}


def grow(options: argparse.Namespace, folder: Path) -> None:
    """Run all commands at each size and print what each took."""
    print(f"{options.docs:,} passages, {options.per_query} variants a query, k={options.k}, {options.workers} workers")
    for size in options.candidates:
        place = folder / f"{size}"
        shutil.rmtree(place, ignore_errors=True)
        write_collection(place / "collection", options.docs, max(1, size // options.per_query), options.seed)
        recipe = RECIPE.format(source=place / "collection", count=options.per_query - 1, k=options.k)
        (place / "scale.toml").write_text(recipe)
        watch(place, size, options, folder)
        if not options.keep:
            shutil.rmtree(place)


def watch(place: Path, size: int, options: argparse.Namespace, folder: Path) -> None:
    """Run the commands and print a line for each."""
    common = [str(place / "scale.toml"), "--store", str(place / "store")]
    found = {
        "run": ["run", *common, "--workers", str(options.workers)],
        "report": ["report", *common, "--out", str(place / "report")],
        "publish": ["publish", *common, "--out", str(place / "dataset")],
    }
    for name in options.commands:
        used = measured(found[name], environment_of(folder), place / f"{name}.log")
        print(
            f"{size:>12,} candidates  {name:8} {used.seconds:8.1f} s, {used.cpu:8.1f} CPU s, "
            f"{1e6 * used.cpu / size:6.1f} CPU us each  driver {used.driver:6.0f} MiB  worker {used.worker:6.0f} MiB",
            flush=True,
        )
    print(f"{'':>12} store {disk(place / 'store'):,.0f} MiB, dataset {disk(place / 'dataset'):,.0f} MiB")


def disk(folder: Path) -> float:
    """The size of all files below a folder in MiB."""
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, nargs="+", default=[1_000_000, 3_000_000])
    parser.add_argument("--docs", type=int, default=100_000)
    parser.add_argument("--per-query", type=int, default=50, help="variants of a query, with the original")
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", nargs="+", default=["run", "report", "publish"])
    parser.add_argument("--keep", type=Path, help="work in this folder and keep what was made")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        grow(options, options.keep)
        return
    with tempfile.TemporaryDirectory() as folder:
        grow(options, Path(folder))


if __name__ == "__main__":
    main()
