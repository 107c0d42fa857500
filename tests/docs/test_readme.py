"""The README is short, its figures are those of the results, and links in the repository lead somewhere."""

import re
import tomllib

import pytest
from doc_blocks import PAGES, ROOT

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(`{3,}).*?^\1[ ]*$", re.MULTILINE | re.DOTALL)


def test_the_readme_has_fewer_than_700_words():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) < 700


def test_the_figures_of_the_readme_are_in_the_results():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = readme.partition("## What it found")[2].partition("\n## ")[0]
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    figures = re.findall(r"\d+\.\d%?(?: \[-?\d+, [+-]\d+\])?", found)
    assert len(figures) >= 8
    for figure in figures:
        assert figure in results, figure


def test_the_figures_of_the_corrected_claims_are_in_a_block_of_a_benchmark():
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    claims = page.partition("## Corrected claims")[2]
    blocks = (ROOT / "benchmarks" / "results.md").read_text(encoding="utf-8")
    now = [row.split(" | ")[-1] for row in claims.splitlines() if row.startswith("| ")][1:]
    figures = [one for cell in now for one in re.findall(r"[+-]?\d+\.\d+%?(?: \[[^\]]+\])?", cell)]
    assert len(now) == 6 and len(figures) >= 10
    for figure in figures:
        assert figure in blocks, figure


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_files_lead_to_files(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        target = link.partition("#")[0]
        if target and not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), link


def test_the_version_is_the_same_everywhere():
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    source = (ROOT / "src/askew/core/version.py").read_text(encoding="utf-8")
    assert cited is not None and f'"{cited[1]}"' in source


def test_every_package_that_builds_the_site_has_a_version_in_the_constraints():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()}
    for package in project["optional-dependencies"]["docs"]:
        assert re.split(r"[\[>]", package)[0] in pinned


def test_templates_hooks_and_citation_are_valid_yaml_and_name_commands_that_exist():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install '.[docs]'")
    for path in [ROOT / "CITATION.cff", *sorted((ROOT / ".github").rglob("*.yml"))]:
        assert yaml.safe_load(path.read_text(encoding="utf-8"))
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["preferred-citation"]["version"] == citation["version"]
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    assert {hook["id"] for hook in hooks} == {"ruff-check", "ruff-format", "mypy", "import-rules"}
    assert all(hook["language"] == "system" and hook["entry"].startswith(".venv/bin/") for hook in hooks)
