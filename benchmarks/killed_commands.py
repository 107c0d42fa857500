"""kill -9 at random moments of single commands: does the same command, run again, leave what an undisturbed one leaves?

``index``, ``annotate``, ``publish`` and ``logs`` are run once undisturbed, then killed ``--times`` times at moments
drawn over the last three fifths of the time they took (before that Python starts), each time from nothing, and run to
the end. Builds are killed by ``killed.py``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ASKEW = str(Path(sys.executable).with_name("askew"))
DOCUMENTS = 60_000
# When, where and how fast it was made.
NOT_COMPARED = {"provenance.json", ".lock"}


def commands(folder: Path) -> dict[str, list[str]]:
    docs = str(folder / "docs.tsv")
    return {
        "index": ["index", docs, "--out", "OUT"],
        "annotate": ["annotate", docs, "--tokens", "word", "--store", "OUT"],
        "publish": ["publish", "demo", "--store", str(folder / "store"), "--out", "OUT"],
        "logs": ["logs", "--demo", "--out", "OUT"],
    }


def prepare(folder: Path) -> None:
    draw = random.Random(0)
    words = [f"w{n}" for n in range(5000)] + ["she", "he", "woman", "man"] * 50
    with (folder / "docs.tsv").open("w", encoding="utf-8") as file:
        for number in range(DOCUMENTS):
            file.write(f"d{number}\t{' '.join(draw.choices(words, k=60))}\n")
    subprocess.run([ASKEW, "run", "demo", "--store", str(folder / "store")], check=True, capture_output=True)


def start(words: list[str], out: Path) -> subprocess.Popen[bytes]:
    given = [ASKEW, *(str(out) if word == "OUT" else word for word in words)]
    return subprocess.Popen(given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def content(out: Path) -> dict[str, str]:
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name not in NOT_COMPARED
    }


def finish(words: list[str], out: Path) -> float:
    begin = time.perf_counter()
    process = start(words, out)
    _, said = process.communicate()
    if process.returncode:
        print(f"  exit code {process.returncode}: {said.decode(errors='replace').strip()}", flush=True)
    return time.perf_counter() - begin


def clear(out: Path) -> None:
    for path in out.parent.glob(f"*{out.name}*"):
        shutil.rmtree(path, ignore_errors=True)


def kill_at_random(name: str, words: list[str], folder: Path, times: int, draw: random.Random) -> None:
    whole, out = folder / f"{name}-whole", folder / f"{name}-killed"
    took = finish(words, whole)
    expected, killed, same, begun = content(whole), 0, 0, 0
    for _ in range(times):
        clear(out)
        process = start(words, out)
        time.sleep(draw.uniform(0.4, 1) * took)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            killed += 1
        process.communicate()
        left = [path.name for path in folder.glob(f"*{out.name}*")]
        begun += bool(left)
        if content(out) != expected:  # else it was killed when all was done
            finish(words, out)
        same += content(out) == expected
        lying = sorted(path.name for path in folder.glob(f"*{out.name}*") if path != out)
        if lying:
            print(f"  {name}: left beside the result: {', '.join(lying)}", flush=True)
    print(
        f"{name}: {took:.1f} s undisturbed; killed {killed} of {times} times, {begun} times with something written; "
        f"{same} of {times} ended with the same {len(expected)} files",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for what, words in commands(folder).items():
            if options.only is None or what in options.only:
                kill_at_random(what, words, folder, options.times, random.Random(options.seed))


if __name__ == "__main__":
    main()
