"""The time limit of a request holds however slowly its reply arrives, and closes the connection."""

import contextlib
import itertools
import socket
import threading

import pytest

from askew.core.pace import RateLimit
from askew.rewrite.llm_client import ChatClient, Endpoint
from askew.search.engines.client import EngineError
from askew.search.engines.databases import QdrantEngine
from askew.search.engines.http import HttpEngine
from askew.search.engines.opensearch import OpenSearchEngine
from askew.search.engines.wire import Wire

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
# What a server sends first, and then again and again, a little more each time.
DRIPS = {
    "status line": (b"HTTP/1.1 200 ", itertools.repeat(b"K")),
    "heads": (HEAD + b"X-Long: ", itertools.repeat(b"x")),
    "body": (HEAD + b"Content-Length: 90000\r\n\r\n", itertools.repeat(b" ")),
    "size of a chunk": (CHUNKED, itertools.repeat(b"0")),
    "chunks": (CHUNKED, itertools.repeat(b"1\r\n \r\n")),
    "trailers": (CHUNKED + b"0\r\n", itertools.repeat(b"X: y\r\n")),
    "endless continue": (b"", itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n")),
}


@pytest.fixture
def dripping():
    """A server that drips a reply for 20 seconds, and says when its client has closed the connection."""
    listening = socket.create_server(("127.0.0.1", 0))
    closed, over = threading.Event(), threading.Event()

    def serve(first, more):
        accepted, _ = listening.accept()
        with accepted, contextlib.suppress(OSError):
            accepted.recv(65536)
            accepted.sendall(first)
            for _ in range(400):
                if over.wait(0.05):
                    return
                accepted.sendall(next(more))
            return
        closed.set()

    threads = []

    def start(kind):
        threads.append(threading.Thread(target=serve, args=DRIPS[kind]))
        threads[0].start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}", closed

    yield start
    over.set()
    threads[0].join()
    listening.close()


@pytest.mark.parametrize("kind", DRIPS)
def test_a_reply_in_drops_is_given_up_at_the_limit_and_its_connection_is_closed(kind, dripping):
    url, closed = dripping(kind)
    with pytest.raises(EngineError) as error:
        Wire(url, timeout_s=0.3).send("/", {})
    assert error.value.transient and "0.3 seconds" in str(error.value)
    assert closed.wait(15)


CLIENTS = {
    "llm": lambda url: ChatClient(
        Endpoint(f"{url}/v1", timeout_s=0.3, attempts=1), RateLimit(None), threading.Event()
    ).ask({}, ""),
    "http": lambda url: HttpEngine(f"{url}/?q={{query}}", hits_at="hits", id_at="id", timeout_s=0.3).find(["x"], 1),
    "opensearch": lambda url: OpenSearchEngine(url, "index", "text", timeout_s=0.3).find(["x"], 1),
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", ["heads", "chunks", "endless continue"])
def test_every_client_of_http_gives_up_at_its_limit(client, kind, dripping):
    url, closed = dripping(kind)
    with pytest.raises(EngineError) as error:
        CLIENTS[client](url)
    assert error.value.transient
    assert closed.wait(15)


def test_a_library_of_a_database_that_waits_for_every_drop_is_given_up_at_the_limit(monkeypatch):
    over = threading.Event()
    engine = QdrantEngine("http://127.0.0.1:1", "docs", model="m", timeout_s=0.3)
    monkeypatch.setattr(engine, "_open", lambda: contextlib.closing(over))
    monkeypatch.setattr(engine, "_vectors", lambda texts: texts)
    monkeypatch.setattr(engine, "_rows", lambda client, query, k: [over.wait(20)])
    with pytest.raises(EngineError) as error:
        engine.find(["x"], 1)
    over.set()
    assert (error.value.transient, error.value.code) == (True, "no-connection")
