"""A table of LanceDB as a ranker: fields, distances, and what is wrong with settings."""

import numpy as np
import pyarrow as pa
import pytest

from askew.core.errors import ConfigError
from askew.models import load_model
from askew.search.engines.client import EngineError
from askew.search.engines.databases import LanceDbEngine, lancedb
from askew.testing.contracts import TOY_DOCS


@pytest.fixture
def settings(local_engines_here):
    return local_engines_here.load("lancedb-vector", TOY_DOCS)


def order(ranker, query, k=10):
    hits = ranker.search([query], k)
    return [ranker.doc_ids[i].as_py() for i in hits.docs.tolist()], hits.scores.tolist()


def test_several_fields_are_searched_together(tmp_path):
    library = pytest.importorskip("lancedb", reason="the extra 'lancedb' is not installed")
    rows = {
        "key": pa.array([1, 2, 3]),
        "title": pa.array(["nurse", "bridge", "a"]),
        "body": pa.array(["b", "nurse", "c"]),
    }
    library.connect(str(tmp_path)).create_table("films", pa.table(rows))
    ranker = lancedb(str(tmp_path), "films", fields="title,body", id_field="key", text_fields="title,body")
    assert set(order(ranker, "nurse")[0]) == {"1", "2"}
    assert ranker.texts == {"1": "nurse b", "2": "bridge nurse"}


@pytest.mark.parametrize("distance", ["cosine", "dot", "l2"])
def test_vectors_are_ranked_as_the_model_says(settings, distance):
    model = load_model("dense", settings["model"])
    docs, query = model.encode_document(list(TOY_DOCS.values())), model.encode_query(["mother and sister"])[0]
    with np.errstate(invalid="ignore"):
        cosine = docs @ query / np.linalg.norm(docs, axis=1) / np.linalg.norm(query)
    scores = {"cosine": cosine - 1, "dot": docs @ query - 1, "l2": -(np.linalg.norm(docs - query, axis=1) ** 2)}[
        distance
    ]
    best = np.argsort(-np.nan_to_num(scores, nan=-9))[:3]
    found, given = order(lancedb(**settings, distance=distance), "mother and sister", 3)
    assert found == [list(TOY_DOCS)[i] for i in best]
    assert given == pytest.approx(scores[best].tolist(), abs=1e-3)


@pytest.mark.parametrize(
    "changed",
    [
        {"table": "dogs"},
        {"id_field": "key"},
        {"text_fields": "title,text"},
        {"vector_field": "embedding"},
        {"model": None, "fields": "body"},
    ],
)
def test_what_is_not_there_is_one_clear_line(settings, changed):
    with pytest.raises(EngineError) as caught:
        lancedb(**{**settings, **changed}).search(["station"], 3)
    assert caught.value.code == "request-failed" and "\n" not in str(caught.value)
    assert next(iter(changed)) in str(caught.value)


def test_vectors_of_another_width_are_refused(settings, tmp_path):
    library = pytest.importorskip("lancedb")
    narrow = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0], pa.float32()), 2)
    library.connect(settings["place"]).create_table("narrow", pa.table({"id": ["a"], "text": ["b"], "vector": narrow}))
    with pytest.raises(EngineError) as caught:
        lancedb(**{**settings, "table": "narrow"}).search(["station"], 3)
    assert caught.value.code == "request-failed"


def test_a_folder_that_is_not_there_is_not_created(tmp_path):
    with pytest.raises(ConfigError) as caught:
        LanceDbEngine(str(tmp_path / "no"), "docs")
    assert caught.value.code == "no-place" and list(tmp_path.iterdir()) == []
