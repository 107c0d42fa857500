"""The card of a model: the same facts for people and for programs, and nothing that could steer a page."""

import json

from hypothesis import given
from hypothesis import strategies as st

from askew.train.card import Card, CardTable, plain, read_measured, write_card
from askew.train.common import GREPBIASIR, known_source


def card(**changed):
    facts = {
        "title": "A model", "about": "It tells.", "command": "askew train it", "base": "base@1",
        "data": ({"file": "d.csv", "sha256": "ab" * 32, "rows": 3},), "seed": 7, "settings": {"epochs": 2},
        "device": "cpu", "measured": {"accuracy": 0.5}, "tables": (CardTable("Scores", ("m", "v"), (("x", 0.25),)),),
        "limits": ("It is small.",),
    }  # fmt: skip
    return Card(**{**facts, **changed})


def test_the_card_holds_the_data_hash_the_seed_the_settings_the_hardware_and_the_measured_values(tmp_path):
    write_card(tmp_path, card())
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    facts = json.loads((tmp_path / "measured.json").read_text(encoding="utf-8"))
    for wanted in ("ab" * 32, "Seed: 7", '"epochs": 2', "CPU", "| x | 0.2500 |", "askew train it", "It is small."):
        assert wanted in text
    assert facts["measured"] == {"accuracy": 0.5} and facts["seed"] == 7 and "cores" in facts["hardware"]
    assert facts["versions"]["numpy"]
    assert read_measured(tmp_path) == facts
    assert read_measured(tmp_path / "elsewhere") is None


def test_the_card_states_the_license_of_the_data_or_that_it_is_not_known(tmp_path):
    write_card(tmp_path, card())
    assert "is not stated" in (tmp_path / "README.md").read_text(encoding="utf-8")
    for row in (GREPBIASIR, known_source("demo")):
        write_card(tmp_path, card(data=(row,)))
        text = (tmp_path / "README.md").read_text(encoding="utf-8")
        assert "not stated" not in text and row["license"] in text and row["authors"] in text
    assert known_source("irds:msmarco-passage/dev") == {"link": "https://ir-datasets.com/msmarco-passage.html"}
    assert known_source("/data/own") == {}


def test_a_cell_from_elsewhere_cannot_open_a_cell_a_link_or_a_tag(tmp_path):
    rows = (("a | b <img src=x> [link](http://e.com)\n# head", None),)
    write_card(tmp_path, card(tables=(CardTable("T", ("m", "v"), rows),), command="x ``` y"))
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "<img" not in text and "[link]" not in text and "\n# head" not in text
    line = next(line for line in text.splitlines() if "link" in line)
    assert line.count("|") == 3
    assert "````\nx ``` y\n````" in text


@given(st.text())
def test_plain_text_is_one_line_without_marks(text):
    made = plain(text)
    assert not set(made) & set("\\`*_{}[]<>!|~\n\r")
    assert plain("abc 1.5, é") == "abc 1.5, é"
