"""The REST service: answers, batches, pages, errors, limits."""

import json
import logging

import pytest

from askew.ui.explorer.explorer import Explorer
from askew.ui.web.guard import HEADERS
from askew.ui.web.settings import ServerLimits
from askew.ui.web.site import Upload, Uploads
from conftest import DECIDING, JUDGED

TOKEN = "a-token-of-some-length"


def error_of(reply):
    body = reply.json()
    assert list(body) == ["error"] and set(body["error"]) == {"code", "message"}
    return body["error"]


def test_health_names_the_collection(client):
    assert client.get("/api/health").json() == {"status": "ok", "collection": "demo"}


def test_search_gives_results_with_marks_and_measures(client):
    found = client.get("/api/search", params={"q": "how to become a nurse", "k": 3}).json()
    assert [one["rank"] for one in found["results"]] == [1, 2, 3]
    one = next(one for one in found["results"] if one["marks"])
    mark = one["marks"][0]
    assert one["text"][mark["start"] : mark["end"]].lower() in (
        "she",
        "her",
        "he",
        "his",
        "him",
        "man",
        "woman",
        "men",
        "women",
    )
    assert {value["kind"] for value in found["values"]} == {"effectiveness", "lean"}
    assert found["values"][0]["signature"].startswith("RR(")


def test_a_batch_is_answered_in_order_as_one_by_one(client):
    queries = ["how to become a nurse", "symptoms of heart attack"]
    batch = client.post("/api/search", json={"queries": queries, "k": 2}).json()["answers"]
    assert batch == [client.get("/api/search", params={"q": q, "k": 2}).json() for q in queries]
    batch = client.post("/api/reformulate", json={"queries": [*queries, "zzqqx"]}).json()["answers"]
    assert [one["answer"] for one in batch[:2]] == [
        client.get("/api/reformulate", params={"q": q}).json() for q in queries
    ]
    assert batch[2]["answer"] is None and batch[2]["error"]["code"] == "data"


def test_measure_says_what_search_says(client):
    query = {"q": "what does a judge do"}
    assert (
        client.get("/api/measure", params=query).json()["values"]
        == client.get("/api/search", params=query).json()["values"]
    )


def test_runs_are_measured_and_compared(client):
    runs = {"a": {"care-q02": {"care-07": 2.0, "care-17": 1.0}, "law-q08": {"law-08": 1.0}},
            "b": {"care-q02": {"care-17": 2.0, "care-05": 1.0}, "law-q08": {"law-08": 1.0}}}  # fmt: skip
    found = client.post("/api/measure", json={"runs": runs}).json()
    assert [one["run"] for one in found["runs"]] == ["a", "b"]
    # The collection has 96 judged queries; those that no run answers do not count.
    assert found["comparison"]["old"] == "a" and found["comparison"]["measures"]["RR@10"]["n"] == 2
    few = client.post("/api/measure", json={"runs": runs, "unanswered": "absent"}).json()
    assert few["comparison"]["measures"]["RR@10"]["n"] == 2
    own = client.post("/api/measure", json={"runs": {"a": runs["a"]}, "qrels": {"care-q02": {"care-17": 1}}}).json()
    assert own["runs"][0]["measures"]["RR@10"]["mean"] == 0.5 and own["comparison"] is None


def test_pairs_are_filtered_and_paged(client):
    first = client.get("/api/pairs", params={"subset": "fair", "size": 10}).json()
    assert (first["page"], first["next"], len(first["rows"])) == (1, 2, 10)
    last = client.get("/api/pairs", params={"subset": "fair", "size": 10, "page": first["pages"]}).json()
    assert last["next"] is None and 0 < len(last["rows"]) <= 10
    batch = client.post("/api/pairs", json={"requests": [{"subset": "fair", "size": 10}]}).json()["answers"]
    assert batch == [first]


def test_what_is_open_is_told_as_the_foot_of_each_page_says_it(client):
    found = client.get("/api/about").json()
    assert found["setting"]["collection"] == "demo" and found["setting"]["ranker"] in client.get("/").text
    assert found["effectiveness"] == ["RR@10"] and found["lean"][0] == DECIDING
    assert len(found["lean"]) == 3 and set(found["lean"]) < set(found["measures"])


