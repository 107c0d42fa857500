"""Candidates from files."""

import json

import pytest

from askew.core.errors import ConfigError, DataError
from askew.core.protocols import QueryBatch
from askew.rewrite.replay import NOT_IN_FILE, ReplayReformulator
from askew.testing.contracts import check_reformulator

ASKED = QueryBatch(("1", "2", "3"), ("one", "two", "three"))
QUERYGYM = (
    "method\tmodel\trun\tqid\treformulated_query\ng\tm/1\tr\t1\tfirst one\nh\tm/1\tr\t1\tother one\ng\tm/1\tr\t2\t \n"
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "c.tsv"
    path.write_text(QUERYGYM)
    return path


def test_querygyms_output_is_read_as_it_is(file):
    found = check_reformulator(ReplayReformulator(str(file)), ASKED)
    assert (found.rows, found.texts) == ([0, 0], ["first one", "other one"])
    assert found.rejected == {"empty": 1, NOT_IN_FILE: 1}


def test_lines_are_chosen_by_their_columns(file):
    assert ReplayReformulator(str(file), where="method=h model=m/1").reformulate(ASKED).texts == ["other one"]


def test_json_lines_are_read_too(tmp_path):
    path = tmp_path / "c.jsonl"
    rows = [{"query_id": 1, "text": "line\tbreak\nhere"}, {"query_id": "2", "text": "b"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert ReplayReformulator(str(path)).reformulate(ASKED).texts == ["line break here", "b"]


def test_the_kind_of_a_candidate_is_carried_along(tmp_path):
    path = tmp_path / "kinds.tsv"
    path.write_text("query_id\ttext\tkind\nq1\tnurse pay\tkeywords\nq1\tpay of a nurse\t\n", encoding="utf-8")
    found = ReplayReformulator(str(path)).reformulate(QueryBatch(("q1",), ("what do nurses earn",)))
    assert list(zip(found.texts, found.kinds, strict=True)) == [("nurse pay", "keywords"), ("pay of a nurse", None)]


def test_the_settings_name_the_content_of_the_file(file):
    before = ReplayReformulator(str(file)).settings()
    file.write_text(QUERYGYM + "g\tm/1\tr\t3\tnew\n")
    assert ReplayReformulator(str(file)).settings() != before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file has no lines"),
        ("a\tb\n1\t2\n", "query_id or qid"),
        ("qid\ttext\n1\n", "c.tsv:2: expected 2 columns"),
        ('{"query_id": "1"}\n', "expected the candidate's text"),
        ("{no}\n", "c.tsv:1: not JSON"),
    ],
)
def test_bad_files_are_one_clear_line(tmp_path, content, message):
    path = tmp_path / "c.tsv"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        ReplayReformulator(str(path)).reformulate(ASKED)


def test_a_file_that_is_not_there_and_values_that_no_line_has(tmp_path, file):
    with pytest.raises(DataError, match=r"none\.tsv"):
        ReplayReformulator(str(tmp_path / "none.tsv")).settings()
    with pytest.raises(DataError, match="method=x"):
        ReplayReformulator(str(file), where="method=x").reformulate(ASKED)
    with pytest.raises(DataError, match="no column 'colour'"):
        ReplayReformulator(str(file), where="colour=x").reformulate(ASKED)
    with pytest.raises(ConfigError, match="NAME=VALUE"):
        ReplayReformulator(str(file), where="method")
