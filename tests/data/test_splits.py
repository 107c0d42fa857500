"""Several files of judgements or queries in a folder: which is read, what is said of it, how another is named."""

import pickle
from pathlib import Path

import pytest

from askew.core.errors import ConfigError, UnknownName
from askew.data.collection import open_collection
from askew.search.retrieve import queries_notes, queries_of

DOCS = "d1\tshe said so\nd2\the, too\n"
QUERIES = "q1\twho said so\nq2\twho else\n"


def fill(folder, judgements, queries=("queries.tsv",)):
    """A file of judgements for each name, the grade of the first being 1; each file of queries has an id of its own."""
    texts = {"docs.tsv": DOCS}
    texts |= {name: f"q1 0 d1 {grade}\n" for grade, name in enumerate(judgements, start=1)}
    several = {name: f"q{number}\twho\n" for number, name in enumerate(queries, start=1)}
    texts |= several if len(queries) > 1 else dict.fromkeys(queries, QUERIES)
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def grades(collection):
    return collection.judgements["relevance"].to_pylist()


SEVERAL = [
    (["qrels.dev", "qrels.test"], 2, "qrels.dev, qrels.test", "qrels.test", "dev"),
    (
        ["qrels.dev.small.txt", "qrels.test.txt"],
        2,
        "qrels.dev.small.txt, qrels.test.txt",
        "qrels.test.txt",
        "dev.small",
    ),
    (["qrels/dev.tsv", "qrels/test.tsv"], 2, "qrels/dev.tsv, qrels/test.tsv", "qrels/test.tsv", "dev"),
    (["qrels.dl19.txt", "qrels.txt"], 2, "qrels.dl19.txt, qrels.txt", "qrels.txt", "dl19"),
]


@pytest.mark.parametrize(("names", "grade", "listed", "taken", "other"), SEVERAL)
def test_of_several_judgements_it_is_said_which_are_read_and_how_to_name_others(
    tmp_path, names, grade, listed, taken, other
):
    collection = open_collection(fill(tmp_path, names))
    assert grades(collection) == [grade]
    (note,) = collection.notes("queries", "judgements")
    values = {"role": "judgements", "found": listed, "taken": Path(taken).name, "other": other}
    assert (note.code, note.values, f"{tmp_path}@{other}" in note) == ("chosen-split", values, True)
    assert collection.notes("queries") == []
    assert pickle.loads(pickle.dumps(collection)).notes("judgements") == collection.notes("judgements")


@pytest.mark.parametrize(
    ("names", "grade", "other"), [(names, 3 - grade, other) for names, grade, _, _, other in SEVERAL]
)
def test_a_split_is_named_after_the_folder_or_apart_and_then_nothing_needs_to_be_said(tmp_path, names, grade, other):
    fill(tmp_path, names)
    for collection in (open_collection(f"{tmp_path}@{other}"), open_collection(tmp_path, split=other)):
        assert grades(collection) == [grade]
        assert collection.notes("queries", "judgements") == []
    assert open_collection(f"{tmp_path}@{other}").id == f"{tmp_path}@{other}"


@pytest.mark.parametrize("names", [["qrels.dl19.txt", "qrels.dl20.txt"], ["qrels/dl19.tsv", "qrels/dl20.tsv"]])
def test_where_no_rule_chooses_the_error_says_how_to_name_one(tmp_path, names):
    collection = open_collection(fill(tmp_path, names))
    assert collection.notes("judgements") == []
    with pytest.raises(ConfigError) as caught:
        _ = collection.judgements
    assert caught.value.code == "which-split"
    assert all(part in str(caught.value) for part in ("judgements", "dl19, dl20", f"{tmp_path}@dl19"))
    assert grades(open_collection(f"{tmp_path}@dl20")) == [2]


def test_one_file_of_judgements_needs_no_word(tmp_path):
    assert open_collection(fill(tmp_path, ["qrels.dev"])).notes("queries", "judgements") == []


def test_of_several_files_of_queries_it_is_said_which_is_read(tmp_path):
    fill(tmp_path, [], ["queries.dev.tsv", "queries.test"])
    values = {"role": "queries", "found": "queries.dev.tsv, queries.test", "taken": "queries.test", "other": "dev"}
    assert [(note.code, note.values) for note in queries_notes(str(tmp_path))] == [("chosen-split", values)]
    assert queries_of(str(tmp_path))["query_id"].to_pylist() == ["q2"]
    assert queries_of(f"{tmp_path}@dev")["query_id"].to_pylist() == ["q1"]
    assert (
        queries_notes(f"{tmp_path}@dev") == queries_notes(str(tmp_path / "queries.test")) == queries_notes("demo") == []
    )


def test_a_folder_whose_own_name_has_the_sign_is_that_folder(tmp_path):
    fill(tmp_path / "set", ["qrels.dev", "qrels.test"])
    fill(tmp_path / "set@dev", ["qrels.txt", "qrels.dev"])
    assert grades(open_collection(f"{tmp_path}/set@dev")) == [1]
    assert grades(open_collection(f"{tmp_path}/set@dev@dev")) == [2]


def test_a_split_that_is_not_there_or_named_twice_is_an_error(tmp_path):
    fill(tmp_path, ["qrels.dev", "qrels.test"])
    with pytest.raises(UnknownName, match="did you mean 'test'"):
        open_collection(f"{tmp_path}@tets")
    with pytest.raises(ConfigError, match="two splits, 'dev' and 'test'"):
        open_collection(f"{tmp_path}@dev", split="test")
