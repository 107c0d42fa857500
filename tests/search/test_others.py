"""What each ranker finds is what its formula says: checked against plain computations and the models themselves."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError, StoreError
from askew.core.plugins import build
from askew.core.ranking import Hits
from askew.search.common import TopK
from askew.search.disk import StoredTexts, keeping_texts, write_header, write_sealed
from askew.search.fusion import FusionRanker, ReplayRanker
from askew.search.neural import CrossEncoderRanker
from askew.testing.contracts import TOY_DOCS, toy_documents

QUERIES = ["mother and sister", "the station opens", "he smiled"]


def lists(hits: Hits, doc_ids):
    ids = doc_ids.to_pylist()
    return [[ids[d] for d in hits.docs[a:b]] for a, b in zip(hits.offsets[:-1], hits.offsets[1:], strict=True)]


def made(kind, folder, **settings):
    build("index", kind, {"documents": [toy_documents()], "folder": folder, **settings})
    return folder


@pytest.fixture
def bm25(tmp_path):
    return build("ranker", "bm25", {"index": made("bm25", tmp_path / "bm25")})


@given(
    scores=st.lists(st.lists(st.sampled_from([-2.5, -1.0, -0.0, 0.0, 0.5, 3.0]), min_size=9, max_size=9), max_size=4),
    k=st.integers(1, 12),
    cut=st.integers(1, 9),
)
def test_the_best_of_blocks_are_the_best_of_the_whole(scores, k, cut):
    table = np.array(scores, np.float32).reshape(-1, 9) + 0.0  # one zero: IEEE's two compare as equal
    best = TopK(len(table), k)
    for first in range(0, 9, cut):
        best.offer(table[:, first : first + cut], first)
    hits = best.hits()
    for i, row in enumerate(table):
        part = slice(hits.offsets[i], hits.offsets[i + 1])
        expected = np.lexsort((np.arange(9), -row))[:k]
        assert hits.docs[part].tolist() == expected.tolist()
        assert hits.scores[part].tolist() == row[expected].tolist()


class TestDense:
    @pytest.fixture
    def ranker(self, tmp_path):
        pytest.importorskip("sentence_transformers", reason="the extra 'neural' is not installed")
        return build("ranker", "dense", {"index": made("dense", tmp_path / "dense")})

    def test_scores_are_the_cosines_of_the_model(self, ranker):
        from sentence_transformers import SentenceTransformer

        from askew.models import MINILM, locate

        model = SentenceTransformer(locate(MINILM), device="cpu")
        cosines = model.similarity(model.encode(QUERIES), model.encode(list(TOY_DOCS.values()))).numpy()
        hits = ranker.search(QUERIES, 6)
        for i, row in enumerate(cosines):
            part = slice(hits.offsets[i], hits.offsets[i + 1])
            np.testing.assert_allclose(hits.scores[part], np.sort(row)[::-1], atol=1e-5)

    def test_it_finds_by_meaning_what_shares_no_word(self, ranker):
        assert lists(ranker.search(["a female parent and a female sibling"], 1), ranker.doc_ids) == [["d2"]]

    def test_an_index_of_other_weights_is_refused(self, ranker):
        header = ranker.folder / "header.json"
        facts = json.loads(header.read_text())
        write_sealed(header, {**facts, "weights": "other@000"})
        with pytest.raises(ConfigError) as caught:
            build("ranker", "dense", {"index": ranker.folder})
        assert caught.value.code == "other-weights" and caught.value.values == {"built": "other@000"}

    def test_cut_vectors_are_refused(self, ranker):
        path = ranker.folder / "vectors.f32"
        path.write_bytes(path.read_bytes()[:-4])
        with pytest.raises(StoreError, match=r"vectors.f32: damaged"):
            build("ranker", "dense", {"index": ranker.folder})

    def test_faiss_without_its_part_of_the_index_says_so(self, ranker):
        with pytest.raises(ConfigError, match="without FAISS"):
            build("ranker", "dense", {"index": ranker.folder, "search": "faiss"})

    def test_flat_faiss_finds_what_exact_search_finds(self, tmp_path, ranker):
        pytest.importorskip("faiss", reason="the extra 'faiss' is not installed")
        index = made("dense", tmp_path / "faiss", faiss="Flat")
        by_faiss = build("ranker", "dense", {"index": index, "search": "faiss"}).search(QUERIES, 4)
        exact = ranker.search(QUERIES, 4)
        assert by_faiss.docs.tolist() == exact.docs.tolist()
        np.testing.assert_allclose(by_faiss.scores, exact.scores, atol=1e-5)


def test_sparse_scores_are_the_inner_products_of_the_model(tmp_path, tiny_splade):
    from sentence_transformers import SparseEncoder

    ranker = build("ranker", "sparse", {"index": made("sparse", tmp_path / "s", model=tiny_splade)})
    model = SparseEncoder(tiny_splade, device="cpu")
    queries = model.encode_query(QUERIES).to_dense().numpy()
    documents = model.encode_document(list(TOY_DOCS.values())).to_dense().numpy()
    hits = ranker.search(QUERIES, 6)
    for i, row in enumerate(queries @ documents.T):
        part = slice(hits.offsets[i], hits.offsets[i + 1])
        np.testing.assert_allclose(hits.scores[part], np.sort(row[row > 0])[::-1], rtol=1e-4)


class TestCrossEncoder:
    def test_the_order_is_that_of_the_models_scores(self, bm25, tiny_cross):
        from sentence_transformers import CrossEncoder

        ranker = CrossEncoderRanker(bm25, texts=TOY_DOCS, model=tiny_cross)
        (found,) = lists(ranker.search(["he and his sister"], 10), ranker.doc_ids)
        own = CrossEncoder(tiny_cross, device="cpu").predict([("he and his sister", TOY_DOCS[d]) for d in found])
        assert len(found) > 1
        assert sorted(own.tolist(), reverse=True) == own.tolist()

    def test_texts_may_come_from_an_index(self, tmp_path, tiny_cross):
        folder = tmp_path / "ix"
        folder.mkdir()
        build("index", "bm25", {"documents": keeping_texts([toy_documents()], folder), "folder": folder})
        first = build("ranker", "bm25", {"index": folder})
        by_index = CrossEncoderRanker(first, index=folder, model=tiny_cross).search(QUERIES, 5)
        by_hand = CrossEncoderRanker(first, texts=TOY_DOCS, model=tiny_cross).search(QUERIES, 5)
        assert by_index.docs.tolist() == by_hand.docs.tolist()

    def test_an_index_without_texts_is_refused(self, bm25, tmp_path, tiny_cross):
        with pytest.raises(DataError) as caught:
            CrossEncoderRanker(bm25, index=tmp_path / "bm25", model=tiny_cross)
        assert caught.value.code == "no-texts"

    @pytest.mark.parametrize("kind", ["cross", "sparse"])
    def test_an_encoder_without_a_trained_head_is_refused(self, kind):
        pytest.importorskip("sentence_transformers", reason="the extra 'neural' is not installed")
        from askew.models import MINILM, load_model

        with pytest.raises(ConfigError, match="random"):
            load_model(kind, MINILM)

    def test_a_model_that_is_nowhere_is_one_line(self, bm25):
        pytest.importorskip("sentence_transformers", reason="the extra 'neural' is not installed")
        with pytest.raises(ConfigError, match=r"no/such/folder.*cross") as caught:
            CrossEncoderRanker(bm25, texts=TOY_DOCS, model="./no/such/folder")
        assert "\n" not in str(caught.value)

    def test_missing_texts_are_named(self, bm25, tiny_cross):
        with pytest.raises(DataError, match=r"1 documents .* 'd3'"):
            CrossEncoderRanker(bm25, texts={k: v for k, v in TOY_DOCS.items() if k != "d3"}, model=tiny_cross)


def replay(run, name="run"):
    return ReplayRanker(run, {"1": "one", "2": "two", "3": "three"}, name)


class TestReplay:
    def test_answers_are_those_of_the_run_whatever_the_order_of_the_texts(self):
        ranker = replay({"1": {"a": 1.0, "b": 2.0}, "2": {"c": 1.0}})
        assert lists(ranker.search(["two", "one", "three"], 5), ranker.doc_ids) == [["c"], ["b", "a"], []]

    def test_a_text_of_no_query_is_refused_or_empty(self):
        ranker = replay({"1": {"a": 1.0}})
        with pytest.raises(DataError, match="text 'four'"):
            ranker.search(["four"], 1)
        assert ReplayRanker({"1": {"a": 1.0}}, {"1": "one"}, unknown="empty").search(["four"], 1).empty == 1

    def test_one_text_with_two_answers_is_refused(self):
        with pytest.raises(DataError, match="text 'same'"):
            ReplayRanker({"1": {"a": 1.0}, "2": {"b": 1.0}}, {"1": "same", "2": "same"})

    def test_a_query_of_the_run_without_a_text_is_refused(self):
        with pytest.raises(DataError, match="'9' of the run"):
            ReplayRanker({"9": {"a": 1.0}}, {"1": "one"})


class TestFusion:
    a, b = {"1": {"x": 9.0, "y": 5.0, "z": 1.0}}, {"1": {"y": 0.4, "w": 0.2}}

    def fused(self, **settings):
        ranker = FusionRanker([replay(self.a, "a"), replay(self.b, "b")], **settings)
        hits = ranker.search(["one"], 10)
        return dict(zip(lists(hits, ranker.doc_ids)[0], hits.scores.tolist(), strict=True))

    def test_reciprocal_ranks_are_added(self):
        expected = {"y": 1 / 62 + 1 / 61, "x": 1 / 61, "w": 1 / 62, "z": 1 / 63}
        assert self.fused() == pytest.approx(expected)
        assert list(self.fused()) == list(expected)

    def test_scores_are_brought_to_one_measure_and_added(self):
        assert self.fused(method="combsum") == pytest.approx({"y": 0.5 + 1.0, "x": 1.0, "z": 0.0, "w": 0.0})

    def test_scores_may_be_added_as_they_are_and_weighted(self):
        assert self.fused(method="combsum", normalize="none", weights=[1.0, 10.0]) == pytest.approx(
            {"x": 9.0, "y": 9.0, "w": 2.0, "z": 1.0}
        )

    def test_a_list_of_one_score_counts_one(self):
        self.b = {"1": {"w": 3.0, "y": 3.0}}
        assert self.fused(method="combsum")["w"] == 1.0

    @pytest.mark.parametrize(
        "wrong", [{"method": "sum"}, {"normalize": "z"}, {"constant": 0.0}, {"depth": 0}, {"weights": [1.0]}]
    )
    def test_wrong_settings_are_refused(self, wrong):
        with pytest.raises(ConfigError):
            build("ranker", "fusion", {"rankers": [replay(self.a, "a"), replay(self.b, "b")], **wrong})

    def test_one_ranker_is_nothing_to_fuse(self):
        with pytest.raises(ConfigError) as caught:
            FusionRanker([replay(self.a)])
        assert caught.value.code == "too-few-rankers"

    @given(st.permutations(range(3)))
    def test_the_order_of_the_rankers_does_not_matter(self, order):
        runs = [{"1": {"x": 3.0, "y": 2.0}}, {"1": {"y": 3.0, "z": 2.0}}, {"1": {"z": 1.0, "x": 0.5, "w": 0.1}}]
        scores = []
        for way in (range(3), order):
            ranker = FusionRanker([replay(runs[i]) for i in way])
            hits = ranker.search(["one"], 10)
            scores.append(dict(zip(lists(hits, ranker.doc_ids)[0], hits.scores.tolist(), strict=True)))
        assert scores[0].keys() == scores[1].keys()
        assert all(math.isclose(scores[0][d], scores[1][d], rel_tol=1e-6) for d in scores[0])


def test_texts_come_back_by_ordinal_across_batches(tmp_path):
    texts = ["ä", "", "line\nline", "x" * 1000, "end"]
    batches = [pa.table({"doc_id": [str(i)], "text": pa.array([t], pa.large_string())}) for i, t in enumerate(texts)]
    assert len(list(keeping_texts(batches, tmp_path))) == 5
    write_header(tmp_path, "bm25", [], {"documents": 5})
    kept = StoredTexts(tmp_path)
    assert [kept[i] for i in range(len(kept))] == texts
    write_header(tmp_path, "bm25", [], {"documents": 6})
    with pytest.raises(StoreError, match="5 texts for 6 documents"):
        StoredTexts(tmp_path)
    (tmp_path / "texts.u8").write_bytes(b"no")
    with pytest.raises(StoreError, match="damaged"):
        StoredTexts(tmp_path)


def test_an_index_is_opened_only_by_its_own_ranker(tmp_path):
    made("bm25", tmp_path / "b")
    with pytest.raises(ConfigError, match="'dense'") as caught:
        build("ranker", "dense", {"index": tmp_path / "b"})
    assert caught.value.code == "other-ranker" and caught.value.values == {"kind": "bm25"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k1": "high"}, "the setting 'k1' should be a number, found 'high'"),
        ({"threads": 1.5}, "the setting 'threads' should be a whole number or nothing, found 1.5"),
        ({"lenghts": "exact"}, "has no setting 'lenghts'; did you mean 'lengths'"),
    ],
)
def test_settings_are_checked_against_the_rankers_own(tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message):
        build("ranker", "bm25", {"index": tmp_path, **settings})
