"""PostgreSQL, LanceDB, Qdrant, Milvus and tantivy as engines, through their client libraries (extras of these names).

The fields of a class are its settings. Clients only read. Queries are passed as parameters or query objects. Messages
quote no text of a library, because it may repeat a query or a document.
"""

from __future__ import annotations

import logging
import math
import threading
import unicodedata
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import parse_qsl

import numpy as np

from askew.core.address import is_secret_name
from askew.core.errors import AskewError, ConfigError, MissingExtra
from askew.core.plugins import OneOf, Positive
from askew.models import identify, load_model
from askew.search.engines.client import Answer, EngineError, Found
from askew.search.engines.http import joined_text, names_in
from askew.search.engines.ranker import EnginePlugin
from askew.search.engines.wire import TRANSIENT, SecretSource, close_all, parse_url

# Exceptions and codes (of HTTP, gRPC and Milvus) after which the same request may succeed.
_LOST = {
    "ResponseHandlingException", "OperationalError", "TimeoutError", "UNAVAILABLE", "DEADLINE_EXCEEDED", 2, *TRANSIENT
}  # fmt: skip
# Distances, and their operators in pgvector. The score of a vector is minus its distance.
_OPERATORS = {"cosine": "<=>", "dot": "<#>", "l2": "<->"}


@dataclass(eq=False, kw_only=True)
class _Database:
    """An engine with a client for each concurrent request. A subclass opens it, and searches for rows with scores."""

    extra: ClassVar[str]
    how_asked: ClassVar = frozenset({"auth_env", "auth_file", "timeout_s"})
    _open: ClassVar[Callable[..., Any]]
    _rows: ClassVar[Callable[..., Iterable[tuple[Mapping[Any, Any], float]]]]
    _vectors: ClassVar[Callable[..., Any]]
    place: str = field(kw_only=False)
    id_field: str = "id"
    text_fields: str = "text"

    def __post_init__(self) -> None:
        self._is_local, path = "://" not in self.place, Path(self.place).expanduser().resolve()
        parts = parse_url(self.place, [self.place.partition("://")[0]])
        # The libraries would create a path that does not exist. The text may be a secret, so it is not shown.
        if not (path.exists() if self._is_local else parts):
            raise ConfigError(f"{self.extra}: ⟨place⟩ is neither an address nor a path that exists", code="no-place")
        if parts and (parts.password or any(is_secret_name(name) for name, _ in parse_qsl(parts.query))):
            why = f"{self.extra}: ⟨place⟩ should have no password or key; give a secret with ⟨auth_env⟩ or ⟨auth_file⟩"
            raise ConfigError(why, code="secret-in-place")
        self._place = str(path) if self._is_local else self.place
        self.id = f"{self.extra}-{getattr(self, 'table', None) or getattr(self, 'collection', None) or path.name}"
        self._lock, self._clients = threading.RLock(), deque[Any]()
        weakref.finalize(self, close_all, self._clients)

    def settings(self) -> Mapping[str, Any]:
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in self.how_asked}
        return values | ({"model": identify(values["model"], values["revision"])} if values.get("model") else {})

    def find(self, queries: Sequence[str], k: int) -> Sequence[Answer]:
        # No database accepts null characters and lone surrogates.
        texts = [query.replace("\0", " ").encode("utf-8", "replace").decode() for query in queries]
        try:
            with self._lock:
                client = self._clients.pop() if self._clients else self._limited(self._open)
            try:
                searched = self._vectors(texts) if getattr(self, "model", None) else texts
                answers = [self._limited(self._rows, client, query, k) for query in searched]
                return [[self._found(*row) for row in rows] for rows in answers]
            finally:
                self._clients.append(client)
        except AskewError:
            raise
        except ImportError:
            raise MissingExtra(f"the ranker {self.extra!r}", self.extra) from None
        except Exception as error:
            # The other clients may have lost their connections too, and each would cost an attempt.
            self.close()
            code: Any = getattr(error, "status_code", getattr(error, "sqlstate", getattr(error, "code", None)))
            if {getattr(code, "name", code), *(kind.__name__ for kind in type(error).__mro__)} & _LOST:
                problem = "no connection, or no reply in time; check that the engine runs, the address and the secret"
                lost = EngineError(f"engine {self.id}: {problem}", transient=True, code="no-connection")
                raise lost from None
            problem = f"engine {self.id}: {type(error).__name__} ({code}); check {', '.join(self.settings())}"
            raise EngineError(problem, code="request-failed", kind=type(error).__name__) from None

    def close(self) -> None:
        close_all(self._clients)

    def _limited(self, job: Callable[..., Any], *given: Any) -> Any:
        """Run a job for ``timeout_s`` at most. The limits of the libraries hold for each part of a reply."""
        if self._is_local:
            return job(*given)
        done = Future[Any]()

        def work() -> None:
            try:
                done.set_result(job(*given))
            except BaseException as error:
                done.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return done.result(getattr(self, "timeout_s", None))

    def _found(self, row: Mapping[Any, Any], score: float) -> Found:
        if (doc := row.get(self.id_field)) in (None, ""):
            raise EngineError(
                f"engine {self.id}: a document has no value in ⟨id_field⟩ {self.id_field!r}", code="no-id"
            )
        return Found(str(doc), score, joined_text(self.text_fields, row.get))


