"""Retired phrases are in no text that a person reads: wording.toml lists them."""

import ast
import json
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from doc_blocks import PAGES, ROOT

WORDING = tomllib.loads((Path(__file__).parent / "wording.toml").read_text(encoding="utf-8"))
FENCE = re.compile(r"^(`{3,}).*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
SOURCES = sorted((ROOT / "src" / "askew").rglob("*.py"))
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


@cache
def retired():
    phrases = [phrase.strip() for row in WORDING["retired"] for phrase in row.split(";")]
    return {phrase: re.compile(rf"\b{re.escape(phrase)}\b", re.IGNORECASE) for phrase in phrases}


@cache
def allowed():
    return {(one["file"], one["phrase"]): one["reason"] for one in WORDING["allowed"]}


def found_in(text):
    plain = " ".join(text.split())
    return {phrase for phrase, pattern in retired().items() if pattern.search(plain)}


def prose(path):
    """What a person reads of a file: text without code, strings and docstrings of a module, cells of a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        strings = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
        return "\n".join(one for one in strings if isinstance(one, str))
    if path.suffix == ".ipynb":
        return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return FENCE.sub("", text)


@pytest.mark.parametrize("path", [*PAGES, *NOTEBOOKS, *SOURCES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_retired_phrase_is_used(path):
    name = str(path.relative_to(ROOT))
    found = found_in(prose(path))
    kept = {phrase for file, phrase in allowed() if file == name}
    assert found - kept == set(), "tests/docs/wording.toml says what to write"
    assert kept - found == set(), "take these entries out of tests/docs/wording.toml"


def test_every_entry_of_the_exceptions_names_a_file_a_phrase_and_a_reason():
    for (file, phrase), reason in allowed().items():
        assert (ROOT / file).is_file() and phrase in retired() and len(reason) > 10


def test_phrases_are_found_across_lines_and_in_any_case():
    assert found_in("It was Asked\n   otherwise.") == {"asked otherwise"}
    assert found_in("clever people") == set()
