"""Ceilings on the whole, which later changes may only lower. To print the counts: pytest -s tests/test_ceilings.py."""

import subprocess
from pathlib import Path

import pytest

import askew

ROOT = Path(__file__).parent.parent
CEILINGS = {
    "lines of src": 63_100,
    "files of src": 281,
    "public names": 77,
    "words of docs": 50_200,
    "MiB of tracked files": 45,
}


def lines(folder):
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py"))


def tracked_bytes():
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("this is no git checkout")
    return sum((ROOT / name).lstat().st_size for name in listing.stdout.split("\0") if name and (ROOT / name).exists())


def test_the_whole_stays_under_its_ceilings():
    counts = {
        "lines of src": lines("src"),
        "files of src": len(list((ROOT / "src").rglob("*.py"))),
        "public names": len(askew.__all__),
        "words of docs": sum(len(path.read_text(encoding="utf-8").split()) for path in (ROOT / "docs").rglob("*.md")),
        "MiB of tracked files": tracked_bytes() / 2**20,
    }
    beside = {f"lines of {folder}": lines(folder) for folder in ("benchmarks", "tools")}
    print(*(f"{name}: {count:,.0f}" for name, count in (counts | beside).items()), sep="\n")  # noqa: T201
    assert {name: count for name, count in counts.items() if count > CEILINGS[name]} == {}
