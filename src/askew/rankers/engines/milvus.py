"""Vector search in a collection of Milvus (extra ``milvus``), on a server or in a file of Milvus Lite."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from askew.core.errors import ConfigError
from askew.plugins.limits import Positive
from askew.rankers.engines.client import Answer, EngineError, Found
from askew.rankers.engines.opened import Opened, existing, found_in, is_remote, library, names_in, need_names
from askew.rankers.engines.plugin import EnginePlugin
from askew.rankers.engines.secret import SecretSource
from askew.rankers.engines.vectors import BATCH, QueryEncoder
from askew.rankers.engines.wire import checked_url

# These libraries log complete errors, including requests and replies, so their logs are turned off.
_LOGGERS = ("pymilvus", "milvus_lite", "grpc")
# Metrics that are distances. All others are similarities.
_DISTANCES = ("L2", "HAMMING", "JACCARD")
_NO_CONNECTION = 2
_TRANSIENT = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "RATE_LIMIT")
_HINTS = {
    "101": "the collection is not loaded; load it in Milvus before you search",
    "UNAUTHENTICATED": "give the token with auth_env= or auth_file=",
    "PERMISSION_DENIED": "this token has no permission to search",
}


class MilvusEngine:
    """A collection of Milvus, searched by vectors.

    ``place`` is the address of a server, such as http://localhost:19530, or the file of Milvus Lite. Queries are
    encoded by ``model`` and searched in ``vector_field`` with the metric of its index; ``params`` are the parameters of
    the search, such as nprobe. ``id_field`` has the document id, by default the primary key; ``text_fields`` have the
    text. The token of a server (a key, or user:password) is read from the environment variable ``auth_env`` or the file
    ``auth_file``.
    """

    batch_size = BATCH
    # The largest number of results that a server returns for one query.
    most = 16_384
    how_asked = frozenset({"auth_env", "auth_file", "timeout_s", "device"})

    def __init__(
        self, place: str, collection: str, model: str | None = None, vector_field: str = "vector",
        id_field: str | None = None, text_fields: str = "text", params: Mapping[str, Any] | None = None,
        database: str = "", revision: str | None = None, query_prompt: str = "", device: str | None = None,
        auth_env: str | None = None, auth_file: str | None = None, timeout_s: Positive = 30.0,
    ) -> None:  # fmt: skip
        self._remote = is_remote(place)
        if self._remote:
            checked_url(place)
        else:
            existing(place, "milvus", "place")
        self._place, self._collection, self._database = place, collection, database
        self._vector, self._id_field, self._texts = vector_field, id_field, text_fields
        self._params, self._timeout = dict(params or {}), timeout_s
        self._encoder = QueryEncoder("milvus", model, revision, query_prompt, device)
        self._auth = SecretSource("auth", auth_env, auth_file)
        self._opened = Opened(self._open)
        self.id = f"milvus-{collection}-{vector_field}"

    def settings(self) -> Mapping[str, Any]:
        """The collection, its fields and the parameters of the search."""
        return {
            "place": self._place, "database": self._database, "collection": self._collection, "vector": self._vector,
            "id_field": self._id_field, "text_fields": self._texts, "params": self._params, **self._encoder.settings(),
        }  # fmt: skip

    def find(self, queries: Sequence[str], k: int) -> Sequence[Answer]:
        """The entities of each query, from one request."""
        opened: _Collection = self._opened.get()
        fields = list(dict.fromkeys([opened.id_field, *names_in(self._texts)]))
        vectors = self._encoder.dense(queries)
        found = self._sent(
            lambda: opened.client.search(
                self._collection, data=vectors, limit=k, output_fields=fields, anns_field=self._vector,
                search_params={"params": self._params} if self._params else None, timeout=self._timeout,
            )
        )  # fmt: skip
        return [[self._found(hit, opened) for hit in hits] for hits in found]

    def close(self) -> None:
        """Close the connection."""
        self._opened.close()

    def _found(self, hit: Any, opened: _Collection) -> Found:
        return found_in(hit["entity"], opened.id_field, self._texts, opened.sign * hit["distance"], self.id)

    def _sent(self, request: Any) -> Any:
        errors, grpc = library("pymilvus.exceptions", "milvus"), library("grpc", "milvus")
        try:
            return request()
        except errors.MilvusException as error:
            # The message may quote the request.
            raise self._refused(error.code) from None
        except grpc.RpcError as error:
            raise self._refused(error.code()) from None

    def _refused(self, code: Any) -> EngineError:
        """The error for an error code, which is a number of Milvus or a named status of gRPC."""
        name = getattr(code, "name", str(code))
        if code == _NO_CONNECTION or name in _TRANSIENT:
            said = f"{self._place}: no connection, or no reply within {self._timeout:g} seconds; check that it runs"
            return EngineError(said, transient=True)
        hint = _HINTS.get(name) or "check the settings"
        return EngineError(f"{self._place}: the request was refused (code {name}); {hint}")

    def _open(self) -> _Collection:
        module = library("pymilvus", "milvus")
        if not self._remote:
            library("milvus_lite", "milvus")
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        try:
            client = self._sent(lambda: self._client(module))
        except EngineError:
            if self._remote:
                raise
            said = f"milvus: Milvus Lite cannot open {self._place}; check that no other process uses it"
            raise EngineError(said) from None
        try:
            return self._checked(client)
        except BaseException:
            client.close()
            raise

    def _client(self, module: Any) -> Any:
        place = self._place if self._remote else str(existing(self._place, "milvus", "place"))
        secret = {"token": self._auth.read()} if self._auth else {}
        return module.MilvusClient(place, db_name=self._database, timeout=self._timeout, **secret)

    def _checked(self, client: Any) -> _Collection:
        """Open the collection. It must exist, have all fields, and have vectors of the model's dimension."""
        where = f"milvus: the collection {self._collection!r} of {self._place}"
        if not self._sent(lambda: client.has_collection(self._collection)):
            raise ConfigError(f"{where} does not exist; check collection=")
        about = self._sent(lambda: client.describe_collection(self._collection))
        fields = {field["name"]: field for field in about["fields"]}
        id_field = self._id_field or next(name for name, field in fields.items() if field.get("is_primary"))
        need_names([self._vector, id_field, *names_in(self._texts)], list(fields), where)
        self._encoder.check_width(fields[self._vector].get("params", {}).get("dim"), where)
        index = self._sent(lambda: client.describe_index(self._collection, self._vector)) or {}
        if not self._remote:
            # Milvus Lite loads the collection into this process. On a server nothing is changed.
            self._sent(lambda: client.load_collection(self._collection))
        return _Collection(client, id_field, -1.0 if index.get("metric_type") in _DISTANCES else 1.0)

    def __repr__(self) -> str:
        return f"MilvusEngine({self.id!r})"


class _Collection:
    """An open collection, the field of its document ids, and the sign that converts a result to a score."""

    def __init__(self, client: Any, id_field: str, sign: float) -> None:
        self.client, self.id_field, self.sign = client, id_field, sign

    def close(self) -> None:
        """Close the connection."""
        self.client.close()


milvus = EnginePlugin(MilvusEngine)