@dataclass(eq=False)
class TantivyEngine(_Database):
    """The folder ``place`` with a tantivy index, searched by BM25 for documents with at least one word of the query.

    ``fields`` are searched; they are separated by commas and may have boosts, as in title^2,text.
    """

    extra = "tantivy"
    fields: str = "text"

    def _open(self) -> Any:
        return import_module("tantivy").Index.open(self._place)

    def _rows(self, client: Any, query: str, k: int) -> Any:
        boosts = {name: float(boost or 1) for name, _, boost in (name.partition("^") for name in names_in(self.fields))}
        # Words in quotes, so that nothing is read as an operator. They are split as tantivy's tokenizers do, so that
        # none becomes a phrase: marks are part of the preceding letter.
        parts = "".join(char if char.isalnum() or unicodedata.category(char)[0] == "M" else " " for char in query)
        parsed = client.parse_query(" ".join(f'"{word}"' for word in parts.split()), list(boosts), boosts)
        searcher = client.searcher()
        for score, at in searcher.search(parsed, k, count=False).hits:
            doc = searcher.doc(at).to_dict()
            yield {name: values[0] if len(values) == 1 else values for name, values in doc.items()}, score


@dataclass(eq=False, kw_only=True)
class _VectorDatabase(_Database):
    """A database that searches vectors if it has a ``model``, and texts otherwise."""

    vector_field: str = "vector"
    model: str | None = None
    revision: str | None = None
    query_prompt: str = ""
    auth_env: str | None = None
    auth_file: str | None = None
    timeout_s: Positive = 30.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._auth = SecretSource("auth", self.auth_env, self.auth_file)
        self.id, self.batch_size = (f"{self.id}-vector", 32) if self.model else (f"{self.id}-text", 1)
        # A local database can be opened only once.
        self.most_threads = 1 if self._is_local else None

    def credentials(self) -> Mapping[str, str]:
        return {"secret": self._auth.read()} if self._auth else {}

    def _secret(self) -> str | None:
        return self._auth.read() if self._auth else None

    def _vectors(self, queries: Sequence[str]) -> Any:
        prompt = {"prompt": self.query_prompt} if self.query_prompt else {}
        # Several threads use the encoder, but parallel calls are no faster.
        with self._lock:
            encoder = load_model("dense", str(self.model), self.revision)
            return np.asarray(encoder.encode_query(queries, show_progress_bar=False, **prompt), np.float32).tolist()


@dataclass(eq=False)
class LanceDbEngine(_VectorDatabase):
    """A table of LanceDB in the folder or at the address ``place``: texts, or vectors if ``model`` is given.

    ``fields`` (separated by commas) or ``vector_field`` are searched. The score of a vector is minus the ``distance``.
    """

    extra = "lancedb"
    table: str
    fields: str = "text"
    distance: Annotated[str, OneOf(tuple(_OPERATORS))] = "cosine"

    def _open(self) -> Any:
        return import_module("lancedb").connect(self._place, api_key=self._secret()).open_table(self.table)

    def _rows(self, client: Any, query: Any, k: int) -> Any:
        if self.model:
            score, sign = "_distance", -1.0
            request = client.search(query, self.vector_field, "vector").distance_type(self.distance)
        else:
            # A query object, so that no character of the text is read as an operator.
            score, sign, match = "_score", 1.0, import_module("lancedb.query").MultiMatchQuery
            request = client.search(match(query, names_in(self.fields)), query_type="fts")
        columns = list(dict.fromkeys([self.id_field, *names_in(self.text_fields), score]))
        return [(row, sign * row[score]) for row in request.limit(k).select(columns).to_arrow().to_pylist()]


@dataclass(eq=False)
class QdrantEngine(_VectorDatabase):
    """A collection of Qdrant at an address such as http://localhost:6333.

    ``vector_field`` is the name of the vector if points have several. ``id_field`` is a field of the payload; if it is
    empty, the id of the point is used.
    """

    extra = "qdrant"
    collection: str
    model: str = field(kw_only=True)
    vector_field: str = field(default="", kw_only=True)

    def _open(self) -> Any:
        # The secret is read for each request, so that no object stores it.
        auth = {"auth_token_provider": self._auth.read} if self._auth else {}
        client = import_module("qdrant_client").QdrantClient
        return client(url=self._place, timeout=math.ceil(self.timeout_s), check_compatibility=False, **auth)

    def _rows(self, client: Any, query: Any, k: int) -> Any:
        payload = [name for name in (self.id_field, *names_in(self.text_fields)) if name]
        options = {"using": self.vector_field or None, "limit": k, "with_payload": payload or False}
        points = client.query_points(self.collection, query=query, **options).points
        return [({**(point.payload or {}), "": point.id}, point.score) for point in points]


