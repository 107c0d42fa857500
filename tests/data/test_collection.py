"""A collection from anywhere: the demo, ir_datasets, folders as BEIR and Hugging Face have them, files, memory."""

import gzip
import itertools
import json
import pickle
import subprocess
import sys
from types import SimpleNamespace
from typing import NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError, MissingExtra
from askew.core.tables import DOCUMENTS, JUDGEMENTS
from askew.data import irds
from askew.data.collection import Collection, demo_files, open_collection
from askew.data.files import Meter
from askew.data.queries import SCHEMA as QUERIES
from askew.data.queries import read_queries

DOCS = "d1\tshe said so\nd2\the, too\n"
DOC_ROWS = [("d1", "she said so"), ("d2", "he, too")]
TOPICS = "q1\twho said so\nq2\twho else\n"
TOPIC_ROWS = [("q1", "who said so"), ("q2", "who else")]
QRELS = "q1 0 d1 1\nq2 0 d2 2\n"
QREL_ROWS = [("q1", "d1", 1), ("q2", "d2", 2)]
HEADER = "query-id\tcorpus-id\tscore\n"
IDS = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=12)
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
LAW = settings(max_examples=60, deadline=None, database=None)


def fill(folder, files):
    """Write files: text as it is, rows as Parquet, under names that may hold folders."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            pl.DataFrame(content).write_parquet(path)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def json_lines(*items):
    return "".join(json.dumps(item) + "\n" for item in items)


def documents(collection, *fields, **options):
    tables = list(collection.documents(fields, **options))
    assert all(table.schema == DOCUMENTS for table in tables)
    return [(row["doc_id"], row["text"]) for table in tables for row in table.to_pylist()]


def queries(collection):
    table = collection.queries
    assert table.schema == QUERIES
    return [(row["query_id"], row["text"]) for row in table.to_pylist()]


def judgements(collection):
    table = collection.judgements
    assert table.schema == JUDGEMENTS
    return [tuple(row.values()) for row in table.to_pylist()]


def everything(collection):
    return documents(collection), queries(collection), judgements(collection)


def one_line(caught):
    assert "\n" not in str(caught.value)


def columns(rows, *names):
    return {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}


CORPUS = columns([("d1", "", "she said so"), ("d2", "He", "he, too")], "_id", "title", "text")
CORPUS_ROWS = [("d1", "she said so"), ("d2", "He he, too")]
HF_QUERIES = columns(TOPIC_ROWS, "_id", "text")
HF_QRELS = columns(QREL_ROWS, "query-id", "corpus-id", "score")


# --- the demo -------------------------------------------------------------------------------------


def test_the_demo_has_all_that_its_files_have():
    demo, files = open_collection("demo"), demo_files()
    assert (demo.id, demo.files) == ("demo", (files.docs,))
    assert (demo.has_queries, demo.has_judgements) == (True, True)
    assert (len(documents(demo)), len(queries(demo))) == (files.documents, files.queries)
    assert len(judgements(demo)) == files.qrels.read_text().count("\n")


def test_documents_can_be_read_again_from_the_start():
    demo = open_collection("demo")
    next(demo.documents())
    assert documents(demo) == documents(demo)


def test_a_meter_is_told_how_far_the_files_are_read():
    demo, meter = open_collection("demo"), Meter()
    list(demo.documents(meter=meter))
    assert meter.done == demo.size == demo_files().docs.stat().st_size


def test_a_folder_called_demo_is_opened_by_a_path(tmp_path, monkeypatch):
    fill(tmp_path / "demo", {"docs.tsv": DOCS})
    monkeypatch.chdir(tmp_path)
    assert open_collection("demo").id == "demo"
    assert len(documents(open_collection("./demo"))) == 2


def test_a_collection_is_a_collection_already_and_may_take_other_fields():
    demo = open_collection("demo")
    assert open_collection(demo) == demo
    assert open_collection(demo, ["title"]).fields == ("title",)
    with pytest.raises(ConfigError, match="open its folder"):
        open_collection(demo, split="test")


def test_a_collection_of_files_travels_to_another_process(tmp_path):
    fill(tmp_path, {"docs.tsv": DOCS, "queries.tsv": TOPICS, "qrels.txt": QRELS})
    copy = pickle.loads(pickle.dumps(open_collection(tmp_path)))
    assert everything(copy) == (DOC_ROWS, TOPIC_ROWS, QREL_ROWS)


# --- plain folders --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "files",
    [
        {"docs.tsv": DOCS, "queries.tsv": TOPICS, "qrels.txt": QRELS},
        {"docs.tsv.gz": gzip.compress(DOCS.encode()), "queries.txt": TOPICS, "qrels.tsv": QRELS.replace(" ", "\t")},
        {"Docs.TXT": DOCS, "QUERIES.tsv.gz": gzip.compress(TOPICS.encode()), "qrels.txt": QRELS},
        {"collection.tsv": DOCS, "queries.tsv": TOPICS, "qrels.txt": QRELS, "bm25.run": "x", "notes.tsv": "x"},
        {
            "docs.jsonl": json_lines(*({"id": d, "text": t} for d, t in DOC_ROWS)),
            "queries.json": json_lines(*({"qid": q, "query": t} for q, t in TOPIC_ROWS)),
            "qrels.jsonl": json_lines(*({"query-id": q, "corpus-id": d, "score": g} for q, d, g in QREL_ROWS)),
        },
        {
            "documents.parquet": columns(DOC_ROWS, "doc_id", "text"),
            "queries.parquet": columns(TOPIC_ROWS, "query_id", "text"),
            "qrels.parquet": columns(QREL_ROWS, "query_id", "doc_id", "relevance"),
        },
        {"docs/b.tsv": "d2\the, too\n", "docs/a.tsv": "d1\tshe said so\n", "queries.tsv": TOPICS, "qrels.txt": QRELS},
        {
            "docs.parquet/part-0.parquet": columns(DOC_ROWS, "doc_id", "text"),
            "docs.parquet/_SUCCESS": "",
            "queries.tsv": TOPICS,
            "qrels.txt": QRELS,
        },
    ],
)
def test_a_folder_is_read_by_the_names_of_its_files(tmp_path, files):
    collection = open_collection(fill(tmp_path, files))
    assert everything(collection) == (DOC_ROWS, TOPIC_ROWS, QREL_ROWS)
    assert collection.id == str(tmp_path)


def test_a_path_may_be_text_or_a_path(tmp_path):
    fill(tmp_path, {"docs.tsv": DOCS})
    assert documents(open_collection(str(tmp_path))) == documents(open_collection(tmp_path)) == DOC_ROWS


def test_a_folder_of_other_names_is_documents_only(tmp_path):
    collection = open_collection(fill(tmp_path, {"b.tsv": "d2\the, too\n", "a.tsv": "d1\tshe said so\n"}))
    assert documents(collection) == DOC_ROWS
    assert collection.files == (tmp_path / "a.tsv", tmp_path / "b.tsv")
    assert not collection.has_queries


@pytest.mark.parametrize("what", ["queries", "judgements", "judged_queries"])
def test_what_a_folder_lacks_is_said_with_where_it_would_be(tmp_path, what):
    collection = open_collection(fill(tmp_path, {"docs.tsv": DOCS}))
    assert (collection.has_queries, collection.has_judgements) == (False, False)
    with pytest.raises(DataError, match=r"it has no (queries|judgements); expected files queries\.\*") as caught:
        getattr(collection, what)()
    one_line(caught)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"README.md": "x", "BM25.run": "x"},
        {"queries.tsv": TOPICS, "qrels.txt": QRELS, "texts.tsv": DOCS},
        {"data/a.tsv": DOCS},
        {"data/a.parquet": {"text": ["x"]}},
    ],
)
def test_a_folder_without_documents_says_what_it_has(tmp_path, files):
    with pytest.raises(DataError) as caught:
        open_collection(fill(tmp_path, files))
    one_line(caught)
    assert caught.value.code == "no-documents"
    assert {name.rstrip("/") for name in caught.value.values["found"]} == {name.split("/")[0] for name in files}


@pytest.mark.parametrize(
    "files",
    [
        {"docs.tsv": DOCS, "docs.jsonl": "{}"},
        {"docs.tsv": DOCS, "docs.tsv.gz": gzip.compress(DOCS.encode())},
        {"docs.tsv": DOCS, "corpus.jsonl": "{}"},
        {"docs.tsv": DOCS, "docs/a.tsv": DOCS},
        {"docs.tsv": DOCS, "data/docs.tsv": DOCS},
    ],
)
def test_two_kinds_of_documents_are_refused_with_their_names(tmp_path, files):
    with pytest.raises(ConfigError, match=r"documents .*:.*one, found .*(docs|corpus)") as caught:
        open_collection(fill(tmp_path, files))
    one_line(caught)


def test_two_files_of_queries_matter_only_to_those_who_ask_for_them(tmp_path):
    collection = open_collection(fill(tmp_path, {"docs.tsv": DOCS, "queries.tsv": TOPICS, "queries.jsonl": "{}"}))
    assert documents(collection) == DOC_ROWS
    with pytest.raises(ConfigError, match=r"queries .*:.*one, found queries\.jsonl, queries\.tsv"):
        _ = collection.queries


def test_hidden_files_do_not_count(tmp_path):
    fill(tmp_path, {"docs.tsv": DOCS, ".docs.tsv.swp": "x", ".cache/docs.tsv": "x", "docs/.docs.tsv": "x"})
    assert documents(open_collection(tmp_path)) == DOC_ROWS


def test_a_folder_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(DataError, match=r"gone: no such.*'demo', 'irds:ID'") as caught:
        open_collection(tmp_path / "gone")
    one_line(caught)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_a_name_that_no_file_can_have_is_not_there(name):
    with pytest.raises(DataError, match="file or folder"):
        open_collection(name)


def test_no_name_is_not_the_folder_we_are_in():
    with pytest.raises(ConfigError, match="found no name"):
        open_collection("")


@pytest.mark.parametrize(
    ("files", "read", "message"),
    [
        ({"docs.tsv": b"d1\t\xff\n"}, documents, r"docs\.tsv:1: expected UTF-8"),
        ({"docs.tsv": "d1\n"}, documents, r"docs\.tsv:1: expected 2 columns"),
        ({"docs.tsv": "\tx\n"}, documents, r"docs\.tsv:1: the document has no id"),
        ({"docs.tsv": ""}, documents, "it has no documents"),
        ({"docs.jsonl": "{"}, documents, r"docs\.jsonl:1: not valid JSON"),
        ({"docs.jsonl": '{"_id": null, "text": "x"}'}, documents, r"docs\.jsonl:1: the column _id has no value"),
        ({"docs.parquet": b"PAR1"}, documents, "not a readable Parquet file"),
        ({"docs.parquet": {"a": [1]}}, documents, "expected the columns 'doc_id' and 'text'; found a"),
        ({"docs.tsv": DOCS, "queries.parquet": {"a": [1]}}, queries, "expected the columns query_id and text; found a"),
        ({"docs.tsv": DOCS, "queries.parquet": {"id": ["q"], "text": [None]}}, queries, "column text has no value"),
        ({"docs.tsv": DOCS, "queries.parquet": {"id": [None], "text": ["x"]}}, queries, "column id has no value"),
        ({"docs.tsv": DOCS, "queries.parquet": {"id": ["q", "q"], "text": ["x"] * 2}}, queries, "more than once"),
        ({"docs.tsv": DOCS, "queries.parquet": b"PAR1"}, queries, "not a readable Parquet file"),
        ({"docs.tsv": DOCS, "queries.jsonl": "[]"}, queries, r"queries\.jsonl:1: expected an object"),
        ({"docs.tsv": DOCS, "qrels.txt": "q1 d1\n"}, judgements, r"qrels\.txt:1: expected 4 columns"),
        ({"docs.tsv": DOCS, "qrels.jsonl": '{"query-id": "q"}'}, judgements, r"qrels\.jsonl:1: expected an object"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_line_that_names_it(tmp_path, files, read, message):
    collection = open_collection(fill(tmp_path, files))
    with pytest.raises(DataError, match=message) as caught:
        read(collection)
    one_line(caught)


def test_a_link_to_nowhere_is_one_line(tmp_path):
    (tmp_path / "docs.tsv").symlink_to(tmp_path / "gone.tsv")
    collection = open_collection(tmp_path)
    with pytest.raises(DataError, match=r"docs\.tsv:.*cannot be read"):
        documents(collection)
    with pytest.raises(DataError, match=r"docs\.tsv: no such file"):
        assert collection.size


def test_a_score_is_a_relevance_only_under_the_names_of_beir(tmp_path):
    """A run that was taken for judgements would make every ranking look well."""
    run = {"query_id": ["q1"], "doc_id": ["d1"], "score": [1]}
    fill(tmp_path, {"docs.tsv": DOCS, "qrels.parquet": run, "runs/bm25.parquet": run})
    with pytest.raises(DataError, match=r"qrels\.parquet") as caught:
        _ = open_collection(tmp_path).judgements
    assert (caught.value.code, caught.value.values) == ("missing-column", {"found": list(run)})


# --- a single file --------------------------------------------------------------------------------


def test_a_file_is_documents_only(tmp_path):
    path = fill(tmp_path, {"anything.tsv": DOCS}) / "anything.tsv"
    collection = open_collection(path)
    assert documents(collection) == DOC_ROWS
    assert (collection.id, collection.files, collection.size) == (str(path), (path,), len(DOCS))
    with pytest.raises(DataError, match="give a folder"):
        _ = collection.queries


def test_a_single_file_of_beir_keeps_to_its_text_unless_fields_are_named(tmp_path):
    path = fill(tmp_path, {"x.jsonl": json_lines({"_id": "d1", "title": "T", "text": "x"})}) / "x.jsonl"
    assert documents(open_collection(path)) == [("d1", "x")]
    assert documents(open_collection(path, ("title", "text"))) == [("d1", "T x")]


def test_fields_named_on_reading_go_before_those_named_on_opening(tmp_path):
    path = fill(tmp_path, {"x.jsonl": json_lines({"_id": "d1", "title": "T", "text": "x"})}) / "x.jsonl"
    assert documents(open_collection(path, "title"), "text", "title") == [("d1", "x T")]


def test_a_single_name_of_a_field_is_not_the_sequence_of_its_letters(tmp_path):
    path = fill(tmp_path, {"x.jsonl": json_lines({"_id": "d1", "title": "T", "text": "x"})}) / "x.jsonl"
    assert documents(open_collection(path, "title")) == [("d1", "T")]
    assert next(open_collection(path).documents("title"))["text"].to_pylist() == ["T"]


def test_fields_of_a_tsv_file_are_a_mistake(tmp_path):
    with pytest.raises(ConfigError, match="no named fields"):
        documents(open_collection(fill(tmp_path, {"docs.tsv": DOCS})), "title")


# --- splits ---------------------------------------------------------------------------------------


def beir(folder, *splits, **more):
    corpus = json_lines(
        {"_id": "d1", "title": "", "text": "she said so"}, {"_id": "d2", "title": "He", "text": "he, too"}
    )
    topics = json_lines(*({"_id": q, "text": t, "metadata": {}} for q, t in TOPIC_ROWS))
    files = {"corpus.jsonl": corpus, "queries.jsonl": topics}
    grades = {f"qrels/{split}.tsv": f"{HEADER}q1\td1\t{n}\n" for n, split in enumerate(splits, start=1)}
    return fill(folder, {**files, **grades, **more})


def test_a_beir_folder_has_titles_before_texts_and_all_its_queries(tmp_path):
    collection = open_collection(beir(tmp_path, "test"))
    assert everything(collection) == (CORPUS_ROWS, TOPIC_ROWS, [("q1", "d1", 1)])


def test_a_packed_beir_folder_reads_the_same(tmp_path):
    plain = everything(open_collection(beir(tmp_path, "test")))
    for path in [tmp_path / "corpus.jsonl", tmp_path / "queries.jsonl", tmp_path / "qrels" / "test.tsv"]:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert everything(open_collection(tmp_path)) == plain


def test_the_judged_queries_are_those_of_the_split(tmp_path):
    collection = open_collection(beir(tmp_path, "test"))
    assert collection.judged_queries()["query_id"].to_pylist() == ["q1"]
    assert collection.judged_queries().schema == QUERIES


def test_judgements_of_other_queries_are_an_error_that_shows_both(tmp_path):
    collection = open_collection(beir(tmp_path, **{"qrels/test.tsv": f"{HEADER}7\td1\t1\n"}))
    with pytest.raises(DataError, match=r"2 queries \(ids q1, q2\).*7\)") as caught:
        collection.judged_queries()
    assert caught.value.code == "no-judged-queries"


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"title": "T", "text": "x"}, "T x"),
        ({"title": "", "text": "x"}, "x"),
        ({"title": " ", "text": "x"}, "x"),
        ({"title": None, "text": "x"}, "x"),
        ({"text": "x"}, "x"),
        ({"title": "T", "text": ""}, "T "),
        ({"title": "T", "text": None}, "T"),
    ],
)
def test_a_title_stands_before_the_text_where_there_is_one(tmp_path, document, text):
    row = {"_id": "d1", **document}
    fill(tmp_path / "lines", {"corpus.jsonl": json_lines(row)})
    fill(tmp_path / "table", {"corpus/corpus.parquet": {name: [value] for name, value in row.items()}})
    assert documents(open_collection(tmp_path / "lines")) == [("d1", text)]
    assert documents(open_collection(tmp_path / "table")) == [("d1", text)]


def test_named_fields_overrule_the_titles_of_beir(tmp_path):
    assert documents(open_collection(beir(tmp_path, "test"), ("text",)))[1] == ("d2", "he, too")


def test_a_title_that_is_no_text_is_refused(tmp_path):
    fill(tmp_path, {"corpus.jsonl": json_lines({"_id": "d1", "title": ["T"], "text": "x"})})
    with pytest.raises(DataError, match=r"corpus\.jsonl:1:.*number as title"):
        documents(open_collection(tmp_path))


@pytest.mark.parametrize(
    ("splits", "asked", "grade"),
    [
        (["test"], None, 1),
        (["dev"], None, 1),
        (["dev", "test", "train"], None, 2),
        (["dev", "test", "train"], "train", 3),
        (["dev", "train"], "dev", 1),
    ],
)
def test_the_split_is_the_one_asked_for_or_test_or_the_only_one(tmp_path, splits, asked, grade):
    assert judgements(open_collection(beir(tmp_path, *splits), split=asked)) == [("q1", "d1", grade)]


def test_several_splits_without_test_have_to_be_chosen_from_by_those_who_need_judgements(tmp_path):
    collection = open_collection(beir(tmp_path, "dev", "train"))
    assert (len(documents(collection)), len(queries(collection))) == (2, 2)
    with pytest.raises(ConfigError, match="splits dev, train;") as caught:
        _ = collection.judgements
    one_line(caught)


def test_a_split_that_is_not_there_is_an_error_at_once(tmp_path):
    with pytest.raises(ConfigError, match=r"unknown split 'tets' in .*:.*you mean 'test'"):
        open_collection(beir(tmp_path, "dev", "test"), split="tets")


def test_a_folder_without_splits_has_none_to_choose(tmp_path):
    with pytest.raises(ConfigError, match=r"no splits.*'test'"):
        open_collection(fill(tmp_path, {"docs.tsv": DOCS, "qrels.txt": QRELS}), split="test")


@pytest.mark.parametrize("source", ["demo", {"d1": "x"}, ["x"]])
def test_only_a_folder_has_splits(source):
    with pytest.raises(ConfigError, match="'test'") as caught:
        open_collection(source, split="test")
    assert caught.value.code == "no-split"


def test_a_file_has_no_splits(tmp_path):
    with pytest.raises(ConfigError, match=r"'test';.*the folder") as caught:
        open_collection(fill(tmp_path, {"a.tsv": DOCS}) / "a.tsv", split="test")
    assert caught.value.code == "no-split"


def test_queries_and_judgements_may_have_the_split_in_their_names(tmp_path):
    names = {"queries.dl19.tsv": "q1\ta\n", "queries.dl20.tsv": "q2\tb\n"}
    names |= {"qrels.dl19.txt": "q1 0 d1 1\n", "qrels.dl20.txt": "q2 0 d2 1\n"}
    fill(tmp_path, {"docs.tsv": DOCS, **names})
    collection = open_collection(tmp_path, split="dl20")
    assert (queries(collection), judgements(collection)) == ([("q2", "b")], [("q2", "d2", 1)])
    with pytest.raises(ConfigError, match="the splits dl19, dl20"):
        _ = open_collection(tmp_path).queries


def test_queries_follow_the_split_of_the_judgements(tmp_path):
    fill(tmp_path, {"docs.tsv": DOCS, "queries.dev.tsv": "q1\ta\n", "queries.test.tsv": "q2\tb\n"})
    fill(tmp_path, {"qrels.dev.txt": "q1 0 d1 1\n"})
    assert queries(open_collection(tmp_path)) == [("q1", "a")]


def test_queries_of_another_split_are_not_taken_instead(tmp_path):
    fill(tmp_path, {"docs.tsv": DOCS, "queries.train.tsv": "q1\ta\n", "qrels.test.txt": "q2 0 d2 1\n"})
    with pytest.raises(ConfigError, match=r"unknown split 'test'.*queries of "):
        _ = open_collection(tmp_path).queries


def test_one_file_of_judgements_serves_every_split_of_the_queries(tmp_path):
    fill(tmp_path, {"docs.tsv": DOCS, "queries.a.tsv": "q1\ta\n", "queries.b.tsv": "q2\tb\n", "qrels.txt": QRELS})
    collection = open_collection(tmp_path, split="b")
    assert collection.judged_queries()["query_id"].to_pylist() == ["q2"]
    assert judgements(collection) == QREL_ROWS


# --- Hugging Face ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ("corpus/corpus-00000-of-00001.parquet", "queries/queries-00000-of-00001.parquet", "qrels/test.parquet"),
        ("corpus/test-00000-of-00001.parquet", "queries/test-00000-of-00001.parquet", "default/test-00000-of-00001"),
        ("corpus/train-00000-of-00001-0a1b2c3d.parquet", "queries/queries.parquet", "data/test-00000-of-00001.parquet"),
        ("corpus/corpus/0000.parquet", "queries/queries/0000.parquet", "default/test/0000.parquet"),
        ("data/corpus-00000-of-00001.parquet", "data/queries-00000-of-00001.parquet", "data/qrels-00000-of-00001"),
        ("data/corpus/0.parquet", "data/queries/queries.parquet", "data/qrels/test.parquet"),
    ],
)
def test_a_hugging_face_folder_of_a_retrieval_task_is_read(tmp_path, names):
    names = [name if name.endswith(".parquet") else f"{name}.parquet" for name in names]
    fill(tmp_path, {"README.md": "---\n---\n", ".gitattributes": "x", "LICENSE.txt": "x"})
    fill(tmp_path, dict(zip(names, [CORPUS, HF_QUERIES, HF_QRELS], strict=True)))
    assert everything(open_collection(tmp_path)) == (CORPUS_ROWS, TOPIC_ROWS, QREL_ROWS)


@pytest.mark.parametrize("folder", ["data", "default", "en"])
def test_a_hugging_face_folder_of_texts_is_read_by_its_columns(tmp_path, folder):
    fill(tmp_path, {"README.md": "x", f"{folder}/train-00000-of-00001.parquet": columns(DOC_ROWS, "id", "text")})
    collection = open_collection(tmp_path)
    assert documents(collection) == DOC_ROWS
    assert (collection.has_queries, collection.has_judgements) == (False, False)


def test_queries_are_known_by_their_columns_too(tmp_path):
    fill(tmp_path, {"a/x.parquet": columns(DOC_ROWS, "doc_id", "text")})
    fill(tmp_path, {"b/x.parquet": columns(TOPIC_ROWS, "query_id", "text")})
    fill(tmp_path, {"c/x.parquet": columns(QREL_ROWS, "query_id", "doc_id", "relevance"), "d/x.parquet": {"z": [1]}})
    assert everything(open_collection(tmp_path)) == (DOC_ROWS, TOPIC_ROWS, QREL_ROWS)


def test_the_shards_of_a_split_are_read_in_order(tmp_path):
    shards = {f"data/train-0000{n}-of-00002.parquet": columns([row], "id", "text") for n, row in enumerate(DOC_ROWS)}
    collection = open_collection(fill(tmp_path, shards))
    assert documents(collection) == DOC_ROWS
    assert [file.name for file in collection.files] == sorted(name.removeprefix("data/") for name in shards)


@pytest.mark.parametrize("folder", ["data", "corpus"])
def test_a_missing_shard_is_an_error_and_not_a_smaller_collection(tmp_path, folder):
    fill(tmp_path, {f"{folder}/train-00001-of-00003.parquet": columns(DOC_ROWS, "id", "text")})
    with pytest.raises(DataError, match=r"expected 3 files train-\*-of-00003, found 1;.*missing files") as caught:
        open_collection(tmp_path)
    one_line(caught)


def test_documents_in_several_splits_have_to_be_chosen_from(tmp_path):
    splits = {f"data/{name}-00000-of-00001.parquet": {"id": [name], "text": ["x"]} for name in ("test", "train")}
    fill(tmp_path, splits)
    with pytest.raises(ConfigError, match=r"documents .*:.*test, train;"):
        open_collection(tmp_path)
    assert documents(open_collection(tmp_path, split="train")) == [("train", "x")]


def test_documents_in_several_folders_are_named_in_the_error(tmp_path):
    fill(tmp_path, {f"{lang}/train.parquet": columns(DOC_ROWS, "id", "text") for lang in ("de", "en")})
    with pytest.raises(ConfigError, match=r"found de/train\.parquet, en/train\.parquet;.*file instead"):
        open_collection(tmp_path)
    assert documents(open_collection(tmp_path / "en" / "train.parquet")) == DOC_ROWS


# --- in memory ------------------------------------------------------------------------------------


def pandas_frame(rows):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed, and askew does not need it")
    return pandas.DataFrame(rows, columns=["doc_id", "text"])


MAKERS = {
    "pairs": lambda rows: rows,
    "lists": lambda rows: [list(row) for row in rows],
    "a tuple of pairs": tuple,
    "dicts": lambda rows: [{"doc_id": doc, "text": text} for doc, text in rows],
    "a mapping": dict,
    "polars": lambda rows: pl.DataFrame(rows, schema=["doc_id", "text"], orient="row"),
    "pandas": pandas_frame,
    "pandas with an index": lambda rows: pandas_frame(rows).set_index("doc_id"),
    "arrow": lambda rows: pa.table(columns(rows, "doc_id", "text")),
    "a batch": lambda rows: pa.RecordBatch.from_pydict(columns(rows, "doc_id", "text")),
    "a stream": lambda rows: pa.table(columns(rows, "doc_id", "text")).to_reader(),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_documents_in_memory_come_in_many_shapes(kind):
    collection = open_collection(MAKERS[kind](DOC_ROWS))
    assert (collection.id, collection.files, collection.size) == ("in memory", (), 0)
    assert documents(collection) == documents(collection) == DOC_ROWS
    assert (collection.has_queries, collection.has_judgements) == (False, False)
    with pytest.raises(DataError, match="documents in memory"):
        _ = collection.queries


@pytest.mark.parametrize("kind", ["pairs", "dicts", "polars", "arrow", "pandas"])
@LAW
@given(docs=st.dictionaries(IDS, TEXTS, min_size=1, max_size=8))
def test_documents_in_memory_come_back_as_they_were(kind, docs):
    assert documents(open_collection(MAKERS[kind](list(docs.items())))) == list(docs.items())


@LAW
@given(texts=st.lists(TEXTS, min_size=1, max_size=12))
def test_a_list_of_texts_comes_back_with_its_positions_as_ids(texts):
    assert documents(open_collection(texts)) == [(str(position), text) for position, text in enumerate(texts)]


def test_a_pair_of_texts_is_two_documents():
    assert documents(open_collection(("she", "he"))) == [("0", "she"), ("1", "he")]


def test_whole_numbers_are_ids():
    assert documents(open_collection([(7, "x"), (8, "y")])) == [("7", "x"), ("8", "y")]
    assert documents(open_collection([{"id": 7, "text": "x"}])) == [("7", "x")]


def test_a_large_table_comes_in_batches():
    table = pa.table({"id": [str(n) for n in range(70_000)], "text": ["x"] * 70_000})
    assert [batch.num_rows for batch in open_collection(table).documents()] == [65_536, 4_464]


@pytest.mark.parametrize("kind", ["dicts", "polars", "pandas", "arrow"])
def test_fields_choose_parts_of_what_is_in_memory(kind):
    rows = [{"docno": "d1", "title": "T", "body": "x"}, {"docno": "d2", "title": None, "body": "y"}]
    frames = {"dicts": lambda: rows, "polars": lambda: pl.DataFrame(rows), "arrow": lambda: pa.Table.from_pylist(rows)}
    frames["pandas"] = lambda: pytest.importorskip("pandas").DataFrame(rows)
    collection = open_collection(frames[kind](), ["title", "body"])
    assert documents(collection) == [("d1", "T x"), ("d2", "y")]
    assert documents(collection, "body") == [("d1", "x"), ("d2", "y")]


@pytest.mark.parametrize("source", [["x"], [("d1", "x")], {"d1": "x"}])
def test_texts_without_parts_have_no_fields(source):
    with pytest.raises(ConfigError, match="named fields; fields"):
        documents(open_collection(source, ["title"]))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "it has no rows"),
        ({}, "it has no rows"),
        (pl.DataFrame(), "it has no rows"),
        (["x", 5], "expected a text for the document '1', found 5"),
        (["x", None], "expected a text for the document '1', found None"),
        (["x", ("d1", "y")], "expected a text for the document '1'"),
        ([("d1", "x"), "y"], r"a list of \(id, text\) pairs or a list of dicts; found 'y' at position 1"),
        ([("d1", "x", 1)], r"a list of \(id, text\) pairs or a list of dicts; found .* at position 0"),
        ([5], r"a list of \(id, text\) pairs or a list of dicts; found 5 at position 0"),
        ([None], "found None at position 0"),
        ([(None, "x")], "expected a text or a whole number as doc_id, found None"),
        ([("", "x")], "expected a text or a whole number as doc_id, found ''"),
        ([(True, "x")], "expected a text or a whole number as doc_id, found True"),
        ([("d1", None)], "expected a text for the document 'd1', found None"),
        ([("d1", b"x")], "expected a text for the document 'd1'"),
        ([("d1", "\ud800")], "surrogates not allowed"),
        ([{"id": "d1", "text": "x"}, "y"], "because the first document is a dict; found 'y' at position 1"),
        ([{"id": "d1", "text": "x"}, {"id": "d2"}], "in memory:2: expected a document id and 'text'"),
        ([{"text": "x"}], "in memory:1: expected a document id and 'text'"),
        ([{"id": None, "text": "x"}], "in memory:1: the column id has no value"),
        ([{"id": "d1", "text": ["x"]}], "in memory:1: expected a text or a number as text"),
        (pl.DataFrame({"doc_id": ["d1"], "text": [None]}), "in memory:1: the column text has no value"),
        (pl.DataFrame({"a": ["d1"]}), "expected the columns 'doc_id' and 'text'; found a"),
        (pl.Series(["x"]), "Series is not a table of plain columns"),
        (pa.array(["x"]), "StringArray is not a table of plain columns"),
        (pa.Table.from_arrays([pa.array(["x"])] * 2, ["text", "text"]), "the column text occurs more than once"),
        (pl.LazyFrame({"a": [1]}), "found LazyFrame"),
        ({"x"}, "found set"),
        (b"x", "found bytes"),
        (
            7,
            r"expected a path, a list of texts, a list of \(id, text\) pairs, a list of dicts, a mapping, "
            r"a data frame .* found int",
        ),
        (None, "found NoneType"),
    ],
)
def test_what_are_no_documents_is_one_line(source, message):
    with pytest.raises(DataError, match=message) as caught:
        documents(open_collection(source))
    one_line(caught)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"doc_id": ["d1", 2], "text": ["x", "y"]}, "DataFrame is not a table of plain columns"),
        ({"doc_id": ["d1", None], "text": ["x", "y"]}, "in memory:2: the column doc_id has no value"),
        ({"doc_id": ["d1", "d2"], "text": ["x", float("nan")]}, "in memory:2: the column text has no value"),
    ],
)
def test_what_is_wrong_in_a_pandas_frame_is_one_line(data, message):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed, and askew does not need it")
    with pytest.raises(DataError, match=message) as caught:
        documents(open_collection(pandas.DataFrame(data)))
    one_line(caught)


# --- ir_datasets ----------------------------------------------------------------------------------

NUMBERS = itertools.count()


class TitledDoc(NamedTuple):
    doc_id: str
    title: str | None
    body: str
    links: tuple[str, ...] = ()

    def default_text(self):
        return f"{self.title} {self.body}"


class BareDoc(NamedTuple):
    doc_id: str
    title: str
    body: str


class BareQuery(NamedTuple):
    query_id: str
    text: str


class NamelessQuery(NamedTuple):
    query_id: str
    url: str


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    # It makes its folder on import; that shall not be the folder of whoever runs the tests.
    patch.setenv("IR_DATASETS_HOME", str(tmp_path_factory.mktemp("irds")))
    yield pytest.importorskip("ir_datasets", reason="the extra irds is not installed")
    patch.undo()


@pytest.fixture
def register(library):
    """Adds a dataset under a new id, from files or from rows, and gives its id."""

    def add(*parts, name=None, **files):
        name = name or f"askew-test-{next(NUMBERS)}"
        dataset = library.create_dataset(**files) if files else library.Dataset(*parts)
        library.registry.register(name, dataset)
        return name

    return add


@pytest.fixture
def rows_of(library):
    """Documents, queries or judgements from rows; an error among the rows is raised when its turn comes."""

    def raising(rows):
        for row in rows:
            if isinstance(row, Exception):
                raise row
            yield row

    class Docs(library.formats.BaseDocs):
        def __init__(self, kind, *rows):
            self.kind, self.rows = kind, rows

        def docs_iter(self):
            return raising(self.rows)

        def docs_cls(self):
            return self.kind

    class Queries(library.formats.BaseQueries):
        def __init__(self, kind, *rows):
            self.kind, self.rows = kind, rows

        def queries_iter(self):
            return raising(self.rows)

        def queries_cls(self):
            return self.kind

    class Qrels(library.formats.BaseQrels):
        def __init__(self, *rows):
            self.rows = [row if isinstance(row, Exception) else library.formats.GenericQrel(*row) for row in rows]

        def qrels_iter(self):
            return raising(self.rows)

    return SimpleNamespace(docs=Docs, queries=Queries, qrels=Qrels)


def test_a_dataset_of_ir_datasets_is_a_collection(register, tmp_path):
    fill(tmp_path, {"d.tsv": DOCS, "q.tsv": TOPICS, "r.txt": QRELS})
    files = {"docs_tsv": "d.tsv", "queries_tsv": "q.tsv", "qrels_trec": "r.txt"}
    name = register(**{kind: str(tmp_path / file) for kind, file in files.items()})
    collection = open_collection(f"irds:{name}")
    assert (collection.id, collection.files) == (f"irds:{name}", ())
    assert everything(collection) == (DOC_ROWS, TOPIC_ROWS, QREL_ROWS)
    assert everything(pickle.loads(pickle.dumps(collection))) == (DOC_ROWS, TOPIC_ROWS, QREL_ROWS)


def test_nothing_is_read_on_opening(register, tmp_path):
    gone = str(tmp_path / "gone.tsv")
    collection = open_collection(f"irds:{register(docs_tsv=gone, queries_tsv=gone, qrels_trec=gone)}")
    assert (collection.has_queries, collection.has_judgements) == (True, True)
    for read in (documents, queries, judgements):
        with pytest.raises(DataError, match="FileNotFoundError") as caught:
            read(collection)
        assert caught.value.code == "not-loaded"


def test_documents_of_ir_datasets_come_in_batches(register, rows_of, library):
    docs = [library.formats.GenericDoc(str(n), "x") for n in range(8200)]
    collection = open_collection(f"irds:{register(rows_of.docs(library.formats.GenericDoc, *docs))}")
    assert [batch.num_rows for batch in collection.documents()] == [8192, 8]


def test_the_text_is_the_one_the_dataset_makes_or_the_fields_that_are_named(register, rows_of):
    name = register(rows_of.docs(TitledDoc, TitledDoc("d1", "T", "x"), TitledDoc("d2", None, "y")))
    assert documents(open_collection(f"irds:{name}")) == [("d1", "T x"), ("d2", "None y")]
    assert documents(open_collection(f"irds:{name}", ["body", "title"])) == [("d1", "x T"), ("d2", "y")]


def test_an_unknown_field_is_told_with_the_known_ones_before_anything_is_fetched(register, rows_of):
    name = register(rows_of.docs(TitledDoc, RuntimeError("fetched")))
    with pytest.raises(ConfigError, match=r"unknown field 'abstract';.*body, links"):
        open_collection(f"irds:{name}", ["abstract"])
    with pytest.raises(ConfigError, match="unknown field 'abstract'"):
        documents(open_collection(f"irds:{name}"), "abstract")


def test_a_field_that_is_no_text_is_refused(register, rows_of):
    name = register(rows_of.docs(TitledDoc, TitledDoc("d1", "T", "x", ("a",))))
    with pytest.raises(DataError, match=rf"irds:{name}:1:") as caught:
        documents(open_collection(f"irds:{name}", ["links"]))
    assert (caught.value.code, caught.value.values) == ("bad-value", {"line": 1, "column": "links"})


def test_documents_without_a_text_of_their_own_need_fields(register, rows_of):
    name = register(rows_of.docs(BareDoc, BareDoc("d1", "T", "x")))
    with pytest.raises(ConfigError, match="from title, body"):
        documents(open_collection(f"irds:{name}"))
    assert documents(open_collection(f"irds:{name}", ["title"])) == [("d1", "T")]


def test_queries_without_a_default_text_have_the_one_that_is_called_so(register, rows_of):
    name = register(rows_of.queries(BareQuery, BareQuery("q1", "who")))
    assert queries(open_collection(f"irds:{name}")) == [("q1", "who")]
    with pytest.raises(ConfigError, match="field is declared"):
        queries(open_collection(f"irds:{register(rows_of.queries(NamelessQuery))}"))


@pytest.mark.parametrize("number", [0, 1])
def test_whatever_fails_in_fetching_is_one_line(register, rows_of, number):
    errors = [OSError("no route\nto host"), KeyError("x" * 1000), EOFError(), RuntimeError("All failed", [1])]
    before = [TitledDoc("d1", "T", "x")] * number
    for error in errors:
        name = register(
            rows_of.docs(TitledDoc, *before, error), rows_of.queries(BareQuery, error), rows_of.qrels(error)
        )
        for read in (documents, queries, judgements):
            with pytest.raises(DataError, match=rf"irds:{name}: .*{type(error).__name__}.*check the network") as caught:
                read(open_collection(f"irds:{name}"))
            one_line(caught)
            assert len(str(caught.value)) < 500


def test_a_text_that_cannot_be_made_is_one_line(register, rows_of):
    class BrokenDoc(BareDoc):
        def default_text(self):
            raise ImportError("lxml")

    name = register(rows_of.docs(BrokenDoc, BrokenDoc("d1", "T", "x")))
    with pytest.raises(DataError, match=r"load its documents .*ImportError: lxml"):
        documents(open_collection(f"irds:{name}"))


def test_ir_datasets_passes_the_checks_that_files_pass(register, rows_of):
    twice = rows_of.queries(BareQuery, BareQuery("q1", "a"), BareQuery("q1", "b"))
    name = register(
        rows_of.docs(BareDoc, BareDoc("", "T", "x")), twice, rows_of.qrels(("q1", "d1", 1), ("q1", "d1", 2))
    )
    collection = open_collection(f"irds:{name}", ["title"])
    for read, message in [
        (documents, "the column doc_id has no value"),
        (queries, "the query id 'q1' occurs more than once"),
        (judgements, "document 'd1' has two different judgements"),
    ]:
        with pytest.raises(DataError, match=message):
            read(collection)


def test_a_dataset_of_nothing_says_so(register, rows_of):
    name = register(rows_of.docs(TitledDoc), rows_of.queries(BareQuery), rows_of.qrels())
    for read in (documents, queries, judgements):
        with pytest.raises(DataError, match=f"{read.__name__} irds:{name}") as caught:
            read(open_collection(f"irds:{name}"))
        assert caught.value.code == "empty"


def test_a_repeated_judgement_is_counted_once_and_noted(register, rows_of):
    name = register(rows_of.qrels(("q1", "d1", 1), ("q1", "d1", 1)))
    found = open_collection(f"irds:{name}").qrels_file()
    assert (found.lines.height, len(found.notes)) == (1, 1)


def test_what_a_dataset_lacks_is_said_with_its_subsets(register, rows_of):
    top = register(rows_of.docs(TitledDoc, TitledDoc("d1", "T", "x")))
    register(rows_of.queries(BareQuery), name=f"{top}/dev")
    collection = open_collection(f"irds:{top}")
    assert (collection.has_queries, collection.has_judgements) == (False, False)
    with pytest.raises(DataError, match=f"{top}/dev") as caught:
        _ = collection.queries
    assert (caught.value.code, caught.value.values) == ("missing-part", {"part": "queries"})
    with pytest.raises(DataError, match="has no documents"):
        documents(open_collection(f"irds:{top}/dev"))


@pytest.mark.parametrize(("name", "near"), [("vaswan", True), ("", False), ("%$", False)])
def test_an_unknown_id_is_one_line_with_the_nearest(library, name, near):
    with pytest.raises(ConfigError, match="'irds:") as caught:
        open_collection(f"irds:{name}")
    one_line(caught)
    assert (caught.value.code, "vaswani" in caught.value.values["near"]) == ("unknown-id", near)
    assert ("'vaswani'" in str(caught.value)) == near
    assert len(str(caught.value)) < 300


def test_the_split_of_a_dataset_is_a_part_of_its_id(library):
    with pytest.raises(ConfigError, match=r"irds:vaswani.*the id") as caught:
        open_collection("irds:vaswani", split="test")
    assert caught.value.code == "no-split"


def test_without_ir_datasets_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtra, match=r"the collection 'irds:vaswani'.*the extra 'irds'"):
        open_collection("irds:vaswani")


def test_a_folder_that_ir_datasets_cannot_make_is_one_line(monkeypatch):
    def refuse(name):
        raise PermissionError(13, "Permission denied", name)

    monkeypatch.setattr(irds.importlib, "import_module", refuse)
    with pytest.raises(DataError, match=r"its download folder .*Permission denied.*IR_DATASETS_HOME"):
        open_collection("irds:vaswani")


def test_ir_datasets_is_imported_only_for_its_own_collections():
    code = "import sys; from askew.data.collection import open_collection as o; "
    code += "assert not {'pandas', 'ir_datasets', 'torch'} & set(sys.modules); "
    code += "list(o('demo').documents()); list(o(['x']).documents()); assert 'ir_datasets' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- the readers that learnt something ------------------------------------------------------------


def test_queries_in_parquet_keep_their_order_and_label(tmp_path):
    fill(tmp_path, {"q.parquet": {"qid": [2, 1], "query": ["b", "a"], "label": ["F", None]}})
    assert read_queries(tmp_path / "q.parquet").to_pylist() == [
        {"query_id": "2", "text": "b", "label": "F"},
        {"query_id": "1", "text": "a", "label": None},
    ]


def test_queries_in_parquet_that_are_none_are_an_error(tmp_path):
    pq.write_table(
        pa.table({"qid": pa.array([], pa.string()), "query": pa.array([], pa.string())}), tmp_path / "q.parquet"
    )
    with pytest.raises(DataError, match="has no queries"):
        read_queries(tmp_path / "q.parquet")
    with pytest.raises(DataError, match="no such file"):
        read_queries(tmp_path / "gone.parquet")


def test_a_collection_can_be_made_by_hand():
    made = Collection("mine", lambda fields, meter: iter([]))
    assert (made.has_queries, repr(made)) == (False, "Collection(id='mine', fields=())")
    with pytest.raises(DataError, match=r"^collection mine: it has.*judgements$"):
        _ = made.judgements
