"""Search interfaces over HTTP, against a server of the test's own."""

import base64
import json
import shutil
import ssl
import subprocess

import pytest

from askew.core.errors import AskewError, ConfigError
from askew.core.plugins import build
from askew.search.engines.client import EngineError
from askew.search.engines.http import (
    HttpEngine,
    escaped,
    fill_params,
    fill_url,
    fill_value,
    follow,
    http,
    read_hits,
    read_template,
    templates,
)
from askew.search.engines.wire import trusted
from askew.testing.contracts import TOY_DOCS, check_ranker
from search_server import SearchServer, ServerFault


def test_a_url_template_keeps_the_contract_of_rankers(make):
    check_ranker(make())


def test_a_body_template_keeps_the_contract_of_rankers(make):
    check_ranker(make("/search", body={"q": "{query}", "size": "{k}"}))


def test_parameters_keep_the_contract_of_rankers(make):
    check_ranker(make("/search", params={"q": "{query}", "size": "{k}"}))


NASTY = 'a&size=99#x"}\\ {k} %41 ü \u2028'


def test_no_query_can_change_the_request(server, make):
    make().search([NASTY], 3)
    make("/search", params={"q": "{query}", "size": "{k}"}).search([NASTY], 3)
    make("/search", body={"q": "{query}", "size": "{k}"}).search([NASTY], 3)
    assert server.queries == [NASTY] * 3


def test_a_placeholder_is_filled_with_a_value_and_never_with_json():
    assert fill_value({"a": ["{k}", "x {query} {k}"], "b": 1}, '{k}", "z": "', 7) == {
        "a": [7, 'x {k}", "z": " 7'], "b": 1,
    }  # fmt: skip
    assert fill_url("/{query}/{k}", "a/b?c", 3) == "/a%2Fb%3Fc/3"
    assert fill_params({"q": "{query}", "n": "{k}"}, "a b&c", 3) == "q=a+b%26c&n=3"


def test_a_dotted_path_leads_through_objects_and_lists():
    reply = {"a": [{"b": 1}, {"b": {"c": 2}}]}
    assert follow(reply, "a.1.b.c") == 2
    assert not isinstance(follow(reply, "a.5.b"), int)
    assert follow([1], "") == [1]


def test_characters_and_words_that_are_operators_are_escaped():
    assert escaped('a "b" (OR) OR c\\', '\\"()') == 'a \\"b\\" \\(OR\\) \\OR c\\\\'
    assert escaped(" a  b-c NOT ", "\\-", " OR ") == "a OR b\\-c OR \\NOT"
    assert escaped(" a  b ", "") == " a  b "


def test_all_connections_are_used_again(server, make):
    ranker = make(concurrency=2)
    for query in ("station", "mother", "sister"):
        ranker.search([query], 2)
    assert len(ranker.engine._wire._idle) == 1
    ranker.close()


def test_no_more_requests_are_under_way_than_allowed(server, make):
    make(concurrency=2).search([f"station {i}" for i in range(40)], 2)
    assert server.most_busy <= 2 and len(server.queries) == 40


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_server_that_is_busy_is_asked_again(server, make, status):
    server.failures.extend(
        [ServerFault(status), ServerFault(status, {"Retry-After": "0.001"}), ServerFault(closes=True)]
    )
    assert len(make().search(["station"], 3).docs) == 1
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "auth_env="),
        (403, "auth_file="),
        (404, "check url="),
        (405, "check the settings"),
    ],
)
def test_what_would_fail_for_every_query_ends_the_search_at_once(server, make, status, words):
    server.failures.extend([ServerFault(status)] * 50)
    with pytest.raises(EngineError) as caught:
        make(concurrency=1, refused="empty").search(["station", "mother"], 3)
    assert words in str(caught.value) and f"HTTP status {status}" in str(caught.value)
    assert len(server.requests) == 1


