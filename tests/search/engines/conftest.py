"""A search server for each test that needs one, and an environment without proxies."""

import pytest

from askew.search.engines.http import http
from askew.testing.contracts import TOY_DOCS
from search_server import SearchServer


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def server():
    with SearchServer(TOY_DOCS) as server:
        yield server


@pytest.fixture
def make(server):
    """A ranker that searches with the server, with pauses of milliseconds."""

    def made(path="/search?q={query}&size={k}", **settings):
        return http(server.url + path, **{"backoff_s": 0.001, **settings})

    return made
