"""A collection of Milvus Lite as a ranker: metrics, fields, and what is wrong with settings."""

import logging
import subprocess
import sys

import numpy as np
import pytest

from askew.core.errors import ConfigError
from askew.models import load_model
from askew.search.engines.client import EngineError
from askew.search.engines.databases import MilvusEngine, milvus
from askew.testing.contracts import TOY_DOCS
from local_engines import load_milvus


@pytest.fixture
def settings(local_engines_here):
    return local_engines_here.load("milvus", TOY_DOCS)


@pytest.mark.parametrize("metric", ["COSINE", "IP", "L2"])
def test_entities_are_ranked_as_the_model_says(settings, tmp_path, metric):
    settings = load_milvus(tmp_path / metric, TOY_DOCS, settings["model"], metric)
    ranker, model = milvus(**settings), load_model("dense", settings["model"])
    docs, query = model.encode_document(list(TOY_DOCS.values())), model.encode_query(["mother and sister"])[0]
    with np.errstate(invalid="ignore"):
        cosine = docs @ query / np.linalg.norm(docs, axis=1) / np.linalg.norm(query)
    scores = {"COSINE": np.nan_to_num(cosine), "IP": docs @ query, "L2": -np.linalg.norm(docs - query, axis=1)}[metric]
    best = np.argsort(-scores)[:3]
    hits = ranker.search(["mother and sister"], 3)
    assert [ranker.doc_ids[i].as_py() for i in hits.docs.tolist()] == [list(TOY_DOCS)[i] for i in best]
    # Distances increase with the rank, so they give way to minus the rank.
    assert (np.diff(hits.scores) < 0).all() and np.array_equal(hits.scores, [-1, -2, -3]) == (metric == "L2")
    ranker.close()


def test_a_document_may_be_known_by_another_field(settings):
    ranker = milvus(**settings, id_field="text")
    ranker.search(["station"], 1)
    assert ranker.texts == {TOY_DOCS["d3"]: TOY_DOCS["d3"]}
    ranker.close()


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"collection": "dogs"}, "request-failed"),
        ({"vector_field": "embedding"}, "request-failed"),
        ({"id_field": "key"}, "no-id"),
    ],
)
def test_what_is_not_there_is_one_clear_line_and_nothing_is_logged(settings, changed, code, caplog, capfd):
    capfd.readouterr()
    with caplog.at_level(logging.DEBUG), pytest.raises(EngineError) as caught:
        milvus(**{**settings, **changed}).search(["station of miss marple"], 3)
    assert caught.value.code == code and "\n" not in str(caught.value)
    said = capfd.readouterr()
    assert "marple" not in caplog.text + said.out + said.err and "Traceback" not in said.out + said.err


def test_a_file_that_another_process_uses_is_one_clear_line(settings):
    code = f"import pymilvus; pymilvus.MilvusClient({settings['place']!r}); print('open', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(EngineError) as caught:
            milvus(**settings).search(["station"], 3)
        assert caught.value.code and "\n" not in str(caught.value)
        other.communicate(b"\n")


def test_a_server_that_is_not_running_is_one_clear_line(tiny_words, monkeypatch, caplog, capfd):
    pytest.importorskip("pymilvus", reason="the extra 'milvus' is not installed")
    monkeypatch.setenv("MILVUS_TOKEN", "root:token-314159")
    ranker = milvus("http://127.0.0.1:1", "docs", model=tiny_words, auth_env="MILVUS_TOKEN", attempts=1, timeout_s=1.0)
    with caplog.at_level(logging.DEBUG), pytest.raises(EngineError) as caught:
        ranker.search(["station"], 3)
    said = capfd.readouterr()
    shown = str(caught.value) + caplog.text + said.out + said.err + repr(vars(ranker.engine)) + repr(ranker.settings())
    assert "token-314159" not in shown and caught.value.code == "no-connection"


def test_a_file_that_is_not_there_is_not_created(tmp_path):
    with pytest.raises(ConfigError) as caught:
        MilvusEngine(str(tmp_path / "no.db"), "docs", model="a")
    assert caught.value.code == "no-place" and list(tmp_path.iterdir()) == []
