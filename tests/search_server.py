"""A small search engine over HTTP for tests: it searches a few documents, records the queries, and can fail.

    with SearchServer(TOY_DOCS) as server:
        ranker = http(f"{server.url}/search?q={{query}}&size={{k}}")

``/search?q=QUERY&size=K`` returns ``{"hits": [{"id": ..., "score": ..., "text": ...}]}``. If ``token`` is given,
requests must have it as the value of the header Authorization.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class ToyEngine:
    """Ranks documents by how often they contain the words of a query; ties keep the given order."""

    def __init__(self, docs: Mapping[str, str]) -> None:
        self.docs = dict(docs)
        self._words = {doc: Counter(text.lower().split()) for doc, text in self.docs.items()}

    def search(self, query: str, k: int) -> list[tuple[str, float, str]]:
        """The k best documents: id, score and text."""
        wanted = query.lower().split()
        scored = [(doc, float(sum(words[word] for word in wanted))) for doc, words in self._words.items()]
        found = sorted((one for one in scored if one[1] > 0), key=lambda one: -one[1])
        return [(doc, score, self.docs[doc]) for doc, score in found[:k]]


@dataclass(frozen=True)
class ServerFault:
    """A failed answer: a status with headers, or a connection that is closed without an answer."""

    status: int = 503
    headers: Mapping[str, str] = field(default_factory=dict)
    closes: bool = False


class SearchServer:
    """The server, on a free local port, for the duration of the ``with`` block.

    ``queries`` has every query that was answered. ``failures`` are sent first, one for each request. If
    ``answers_left`` is set, requests beyond this number wait until the server is closed, as with an engine that hangs.
    """

    def __init__(self, docs: Mapping[str, str], token: str | None = None) -> None:
        self.engine, self.token = ToyEngine(docs), token
        self.queries: list[str] = []
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.failures: deque[ServerFault] = deque()
        self.answers_left: int | None = None
        self.busy = self.most_busy = 0
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self._http = _Listener(("127.0.0.1", 0), _Handler)
        self._http.owner = self

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> SearchServer:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()

    def reply(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        """The status and the JSON value of an answer."""
        parts = urlsplit(path)
        given = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        if parts.path != "/search":
            return 404, {"error": "no such path"}
        if body:
            given |= json.loads(body)
        return 200, {"hits": [dict(zip(("id", "score", "text"), one, strict=True)) for one in self.ask(given)]}

    def ask(self, given: Mapping[str, Any]) -> list[tuple[str, float, str]]:
        """Search for one query and record it."""
        found = self.engine.search(str(given["q"]), int(given.get("size", 10)))
        with self.lock:
            self.queries.append(str(given["q"]))
        return found


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    owner: SearchServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report nothing if a client disconnects."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def do_GET(self) -> None:
        """Search."""
        self._answer(b"")

    def do_POST(self) -> None:
        """Search by a body."""
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _answer(self, body: bytes) -> None:
        owner = self.server.owner
        headers = {name.lower(): value for name, value in self.headers.items()}
        with owner.lock:
            owner.requests.append((self.command, self.path, headers))
            owner.busy += 1
            owner.most_busy = max(owner.most_busy, owner.busy)
            failure = owner.failures.popleft() if owner.failures else None
            if owner.answers_left is not None and failure is None:
                owner.answers_left -= 1
            hangs = owner.answers_left is not None and owner.answers_left < 0
        if hangs:
            owner.closing.wait()
        try:
            status, value, more = self._decided(owner, failure, headers, body)
        finally:
            with owner.lock:
                owner.busy -= 1
        if (failure is not None and failure.closes) or hangs:
            self.close_connection = True
            return
        self._send(status, json.dumps(value).encode(), more)

    def _decided(
        self, owner: SearchServer, failure: ServerFault | None, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Any, Mapping[str, str]]:
        if failure is not None:
            # The error quotes the request and its secrets on purpose: askew must not show any of it.
            return failure.status, {"error": f"{self.path} {body!r} {headers.get('authorization')}"}, failure.headers
        if owner.token is not None and headers.get("authorization") != owner.token:
            return 401, {"error": f"{self.path} {headers.get('authorization')}"}, {}
        return *owner.reply(self.command, self.path, body), {}

    def _send(self, status: int, body: bytes, more: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""
