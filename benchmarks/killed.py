"""kill -9 at random moments of a build, resumed each time: are the final bytes those of an undisturbed run?

``--data`` is a collection. The recipe refairmulate-paper is run once undisturbed (or found in ``--whole``), then once
on each engine, killed ``--times`` times with all its workers. The moments are drawn over the work: each time the
store has a drawn number of files (parts of finished and unfinished steps), and up to a second later.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ENGINES = {"local": ["--workers", "2"], "ray": ["--engine", "ray", "--workers", "2"]}


def command(options: argparse.Namespace, store: Path, engine: str) -> list[str]:
    given = ["--set", f"collection.source={options.data}", "--store", str(store), *ENGINES[engine]]
    return [str(Path(sys.executable).with_name("askew")), "run", options.recipe, *given]


def start(words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def kill(process: subprocess.Popen[bytes]) -> bool:
    """Whether it was still there to be killed."""
    if process.poll() is not None:
        return False
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def digests(store: Path) -> dict[str, str]:
    """Every part and manifest of the finished steps; provenance says when and where, so it is left out."""
    return {
        str(path.relative_to(store)): hashlib.sha256(path.read_bytes()).hexdigest()
        for manifest in sorted(store.glob("*/manifest.json"))
        for path in sorted(manifest.parent.iterdir())
        if path.name != "provenance.json" and not path.name.startswith(".")
    }


def files(store: Path) -> int:
    """How many files the steps of the recipe have, whole or not; an index is not a step."""
    return sum(1 for path in store.glob("*-*/*") if not path.parent.name.startswith(("index-", "cross-")))


def wait_for(process: subprocess.Popen[bytes], store: Path, wanted: int) -> None:
    while process.poll() is None and files(store) < wanted:
        time.sleep(0.05)


def finish(words: list[str]) -> float:
    begin = time.perf_counter()
    process = start(words)
    _, said = process.communicate()
    if process.returncode:
        sys.exit(said.decode(errors="replace"))
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--recipe", default="refairmulate-paper")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--whole", type=Path, help="the store of an undisturbed run of the same recipe")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        whole = options.whole
        if whole is None:
            whole = Path(folder) / "whole"
            print(f"undisturbed: {finish(command(options, whole, 'local')):.0f} s", flush=True)
        expected, most = digests(whole), files(whole)
        draw = random.Random(options.seed)
        for engine in options.engines:
            store, killed, began = Path(folder) / engine, 0, time.perf_counter()
            for wanted in sorted(draw.sample(range(1, most), options.times)):
                process, start_of = start(command(options, store, engine)), time.perf_counter()
                wait_for(process, store, wanted)
                time.sleep(draw.uniform(0, 1))
                killed += kill(process)
                shown = sorted(path.parent.name.partition("-")[0] for path in store.glob("*/manifest.json"))
                print(
                    f"  {engine}: killed after {time.perf_counter() - start_of:.1f} s with {files(store)} of {most} "
                    f"files; finished: {', '.join(shown) or 'nothing'}",
                    flush=True,
                )
            finish(command(options, store, engine))
            found = digests(store)
            equal = found == {name: expected.get(name) for name in found} and any("pairs-" in name for name in found)
            print(
                f"{engine}: killed {killed} times, {time.perf_counter() - began:.0f} s in all, {len(found)} files: "
                f"{'the same bytes' if equal else 'NOT the same bytes'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
