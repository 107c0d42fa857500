"""BM25: exact, whatever the collection; every answer as exhaustive scoring gives it."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError, StoreError
from askew.core.plugins import check
from askew.search.bm25 import index as bounds
from askew.search.bm25.analyze import Analyzer
from askew.search.bm25.build import build_index
from askew.search.bm25.index import MODELS, Bm25, Index, Qld, shorten
from askew.search.bm25.ranker import Bm25Ranker

WORDS = [f"w{i}" for i in range(12)]


def table(texts):
    ids = [f"d{i}" for i in range(len(texts))]
    return pa.table({"doc_id": ids, "text": pa.array(texts, pa.large_string())})


def make(folder, texts, analyzer="plain"):
    return build_index([table(texts)], folder, Analyzer(analyzer))


def answers(hits, i):
    part = slice(hits.offsets[i], hits.offsets[i + 1])
    return hits.docs[part].tolist(), hits.scores[part]


def exhaustive(index, weights, terms, k):
    """All documents scored one by one, in the same order of additions no one can argue about."""
    totals = np.zeros(len(index))
    seen = np.zeros(len(index), bool)
    for term, weight in terms:
        part = slice(index.offsets[term], index.offsets[term + 1])
        totals[index.docs[part]] += weight * weights.arrays["impacts"][part].astype(np.float64)
        seen[index.docs[part]] = True
    scores = totals.astype(np.float32)
    order = np.lexsort((np.arange(len(index)), -scores))
    order = order[seen[order]][:k]
    return order.tolist(), scores[order]


texts = st.lists(st.sampled_from(WORDS), max_size=15).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(texts, min_size=1, max_size=60),
    st.lists(st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=6).map(" ".join), min_size=1, max_size=4),
    st.sampled_from([1, 3, 10, 60, 200]),
    st.sampled_from([Bm25(), Bm25(0.82, 0.68), Bm25(1.2, 0.75, "exact"), Bm25(0.9, 0.0), Qld(10.0)]),
)
def test_every_answer_is_that_of_exhaustive_scoring(tmp_path_factory, docs, queries, k, model):
    index = make(tmp_path_factory.mktemp("index") / "i", docs)
    ranker = Bm25Ranker(index, model, threads=1)
    hits = ranker.search(queries, k)
    for i, query in enumerate(queries):
        counts = {word: query.split().count(word) for word in query.split()}
        numbers = index.term_numbers(list(counts))
        terms = [(n, c) for n, c in zip(numbers.tolist(), counts.values(), strict=True) if n >= 0]
        docs_found, scores = exhaustive(index, ranker.weights, terms, k)
        assert answers(hits, i)[0] == docs_found
        np.testing.assert_array_equal(answers(hits, i)[1], scores)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Large enough that windows, blocks, ranges and thresholds all come into play."""
    rng = np.random.default_rng(3)
    weights = 1.0 / (np.arange(4000) + 2.0)
    drawn = rng.choice(4000, (60_000, 14), p=weights / weights.sum())
    return make(tmp_path_factory.mktemp("large") / "i", [" ".join(f"w{t}" for t in row) for row in drawn.tolist()])


@pytest.mark.parametrize("k", [1, 10, 48, 49, 100, 1000])
@pytest.mark.parametrize("model", ["bm25", "qld"])
def test_a_large_collection_is_searched_exactly(large, k, model):
    ranker = Bm25Ranker(large, model)
    rng = np.random.default_rng(k)
    bags = [
        {
            f"w{t}": float(w)
            for t, w in zip(rng.integers(0, 4000, 6) // rng.integers(1, 400), (1, 2, 1, 0.5, 3, 1), strict=True)
        }
        for _ in range(40)
    ]
    hits = ranker.search_weighted(bags, k)
    for i, bag in enumerate(bags):
        numbers = large.term_numbers(list(bag))
        terms = [(n, w) for n, w in zip(numbers.tolist(), bag.values(), strict=True) if n >= 0]
        docs_found, scores = exhaustive(large, ranker.weights, terms, k)
        np.testing.assert_allclose(answers(hits, i)[1], scores, rtol=0, atol=1e-5)
        if len(set(scores.tolist())) == len(scores):
            assert answers(hits, i)[0] == docs_found


def test_the_number_of_threads_and_repeated_queries_do_not_matter(large):
    queries = [f"w{i} w{3 * i} w{7 * i}" for i in range(30)] * 3
    one, four = Bm25Ranker(large, threads=1).search(queries, 20), Bm25Ranker(large, threads=4).search(queries, 20)
    np.testing.assert_array_equal(one.docs, four.docs)
    assert answers(one, 3)[0] == answers(one, 33)[0] == answers(one, 63)[0]


def test_bm25_is_lucenes_formula_by_hand(tmp_path):
    index = make(tmp_path / "i", ["cat cat dog", "cat", "bird bird bird bird"])
    hits = Bm25Ranker(index, Bm25(0.9, 0.4)).search(["cat"], 10)
    average = (3 + 1 + 4) / 3
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))

    def worth(tf, length):
        return idf * tf / (tf + 0.9 * (1 - 0.4 + 0.4 * length / average))

    docs, scores = answers(hits, 0)
    assert docs == [0, 1]
    assert scores.tolist() == pytest.approx([worth(2, 3), worth(1, 1)], rel=1e-6)


