"""Messages name pages of the documentation by their titles: an installed package has no folder docs."""

import ast
import re
from pathlib import Path

import pytest

import askew
from askew.core.defaults import TITLES, pages

SOURCE = Path(askew.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def strings(tree):
    """The texts of a module, without its docstrings."""
    documented = (node for node in ast.walk(tree) if isinstance(node, DOCUMENTED))
    docstrings = {id(node.body[0].value) for node in documented if node.body and isinstance(node.body[0], ast.Expr)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [node.value for node in texts if id(node) not in docstrings]


def test_no_message_names_a_file_of_the_documentation():
    found = [
        (path.name, text)
        for path in sorted(SOURCE.rglob("*.py"))
        for text in strings(ast.parse(path.read_text(encoding="utf-8")))
        if re.search(r"docs/\S*\.md", text)
    ]
    assert found == []


@pytest.mark.parametrize("name", TITLES)
def test_a_page_is_named_by_its_own_title(name):
    title = (DOCS / f"{name}.md").read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    assert pages(name) == f'"{title}" in the documentation'


def test_several_pages_are_named_together():
    assert pages("statistics", "models") == '"Statistics" and "Shipped models" in the documentation'
