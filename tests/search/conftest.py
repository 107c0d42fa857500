"""Tiny models, built here: where real weights cannot be had offline, the loading code is still the real one."""

import json
import re
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import local_engines
from askew.data.collection import open_collection
from askew.testing.contracts import TOY_DOCS
from opensearch_server import OpenSearchServer
from search_server import SearchServer

WORDS = sorted({word.strip(".,;:%’").lower() for text in TOY_DOCS.values() for word in text.split()})


@pytest.fixture
def search_server():
    with SearchServer(TOY_DOCS) as server:
        yield server


@pytest.fixture
def opensearch_server():
    with OpenSearchServer(TOY_DOCS) as server:
        yield server


class QdrantServer(SearchServer):
    """Answers as the documentation of Qdrant says, with all documents in their order; a vector is not looked at."""

    def __init__(self):
        super().__init__(TOY_DOCS)
        self.bodies = []

    def reply(self, method, path, body):
        if path.partition("?")[0] != "/collections/docs/points/query":
            return 404, {"status": {"error": f"{path} {body!r}"}}
        self.bodies.append(json.loads(body))
        points = [{"id": i, "version": 0, "score": 1 - i / 10, "payload": {"key": doc, "text": text}}
                  for i, (doc, text) in enumerate(TOY_DOCS.items())]  # fmt: skip
        return 200, {"time": 0.0, "status": "ok", "result": {"points": points[: self.bodies[-1]["limit"]]}}


@pytest.fixture
def qdrant_server():
    pytest.importorskip("qdrant_client", reason="the extra 'qdrant' is not installed")
    with QdrantServer() as server:
        yield server


@pytest.fixture(scope="session")
def tiny_parts(bert_tokenizer):
    """A tokenizer and a configuration of a BERT with two small layers."""
    pytest.importorskip("sentence_transformers", reason="the extra 'neural' is not installed")
    from transformers import BertConfig

    fast = bert_tokenizer([*WORDS, "who", "##s"])
    config = BertConfig(
        vocab_size=len(fast), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64,
    )  # fmt: skip
    return fast, config


def _save(tiny_parts, kind, folder, **options):
    import torch
    import transformers

    torch.manual_seed(7)
    tokenizer, config = tiny_parts
    for name, value in options.items():
        setattr(config, name, value)
    model = getattr(transformers, kind)(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def tiny_splade(tiny_parts, tmp_path_factory):
    return _save(tiny_parts, "BertForMaskedLM", tmp_path_factory.mktemp("splade"))


@pytest.fixture(scope="session")
def tiny_cross(tiny_parts, tmp_path_factory):
    return _save(tiny_parts, "BertForSequenceClassification", tmp_path_factory.mktemp("cross"), num_labels=1)


@pytest.fixture(scope="session")
def tiny_words(bert_tokenizer, tmp_path_factory):
    """An encoder of one random vector for each word: texts that share words are near each other."""
    pytest.importorskip("sentence_transformers", reason="the extra 'neural' is not installed")
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    torch.manual_seed(7)
    texts = [text for batch in open_collection("demo").documents() for text in batch["text"].to_pylist()]
    words = sorted({*WORDS, "who", *re.findall("[a-z]+", " ".join(texts).lower())})
    folder = tmp_path_factory.mktemp("words")
    SentenceTransformer(modules=[StaticEmbedding(bert_tokenizer(words), embedding_dim=64)]).save(str(folder))
    return str(folder)


# A way to search with an engine of this machine: the ranker, the modules that it needs, and the fixture of its encoder.
LOCAL_WAYS = {
    "tantivy": ("tantivy", ("tantivy",), None),
    "lancedb": ("lancedb", ("lancedb",), None),
    "lancedb-vector": ("lancedb", ("lancedb",), "tiny_words"),
    "milvus": ("milvus", ("pymilvus", "milvus_lite"), "tiny_words"),
    "postgres": ("postgres", ("psycopg", "pgserver"), None),
    "postgres-vector": ("postgres", ("psycopg", "pgserver"), "tiny_words"),
}


class LocalEngines:
    """Engines of this machine: documents loaded into one are found by the ranker whose settings are returned."""

    ways = LOCAL_WAYS

    def __init__(self, folder, request):
        self._folder, self._request = folder, request

    def load(self, way, docs):
        ranker, modules, encoder = self.ways[way]
        for module in modules:
            if find_spec(module) is None:
                pytest.skip(f"{module} is not installed (extra {ranker!r})")
        given = {} if encoder is None else {"model": self._request.getfixturevalue(encoder)}
        if ranker == "postgres":
            return self._request.getfixturevalue("postgres_server").load(docs, **given)
        return getattr(local_engines, f"load_{ranker}")(self._folder / way, docs, **given)


@pytest.fixture
def local_engines_here(tmp_path, request):
    return LocalEngines(tmp_path, request)


@pytest.fixture(scope="session")
def postgres_server():
    for module in ("psycopg", "pgserver"):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed (extra 'postgres')")
    # Run by root, it is another user that reads the folder, and the folders of pytest are closed to others.
    made = tempfile.TemporaryDirectory(prefix="askew-postgres-")
    with made as folder, local_engines.PostgresServer(Path(folder)) as server:
        yield server
