"""A collection of Qdrant as a ranker: its local mode for real, and requests to a server as they are documented."""

import json
import logging

import numpy as np
import pytest

from askew.core.errors import ConfigError
from askew.models import load_model
from askew.search.engines.client import EngineError
from askew.search.engines.databases import QdrantEngine, qdrant
from askew.testing.contracts import TOY_DOCS, check_ranker
from askew.testing.servers import SearchServer, ServerFault

KEY = "key-3141592653589793"


@pytest.fixture
def settings(local_engines_here):
    return local_engines_here.load("qdrant", TOY_DOCS)


def test_points_are_ranked_as_the_model_says(settings):
    ranker, model = qdrant(**settings), load_model("dense", settings["model"])
    docs, query = model.encode_document(list(TOY_DOCS.values())), model.encode_query(["mother and sister"])[0]
    with np.errstate(invalid="ignore"):
        scores = docs @ query / np.linalg.norm(docs, axis=1) / np.linalg.norm(query)
    best = np.argsort(-np.nan_to_num(scores))[:3]
    hits = ranker.search(["mother and sister"], 3)
    assert [ranker.doc_ids[i].as_py() for i in hits.docs.tolist()] == [list(TOY_DOCS)[i] for i in best]
    assert hits.scores.tolist() == pytest.approx(scores[best].tolist(), abs=1e-4)


def test_without_a_field_the_id_of_the_point_is_the_document_id(settings):
    ranker = qdrant(**{**settings, "id_field": None, "text_fields": "key,text"})
    ranker.search(["station"], 1)
    assert ranker.texts == {"2": f"d3 {TOY_DOCS['d3']}"}


def test_two_rankers_of_one_process_may_search_the_same_folder(settings):
    first, second = qdrant(**settings), qdrant(**settings)
    assert first.search(["station"], 3).scores.tolist() == second.search(["station"], 3).scores.tolist()
    first.close()
    assert len(second.search(["mother"], 3).docs) == 3


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"collection": "dogs"}, "collection="),
        ({"vector_name": None}, "vector_name="),
        ({"kind": "sparse"}, "kind="),
    ],
)
def test_what_is_not_there_is_one_clear_line(settings, changed, words):
    with pytest.raises(EngineError, match=words) as caught:
        qdrant(**{**settings, **changed}).search(["station"], 3)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"place": "no"}, "place= .*no does not exist"),
        ({"place": "http://me:secret@host:6333"}, "no user name"),
        ({"place": "http://host:6333/?api_key=abc"}, "without \\?parameters"),
        ({"model": None}, "model="),
        ({"kind": "sparse"}, "give vector_name="),
    ],
)
def test_settings_that_cannot_work_are_refused_and_nothing_is_created(tmp_path, monkeypatch, changed, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=words):
        QdrantEngine(**{"place": ".", "collection": "docs", "model": "a", **changed})
    assert list(tmp_path.iterdir()) == []


class QdrantServer(SearchServer):
    """Answers as the documentation of Qdrant says; the vector of a query is not looked at."""

    def __init__(self, width):
        super().__init__(TOY_DOCS, token=f"Bearer {KEY}")
        self.width, self.bodies = width, []

    def reply(self, method, path, body):
        if path == "/collections/docs/exists":
            return 200, {"time": 0.0, "status": "ok", "result": {"exists": True}}
        if path == "/collections/docs":
            return 200, {"time": 0.0, "status": "ok", "result": self._about()}
        if path.partition("?")[0] == "/collections/docs/points/query/batch":
            self.bodies.append(json.loads(body))
            searches = self.bodies[-1]["searches"]
            points = [{"id": i, "version": 0, "score": 1 - i / 10, "payload": {"key": doc, "text": text}}
                      for i, (doc, text) in enumerate(TOY_DOCS.items())]  # fmt: skip
            return 200, {
                "time": 0.0,
                "status": "ok",
                "result": [{"points": points[: one["limit"]]} for one in searches],
            }
        return 404, {"status": {"error": f"{path} {body!r}"}}

    def _about(self):
        hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000}
        optimizer = {
            "deleted_threshold": 0.2, "vacuum_min_vector_number": 1000, "default_segment_number": 0,
            "flush_interval_sec": 5,
        }  # fmt: skip
        params = {"vectors": {"size": self.width, "distance": "Cosine"}}
        config = {"params": params, "hnsw_config": hnsw, "optimizer_config": optimizer}
        return {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "config": config,
            "payload_schema": {},
        }


@pytest.fixture
def remote(tiny_words, monkeypatch):
    pytest.importorskip("qdrant_client", reason="the extra 'qdrant' is not installed")
    monkeypatch.setenv("QDRANT_KEY", KEY)
    with QdrantServer(64) as server:
        yield server


def searching(remote, tiny_words, **more):
    own = {"model": tiny_words, "id_field": "key", "auth_env": "QDRANT_KEY", "backoff_s": 0.001}
    return qdrant(remote.url, "docs", **{**own, **more})


def test_a_server_is_sent_several_queries_in_one_request_and_keeps_the_contract(remote, tiny_words):
    ranker = searching(remote, tiny_words, exact=True)
    check_ranker(ranker)
    search = remote.bodies[0]["searches"][0]
    assert search["limit"] == 3 and search["params"]["exact"] is True and len(search["query"]["nearest"]) == 64
    assert search["with_payload"] == ["text", "key"] and len(remote.bodies[0]["searches"]) == 5
    ranker.close()


def test_the_key_of_a_server_is_sent_and_kept_nowhere(remote, tiny_words, monkeypatch, caplog):
    with caplog.at_level(logging.DEBUG):
        ranker = searching(remote, tiny_words)
        ranker.search(["station of miss marple"], 3)
        held = repr(vars(ranker.engine)) + repr(ranker.settings()) + caplog.text
        assert KEY not in held and "marple" not in caplog.text and "opens at nine" not in caplog.text
        monkeypatch.setenv("QDRANT_KEY", "key-of-another")
        with pytest.raises(EngineError, match=r"401 .* rejected"):
            ranker.search(["mother"], 3)
    assert "key-of-another" not in caplog.text
    ranker.close()


def test_a_server_that_is_busy_is_asked_again_and_one_that_is_gone_is_one_clear_line(remote, tiny_words):
    ranker = searching(remote, tiny_words, attempts=3)
    remote.failures.extend([ServerFault(503), ServerFault(429)])
    assert len(ranker.search(["station"], 3).docs) == 3
    remote.failures.extend([ServerFault(closes=True)] * 9)
    with pytest.raises(EngineError, match="no connection") as caught:
        ranker.search(["mother"], 3)
    assert "\n" not in str(caught.value)
    ranker.close()
