"""Everything a network does to a request, by a real server."""

import gzip
import json
import logging
import random
import shutil
import ssl
import subprocess
import threading
from contextlib import closing

import pytest
from llm_server import KEY, Reply, asked_of, completion, echo, ended, fails, query_of, says, started, wait_until

from askew.core.errors import AskewError, ConfigError, DataError
from askew.core.pace import RateLimit
from askew.rewrite.llm_client import TOO_LONG_A_WAIT, ChatClient, Endpoint


def first(*replies):
    """These replies to a request one after another, and good ones from then on."""
    return lambda body, nth: replies[nth] if nth < len(replies) else echo(body, nth)


TROUBLES = {
    "429 that says when in seconds": fails(429, Retry_After="0.002"),
    "429 that says when by a date": fails(429, Retry_After="Mon, 05 Jan 2015 12:00:00 GMT"),
    "429 that does not say when": fails(429),
    "503 with nonsense for a time": fails(503, Retry_After="soonish"),
    "500": fails(500),
    "502 with a page": Reply(b"<html>bad gateway</html>", 502, {"Content-Type": "text/html"}),
    "408": fails(408),
    "409": fails(409),
    "reset in the middle": Reply(completion("x" * 1000), cut=True),
    "reset at once": Reply(b"", cut=True),
    "broken JSON": Reply(b'{"choices": [{"mess'),
    "deep JSON": Reply(b"[" * 3000),
    "JSON that is no answer": Reply(b'{"choices": []}'),
    "JSON that is a list": Reply(b"[]"),
    "an error dressed as success": Reply(b'{"error": {"message": "overloaded"}}'),
    "no message": Reply(b'{"choices": [{"message": "hello"}]}'),
    "bytes that are no text": Reply(b"\xff\xfe\x00"),
    "wrong content type": Reply(b"<html>log in</html>", headers={"Content-Type": "text/html"}),
    "an answer in another encoding": Reply(gzip.compress(completion("x")), headers={"Content-Encoding": "gzip"}),
    "too large an error page": Reply(b"x" * 5000, 500),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_passing_trouble_costs_a_retry_and_changes_nothing(make, server, trouble):
    undisturbed = make().reformulate(asked_of("a b", "c d"))
    server.times_seen.clear()
    server.script = first(TROUBLES[trouble])
    disturbed = make(max_answer_bytes=4000)
    found = disturbed.reformulate(asked_of("a b", "c d"))
    assert (found.rows, found.texts, found.rejected) == (undisturbed.rows, undisturbed.texts, {})
    assert len(server.bodies) == 2 + 4


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (fails(500), "failed: status 500"),
        (fails(429), "failed: status 429"),
        (Reply(completion("x"), cut=True), "failed: connection lost"),
        (Reply(b"{"), "failed: broken JSON"),
        (Reply(b"hello", headers={"Content-Type": "text/plain"}), "failed: wrong content type"),
    ],
)
def test_a_query_that_fails_every_time_is_counted_and_the_others_go_on(make, server, reply, reason):
    server.script = lambda body, nth: reply if query_of(body) == "bad one" else echo(body, nth)
    found = make(attempts=3).reformulate(asked_of("good", "bad one", "better"))
    assert found.rows == [0, 0, 2, 2] and found.rejected == {reason: 1}
    assert len(server.bodies) == 5


def test_a_server_that_does_not_answer_in_time_is_a_time_out(make, server):
    server.script = lambda body, nth: Reply(completion("late"), sleep=5.0)
    found = make(timeout_s=0.05, attempts=2).reformulate(asked_of("a"))
    assert found.texts == [] and found.rejected == {"failed: time-out": 1}
    wait_until(lambda: len(server.bodies) == 2)


def test_a_server_that_is_late_once_is_asked_again(make, server):
    server.script = first(Reply(completion("late"), sleep=5.0))
    assert len(make(timeout_s=0.3).reformulate(asked_of("a"))) == 2


def test_nobody_at_the_address_is_counted(make, second_server):
    ended(second_server)
    found = make(base_url=second_server.url, attempts=2).reformulate(asked_of("a"))
    assert found.rejected == {"failed: no connection": 1}


def test_a_huge_answer_is_not_read_to_its_end_nor_asked_for_again(make, server):
    server.script = lambda body, nth: says("x" * 3_000_000)
    found = make().reformulate(asked_of("a"))
    assert found.rejected == {"failed: answer too large": 1}
    assert len(server.bodies) == 1


def test_on_failure_error_names_the_query_and_the_reason(make, server):
    server.script = lambda body, nth: fails(500) if query_of(body) == "b" else echo(body, nth)
    with pytest.raises(DataError, match=r"query 'q1': status 500 \(attempts allowed: 2\)"):
        make(attempts=2, on_failure="error").reformulate(asked_of("a", "b"))


