"""The time limit of a request holds however slowly its reply arrives, and closes the connection."""

import contextlib
import itertools
import socket
import threading

import pytest

from askew.search.engines.client import EngineError
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
