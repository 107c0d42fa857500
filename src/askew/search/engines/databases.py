"""PostgreSQL, LanceDB, Qdrant, Milvus and tantivy as engines, through their client libraries (extras of these names).

The fields of a class are its settings. A client is opened at the first query and only reads. Queries are passed as
parameters or query objects. Messages quote no text of a library, because it may repeat a query or a document.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import math
import threading
import unicodedata
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import parse_qsl

import numpy as np

from askew.core.address import is_secret_name
from askew.core.errors import AskewError, ConfigError, MissingExtra
from askew.core.plugins import Between, Count, OneOf, Positive
from askew.models import identify, load_model
from askew.search.engines.client import Answer, EngineError, Found
from askew.search.engines.http import joined_text, names_in
from askew.search.engines.ranker import EnginePlugin
from askew.search.engines.wire import SecretSource, checked_url, close_all, parse_url, status_error


def library(module: str, extra: str) -> Any:
    """Import a module that comes with the extra of an engine."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(f"the ranker {extra!r}", extra) from None


@dataclass(eq=False, repr=False)
class _Database:
    """An engine with one client. A subclass opens it, searches, and explains the errors of its library."""

    extra: ClassVar[str]
    label: ClassVar[str]
    checked: ClassVar[str]
    how_asked: ClassVar = frozenset({"device", "auth_env", "auth_file", "timeout_s"})
    # Most clients close themselves when nothing uses them any more.
    _release: ClassVar[Any] = staticmethod(deque.clear)
    _open: ClassVar[Callable[..., Any]]
    _search: ClassVar[Callable[..., Sequence[Answer]]]

    def __post_init__(self) -> None:
        self.id = f"{self.extra}-{self.label.format(**vars(self))}"
        self._lock, self._clients = threading.RLock(), deque[Any]()
        weakref.finalize(self, self._release, self._clients)

    def settings(self) -> Mapping[str, Any]:
        """The settings that determine the answers."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in self.how_asked}

    def find(self, queries: Sequence[str], k: int) -> Sequence[Answer]:
        """The documents of each query."""
        # No database accepts null characters and lone surrogates.
        texts = [query.replace("\0", " ").encode("utf-8", "replace").decode() for query in queries]
        try:
            with self._connection() as client:
                return self._search(client, texts, k)
        except AskewError:
            raise
        except Exception as error:
            raise self._explained(error) from None

    def close(self) -> None:
        """Close the client. The next request opens a new one."""
        self._release(self._clients)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Any]:
        with self._lock:
            if not self._clients:
                self._clients.append(self._open())
            client = self._clients[0]
        yield client

    def _explained(self, error: Any, code: object = None) -> EngineError:
        return EngineError(f"engine {self.id}: refused ({code or type(error).__name__}); check {self.checked}")

    def _local(self, setting: str = "place") -> Path:
        """A path that must exist, because the libraries would create it."""
        path = Path(getattr(self, setting)).expanduser()
        if not path.exists():
            raise ConfigError(f"{self.extra}: {setting}= {path} does not exist; give the path of the engine's data")
        return path

    def _found(self, row: Mapping[Any, Any], id_field: str | None, texts: str, score: float) -> Found:
        if (doc := row.get(id_field)) in (None, ""):
            raise EngineError(f"engine {self.id}: a document has no value in {id_field!r}; check {self.checked}")
        return Found(str(doc), score, joined_text(texts, row.get))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"


@dataclass(eq=False, repr=False, kw_only=True)
class _VectorDatabase(_Database):
    """A database that can search vectors. ``model`` must be the encoder of its documents."""

    model: str | None = None
    revision: str | None = None
    query_prompt: str = ""
    device: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._encodes = getattr(self, "search", "vector") == "vector"
        self.batch_size = 32 if self._encodes else 1
        self._is_remote = "://" in getattr(self, "place", "://")
        if not self._is_remote:
            self._local()
        if self._encodes and not self.model:
            raise ConfigError(f"{self.extra}: vector search needs model=, the encoder of the documents")

    def settings(self) -> Mapping[str, Any]:
        """The settings that determine the answers, with a hash of the model."""
        weights = identify(self.model, self.revision) if self._encodes and self.model else None
        return {**super().settings(), "model": weights}

    def _encoded(self, queries: Sequence[str], kind: str = "dense", **options: Any) -> Any:
        prompt = {"prompt": self.query_prompt} if self.query_prompt else {}
        # Several threads use the encoder, but parallel calls are no faster.
        with self._lock:
            encoder = load_model(kind, str(self.model), self.revision, self.device)
            return encoder.encode_query(queries, batch_size=32, show_progress_bar=False, **prompt, **options)

    def _vectors(self, queries: Sequence[str]) -> Any:
        return np.asarray(self._encoded(queries, convert_to_numpy=True), np.float32).tolist()


@dataclass(eq=False, repr=False, kw_only=True)
class _VectorServer(_VectorDatabase):
    """A database that may need a secret, which is read at each use and never stored."""

    auth_env: str | None = None
    auth_file: str | None = None
    timeout_s: Positive = 30.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._auth = SecretSource("auth", self.auth_env, self.auth_file)
        if self._is_remote and hasattr(self, "place") and checked_url(self.place).query:
            raise ConfigError(f"{self.extra}: place= should be the address of the server, without ?parameters")

    def _lost(self) -> EngineError:
        said = f"engine {self.id}: no connection, or no reply within {self.timeout_s:g} seconds (timeout_s=)"
        return EngineError(f"{said}; check that the engine runs", transient=True)


@dataclass(eq=False, repr=False)
class TantivyEngine(_Database):
    """A folder with a tantivy index, searched by BM25.

    ``fields`` are the searched fields, separated by commas and with optional boosts, as in title^2,text. ``id_field``
    is the stored field with the document id. ``text_fields`` are the stored fields with the text (default: ``fields``).
    With ``syntax="words"``, documents that contain at least one word of the query are found. With ``syntax="tantivy"``,
    a query is read as tantivy's query language, and some queries are errors.
    """

    extra, label, checked = "tantivy", "{folder}", "folder=, fields= and id_field="
    folder: str
    fields: str = "text"
    id_field: str = "id"
    text_fields: str | None = None
    syntax: Annotated[str, OneOf(("words", "tantivy"))] = "words"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.id = f"tantivy-{self._local('folder').resolve().name}"
        pairs = [name.partition("^") for name in names_in(self.fields)]
        try:
            self._boosts = {name: float(boost or 1.0) for name, _, boost in pairs}
        except ValueError:
            self._boosts = {}
        if not self._boosts:
            raise ConfigError(f"tantivy: fields= should be like 'title^2,text', found {self.fields!r}")

    def _open(self) -> tuple[Any, Any]:
        index = library("tantivy", "tantivy").Index.open(str(self._local("folder")))
        # A field that is missing, not indexed or has a custom tokenizer fails here, before any query.
        self._parsed(index, '"a"')
        return index, index.searcher()

    def _search(self, client: tuple[Any, Any], queries: Sequence[str], k: int) -> Sequence[Answer]:
        return [self._answer(*client, query, k) for query in queries]

    def _answer(self, index: Any, searcher: Any, query: str, k: int) -> Answer:
        try:
            parsed = self._parsed(index, _quoted_words(query) if self.syntax == "words" else query)
        except ValueError:
            return EngineError(f"engine {self.id}: a query is not valid in tantivy's language; set syntax='words'")
        texts = ",".join(self._boosts) if self.text_fields is None else self.text_fields
        found = []
        for score, place in searcher.search(parsed, k, count=False).hits:
            doc = searcher.doc(place).to_dict()
            row = {name: values[0] if len(values) == 1 else values for name, values in doc.items()}
            found.append(self._found(row, self.id_field, texts, score))
        return found

    def _parsed(self, index: Any, text: str) -> Any:
        return index.parse_query(text, list(self._boosts), {name: b for name, b in self._boosts.items() if b != 1.0})


def _quoted_words(query: str) -> str:
    """The words of a query, each in quotes, so that nothing is read as an operator.

    Words are split as tantivy's tokenizers do, so that none becomes a phrase. Marks are part of the preceding letter.
    """
    parts = "".join(char if char.isalnum() or unicodedata.category(char)[0] == "M" else " " for char in query)
    return " ".join(f'"{word}"' for word in parts.split())


# The score is this constant minus the distance. LanceDB's dot distance is one minus the inner product.
_LANCE_SCORES = {"cosine": 1.0, "dot": 1.0, "l2": 0.0}


@dataclass(eq=False, repr=False)
class LanceDbEngine(_VectorDatabase):
    """A table of LanceDB in a folder or object store, searched by full text or by vectors.

    ``place`` is the folder of the database or its address, such as s3://bucket/films; LanceDB reads the keys from the
    environment. With ``search="text"``, ``fields`` (separated by commas) are searched. With ``search="vector"``,
    ``vector_column`` is searched by ``distance`` (cosine, dot or l2) for queries encoded by ``model``; ``nprobes`` and
    ``refine_factor`` are passed to the vector index. ``id_column`` has the document id, ``text_columns`` the text.
    """

    extra, label = "lancedb", "{table}-{search}"
    checked = "place=, table=, id_column=, text_columns=, fields=, vector_column= and model="
    place: str
    table: str
    search: Annotated[str, OneOf(("text", "vector"))] = "text"
    id_column: str = "id"
    text_columns: str = "text"
    fields: str = "text"
    vector_column: str = "vector"
    distance: Annotated[str, OneOf(tuple(_LANCE_SCORES))] = "cosine"
    nprobes: Count | None = None
    refine_factor: Count | None = None

    def _open(self) -> Any:
        if self.place.startswith("db://"):
            raise ConfigError("lancedb: place= should be a folder or an object store; db:// is not supported")
        return library("lancedb", "lancedb").connect(self.place).open_table(self.table)

    def _search(self, client: Any, queries: Sequence[str], k: int) -> Sequence[Answer]:
        if self._encodes:
            column, constant, sign = "_distance", _LANCE_SCORES[self.distance], -1.0
            requests = [client.search(v, self.vector_column, "vector") for v in self._vectors(queries)]
            requests = [request.distance_type(self.distance) for request in requests]
        else:
            # A query object, so that no character of the text is read as an operator.
            match, names = library("lancedb.query", "lancedb").MultiMatchQuery, names_in(self.fields)
            column, constant, sign = "_score", 0.0, 1.0
            requests = [client.search(match(query, names), query_type="fts") for query in queries]
        columns = list(dict.fromkeys([self.id_column, *names_in(self.text_columns), column]))
        answers = []
        for request in requests:
            for name in ("nprobes", "refine_factor") if self._encodes else ():
                if (value := getattr(self, name)) is not None:
                    getattr(request, name)(value)
            rows = request.limit(k).select(columns).to_arrow().to_pylist()
            found = [self._found(row, self.id_column, self.text_columns, constant + sign * row[column]) for row in rows]
            answers.append(found)
        return answers


# A local folder can be opened only once, so all engines of this process share one client and call it in turn.
_folders: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_folders_lock = threading.RLock()


@dataclass(eq=False, repr=False)
class QdrantEngine(_VectorServer):
    """A collection of Qdrant, searched by dense or sparse vectors.

    ``place`` is the address of a server, such as http://localhost:6333, or the folder of Qdrant's local mode, which
    reads points with pickle: open only your own folders. Queries are encoded by ``model``, which is a sparse encoder if
    ``kind`` is sparse. ``vector_name`` is the name of the vector if points have several. ``exact`` searches without the
    index; ``hnsw_ef`` is the search parameter of the index. ``id_field`` is the payload field with the document id, by
    default the id of the point; ``text_fields`` are the payload fields with the text. The key of a server is read from
    the environment variable ``auth_env`` or the file ``auth_file``.
    """

    extra, label = "qdrant", "{collection}-{vector_name}"
    checked = "place=, collection=, vector_name=, id_field=, model= and kind="
    place: str
    collection: str
    kind: Annotated[str, OneOf(("dense", "sparse"))] = "dense"
    vector_name: str | None = None
    id_field: str | None = None
    text_fields: str = "text"
    exact: bool = False
    hnsw_ef: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.id = f"qdrant-{self.collection}-{self.vector_name or 'vector'}"
        self._turn: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if not self._is_remote:
            self._turn, self.most_threads = _folders_lock, 1
        if self.kind == "sparse" and self.vector_name is None:
            raise ConfigError("qdrant: sparse vectors need a name; give vector_name=")

    def _open(self) -> Any:
        made = library("qdrant_client", "qdrant").QdrantClient
        if not self._is_remote:
            path = str(self._local().resolve())
            with self._turn:
                client = _folders[path] = _folders.get(path) or made(path=path)
                return client
        # The secret is read for each request, so that no object stores it.
        auth = {"auth_token_provider": self._auth.read} if self._auth else {}
        with warnings.catch_warnings():
            # The library warns if a key is sent without TLS, which is usual for a local server.
            warnings.simplefilter("ignore")
            return made(url=self.place, timeout=math.ceil(self.timeout_s), check_compatibility=False, **auth)

    def _search(self, client: Any, queries: Sequence[str], k: int) -> Sequence[Answer]:
        models = library("qdrant_client.models", "qdrant")
        payload = [*names_in(self.text_fields), *([self.id_field] if self.id_field else [])]
        options = {"using": self.vector_name, "limit": k, "with_payload": payload or False}
        options["params"] = models.SearchParams(exact=self.exact, hnsw_ef=self.hnsw_ef)
        if self.kind == "dense":
            vectors = self._vectors(queries)
        else:
            encoded = self._encoded(queries, "sparse", save_to_cpu=True).coalesce()
            (rows, terms), weights = encoded.indices().numpy(), encoded.values().float().numpy()
            masks = [(rows == i) & (weights != 0) for i in range(len(queries))]
            vectors = [models.SparseVector(indices=terms[m].tolist(), values=weights[m].tolist()) for m in masks]
        with self._turn:
            requests = [models.QueryRequest(query=vector, **options) for vector in vectors]
            answers = client.query_batch_points(self.collection, requests)
        # The id of the point stands under None, which no payload has.
        found = partial(self._found, id_field=self.id_field, texts=self.text_fields)
        return [[found({**(p.payload or {}), None: p.id}, score=p.score) for p in answer.points] for answer in answers]

    def _explained(self, error: Any, code: object = None) -> EngineError:
        if type(error).__name__ == "ResponseHandlingException":
            return self._lost()
        if (status := getattr(error, "status_code", None)) is not None:
            return status_error(self.place, status, dict(error.headers or {}), bool(self._auth))
        return super()._explained(error)


@dataclass(eq=False, repr=False)
class MilvusEngine(_VectorServer):
    """A collection of Milvus, searched by vectors.

    ``place`` is the address of a server, such as http://localhost:19530, or the file of Milvus Lite. Queries are
    encoded by ``model`` and searched in ``vector_field`` with the metric of its index; ``params`` are the parameters of
    the search, such as nprobe. ``id_field`` has the document id, by default the primary key; ``text_fields`` have the
    text. The token of a server (a key, or user:password) is read from the environment variable ``auth_env`` or the file
    ``auth_file``.
    """

    extra, label, _release = "milvus", "{collection}-{vector_field}", staticmethod(close_all)
    checked = "collection= (it must be loaded), the fields, model= and the token, and that no other process uses place="
    # The largest number of results that a server returns for one query.
    most: ClassVar[int] = 16_384
    place: str
    collection: str
    vector_field: str = "vector"
    id_field: str | None = None
    text_fields: str = "text"
    params: Mapping[str, Any] | None = None
    database: str = ""

    def _open(self) -> Any:
        made, place = library("pymilvus", "milvus").MilvusClient, self.place
        if not self._is_remote:
            library("milvus_lite", "milvus")
            place = str(self._local())
        # These libraries log complete errors, including requests and replies.
        for name in ("pymilvus", "milvus_lite", "grpc"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        secret = {"token": self._auth.read()} if self._auth else {}
        client = made(place, db_name=self.database, timeout=self.timeout_s, **secret)
        with contextlib.ExitStack() as closing:
            closing.callback(client.close)
            columns = {one["name"]: one for one in client.describe_collection(self.collection)["fields"]}
            self._id_column = self.id_field or next(name for name, one in columns.items() if one.get("is_primary"))
            # Milvus Lite ignores a field that is not there.
            if missing := {self._id_column, *names_in(self.text_fields)} - columns.keys():
                raise ConfigError(f"engine {self.id}: the collection= has no {', '.join(missing)}")
            metric = (client.describe_index(self.collection, self.vector_field) or {}).get("metric_type")
            self._sign = -1.0 if metric in ("L2", "HAMMING", "JACCARD") else 1.0
            if not self._is_remote:
                # Milvus Lite loads the collection into this process. On a server nothing is changed.
                client.load_collection(self.collection)
            closing.pop_all()
        return client

    def _search(self, client: Any, queries: Sequence[str], k: int) -> Sequence[Answer]:
        answers = client.search(
            self.collection,
            data=self._vectors(queries),
            limit=k,
            output_fields=list(dict.fromkeys([self._id_column, *names_in(self.text_fields)])),
            anns_field=self.vector_field,
            search_params={"params": dict(self.params)} if self.params else None,
            timeout=self.timeout_s,
        )
        found = partial(self._found, id_field=self._id_column, texts=self.text_fields)
        return [[found(hit["entity"], score=self._sign * hit["distance"]) for hit in hits] for hits in answers]

    def _explained(self, error: Any, code: object = None) -> EngineError:
        # The code is a number of Milvus or a named status of gRPC.
        code = getattr(error, "code", None)
        code = code() if callable(code) else code
        name = getattr(code, "name", code)
        if name in (2, "UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "RATE_LIMIT"):
            return self._lost()
        return super()._explained(error, name)


# The operator of pgvector, and the constant from which its value is subtracted to give a score.
_PG_DISTANCES = {"cosine": ("<=>", 1.0), "dot": ("<#>", 0.0), "l2": ("<->", 0.0)}
# The text of a tsquery quotes its words, so only operators have spaces around them.
_PG_QUERIES = {
    "websearch": "websearch_to_tsquery({}, %s)",
    "plain": "plainto_tsquery({}, %s)",
    "any": "(SELECT CAST(replace(CAST(plainto_tsquery({}, %s) AS text), ' & ', ' | ') AS tsquery))",
}
_PG_TEXT = """SELECT {doc}, {rank}({words}, asked.query, {how}){texts} FROM {table} AS searched, {query} AS asked(query)
WHERE {words} @@ asked.query ORDER BY 2 DESC, 1 LIMIT %s"""
# An index is used only to order by distance alone, so an outer query orders equal distances by id.
_PG_VECTOR = """SELECT * FROM (SELECT {doc}, {vector} {operator} %s{texts} FROM {table} AS searched
WHERE {vector} IS NOT NULL ORDER BY 2 LIMIT %s) AS found ORDER BY 2, 1"""
# An HNSW index returns at most hnsw.ef_search rows, and the largest value of that setting is 1000. If the
# database already sets a sufficient value, it is kept.
_PG_EF_SEARCH = """SELECT set_config('hnsw.ef_search', least(1000, greatest(%s,
coalesce(nullif(current_setting('hnsw.ef_search', true), '')::int, 40)))::text, true)"""
_PG_SET = "SELECT set_config(%s, %s, true)"
# Errors after which the same statement may succeed: connections, resources, shutdown or time limit, conflicts.
_PG_TRANSIENT = ("08", "53", "57", "40", "58")
# A refused connection has no SQLSTATE, so permanent errors are recognized by words of PostgreSQL's messages.
_PG_FOR_GOOD = ("authentication", "password", "does not exist", "pg_hba.conf", "permission denied", "invalid", "SSL")


@dataclass(eq=False, repr=False)
class PostgresEngine(_VectorServer):
    """A table of PostgreSQL, searched by full text or by vectors of pgvector.

    ``url`` is postgresql://user@host:5432/database, without a password. The password is read from the environment
    variable ``auth_env`` or the file ``auth_file``, or found by PostgreSQL's own rules. ``table`` may be preceded by
    its schema and a dot. ``id_column`` has the document id, ``text_columns`` the text. With ``search="text"``,
    the words of ``tsvector_column`` are searched, or by default those of the text columns with the text search
    configuration ``language``. ``query_form`` is websearch, plain (all words) or any (at least one word); ``rank`` and
    ``normalization`` determine the score. With ``search="vector"``, ``vector_column`` is searched by ``distance``
    (cosine, dot or l2) for queries encoded by ``model``; ``probes`` is for an IVFFlat index. Each query is a read-only
    transaction of at most ``timeout_s`` seconds.
    """

    extra, label, _release = "postgres", "{table}-{search}", staticmethod(close_all)
    checked = "table=, id_column=, text_columns=, tsvector_column=, language=, vector_column= (pgvector) and model="
    url: str
    table: str
    search: Annotated[str, OneOf(("text", "vector"))] = "text"
    id_column: str = "id"
    text_columns: str = "text"
    tsvector_column: str | None = None
    language: str = "english"
    query_form: Annotated[str, OneOf(tuple(_PG_QUERIES))] = "websearch"
    rank: Annotated[str, OneOf(("ts_rank_cd", "ts_rank"))] = "ts_rank_cd"
    normalization: Annotated[int, Between(0, 63)] = 0
    vector_column: str = "embedding"
    distance: Annotated[str, OneOf(tuple(_PG_DISTANCES))] = "cosine"
    probes: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        parts = parse_url(self.url, ("postgresql", "postgres"))
        if parts is None:
            raise ConfigError("postgres: url= should be an address such as postgresql://host:5432/database")
        parameters = dict(parse_qsl(parts.query))
        if parts.password or any(map(is_secret_name, parameters)):
            raise ConfigError("postgres: url= should have no password; give the password with auth_env= or auth_file=")
        if not self._encodes and self.tsvector_column is None and not names_in(self.text_columns):
            raise ConfigError("postgres: there is no column to search; give tsvector_column= or text_columns=")
        # Without the user, to identify the server.
        self._server = f"{parts.netloc.rpartition('@')[2] or parameters.get('host', '')}/{parts.path.strip('/')}"

    def settings(self) -> Mapping[str, Any]:
        """The settings that determine the answers, with the server in place of the address."""
        return {**super().settings(), "url": self._server}

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Any]:
        """A connection for one thread. It is kept for the next request unless an error occurs."""
        try:
            connection = self._clients.pop()
        except IndexError:
            connection = self._open()
        try:
            yield connection
        except BaseException:
            connection.close()
            # The idle connections may be lost too, and each would cost an attempt.
            self.close()
            raise
        self._clients.append(connection)

    def _open(self) -> Any:
        psycopg, seconds = library("psycopg", "postgres"), math.ceil(self.timeout_s)
        options = {"connect_timeout": max(2, seconds), "tcp_user_timeout": 1000 * seconds, "application_name": "askew"}
        secret = {"password": self._auth.read()} if self._auth else {}
        connection = psycopg.connect(self.url, autocommit=True, prepare_threshold=None, **options, **secret)
        connection.read_only = True
        return connection

    def _search(self, client: Any, queries: Sequence[str], k: int) -> Sequence[Answer]:
        return [self._answer(client, value, k) for value in (self._vectors(queries) if self._encodes else queries)]

    def _answer(self, connection: Any, value: str | list[float], k: int) -> Answer:
        try:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.execute(_PG_SET, ["statement_timeout", str(math.ceil(self.timeout_s * 1000))])
                if self._encodes:
                    cursor.execute(_PG_EF_SEARCH, [k])
                if self._encodes and self.probes is not None:
                    cursor.execute(_PG_SET, ["ivfflat.probes", str(self.probes)])
                cursor.execute(self._statement, [str(value), k])
                rows = cursor.fetchall()
        except library("psycopg", "postgres").Error as error:
            # The query was refused, or took too long. Other errors concern all queries.
            if (error.sqlstate or "")[:2] in ("22", "54", "57") and not self._encodes and not connection.closed:
                return self._explained(error)
            raise
        constant, sign = (_PG_DISTANCES[self.distance][1], -1.0) if self._encodes else (0.0, 1.0)
        names = [self.id_column, *names_in(self.text_columns)]
        found = partial(self._found, id_field=self.id_column, texts=self.text_columns)
        return [found(dict(zip(names, [d, *t], strict=True)), score=constant + sign * s) for d, s, *t in rows]

    def _explained(self, error: Any, code: object = None) -> EngineError:
        state = getattr(error, "sqlstate", None)
        if state is None and any(word in str(error) for word in _PG_FOR_GOOD):
            advice = "the secret" if self._auth else "give a password with auth_env= or auth_file="
            said = "the server refused the connection; check the user and the database in url=, and"
            return EngineError(f"engine {self.id}: {said} {advice}")
        if (state or "08").startswith(_PG_TRANSIENT):
            return self._lost()
        # The name of the class says what is wrong, such as UndefinedTable.
        return super()._explained(error, f"{type(error).__name__}, SQLSTATE {state}")

    @cached_property
    def _statement(self) -> Any:
        """The search, with parameters for the query and k. Names of tables and columns are quoted."""
        sql = library("psycopg.sql", "postgres")

        def quoted(*names: str) -> Any:
            # A percent sign must be doubled in a statement with parameters.
            return sql.Identifier(*(name.replace("%", "%%") for name in names))

        texts = [quoted("searched", name) for name in names_in(self.text_columns)]
        parts = {
            "table": quoted(*self.table.split(".", 1)),
            "doc": sql.SQL("{}::text").format(quoted("searched", self.id_column)),
            "texts": sql.SQL("").join(sql.SQL(", {}::text").format(text) for text in texts),
        }
        if self._encodes:
            operator = sql.SQL(_PG_DISTANCES[self.distance][0])
            return sql.SQL(_PG_VECTOR).format(vector=quoted("searched", self.vector_column), operator=operator, **parts)
        # A literal, because PostgreSQL does not use an index on this expression with a parameter.
        language = sql.Literal(self.language.replace("%", "%%"))
        if self.tsvector_column is not None:
            words = quoted("searched", self.tsvector_column)
        else:
            joined = sql.SQL("concat_ws(' ', {})").format(sql.SQL(", ").join(texts))
            words = sql.SQL("to_tsvector({}, {})").format(language, texts[0] if len(texts) == 1 else joined)
        query, how = sql.SQL(_PG_QUERIES[self.query_form]).format(language), sql.Literal(self.normalization)
        return sql.SQL(_PG_TEXT).format(rank=sql.SQL(self.rank), words=words, how=how, query=query, **parts)


tantivy, lancedb, qdrant, milvus, postgres = map(
    EnginePlugin, (TantivyEngine, LanceDbEngine, QdrantEngine, MilvusEngine, PostgresEngine)
)
