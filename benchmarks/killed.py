"""kill -9 at random moments of a build, resumed each time: are the final bytes those of an undisturbed run?

``--data`` is a collection. The recipe refairmulate is run once undisturbed (or found in ``--whole``), then once on each
engine, killed ``--times`` times at moments drawn over the length of an undisturbed run, with all its workers.
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
    parser.add_argument("--recipe", default="refairmulate")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--whole", type=Path, help="the store of an undisturbed run of the same recipe")
    parser.add_argument("--seconds", type=float, help="how long an undisturbed run takes; with --whole")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        whole, seconds = options.whole, options.seconds
        if whole is None:
            whole = Path(folder) / "whole"
            seconds = finish(command(options, whole, "local"))
        expected = digests(whole)
        print(f"undisturbed: {len(expected)} files, {seconds:.0f} s", flush=True)
        draw = random.Random(options.seed)
        for engine in options.engines:
            store, killed, began = Path(folder) / engine, 0, time.perf_counter()
            moments = sorted(draw.uniform(0, seconds) for _ in range(options.times))
            for pause in (after - before for before, after in zip([0.0, *moments], moments, strict=False)):
                process = start(command(options, store, engine))
                time.sleep(max(pause, 2.0))
                killed += kill(process)
                shown = sorted(path.name.partition("-")[0] for path in store.glob("*-*") if path.is_dir())
                print(f"  {engine}: killed after {max(pause, 2.0):.1f} s; in the store: {', '.join(shown)}", flush=True)
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