def test_a_query_that_the_server_refuses_can_count_as_finding_nothing(server, make):
    server.failures.append(ServerFault(400))
    ranker = make(refused="empty", concurrency=1)
    assert ranker.search(["station", "mother"], 3).offsets.tolist() == [0, 0, 1]


def test_a_redirect_is_not_followed(server, make):
    server.failures.append(ServerFault(302, {"Location": "https://elsewhere.example/search?q=station"}))
    with pytest.raises(EngineError, match=r"redirects to https://elsewhere.example") as caught:
        make().search(["station"], 3)
    assert "station" not in str(caught.value)


def test_an_engine_that_is_not_running_is_one_clear_line(server):
    with SearchServer(TOY_DOCS) as other:
        url = other.url
    ranker = http(f"{url}/search?q={{query}}", attempts=2, backoff_s=0.0)
    with pytest.raises(EngineError, match=r"Connection refused"):
        ranker.search(["station"], 3)


def test_an_engine_that_hangs_is_given_up(server, make):
    server.answers_left = 0
    with pytest.raises(EngineError, match=r"no reply within 0.05 seconds"):
        make(timeout_s=0.05, attempts=2).search(["station"], 3)


def test_a_reply_that_is_too_large_is_not_read(make):
    with pytest.raises(EngineError, match="more than 50 bytes"):
        make(max_bytes=50).search(["mother and sister"], 3)


def test_a_reply_that_is_cut_short_is_asked_for_again(server, make):
    whole = json.dumps({"hits": []}).encode()
    server.failures.append(ServerFault(200, {"Content-Length": str(len(whole) + 1000)}))
    assert len(make(timeout_s=0.2).search(["station"], 3).docs) == 1
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hits_at": "response.docs"}, "'response.docs'; its fields are 'hits'"),
        ({"id_at": "key"}, "at 'key'; .* set id_at="),
        ({"error_at": "hits.0.id"}, "reports an error"),
    ],
)
def test_paths_that_lead_nowhere_are_named(make, settings, words):
    with pytest.raises(EngineError, match=words):
        make(**settings, attempts=1).search(["station"], 3)


