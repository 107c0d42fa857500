"""Measures as objects: of ir_measures, of the user, and of a file; and judgements with the columns of PyTerrier."""

from __future__ import annotations

import ir_measures
import numpy as np
import polars as pl
import pytest

import askew
from askew.core.errors import ConfigError, DataError
from askew.core.measure import Direction, Measure

RUN = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}, "r": {"b": 2.0, "a": 1.0}}
QRELS = {"q": {"b": 1}, "r": {"b": 2, "a": 1}}


class Length:
    """The number of ranked documents, up to the cutoff."""

    name, about, positional, reads = "Length", "how many documents are ranked", (), frozenset()
    parameters = {}

    def direction(self, measure):
        return Direction.UP

    def score(self, measure, inputs):
        return inputs.ranked("None").cut(measure.cutoff).lengths.astype(np.float64)


FILE = """
import numpy as np
from askew.core.measure import Direction

class Length:
    name, about, positional, reads, parameters = "Length", "how many documents are ranked", (), frozenset(), {}
    def direction(self, measure): return Direction.UP
    def score(self, measure, inputs): return inputs.ranked("None").cut(measure.cutoff).lengths.astype(np.float64)
NOTHING = 1
"""


@pytest.mark.parametrize("several", [False, True])
def test_objects_of_ir_measures_are_measures(several):
    wanted = ir_measures.nDCG(dcg="exp-log2") @ 10
    report = askew.measure(RUN, measures=[wanted, ir_measures.P @ 2] if several else wanted, qrels=QRELS)
    by_text = askew.measure(RUN, measures="nDCG(dcg=exp-log2)@10", qrels=QRELS)
    assert report[wanted] == report["nDCG(dcg=exp-log2)@10"] == by_text["nDCG(dcg=exp-log2)@10"]


@pytest.mark.parametrize(
    ("given", "text", "mean"),
    [(Length(), "Length", 2.5), (Length, "Length", 2.5), (Measure.of(Length()) @ 1, "Length@1", 1.0)],
)
def test_an_object_with_the_measure_protocol_is_a_measure(given, text, mean):
    assert askew.measure(RUN, measures=given)[text].mean == mean


def test_a_measure_of_a_file_is_named_by_file_and_class(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    report = askew.measure(RUN, measures=["mine.py:Length@2", f"{tmp_path}/mine.py:Length"])
    assert report["mine.py:Length@2"].mean == 2.0
    assert report[f"{tmp_path}/mine.py:Length"].mean == 2.5
    assert report.asked[0].signature == "mine.py:Length@2"
    (tmp_path / "mine.py").write_text(FILE.replace("return inputs", "return 10 * inputs"))
    assert askew.measure(RUN, measures="mine.py:Length@2")["mine.py:Length@2"].mean == 20.0


@pytest.mark.parametrize(
    ("measures", "error", "words"),
    [
        ("gone.py:Length", DataError, r"gone\.py"),
        ("mine.py:Other", ConfigError, "Other"),
        ("mine.py:NOTHING", ConfigError, "score"),
        ("bad.py:Length", ConfigError, "ZeroDivisionError"),
        ([3], ConfigError, "score"),
    ],
)
def test_what_is_no_measure_is_refused(tmp_path, monkeypatch, measures, error, words):
    (tmp_path / "mine.py").write_text(FILE)
    (tmp_path / "bad.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=words):
        askew.measure(RUN, measures=measures)


def test_judgements_with_the_columns_of_pyterrier_are_read():
    frame = pl.DataFrame({"qid": ["q", "r", "r"], "docno": ["b", "b", "a"], "label": [1, 2, 1]})
    texts = ["nDCG@10"]
    assert (
        askew.measure(RUN, measures=texts, qrels=frame)["nDCG@10"]
        == askew.measure(RUN, measures=texts, qrels=QRELS)["nDCG@10"]
    )


def test_queries_with_the_columns_of_pyterrier_are_read():
    frame = pl.DataFrame({"qid": ["q", "r"], "query": ["who", "what"]})
    queries = askew.Collection.open({"a": "x"}, queries=frame).queries
    assert queries.select(["query_id", "text"]).to_pydict() == {"query_id": ["q", "r"], "text": ["who", "what"]}


def test_a_measure_that_is_undefined_is_left_out_on_request():
    qrels = {"q": {"b": 0}, "r": {"b": 0}}
    with pytest.raises(DataError, match="RR@10"):
        askew.measure(RUN, measures="RR@10 Judged@10", qrels=qrels)
    report = askew.measure(RUN, measures="RR@10 Judged@10", qrels=qrels, undefined="drop")
    assert [one.text for one in report.asked] == list(report.runs[0].values) == ["Judged@10"]
    assert len(report.left_out) == 1 and "RR@10" in report.left_out[0] and report.left_out[0] in report.notes
    with pytest.raises(DataError, match="AP@10"):
        askew.measure(RUN, measures="RR@10 AP@10", qrels=qrels, undefined="drop")
