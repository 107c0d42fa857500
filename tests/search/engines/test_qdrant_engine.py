"""A collection of Qdrant as a ranker: requests to a server as they are documented."""

import logging

import pytest

from askew.core.errors import ConfigError
from askew.search.engines.client import EngineError
from askew.search.engines.databases import QdrantEngine, qdrant
from askew.testing.contracts import TOY_DOCS, check_ranker
from search_server import ServerFault

KEY = "key-3141592653589793"
# The library warns if a key is sent without TLS.
pytestmark = pytest.mark.filterwarnings("ignore:Auth token provider is used")


@pytest.fixture
def make(qdrant_server, tiny_words, monkeypatch):
    monkeypatch.setenv("QDRANT_KEY", KEY)
    qdrant_server.token = f"Bearer {KEY}"
    own = {"model": tiny_words, "id_field": "key", "auth_env": "QDRANT_KEY", "backoff_s": 0.001}
    made = []

    def make(**settings):
        made.append(qdrant(qdrant_server.url, "docs", **{**own, **settings}))
        return made[-1]

    yield make
    for ranker in made:
        ranker.close()


def test_requests_are_as_documented_and_the_contract_is_kept(make, qdrant_server):
    check_ranker(make(vector_field="dense"))
    request = qdrant_server.bodies[0]
    assert request["limit"] == 3 and len(request["query"]["nearest"]) == 64 and request["using"] == "dense"
    assert request["with_payload"] == ["key", "text"]


def test_without_a_field_the_id_of_the_point_is_the_document_id(make):
    ranker = make(id_field="", text_fields="key,text")
    ranker.search(["station"], 1)
    assert ranker.texts == {"0": f"d1 {TOY_DOCS['d1']}"}


def test_the_key_of_a_server_is_sent_and_kept_nowhere(make, monkeypatch, caplog):
    with caplog.at_level(logging.DEBUG):
        ranker = make()
        ranker.search(["station of miss marple"], 3)
        held = repr(vars(ranker.engine)) + repr(ranker.engine) + repr(ranker.settings()) + caplog.text
        assert KEY not in held and "marple" not in caplog.text and "opens at nine" not in caplog.text
        monkeypatch.setenv("QDRANT_KEY", "key-of-another")
        with pytest.raises(EngineError, match="401") as caught:
            ranker.search(["mother"], 3)
    assert caught.value.code == "request-failed" and "key-of-another" not in str(caught.value) + caplog.text


def test_a_server_that_is_busy_is_asked_again_and_one_that_is_gone_is_one_clear_line(make, qdrant_server):
    ranker = make(attempts=3)
    qdrant_server.failures.extend([ServerFault(503), ServerFault(429)])
    assert len(ranker.search(["station"], 3).docs) == 3
    qdrant_server.failures.extend([ServerFault(closes=True)] * 9)
    with pytest.raises(EngineError) as caught:
        ranker.search(["mother"], 3)
    assert caught.value.code == "no-connection" and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("no", "no-place"),
        ("http://host:port", "no-place"),
        ("http://me:pass-1234@host:6333", "secret-in-place"),
        ("http://host:6333/?api_key=pass-1234", "secret-in-place"),
    ],
)
def test_addresses_that_cannot_work_are_refused_and_not_shown(place, code):
    with pytest.raises(ConfigError) as caught:
        QdrantEngine(place, "docs", model="a")
    assert caught.value.code == code and "pass-1234" not in str(caught.value)
