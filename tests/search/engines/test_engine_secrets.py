"""No token, no query and no document comes out: not in messages, logs, settings, or files that are not encrypted."""

import base64
import logging
import pickle
import sqlite3
import zlib

import pytest

from askew.core.errors import AskewError
from askew.search.engines.http import http
from askew.search.engines.wire import Authentication, SecretSource
from askew.ui.cli.main import run
from search_server import SearchServer, ServerFault

TOKEN = "tok-3141592653589793"
QUERY = "zebra crossing of miss marple"
TEXT = "Marple crossing: a document that nobody else may read."


@pytest.fixture
def private(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEARCH_TOKEN", TOKEN)
    monkeypatch.setenv("CACHE_SECRET", "a long enough secret of ours")
    (tmp_path / "queries.tsv").write_text(f"1\t{QUERY}\n")
    with SearchServer({"d1": TEXT, "d2": "crossing"}, token=f"Bearer {TOKEN}") as server:
        yield server


def search(server, *more):
    url = f"--set=url={server.url}/search?q={{query}}&size={{k}}"
    return run(
        ["search", "queries.tsv", "--ranker", "http", url, "--set=auth_env=SEARCH_TOKEN", "--out", "a.run", *more]
    )


def held_in(folder, but=()):
    """What is in the files of a folder, as it is and unpacked."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in but:
            found[path.name] = path.read_bytes()
    return found


def test_a_search_writes_neither_token_nor_query_nor_text(private, tmp_path, capfd, caplog):
    with caplog.at_level(logging.DEBUG):
        assert search(private, "--set=cache_key_env=CACHE_SECRET") == 0
    assert private.queries == [QUERY]
    said = capfd.readouterr()
    shown = [said.out, said.err, caplog.text, *map(repr, caplog.records)]
    for secret in (TOKEN, QUERY, "marple", TEXT, "nobody", "a long enough secret"):
        assert all(secret not in text for text in shown)
        for name, data in held_in(tmp_path, but=("queries.tsv",)).items():
            assert secret.encode() not in data, name
    assert set(held_in(tmp_path)) >= {"a.run", "a.run.answers"}
    with sqlite3.connect("a.run.answers") as file:
        values = file.execute("SELECT value FROM answers UNION ALL SELECT value FROM texts").fetchall()
    file.close()
    for (value,) in values:
        with pytest.raises(zlib.error):
            zlib.decompress(value)


def test_answers_that_are_not_encrypted_have_documents_but_no_query_and_no_token(private, tmp_path):
    assert search(private) == 0
    with sqlite3.connect("a.run.answers") as file:
        values = file.execute("SELECT value FROM answers UNION ALL SELECT value FROM texts").fetchall()
    file.close()
    unpacked = b"".join(zlib.decompress(value) for (value,) in values)
    assert TEXT.encode() in unpacked
    for secret in (TOKEN, QUERY, "marple"):
        assert secret.encode() not in unpacked
        assert secret.encode() not in (tmp_path / "a.run.answers").read_bytes()


def test_with_the_cache_off_nothing_but_the_run_is_written(private, tmp_path):
    assert search(private, "--set=cache=off") == 0
    assert set(held_in(tmp_path)) == {"queries.tsv", "a.run"}


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 413, 418, 429, 500, 503])
def test_no_error_quotes_what_the_server_says(private, capfd, caplog, status):
    """The server of the tests quotes path, body and token in every error."""
    private.failures.extend([ServerFault(status, {"Location": f"/?q={QUERY}"})] * 9)
    with caplog.at_level(logging.DEBUG):
        assert search(private, "--set=backoff_s=0.0") != 0
    said = capfd.readouterr()
    assert said.err.startswith("askew: ") and f"HTTP status {status}" in said.err
    for secret in (TOKEN, QUERY, "marple", "zebra"):
        assert secret not in said.err + said.out + caplog.text


def test_a_wrong_token_is_one_clear_line(private, monkeypatch, capfd):
    monkeypatch.setenv("SEARCH_TOKEN", "tok-of-somebody-else")
    assert search(private) == 3
    said = capfd.readouterr().err
    assert "HTTP status 401" in said and "rejected" in said
    assert "somebody" not in said


def test_a_variable_that_is_not_set_is_named(private, monkeypatch, capfd):
    monkeypatch.delenv("SEARCH_TOKEN")
    assert search(private) == 2
    assert "SEARCH_TOKEN" in capfd.readouterr().err
    assert private.requests == []


def test_a_ranker_keeps_no_secret(private):
    ranker = http(f"{private.url}/search?q={{query}}", auth_env="SEARCH_TOKEN")
    ranker.search([QUERY], 3)
    assert TOKEN not in repr(ranker) + repr(ranker.engine) + repr(vars(ranker.engine)) + repr(ranker.settings())
    assert TOKEN not in repr(ranker.engine._auth) and TOKEN.encode() not in pickle.dumps(ranker.engine._auth)
    assert QUERY not in repr(vars(ranker))


@pytest.mark.parametrize(
    ("scheme", "secret", "headers"),
    [
        ("bearer", "abcdefgh", {"Authorization": "Bearer abcdefgh"}),
        ("apikey", "abcdefgh", {"Authorization": "ApiKey abcdefgh"}),
        ("basic", "me:pass word", {"Authorization": f"Basic {base64.b64encode(b'me:pass word').decode()}"}),
        ("header:X-Key", "abcdefgh", {"X-Key": "abcdefgh"}),
    ],
)
def test_a_secret_is_sent_as_its_scheme_says(monkeypatch, tmp_path, scheme, secret, headers):
    monkeypatch.setenv("A_SECRET", secret)
    assert Authentication(SecretSource("auth", "A_SECRET"), scheme).headers() == headers
    (tmp_path / "secret").write_text(f"{secret}\n")
    assert Authentication(SecretSource("auth", file=tmp_path / "secret"), scheme).headers() == headers


def test_a_token_that_was_renewed_is_used(private, tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN)
    ranker = http(f"{private.url}/search?q={{query}}", auth_file=str(path), concurrency=1)
    ranker.search(["crossing"], 3)
    private.token = "Bearer another-token"
    path.write_text("another-token")
    ranker.search(["miss"], 3)
    assert private.queries == ["crossing", "miss"]


def test_other_headers_come_from_the_environment_too(private, monkeypatch):
    monkeypatch.setenv("TENANT", "secret-tenant-1")
    ranker = http(f"{private.url}/search?q={{query}}", auth_env="SEARCH_TOKEN", headers_env={"X-Tenant": "TENANT"})
    ranker.search(["crossing"], 3)
    assert private.requests[-1][2]["x-tenant"] == "secret-tenant-1"
    assert "secret-tenant-1" not in repr(ranker.settings()) + repr(vars(ranker.engine))


@pytest.mark.parametrize(("name", "content"), [("no", None), ("empty", ""), ("lines", "a\nb"), ("wide", "schlüssel")])
def test_a_file_that_holds_no_secret_is_refused_without_being_quoted(tmp_path, name, content):
    path = tmp_path / name
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(AskewError) as caught:
        SecretSource("auth", file=path).read()
    assert "auth_file=" in str(caught.value)
    assert "schlüssel" not in str(caught.value)


def test_answers_to_one_user_are_not_given_to_another(tmp_path, monkeypatch):
    with SearchServer({"d1": TEXT}) as server:
        monkeypatch.setenv("MINE", "token-of-one-tenant")
        monkeypatch.setenv("YOURS", "token-of-another-tenant")
        url = f"{server.url}/search?q={{query}}&size={{k}}"
        for number, variable in enumerate(("MINE", "MINE", "YOURS", "MINE")):
            http(url, cache=str(tmp_path / "answers"), auth_env=variable).search(["station"], 3)
            assert len(server.queries) == (1, 1, 2, 2)[number]
        assert b"tenant" not in (tmp_path / "answers").read_bytes()