def test_the_plan_is_had_as_the_page_shows_it(client, store):
    steps = client.get("/api/plan").json()["steps"]
    assert {one["name"] for one in steps} == {f"{one.step}-{one.key}" for one in store.steps()}


def test_search_has_the_picture_the_parts_and_the_reasons(client):
    found = client.get("/api/search", params={"q": "how to become a nurse"}).json()
    assert len(found["lean"]["running"]) == 10 and found["lean"]["typical"]["queries"] > 20
    assert {one["part"] for one in found["parts"]} == {"asked for", "off topic", "on topic"}
    assert all(mark["who"] and mark["why"] for one in found["results"] for mark in one["marks"])


def test_comparing_tells_the_moves(client):
    found = client.get("/api/compare", params={"q": "how to become a nurse", "to": "become nurse", "k": 2}).json()
    assert {"doc_id", "old", "new"} == set(found["moves"][0]) and found["outcome"]


@pytest.mark.parametrize(
    ("path", "params", "status", "code", "says"),
    [
        ("/api/search", {}, 422, "invalid", "q"),
        ("/api/search", {"q": " \t"}, 422, "invalid", "q"),
        ("/api/search", {"q": "x" * 501}, 422, "invalid", "500"),
        ("/api/search", {"q": "a\0b"}, 422, "invalid", "q"),
        ("/api/search", {"q": "x", "k": "101"}, 422, "invalid", "k"),
        ("/api/search", {"q": "x", "k": "many"}, 422, "invalid", "k"),
        ("/api/reformulate", {"q": "zzqqx"}, 400, "data", "finds nothing"),
        ("/api/pairs", {"subset": "nix"}, 400, "config", "known: accepted"),
        ("/api/pairs", {"dataset": "../../etc/passwd"}, 400, "config", "unknown dataset"),
        ("/api/pairs", {"lean_min": "nan"}, 422, "invalid", "lean_min"),
        ("/api/pairs", {"colour": "red"}, 422, "invalid", "colour"),
        ("/api/nothing", {}, 404, "not_found", "nothing at this address"),
    ],
)
def test_a_mistake_is_answered_with_what_to_do(client, path, params, status, code, says):
    reply = client.get(path, params=params)
    error = error_of(reply)
    assert (reply.status_code, error["code"]) == (status, code) and says in error["message"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"queries": []}', b'{"queries": ["\\ud800"]}', b'{"queries": ["a"], "x": 1}', b"\xff\xfe",
     b'{"queries": "a"}', b"[" * 100_000],
)  # fmt: skip
def test_a_body_that_is_not_as_described_is_refused(client, body):
    reply = client.post("/api/search", content=body, headers={"content-type": "application/json"})
    assert reply.status_code in (400, 422) and error_of(reply)["message"]


@pytest.mark.parametrize(
    "runs",
    [{"a": {}}, {"a": {"q": {}}}, {"a": {"q": {"d": 1e400}}}, {"": {"q": {"d": 1}}}, {"a": {"q": {"nowhere": 1}}}],
)
def test_runs_that_cannot_be_measured_are_refused(client, runs):
    body = json.dumps({"runs": runs}).replace("Infinity", "1e999")
    reply = client.post("/api/measure", content=body, headers={"content-type": "application/json"})
    assert reply.status_code in (400, 422) and error_of(reply)["message"]


def test_a_wrong_method_is_told(client):
    reply = client.delete("/api/search")
    assert reply.status_code == 405 and error_of(reply)["code"] == "method_not_allowed"


def test_the_openapi_document_tells_errors_examples_and_the_token(client, service):
    found = client.get("/openapi.json").json()
    assert {"/api/search", "/api/reformulate", "/api/measure", "/api/pairs"} <= set(found["paths"])
    for path in found["paths"].values():
        for one in path.values():
            assert one["responses"].get("422", {}).get("content", {}) == {} or "ErrorBody" in json.dumps(
                one["responses"]["422"]
            )
    assert JUDGED in json.dumps(found["paths"]["/api/search"]["get"]["parameters"])
    assert "security" not in found["paths"]["/api/search"]["get"]
    secured = service(token=TOKEN).get("/openapi.json", headers={"authorization": f"Bearer {TOKEN}"}).json()
    assert secured["components"]["securitySchemes"]["token"] == {"type": "http", "scheme": "bearer"}
    every = [one for path in secured["paths"].values() for one in path.values()]
    assert all(one["security"] == [{"token": []}] for one in every)


