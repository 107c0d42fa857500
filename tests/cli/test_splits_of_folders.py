"""Commands that read queries or judgements of a folder say which of several files they read."""

import pytest

from askew.core.errors import ConfigError

NOTE = "note: judgements both: found qrels.dev, qrels.test; reading qrels.test; to read another, write both@dev"
QUERIES_NOTE = "note: queries asked: found queries.dev.tsv, queries.test.tsv; reading queries.test.tsv;"
RECIPE = """
[collection]
source = "both"
[[reformulate]]
method = "reduce"
[retrieve]
ranker = "bm25"
k = 3
[evaluate]
measures = ["RR(unjudged='zero')@10", "ARaB(tf)@10"]
"""


@pytest.fixture(autouse=True)
def world(files):
    files.docs("both/docs.tsv", {"d1": "He is a man.", "d2": "She is a woman.", "d3": "The weather is fine."})
    files.text("both/queries.tsv", "q1\ta man of weather\nq2\ta woman of weather\n")
    files.text("both/qrels.dev", "q1 0 d1 1\n")
    files.text("both/qrels.test", "q1 0 d1 1\nq2 0 d2 1\n")
    files.docs("asked/docs.tsv", {"d1": "weather"})
    files.text("asked/queries.dev.tsv", "q1\tweather\n")
    files.text("asked/queries.test.tsv", "q2\tweather\nq3\tman\n")
    files.text("r.toml", RECIPE)
    return files


def test_bench_says_which_judgements_it_reads_and_takes_others(askew):
    test = askew("bench both -m qld --store s --json")
    assert NOTE in test.err
    assert test.json["queries"] == 2
    dev = askew("bench both@dev -m qld --store s --json")
    assert NOTE not in dev.err
    assert dev.json["queries"] == 1


@pytest.mark.parametrize("command", ["run r.toml", "plan r.toml"])
def test_a_recipe_says_which_judgements_it_reads_and_takes_others(askew, command):
    done = askew(f"{command} --store s")
    assert (done.code, NOTE in done.err) == (0, True)
    for other in ("--set collection.split=dev", "--set collection.source=both@dev"):
        done = askew(f"{command} --store s {other}")
        assert (done.code, "note: " in done.err) == (0, False), done.err


@pytest.mark.parametrize(
    "command",
    ["search {} --index ix --out a.run", "reformulate {} --method reduce --out c.tsv", "classify {}"],
)
def test_commands_of_queries_say_which_file_they_read_and_take_others(askew, command):
    askew("index asked --out ix")
    done = askew(command.format("asked"))
    assert (done.code, QUERIES_NOTE in done.err) == (0, True), done.err
    done = askew(command.format("asked@dev"))
    assert (done.code, QUERIES_NOTE in done.err) == (0, False), done.err


def test_documents_of_a_split_are_named_alike(askew, files):
    files.text("cut/corpus/dev-00000-of-00001.jsonl", '{"_id": "d1", "text": "he"}\n')
    files.text("cut/corpus/test-00000-of-00001.jsonl", '{"_id": "d1", "text": "she"}\n')
    files.run("d.run", {"q1": ["d1"]})
    for command in ("measure d.run --docs {} --measures 'RaB(tc)@1'", "annotate {} --tokens word", "index {} --out ix"):
        askew(command.format("cut")).refused(2, "there are the splits dev, test", "as in cut@dev")
        assert askew(command.format("cut@dev")).code == 0


def test_serving_and_training_say_which_judgements_they_read(askew, monkeypatch):
    pytest.importorskip("fastapi")
    pytest.importorskip("torch")
    monkeypatch.setattr("askew.ui.web.server.serve", lambda *_: None)
    assert NOTE in askew("serve --collection both").err

    def stop(*_):
        raise ConfigError("that will do")

    monkeypatch.setattr("askew.train.generator.train_generator", stop)
    assert askew("train generator both --out g").err.splitlines() == [NOTE, "askew: that will do"]
