"""Is the Python interface the same as the command, and is it light? Values of ten runs, time and modules at the start.

    python benchmarks/interface.py --data FOLDER [--before SRC]

``--data`` has ``cpjku_dl19_runs`` and ``msmarco_dl1920``; ``--before`` is the ``src`` of another version, timed beside.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import askew
from askew import RR, ARaB, NFaiRR, nDCG

MEASURES = [RR @ 10, nDCG @ 10, ARaB("tf") @ 10, NFaiRR @ 10]
STARTS = {
    "python -c pass": ["-c", "pass"],
    "import askew": ["-c", "import askew"],
    "askew --help": ["-m", "askew.ui.cli.main", "--help"],
    "askew measure --help": ["-m", "askew.ui.cli.main", "measure", "--help"],
}
TIMES = 9


def equal_values(data: Path) -> None:
    runs = sorted((data / "cpjku_dl19_runs").glob("*.run"))
    docs, qrels = data / "msmarco_dl1920" / "docs.tsv", data / "msmarco_dl1920" / "qrels.dl19.txt"
    texts = " ".join(one.text for one in MEASURES)
    options = [
        "--docs",
        str(docs),
        "--qrels",
        str(qrels),
        "--measures",
        texts,
        "--missing",
        "drop",
        "--json",
        "--per-query",
    ]
    said = subprocess.run(
        [sys.executable, "-c", "from askew.ui.cli.main import main; main()", "measure", *map(str, runs), *options],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    by_command = json.loads(said)["runs"]
    by_library = json.loads(json.dumps(
        askew.measure(runs, docs, MEASURES, qrels=qrels, missing="drop").to_dict(per_query=True)
    ))["runs"]  # fmt: skip
    if by_command != by_library:
        raise SystemExit("the command and askew.measure differ")
    values = sum(len(found) for run in by_command for found in (run["measures"], *run["per_query"].values()))
    print(f"askew measure and askew.measure: {len(runs)} runs, {len(MEASURES)} measures, {values:,} values equal")


def starts(src: Path) -> dict[str, float]:
    env = {**os.environ, "PYTHONPATH": str(src)}
    found = {}
    for name, arguments in STARTS.items():
        times = []
        for _ in range(TIMES):
            begin = time.perf_counter()
            subprocess.run([sys.executable, *arguments], env=env, capture_output=True, check=True)
            times.append(time.perf_counter() - begin)
        found[name] = min(times)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--before", type=Path)
    options = parser.parse_args()
    equal_values(options.data)
    here = starts(Path(askew.__file__).parent.parent)
    before = starts(options.before) if options.before else {}
    print(f"\nleast of {TIMES} starts, seconds{'':10} now" + ("   before" if before else ""))
    for name, seconds in here.items():
        print(f"{name:32} {seconds:6.3f}" + (f"   {before[name]:6.3f}" if before else ""))
    heavy = "('numpy', 'polars', 'torch', 'pandas')"
    code = f"import sys, askew; print(len(sys.modules), 'of which heavy:', [m for m in {heavy} if m in sys.modules])"
    print("modules after import askew:", subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                                        check=True).stdout.strip())  # fmt: skip


if __name__ == "__main__":
    main()