def test_every_answer_has_the_headers_that_keep_a_browser_safe(client):
    for path in ("/api/health", "/nothing", "/api/nothing", "/static/app.js", "/"):
        reply = client.get(path)
        for name, value in HEADERS.items():
            assert reply.headers[name] == value, path
        assert "unsafe" not in reply.headers["content-security-policy"]
        assert "server" not in reply.headers


def test_another_host_name_is_not_answered_on_loopback(client):
    for host in ("evil.example", "localhost.evil.example", "", "127.0.0.1.evil.example"):
        reply = client.get("/api/health", headers={"host": host})
        assert reply.status_code == 421 and error_of(reply)["code"] == "wrong_host"
    for host in ("localhost:8642", "127.0.0.1", "[::1]:9"):
        assert client.get("/api/health", headers={"host": host}).status_code == 200


def test_a_page_elsewhere_cannot_post(client):
    body = {"queries": ["nurse"], "k": 1}
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        reply = client.post("/api/search", json=body, headers=headers)
        assert reply.status_code == 403 and error_of(reply)["code"] == "forbidden"
    for headers in ({"origin": "http://127.0.0.1:8642"}, {"sec-fetch-site": "same-origin"}, {}):
        assert client.post("/api/search", json=body, headers=headers).status_code == 200


def test_what_is_too_large_is_refused_by_its_header_and_by_what_comes(service):
    client = service(limits=ServerLimits(rate=1e6, burst=10**6, body_bytes=1000))
    reply = client.post("/api/search", content=b"x" * 1001)
    assert reply.status_code == 413 and error_of(reply)["code"] == "too_large"

    def parts():
        for _ in range(20):
            yield b" " * 100

    reply = client.post("/api/search", content=parts(), headers={"content-type": "application/json"})
    assert reply.status_code == 413 and error_of(reply)["code"] == "too_large"
    assert client.post("/api/search", json={"queries": ["nurse"]}).status_code == 200


def test_too_many_requests_are_told_when_to_come_back_and_then_answered(service):
    client = service(limits=ServerLimits(rate=1.0, burst=3))
    rate, now = client.app.state.site.rate, [0.0]
    rate._clock = lambda: now[0]
    codes = [client.get("/api/health").status_code for _ in range(4)]
    assert codes == [200, 200, 200, 429]
    reply = client.get("/api/health")
    assert reply.headers["retry-after"] == "1" and error_of(reply)["code"] == "too_many_requests"
    assert client.get("/").status_code == 429
    now[0] = 1.0
    assert client.get("/api/health").status_code == 200


def test_too_much_work_at_once_is_refused_and_later_done(service):
    client = service()
    work = client.app.state.site.work
    client.get("/api/health")
    most, work._most = work._most, 0
    reply = client.get("/api/search", params={"q": "nurse"})
    assert reply.status_code == 429 and int(reply.headers["retry-after"]) >= 1
    work._most = most
    assert client.get("/api/search", params={"q": "nurse"}).status_code == 200


def test_a_token_is_asked_for_and_the_login_page_gives_a_cookie_for_it(service):
    client = service(host="0.0.0.0", token=TOKEN)
    reply = client.get("/api/search", params={"q": "nurse"})
    assert reply.status_code == 401 and reply.headers["www-authenticate"] == "Bearer" and error_of(reply)
    assert (
        client.get("/api/search", params={"q": "nurse"}, headers={"authorization": f"Bearer {TOKEN}"}).status_code
        == 200
    )
    sent = client.get("/pairs?subset=fair", follow_redirects=False)
    assert sent.status_code == 303 and sent.headers["location"] == "/login?next=%2Fpairs%3Fsubset%3Dfair"
    wrong = client.post("/login", data={"token": "wrong", "next": "/"}, follow_redirects=False)
    assert (
        wrong.status_code == 401 and "set-cookie" not in wrong.headers and "wrong" not in wrong.text.split("<main")[1]
    )
    right = client.post("/login", data={"token": TOKEN, "next": "/pairs?subset=fair"}, follow_redirects=False)
    assert right.status_code == 303 and right.headers["location"] == "/pairs?subset=fair"
    cookie = right.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and TOKEN not in cookie
    assert client.get("/pairs").status_code == 200


