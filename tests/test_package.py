"""The package as a whole: what importing it costs, and what the words page promises."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import askew
from askew.train.shipped import shipped_models

ROOT = Path(__file__).parent.parent
SOURCE = Path(askew.__file__).parent


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_importing_askew_imports_neither_torch_nor_pandas_nor_numba():
    heavy = run_python("import sys, askew; print([m for m in ('torch','pandas','numba','polars') if m in sys.modules])")
    assert heavy.strip() == "[]"


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom askew.ui.cli.main import run\nrun(['--help'])\n"
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


def stated_license(text):
    """The SPDX identifier of what a file of data says of itself; none where it states facts of a publication."""
    return None if text == "words listed as facts in the paper" else text


def test_the_license_of_the_package_names_every_license_of_what_it_ships():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = set(project["license"].split(" AND "))
    assert "Apache-2.0" in named
    for path in (ROOT / "src/askew/shipped").rglob("*.toml"):
        found = tomllib.loads(path.read_text(encoding="utf-8")).get("license")
        assert found is None or stated_license(found) in {*named, None}, path
    cards = [path.read_text(encoding="utf-8") for path in (ROOT / "src/askew/shipped/adapters").rglob("README.md")]
    heads = [re.search(r"^license: (\S+)$", card, re.MULTILINE) for card in cards]
    assert {head[1] for head in heads if head} == {"cc-by-sa-4.0"} <= {one.lower() for one in named}
    assert len(cards) == len([head for head in heads if head])
    texts = {path.stem for path in (ROOT / "licenses").glob("*.txt")}
    assert texts == named - {"Apache-2.0"}


def test_the_license_files_are_listed_and_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license-files"] == ["LICENSE", "NOTICE", "licenses/*.txt"]
    for pattern in project["license-files"]:
        found = list(ROOT.glob(pattern))
        assert found and all(path.stat().st_size > 1000 for path in found), pattern


def test_the_notice_accounts_for_every_file_of_data():
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    for path in (ROOT / "src/askew/shipped").rglob("*"):
        place = path.relative_to(ROOT / "src/askew")
        if path.is_file() and "__pycache__" not in place.parts:
            named = [one for one in (place, *place.parents) if str(one) not in (".", "shipped")]
            assert any(re.search(rf"{re.escape(str(one))}(?=[,\s])", notice) for one in named), place


def test_the_notice_names_whom_the_licenses_ask_to_name():
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    for name in ("Navid Rekabsaz", "Microsoft Corporation", "Unicode, Inc.", "Clark", "Rajpurkar", "Wikipedia"):
        assert name in notice
    for address in ("GenderBias_IR", "FairnessRetrievalResults", "boolean-questions", "SQuAD-explorer", "unicode.org"):
        assert re.search(rf"https://\S*{re.escape(address)}", notice), address


def test_no_default_of_a_command_stands_in_the_command_line():
    """Options have no default (None or False), or name one of the library."""
    own = []
    for path in (SOURCE / "ui/cli").glob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and function.name.endswith("command"):
                own += [
                    f"{path.name} {function.name}: {ast.unparse(one)}"
                    for one in function.args.defaults
                    if isinstance(one, ast.Constant) and one.value not in (None, False, True, "")
                ]
    assert own == []


def test_the_wheel_has_every_file_of_the_shipped_models(tmp_path):
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install hatchling")
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as opened:
        held = set(opened.namelist())
    for model in shipped_models():
        wanted = [model.about, *(model.folder / file for file in model.facts["files"])]
        if model.about.name == "model.json":
            wanted.append(model.folder / "README.md")
        if model.headline is not None:
            wanted.append(model.folder / model.facts["headline"].get("file", "measured.json"))
        for file in wanted:
            assert file.resolve().relative_to(SOURCE.parent).as_posix() in held
    assert {f"licenses/{path.name}" for path in (ROOT / "licenses").glob("*.txt")} <= {
        name.partition(".dist-info/licenses/")[2] for name in held
    }
