"""PostgreSQL as a ranker, for real: how queries are made, what is quoted, limits, failures, and passwords."""

import logging
import random

import numpy as np
import pytest

from askew.core.errors import ConfigError
from askew.models import load_model
from askew.search.engines.client import EngineError
from askew.search.engines.databases import PostgresEngine, postgres
from askew.testing.contracts import TOY_DOCS, check_ranker
from askew.ui.cli.main import run

QUERY = "zebra station of miss marple"


@pytest.fixture
def server(postgres_server):
    postgres_server.load(TOY_DOCS)
    return postgres_server


@pytest.fixture
def make(server):
    made = []

    def make(**settings):
        made.append(postgres(**{"place": server.url, "table": "docs", "backoff_s": 0.001, **settings}))
        return made[-1]

    yield make
    for ranker in made:
        ranker.close()


def order(ranker, query, k=10):
    hits = ranker.search([query], k)
    return [ranker.doc_ids[i].as_py() for i in hits.docs.tolist()]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("mother station & brother", {"d1", "d2", "d3"}),
        ("the and of", set()),
    ],
)
def test_a_document_needs_one_word_of_the_query(make, query, found):
    assert set(order(make(), query)) == found


def test_words_are_those_of_the_text_columns_or_of_a_column_of_words(make, server):
    server.run("ALTER TABLE docs ADD COLUMN title text DEFAULT 'lighthouse'")
    assert len(order(make(text_fields="title,text"), "lighthouse")) == len(TOY_DOCS)
    assert order(make(tsvector_column="words"), "lighthouse") == []
    assert order(make(language="simple"), "stations") == []
    check_ranker(make())


def test_names_are_quoted_and_queries_are_parameters(make, server):
    table, column = 'we"ird %s; DROP TABLE docs', "text %(a)s ' \" here"
    quoted = ['"' + name.replace('"', '""') + '"' for name in (table, column)]
    server.run(
        f"DROP TABLE IF EXISTS {quoted[0]}", f"CREATE TABLE {quoted[0]} (id int, {quoted[1]} text)",
        f"INSERT INTO {quoted[0]} VALUES (7, 'a station')",
    )  # fmt: skip
    ranker = make(table=table, text_fields=column)
    assert order(ranker, "station") == ["7"] and ranker.texts == {"7": "a station"}
    assert order(ranker, "'); DROP TABLE docs; --") == []
    assert order(make(table="public.docs"), "station") == ["d3"]


def test_a_search_cannot_write(make, server):
    server.run(
        "DROP TABLE IF EXISTS written CASCADE", "CREATE TABLE written (n int)",
        "CREATE OR REPLACE FUNCTION leave_mark() RETURNS text LANGUAGE plpgsql VOLATILE AS "
        "$$ BEGIN INSERT INTO written VALUES (1); RETURN 'station'; END $$",
        "CREATE VIEW marking AS SELECT id, leave_mark() AS text FROM docs",
        "CREATE VIEW modes AS SELECT current_setting('transaction_read_only') AS id, text FROM docs",
    )  # fmt: skip
    with pytest.raises(EngineError, match="25006"):
        make(table="marking").search(["station"], 3)
    assert order(make(table="modes"), "station") == ["on"]


def test_a_query_that_takes_too_long_is_ended(make, server):
    server.run("CREATE VIEW slow AS SELECT id, text || coalesce(pg_sleep(5)::text, '') AS text FROM docs")
    with pytest.raises(EngineError) as caught:
        make(table="slow", timeout_s=0.2, attempts=1).search(["station"], 3)
    assert caught.value.code == "no-connection"


def test_vectors_are_ranked_as_the_model_says(make, server, tiny_words):
    settings = server.load(TOY_DOCS, tiny_words)
    model = load_model("dense", tiny_words)
    docs, query = model.encode_document(list(TOY_DOCS.values())), model.encode_query(["mother and sister"])[0]
    dots = docs @ query
    # Of the blank document the cosine is not defined.
    wanted = {"dot": dots, "l2": -np.linalg.norm(docs - query, axis=1)}
    with np.errstate(invalid="ignore"):
        wanted["cosine"] = dots / np.linalg.norm(docs, axis=1) / np.linalg.norm(query) - 1
    for distance, scores in wanted.items():
        ranker = make(**settings, distance=distance)
        hits = ranker.search(["mother and sister"], 5)
        best = np.argsort(-np.nan_to_num(scores, nan=-9))[:5]
        assert [ranker.doc_ids[i].as_py() for i in hits.docs.tolist()] == [list(TOY_DOCS)[i] for i in best]
        assert hits.scores.tolist() == pytest.approx(scores[best].tolist(), abs=1e-4)