@pytest.mark.parametrize(
    "place", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:1", "", "/a\r\nb"]
)
def test_the_login_page_never_sends_anyone_elsewhere(service, place):
    client = service(token=TOKEN)
    reply = client.post("/login", data={"token": TOKEN, "next": place}, follow_redirects=False)
    assert reply.headers["location"] == "/"


def test_guessing_tokens_soon_has_to_wait(service):
    client = service(token=TOKEN, limits=ServerLimits(rate=0.001, burst=60))
    codes = [client.post("/login", data={"token": f"guess {n}"}).status_code for n in range(10)]
    assert codes[0] == 401 and codes[-1] == 429


def test_the_log_has_no_words_of_a_query_no_token_and_no_unknown_address(service, caplog, monkeypatch):
    client = service(token=TOKEN)
    caplog.set_level(logging.INFO)
    headers = {"authorization": f"Bearer {TOKEN}"}
    client.get("/api/search?q=secretword", headers=headers)
    client.get("/secretword/secretword", headers=headers)
    client.post("/login", data={"token": "secretword"})

    def broken(self, query, k=10):
        raise RuntimeError(f"secretword {query}")

    monkeypatch.setattr(Explorer, "search", broken)
    reply = client.get("/api/search?q=secretword+again", headers=headers)
    assert reply.status_code == 500 and "secretword" not in reply.text and error_of(reply)["code"] == "internal"
    assert reply.headers["content-security-policy"]
    told = "\n".join(one.getMessage() for one in caplog.records if not one.name.startswith("httpx"))
    assert "GET /api/search 200" in told and "RuntimeError at" in told
    assert "secretword" not in told and TOKEN not in told


def test_a_store_that_cannot_be_asked_says_so(service, tmp_path):
    from askew.ui.explorer.opening import Sources

    client = service(sources=Sources(store=tmp_path))
    assert client.get("/api/health").json() == {"status": "ok", "collection": None}
    reply = client.get("/api/search", params={"q": "nurse"})
    assert reply.status_code == 400 and "--index" in error_of(reply)["message"]
    assert client.get("/api/pairs").status_code == 400


def test_uploads_are_few_and_small_and_the_oldest_goes():
    uploads = Uploads(2, 1000)
    kept = [uploads.add(Upload.of(f"r{n}.run", f"q{n} Q0 d1 1 1.0 t\n".encode(), "run")) for n in range(3)]
    assert uploads.find(kept[2].digest).name == "r2.run"
    assert uploads.find(kept[0].digest) is None
    uploads.add(Upload.of("large.run", b"".join(b"q%d Q0 d1 1 1.0 t\n" % n for n in range(60)), "run"))
    assert uploads.find(kept[2].digest) is None


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "a<script>.run", "C:\\x\\y.run", "", "x" * 500, "..", "\u202e.run"]
)
def test_the_name_of_an_upload_is_a_plain_word_and_no_path(name):
    found = Upload.of(name, b"q Q0 d 1 1.0 t\n", "run").run()
    assert "/" not in found.name and "<" not in found.name and "\\" not in found.name and 0 < len(found.name) <= 60


@pytest.mark.parametrize(
    "data", [b"", b"  \n", b"\x1f\x8b\x08", b"PK\x03\x04", b"PAR1", b"\xff\xff", b"one two\n", b"q Q0 d 1 nan t"]
)
def test_an_upload_that_is_no_run_is_refused_in_one_line(data):
    from askew.core.errors import DataError

    with pytest.raises(DataError) as refused:
        Upload.of("mine.run", data, "run").run()
    assert "\n" not in str(refused.value) and "askew-upload" not in str(refused.value)
