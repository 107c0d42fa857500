"""Every ranker keeps the same contract, over the same toy collection."""

import pyarrow as pa
import pytest

from askew.core.plugins import build, names
from askew.testing.contracts import TOY_DOCS, TOY_QUERIES, check_ranker, toy_documents
from search_server import ToyEngine

TEXTS = {str(i): text for i, text in enumerate(dict.fromkeys(TOY_QUERIES))}
RUN = {"0": {"d1": 2.0, "d2": 1.0, "d3": 1.0}, "1": {"d2": 5.0}, "3": {"d3": 1.5, "d1": 1.5, "d2": 0.1, "d4": 0.05}}


def made(kind, folder, **settings):
    build("index", kind, {"documents": [toy_documents()], "folder": folder, **settings})
    return folder


def rankers(name, tmp_path, request):  # noqa: PLR0911 - one return for each ranker
    """A ranker of each name, as small as it can be."""
    if name in ("bm25", "bm25-msmarco", "qld", "rm3", "rocchio"):
        return build("ranker", name, {"index": made("bm25", tmp_path / "b")})
    if name == "replay":
        return build("ranker", name, {"run": RUN, "queries": TEXTS})
    if name == "callable":
        return build("ranker", name, {"function": ToyEngine(TOY_DOCS).search})
    if name == "http":
        server = request.getfixturevalue("search_server")
        return build("ranker", name, {"url": f"{server.url}/search?q={{query}}&size={{k}}"})
    if name == "opensearch":
        server = request.getfixturevalue("opensearch_server")
        return build("ranker", name, {"url": server.url, "index_name": "docs", "fields": "text"})
    if name == "qdrant":
        model, server = request.getfixturevalue("tiny_words"), request.getfixturevalue("qdrant_server")
        return build("ranker", name, {"place": server.url, "collection": "docs", "model": model, "id_field": "key"})
    if name in ("tantivy", "lancedb", "milvus", "postgres"):
        return build("ranker", name, request.getfixturevalue("local_engines_here").load(name, TOY_DOCS))
    bm25 = build("ranker", "bm25", {"index": made("bm25", tmp_path / "b")})
    if name == "fusion":
        replay = build("ranker", "replay", {"run": RUN, "queries": TEXTS})
        return build("ranker", name, {"rankers": [bm25, replay]})
    pytest.importorskip("sentence_transformers", reason="the extra 'neural' is not installed")
    if name == "dense":
        return build("ranker", name, {"index": made("dense", tmp_path / "d")})
    if name == "sparse":
        model = request.getfixturevalue("tiny_splade")
        return build("ranker", name, {"index": made("sparse", tmp_path / "s", model=model)})
    if name == "crossencoder":
        model = request.getfixturevalue("tiny_cross")
        return build("ranker", name, {"first": bm25, "texts": TOY_DOCS, "model": model})
    raise AssertionError(f"no example of the ranker {name!r}: every ranker is to keep the contract")


@pytest.mark.parametrize("name", names("ranker"))
def test_every_ranker_keeps_the_contract(name, tmp_path, request):
    check_ranker(rankers(name, tmp_path, request))


@pytest.mark.parametrize("method", ["rrf", "combsum"])
def test_fusion_keeps_the_contract_by_either_method(method, tmp_path):
    bm25 = build("ranker", "bm25", {"index": made("bm25", tmp_path / "b")})
    qld = build("ranker", "qld", {"index": tmp_path / "b"})
    check_ranker(build("ranker", "fusion", {"rankers": [bm25, qld], "method": method}))


def test_dense_by_faiss_keeps_the_contract(tmp_path):
    pytest.importorskip("faiss", reason="the extra 'faiss' is not installed")
    pytest.importorskip("sentence_transformers", reason="the extra 'neural' is not installed")
    index = made("dense", tmp_path / "d", faiss="HNSW8,Flat")
    check_ranker(build("ranker", "dense", {"index": index, "search": "faiss"}))


class _Careless:
    """A ranker that leaves the queries without an answer out."""

    id, doc_ids = "careless", pa.array(["d1"])

    def search(self, texts, k):
        import numpy as np

        from askew.core.ranking import Hits

        return Hits(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1, np.float32))


def test_the_contract_can_fail():
    with pytest.raises(AssertionError, match="result list"):
        check_ranker(_Careless())
