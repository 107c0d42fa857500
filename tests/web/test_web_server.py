"""The server as a process of its own: it says where it is, answers, and stops in order."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
import uvicorn

from askew.core.errors import ConfigError, DataError, StoreError
from askew.ui.cli.serve import serve_command
from askew.ui.explorer.opening import Sources
from askew.ui.web import site
from askew.ui.web.app import create_app
from askew.ui.web.connections import Connections
from askew.ui.web.server import LimitedServer, listen, serve
from askew.ui.web.settings import ServerLimits, Settings
from conftest import LIGHT

SERVE = "import typer; from askew.ui.cli.serve import serve_command; typer.run(serve_command)"


@pytest.fixture
def started(store):
    command = [sys.executable, "-c", SERVE, "--port", "0", "--recipe", LIGHT]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )  # fmt: skip
    line = process.stdout.readline()
    assert line.startswith("askew: http://127.0.0.1:"), process.stderr.read()
    yield process, int(line.rstrip("/\n").rpartition(":")[2])
    if process.poll() is None:
        process.kill()
    process.communicate()


def test_sigterm_lets_an_answer_that_was_begun_be_finished(started):
    process, port = started
    # What is compiled for the first use is compiled now, and not while the service waits for its last answer.
    urllib.request.urlopen(f"http://127.0.0.1:{port}/api/reformulate?q=nurse").close()
    body = json.dumps({"queries": ["how to become a nurse", "symptoms of heart attack"]}).encode()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        head = (
            f"POST /api/reformulate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
        )
        connection.sendall(head.encode())
        # The service has begun with this request when it asks for its body.
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        process.send_signal(signal.SIGTERM)
        connection.sendall(body)
        reply = http.client.HTTPResponse(connection)
        reply.begin()
        assert reply.status == 200
        assert len(json.loads(reply.read())["answers"]) == 2
    assert process.wait(60) == 0
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port)).close()


def test_a_signal_stops_it_and_a_second_ctrl_c_does_not_wait():
    server = LimitedServer(uvicorn.Config(create_app()), Connections(ServerLimits()))
    server.handle_exit(signal.SIGTERM, None)
    assert server.should_exit and not server.force_exit
    server.handle_exit(signal.SIGINT, None)
    assert server.force_exit


def test_what_cannot_be_opened_ends_the_service_with_a_clear_line(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    (tmp_path / "header.json").write_text(json.dumps({"kind": "bm25", "format": 0, "files": {}, "documents": 0}))
    with pytest.raises(StoreError, match="askew verify"):
        serve(Settings(Sources(index=tmp_path), port=0), lambda address: None)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("store", "no such folder"), ("index", "there is no index"), ("logs", "askew logs --out"),
        ("runs", "no such folder"), ("collection", "no such file or folder"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_told_before_an_address_is(tmp_path, name, says):
    told = []
    given = tmp_path / "nowhere"
    with pytest.raises(DataError, match=says) as found:
        serve(Settings(Sources(**{name: str(given) if name == "collection" else given}), port=0), told.append)
    assert not told and "\n" not in str(found.value) and str(given) in str(found.value)


def test_a_port_that_is_taken_is_told_at_once():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="--port"):
            listen(Settings(port=taken.getsockname()[1]))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"host": "0.0.0.0"}, "token"), ({"rate": 0.0}, "--rate"), ({"port": -1}, "--port"),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused_before_anything_is_opened(monkeypatch, given, says):
    monkeypatch.delenv("ASKEW_TOKEN", raising=False)
    with pytest.raises(ConfigError, match=says):
        serve_command(**given)


def test_a_token_file_that_is_missing_or_empty_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        serve_command(token_file=tmp_path / "nix")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ConfigError, match="empty"):
        serve_command(token_file=tmp_path / "empty")


HANGS = """
import sys, threading
from askew.ui.explorer.explorer import Explorer
from askew.ui.explorer.opening import Sources
from askew.ui.web.server import serve
from askew.ui.web.settings import ServerLimits, Settings

def hangs(*_):
    print("hangs", flush=True)
    threading.Event().wait()

Explorer.reformulate_many = hangs
serve(Settings(Sources(), port=0, limits=ServerLimits(drain_seconds=1)), lambda url: print(url, flush=True))
"""


def test_sigterm_ends_the_service_though_a_thread_hangs_and_requests_wait_for_it():
    process = subprocess.Popen([sys.executable, "-c", HANGS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    port = int(process.stdout.readline().rstrip("/\n").rpartition(":")[2])
    waiting = []
    for number in range(3):
        waiting.append(socket.create_connection(("127.0.0.1", port)))
        waiting[-1].sendall(f"GET /api/reformulate?q=nurse{number} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert process.stdout.readline() == "hangs\n"
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "Traceback" not in err
    for one in waiting:
        assert one.recv(100).startswith(b"HTTP/1.1 503")
        one.close()


def test_a_first_search_that_fails_leaves_one_line_in_the_log(caplog):
    class Broken:
        def search(self, query):
            raise OverflowError(query)

    site.warm(Broken())
    (record,) = caplog.records
    assert "OverflowError" in record.getMessage() and record.exc_info is None and "warm" not in record.getMessage()
