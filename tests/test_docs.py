"""The documentation shows what the commands really print."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("refresh_docs", ROOT / "tools" / "refresh_docs.py")
refresh_docs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(refresh_docs)
# Pages whose examples need a package of an extra.
NEEDS = {"pyterrier.md": "pyterrier"}


@pytest.mark.parametrize("page", refresh_docs.PAGES, ids=lambda page: page.name)
def test_every_example_in_the_documentation_prints_what_it_shows(page):
    text = page.read_text(encoding="utf-8")
    assert refresh_docs.refreshed(text) == text, "run: python tools/refresh_docs.py"


@pytest.mark.parametrize("page", refresh_docs.PAGES, ids=lambda page: page.name)
def test_every_python_example_in_the_documentation_runs(page, tmp_path, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    if not blocks:
        pytest.skip("the page has no example in Python")
    if page.name in NEEDS and importlib.util.find_spec(NEEDS[page.name]) is None:
        pytest.skip(f"{NEEDS[page.name]} is not installed: pip install '.[{NEEDS[page.name]}]'")
    monkeypatch.chdir(tmp_path)
    # The examples of a page build on each other.
    exec(compile("\n".join(blocks), str(page), "exec"), {})