def test_an_endpoint_that_fails_again_and_again_is_an_error_and_not_a_long_list(make, server):
    server.script = lambda body, nth: fails(500)
    with pytest.raises(DataError) as given_up:
        make(attempts=1, give_up_after=3, concurrency=1).reformulate(asked_of(*"abcdefgh"))
    assert (given_up.value.code, given_up.value.values) == ("too-many-failures", {"failures": 3})
    assert 3 <= len(server.bodies) < 8
    found = make(attempts=1, give_up_after=0).reformulate(asked_of(*(f"n{i}" for i in range(40))))
    assert found.rejected == {"failed: status 500": 40}


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_one_clear_error_that_names_the_variable(make, server, status, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    server.script = lambda body, nth: fails(status)
    with pytest.raises(ConfigError, match="environment variable MY_KEY") as caught:
        make(key_variable="MY_KEY", concurrency=1).reformulate(asked_of("a", "b", "c"))
    assert KEY not in str(caught.value) and "\n" not in str(caught.value)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("reply", "says_so"),
    [
        (fails(400), "status 400"),
        (fails(404), "check base_url and model"),
        (fails(422), "no luck with"),
        (Reply(b"<html>\x1b[31mgone\n</html>" + b"y" * 900, 410), "gone"),
        (Reply(b'{"detail": "not here"}', 405), "not here"),
        (Reply(b'{"error": "just a text"}', 400), "just a text"),
        (Reply(b'{"error": {"code": "insufficient_quota", "message": "pay"}}', 429), "quota"),
    ],
)
def test_a_request_that_is_wrong_is_not_tried_again_and_is_one_clear_line(make, server, reply, says_so):
    server.script = lambda body, nth: reply
    with pytest.raises(ConfigError) as caught:
        make().reformulate(asked_of("a"))
    message = str(caught.value)
    assert says_so in message
    assert message.isprintable() and len(message) < 600 and KEY not in message
    assert len(server.bodies) == 1


def test_an_error_ends_the_requests_that_wait(make, server):
    server.script = lambda body, nth: fails(400) if query_of(body) == "wrong" else fails(500)
    with pytest.raises(ConfigError, match="status 400"):
        # The others would rest for an hour each.
        make(backoff_s=3600.0, max_wait_s=3600.0).reformulate(asked_of("a", "b", "wrong", "c"))


def test_a_redirect_is_not_followed_and_the_key_stays(make, server, second_server):
    away = second_server.url + "/chat/completions"
    for status in (301, 302, 307, 308):
        server.script = lambda body, nth, status=status: Reply(b"", status, {"Location": away})
        with pytest.raises(ConfigError, match="set base_url"):
            make().reformulate(asked_of("a"))
    assert second_server.bodies == []


def test_a_prompt_that_the_endpoint_refuses_is_counted_as_refused(make, server):
    refusal = Reply(b'{"error": {"code": "content_filter", "message": "no"}}', 400)
    server.script = lambda body, nth: refusal if query_of(body) == "b" else echo(body, nth)
    found = make().reformulate(asked_of("a", "b"))
    assert found.rows == [0, 0] and found.rejected == {"refused": 1}


def test_a_prompt_that_is_too_long_for_the_model_fails_alone(make, server):
    refusal = Reply(b'{"error": {"code": "context_length_exceeded", "message": "no"}}', 400)
    server.script = lambda body, nth: refusal if query_of(body) == "b" else echo(body, nth)
    found = make().reformulate(asked_of("a", "b"))
    assert found.rows == [0, 0] and found.rejected == {"failed: prompt too long": 1}
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (says(""), "empty answer"),
        (says(None), "empty answer"),
        (says(None, refusal="I will not"), "refused"),
        (says("text", finish="content_filter"), "refused"),
        (says("Here is a list of queries:"), "preamble line"),
        (Reply(b'{"choices": [{"message": {"content": {"a": 1}}}], "usage": "none"}'), "empty answer"),
    ],
)
def test_an_answer_without_a_query_is_an_answer_and_not_a_failure(make, server, reply, reason):
    server.script = lambda body, nth: reply
    assert make().reformulate(asked_of("a")).rejected == {reason: 1}
    assert len(server.bodies) == 1


def test_an_answer_with_a_preamble_gives_its_queries(make, server):
    server.script = lambda body, nth: says('Here is a list of 2 queries:\n\n1. "one way"\n2. other way')
    found = make().reformulate(asked_of("a"))
    assert found.texts == ["one way", "other way"] and found.rejected == {"preamble line": 1}


def test_a_good_answer_under_a_wrong_content_type_is_still_an_answer(make, server):
    server.script = lambda body, nth: Reply(completion('["x y"]'), headers={"Content-Type": "text/plain"})
    assert make().reformulate(asked_of("a")).texts == ["x y"]


def test_an_answer_in_parts_is_put_together(make, server):
    parts = [{"type": "text", "text": '["x '}, {"type": "image"}, {"type": "text", "text": 'y"]'}]
    server.script = lambda body, nth: says(parts)
    assert make().reformulate(asked_of("a")).texts == ["x y"]


def test_halves_of_characters_do_no_harm(make, server, tmp_path):
    server.script = lambda body, nth: says('["x \ud83d y"]')
    found = make(cache=tmp_path).reformulate(asked_of("a \ud83d b"))
    assert found.texts == ["x � y"]
    assert "a � b" in server.bodies[0]["messages"][1]["content"]


