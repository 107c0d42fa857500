"""The example changes in the contributor documentation apply to this tree, touch few files, and their tests pass."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "docs" / "contributing"
MOST_FILES = {"measure": 3, "reformulator": 3, "log-format": 3, "page": 4, "statistical-test": 3}


def files_of(change: Path) -> list[str]:
    return re.findall(r"^\+\+\+ b/(.+)$", change.read_text(encoding="utf-8"), flags=re.MULTILINE)


def announce(tree: Path) -> None:
    """Entry points of the changed tree, as an installed package has them."""
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = tree / "src" / "askew_example-0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: askew-example\nVersion: 0\n", encoding="utf-8")
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
    ]
    (told / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")


def test_every_kind_has_an_example():
    assert {one.stem for one in EXAMPLES.glob("*.diff")} == set(MOST_FILES)


@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the changes")
@pytest.mark.parametrize("kind", MOST_FILES)
def test_an_example_touches_few_files_and_its_test_passes(kind, tmp_path):
    change = EXAMPLES / f"{kind}.diff"
    touched = files_of(change)
    assert len(touched) <= MOST_FILES[kind]
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for one in touched:
        if (ROOT / one).is_file():
            (tmp_path / one).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / one, tmp_path / one)
    if not (tmp_path / "pyproject.toml").exists():
        shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    # Outside of any repository, so that git looks at this tree alone.
    outside = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent), "GIT_DIR": str(tmp_path / "none")}
    subprocess.run(["git", "apply", str(change)], cwd=tmp_path, env=outside, check=True)
    announce(tmp_path)
    (test,) = [one for one in touched if one.startswith("tests/")]
    for conftest in (ROOT / test).parent.glob("conftest.py"):
        shutil.copyfile(conftest, tmp_path / Path(test).parent / "conftest.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"),
         "--rootdir", str(tmp_path), test],
        cwd=tmp_path, env=outside | {"PYTHONPATH": os.pathsep.join(map(str, [tmp_path / "src", ROOT / "benchmarks"]))},
        capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
