"""RM3 and Rocchio by hand."""

import math

import pyarrow as pa
import pytest

from askew.core.errors import ConfigError
from askew.rankers.bm25.analyze import Analyzer
from askew.rankers.bm25.feedback import Rm3, Rocchio, expand, search_with_feedback
from askew.rankers.bm25.index import build_index
from askew.rankers.bm25.ranker import Bm25Ranker

FILLER = [f"other{i} thing{i}" for i in range(40)]


@pytest.fixture
def ranker(tmp_path):
    texts = ["apple apple pear x123456789012345678901", "apple plum plum plum", "pear plum fig", *FILLER]
    ids = [f"d{i}" for i in range(len(texts))]
    table = pa.table({"doc_id": ids, "text": pa.array(texts, pa.large_string())})
    return Bm25Ranker(build_index([table], tmp_path / "i", Analyzer("plain")))


def test_rm3_mixes_shares_of_the_query_and_of_the_documents_by_their_scores():
    documents = [({"a": 3.0, "b": 1.0}, 2.0), ({"b": 1.0, "c": 1.0}, 1.0)]
    # a: 3/4 * 2 = 1.5, b: 1/4 * 2 + 1/2 * 1 = 1.0, c: 0.5; the best two: a 0.6, b 0.4
    mixed = Rm3(terms=2, original=0.5).mix({"q": 1.0, "a": 1.0}, documents)
    assert mixed == pytest.approx({"q": 0.25, "a": 0.25 + 0.3, "b": 0.2})


def test_rocchio_adds_the_mean_of_the_documents_to_the_query():
    mixed = Rocchio(terms=1, alpha=1.0, beta=0.75).mix({"q": 2.0}, [({"a": 3.0, "b": 4.0}, 9.0), ({"b": 1.0}, 1.0)])
    # mean: a 0.3, b (0.8 + 1) / 2 = 0.9; the best one alone has length 1
    assert mixed == pytest.approx({"q": 1.0, "b": 0.75})


def test_the_terms_come_from_the_first_documents_and_odd_ones_are_left_out(ranker):
    (query,) = expand(ranker, ["apple"], Rm3(documents=2))
    assert set(query) == {"apple", "pear", "plum"}
    assert sum(query.values()) == pytest.approx(1.0)


def test_feedback_finds_what_the_query_alone_does_not(ranker):
    alone = ranker.search(["apple"], 10)
    expanded = search_with_feedback(ranker, ["apple"], 10, Rm3(documents=2))
    assert 2 not in alone.docs.tolist()
    assert 2 in expanded.docs.tolist()


def test_all_weight_on_the_original_gives_the_order_of_the_original(ranker):
    same = search_with_feedback(ranker, ["apple pear"], 10, Rm3(original=1.0))
    assert same.docs.tolist() == ranker.search(["apple pear"], 10).docs.tolist()


def test_a_query_that_finds_nothing_keeps_its_own_terms(ranker):
    assert expand(ranker, ["unheard"], Rm3()) == [{"unheard": 1.0}]


def test_the_forward_file_is_the_postings_the_other_way_round(ranker):
    index = ranker.index
    for doc in (0, 1, 2):
        terms, counts = index.document_terms(doc)
        found = dict(zip(index.terms.take(pa.array(terms)).to_pylist(), counts.tolist(), strict=True))
        text = ["apple apple pear x123456789012345678901", "apple plum plum plum", "pear plum fig"][doc].split()
        assert found == {word: text.count(word) for word in text}


def test_settings_that_make_no_sense_are_refused():
    for make in (
        lambda: Rm3(documents=0),
        lambda: Rm3(original=2.0),
        lambda: Rocchio(terms=0),
        lambda: Rocchio(beta=-1),
    ):
        with pytest.raises(ConfigError):
            make()


def test_lengths_are_brought_to_one():
    mixed = Rocchio(beta=0.0).mix({"a": 3.0, "b": 4.0}, [({"c": 1.0}, 1.0)])
    assert math.hypot(mixed["a"], mixed["b"]) == pytest.approx(1.0)
