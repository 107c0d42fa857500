"""Every block of the documentation is executed or checked, or says why it is not."""

import json
import re
import tomllib

import pytest
import typer
from doc_blocks import BLOCKS, commands_in

from askew.core.store.store import Store
from askew.pairs.plan import prepare
from askew.pairs.recipe import Recipe, read_recipe, shipped_recipes
from askew.ui.cli.main import app

# The tests of examples execute these, page by page.
EXECUTED = ("console", "python")
CHECKED = ("toml", "json")
REASON = re.compile(r"<!-- not executed: \S.{5,} -->")
SECTIONS = {key for name in shipped_recipes() for key in read_recipe(name).sections} | {"groups", "cross"}


def is_accounted_for(block):
    if block.is_result or block.language in (*EXECUTED, *CHECKED):
        return True
    # tests/logs compares these with what the command prints on a real log.
    return bool(REASON.fullmatch(block.comment)) or block.comment.startswith("<!-- real: ")


def test_every_block_is_executed_checked_or_says_why_not():
    left = [block for block in BLOCKS if not is_accounted_for(block)]
    assert [str(block) for block in left] == [], "execute them, or put <!-- not executed: REASON --> on the line above"


def test_what_is_executed_has_no_excuse():
    assert [str(block) for block in BLOCKS if block.language in EXECUTED and block.comment.startswith("<!-- not")] == []


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.language == "json"], ids=str)
def test_json_can_be_parsed(block):
    json.loads(block.text)


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.language == "toml"], ids=str)
def test_sections_of_recipes_are_those_that_a_build_accepts(block, tmp_path):
    given = tomllib.loads(block.text)
    if not set(given) <= SECTIONS:
        return
    sections = dict(read_recipe("demo").sections)
    for name, value in given.items():
        # A selector keeps its measures where a block shows another setting of it.
        sections[name] = {**sections["select"], **value} if name == "select" else value
    for name in sections["select"].get("across", []):
        sections["cross"] = [{"ranker": name}]
    prepare(Recipe("example", sections), Store(tmp_path))


SHELL = [one for one in BLOCKS if one.language in ("sh", "text", "") and not one.is_result]


@pytest.mark.parametrize("block", [one for one in SHELL if list(commands_in(one.text))], ids=str)
def test_commands_that_are_not_executed_can_be_parsed(block):
    for given in commands_in(block.text):
        command, words = typer.main.get_command(app), list(given)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        assert not getattr(command, "commands", {}) or words[0].startswith("-"), f"there is no command {words[:1]}"
        command.make_parser(typer.Context(command, info_name="askew")).parse_args(args=words)
