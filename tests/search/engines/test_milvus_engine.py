"""A collection of Milvus Lite as a ranker: metrics, fields, and what is wrong with settings."""

import logging
import subprocess
import sys

import numpy as np
import pytest

from askew.core.errors import AskewError, ConfigError
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
    assert (np.diff(hits.scores) < 0).all() and not np.array_equal(hits.scores, [-1, -2, -3])
    ranker.close()


def test_a_document_may_be_known_by_another_field(settings):
    ranker = milvus(**settings, id_field="text")
    ranker.search(["station"], 1)
    assert ranker.texts == {TOY_DOCS["d3"]: TOY_DOCS["d3"]}
    ranker.close()


@pytest.mark.parametrize(
    "changed",
    [
        {"collection": "dogs"},
        {"vector_field": "embedding"},
        {"id_field": "key"},
        {"text_fields": "title"},
    ],
)
def test_what_is_not_there_is_one_clear_line_and_nothing_is_logged(settings, changed, caplog, capfd):
    capfd.readouterr()
    with caplog.at_level(logging.DEBUG), pytest.raises(AskewError, match="collection=") as caught:
        milvus(**{**settings, **changed}).search(["station of miss marple"], 3)
    assert "\n" not in str(caught.value)
    said = capfd.readouterr()
    assert "marple" not in caplog.text + said.out + said.err and "Traceback" not in said.out + said.err


def test_a_file_that_another_process_uses_is_one_clear_line(settings):
    code = f"import pymilvus; pymilvus.MilvusClient({settings['place']!r}); print('open', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(EngineError, match="other process"):
            milvus(**settings).search(["station"], 3)
        other.communicate(b"\n")


def test_a_server_that_is_not_running_is_one_clear_line(tiny_words, monkeypatch, caplog, capfd):
    pytest.importorskip("pymilvus", reason="the extra 'milvus' is not installed")
    monkeypatch.setenv("MILVUS_TOKEN", "root:token-314159")
    ranker = milvus("http://127.0.0.1:1", "docs", model=tiny_words, auth_env="MILVUS_TOKEN", attempts=1, timeout_s=1.0)
    with caplog.at_level(logging.DEBUG), pytest.raises(EngineError, match="no connection") as caught:
        ranker.search(["station"], 3)
    said = capfd.readouterr()
    shown = str(caught.value) + caplog.text + said.out + said.err + repr(vars(ranker.engine)) + repr(ranker.settings())
    assert "token-314159" not in shown


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"place": "no.db"}, r"place= .*no\.db does not exist"),
        ({"place": "http://me:secret@host:19530"}, "no user name"),
        ({"model": None}, "model="),
    ],
)
def test_settings_that_cannot_work_are_refused_and_nothing_is_created(tmp_path, monkeypatch, changed, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=words):
        MilvusEngine(**{"place": ".", "collection": "docs", "model": "a", **changed})
    assert list(tmp_path.iterdir()) == []
