"""OpenSearch and Elasticsearch, with several queries per _msearch."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from askew.core.errors import ConfigError
from askew.core.plugins import Positive
from askew.search.engines.client import Answer, EngineError, Found
from askew.search.engines.http import (
    MISSING,
    as_number,
    fill_value,
    follow,
    has_place,
    joined_text,
    names_in,
    read_body,
)
from askew.search.engines.ranker import EnginePlugin
from askew.search.engines.wire import (
    TRANSIENT,
    Authentication,
    SecretSource,
    Wire,
    checked_url,
    read_json,
    status_error,
)

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
        self,
        url: str,
        index_name: str,
        fields: str | None = None,
        body: Mapping[str, Any] | str | None = None,
        id_field: str | None = None,
        text_fields: str | None = None,
        auth_env: str | None = None,
        auth_file: str | None = None,
        auth_scheme: str = "basic",
        timeout_s: Positive = 30.0,
    ) -> None:
        parts = checked_url(url)
        if parts.query:
            raise ConfigError("opensearch: ⟨url⟩ should be the address of the cluster, without ?parameters")
        if (fields is None) == (body is None):
            raise ConfigError(
                "opensearch: give ⟨fields⟩ (the fields to search) or ⟨body⟩ (a search body), but not both"
            )
        self._wire, self._prefix = Wire(f"{parts.scheme}://{parts.netloc}", timeout_s), parts.path.strip("/")
        self._index, self._id_field = index_name, id_field
        multi_match = {"query": {"multi_match": {"query": "{query}", "fields": names_in(fields)}}}
        self._body = read_body(body) or multi_match
        if not has_place(self._body):
            raise ConfigError("opensearch: ⟨body⟩ has no placeholder for the query; put {query} into it")
        # Without boosts; a pattern of names has no text of its own.
        plain = ("" if "*" in name else name.partition("^")[0] for name in names_in(fields))
        self._texts = text_fields or ",".join(plain)
        self._auth = Authentication(SecretSource("auth", auth_env, auth_file), auth_scheme)
        self.id = f"opensearch-{parts.netloc}-{index_name}"

    def settings(self) -> Mapping[str, Any]:
        """The index, the search body and the fields."""
        return {
            "url": f"{self._wire.origin}/{self._prefix}",
            "index": self._index,
            "body": self._body,
            "id_field": self._id_field,
            "text_fields": self._texts,
        }

    def find(self, queries: Sequence[str], k: int) -> Sequence[Answer]:
        """The hits of each query, from one request."""
        needed = [*names_in(self._texts), *([self._id_field] if self._id_field else [])]
        defaults = {"size": k, "_source": needed, "track_total_hits": False}
        searches = [{**defaults, **fill_value(self._body, query, k)} for query in queries]
        lines = [json.dumps(line) for search in searches for line in ({"preference": _PREFERENCE}, search)]
        path = f"{self._prefix}/{quote(self._index, safe=',*')}/_msearch".lstrip("/")
        data = "".join(f"{line}\n" for line in lines).encode()
        reply = self._wire.send(f"/{path}", self._auth.headers(), data, "application/x-ndjson")
        if reply.status != 200:
            raise status_error(self._wire.origin, reply.status, reply.headers, bool(self._auth))
        responses = follow(read_json(reply, self._wire.origin), "responses")
        if not isinstance(responses, list):
            raise EngineError(f"{self._wire.origin}: the reply is not one of _msearch; check ⟨url⟩")
        return [self._answer(response) for response in responses]

    def credentials(self) -> Mapping[str, str]:
        """The headers with secrets."""
        return self._auth.headers()

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def _answer(self, response: Any) -> Answer:
        where = f"{self._wire.origin}: the index {self._index!r}"
        if (error := follow(response, "error")) is not MISSING:
            kind, status = follow(error, "type"), follow(response, "status")
            if kind == "index_not_found_exception":
                raise EngineError(f"{where} does not exist; check ⟨index_name⟩")
            is_busy = status in TRANSIENT
            shown = f", {kind}" if isinstance(kind, str) and _KIND.fullmatch(kind) else ""
            status = status if isinstance(status, int) else 400
            problem = f"{where} {'is busy' if is_busy else 'refused a query'} (status {status}{shown})"
            return EngineError(problem, transient=is_busy)
        if follow(response, "timed_out") is True or follow(response, "_shards.failed") not in (0, MISSING):
            return EngineError(f"{where}: some shards did not answer", transient=True)
        hits = follow(response, "hits.hits")
        if not isinstance(hits, list):
            return EngineError(f"{where}: the reply has no list of hits")
        return [self._found(hit) for hit in hits]

    def _found(self, hit: Any) -> Found:
        doc = follow(hit, f"_source.{self._id_field}") if self._id_field else follow(hit, "_id")
        if doc is MISSING or doc is None:
            raise EngineError(f"{self._wire.origin}: a hit has no {self._id_field or '_id'}; check ⟨id_field⟩")

        def value_of(name: str) -> Any:
            """The value of a field: a path of nested objects, or a name that contains dots."""
            nested = follow(hit, f"_source.{name}")
            return hit["_source"].get(name) if nested is MISSING and "_source" in hit else nested

        return Found(str(doc), as_number(follow(hit, "_score")), joined_text(self._texts, value_of))


opensearch = EnginePlugin(OpenSearchEngine)