@dataclass(eq=False)
class MilvusEngine(_VectorDatabase):
    """A collection of Milvus at an address such as http://localhost:19530, or in the file of Milvus Lite.

    The secret is a key, or user:password.
    """

    extra = "milvus"
    # The largest number of results that a server returns for one query.
    most: ClassVar[int] = 16_384
    collection: str
    model: str = field(kw_only=True)

    def _open(self) -> Any:
        # These libraries log complete errors, including requests and replies.
        for name in ("pymilvus", "milvus_lite", "grpc"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        client_class, token = import_module("pymilvus").MilvusClient, self._secret() or ""
        client = client_class(self._place, timeout=self.timeout_s, token=token)
        if self._is_local:
            # Milvus Lite loads the collection into this process. On a server nothing is changed.
            client.load_collection(self.collection)
        return client

    def _rows(self, client: Any, query: Any, k: int) -> Any:
        names = list(dict.fromkeys([self.id_field, *names_in(self.text_fields)]))
        options = {"anns_field": self.vector_field, "output_fields": names, "timeout": self.timeout_s}
        return [
            (hit["entity"], hit["distance"]) for hit in client.search(self.collection, [query], limit=k, **options)[0]
        ]


@dataclass(eq=False)
class PostgresEngine(_VectorDatabase):
    """A table of PostgreSQL at postgresql://user@host/database: texts, or vectors of pgvector if ``model`` is given.

    The password is that of ``auth_env`` or ``auth_file``, or found by PostgreSQL's own rules. Documents with at least
    one word of the query are found by ``tsvector_column``, or by default by ``text_fields``, with the text search
    configuration ``language``.
    """

    extra = "postgres"
    table: str
    tsvector_column: str | None = None
    language: str = "english"
    distance: Annotated[str, OneOf(tuple(_OPERATORS))] = "cosine"

    def _open(self) -> Any:
        limits = {"connect_timeout": max(2, math.ceil(self.timeout_s)), "password": self._secret()}
        client = import_module("psycopg").connect(self._place, autocommit=True, prepare_threshold=None, **limits)
        client.read_only = True
        return client

    def _rows(self, client: Any, query: Any, k: int) -> Any:
        def quoted(*parts: str, mark: str = '"') -> str:
            # A percent sign is doubled, because the statement has parameters.
            return ".".join(mark + part.replace(mark, 2 * mark).replace("%", "%%") + mark for part in parts)

        names = [self.id_field, *names_in(self.text_fields)]
        columns = [f"{quoted('searched', name)}::text" for name in names]
        shown, table = ", ".join(columns), f"{quoted(*self.table.split('.', 1))} AS searched"
        if self.model:
            vector = quoted("searched", self.vector_field)
            distance = f"{vector} {_OPERATORS[self.distance]} %s"
            sql = f"SELECT {distance}, {shown} FROM {table} WHERE {vector} IS NOT NULL ORDER BY 1 LIMIT %s"  # nosec B608 - quoted above
        else:
            # An index is found by the same expression, so a single column stands as it is.
            text = columns[1] if len(columns) == 2 else f"concat_ws(' ', {', '.join(columns[1:])})"
            language = quoted(self.language, mark="'")
            words = f"to_tsvector({language}, {text})"
            if self.tsvector_column:
                words = quoted("searched", self.tsvector_column)
            # The text of a tsquery quotes its words, so only operators have spaces around them.
            parsed = f"(SELECT replace(plainto_tsquery({language}, %s)::text, ' & ', ' | ')::tsquery AS query) AS asked"
            sql = f"""SELECT -ts_rank_cd({words}, asked.query), {shown} FROM {table}, {parsed}
                WHERE {words} @@ asked.query ORDER BY 1, 2 LIMIT %s"""  # nosec B608 - quoted above
        # An HNSW index returns at most hnsw.ef_search rows: 40 by default, and 1000 at most.
        limits = "SELECT set_config('statement_timeout', %s, true), set_config('hnsw.ef_search', %s, true)"
        with client.transaction(), client.cursor() as cursor:
            cursor.execute(limits, [str(math.ceil(self.timeout_s * 1000)), str(min(max(k, 40), 1000))])
            rows = cursor.execute(sql, [str(query), k]).fetchall()
        return [(dict(zip(names, values, strict=True)), -distance) for distance, *values in rows]


tantivy, lancedb, qdrant, milvus, postgres = map(
    EnginePlugin, (TantivyEngine, LanceDbEngine, QdrantEngine, MilvusEngine, PostgresEngine)
)
