"""``askew.build``: the steps and the store of the command, from Python."""

import json

import pytest

import askew
from askew.ui.cli.main import run

DOCS = {f"d{n}": f"{person} walks in the {place}" for n, (person, place) in enumerate(
    (person, place) for person in ("an elderly neighbor", "a teenager", "a visitor") for place in ("park", "old town")
)}  # fmt: skip
QUERIES = {"q1": "walk in the park with friends", "q2": "walks in the old town"}
QRELS = {"q1": {"d0": 1, "d2": 1}, "q2": {"d5": 1}}
AGE = {"old": ["elderly"], "young": ["teenager"]}


def in_memory():
    return askew.Collection.open(DOCS, queries=QUERIES, qrels=QRELS)


def test_the_command_finds_what_python_built(tmp_path, capsys):
    store = str(tmp_path / "store")
    pairs = askew.build("demo", store=store)
    assert all(step["ran"] for step in pairs.steps)
    assert run(["plan", "demo", "--store", store, "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert [(row["step"], row["key"]) for row in planned] == [(row["step"], row["key"]) for row in pairs.steps]
    assert all(row["done"] != "-" for row in planned)
    assert not any(step["ran"] for step in askew.build("demo", store=store).steps)


def test_a_collection_in_memory_is_built_with_its_own_groups(tmp_path):
    pairs = askew.build("demo", in_memory(), groups=AGE, store=tmp_path / "store")
    assert pairs.build.evaluate.asked[2].groups == ("old", "young")
    assert set(pairs.table("kept")["query_id"]) <= set(QUERIES)
    again = askew.build("demo", in_memory(), groups=AGE, store=tmp_path / "store")
    assert not any(step["ran"] for step in again.steps)


def test_a_collection_is_saved_and_opened_with_the_same_content(tmp_path):
    saved = askew.Collection.open(in_memory().save(tmp_path / "c"))
    assert saved.digest() == in_memory().digest()
    assert saved.judgements.sort_by("doc_id").equals(in_memory().judgements.sort_by("doc_id"))
    other = askew.Collection.open({**DOCS, "d0": "rain"}, queries=QUERIES, qrels=QRELS)
    assert other.digest() != saved.digest()


def test_settings_change_single_values_and_unknown_steps_are_named(tmp_path):
    pairs = askew.build("demo", in_memory(), settings={"retrieve": {"k": 2}}, store=tmp_path / "s", until="runs")
    assert pairs.table("runs")["doc"].list.len().max() <= 2
    with pytest.raises(askew.UnknownName, match="unknown step 'pears'"):
        pairs.table("pears")
    with pytest.raises(askew.ConfigError) as error:
        askew.build("demo", workers=0)
    assert (error.value.code, error.value.values) == ("out-of-range", {"workers": 0})
    with pytest.raises(askew.UnknownName, match="unknown engine 'sun'"):
        askew.build("demo", engine="sun")
