"""What is published names no path, home folder, user or host of the machine it was made on."""

import getpass
import json
import platform
import shutil
import socket
import tomllib
from pathlib import Path

import pytest

from askew.core.address import public, public_settings, without_local_paths
from askew.core.lexicon import load_lexicon
from askew.data.collection import demo_files
from askew.train.card import Card, CardTable, claim, public_command, write_card

USER, HOST = "janeqresearcher", "workstation-of-janeq"
RECIPE = """
title = "Pairs"
about = "Pairs of {place}, made for a test."
[collection]
source = "{place}"
[[reformulate]]
method = "stem.porter"
[[reformulate]]
method = "reduce"
[retrieve]
ranker = "bm25"
k = 10
[evaluate]
measures = ["RR@10", "ARaB(tf, lexicon='{lexicon}')@10"]
[select]
{selector}
bias = "ARaB(tf, lexicon='{lexicon}')@10"
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / USER
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("USER", "LOGNAME", "USERNAME", "LNAME"):
        monkeypatch.setenv(name, USER)
    monkeypatch.setattr(platform, "node", lambda: HOST)
    monkeypatch.setattr(socket, "gethostname", lambda: HOST)
    assert (Path.home(), getpass.getuser()) == (folder, USER)
    return folder


def refuse_places(folder, *more):
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        data = path.read_bytes()
        for place in (USER, HOST, *map(str, more)):
            assert place.encode() not in data, (path, place)


def test_the_demo_is_published_without_a_place(askew_cli, home, tmp_path):
    done = askew_cli(["publish", "demo", "--store", str(home / "s"), "--out", str(home / "ds")])
    assert done.code == 0, done.err
    refuse_places(home / "ds", tmp_path)


BOXES = 'selector = "boxes"\nmeasure = "RR@10"'
PAPER = 'selector = "refairmulate-paper"\neffectiveness = "RR@10"'


@pytest.mark.parametrize("selector", [BOXES, PAPER], ids=["boxes", "paper"])
def test_a_collection_a_lexicon_and_a_store_of_ones_own_are_published_by_their_names(
    askew_cli, home, tmp_path, selector
):
    place = home / "my collections" / "queries-of-2026"
    shutil.copytree(demo_files().docs.parent, place)
    lexicon = home / "lexica" / "mine.toml"
    lexicon.parent.mkdir()
    groups = load_lexicon("rekabsaz2020").groups
    lines = [f"{name} = {json.dumps(list(terms))}" for name, terms in groups.items()]
    head = ['name = "mine"', "version = 1", 'language = "en"', 'title = "Mine"', 'license = "CC0-1.0"', "[groups]"]
    lexicon.write_text("\n".join([*head, *lines]))
    recipe = home / "recipes" / "mine.toml"
    recipe.parent.mkdir()
    recipe.write_text(RECIPE.format(place=place, lexicon=lexicon, selector=selector))
    done = askew_cli(["publish", str(recipe), "--store", str(home / "s"), "--out", str(home / "ds")])
    assert done.code == 0, done.err
    refuse_places(home / "ds", tmp_path, place.parent.name)
    facts = json.loads((home / "ds/askew.json").read_text())["facts"]
    assert facts["collection"] == "queries-of-2026"
    assert tomllib.loads(facts["recipe"])["collection"]["source"] == "queries-of-2026"
    assert json.loads(askew_cli(["verify", str(home / "ds"), "--json"]).out)["wrong"] == []


def test_the_report_of_a_collection_of_ones_own_has_its_name(askew_cli, home, tmp_path):
    place = home / "queries-of-2026"
    shutil.copytree(demo_files().docs.parent, place)
    recipe = home / "mine.toml"
    recipe.write_text(RECIPE.format(place=place, lexicon="rekabsaz2020", selector=BOXES))
    done = askew_cli(["report", str(recipe), "--store", str(home / "s"), "--out", str(home / "report")])
    assert done.code == 0, done.err
    refuse_places(home / "report", tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("/a/b/c.tsv", "c.tsv"), ("/a b/c d", "c d"), ("~/x/y", "y"), ("../../x/y", "y"), ("file:///a/b", "b"),
     ("read /a/b/c.tsv twice", "read c.tsv twice"), ("f(lexicon='/a/b.toml')@10", "f(lexicon='b.toml')@10"),
     ("https://host/a/b", "https://host/a/b"), ("org/model", "org/model"), ("and/or", "and/or"), ("/", "/"),
     ("irds:beir/x/test", "irds:beir/x/test"), ("a / b", "a / b"), ("m/s and km/h", "m/s and km/h"),
     ("/a/coll@dev", "coll@dev"), ("s3://bucket/a/b", "s3://bucket/a/b")],
)  # fmt: skip
def test_a_path_becomes_a_name_and_other_texts_stay(text, expected):
    assert without_local_paths(text) == expected
    assert public([{text: text}]) == [{expected: expected}]
    assert public_settings({"of": [text, 1, None]}) == {"of": [expected, 1, None]}


def test_a_card_names_files_and_not_where_they_lie(home, tmp_path):
    where = home / "my data"
    identity = {"model": str(where / "base"), "seeds": (1, 2)}
    card = Card(
        "A model", "It tells.", f"askew train it '{where}/q.csv' --out {home}/m --set 'model={where}/base'",
        str(where / "base"), ({"file": str(where / "q.csv")},), 7, {"model": str(where / "base")}, "cpu",
        {"from": f"{where}/x"}, (CardTable("T", ("a", "b"), ((str(where / "t"), 1.0),)),), (), {"identity": identity},
    )  # fmt: skip
    folder = tmp_path / "model"
    folder.mkdir()
    write_card(folder, card)
    refuse_places(folder, tmp_path, "my data")
    assert "askew train it q.csv --out m --set model=base" in (folder / "README.md").read_text()
    assert claim(folder, identity) is not None


def test_a_command_that_no_shell_wrote_is_cleaned_too():
    assert public_command("askew train it '/a/b/c") == "askew train it 'c"
    assert public_command("askew train it x --out y") == "askew train it x --out y"