def test_query_likelihood_is_lucenes_formula_by_hand(tmp_path):
    index = make(tmp_path / "i", ["cat cat dog", "cat", "bird bird bird bird"])
    docs, scores = answers(Bm25Ranker(index, Qld(10.0)).search(["cat"], 10), 0)
    share = (3 + 1) / (8 + 1)
    expected = [math.log(1 + tf / (10 * share)) + math.log(10 / (n + 10)) for tf, n in ((2, 3), (1, 1))]
    assert docs == [0, 1]
    assert scores.tolist() == pytest.approx(expected, rel=1e-5)


def test_query_likelihood_is_computed_in_64_bits_and_rounded_once(tmp_path):
    texts = [f"cat {'dog ' * (i % 17)}bird{i}" for i in range(200)]
    lengths = [len(text.split()) for text in texts]
    share = (200 + 1) / (sum(lengths) + 1)
    docs, scores = answers(Bm25Ranker(make(tmp_path / "i", texts), Qld(3.0)).search(["cat"], 200), 0)
    worth = [max(0.0, math.log(1 + 1 / (3 * share)) + math.log(3 / (lengths[doc] + 3))) for doc in docs]
    assert scores.tolist() == np.array(worth, np.float32).tolist()


@pytest.mark.parametrize(
    ("length", "kept"),
    [(0, 0), (23, 23), (24, 24), (39, 39), (40, 40), (41, 40), (42, 42), (56, 56), (60, 60), (61, 60), (1000, 984)],
)
def test_lengths_are_remembered_as_lucene_does_in_one_byte(length, kept):
    assert shorten(np.array([length], np.int32)).tolist() == [kept]


def test_weights_are_there_whole_or_not_at_all(tmp_path, monkeypatch):
    index = make(tmp_path, ["a b", "b c"])
    folder = index.folder / f"weights-{Bm25().id}"

    def die(path, _):
        assert not folder.exists()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bounds, "write_sealed", die)
        with pytest.raises(KeyboardInterrupt):
            index.weights(Bm25())
    assert not folder.exists()
    assert not list(index.folder.glob(".writing-*"))
    folder.mkdir()
    (folder / "impacts.f32").write_bytes(b"half")
    assert len(index.weights(Bm25()).arrays["impacts"]) == len(index.docs)


def test_two_that_make_the_same_weights_at_once_both_have_them(tmp_path, monkeypatch):
    index = make(tmp_path, ["a b", "b c"])
    folder, write = index.folder / f"weights-{Bm25().id}", bounds.write_sealed
    other = Index(index.folder)

    def slowly(*arguments):
        write(*arguments)
        monkeypatch.setattr(bounds, "write_sealed", write)
        other.weights(Bm25())  # somebody else is done first
        assert folder.exists()

    monkeypatch.setattr(bounds, "write_sealed", slowly)
    assert len(index.weights(Bm25()).arrays["impacts"]) == len(index.docs)
    assert not list(index.folder.glob(".writing-*"))


def test_parameters_change_without_reading_the_texts_again(tmp_path):
    index = make(tmp_path / "i", ["cat cat dog", "cat bird", "bird"])
    Bm25Ranker(index, "bm25")
    Bm25Ranker(index, "bm25-msmarco")
    assert {p.name for p in (tmp_path / "i").glob("weights-*")} == {
        "weights-bm25-0.9-0.4-lucene", "weights-bm25-0.82-0.68-lucene",
    }  # fmt: skip


def test_ties_stand_in_the_order_of_the_collection(tmp_path):
    index = make(tmp_path / "i", ["x y", "a b", "x z", "x q"])
    assert answers(Bm25Ranker(index).search(["x"], 2), 0)[0] == [0, 2]


def test_a_query_with_no_known_term_finds_nothing_and_is_counted(tmp_path):
    hits = Bm25Ranker(make(tmp_path / "i", ["a1 b1"])).search(["zzz", "", "a1"], 5)
    assert hits.empty == 2
    assert answers(hits, 2)[0] == [0]


def test_more_answers_than_documents_is_all_documents_that_match(tmp_path):
    assert len(answers(Bm25Ranker(make(tmp_path / "i", ["x", "x y", "z"])).search(["x"], 1000), 0)[0]) == 2


