"""The documentation shows what the commands really print."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


refresh_docs, run_notebooks = tool("refresh_docs"), tool("run_notebooks")
# Pages and notebooks whose examples need a package of an extra.
NEEDS = {"pyterrier.md": "pyterrier", "train-and-compare.ipynb": "sentence_transformers"}


def name_of(path):
    return str(path.relative_to(ROOT))


def skip_without_packages(path):
    if path.name in NEEDS and importlib.util.find_spec(NEEDS[path.name]) is None:
        pytest.skip(f"{NEEDS[path.name]} is not installed")


@pytest.mark.parametrize("page", refresh_docs.PAGES, ids=name_of)
def test_every_example_in_the_documentation_prints_what_it_shows(page):
    text = page.read_text(encoding="utf-8")
    assert refresh_docs.refreshed(text) == text, "run: python tools/refresh_docs.py"


def test_a_pattern_with_groups_shows_only_these_and_one_without_shows_what_it_finds(tmp_path, monkeypatch):
    results = tmp_path / "results.md"
    results.write_text("# R\n\n## a.py\n\nfirst 1\nsecond 2\nthird 3\n", encoding="utf-8")
    monkeypatch.setattr(refresh_docs, "RESULTS", results)
    assert refresh_docs.result("a.py", r"^first.*\nsecond.*") == "```\nfirst 1\nsecond 2\n```"
    assert refresh_docs.result("a.py", r"^(first.*)\n.*\n(third.*)(fourth.*)?") == "```\nfirst 1\nthird 3\n```"


def test_rows_of_a_table_are_shown_below_the_header_of_their_table(tmp_path, monkeypatch):
    results = tmp_path / "results.md"
    table = "| a | b |\n| --- | --: |\n| one | 1 |\n| two | 2 |"
    results.write_text(f"# R\n\n## a.py\n\n| x |\n| --- |\n| 0 |\n\n{table}\n", encoding="utf-8")
    monkeypatch.setattr(refresh_docs, "RESULTS", results)
    assert refresh_docs.result("a.py", r"^\| two.*") == "| a | b |\n| --- | --: |\n| two | 2 |"
    assert refresh_docs.result("a.py", r"^(?:\| (?:one|two).*\n?)+") == table
    results.write_text("# R\n\n## a.py\n\n| no | header |\n| one | 1 |\n", encoding="utf-8")
    assert refresh_docs.result("a.py", r"^\| one.*") == "```\n| one | 1 |\n```"


def test_a_whole_section_names_its_command_and_shows_its_tables_outside_of_the_fence(tmp_path, monkeypatch):
    results = tmp_path / "results.md"
    table = "| a | b |\n| --- | --: |\n| one | 1 |"
    printed = f"first\n\n{table}\n\n |x| is no table\n\n{table}"
    results.write_text(f"# R\n\n## a.py --b\n\n2026-01-02, CPU, 2 cores\n\n```\n{printed}\n```\n", encoding="utf-8")
    monkeypatch.setattr(refresh_docs, "RESULTS", results)
    shown = "2026-01-02, `python benchmarks/a.py --b`, CPU, 2 cores"
    fences = ["```\nfirst\n```", table, "```\n |x| is no table\n```", table]
    assert refresh_docs.result("a.py --b") == "\n\n".join([shown, *fences])


def test_a_pattern_with_columns_shows_every_match_as_a_row_of_a_table(tmp_path, monkeypatch):
    results = tmp_path / "results.md"
    results.write_text("# R\n\n## a.py\n\none  1 [0, 2]\ntwo  2 [1, 3]\nthree\n", encoding="utf-8")
    monkeypatch.setattr(refresh_docs, "RESULTS", results)
    shown = "| name | \\|x\\| |\n| --- | --: |\n| one | 1 [0, 2] |\n| two | 2 [1, 3] |"
    assert refresh_docs.result("a.py", r"^(\w+) +(\d .*)", "name; |x|") == shown
    with pytest.raises(SystemExit, match="expected rows with the columns"):
        refresh_docs.result("a.py", r"^(four) +(.*)", "name; |x|")


@pytest.mark.parametrize("page", refresh_docs.PAGES, ids=name_of)
def test_every_python_example_in_the_documentation_runs(page, tmp_path, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    if not blocks:
        pytest.skip("the page has no example in Python")
    skip_without_packages(page)
    monkeypatch.chdir(tmp_path)
    # The examples of a page build on each other.
    exec(compile("\n".join(blocks), str(page), "exec"), {})


@pytest.mark.parametrize("path", run_notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_shows_what_its_cells_give(path):
    skip_without_packages(path)
    text = path.read_text(encoding="utf-8")
    made = run_notebooks.written(run_notebooks.executed(json.loads(text)))
    assert made == text, "run: python tools/run_notebooks.py"


def test_there_are_six_tutorials():
    assert len(run_notebooks.NOTEBOOKS) == 6