def test_a_text_may_be_of_several_fields(make):
    ranker = make(text_at="id,text")
    ranker.search(["station"], 3)
    assert ranker.texts == {"d3": f"d3 {TOY_DOCS['d3']}"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"url": "ftp://host/?q={query}"}, "http or https"),
        ({"url": "file:///etc/passwd?{query}"}, "http or https"),
        ({"url": "http://user:secret@host/?q={query}"}, "no user name, password"),
        ({"url": "http://host/?api_key=abc&q={query}"}, "'api_key' looks like a secret"),
        ({"url": "http://host/?q={query}", "params": {"token": "abc"}}, "'token' looks like a secret"),
        ({"url": "http://host/?q={query}&api%5Fkey=abc"}, "'api_key' looks like a secret"),
        ({"url": "http://host/", "body": {"q": "{query}", "api_key": "abc"}}, "'api_key' looks like a secret"),
        ({"url": "http://host/", "body": '{"q": "{query}", "user": [{"password": "abc"}]}'}, "'password' looks like"),
        ({"url": "http://host/{query}", "headers": {"Ocp-Apim-Subscription-Key": "abc"}}, "looks like a secret"),
        ({"url": "http://host/?q={query}", "headers": {"Authorization": "abc"}}, "looks like a secret"),
        ({"url": "http://host/?q={query}", "headers": {"X-Api-Key": "abc"}}, "looks like a secret"),
        ({"url": "http://host/"}, "{query}"),
        ({"url": "http://host", "template": "sollr"}, "'sollr'"),
        ({"url": "http://host", "body": "not json"}, "JSON object"),
        ({"url": "http://host/?q={query}", "auth_env": "sk-12345"}, "auth_env="),
        ({"url": "http://host/?q={query}", "auth_env": "A", "auth_file": "b"}, "not both"),
        ({"url": "http://host/?q={query}", "auth_env": "A", "auth_scheme": "digest"}, "expected one of bearer, basic"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_anything_is_sent(settings, words):
    with pytest.raises(ConfigError) as caught:
        HttpEngine(**settings)
    assert words in str(caught.value)
    for secret in ("abc", "sk-12345", "secret@"):
        assert secret not in str(caught.value)


def test_a_template_of_ones_own_is_a_file(server, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('path = "/search"\nhits_at = "hits"\n[params]\nq = "{query}"\nsize = "{k}"\n', encoding="utf-8")
    ranker = http(server.url, template=str(path))
    assert ranker.search(["station"], 3).docs.tolist() == [0]
    assert ranker.id == f"http-mine-127.0.0.1_{server.url.rpartition(':')[2]}"
    path.write_text('hits = "a"')
    with pytest.raises(ConfigError, match="unknown setting 'hits'"):
        read_template(str(path))


@pytest.mark.parametrize("name", templates())
def test_every_template_has_a_place_for_query_and_k(name):
    form = read_template(name)
    text = json.dumps(form)
    assert "{query}" in text and "{k}" in text
    HttpEngine("http://localhost:1", template=name)


REPLIES = {
    "solr": {"responseHeader": {"status": 0}, "response": {"docs": [{"id": "a", "score": 2.5, "text": "t"}]}},
    "vespa": {"root": {"id": "toplevel", "children": [{"id": "a", "relevance": 2.5, "fields": {"text": "t"}}]}},
    "groonga": {"header": {"return_code": 0}, "body": {"n_hits": 1, "records": [["a", 2.5, "t"]]}},
    "anserini": {"candidates": [{"docid": "a", "score": 2.5, "doc": {"contents": "t"}}]},
}  # fmt: skip


@pytest.mark.parametrize("name", templates())
def test_a_template_reads_replies_as_they_are_documented(name):
    assert read_hits(REPLIES[name], read_template(name), "here") == [("a", 2.5, "t")]


def test_vespa_without_hits_has_no_list_and_reports_errors_in_its_reply():
    vespa = read_template("vespa")
    assert read_hits({"root": {"fields": {"totalCount": 0}}}, vespa, "here") == []
    with pytest.raises(EngineError, match="reports an error"):
        read_hits({"root": {"errors": [{"code": 12}]}}, vespa, "here")


def test_what_is_given_replaces_what_is_in_a_template():
    engine = HttpEngine("http://h/solr/films", template="solr", params={"qf": "title", "rows": "5"}, text_at="title")
    assert engine.settings()["params"]["rows"] == "5"
    assert engine.settings()["params"]["qf"] == "title"
    assert engine.settings()["url"] == "http://h/solr/films/select"
    assert engine.settings()["paths"][3] == "title"


def test_the_registry_checks_the_settings_of_an_engine():
    for settings, words in (
        ({"url": "http://h/?{query}", "concurrency": 0}, "'concurrency' should be 1 or more"),
        ({"url": "http://h/?{query}", "unknown": "drop"}, "one of error, skip"),
        ({"url": "http://h/?{query}", "tiemout_s": 3}, "did you mean 'timeout_s'"),
        ({}, "needs the setting 'url'"),
    ):
        with pytest.raises(AskewError, match=words):
            build("ranker", "http", settings)


@pytest.mark.parametrize(
    "url",
    ["http://{query}.example.org/", "http://{query}/?q={query}", "https://a{k}.b/?{query}", "http://h:{k}/{query}"],
)
def test_a_query_does_not_choose_the_host(url):
    with pytest.raises(ConfigError, match="host"):
        http(url)


@pytest.mark.parametrize(
    "name", ["code", "x-functions-key", "Proxy-Authorization", "X-Amz-Signature", "X-Auth", "Cookie"]
)
def test_settings_with_names_of_secrets_are_refused(name):
    with pytest.raises(ConfigError, match="looks like a secret"):
        http(f"http://h/?q={{query}}&{name}=SECRET")
    with pytest.raises(ConfigError, match="looks like a secret"):
        http("http://h/?q={query}", headers={name: "SECRET"})


@pytest.fixture
def certificate(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: no certificate can be made")
    pem, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(pem)]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    trusted.cache_clear()
    yield pem, context
    trusted.cache_clear()


def test_a_certificate_that_is_not_trusted_is_refused_and_ones_own_authority_can_be_named(certificate, monkeypatch):
    pem, context = certificate
    with SearchServer(TOY_DOCS) as server:
        server._http.socket = context.wrap_socket(server._http.socket, server_side=True)
        url = f"{server.url.replace('http:', 'https:')}/search?q={{query}}"
        with pytest.raises(ConfigError, match=r"not trusted \(self-signed certificate\); .* SSL_CERT_FILE"):
            http(url).search(["station"], 3)
        assert server.queries == []
        trusted.cache_clear()
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))
        assert len(http(url).search(["station"], 3).docs) == 1


