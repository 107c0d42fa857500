"""Every program in benchmarks and tools starts: what it imports is there, and it shows its help."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_every_program_shows_its_help():
    pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    starts = [sys.executable, ROOT / "tests" / "tools" / "programs.py"]
    done = subprocess.run(starts, capture_output=True, text=True, check=False, cwd=ROOT)
    *faults, last = done.stdout.splitlines()
    assert (faults, done.returncode) == ([], 0), done.stderr[-2000:]
    assert int(last.split()[0]) > 70
