"""Small gzip files that unpack to gigabytes: one clear line, in little memory."""

import functools
import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Says how much memory the process ever had, in KiB. What getrusage says includes the process it was started from.
RUN = """
import re, sys
from pathlib import Path
from askew.ui.cli.main import run
code = run(sys.argv[1:])
print(re.search(r"VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1])
sys.exit(code)
"""
MEMBER = 64 << 20
MEMBERS = 48
MOST_KIB = 900 << 10
COMMANDS = {
    "documents of index": "index bomb.gz --out index",
    "documents of annotate": "annotate bomb.gz",
    "documents of measure": "measure old.run --docs bomb.gz",
    "published documents": "measure old.run --docs bomb.gz --preset rekabsaz2020",
    "a run": "measure bomb.gz --docs docs.tsv",
    "a published run": "measure bomb.gz --docs docs.tsv --preset bigdeli2022 --qrels qrels.txt",
    "judgements": "measure old.run --docs docs.tsv --qrels bomb.gz",
    "queries": "measure old.run --docs docs.tsv --queries bomb.gz",
    "a log": "logs bomb.gz --format aol",
}
GOOD = {
    "documents of index": b"d1\tshe said\n",
    "a run": b"q Q0 d 1 1 t\n",
    "a published run": b"q Q0 d 1 1 t\n",
    "judgements": b"q" * 200 + b" 0 d 1\n",
    "queries": b"q\tshe\n",
    "a log": b"1\tshe\t2006-03-01 00:00:00\t\t\n",
}

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to see the peak of memory")


@functools.cache
def _member(piece):
    return gzip.compress(piece * (MEMBER // len(piece)), 9, mtime=0)


def _bomb(piece):
    """A file of a few MB that unpacks to 3 GB: a gzip file may be several, one after the other."""
    Path("bomb.gz").write_bytes(_member(piece) * MEMBERS)
    assert Path("bomb.gz").stat().st_size < 20 << 20


def _refused(command):
    """One line and exit code 3, in less than a gigabyte; what the line says."""
    words = [sys.executable, "-c", RUN, *command.split()]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "80"})
    assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr
    assert "bomb.gz" in done.stderr
    assert int(done.stdout.split()[-1]) < MOST_KIB
    return done.stderr


@pytest.mark.parametrize("what", COMMANDS)
def test_a_line_that_never_ends_is_refused_with_its_number(what):
    _bomb(b"0")
    assert "bomb.gz:1: " in _refused(COMMANDS[what])


@pytest.mark.parametrize("what", GOOD)
def test_the_same_line_again_and_again_is_refused_where_it_would_fill_the_memory(what):
    _bomb(GOOD[what])
    _refused(COMMANDS[what])


@pytest.mark.parametrize("what", ["documents of index", "a run"])
def test_blank_lines_without_end_are_refused(what):
    _bomb(b"\n")
    _refused(COMMANDS[what])
