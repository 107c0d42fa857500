"""The site is built offline, whole, without a dead link, and loads nothing from elsewhere."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import PurePosixPath

import pytest
from doc_blocks import PAGES, ROOT

import askew
from askew.pairs import recipe

pytestmark = pytest.mark.xdist_group("site")


def load(name):
    spec = importlib.util.spec_from_file_location(f"site_{name}", ROOT / "tools" / "site" / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


check, notebooks, reference = load("check"), load("notebooks"), load("reference")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_no_link_is_dead_and_nothing_is_loaded_from_elsewhere(site):
    assert list(check.problems(site)) == []


def test_the_page_of_an_unknown_address_leads_to_pages_of_the_site(site):
    text = (site / "404.html").read_text(encoding="utf-8").partition("<h1>Page not found</h1>")[2].partition("</ul>")[0]
    links = re.findall(r'href="/([^"]+)"', text)
    assert len(links) == 5
    assert all((site / link).is_file() for link in links)


def test_every_page_and_notebook_of_docs_is_a_page_of_the_site(site):
    docs = ROOT / "docs"
    for path in [page for page in PAGES if docs in page.parents] + sorted(docs.rglob("*.ipynb")):
        assert (site / path.relative_to(docs)).with_suffix(".html").exists(), path


def test_the_reference_has_every_public_name_and_command(site):
    api, cli = ((site / name).read_text(encoding="utf-8") for name in ("api.html", "cli.html"))
    measures = [name for name in askew.__all__ if isinstance(getattr(askew, name), askew.Measure)]
    for name in set(askew.__all__) - {"__version__"}:
        assert f'id="askew.{name}"' in api or (name in measures and f"<code>{name}</code>" in api), name
    for name in ("measure", "compare", "audit", "train-ranker", "verify"):
        assert f'id="{name}"' in cli


def test_the_reference_of_recipes_has_every_section_and_every_key():
    text = (ROOT / "docs" / "build.md").read_text(encoding="utf-8").partition("## Recipe reference")[2]
    for section in (*recipe._TABLES, *recipe.LISTS):
        assert re.search(rf"\*\*`\[+{section}\]+`\*\*", text), section
    for key in (*recipe._PUBLISH, "source", "fields", "split", "lexicon", "words", "names", "tokens", "measures"):
        assert f"`{key}`" in text


def test_dead_links_and_things_from_elsewhere_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#top">b</a><a href="b.html#gone">b</a><a href="c.html">c</a>'
        '<a href="https://example.org">fine</a><script src="https://cdn.example/x.js"></script>'
        '<style>@import "//fonts.example/a.css";</style><img src="no.png">'
    )
    (tmp_path / "b.html").write_text('<h1 id="top">B</h1>')
    (tmp_path / "s.css").write_text("@font-face { src: url(https://fonts.example/f.woff2) }")
    assert list(check.problems(tmp_path)) == [
        "a.html: loads https://cdn.example/x.js",
        "a.html: loads //fonts.example/a.css",
        "a.html: b.html#gone leads to no place of that page",
        "a.html: c.html leads to no file",
        "a.html: no.png leads to no file",
        "s.css: loads https://fonts.example/f.woff2",
    ]


def test_a_notebook_shows_its_code_and_the_outputs_that_it_keeps():
    cells = [
        {"cell_type": "markdown", "source": ["# T"]},
        {
            "cell_type": "code", "source": ["1 + 1"],
            "outputs": [
                {"output_type": "stream", "text": ["```\n"]},
                {"output_type": "execute_result", "data": {"text/html": ["<b>2</b>\n", "\n"], "text/plain": ["2"]}},
            ],
        },
    ]  # fmt: skip
    shown = '# T\n\n```python\n1 + 1\n```\n\n````text\n```\n````\n\n<div class="output">\n<b>2</b>\n</div>\n'
    assert notebooks.as_markdown({"cells": cells}) == shown


def test_long_lines_of_an_output_are_wrapped_unless_they_are_a_table():
    sentence, row = "word " * 30, "a  b  " * 30
    shown = [
        notebooks._output({"text": [text]}).splitlines()[0] for text in (sentence, row, "short", f"{sentence}\n{row}")
    ]
    assert shown == ["```{ .text .prose }", "```text", "```text", "```text"]


def test_options_stay_on_one_line_and_outputs_have_no_copy_button(site):
    text = (site / "cli.html").read_text(encoding="utf-8")
    assert '<code><span class="option">--json</span></code>' in text
    assert '<div class="language-text no-copy highlight">' in text


def test_a_file_of_the_repository_is_its_page_or_its_path_without_nested_brackets(monkeypatch):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install '.[docs]'")
    monkeypatch.syspath_prepend(ROOT / "tools" / "site")
    linked, docs = load("hooks")._linked, PurePosixPath("docs")
    text = "See [a](../benchmarks/results.md) and (here [b](../pyproject.toml)); [c](../SECURITY.md)."
    assert linked(text, docs, docs) == (
        "See a (`benchmarks/results.md` in the repository) and (here b, `pyproject.toml` in the repository); "
        "[c](contributing/security.md)."
    )


def test_the_reference_of_a_command_has_its_usage_its_defaults_and_an_example():
    text = reference.commands()
    assert "askew audit ENGINE --queries TEXT [OPTIONS]" in text
    assert "\n```\n\nExample:\n\n```sh\naskew check demo " in text
    assert "| `--sample INTEGER` | The number" in text and "Default: `5000`. |" in text
    assert " are not written. Default: `100`. |" in text
    assert "`askew logs --out` wrote." in text
    assert "With `--engine local`, the value 1" in text
    assert "list[" not in text
    places = [text.index(f"## askew {name} ") for name in ("bench", "train", "negatives", "show")]
    assert places == sorted(places)
