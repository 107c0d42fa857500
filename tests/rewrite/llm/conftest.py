"""A server for each test that asks for one, and an environment without anything from outside."""

import pytest
from llm_server import KEY, ended, started

from askew.core.plugins import build


@pytest.fixture
def server():
    server = started()
    yield server
    ended(server)


@pytest.fixture
def second_server():
    server = started()
    yield server
    ended(server)


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """A key of ours, no endpoint and no proxy from outside."""
    for name in ("OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def make(server):
    """A reformulator for the server, with rests of milliseconds."""

    def made(**settings):
        return build("reformulator", "llm", {"model": "toy", "base_url": server.url, "backoff_s": 0.001, **settings})

    return made
