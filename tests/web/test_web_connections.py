"""Connections below the application: late request heads, caps, who is closed first, what the log says of it."""

import asyncio
import contextlib
import errno
import http.client
import json
import logging
import socket
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.ui.web.connections import EVERY, LEAST, RESERVE, Connections, OncePerMinute, client_key
from askew.ui.web.guard import Access, Guard, Rate
from askew.ui.web.settings import ServerLimits, Settings
from conftest import running

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
WHOLE = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
LARGE = b"x" * (8 << 20)


class One:
    """A connection that only remembers what was done to it."""

    def __init__(self, address="10.0.0.1", left=0):
        self.address, self.left, self.head_since, self.ended = address, left, None, ""

    def unsent(self):
        return self.left

    def late(self):
        self.ended = "late"

    def end(self):
        self.ended = "ended"


async def answers(scope, receive, send):
    """The smallest application; /large is more than a socket holds."""
    if scope["type"] != "http":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = LARGE if scope["path"] == "/large" else b"ok"
    head = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def served(**limits):
    with running(Settings(limits=ServerLimits(**limits)), answers) as url:
        yield int(url.rpartition(":")[2])


def connect(port, address="127.0.0.1"):
    one = socket.create_connection(("127.0.0.1", port), timeout=20, source_address=(address, 0))
    return contextlib.closing(one)


def status(one):
    """The code of the answer; 0 where the connection is closed."""
    reply = http.client.HTTPResponse(one)
    with contextlib.suppress(ConnectionError), contextlib.closing(reply):
        reply.begin()
        reply.read()
        return reply.status
    return 0


def test_half_a_request_head_is_closed_in_time_and_others_are_answered_meanwhile():
    with served(head_seconds=1.0) as port, contextlib.ExitStack() as stack:
        slow = [stack.enter_context(connect(port)) for _ in range(20)]
        for one in slow:
            one.sendall(HALF)
        with connect(port) as other:
            other.sendall(WHOLE)
            assert status(other) == 200
        assert [status(one) for one in slow] == [408] * 20
        assert [status(one) for one in slow] == [0] * 20


def test_a_head_that_trickles_in_does_not_gain_time():
    with served(head_seconds=1.0) as port, connect(port) as slow:
        slow.sendall(HALF)
        begun = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - begun < 20:
                slow.sendall(b"x")
                time.sleep(0.1)
        assert time.monotonic() - begun < 20


def test_the_second_request_of_a_connection_has_to_come_in_time_too():
    with served(head_seconds=0.5) as port, connect(port) as one:
        one.sendall(WHOLE)
        assert status(one) == 200
        one.sendall(HALF)
        assert status(one) == 408


def test_a_connection_that_was_answered_may_be_idle_for_longer_than_a_head_may_take():
    with served(head_seconds=0.2) as port, connect(port) as one:
        one.sendall(WHOLE)
        assert status(one) == 200
        time.sleep(1.5)
        one.sendall(WHOLE)
        assert status(one) == 200


def test_a_connection_that_sends_nothing_is_closed():
    with served(head_seconds=0.5) as port, connect(port) as silent:
        assert status(silent) == 0


def test_an_answer_that_nobody_takes_is_given_up():
    with served(stall_seconds=0.5) as port, connect(port) as one:
        one.sendall(WHOLE.replace(b"/ ", b"/large ", 1))
        time.sleep(2.5)
        taken = 0
        with contextlib.suppress(ConnectionError):
            while part := one.recv(1 << 20):
                taken += len(part)
        assert taken < len(LARGE)


@pytest.mark.parametrize("limits", [{"connections": 5}, {"per_address": 5}])
def test_a_new_connection_is_answered_where_all_others_only_wait(limits):
    with served(**limits) as port, contextlib.ExitStack() as stack:
        slow = [stack.enter_context(connect(port)) for _ in range(5)]
        for one in slow:
            one.sendall(HALF)
        with connect(port) as other:
            other.sendall(WHOLE)
            assert status(other) == 200
        assert status(slow[0]) == 0


def test_the_connection_that_has_waited_longest_is_closed_and_one_at_work_never():
    books = Connections(ServerLimits(connections=3, per_address=3))
    first, second, busy = One("a"), One("b"), One("c")
    for one in (first, second, busy):
        books.add(one)
    books.works(busy)
    books.works(first)
    books.waits(first)  # answered: it waits anew, so the second has waited for longer
    fourth = One("d")
    assert books.add(fourth) and second.ended and not first.ended
    books.works(first)
    books.works(fourth)
    assert not books.add(One("e"))
    assert not (first.ended or busy.ended or fourth.ended)


def test_an_address_makes_room_for_itself_and_not_at_the_cost_of_others():
    books = Connections(ServerLimits(connections=10, per_address=2))
    other, *mine = One("a"), One("b"), One("b")
    for one in (other, *mine):
        books.add(one)
    assert books.add(One("b")) and mine[0].ended and not other.ended


