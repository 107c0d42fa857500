"""OpenSearch and Elasticsearch, against a server that answers as their documentation says."""

import base64
import logging

import pytest

from askew.core.errors import ConfigError
from askew.search.engines.client import EngineError
from askew.search.engines.opensearch import OpenSearchEngine, opensearch
from askew.testing.contracts import TOY_DOCS, check_ranker
from opensearch_server import OpenSearchServer
from search_server import SearchServer, ServerFault

QUERY = "zebra station of miss marple"


@pytest.fixture
def server():
    with OpenSearchServer(TOY_DOCS) as server:
        yield server


@pytest.fixture
def make(server):
    def made(**settings):
        own = {"index_name": "docs", "backoff_s": 0.001} | ({} if "body" in settings else {"fields": "text"})
        return opensearch(server.url, **{**own, **settings})

    return made


def test_a_search_of_fields_keeps_the_contract_of_rankers(make):
    check_ranker(make())


def test_a_search_body_of_ones_own_keeps_the_contract_of_rankers(make):
    check_ranker(make(body={"query": {"bool": {"must": [{"match": {"text": "{query}"}}]}}}))


def test_several_queries_go_in_one_request(server, make):
    make(concurrency=1).search([f"station {i}" for i in range(50)], 3)
    assert [path for _, path, _ in server.requests] == ["/docs/_msearch"] * 3
    assert len(server.queries) == 50


def test_a_search_asks_for_what_is_needed_and_no_more(server, make):
    make(fields="title^2,text", id_field="key").search(["station"], 7)
    assert server.bodies == [
        {
            "query": {"multi_match": {"query": "station", "fields": ["title^2", "text"]}},
            "size": 7,
            "_source": ["title", "text", "key"],
            "track_total_hits": False,
        }
    ]


def test_no_query_can_change_the_request(server, make):
    nasty = '"}}\n{"index": "other"}\n{"query": {"match_all": {}}, "size": "{k}'
    make().search([nasty], 3)
    assert server.queries == [nasty]


def test_ids_and_texts_are_those_of_the_fields(make):
    ranker = make(id_field="key", text_fields="key,text")
    ranker.search(["station"], 3)
    assert ranker.texts == {"key-d3": f"key-d3 {TOY_DOCS['d3']}"}


def test_of_a_request_only_the_searches_that_failed_are_sent_again(server, make):
    server.item_errors.extend([429, 503])
    ranker = make(concurrency=1)
    assert len(ranker.search(["station", "mother", "brother"], 3)) == 3
    assert sorted(server.queries) == ["brother", "mother", "station"]
    assert len(server.requests) == 2


def test_results_of_some_shards_only_are_not_results(server, make):
    server.failing_shards = 1
    make().search(["station"], 3)
    assert server.queries == ["station", "station"]


@pytest.mark.parametrize("status", [429, 502, 503])
def test_a_cluster_that_is_busy_is_asked_again(server, make, status):
    server.failures.extend([ServerFault(status, {"Retry-After": "0.001"}), ServerFault(status)])
    make().search(["station"], 3)
    assert len(server.requests) == 3


def test_a_cluster_that_asks_for_a_long_wait_is_not_waited_for(server, make):
    server.failures.append(ServerFault(429, {"Retry-After": "7200"}))
    with pytest.raises(EngineError, match="asks to wait 7200 seconds"):
        make().search(["station"], 3)


def test_an_index_that_is_not_there_is_named(make):
    with pytest.raises(EngineError, match=r"'dogs' .* index_name="):
        make(index_name="dogs").search(["station"], 3)


def test_a_refused_query_is_told_by_its_kind_and_may_count_as_finding_nothing(make):
    body = {"query": {"no_such_query": "{query}"}}
    with pytest.raises(EngineError, match=r"refused a query .status 400, parsing_exception.") as caught:
        make(body=body).search([QUERY], 3)
    assert "marple" not in str(caught.value)
    assert len(make(body=body, refused="empty").search([QUERY], 3).docs) == 0


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 429, 503])
def test_neither_errors_nor_logs_have_a_query_or_a_text(server, make, caplog, status):
    with caplog.at_level(logging.DEBUG):
        make().search([QUERY], 3)
        server.failures.extend([ServerFault(status)] * 9)
        with pytest.raises(EngineError, match=f"HTTP status {status}") as caught:
            make().search([QUERY], 3)
    for secret in (QUERY, "marple", TOY_DOCS["d3"], "opens at nine"):
        assert secret not in str(caught.value) + caplog.text


@pytest.mark.parametrize(
    ("scheme", "secret", "sent"),
    [
        ("basic", "me:my-password", f"Basic {base64.b64encode(b'me:my-password').decode()}"),
        ("apikey", "my-api-key", "ApiKey my-api-key"),
    ],
)
def test_a_secret_is_sent_and_kept_nowhere(server, make, monkeypatch, caplog, scheme, secret, sent):
    monkeypatch.setenv("CLUSTER_SECRET", secret)
    server.token = sent
    ranker = make(auth_env="CLUSTER_SECRET", auth_scheme=scheme)
    with caplog.at_level(logging.DEBUG):
        ranker.search(["station"], 3)
    held = repr(vars(ranker.engine)) + repr(vars(ranker.engine._wire)) + repr(ranker.settings()) + caplog.text
    assert secret not in held and sent not in held
    monkeypatch.setenv("CLUSTER_SECRET", f"{secret}-wrong")
    with pytest.raises(EngineError, match="rejected the secret") as caught:
        ranker.search(["mother"], 3)
    assert caught.value.code == "refused" and caught.value.values["status"] == 401


def test_a_cluster_that_is_not_running_is_one_clear_line(server):
    with SearchServer({}) as other:
        url = other.url
    with pytest.raises(EngineError, match="no connection"):
        opensearch(url, "docs", fields="text", attempts=1).search(["station"], 3)


def test_a_cluster_that_hangs_is_given_up(server, make):
    server.answers_left = 0
    with pytest.raises(EngineError, match=r"no reply within 0.2 seconds"):
        make(timeout_s=0.2, attempts=1).search(["station"], 3)


def test_what_is_no_opensearch_is_one_clear_line(server):
    with SearchServer(TOY_DOCS) as other, pytest.raises(EngineError, match="HTTP status 404"):
        opensearch(other.url, "docs", fields="text", attempts=1).search(["station"], 3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "but not both"),
        ({"fields": "text", "body": {"query": "{query}"}}, "but not both"),
        ({"body": {"query": {"match_all": {}}}}, "{query}"),
        ({"fields": "text", "url": "http://me:secret@host:9200"}, "no user name"),
        ({"fields": "text", "url": "host:9200"}, "http or https"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_anything_is_sent(settings, words):
    with pytest.raises(ConfigError) as caught:
        OpenSearchEngine(**{"url": "http://host:9200", "index_name": "docs", **settings})
    assert words in str(caught.value) and "secret@" not in str(caught.value)
