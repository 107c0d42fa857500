"""OpenSearch and Elasticsearch through opensearch-py (extra ``opensearch``), with several queries per _msearch."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from askew.core.errors import ConfigError, MissingExtra
from askew.plugins.limits import Positive
from askew.rankers.engines.client import Answer, EngineError, Found
from askew.rankers.engines.plugin import EnginePlugin
from askew.rankers.engines.secret import Authentication, SecretSource
from askew.rankers.engines.shape import MISSING, fill_value, follow, has_place, joined_text, read_body
from askew.rankers.engines.wire import checked_url, is_transient, trusted

# Only the type of an error is shown, which is a name of the engine. All other parts of an error may quote the query.
_KIND = re.compile(r"[a-z_]{3,60}_exception")
# The same preference selects the same shard copies. Other copies may order equal scores differently.
_PREFERENCE = "askew"


class OpenSearchEngine:
    """An index of OpenSearch or Elasticsearch, searched with their query language.

    ``fields`` are searched with a multi_match query; they are separated by commas and may have boosts, as in
    title^2,text. Or give a search ``body``, as JSON or a table, with the placeholders ``{query}`` and ``{k}``. The
    document id is ``_id``, or the field ``id_field``. The text is that of ``text_fields``, by default ``fields``. The
    secret is read from the environment variable ``auth_env`` or the file ``auth_file``; ``auth_scheme`` is basic
    (user:password), bearer, apikey or header:NAME. Partial results of some shards are an error, and the request is
    retried.
    """

    batch_size = 20
    # The default of index.max_result_window.
    most = 10_000
    how_asked = frozenset({"auth_env", "auth_file", "auth_scheme", "timeout_s"})

    def __init__(
        self, url: str, index_name: str, fields: str | None = None, body: Mapping[str, Any] | str | None = None,
        id_field: str | None = None, text_fields: str | None = None, auth_env: str | None = None,
        auth_file: str | None = None, auth_scheme: str = "basic", timeout_s: Positive = 30.0,
    ) -> None:  # fmt: skip
        parts = checked_url(url)
        if parts.query:
            raise ConfigError("opensearch: url= should be the address of the cluster, without ?parameters")
        if (fields is None) == (body is None):
            raise ConfigError("opensearch: give fields= (the fields to search) or body= (a search body), but not both")
        self._origin, self._prefix = f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")
        self._index, self._id_field, self._timeout = index_name, id_field, timeout_s
        self._body = read_body(body) or _multi_match(fields or "")
        if not has_place(self._body):
            raise ConfigError("opensearch: body= has no placeholder for the query; put {query} into it")
        self._texts = text_fields or ",".join(_plain(name) for name in _names(fields or ""))
        self._auth = Authentication(SecretSource("auth", auth_env, auth_file), auth_scheme)
        self.id = f"opensearch-{parts.netloc}-{index_name}"
        self._client: Any = None
        self._lock = threading.Lock()

    def settings(self) -> Mapping[str, Any]:
        """The index, the search body and the fields."""
        return {
            "url": f"{self._origin}/{self._prefix}", "index": self._index, "body": self._body,
            "id_field": self._id_field, "text_fields": self._texts,
        }  # fmt: skip

    def find(self, queries: Sequence[str], k: int) -> Sequence[Answer]:
        """The hits of each query, from one request."""
        lines: list[Any] = []
        for query in queries:
            lines += [{"preference": _PREFERENCE}, self._search(query, k)]
        reply = self._sent(lines)
        responses = reply.get("responses") if isinstance(reply, Mapping) else None
        if not isinstance(responses, list):
            raise EngineError(f"{self._origin}: the reply is not one of _msearch; check url=")
        return [self._answer(one) for one in responses]

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()

    def _search(self, query: str, k: int) -> dict[str, Any]:
        needed = [*_names(self._texts), *([self._id_field] if self._id_field else [])]
        defaults = {"size": k, "_source": needed, "track_total_hits": False}
        return {**defaults, **fill_value(self._body, query, k)}

    def _answer(self, response: Any) -> Answer:
        error, status = follow(response, "error"), follow(response, "status")
        if error is not MISSING:
            return self._refused(error, status if isinstance(status, int) else 400)
        if follow(response, "timed_out") is True or follow(response, "_shards.failed") not in (0, MISSING):
            return EngineError(f"{self._origin}: some shards of {self._index} did not answer", transient=True)
        hits = follow(response, "hits.hits")
        if not isinstance(hits, list):
            return EngineError(f"{self._origin}: the reply has no list of hits")
        return [self._found(hit) for hit in hits]

    def _refused(self, error: Any, status: int) -> EngineError:
        kind = follow(error, "type")
        if kind == "index_not_found_exception":
            raise EngineError(f"{self._origin}: there is no index {self._index!r}; check index_name=")
        shown = f", {kind}" if isinstance(kind, str) and _KIND.fullmatch(kind) else ""
        what = "is busy" if is_transient(status) else "refused a query"
        return EngineError(f"{self._origin}: {self._index} {what} (status {status}{shown})", is_transient(status))

    def _found(self, hit: Any) -> Found:
        doc = follow(hit, f"_source.{self._id_field}") if self._id_field else follow(hit, "_id")
        if doc is MISSING or doc is None:
            raise EngineError(f"{self._origin}: a hit has no {self._id_field or '_id'}; check id_field=")
        score = follow(hit, "_score")
        text = joined_text(self._texts, lambda name: _of_source(hit, name))
        return Found(str(doc), float(score) if isinstance(score, int | float) else None, text)

    def _sent(self, lines: Sequence[Any]) -> Any:
        client, errors = self._opened(), _library().exceptions
        try:
            return client.msearch(body=lines, index=self._index)
        except errors.SSLError:
            raise ConfigError(
                f"{self._origin}: its certificate is not trusted, or it does not use TLS; set SSL_CERT_FILE to a file "
                "with the certificate of your authority"
            ) from None
        except errors.ConnectionTimeout:
            said = f"{self._origin}: no reply within {self._timeout:g} seconds (timeout_s=)"
            raise EngineError(said, transient=True) from None
        except errors.ConnectionError:
            raise EngineError(f"{self._origin}: no connection; check that the engine runs", transient=True) from None
        except errors.SerializationError:
            raise EngineError(f"{self._origin}: the reply is not JSON; check url=") from None

    def _opened(self) -> Any:
        """The client, created at the first request."""
        with self._lock:
            if self._client is None:
                parts = checked_url(self._origin)
                host = {"host": parts.hostname, "port": parts.port or (443 if parts.scheme == "https" else 80)}
                secure = {"use_ssl": True, "ssl_context": trusted()} if parts.scheme == "https" else {}
                self._client = self._made([{**host, "url_prefix": self._prefix}], secure)
            return self._client

    def _made(self, hosts: list[dict[str, Any]], secure: Mapping[str, Any]) -> Any:
        library = _library()
        from askew.rankers.engines.opensearch_connection import QuietConnection

        # Called for each request, so that no object stores the secret.
        auth = (lambda *_: self._auth.headers()) if self._auth else None
        return library.OpenSearch(
            hosts, connection_class=QuietConnection, http_auth=auth, timeout=self._timeout, max_retries=0,
            pool_maxsize=32, **secure,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"OpenSearchEngine({self.id!r})"


def _multi_match(fields: str) -> dict[str, Any]:
    return {"query": {"multi_match": {"query": "{query}", "fields": _names(fields)}}}


def _names(fields: str) -> list[str]:
    return [name.strip() for name in fields.split(",") if name.strip()]


def _plain(field: str) -> str:
    """The name of a field without its boost; empty for a pattern."""
    return "" if "*" in field else field.partition("^")[0]


def _of_source(hit: Any, name: str) -> Any:
    """The value of a field: a path of nested objects, or a name that contains dots."""
    found = follow(hit, f"_source.{name}")
    return follow(hit, "_source").get(name) if found is MISSING and "_source" in hit else found


def _library() -> Any:
    try:
        import opensearchpy
    except ImportError:
        raise MissingExtra("the ranker 'opensearch'", "opensearch") from None
    return opensearchpy


opensearch = EnginePlugin(OpenSearchEngine)
