"""Training examples in the layouts of other programs: every line worked out by hand."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askew.core.errors import UnknownName
from askew.train.negatives import LAYOUTS, Example, write_examples

ONE = Example(
    "q1", "who rules", [("d1", "the queen"), ("d2", "a king")], [("n1", "he"), ("n2", "she"), ("n3", "x")], []
)


def lines(tmp_path, layout, *examples):
    out = tmp_path / "out.jsonl"
    assert write_examples(examples, out, layout) == len(examples)
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_labeled_pairs_have_the_relevant_ones_first(tmp_path):
    found = lines(tmp_path, "st-pairs", ONE)
    assert [(line["passage"], line["label"]) for line in found] == [
        ("the queen", 1), ("a king", 1), ("he", 0), ("she", 0), ("x", 0),
    ]  # fmt: skip
    assert {line["query"] for line in found} == {"who rules"}


def test_in_triples_the_relevant_documents_take_turns(tmp_path):
    found = lines(tmp_path, "st-triples", ONE)
    assert [(line["positive"], line["negative"]) for line in found] == [
        ("the queen", "he"), ("a king", "she"), ("the queen", "x"),
    ]  # fmt: skip


def test_tevatron_reads_ids_titles_and_texts(tmp_path):
    (found,) = lines(tmp_path, "tevatron", ONE)
    assert found["query_id"] == "q1" and found["query"] == "who rules"
    assert found["positive_passages"][1] == {"docid": "d2", "title": "", "text": "a king"}
    assert [one["docid"] for one in found["negative_passages"]] == ["n1", "n2", "n3"]


def test_flagembedding_reads_texts_alone(tmp_path):
    (found,) = lines(tmp_path, "flagembedding", ONE)
    assert found == {"query": "who rules", "pos": ["the queen", "a king"], "neg": ["he", "she", "x"]}


def test_an_unknown_layout_is_told_before_anything_is_written(tmp_path):
    with pytest.raises(UnknownName, match="did you mean 'tevatron'"):
        write_examples([ONE], tmp_path / "out.jsonl", "tevatrom")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_finished_leaves_the_old_file_as_it_was(tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_text("before\n")

    def broken():
        yield ONE
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_examples(broken(), out, "st-pairs")
    assert out.read_text() == "before\n" and list(tmp_path.iterdir()) == [out]


def test_no_example_makes_no_file(tmp_path):
    assert write_examples([], tmp_path / "out.jsonl", "st-pairs") == 0
    assert not list(tmp_path.iterdir())


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
PASSAGES = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4)


@settings(max_examples=40)
@given(TEXTS, PASSAGES, PASSAGES, st.sampled_from(sorted(LAYOUTS)))
def test_any_text_comes_back_as_it_was_and_on_one_line(tmp_path_factory, query, right, wrong, layout):
    out = tmp_path_factory.mktemp("any") / "out.jsonl"
    write_examples([Example("q", query, right, wrong, [])], out, layout)
    found = [json.loads(line) for line in out.read_text(encoding="utf-8").split("\n") if line]
    assert len(found) == {"st-pairs": len(right) + len(wrong), "st-triples": len(wrong)}.get(layout, 1)
    assert all(line["query"] == query for line in found)
    told = json.dumps(found, ensure_ascii=False)
    assert all(json.dumps(text, ensure_ascii=False) in told for _, text in wrong)
