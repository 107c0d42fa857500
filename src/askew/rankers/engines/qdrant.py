"""Dense or sparse vector search in a collection of Qdrant (extra ``qdrant``), on a server or in a local folder."""

from __future__ import annotations

import contextlib
import math
import threading
import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from weakref import WeakValueDictionary

from askew.core.errors import ConfigError
from askew.plugins.limits import Count, OneOf, Positive
from askew.rankers.engines.client import Answer, EngineError, Found
from askew.rankers.engines.opened import Opened, existing, found_in, is_remote, library, names_in
from askew.rankers.engines.plugin import EnginePlugin
from askew.rankers.engines.secret import SecretSource
from askew.rankers.engines.vectors import BATCH, QueryEncoder
from askew.rankers.engines.wire import Reply, checked_url, status_error

# A local folder can be opened only once, so all engines of this process share one client and call it in turn.
_folders: WeakValueDictionary[str, _Folder] = WeakValueDictionary()
_folders_lock = threading.RLock()


class _Folder:
    """The client of a local folder, closed when no engine uses it any more."""

    def __init__(self, client: Any) -> None:
        self.client = client
        weakref.finalize(self, client.close)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def close(self) -> None:
        """Do nothing: other engines may use the client."""


class QdrantEngine:
    """A collection of Qdrant, searched by dense or sparse vectors.

    ``place`` is the address of a server, such as http://localhost:6333, or the folder of Qdrant's local mode, which
    reads points with pickle: open only your own folders. Queries are encoded by ``model``, which is a sparse encoder if
    ``kind`` is sparse. ``vector_name`` is the name of the vector if points have several. ``exact`` searches without the
    index; ``hnsw_ef`` is the search parameter of the index. ``id_field`` is the payload field with the document id, by
    default the id of the point; ``text_fields`` are the payload fields with the text. The key of a server is read from
    the environment variable ``auth_env`` or the file ``auth_file``.
    """

    batch_size = BATCH
    how_asked = frozenset({"auth_env", "auth_file", "timeout_s", "device"})

    def __init__(
        self, place: str, collection: str, model: str | None = None,
        kind: Annotated[str, OneOf(("dense", "sparse"))] = "dense", vector_name: str | None = None,
        id_field: str | None = None, text_fields: str = "text", exact: bool = False, hnsw_ef: Count | None = None,
        revision: str | None = None, query_prompt: str = "", device: str | None = None, auth_env: str | None = None,
        auth_file: str | None = None, timeout_s: Positive = 30.0,
    ) -> None:  # fmt: skip
        self._remote = is_remote(place)
        if not self._remote:
            existing(place, "qdrant", "place")
            self.most_threads = 1
        elif checked_url(place).query:
            raise ConfigError("qdrant: place= should be the address of the server, without ?parameters")
        if kind == "sparse" and vector_name is None:
            raise ConfigError("qdrant: sparse vectors need a name; give vector_name=")
        self._place, self._collection, self._vector, self._sparse = place, collection, vector_name, kind == "sparse"
        self._id_field, self._texts, self._timeout = id_field, text_fields, timeout_s
        self._tuning = {"exact": exact, "hnsw_ef": hnsw_ef}
        self._encoder = QueryEncoder("qdrant", model, revision, query_prompt, device, kind)
        self._auth = SecretSource("auth", auth_env, auth_file)
        self._opened = Opened(self._open)
        self.id = f"qdrant-{collection}-{vector_name or 'vector'}"

    def settings(self) -> Mapping[str, Any]:
        """The collection, its vectors and payload."""
        return {
            "place": self._place, "collection": self._collection, "vector": self._vector, "id_field": self._id_field,
            "text_fields": self._texts, **self._tuning, **self._encoder.settings(),
        }  # fmt: skip

    def find(self, queries: Sequence[str], k: int) -> Sequence[Answer]:
        """The points of each query, from one request."""
        client = self._opened.get()
        models = library("qdrant_client.models", "qdrant")
        payload = [*names_in(self._texts), *([self._id_field] if self._id_field else [])]
        requests = [
            models.QueryRequest(
                query=vector, using=self._vector, limit=k, with_payload=payload or False,
                params=models.SearchParams(**self._tuning),
            )
            for vector in self._encoded(queries, models)
        ]  # fmt: skip
        answers = self._sent(lambda: client.query_batch_points(self._collection, requests))
        return [[self._found(point) for point in answer.points] for answer in answers]

    def close(self) -> None:
        """Close the client."""
        self._opened.close()

    def _encoded(self, queries: Sequence[str], models: Any) -> list[Any]:
        if not self._sparse:
            return list(self._encoder.dense(queries))
        return [models.SparseVector(indices=terms, values=values) for terms, values in self._encoder.sparse(queries)]

    def _found(self, point: Any) -> Found:
        row = dict(point.payload or {})
        if self._id_field is None:
            return found_in({**row, "": point.id}, "", self._texts, point.score, self.id)
        return found_in(row, self._id_field, self._texts, point.score, self.id)

    def _sent(self, request: Any) -> Any:
        errors = library("qdrant_client.http.exceptions", "qdrant")
        try:
            with contextlib.nullcontext() if self._remote else _folders_lock:
                return request()
        except errors.UnexpectedResponse as error:
            headers = {name.lower(): value for name, value in dict(error.headers or {}).items()}
            raise status_error(self._place, Reply(error.status_code or 500, headers, b""), bool(self._auth)) from None
        except errors.ResponseHandlingException:
            said = f"{self._place}: no reply within {self._timeout:g} seconds, or no connection; check that it runs"
            raise EngineError(said, transient=True) from None

    def _open(self) -> Any:
        module = library("qdrant_client", "qdrant")
        client = self._client(module) if self._remote else self._folder(module)
        self._check(client)
        return client

    def _folder(self, module: Any) -> _Folder:
        path = str(existing(self._place, "qdrant", "place").resolve())
        with _folders_lock:
            opened = _folders.get(path)
            if opened is None:
                try:
                    opened = _folders[path] = _Folder(module.QdrantClient(path=path))
                except RuntimeError:
                    raise EngineError(
                        f"qdrant: {path} is in use by another process; close it in that process"
                    ) from None
            return opened

    def _client(self, module: Any) -> Any:
        # Called for each request, so that no object stores the key.
        auth = {"auth_token_provider": self._auth.read} if self._auth else {}
        with warnings.catch_warnings():
            # The library warns if a key is sent without TLS, which is usual for a local server.
            warnings.simplefilter("ignore")
            return module.QdrantClient(
                url=self._place, timeout=math.ceil(self._timeout), check_compatibility=False, **auth
            )

    def _check(self, client: Any) -> None:
        """Raise an error if the collection or the vector is missing, or if the encoder has another dimension."""
        where = f"qdrant: the collection {self._collection!r} of {self._place}"
        if not self._sent(lambda: client.collection_exists(self._collection)):
            raise ConfigError(f"{where} does not exist; check collection=")
        params = self._sent(lambda: client.get_collection(self._collection)).config.params
        vectors = (params.sparse_vectors or {}) if self._sparse else params.vectors
        named = vectors if isinstance(vectors, Mapping) else {None: vectors}
        if self._vector not in named:
            there = ", ".join(sorted(map(str, named))) or "none"
            raise ConfigError(f"{where} has no vector {self._vector!r} of this kind, it has {there}; set vector_name=")
        if not self._sparse:
            self._encoder.check_width(named[self._vector].size, where)

    def __repr__(self) -> str:
        return f"QdrantEngine({self.id!r})"


qdrant = EnginePlugin(QdrantEngine)
