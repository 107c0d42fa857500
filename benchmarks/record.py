"""Run the benchmarks and write what they print to results.md, with the machine they ran on."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = (("annotate.py",), ("score.py",), ("memory.py",))


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=Path, help="a real collection for annotate.py, recorded beside the made-up one")
    options = parser.parse_args()
    programs = list(PROGRAMS)
    if options.docs:
        programs.insert(1, ("annotate.py", "--docs", str(options.docs)))
    today = datetime.date.today().isoformat()
    machine = f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    text = f"# Results of the benchmarks\n\nWritten by `benchmarks/record.py` on {today}: {machine}.\n"
    for program in programs:
        shown = " ".join([program[0], *(Path(word).name for word in program[1:])])
        print(shown, flush=True)
        done = subprocess.run(
            [sys.executable, HERE / program[0], *program[1:]], capture_output=True, text=True, check=True
        )
        text += f"\n## {shown}\n\n```\n{done.stdout}```\n"
    (HERE / "results.md").write_text(text)


if __name__ == "__main__":
    main()