def test_a_place_in_a_list_may_be_a_number(server):
    own = {"hits_at": "hits", "id_at": 0, "score_at": 1, "text_at": 2}
    same = own | {name: str(value) for name, value in own.items()}
    url = f"{server.url}/search?q={{query}}"
    assert HttpEngine(url, **own).settings() == HttpEngine(url, **same).settings()


def test_a_request_that_is_refused_is_shown_with_a_place_for_the_query(server, make):
    server.failures.extend([ServerFault(400)] * 9)
    with pytest.raises(EngineError) as caught:
        make(params={"in": "title & text"}).search(["zebra of marple", "station"], 3)
    said = str(caught.value)
    assert "GET /search?q={query}&size={k}&in=title%20%26%20text" in said
    assert "zebra" not in said and "refused='empty'" not in said


def test_only_where_other_queries_were_answered_a_refused_one_may_count_as_empty(server, make):
    server.failures.extend([None, ServerFault(400)])
    with pytest.raises(EngineError, match="refused='empty'"):
        make(concurrency=1).search(["station", "zebra of marple"], 3)


def test_a_field_of_the_body_that_is_named_like_a_secret_may_be_searched():
    body = {"query": {"token": "{query}"}, "filter": [{"key": "language", "value": "en"}], "token": {"boost": 2}}
    assert HttpEngine("http://host/search", body=body).settings()["body"] == body


@pytest.mark.parametrize(
    "proxy", ["http://me:pass-314159@h:port", "socks5://me:pass-314159@h:1", "http://:0", "https://h"]
)
def test_a_proxy_that_cannot_be_used_is_one_line_without_its_password(make, monkeypatch, proxy):
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(ConfigError, match="HTTPS_PROXY") as caught:
        http("http://engine.invalid/search?q={query}").search(["station"], 3)
    assert "pass-314159" not in str(caught.value)


def test_a_proxy_that_does_not_answer_is_said_to_be_one(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://me:pass-314159@127.0.0.1:1")
    with pytest.raises(EngineError) as caught:
        http("http://engine.invalid/search?q={query}", attempts=1).search(["station"], 3)
    assert caught.value.code == "no-connection" and caught.value.values["proxy"]
    assert "pass-314159" not in str(caught.value)


def test_the_proxy_of_the_environment_is_used_with_its_password(server, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url.replace("http://", "http://me:pass@"))
    http("http://engine.invalid/search?q={query}").search(["station"], 3)
    _, path, headers = server.requests[-1]
    assert path == "http://engine.invalid/search?q=station"
    assert headers["host"] == "engine.invalid"
    assert headers["proxy-authorization"] == f"Basic {base64.b64encode(b'me:pass').decode()}"
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    http(f"{server.url}/search?q={{query}}").search(["station"], 3)
    assert server.requests[-1][1] == "/search?q=station"