def test_an_index_of_vectors_finds_as_many_as_are_asked_for(make, server, tiny_words):
    """By default an HNSW index finds 40 rows, whatever the limit of the statement."""
    words = " ".join(TOY_DOCS.values()).split()
    docs = {f"n{i}": " ".join(random.Random(i).choices(words, k=8)) for i in range(150)}
    settings = server.load(docs, tiny_words)
    server.run(
        "CREATE INDEX ON docs USING hnsw (embedding vector_cosine_ops)", "ALTER ROLE postgres SET enable_seqscan = off"
    )
    try:
        assert len(order(make(**settings), "station", 100)) == 100
    finally:
        server.run("ALTER ROLE postgres RESET enable_seqscan")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"table": "dogs"}, "UndefinedTable"),
        ({"table": "dogs.docs"}, "UndefinedTable"),
        ({"id_field": "key"}, "UndefinedColumn"),
        ({"language": "klingon"}, "UndefinedObject"),
        ({"tsvector_column": "id"}, "UndefinedFunction"),
        ({"vector_field": "text"}, "UndefinedFunction"),
        ({"vector_field": "embedding"}, "DataException"),
    ],
)
def test_what_is_not_there_is_one_clear_line_without_the_query(make, server, request, caplog, settings, words):
    if "vector_field" in settings:
        settings = {**settings, "model": request.getfixturevalue("tiny_words")}
        server.run("UPDATE docs SET embedding = '[1]'")
    with caplog.at_level(logging.DEBUG), pytest.raises(EngineError) as caught:
        make(**settings).search([QUERY], 3)
    said = str(caught.value)
    assert words in said and "table" in said and "\n" not in said
    for secret in ("marple", "opens at nine"):
        assert secret not in said + caplog.text


def test_a_server_that_stops_is_one_clear_line_and_its_connections_are_made_anew(make, server, tmp_path):
    ranker = make(attempts=2, cache=str(tmp_path / "answers"), concurrency=2)
    ranker.search(["station", "mother", "brother"], 3)
    server.stop()
    try:
        with pytest.raises(EngineError, match="3 of 4 queries"):
            ranker.search(["station", "mother", "brother", "sister"], 3)
    finally:
        server.start()
    before = ranker.requests
    assert len(ranker.search(["station", "mother", "brother", "sister"], 3).docs) == 4
    assert ranker.requests - before == 1


@pytest.fixture
def secured(server, monkeypatch):
    """A user who needs a password."""
    rules = server.folder / "pg_hba.conf"
    whole = rules.read_text()
    server.run(
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN PASSWORD 'pass-314159265'",
        "GRANT SELECT ON docs TO reader",
    )
    rules.write_text("local all reader scram-sha-256\n" + whole)
    server.run("SELECT pg_reload_conf()")
    for name in ("PGPASSWORD", "PGPASSFILE", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    yield server.url.replace("postgres:@", "reader@")
    rules.write_text(whole)
    server.run("SELECT pg_reload_conf()", "DROP OWNED BY reader", "DROP ROLE reader")


def test_a_password_is_read_when_it_is_used_and_kept_nowhere(make, secured, monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("READER", "pass-314159265")
    (tmp_path / "secret").write_text("pass-314159265\n")
    with caplog.at_level(logging.DEBUG):
        for auth in ({"auth_env": "READER"}, {"auth_file": str(tmp_path / "secret")}):
            ranker = make(place=secured, **auth)
            assert order(ranker, "station") == ["d3"]
            assert "pass-314159265" not in repr(vars(ranker.engine)) + repr(ranker.settings()) + caplog.text
    monkeypatch.setenv("READER", "pass-of-another")
    for auth in ({"auth_env": "READER"}, {}):
        with pytest.raises(EngineError, match="the secret") as caught:
            make(place=secured, **auth).search(["station"], 3)
        assert caught.value.code == "no-connection" and "pass-of-another" not in str(caught.value)


def test_a_search_writes_neither_password_nor_query_nor_text(secured, monkeypatch, tmp_path, capfd, caplog):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("READER", "pass-314159265")
    monkeypatch.setenv("CACHE_SECRET", "a long enough secret of ours")
    (tmp_path / "queries.tsv").write_text(f"1\t{QUERY}\n")
    own = {"place": secured, "table": "docs", "auth_env": "READER", "cache_key_env": "CACHE_SECRET"}
    settings = [f"--set={name}={value}" for name, value in own.items()]
    with caplog.at_level(logging.DEBUG):
        assert run(["search", "queries.tsv", "--ranker", "postgres", *settings, "--out", "a.run"]) == 0
    said = capfd.readouterr()
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "queries.tsv"}
    assert set(written) >= {"a.run", "a.run.answers"} and b" d3 1 " in written["a.run"]
    for secret in ("pass-314159265", "marple", "opens at nine"):
        assert secret not in said.out + said.err + caplog.text
        assert all(secret.encode() not in data for data in written.values())


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("postgresql://me:pass-1234@host/db", "secret-in-place"),
        ("postgresql://me@host/db?password=pass-1234", "secret-in-place"),
        ("host=localhost password=pass-1234", "no-place"),
        ("postgresql://host:port/db", "no-place"),
    ],
)
def test_addresses_that_cannot_work_are_refused_and_not_shown(place, code):
    with pytest.raises(ConfigError) as caught:
        PostgresEngine(place, "docs")
    assert caught.value.code == code and "pass-1234" not in str(caught.value)
