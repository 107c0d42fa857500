"""From pairs in any form to a rewriter with its card: what is read, how it is split, what is measured."""

from dataclasses import replace

import polars as pl
import pyarrow as pa
import pytest

from askew.core.errors import ConfigError, DataError, StoreError, UnknownName
from askew.core.store.manifest import Manifest, key_of
from askew.core.store.store import Store
from askew.core.tables import part_of
from askew.core.text import SALT, normal
from askew.pairs.stages import Select
from askew.train.common import Schedule
from askew.train.finetune import TextSettings
from askew.train.rewriter import (
    KEEP,
    PAIR_COLUMNS,
    RewriterSettings,
    first_of_each,
    read_pairs,
    score_rewrites,
    split_pairs,
    train_rewriter,
)
from askew.train.selector import SHARES

TABLE = pl.DataFrame(
    {
        "query_id": ["q2", "q1", "q1"],
        "original_text": ["who b", "who a", "who a"],
        "text": ["b!", "a!", "a?"],
        "platinum": [True, True, False],
        "gold": [True, True, True],
    }
)
AGG = """qid\torder\tquery\tbm25.map
q1\t-1\twho a\t0.5
q1\tpred.0\ta!\t1.0
q1\tpred.1\ta?\t0.75
q2\t-1\twho b\t0.5
q2\tpred.0\tb!\t0.5
"""
BOX = "q1\twho a\t0.5\ta!\t1.0\nq2\twho b\t0.5\tb!\t0.5\n"


def pairs_of(query_ids, originals, targets):
    return pl.DataFrame([query_ids, originals, targets], schema=PAIR_COLUMNS)


def read(path, **how):
    found, left_out = read_pairs(path, **how)
    return found.rows(), dict(left_out)


def file_of(tmp_path, text):
    (tmp_path / "pairs.tsv").write_text(text, encoding="utf-8")
    return tmp_path / "pairs.tsv"


def test_a_published_dataset_gives_the_pairs_of_its_box(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "askew.json").write_text("{}")
    TABLE.head(1).write_parquet(tmp_path / "data" / "train-0.parquet")
    TABLE.tail(2).write_parquet(tmp_path / "data" / "test-0.parquet")
    assert read(tmp_path) == ([("q1", "who a", "a!"), ("q2", "who b", "b!")], {})
    assert len(read(tmp_path, box="gold")[0]) == 3
    with pytest.raises(DataError, match="'diamond'; found platinum, gold"):
        read_pairs(tmp_path, "diamond")


def test_a_store_gives_them_too(tmp_path):
    store, key = Store(tmp_path), key_of(Select.name, Select.version, {}, "0" * 16)
    with pytest.raises(DataError, match="'pairs', found 0"):
        read_pairs(tmp_path)
    with store.writing("pairs", key) as writer:
        part = writer.write(TABLE.to_arrow().cast(_plain(TABLE.to_arrow().schema)), 0, 3, 3, {})
        manifest = Manifest("pairs", key, Select.name, Select.version, {}, "0" * 16, writer.columns, [part])
        writer.finish(manifest, {})
    assert read(tmp_path)[0] == [("q1", "who a", "a!"), ("q2", "who b", "b!")]


def _plain(schema):
    return pa.schema([(one.name, pa.string() if pa.types.is_large_string(one.type) or str(one.type) == "string_view"
                       else one.type) for one in schema])  # fmt: skip


def test_an_aggregated_table_of_repair_gives_the_best_candidate_that_is_better(tmp_path):
    file = file_of(tmp_path, AGG)
    assert read(file)[0] == [("q1", "who a", "a!")]
    assert read(file, every=True)[0] == [("q1", "who a", "a!"), ("q1", "who a", "a?")]
    assert read(file, box="gold")[0] == [("q1", "who a", "a!"), ("q2", "who b", "b!")]
    assert read(file, box="refined - original >= 0.25", every=True)[0] == read(file, every=True)[0]


def test_a_box_and_two_columns_are_read(tmp_path):
    assert read(file_of(tmp_path, BOX))[0] == [("q1", "who a", "a!")]
    assert len(read(file_of(tmp_path, BOX), box="gold")[0]) == 2
    assert read(file_of(tmp_path, 'who "a\tan "a\n\nwho b\tb\n'))[0] == [("1", 'who "a', 'an "a'), ("3", "who b", "b")]