def test_a_proxy_may_have_as_many_connections_as_there_are():
    books = Connections(ServerLimits(connections=10, per_address=1), proxies=["10.0.0.0/8"])
    assert all(books.add(One("10.1.2.3")) for _ in range(4))
    books.add(one := One("11.0.0.1"))
    books.works(one)
    assert not books.add(One("11.0.0.1")) and not books.is_proxy("unknown")


@given(
    st.lists(st.tuples(st.sampled_from(["come", "wait", "work", "go"]), st.integers(0, 5), st.sampled_from("abc"))),
    st.integers(1, 6), st.integers(1, 4),
)  # fmt: skip
def test_there_are_never_more_than_may_be(events, most, per_address):
    books, here = Connections(ServerLimits(connections=most, per_address=per_address)), []
    for what, at, address in events:
        if what == "come" and books.add(one := One(address)):
            here = [*(other for other in here if not other.ended), one]
        elif here and what != "come":
            one = here[at % len(here)]
            {"wait": books.waits, "work": books.works, "go": books.remove}[what](one)
            here = [each for each in here if what != "go" or each is not one]
        assert len(books) == len(here) <= most
        assert all(sum(one.address == name for one in here) <= per_address for name in "abc")


def test_addresses_of_version_6_are_counted_by_their_network():
    assert client_key("2001:db8::1") == client_key("2001:db8::ffff") != client_key("2001:db8:1::1")
    assert client_key("::ffff:10.0.0.1") == client_key("10.0.0.1") == "10.0.0.1"
    assert client_key("unknown") == "unknown" and client_key("not:an:address") == "not:an:address"


@pytest.fixture
def written():
    """What a handler writes that has the filter of the service, with a clock that stands still."""
    now, lines = [0.0], []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    handler.addFilter(OncePerMinute(clock=lambda: now[0]))
    names = ("askew.some", "library")
    for name in names:
        logging.getLogger(name).addHandler(handler)
    yield now, lines
    for name in names:
        logging.getLogger(name).removeHandler(handler)


def test_the_same_warning_is_written_once_a_minute_and_says_how_often_it_came(written):
    now, lines = written
    logger = logging.getLogger("askew.some")
    for now[0] in (0.0, 1.0, 2.0, EVERY + 1):
        logger.warning("odd request %s", "a")
    logger.warning("another")
    assert [line.partition(" (")[0] for line in lines] == ["odd request a", "odd request a", "another"]
    assert "(2 more" in lines[1]


def test_a_warning_of_a_library_is_one_line_whatever_was_sent(written):
    for sent in range(100):
        logging.getLogger("library").warning("odd byte %d", sent)
    assert written[1] == ["odd byte 0"]


LIMITED = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, tuple(json.loads(sys.argv[1])))
from askew.core.errors import ConfigError
from askew.ui.web.connections import connections_possible
try:
    print(json.dumps([connections_possible(1000), resource.getrlimit(resource.RLIMIT_NOFILE)[0]]))
except ConfigError as error:
    print(json.dumps(str(error)))
"""


def possible(soft, hard):
    command = [sys.executable, "-c", LIMITED, json.dumps([soft, hard])]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)


def test_the_limit_on_files_is_raised_and_the_cap_follows_it_with_a_reserve():
    assert possible(300, 2000) == [1000, pytest.approx(1000 + RESERVE, abs=20)]
    found, soft = possible(300, 400)
    assert soft == 400 and LEAST < found <= 400 - RESERVE


def test_too_few_files_are_one_clear_line():
    said = possible(100, 100)
    assert "file descriptors" in said and "ulimit -n" in said and "\n" not in said


def test_a_request_that_finds_no_file_descriptor_is_told_to_come_back(caplog):
    async def out_of_files(scope, receive, send):
        raise OSError(errno.EMFILE, "Too many open files")

    async def go():
        sent = []
        guard = Guard(out_of_files, Settings(), Access(None), Rate(10, 10))
        scope = {"type": "http", "method": "GET", "path": "/api/search", "query_string": b"",
                 "headers": [(b"host", b"127.0.0.1")], "client": ("127.0.0.1", 1)}  # fmt: skip

        async def send(message):
            sent.append(message)

        await guard(scope, None, send)
        return sent

    sent = asyncio.run(go())
    assert sent[0]["status"] == 503 and (b"retry-after", b"1") in sent[0]["headers"]
    assert "ulimit -n" in caplog.text


def test_the_answer_to_a_client_that_has_gone_is_given_up_without_a_line_in_the_log(caplog):
    begun, given_up = threading.Event(), threading.Event()

    async def waits(scope, receive, send):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    settings = Settings(limits=ServerLimits())
    guard = Guard(waits, settings, Access(None), Rate(1e6, 100))

    async def served_by(scope, receive, send):
        await (guard if scope["type"] == "http" else answers)(scope, receive, send)

    with running(settings, served_by) as url:
        with connect(int(url.rpartition(":")[2])) as one:
            one.sendall(WHOLE)
            assert begun.wait(20) and not given_up.is_set()
        assert given_up.wait(20)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
