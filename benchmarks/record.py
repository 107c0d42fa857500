"""Run benchmarks and write what they print to results.md; sections of programs that did not run stay as they are.

python benchmarks/record.py annotate.py score.py memory.py
python benchmarks/record.py "annotate.py --docs DOCS" bm25.py "retrieval.py --data FOLDER"
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results.md"
_PLACES = {"--store", "--whole", "--work", "--before"}  # where something lies here says nothing to others


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def sections() -> dict[str, str]:
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return {title: body.strip() for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def run(command: str) -> tuple[str, str]:
    """The title and the text of a section. Folders are left out of it."""
    program, *rest = shlex.split(command)
    shown = [word for before, word in zip(["", *rest], rest, strict=False) if not _PLACES & {before, word}]
    title = " ".join([program, *(Path(word).name if "/" in word else word for word in shown)])
    print(title, flush=True)
    done = subprocess.run([sys.executable, HERE / program, *rest], stdout=subprocess.PIPE, text=True, check=True)
    machine = f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    # PISA talks while it indexes, on the same stream.
    noise = re.compile(r"\r|/pisa/|\[info\]")
    printed = "\n".join(line for line in done.stdout.split("\n") if not noise.search(line)).strip("\n")
    return title, f"{datetime.date.today().isoformat()}, {machine}\n\n```\n{printed}\n```"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="+", help="a program with its arguments")
    for command in parser.parse_args().commands:
        title, text = run(command)
        # Read only now: another one may have written meanwhile.
        found = sections() | {title: text}
        body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sorted(found.items()))
        RESULTS.write_text(
            f"# Results of the benchmarks\n\nWritten by `benchmarks/record.py`.\n\n{body}\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