def test_pairs_without_words_are_left_out_and_counted(tmp_path):
    found = read(file_of(tmp_path, "who a\ta\n \tb\nwho c\t\n"))
    assert found == ([("1", "who a", "a")], {"an empty text": 2})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\tc\n", r"pairs.tsv:1: expected 5 columns .* or 2 .*; found 3"),
        ("a\tb\na\n", r"pairs.tsv:2: expected 5 columns"),
        ("q\ta\t0\tb\t1\nq\ta\tx\tb\t1\nq\ta\t0\tb\t1\n", r"pairs.tsv:2: expected .* with numbers as values"),
        ("q\ta\t1\tb\t0.5\n", "expected pairs of the box 'platinum', found none"),
        ("qid\torder\tquery\tm\nq\tpred.0\ta\t1\n", r"expected one original \(order -1\)"),
    ],
)
def test_a_file_that_is_none_of_them_is_told_with_its_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message) as caught:
        read_pairs(file_of(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_query_stands_on_one_side_whatever_its_case_and_marks():
    texts = [f"query {i}" for i in range(60)] + [f"Query, {i}?" for i in range(60)]
    parts = split_pairs(pairs_of([str(i) for i in range(120)], texts, texts), SHARES)
    sides = {name: {normal(text) for text in part["original_text"]} for name, part in parts.items()}
    assert not sides["train"] & sides["test"]
    assert sum(len(part) for part in parts.values()) == 120
    with pytest.raises(DataError, match=r"1 pairs .*'test'"):
        split_pairs(pairs_of(["1"], [train_text()], ["b"]), SHARES)


def train_text():
    return next(f"query {i}" for i in range(99) if part_of(f"query {i}", SHARES, SALT) == "train")


def test_a_test_query_is_measured_once_with_its_best_pair():
    pairs = pairs_of(["a", "b", "a"], ["x", "y", "x"], ["best", "only", "other"])
    assert first_of_each(pairs)["text"].to_list() == ["best", "only"]
    assert first_of_each(pairs, 1)["text"].to_list() == ["best"]


def test_every_value_has_its_interval_and_n():
    pairs = pairs_of(list("abcd"), ["x y"] * 4, ["x y", "x", "z", "x y"])
    found = score_rewrites(pairs, pairs["original_text"].to_list())
    # All of four: the interval is that of a share.
    share = {"mean": 1.0, "low": pytest.approx(0.025**0.25), "high": 1.0, "n": 4, "method": "bounded"}
    assert found["copies"] == share
    # x y against x y, x, z, x y: F of 1, 2/3, 0, 1.
    assert found["f1"]["mean"] == pytest.approx((1 + 2 / 3 + 0 + 1) / 4)
    assert all(one["low"] <= one["mean"] <= one["high"] and one["n"] == 4 for one in found.values())
    assert found["bleu_mean"]["low"] < found["bleu_mean"]["high"]


def many_pairs(tmp_path, count=60):
    lines = [f"q{i}\twho is name{i} please\t0.1\tname{i} biography\t0.5" for i in range(count)]
    return file_of(tmp_path, "\n".join(lines) + "\n")


def small_job(models, **more):
    text = TextSettings(models["seq2seq"], "seq2seq", most_input=32, most_target=8)
    pace = Schedule(2.0, 8, 1e-2, 1, 0.0, 0.0, "constant", 0, 1)
    return RewriterSettings("seq2seq", text, pace=pace, **more)


def test_a_rewriter_is_trained_measured_and_written_with_its_card(models, tmp_path):
    source, out = many_pairs(tmp_path), tmp_path / "out"
    made = train_rewriter(source, out, small_job(models), "cpu", "askew train rewriter")
    measured = made.measured
    assert sum(measured["pairs"].values()) == 60
    assert set(measured["test"]) == {"this model", KEEP} and measured["test"][KEEP]["copies"]["mean"] == 1.0
    card = (out / "README.md").read_text()
    assert "RePair" in card and f"n = {measured['pairs']['test']}" in card
    lines = (out / "test.tsv").read_text().splitlines()
    assert lines[0] == "query_id\toriginal\twanted\twritten"
    assert len(lines) == measured["pairs"]["test"] + 1
    assert not (out / "checkpoints").exists()
    assert train_rewriter(source, out, small_job(models), "cpu") == replace(made, new=False)  # nothing is done again
    with pytest.raises(StoreError, match="another training"):
        train_rewriter(source, out, small_job(models, beams=2), "cpu")


def test_the_command_trains_and_names_the_next_one(models, tmp_path, capsys):
    from askew.ui.cli.train import rewriter_command

    settings = [
        f"model={models['seq2seq']}",
        "most_input=32",
        "most_target=8",
        "epochs=1",
        "save_every=0",
        "most_test=5",
    ]
    model = models["seq2seq"]
    rewriter_command(
        many_pairs(tmp_path), tmp_path / "out", kind="seq2seq", model=model, settings=settings, device="cpu"
    )
    said = capsys.readouterr().out
    assert "n = 5" in said and "bleu_mean" in said and "--method rewrite" in said and "rewrite.model=" in said
    with pytest.raises(UnknownName, match="'every'"):
        rewriter_command(many_pairs(tmp_path), tmp_path / "no", settings=["evry=true"])
    with pytest.raises(UnknownName, match="'acg'"):
        rewriter_command(many_pairs(tmp_path), tmp_path / "no", kind="acg")


def test_jobs_that_cannot_be_are_refused():
    for wrong in ({"beams": 0}, {"most_test": -1}):
        with pytest.raises(ConfigError):
            RewriterSettings(**wrong)
