"""The program that trains the model of query groups, and the counts that its head reads."""

import json
import math
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the extra 'neural' is not installed")

import train_query_groups
from train_query_groups import Query
from training.low_rank import save_encoder_adapter

from askew.models.adapted import CLASSES, load_query_network, query_logits
from askew.rewrite.classifiers import log_counts

SMALL = train_query_groups.Settings(
    rank=4, hidden=16, epochs=30, learning_rate=1e-2, batch_size=8, dropout=0.0, head_dropout=0.0
)
QUERIES = [Query("old ship", 0, "written"), Query("tall queen", 1, "written"), Query("red car", 2, "written")]


def test_words_and_first_names_of_women_and_men_are_counted_apart():
    one, two = math.log(2), math.log(3)
    found = log_counts(["the queen and her brother", "how tall is karen", "charles and james", "weather"])
    assert found.tolist() == pytest.approx(
        [pytest.approx(row, abs=1e-6) for row in ([two, one, 0, 0], [0, 0, one, 0], [0, 0, 0, two], [0, 0, 0, 0])]
    )
    assert log_counts([]).shape == (0, 4)


def test_queries_of_both_groups_and_of_unknown_sources_are_left_out(tmp_path):
    rows = [("a", "n", "written"), ("b", "f", "read:boolq"), ("c", "m", "read:squad_part"), ("d", "o", "written"),
            ("e", "m", "rekabsaz2020")]  # fmt: skip
    lines = [json.dumps({"query": query, "label": label, "source": source}) for query, label, source in rows]
    (tmp_path / "groups.jsonl").write_text("\n".join(lines), encoding="utf-8")
    found = train_query_groups.read_queries(tmp_path / "groups.jsonl")
    assert found == [Query("a", 0, "written"), Query("b", 1, "read:boolq"), Query("c", 2, "read:squad_part")]
    assert [CLASSES[one.label] for one in found] == ["neutral", "female", "male"]


def test_a_query_is_in_one_fold_however_it_is_written():
    assert Query("Red Car", 0, "written").fold == Query("red car", 2, "read:boolq").fold
    assert {Query(str(i), 0, "written").fold for i in range(50)} == set(range(5))


def test_what_was_trained_is_loaded_and_gives_the_labels_back(encoder, tmp_path):
    network, tokenizer, losses = train_query_groups.fit(QUERIES * 8, SMALL, 0, "cpu", encoder)
    assert losses[-1] < 0.5 * losses[0]
    save_encoder_adapter(tmp_path, network)
    texts = [one.text for one in QUERIES]
    loaded = query_logits(*load_query_network(encoder, tmp_path, "cpu"), texts, log_counts(texts), 2)
    assert loaded.argmax(axis=1).tolist() == [0, 1, 2]
    assert loaded == pytest.approx(query_logits(network, tokenizer, texts, log_counts(texts), 3), abs=0.05)


def test_the_program_writes_the_adapter_and_the_accuracy_over_folds(encoder, tmp_path, capsys):
    labels = {"n": "old ship {}", "f": "tall queen {}", "m": "red car {}"}
    rows = [{"query": text.format(i), "label": name, "source": "written"} for name, text in labels.items()
            for i in range(8)]  # fmt: skip
    (tmp_path / "groups.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    options = ["--made", tmp_path, "--out", tmp_path / "out", "--device", "cpu", "--model", encoder, "--epochs", 3,
               "--cross-validate"]  # fmt: skip
    train_query_groups.main([str(one) for one in options])
    told = json.loads((tmp_path / "out" / "training.json").read_text(encoding="utf-8"))
    assert told["base"] == Path(encoder).name  # no path of this machine
    assert told["data"] == {"written": {"rows": 24, "license": "CC-BY-SA-4.0"}}
    assert told["classes"] == dict.fromkeys(CLASSES, 8)
    assert set(told["cross-validated accuracy"]) == {"all", *CLASSES}
    assert load_query_network(encoder, tmp_path / "out", "cpu")
    assert "fold 5 of 5" in capsys.readouterr().out
