"""A small server that answers as OpenSearch documents it: ``_search``, ``_msearch`` and their errors."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from search_server import SearchServer


class OpenSearchServer(SearchServer):
    """One index of documents with the field ``text``. ``item_errors`` are the error statuses of the next searches."""

    def __init__(self, docs: Mapping[str, str], index: str = "docs", token: str | None = None) -> None:
        super().__init__(docs, token)
        self.index = index
        self.item_errors: deque[int] = deque()
        self.failing_shards = 0
        self.bodies: list[Any] = []

    def reply(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        """The status and the JSON value of an answer."""
        index, _, action = urlsplit(path).path.strip("/").rpartition("/")
        if action == "_msearch":
            return self._many(index, body)
        if action == "_search":
            found = self._one(index, json.loads(body or b"{}"))
            return int(found.get("status", 200)), found
        return 400, _error(400, "illegal_argument_exception", path)

    def _many(self, index: str, body: bytes) -> tuple[int, Any]:
        if not body.endswith(b"\n"):
            reason = "The msearch request must be terminated by a newline [\\n]"
            return 400, _error(400, "illegal_argument_exception", reason)
        lines = [json.loads(line) for line in body.splitlines()]
        pairs = zip(lines[::2], lines[1::2], strict=True)
        found = [self._one(header.get("index", index), search) for header, search in pairs]
        return 200, {"took": 1, "responses": [{"status": 200, **one} for one in found]}

    def _one(self, index: str, search: Any) -> dict[str, Any]:
        with self.lock:
            self.bodies.append(search)
            refused = self.item_errors.popleft() if self.item_errors else None
            failed, self.failing_shards = min(self.failing_shards, 1), max(0, self.failing_shards - 1)
        text = _text_of(search.get("query", {}))
        if refused is not None:
            kind = "rejected_execution_exception" if refused == 429 else "search_phase_execution_exception"
            return _error(refused, kind, f"cannot answer {text}")
        if index != self.index:
            return _error(404, "index_not_found_exception", f"no such index [{index}]")
        if text is None:
            return _error(400, "parsing_exception", f"unknown query {json.dumps(search)}")
        found = self.ask({"q": text, "size": search.get("size", 10)})
        shards = {"total": 2, "successful": 2 - failed, "skipped": 0, "failed": failed}
        hits = [
            {"_index": index, "_id": doc, "_score": score, "_source": {"text": text, "key": f"key-{doc}"}}
            for doc, score, text in found
        ]
        best = hits[0]["_score"] if hits else None
        return {"took": 1, "timed_out": False, "_shards": shards, "hits": {"max_score": best, "hits": hits}}


def _text_of(query: Any) -> str | None:
    """Return the text that a query of the query language searches for; None if the query is not supported."""
    for name in ("multi_match", "query_string", "simple_query_string"):
        if name in query:
            return str(query[name]["query"])
    if "match" in query:
        (value,) = query["match"].values()
        return str(value["query"] if isinstance(value, dict) else value)
    if "bool" in query:
        return _text_of((query["bool"].get("must") or query["bool"].get("should"))[0])
    return None


def _error(status: int, kind: str, reason: str) -> dict[str, Any]:
    cause = {"type": kind, "reason": reason}
    return {"error": {"root_cause": [cause], **cause}, "status": status}
