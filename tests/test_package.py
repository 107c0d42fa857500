"""The package as a whole: what importing it costs, and what the words page promises."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import askew

ROOT = Path(__file__).parent.parent


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_importing_askew_imports_neither_torch_nor_pandas_nor_numba():
    heavy = run_python("import sys, askew; print([m for m in ('torch','pandas','numba','polars') if m in sys.modules])")
    assert heavy.strip() == "[]"


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom askew.cli.main import run\nrun(['--help'])\n"
        "print([m for m in ('torch','pandas','numba','polars','pyarrow','numpy') if m in sys.modules])"
    )
    assert run_python(code).splitlines()[-1] == "[]"


def test_every_public_name_can_be_had():
    for name in askew.__all__:
        assert getattr(askew, name) is not None


def test_the_words_page_names_things_that_exist():
    words = (ROOT / "docs" / "words.md").read_text(encoding="utf-8")
    places = re.findall(r"`(askew\.[a-z_.]+)\.([A-Za-z_]+)`", words)
    assert len(places) >= 10
    for module, name in places:
        assert hasattr(importlib.import_module(module), name), f"{module}.{name}"


def test_no_folder_of_tests_has_a_name_that_pytest_passes_over():
    passed_over = {"build", "dist", "venv", "node_modules", "CVS", "_darcs"}
    folders = {path.name for path in Path(__file__).parent.rglob("*") if path.is_dir()}
    assert not folders & passed_over
