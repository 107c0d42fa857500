"""A release with ``query_text: false`` has query ids and reformulations, and no text of an original query."""

import json

import polars as pl
import pytest
from toy_choices import aggregated, boxed_facts, boxed_pairs, own_facts, own_pairs, repair_tables
from toy_release import contents, facts, resign, toy_pairs

from askew.core.errors import ConfigError, DataError
from askew.pairs.dataset.checking import verify
from askew.pairs.dataset.layouts import Tables
from askew.pairs.dataset.release import publish
from askew.pairs.dataset.splits import SAME_WORDS
from askew.report.markup import markdown

REASON = f"publish: {SAME_WORDS}"


def rows_of(folder):
    return pl.concat([pl.read_parquet(path) for path in sorted((folder / "data").iterdir())])


def published(tmp_path, pairs=None, stated=None, **more):
    pairs, stated = toy_pairs() if pairs is None else pairs, {**(stated or facts()), "query_text": False}
    return publish(pairs, stated, tmp_path / "out", **more)


def with_text(pairs, row, text):
    """The pairs with another text in one row."""
    return pairs.with_columns(text=pl.when(pl.int_range(pl.len()) == row).then(pl.lit(text)).otherwise("text"))


@pytest.mark.parametrize("scheme", ["refairmulate", "boxes", "own"])
def test_no_file_has_the_text_of_an_original_query(tmp_path, scheme):
    pairs, stated, more = {
        "refairmulate": (toy_pairs(), facts(), {}),
        "boxes": (boxed_pairs(), boxed_facts(), {"repair": repair_tables()}),
        "own": (own_pairs(), own_facts(), {}),
    }[scheme]
    published(tmp_path, pairs, stated, **more)
    for name, data in contents(tmp_path / "out").items():
        assert b"what about topic" not in data, name
    assert rows_of(tmp_path / "out")["original_text"].to_list() == [None] * pairs.height
    report = verify(tmp_path / "out")
    assert report.wrong == []
    assert [line for line in report.notes if "query_text = false" in line and "not checked" in line]
    assert report.facts["query_text"] is False


def test_the_columns_and_splits_are_those_of_a_release_with_the_texts(tmp_path):
    whole = publish(toy_pairs(), facts(), tmp_path / "whole")
    assert published(tmp_path).splits == whole.splits
    for path in sorted((tmp_path / "whole" / "data").iterdir()):
        other = pl.read_parquet(tmp_path / "out" / "data" / path.name)
        assert other.schema == pl.read_parquet(path).schema
        assert other.drop("original_text").equals(pl.read_parquet(path).drop("original_text"))


def test_the_facts_and_the_card_say_that_the_texts_are_not_there(tmp_path):
    published(tmp_path)
    assert json.loads((tmp_path / "out" / "askew.json").read_text())["facts"]["query_text"] is False
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| query | reformulation | method | outcome |" in card
    assert "pairs.join(" in card


def test_who_asked_is_left_out_with_the_text(tmp_path):
    published(tmp_path, toy_pairs().with_columns(context=pl.lit("anna 2026-01-01 in Halifax")))
    assert "context" not in rows_of(tmp_path / "out").columns
    assert not any(b"Halifax" in data for data in contents(tmp_path / "out").values())


@pytest.mark.parametrize("text", ["What about topic Q0?", "what about  topic q7!"])
def test_a_reformulation_in_the_words_of_an_original_query_is_left_out_and_counted(tmp_path, text):
    pairs = with_text(toy_pairs(), 0, text)
    done = published(tmp_path, pairs)
    assert done.left_out == 1
    assert rows_of(tmp_path / "out").height == pairs.height - 1
    assert json.loads((tmp_path / "out" / "askew.json").read_text())["facts"]["dropped"][REASON] == 1
    assert markdown(REASON) in (tmp_path / "out" / "README.md").read_text()
    assert verify(tmp_path / "out").wrong == []


def test_it_is_left_out_of_the_tables_of_repair_too(tmp_path):
    same = (pl.col("qid") == "q1") & (pl.col("order") == "pred.1")
    every = aggregated().with_columns(query=pl.when(same).then(pl.lit("What about topic q1?")).otherwise("query"))
    published(tmp_path, boxed_pairs(), boxed_facts(), repair=Tables(every))
    assert not any(b"about topic" in data.lower() for data in contents(tmp_path / "out").values())
    dropped = json.loads((tmp_path / "out" / "askew.json").read_text())["facts"]["dropped"]
    assert dropped[REASON.replace("publish", "agg.all")] == 1
    assert verify(tmp_path / "out").wrong == []


def test_a_release_with_the_texts_keeps_such_a_reformulation(tmp_path):
    pairs = with_text(toy_pairs(), 0, "What about topic Q7?")
    done = publish(pairs, facts(query_text=True), tmp_path / "out")
    assert (done.left_out, rows_of(tmp_path / "out").height) == (0, pairs.height)


def test_rules_that_need_the_text_are_checked_before_it_is_dropped(tmp_path):
    pairs = toy_pairs()
    wrong = pairs.with_columns(
        original_text=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("another")).otherwise("original_text")
    )
    with pytest.raises(DataError, match="same original_text: broken by"):
        published(tmp_path, wrong)


def test_a_column_of_texts_that_nobody_knows_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"column 'passage': .* remove the column"):
        published(tmp_path, toy_pairs().with_columns(passage=pl.lit("The nurse came home.")))


def test_query_ids_that_are_the_texts_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"pairs: [0-9]+ queries "):
        published(tmp_path, toy_pairs().with_columns(query_id="original_text"))


def test_query_text_is_true_or_false(tmp_path):
    with pytest.raises(ConfigError, match=r"query_text: .*, found 'no'"):
        publish(toy_pairs(), facts(query_text="no"), tmp_path / "out")


def test_verify_finds_a_text_that_was_put_back(tmp_path):
    published(tmp_path)
    path = tmp_path / "out" / "data" / "train-00000-of-00001.parquet"
    pl.read_parquet(path).with_columns(original_text=pl.lit("who a")).write_parquet(path)
    resign(tmp_path / "out")
    assert any("'original_text'" in line and "'query_text'" in line for line in verify(tmp_path / "out").wrong)


def test_verify_finds_a_text_that_was_put_back_into_a_table_of_repair(tmp_path):
    published(tmp_path, boxed_pairs(), boxed_facts(), repair=repair_tables())
    path = next((tmp_path / "out" / "repair").glob("*.agg.all.tsv"))
    # The pairs of the release do not name q4: no other rule sees its original.
    path.write_text(path.read_text().replace("q4\t-1\t\t", "q4\t-1\twhat about topic q4\t"))
    resign(tmp_path / "out")
    assert any("query_text: false" in line for line in verify(tmp_path / "out").wrong)


def test_verify_still_finds_a_query_in_two_splits(tmp_path):
    published(tmp_path)
    files = sorted((tmp_path / "out" / "data").iterdir())
    train, dev = (pl.read_parquet(next(f for f in files if f.name.startswith(n))) for n in ("train", "dev"))
    moved = train.head(1)
    pl.concat([dev, moved]).write_parquet(next(f for f in files if f.name.startswith("dev")))
    resign(tmp_path / "out")
    assert any("query ids" in line and line.startswith("splits: ") for line in verify(tmp_path / "out").wrong)


@pytest.mark.filterwarnings("ignore")
def test_load_dataset_reads_the_missing_texts_as_none(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    published(tmp_path)
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    for part in loaded.values():
        assert set(part["original_text"]) == {None}
        assert part.features["original_text"].dtype in ("string", "large_string")