@pytest.mark.parametrize("k", [0, -1, 1001])
def test_too_few_or_too_many_answers_are_refused(tmp_path, k):
    with pytest.raises(ConfigError, match="from 1 to 1000"):
        Bm25Ranker(make(tmp_path / "i", ["x"])).search(["x"], k)


def test_empty_documents_are_kept_but_never_found_nor_counted_in_the_average(tmp_path):
    index = make(tmp_path / "i", ["", "x y", "..."])
    assert len(index) == 3
    assert index.header["filled"] == 1
    assert answers(Bm25Ranker(index).search(["x"], 5), 0)[0] == [1]


def test_documents_of_nothing_but_white_space_are_told_from_those_without_a_term(tmp_path):
    blank = ["", " \t\r\n", "\x00 \x1f"]
    index = make(tmp_path / "i", [*blank, "x y", "the of", "...", "\u00a0"])
    assert (len(index), index.with_text, index.header["filled"]) == (7, 4, 1)


def test_a_collection_of_nothing_but_empty_documents_can_be_searched(tmp_path):
    assert Bm25Ranker(make(tmp_path / "i", ["", ""])).search(["x"], 5).empty == 1


def test_a_document_of_a_megabyte_and_counts_above_255_are_handled(tmp_path):
    index = make(tmp_path / "i", ["cat " * 300, "dog " * 250_000, "cat dog"])
    tf = index.term_frequencies()
    assert sorted(tf.tolist()) == [1, 1, 300, 250_000]
    assert answers(Bm25Ranker(index).search(["cat"], 5), 0)[0] == [0, 2]


def test_the_same_document_id_twice_is_refused(tmp_path):
    twice = pa.table({"doc_id": ["a", "a"], "text": pa.array(["x", "y"], pa.large_string())})
    with pytest.raises(DataError) as caught:
        build_index([twice], tmp_path / "i")
    assert caught.value.code == "repeated-id" and caught.value.values == {"id": "a"}


def test_the_index_does_not_depend_on_batches_or_threads(tmp_path):
    docs = [f"w{i % 7} w{i % 11} w{i}" for i in range(100)]
    make(tmp_path / "a", docs)
    parts = [table(docs).slice(start, 9) for start in range(0, 100, 9)]
    build_index(parts, tmp_path / "b", Analyzer("plain"), threads=3)
    for name in ("docs.i32", "tf.u8", "offsets.i64", "terms.arrow", "lengths.i32"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_an_index_is_not_written_over_another(tmp_path):
    make(tmp_path / "i", ["x"])
    with pytest.raises(StoreError) as caught:
        make(tmp_path / "i", ["y"])
    assert caught.value.code == "index-exists"


def test_an_index_of_another_version_is_refused(tmp_path):
    make(tmp_path / "i", ["x"])
    path = tmp_path / "i" / "header.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(StoreError, match="format 99"):
        Index(tmp_path / "i")


@pytest.mark.parametrize("name", ["docs.i32", "offsets.i64", "tf.u8", "lengths.i32", "terms.arrow", "doc_ids.arrow"])
@pytest.mark.parametrize("harm", ["cut", "flip", "gone"])
def test_a_harmed_index_file_is_an_error(tmp_path, name, harm):
    make(tmp_path / "i", ["x y z", "y z"])
    path = tmp_path / "i" / name
    data = bytearray(path.read_bytes())
    if harm == "gone":
        path.unlink()
    elif harm == "cut":
        path.write_bytes(bytes(data[:-1]))
    else:
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data))
    with pytest.raises(StoreError, match=rf"{name}: .*--repair"):
        Index(tmp_path / "i")


def test_harmed_weights_are_an_error(tmp_path):
    index = make(tmp_path / "i", ["x y z", "y z"])
    Bm25Ranker(index)
    path = tmp_path / "i" / "weights-bm25-0.9-0.4-lucene" / "impacts.f32"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(StoreError, match=r"impacts\.f32: .*--repair"):
        Bm25Ranker(index)


def test_a_folder_without_an_index_says_how_to_make_one(tmp_path):
    with pytest.raises(DataError, match="askew index"):
        Index(tmp_path)


def test_wrong_parameters_are_refused():
    for name, wrong in (("bm25", {"k1": -1}), ("bm25", {"b": 2}), ("bm25", {"lengths": "x"}), ("qld", {"mu": 0})):
        with pytest.raises(ConfigError):
            check("ranker", name, wrong)
    assert set(MODELS) == {"bm25", "bm25-msmarco", "qld"}


def test_scores_equal_as_32_bit_floats_are_a_tie_whichever_list_is_walked_first(tmp_path):
    ranker = Bm25Ranker(make(tmp_path / "i", ["b1", "a1"]))
    # a1 is worth a hair more before rounding, so its list comes first; the earlier document must still win the tie.
    hits = ranker.search_weighted([{"a1": 1.0, "b1": 1.0 - 1e-9}], 1)
    assert answers(hits, 0)[0] == [0]
