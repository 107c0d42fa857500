"""A real HTTP server for the tests: it answers as a script says, and remembers what it was asked."""

import json
import socket
import struct
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from askew.core.protocols import Passage, QueryBatch

KEY = "sk-secret-0123456789"


def completion(text: str | None, finish: str = "stop", **more: Any) -> bytes:
    """The body of a good answer."""
    message = {"role": "assistant", "content": text, **more}
    usage = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}).encode()


@dataclass
class Reply:
    """What the server does with one request. ``cut``: it breaks the connection in the middle."""

    body: bytes = b"{}"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    sleep: float = 0.0
    cut: bool = False


def says(text: str | None, **more: Any) -> Reply:
    return Reply(completion(text, **more))


def fails(status: int, **headers: str) -> Reply:
    body = json.dumps({"error": {"message": f"no luck with {KEY}", "code": "some_code"}}).encode()
    return Reply(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


def query_of(body: dict[str, Any]) -> str:
    """The query that a request of ours is about."""
    text = body["messages"][-1]["content"]
    return text.rpartition("Query: ")[2].partition("\n")[0]


def echo(body: dict[str, Any], nth: int) -> Reply:
    """Two queries that depend on nothing but the request."""
    query, seed = query_of(body), body.get("seed")
    return says(json.dumps({"queries": [f"{query} one {seed}", f"{query} two"]}))


class LlmServer(ThreadingHTTPServer):
    """Answers by ``script(body, nth)``, where nth says how often this very body was seen before."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, ssl_context=None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.scheme = "http" if ssl_context is None else "https"
        if ssl_context is not None:
            self.socket = ssl_context.wrap_socket(self.socket, server_side=True)
        self.script = echo
        self.lock = threading.Lock()
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.times_seen: Counter[str] = Counter()
        self.busy = self.most_busy = 0
        self.leaving = threading.Event()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request, client_address):
        """A client that goes away is nothing to talk about."""

    def note(self, path, headers, raw) -> tuple[dict[str, Any], int]:
        body = json.loads(raw)
        with self.lock:
            self.bodies.append(body)
            self.headers.append({name.lower(): value for name, value in headers.items()})
            self.paths.append(path)
            self.times_seen[raw.decode()] += 1
            return body, self.times_seen[raw.decode()] - 1

    def work(self, step: int) -> None:
        with self.lock:
            self.busy += step
            self.most_busy = max(self.most_busy, self.busy)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: LlmServer

    def do_POST(self):
        self.server.work(+1)
        try:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            body, nth = self.server.note(self.path, self.headers, raw)
            reply = self.server.script(body, nth)
            # Asleep until it is time, or until the test is over.
            self.server.leaving.wait(reply.sleep) if reply.sleep else None
        finally:
            # Counted before the answer leaves: afterwards the client may already have sent the next request.
            self.server.work(-1)
        self.send(reply)

    def send(self, reply: Reply) -> None:
        headers = {"Content-Type": "application/json", "Content-Length": str(len(reply.body)), **reply.headers}
        head = f"HTTP/1.1 {reply.status} So\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n"
        if reply.cut:
            whole = head.encode() + reply.body
            self.connection.sendall(whole[: len(whole) // 2])
            # Without lingering, closing is a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
        else:
            self.connection.sendall(head.encode() + reply.body)

    def log_message(self, *args):
        """Silent."""


def started(ssl_context=None) -> LlmServer:
    server = LlmServer(ssl_context)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server


def ended(server: LlmServer) -> None:
    server.leaving.set()
    server.shutdown()
    server.server_close()


def asked_of(*texts: str, passages: tuple[str, ...] | None = None) -> QueryBatch:
    ids = tuple(f"q{i}" for i in range(len(texts)))
    found = None
    if passages is not None:
        each = tuple(Passage(f"d{i}", text, 1.0) for i, text in enumerate(passages))
        found = tuple(each for _ in texts)
    return QueryBatch(ids, tuple(texts), found)


def wait_until(ready, seconds: float = 20.0) -> None:
    """Until something is so; the limit only ends a test that would hang."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.002)
