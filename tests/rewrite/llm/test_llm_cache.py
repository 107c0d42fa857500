"""The cache: whole or not at all, checked when read, the same for several processes."""

import json
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llm_server import KEY, asked_of

from askew.core.errors import ConfigError, StoreError
from askew.rewrite.llm import AnswerCache, request_key
from askew.rewrite.llm_client import Completion

BODY = {"model": "toy", "messages": [{"role": "user", "content": "naïve 🚂"}], "temperature": 0.0}
K = request_key("default", BODY, 0)
ANSWER = Completion("text ✓", "stop", False, 5, 2)


def test_what_was_written_is_read_back(tmp_path):
    cache = AnswerCache(tmp_path / "new" / "folder")
    assert cache.read(K) is None
    cache.write(K, BODY, ANSWER)
    assert cache.read(K) == ANSWER
    assert cache.path(K).parent.name == K[:2]
    assert [path.name for path in cache.path(K).parent.iterdir()] == [cache.path(K).name]


def test_the_key_depends_on_everything_that_is_asked_and_on_nothing_else():
    keys = {
        K,
        request_key("other", BODY, 0),
        request_key("default", BODY, 1),
        request_key("default", {**BODY, "model": "toy2"}, 0),
        request_key("default", {**BODY, "temperature": 0.5}, 0),
        request_key("default", {**BODY, "messages": []}, 0),
    }
    assert len(keys) == 6
    assert request_key("default", dict(reversed(BODY.items())), 0) == K


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_survives_the_cache(tmp_path, text):
    cache = AnswerCache(tmp_path)
    cache.write(K, BODY, Completion(text))
    assert cache.read(K) == Completion(text)


def _flip(data: bytes) -> bytes:
    return data.replace("text ✓".encode(), "tixt ✓".encode())


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: b"\0" * len(data),
        lambda data: b"[]",
        lambda data: b"{}",
        lambda data: b"[" * 100_000,
        lambda data: data.replace(b'"toy"', b'"tay"'),
        lambda data: data.replace(b'"completion_tokens": 2', b'"completion_tokens": 3'),
        _flip,
    ],
)
def test_a_damaged_entry_is_noticed(tmp_path, damage):
    cache = AnswerCache(tmp_path)
    cache.write(K, BODY, ANSWER)
    before = cache.path(K).read_bytes()
    cache.path(K).write_bytes(damage(before))
    assert cache.path(K).read_bytes() != before
    assert cache.read(K) is None


def test_an_entry_under_another_name_is_noticed(tmp_path):
    cache = AnswerCache(tmp_path)
    cache.write(K, BODY, ANSWER)
    other = request_key("default", BODY, 1)
    cache.path(other).parent.mkdir(exist_ok=True)
    cache.path(K).rename(cache.path(other))
    assert cache.read(other) is None


def test_a_damaged_entry_is_asked_again_and_mended(make, server, tmp_path):
    whole = make(cache=tmp_path).reformulate(asked_of("a", "b", "c"))
    entries = sorted(tmp_path.glob("??/*.json"))
    assert len(entries) == 3
    entries[1].write_bytes(entries[1].read_bytes()[:-40])
    again = make(cache=tmp_path)
    assert again.reformulate(asked_of("a", "b", "c")).texts == whole.texts
    assert len(server.bodies) == 4
    last = make(cache=tmp_path)
    last.reformulate(asked_of("a", "b", "c"))
    assert len(server.bodies) == 4


def test_writers_at_the_same_time_leave_one_whole_entry(tmp_path):
    caches = [AnswerCache(tmp_path) for _ in range(8)]
    together = threading.Barrier(8)
    seen = []

    def work(cache):
        together.wait()
        for _ in range(20):
            cache.write(K, BODY, ANSWER)
            seen.append(cache.read(K))

    threads = [threading.Thread(target=work, args=(cache,)) for cache in caches]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert seen == [ANSWER] * 160
    assert list(tmp_path.glob("??/*")) == [caches[0].path(K)]


def test_a_cache_that_cannot_be_used_is_one_clear_error(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ConfigError) as refused:
        AnswerCache(file)
    assert refused.value.code == "not-a-folder"
    cache = AnswerCache(tmp_path / "c")
    cache.path(K).mkdir(parents=True)
    with pytest.raises(StoreError, match="cannot be read"):
        cache.read(K)
    with pytest.raises(StoreError, match="cannot be written"):
        cache.write(K, BODY, ANSWER)
    assert list(cache.path(K).parent.iterdir()) == [cache.path(K)]


def test_the_cache_holds_what_was_asked_and_never_the_key(make, tmp_path):
    make(cache=tmp_path).reformulate(asked_of("railway station"))
    (entry,) = tmp_path.glob("??/*.json")
    text = entry.read_text()
    assert KEY not in text and "Bearer" not in text
    assert "railway station" in json.loads(text)["request"]["messages"][1]["content"]


def test_answers_of_the_cache_need_neither_endpoint_nor_key(make, server, tmp_path, monkeypatch):
    whole = make(cache=tmp_path).reformulate(asked_of("a", "b"))
    monkeypatch.delenv("OPENAI_API_KEY")
    offline = make(cache=str(tmp_path), base_url=None)
    assert offline.reformulate(asked_of("a", "b")).texts == whole.texts
    assert len(server.bodies) == 2
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL"):
        offline.reformulate(asked_of("a", "c"))


def test_another_address_of_the_same_endpoint_uses_the_same_answers(make, second_server, tmp_path):
    make(cache=tmp_path).reformulate(asked_of("a"))
    make(cache=tmp_path, base_url=second_server.url).reformulate(asked_of("a"))
    assert len(second_server.bodies) == 0
    make(cache=tmp_path, base_url=second_server.url, endpoint_name="second").reformulate(asked_of("a"))
    assert len(second_server.bodies) == 1