class Timer(threading.Event):
    """Time that passes only when somebody rests."""

    def __init__(self):
        super().__init__()
        self.now, self.rests = 0.0, []

    def wait(self, timeout=None):
        self.rests.append(timeout)
        self.now += timeout
        return False


def asked_once(server, replies, **settings):
    """The rests that one request took, by a clock of the test's own."""
    server.script = first(*replies)
    timer = Timer()
    endpoint = Endpoint(server.url, backoff_s=0.5, **settings)
    with closing(ChatClient(endpoint, RateLimit(None, lambda: timer.now), timer)) as client:
        client.ask({"messages": [{"content": "Query: a"}]}, "key")
    return timer.rests


def test_a_rest_is_as_long_as_the_endpoint_asks(server):
    rests = asked_once(server, [fails(429, Retry_After="20")])
    # First the rest of good manners, then what is left of the twenty seconds.
    assert 0.25 <= rests[0] <= 0.5
    assert sum(rests) == pytest.approx(20.0)


def test_rests_double_from_one_attempt_to_the_next(server):
    rests = asked_once(server, [fails(500)] * 4)
    assert len(rests) == 4
    for rest, whole in zip(rests, [0.5, 1.0, 2.0, 4.0], strict=True):
        assert whole / 2 <= rest <= whole


def test_an_endpoint_that_asks_for_too_long_a_rest_is_left(make, server):
    server.script = lambda body, nth: fails(429, Retry_After="86400")
    found = make(max_wait_s=30.0).reformulate(asked_of("a"))
    assert found.rejected == {f"failed: {TOO_LONG_A_WAIT}": 1}
    assert len(server.bodies) == 1


def test_a_thousand_requests_through_a_bad_day_are_all_served(make, server):
    draw, faults = random.Random(3), []

    def bad_day(body, nth):
        with server.lock:
            luck = draw.random()
            if luck < 0.07:
                faults.append(luck)
        if luck < 0.05:
            return fails(429, Retry_After="0.001")
        return fails(500) if luck < 0.07 else echo(body, nth)

    server.script = bad_day
    reformulator = make(concurrency=8)
    texts = [f"query number {i}" for i in range(1000)]
    found = reformulator.reformulate(asked_of(*texts))
    assert found.rejected == {}
    assert found.rows == [row for row in range(1000) for _ in range(2)]
    assert found.texts == [f"{text} {end}" for text in texts for end in ("one 0", "two")]
    assert len(faults) > 30
    assert len(server.bodies) == 1000 + len(faults)


def test_no_more_requests_are_on_their_way_than_allowed(make, server):
    server.script = lambda body, nth: Reply(echo(body, nth).body, sleep=0.002)
    make(concurrency=3).reformulate(asked_of(*(f"n{i}" for i in range(60))))
    assert 1 <= server.most_busy <= 3


def test_the_number_of_threads_does_not_change_the_outcome(make):
    asked = asked_of(*(f"n{i}" for i in range(30)))
    one, many = make(concurrency=1).reformulate(asked), make(concurrency=16).reformulate(asked)
    assert (one.rows, one.texts) == (many.rows, many.texts)


def test_a_rate_limit_lets_everything_through_in_the_end(make):
    assert len(make(requests_per_minute=60_000).reformulate(asked_of(*"abcdef"))) == 12


def test_the_key_goes_to_the_endpoint_and_nowhere_else(make, server, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    server.script = lambda body, nth: fails(500) if nth == 0 else says(f'["my key is {KEY}"]')
    reformulator = make(cache=tmp_path)
    found = reformulator.reformulate(asked_of("a"))
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert server.paths == ["/v1/chat/completions"] * 2
    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    shown = "".join(capfd.readouterr()) + caplog.text + repr(vars(reformulator)) + json.dumps(reformulator.settings())
    assert found.texts == ["my key is [key]"]
    assert KEY not in written + shown + "".join(map(json.dumps, server.bodies))


def test_no_key_is_sent_where_there_is_none(make, server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    make().reformulate(asked_of("a"))
    assert "authorization" not in server.headers[0]


@pytest.mark.parametrize("key", ["sk-two words 1234", "sk-line\nbreak-1234", "sk-ключ-12345678"])
def test_a_key_that_cannot_be_sent_is_an_error_that_does_not_show_it(make, server, monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY") as caught:
        make().reformulate(asked_of("a"))
    assert key not in str(caught.value) and server.bodies == []


def test_the_address_can_come_from_the_environment(make, server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/")
    assert len(make(base_url=None).reformulate(asked_of("a"))) == 2
    assert len(make(base_url=server.url + "/chat/completions").reformulate(asked_of("a"))) == 2
    assert set(server.paths) == {"/v1/chat/completions"}


def test_a_certificate_that_nobody_vouches_for_is_refused(make, tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: no certificate can be made")
    pem, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(pem)]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    server = started(context)
    try:
        with pytest.raises(ConfigError, match="certificate") as caught:
            make(base_url=server.url).reformulate(asked_of("a"))
        assert server.bodies == [] and isinstance(caught.value, AskewError)
    finally:
        ended(server)
