"""Memory of ``askew annotate`` as the documents grow: each size in a process of its own, its peak printed."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from text import passages

CHILD = """
import resource, sys
from pathlib import Path
from askew.core.store.store import Store
from askew.measures.counts import Annotate, annotate
outcome = annotate(Path(sys.argv[1]), Store(sys.argv[2]), Annotate("rekabsaz2021"))
print(outcome.manifest.rows_out, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    block = [f"{text}\n" for text in passages(None, 100_000)]
    for times in (1, 4, 16):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "docs.tsv"
            with path.open("w", encoding="utf-8") as file:
                for i in range(times):
                    file.writelines(f"{i}-{row}\t{text}" for row, text in enumerate(block))
            size = path.stat().st_size >> 20
            done = subprocess.run(
                [sys.executable, "-c", CHILD, path, folder + "/store"], capture_output=True, text=True, check=True
            )
            rows, peak = done.stdout.split()
            print(f"{int(rows):>9,} documents, {size:>5,} MiB of text: peak {peak} MiB")
    print(f"(this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB)")


if __name__ == "__main__":
    main()
