"""The reformulator as the stage sees it."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llm_server import asked_of, echo, says

from askew.core.errors import ConfigError, DataError, UnknownName
from askew.core.protocols import QueryBatch
from askew.rewrite.llm import LlmReformulator
from askew.rewrite.prompts import shipped_prompts
from askew.testing.contracts import check_reformulator


@pytest.mark.parametrize("prompt", shipped_prompts())
@pytest.mark.parametrize("cached", [False, True])
def test_every_prompt_keeps_the_contract(make, server, tmp_path, prompt, cached):
    server.script = lambda body, nth: says(json.dumps({"queries": [f"word {len(str(body))}", "trains", "trains"]}))
    found = check_reformulator(make(prompt=prompt, cache=tmp_path if cached else None))
    assert set(found.rows) == {0, 1, 3, 4}
    assert found.rejected["empty query"] == 1


def test_samples_keep_the_contract_too(make):
    check_reformulator(make(samples=3, temperature=0.7))


def test_a_request_says_everything_that_was_set(make, server):
    make(count=7, temperature=0.3, top_p=0.9, max_tokens=99, seed=41, json=True).reformulate(asked_of("trains  today"))
    (body,) = server.bodies
    assert {name: value for name, value in body.items() if name != "messages"} == {
        "model": "toy", "temperature": 0.3, "top_p": 0.9, "max_tokens": 99, "seed": 41,
        "response_format": {"type": "json_object"},
    }  # fmt: skip
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert "Write 7 different" in body["messages"][1]["content"]
    assert body["messages"][1]["content"].endswith("Query: trains today")


def test_what_is_none_is_not_sent(make, server):
    make(temperature=None, top_p=None, seed=None, max_tokens_field="max_completion_tokens").reformulate(asked_of("a"))
    assert set(server.bodies[0]) == {"model", "messages", "max_completion_tokens"}


def test_json_is_not_demanded_of_a_passage(make, server):
    server.script = lambda body, nth: says("Trains stop here.")
    found = make(prompt="hyde", json=True).reformulate(asked_of("a"))
    assert found.texts == ["Trains stop here."] and "response_format" not in server.bodies[0]


def test_a_whole_number_for_a_real_one_is_the_same_request(make, server, tmp_path):
    make(cache=tmp_path, temperature=1, top_p=1).reformulate(asked_of("a"))
    again = make(cache=tmp_path, temperature=1.0, top_p=1.0)
    again.reformulate(asked_of("a"))
    assert len(server.bodies) == 1


def test_samples_have_seeds_and_entries_of_their_own_and_stand_in_order(make, server, tmp_path):
    reformulator = make(samples=3, temperature=0.7, seed=10, cache=tmp_path)
    found = reformulator.reformulate(asked_of("a", "b"))
    assert found.rows == [0, 0, 0, 0, 1, 1, 1, 1]
    assert found.texts[:4] == ["a one 10", "a two", "a one 11", "a one 12"]
    assert found.rejected == {"duplicate": 4}
    assert sorted(body["seed"] for body in server.bodies) == [10, 10, 11, 11, 12, 12]
    more = make(samples=4, temperature=0.7, seed=10, cache=tmp_path)
    assert more.reformulate(asked_of("a")).texts[:4] == found.texts[:4]
    assert len(server.bodies) == 7


def test_samples_without_a_seed_are_still_different_requests(make, server, tmp_path):
    make(samples=3, temperature=0.7, seed=None, cache=tmp_path).reformulate(asked_of("a"))
    assert len(server.bodies) == 3 and len(list(tmp_path.glob("??/*.json"))) == 3


def test_the_same_query_twice_is_asked_once(make, server):
    found = make().reformulate(asked_of("a", "b", "a"))
    assert len(server.bodies) == 2
    assert found.texts[:2] == found.texts[4:] == ["a one 0", "a two"]


def test_tokens_that_make_no_sense_count_nothing(make, server, tmp_path):
    usage = {"prompt_tokens": "many", "completion_tokens": -4}
    server.script = lambda body, nth: _with_usage(echo(body, nth), usage)
    make(cache=tmp_path).reformulate(asked_of("a"))
    (entry,) = tmp_path.glob("??/*.json")
    answer = json.loads(entry.read_text())["answer"]
    assert (answer["prompt_tokens"], answer["completion_tokens"]) == (0, 0)


def _with_usage(reply, usage):
    reply.body = json.dumps({**json.loads(reply.body), "usage": usage}).encode()
    return reply


def test_passages_are_shown_as_numbered_lines_and_clipped(make, server):
    reformulator = make(prompt="grounded", passages=2, passage_chars=12)
    assert reformulator.reads == {"passages"}
    reformulator.reformulate(asked_of("a", passages=("one two three four", "five\n\n six {query}", "seven")))
    assert server.bodies[0]["messages"][1]["content"].endswith("Passages:\n[1] one two\n[2] five six")


def test_a_query_or_passage_with_fields_in_it_stays_text(make, server):
    asked = asked_of("what is {passages} {count} {0.__class__}", passages=("see {query} and {count}",))
    make(prompt="grounded").reformulate(asked)
    text = server.bodies[0]["messages"][1]["content"]
    assert "Query: what is {passages} {count} {0.__class__}\n" in text
    assert text.endswith("[1] see {query} and {count}")


def test_passages_are_needed_only_by_a_prompt_that_shows_them(make):
    assert make().reads == frozenset()
    with pytest.raises(DataError, match="passages"):
        make(prompt="grounded").reformulate(asked_of("a"))
    assert make(prompt="grounded").reformulate(QueryBatch(("q",), ("a",), ((),))).rejected == {"no passages": 1}


def test_a_prompt_of_ones_own_is_used_and_shows_in_the_settings(make, server, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('version = 4\nuser = "Other words for Query: {query}"')
    reformulator = make(prompt=str(path))
    assert len(reformulator.reformulate(asked_of("a"))) == 2
    assert [message["content"] for message in server.bodies[0]["messages"]] == ["Other words for Query: a"]
    assert reformulator.settings()["prompt"].startswith("mine@4:")
    with pytest.raises(ConfigError, match="asks for JSON"):
        make(prompt=str(path), json=True)


def test_the_settings_say_what_changes_the_outcome_and_not_where_it_is_computed(make, second_server, tmp_path):
    plain = make().settings()
    elsewhere = make(base_url=second_server.url, cache=tmp_path, concurrency=2, timeout_s=1.0, attempts=2).settings()
    assert plain == elsewhere
    changes = [
        {"model": "other"}, {"prompt": "neutral"}, {"count": 3}, {"temperature": 0.2}, {"top_p": 0.5}, {"seed": 4},
        {"max_tokens": 9}, {"json": True}, {"endpoint_name": "x"}, {"samples": 2, "temperature": 0.5},
        {"on_failure": "error"},
    ]  # fmt: skip
    found = [json.dumps(make(**change).settings(), sort_keys=True) for change in changes]
    assert len({json.dumps(plain, sort_keys=True), *found}) == len(changes) + 1
    grounded = make(prompt="grounded").settings()
    assert (
        grounded
        != make(prompt="grounded", passages=1).settings()
        != make(prompt="grounded", passage_chars=9).settings()
    )


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"model": " "}, "model"), ({"samples": 0}, "samples"), ({"count": 0}, "count"), ({"count": 2.5}, "count"),
        ({"temperature": -1.0}, "temperature"), ({"temperature": float("nan")}, "temperature"),
        ({"top_p": 0.0}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"), ({"concurrency": 0}, "concurrency"), ({"timeout_s": 0.0}, "timeout_s"),
        ({"attempts": 0}, "attempts"), ({"backoff_s": -0.1}, "backoff_s"), ({"seed": -1}, "seed"),
        ({"requests_per_minute": 0}, "requests_per_minute"), ({"on_failure": "ignore"}, "on_failure"),
        ({"max_tokens_field": "tokens"}, "max_tokens_field"), ({"samples": 2}, "temperature"),
        ({"key_variable": ""}, "key_variable"), ({"give_up_after": -1}, "give_up_after"), ({"passages": 0}, "passages"),
        ({"base_url": "ftp://host/v1"}, "http or https"), ({"base_url": "file:///etc/passwd"}, "http or https"),
        ({"base_url": "host/v1"}, "http or https"), ({"base_url": "http://"}, "http or https"),
        ({"base_url": "http://[::1"}, "base_url"), ({"base_url": "http://host:99999/v1"}, "base_url"),
        ({"base_url": "http://host/v1?key=1"}, "base_url"), ({"base_url": "http://ho st/"}, "base_url"),
        ({"base_url": None}, "OPENAI_BASE_URL"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_one_clear_error(make, wrong, named):
    with pytest.raises(ConfigError, match=named):
        make(**wrong)


def test_a_password_in_the_address_is_refused_and_not_shown(make):
    with pytest.raises(ConfigError, match="password") as caught:
        make(base_url="https://me:hunter2@host/v1")
    assert "hunter2" not in str(caught.value)


def test_an_unknown_prompt_is_named_with_what_is_known(make):
    with pytest.raises(UnknownName, match="did you mean 'neutral'"):
        make(prompt="nuetral")


@given(texts=st.lists(st.text(max_size=30), max_size=4))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_query_can_be_asked_about(make, texts):
    found = make().reformulate(asked_of(*texts))
    assert len(found) + sum(found.rejected.values()) >= len(texts)
    assert all("\n" not in text and text == text.strip() != "" for text in found.texts)


def test_the_first_line_of_the_description_is_one_line():
    assert LlmReformulator.__doc__.splitlines()[0].endswith(".")
    assert LlmReformulator.method == "llm"
