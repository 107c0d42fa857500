"""An address shows no credentials, in whatever form it is written, and opens what it names."""

import copy
import json
import pickle
from dataclasses import asdict, dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.address import Address, _user_of, is_secret_name, without_secret_values, without_secrets
from askew.core.errors import DataError, UnknownName

SECRET = "tops3cretvalue"
WITH_SECRETS = [
    f"s3://AKIAEXAMPLEEXAMPLE12:{SECRET}@bucket/work",
    f"s3://bucket/work?secret_key={SECRET}&region=eu-west-1",
    f"s3://bucket/work?anything={SECRET}",
    f"https://{SECRET}@host/v1",
    f"https://host/v1?key=a#{SECRET}",
    f"simplecache::s3://name:{SECRET}@bucket/work",
    f"s3://name:wJal/{SECRET}+x@bucket/work",
    f"s3://name:12/{SECRET}@bucket/work",
    f"s3://name:a?{SECRET}@bucket/work",
    f"s3://name:a#{SECRET}@bucket",
    f"abfs://box:{SECRET}@account/work",
    f"name:{SECRET}@cluster.example.org:6379",
    f"name:{SECRET}@localhost",
    f"name:{SECRET}@localhost:1r:{SECRET}@localhost",
]


@dataclass(frozen=True)
class Held:
    where: Address


@pytest.mark.parametrize("text", WITH_SECRETS)
def test_no_form_of_an_address_shows_a_secret(text):
    address = Address(text)
    shown = [
        str(address), repr(address), f"{address}", f"{address!r}", f"{address:>5}", "%s" % address,  # noqa: UP031
        json.dumps({"store": address}), repr(Held(address)), json.dumps(asdict(Held(address))), address + "/x",
        address.rstrip("/"),
    ]  # fmt: skip
    assert not [one for one in shown if SECRET in one]
    assert address.reveal() == text


@pytest.mark.parametrize("text", WITH_SECRETS)
def test_an_address_travels_whole(text):
    address = Address(text)
    for one in (pickle.loads(pickle.dumps(address)), copy.deepcopy(address), Address(address)):
        assert (type(one), one.reveal(), one) == (Address, text, address)


@pytest.mark.parametrize(
    "text",
    [".askew", "a folder/b", "data/x@dev", "s3://bucket/work", "s3://bucket/x@dev", "abfs://box@account/work",
     "https://host:8000/v1", "memory://one", "http://[::1]:80/v1", "NFaiRR(lexicon='a:b')@10", "irds:beir/x/test",
     "s3://bucket/work?region=eu-west-1&endpoint_override=http://127.0.0.1:9000"],
)  # fmt: skip
def test_an_address_without_a_secret_is_shown_as_it_is(text):
    assert str(Address(text)) == text


def test_what_tells_stores_apart_is_shown_and_the_rest_of_the_parameters_is_not():
    found = Address(f"s3://k:{SECRET}@bucket/w?region=eu&token=x&endpoint_override=http://u:p@host&other=1")
    assert found == "s3://bucket/w?region=eu"


@pytest.mark.parametrize("text", WITH_SECRETS)
def test_the_error_of_a_library_that_quotes_the_address_is_scrubbed(text):
    said = f"cannot open {text}: the bucket of {SECRET} is closed"
    assert SECRET not in Address(text).scrub(said)
    assert "cannot open" in Address(text).scrub(said)


def test_a_short_password_hides_the_whole_message_and_not_letters_of_words():
    address = Address("s3://ab:xy@bucket")
    assert address.scrub("proxy error") == "proxy error"
    assert "xy" not in address.scrub("wrong key xy")


def test_a_url_in_any_text_loses_its_credentials_only():
    text = "GET https://u:pass1@h/a?q=rain&api_key=abc then https://h/b?q=sun (see mailto:x@y) s3:/k:pass1@b/c"
    found = without_secrets(text)
    assert "pass1" not in found
    assert "abc" not in found
    assert "https://h/a?q=rain&api_key=[hidden] then https://h/b?q=sun (see mailto:x@y) s3:/b/c" in found


def test_an_error_of_ours_never_quotes_a_secret():
    assert str(DataError("run s3://k:hush@b/run: no such file")) == "run s3://b/run: no such file"
    assert "hush" not in str(UnknownName("store", "s3://k:hush@b", ["one"]))
    Address(f"s3://k:{SECRET}@bucket")
    assert SECRET not in str(DataError(f"a library says {SECRET}"))


def test_settings_that_are_published_have_no_secret_in_them():
    given = {
        "base_url": f"https://u:{SECRET}@host/v1", "api_key": SECRET, "model": "m", "max_tokens": 5,
        "key_variable": "OPENAI_API_KEY", "list": [f"x s3://k:{SECRET}@b"], "inner": {"token": SECRET, "n": 1},
        "measures": ["NFaiRR@10"],
    }  # fmt: skip
    found = without_secret_values(given)
    assert SECRET not in json.dumps(found)
    assert (found["model"], found["max_tokens"], found["key_variable"]) == ("m", 5, "OPENAI_API_KEY")
    assert (found["measures"], found["inner"]["n"], found["base_url"]) == (["NFaiRR@10"], 1, "https://host/v1")


def test_names_of_secrets_are_told_from_names_of_other_settings():
    assert all(
        map(is_secret_name, ("api_key", "apikey", "secret", "AWS_SECRET_ACCESS_KEY", "token", "password", "sig"))
    )
    assert not any(map(is_secret_name, ("max_tokens", "key_variable", "tokens", "keywords", "k", "model", "design")))


@given(st.text("abcXYZ0189/?#:@%+=&._-", min_size=1, max_size=30))
def test_whatever_a_password_is_made_of_it_is_not_shown(password):
    secret = f"Q{password}Q"
    address = Address(f"s3://KEY:{secret}@bucket/work")
    assert secret not in str(address)
    assert address.reveal() == f"s3://KEY:{secret}@bucket/work"


@pytest.mark.parametrize(
    "text",
    [":" * 20_000, "a:" * 10_000, "a:b@" * 5_000, "a:@" + "a." * 10_000, "x-" * 10_000 + ":/y", "a:@b.c/ " * 500],
)
def test_a_text_of_any_form_is_read_in_one_pass(text):
    # A pattern that tries every start and every colon takes hours here.
    Address(text)
    without_secret_values(text)
    assert without_secrets(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("u:p@h.com", (0, 4)), ("x/u:p@h:1/y", (2, 6)), ("a@u:p@localhost", (2, 6)), ("(u:p@h.com", (1, 5)),
        ("u:p/q@h.com", (0, 6)), ("up@h.com", (-1, -1)), ("u:p@host", (-1, -1)), ("u:p@h.com and more", (-1, -1)),
        ("NFaiRR(a:b)@10", (-1, -1)), ("user:PW@localhost:1r:PW@localhost", (0, 24)), ("u:p@h.com/x@dev", (0, 4)),
    ],
)  # fmt: skip
def test_user_and_password_before_a_host_are_found(text, found):
    assert _user_of(text) == found


@pytest.mark.parametrize("name", ["code", "x-functions-key", "Proxy-Authorization", "X-Amz-Signature", "sig", "token"])
def test_parameters_with_these_names_are_secret(name):
    assert is_secret_name(name)
    assert "SECRETVALUE" not in without_secrets(f"404 at https://host.example/api?{name}=SECRETVALUE&q=1")
