"""What is in memory passes the checks that files pass."""

import warnings

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import askew
from askew.core.errors import ConfigError, DataError
from askew.data.collection import demo_files
from askew.data.documents import bytes_of

DOCS = {"d1": "he", "d2": "she", "d3": "x"}
RUN = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d3": 1.0}}
QRELS = {"q1": {"d2": 1}, "q2": {"d3": 2}}
MEASURES = ["RR@10", "RaB(tc)@2"]
ROWS = [(query, doc, score) for query, docs in RUN.items() for doc, score in docs.items()]


def scores(run=RUN, docs=DOCS, qrels=QRELS, **options):
    report = askew.measure({"r": run}, docs, qrels=qrels, measures=MEASURES, **options)
    return {text: values.tolist() for text, values in report.runs[0].values.items()}


def frame(rows, last):
    return pl.DataFrame(rows, schema=["query_id", "doc_id", last], orient="row")


def test_mappings_frames_and_tables_give_the_same_numbers():
    expected = scores()
    assert expected == {"RR@10": [0.5, 1.0], "RaB(tc)@2": [0.0, 0.0]}
    qrels = frame([(q, d, r) for q, docs in QRELS.items() for d, r in docs.items()], "relevance")
    docs = pl.DataFrame({"doc_id": list(DOCS), "text": list(DOCS.values())})
    run = frame(ROWS, "score")
    assert scores(run, docs, qrels) == expected
    assert scores(run.to_arrow(), docs.to_arrow(), qrels.to_arrow()) == expected


def test_ids_may_be_whole_numbers():
    assert scores({1: {2: 1.0}}, {2: "he"}, {1: {2: 1}}) == {"RR@10": [1.0], "RaB(tc)@2": [1.0]}


@pytest.mark.parametrize(
    "run",
    [
        {},
        {"q1": {}},
        {"q1": ["d1"]},
        {"q1": {"d1": None}},
        {"q1": {"d1": "much"}},
        {"q1": {"d1": True}},
        {"q1": {"d1": float("nan")}},
        {None: {"d1": 1.0}},
        {"": {"d1": 1.0}},
        {"q1": {1: 1.0, "1": 2.0}},
        frame([*ROWS, ROWS[0]], "score"),
        frame([("q1", None, 1.0)], "score"),
        frame([("q1", "d1", None)], "score"),
        frame([("q1", "d1", "much")], "score"),
        pl.DataFrame({"query_id": ["q1"], "doc_id": [["d1"]], "score": [1.0]}),
        pl.DataFrame({"query_id": ["q1"]}),
        pl.DataFrame(),
        7,
    ],
)
def test_a_run_that_is_none_is_refused(run):
    with pytest.raises(DataError):
        scores(run)


@pytest.mark.parametrize(
    "qrels",
    [
        {"q1": {"d1": 0.5}},
        {"q1": {"d1": None}},
        {"q1": {"d1": "1"}},
        {"q1": 1},
        {},
        {"q1": {1: 1, "1": 2}},
        frame([("q1", "d1", 1), ("q1", "d1", 2)], "relevance"),
        frame([("q1", "d1", None)], "relevance"),
        frame([(None, "d1", 1)], "relevance"),
        pl.DataFrame({"query_id": ["q1"], "doc_id": ["d1"]}),
        7,
    ],
)
def test_judgements_that_are_none_are_refused(qrels):
    with pytest.raises(DataError):
        scores(qrels=qrels)


@pytest.mark.parametrize(
    "docs",
    [
        {"d1": None, "d2": "x", "d3": "x"},
        {"d1": 5, "d2": "x", "d3": "x"},
        {None: "x"},
        pl.DataFrame({"doc_id": ["d1", "d2", "d3"], "text": ["x", None, "x"]}),
        pl.DataFrame({"doc_id": ["d1", None, "d3"], "text": ["x", "x", "x"]}),
        pl.DataFrame({"doc_id": ["d1", "d2", "d3", "d1"], "text": ["x"] * 4}),
        pl.DataFrame({"doc_id": ["d1"], "body_of_it": ["x"]}),
        pa.table({"doc_id": ["d1"], "text": [["x"]]}),
        7,
    ],
)
def test_documents_that_are_none_are_refused(docs):
    with pytest.raises(DataError):
        scores(docs=docs)


def test_fields_choose_columns_of_a_table_in_memory():
    docs = pl.DataFrame({"doc_id": list(DOCS), "title": ["he", None, "he"], "text": ["he", "x", "x"]})
    assert scores(docs=docs, fields=["title", "text"])["RaB(tc)@2"] == [1.0, 1.0]
    with pytest.raises(ConfigError, match="no named fields"):
        scores(fields=["title"])


def test_a_lexicon_in_memory_is_used_and_named():
    lexicon = askew.Lexicon("age", {"young": ("he",), "old": ("she",)})
    report = askew.measure({"r": RUN}, DOCS, measures="RaB(tc)@1", groups=lexicon)
    assert report.runs[0].values["RaB(tc)@1"].tolist() == [1.0, 0.0]
    assert lexicon.id in report.asked[0].signature


def test_huge_scores_are_ranked_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scores({"q1": {"d1": 1e300, "d2": -1e300}})["RaB(tc)@2"][:1] == [0.0]


@pytest.mark.parametrize("packed", [False, True])
def test_progress_counts_the_bytes_as_they_lie_on_the_disk(tmp_path, packed):
    import gzip

    demo = demo_files()
    docs = tmp_path / ("docs.tsv.gz" if packed else "docs.tsv")
    docs.write_bytes(gzip.compress(demo.docs.read_bytes()) if packed else demo.docs.read_bytes())
    told = []
    askew.measure(demo.runs[:1], docs, measures="ARaB@10", progress=lambda *done: told.append(done))
    assert told[-1] == (docs.stat().st_size, docs.stat().st_size) == (bytes_of(docs), bytes_of(docs))


def test_progress_over_documents_in_memory_counts_rows():
    told = []
    scores(progress=lambda *done: told.append(done))
    assert told == [(3, 0)]


def test_scores_of_numpy_are_numbers_too():
    assert scores({"q1": {"d1": np.float32(2), "d2": np.int64(1)}})["RaB(tc)@2"][:1] == [0.0]


def test_a_run_in_memory_keeps_the_name_that_it_is_given():
    report = askew.measure({"a/x": RUN, "b/x": RUN}, DOCS, measures="RaB(tc)@2")
    assert [run.name for run in report.runs] == ["a/x", "b/x"]
