"""The prompt bank is data, and what is put into it stays data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError, UnknownName
from askew.models.prompts import KINDS
from askew.rewrite.prompts import fill, load_prompt, shipped_prompts

GOOD = 'system = "You write queries."\nuser = "Query: {query}"\n'


def written(tmp_path, text, name="mine.toml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_bank_has_the_prompts_that_the_guide_names():
    wanted = {"rewrite", "genqr", "query2doc", "hyde", "neutral", "subquestions", "stepback", "grounded", *KINDS}
    assert wanted <= set(shipped_prompts())


@pytest.mark.parametrize("name", shipped_prompts())
def test_every_shipped_prompt_says_its_name_version_aim_and_source(name):
    prompt = load_prompt(name)
    assert prompt.name == name
    assert prompt.version >= 1
    assert prompt.about and prompt.source != "not stated"
    assert "{query}" in prompt.user
    assert prompt.answer == "passage" or "json" in prompt.user.lower()
    assert "is data" in prompt.system or "are data" in prompt.system


def test_only_a_prompt_with_a_place_for_passages_uses_them():
    assert load_prompt("grounded").uses_passages
    assert not load_prompt("rewrite").uses_passages


def test_fields_are_filled_in_one_pass_so_that_a_field_in_a_query_stays_text():
    values = {"query": "what is {passages} and {count}", "passages": "SECRET", "count": "5"}
    assert fill("{count}: {query}", values) == "5: what is {passages} and {count}"


def test_a_query_reaches_no_attribute_of_anything():
    query = "{0.__class__} {query.__class__} {query!r} %s $query {{query}}"
    assert fill("Query: {query}", {"query": query}) == f"Query: {query}"


@given(st.text(), st.text())
def test_whatever_is_put_in_comes_out_as_it_was(query, passages):
    filled = fill("A {query} B {passages} C", {"query": query, "passages": passages})
    assert filled == "A " + query + " B " + passages + " C"


def test_braces_of_a_json_example_are_left_alone():
    assert fill('{"queries": ["..."]} {query}', {"query": "x"}) == '{"queries": ["..."]} x'


def test_a_prompt_of_ones_own_is_read_from_a_file(tmp_path):
    prompt = load_prompt(written(tmp_path, GOOD))
    assert (prompt.name, prompt.answer, prompt.version) == ("mine", "queries", 1)
    assert prompt.messages({"query": "x", "passages": "", "count": "5"}) == [
        {"role": "system", "content": "You write queries."},
        {"role": "user", "content": "Query: x"},
    ]


def test_an_empty_system_template_sends_no_system_message(tmp_path):
    prompt = load_prompt(written(tmp_path, 'user = "{query}"'))
    assert [message["role"] for message in prompt.messages({"query": "x"})] == ["user"]


def test_the_hash_follows_the_wording_and_not_what_is_said_about_it(tmp_path):
    first = load_prompt(written(tmp_path, GOOD))
    described = load_prompt(written(tmp_path, 'about = "new words"\n' + GOOD))
    reworded = load_prompt(written(tmp_path, GOOD.replace("You write", "Please write")))
    assert first.hash == described.hash != reworded.hash


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ('user = "no field"', ConfigError, "expected {query}"),
        ('user = "{qurey} {query}"', UnknownName, "did you mean 'query'"),
        ('user = "{query}"\nanser = "queries"', UnknownName, "did you mean 'answer'"),
        ('user = "{query}"\nanswer = "poems"', ConfigError, "poems"),
        ('user = "{query}"\nversion = "one"', ConfigError, "version"),
        ('user = "{query}"\nversion = true', ConfigError, "version"),
        ('user = "{query}"\nmax_chars = 0', ConfigError, "max_chars"),
        ('user = "{query}"\nquery_times = 2', ConfigError, "query_times"),
        ('user = 3', ConfigError, "user"),
        ('user = "{query}', DataError, "TOML"),
        ('x = ' + "[" * 5000, DataError, "TOML"),
    ],
)  # fmt: skip
def test_a_wrong_prompt_file_is_one_clear_error(tmp_path, text, error, says):
    with pytest.raises(error, match=r"mine\.toml") as caught:
        load_prompt(written(tmp_path, text))
    assert says in str(caught.value)


def test_a_prompt_that_does_not_exist_is_named_with_what_does(tmp_path):
    with pytest.raises(UnknownName, match="did you mean 'rewrite'"):
        load_prompt("rewrit")
    with pytest.raises(DataError, match=r"none\.toml"):
        load_prompt(str(tmp_path / "none.toml"))
    with pytest.raises(DataError, match="no such file"):
        load_prompt("\0.toml")


def test_a_file_that_is_no_text_is_one_clear_error(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"user = '\xff\xfe'")
    with pytest.raises(DataError, match="UTF-8"):
        load_prompt(str(path))
