"""Functions that load documents into local engines, for tests. askew itself only reads engines.

settings = load_tantivy(folder, TOY_DOCS)
ranker = build("ranker", "tantivy", settings)

Each function returns the settings of a ranker for the loaded documents. Vectors are made by an encoder, which is given
by name or folder.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from askew.models import load_model


def load_tantivy(folder: Path, docs: Mapping[str, str]) -> dict[str, Any]:
    """Make a tantivy index with the fields id and text."""
    tantivy = import_module("tantivy")
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw")
    builder.add_text_field("text", stored=True)
    folder.mkdir()
    writer = tantivy.Index(builder.build(), path=str(folder)).writer(num_threads=1)
    for doc, text in docs.items():
        writer.add_document(tantivy.Document(id=doc, text=text))
    writer.commit()
    writer.wait_merging_threads()
    return {"place": str(folder)}


def load_lancedb(folder: Path, docs: Mapping[str, str], model: str | None = None) -> dict[str, Any]:
    """Make a LanceDB table with an index of its texts; with a model it has vectors, and these are searched."""
    columns = {"id": pa.array(list(docs)), "text": pa.array(list(docs.values()))}
    if model is not None:
        vectors = _vectors(docs, model)
        columns["vector"] = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    table = import_module("lancedb").connect(str(folder)).create_table("docs", pa.table(columns))
    table.create_index("text", config=import_module("lancedb.index").FTS())
    return {"place": str(folder), "table": "docs", "model": model}


def load_milvus(file: Path, docs: Mapping[str, str], model: str, metric: str = "COSINE") -> dict[str, Any]:
    """Make a collection in Milvus Lite, with the document ids as keys."""
    milvus, vectors = import_module("pymilvus"), _vectors(docs, model)
    client = milvus.MilvusClient(str(file.with_suffix(".db")))
    schema = client.create_schema()
    schema.add_field("id", milvus.DataType.VARCHAR, is_primary=True, max_length=200)
    schema.add_field("text", milvus.DataType.VARCHAR, max_length=60_000)
    schema.add_field("vector", milvus.DataType.FLOAT_VECTOR, dim=vectors.shape[1])
    index = client.prepare_index_params()
    index.add_index("vector", index_type="FLAT", metric_type=metric)
    client.create_collection("docs", schema=schema, index_params=index)
    rows = zip(docs.items(), vectors.tolist(), strict=True)
    client.insert("docs", [{"id": doc, "text": text, "vector": vector} for (doc, text), vector in rows])
    client.close()
    # Milvus Lite is a server in this process, and only one process can open its file.
    import_module("milvus_lite.server_manager").server_manager_instance.release_server(str(file.with_suffix(".db")))
    return {"place": str(file.with_suffix(".db")), "collection": "docs", "model": model}


class PostgresServer:
    """PostgreSQL with pgvector, from the wheel ``pgserver``. ``stop`` and ``start`` simulate an outage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._server: Any = None
        self.url = ""

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        with warnings.catch_warnings():
            # pgserver warns if the environment has no folder for sockets, and uses another one.
            warnings.simplefilter("ignore")
            pgserver = import_module("pgserver")
        self._server = pgserver.get_server(self.folder, cleanup_mode="stop")
        self.url = self._server.get_uri()

    def stop(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.cleanup()
            self._server = None

    def run(self, *statements: Any) -> None:
        """Run statements as the owner of the database."""
        with import_module("psycopg").connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def load(self, docs: Mapping[str, str], model: str | None = None) -> dict[str, Any]:
        """Replace the table docs; with a model it has vectors, and these are searched."""
        psycopg, rows = import_module("psycopg"), [[doc, text, None] for doc, text in docs.items()]
        width = 1
        if model is not None:
            vectors = _vectors(docs, model).tolist()
            width = len(vectors[0])
            rows = [[*row[:2], str(vector)] for row, vector in zip(rows, vectors, strict=True)]
        self.run(
            "CREATE EXTENSION IF NOT EXISTS vector", "DROP TABLE IF EXISTS docs CASCADE",
            f"CREATE TABLE docs (id text PRIMARY KEY, text text, embedding vector({width}), "
            "words tsvector GENERATED ALWAYS AS (to_tsvector('english', text)) STORED)",
        )  # fmt: skip
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor:
            cursor.executemany("INSERT INTO docs VALUES (%s, %s, %s)", rows)
        searched = {"tsvector_column": "words"} if model is None else {"model": model, "vector_field": "embedding"}
        return {"place": self.url, "table": "docs", **searched}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _vectors(docs: Mapping[str, str], model: str) -> Any:
    """The vectors of documents, as rows of 32-bit numbers."""
    return load_model("dense", model).encode_document(list(docs.values()), show_progress_bar=False)
