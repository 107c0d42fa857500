"""Answers on disk: found again, private, encrypted where a secret is named, and damaged files told from good ones."""

import os
import sqlite3
import stat
import subprocess
import sys

import pytest

from askew.core.errors import ConfigError, StoreError
from askew.search.engines.answers import AnswerFile
from askew.search.engines.client import Found
from askew.search.engines.wire import SecretSource

FACTS = {"k": 3, "of": "engine"}
ANSWER = [Found("d1", 2.5, "a text that is private"), Found("d2", None, None), Found("d3", 1.0, "")]


@pytest.fixture
def secret(monkeypatch):
    monkeypatch.setenv("CACHE_KEY", "a secret of some length")
    return SecretSource("cache_key", "CACHE_KEY")


def test_an_answer_is_found_again_by_another_process(tmp_path):
    file = AnswerFile(tmp_path / "a")
    file.write({file.key(FACTS, "some query"): ANSWER})
    code = (
        "import sys, pathlib\nfrom askew.search.engines.answers import AnswerFile\n"
        "file = AnswerFile(pathlib.Path(sys.argv[1]))\n"
        "print(list(file.read([file.key({'of': 'engine', 'k': 3}, 'some query')]).values()))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([ANSWER])


def test_another_query_engine_or_depth_has_another_key(tmp_path):
    file = AnswerFile(tmp_path / "a")
    keys = {file.key(FACTS, "a"), file.key(FACTS, "b"), file.key({**FACTS, "k": 4}, "a"), file.key({"k": 3}, "a")}
    assert len(keys) == 4


def test_two_files_have_different_keys_for_the_same_query(tmp_path):
    assert AnswerFile(tmp_path / "a").key(FACTS, "q") != AnswerFile(tmp_path / "b").key(FACTS, "q")


def test_many_answers_are_read_at_once(tmp_path):
    file = AnswerFile(tmp_path / "a")
    keys = [file.key(FACTS, str(i)) for i in range(1201)]
    file.write({key: [Found(str(i))] for i, key in enumerate(keys)})
    assert [file.read(keys)[key][0].doc_id for key in keys] == [str(i) for i in range(1201)]
    assert len(file) == 1201


def test_a_text_that_is_in_many_answers_is_kept_once(tmp_path):
    file = AnswerFile(tmp_path / "a")
    keys = [file.key(FACTS, str(i)) for i in range(20)]
    for key in keys:
        file.write({key: ANSWER})
    AnswerFile(tmp_path / "a").write({keys[0]: ANSWER})
    with sqlite3.connect(tmp_path / "a") as opened:
        assert opened.execute("SELECT count(*) FROM texts").fetchone() == (2,)
    opened.close()
    assert list(file.read(keys).values()) == [ANSWER] * 20


def test_an_answer_whose_text_is_lost_counts_as_absent_and_can_be_written_again(tmp_path):
    file = AnswerFile(tmp_path / "a")
    key, other = file.key(FACTS, "a"), file.key(FACTS, "b")
    file.write({key: ANSWER, other: [Found("d2")]})
    with sqlite3.connect(tmp_path / "a") as opened:
        opened.execute("UPDATE texts SET value = x'00'")
    opened.close()
    again = AnswerFile(tmp_path / "a")
    assert set(again.read([key, other])) == {other}
    again.write({key: ANSWER})
    assert again.read([key]) == {key: ANSWER}


def test_only_its_owner_may_read_the_file(tmp_path):
    file = AnswerFile(tmp_path / "a")
    file.write({file.key(FACTS, "q"): ANSWER})
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_the_text_of_a_query_is_never_in_the_file(tmp_path):
    file = AnswerFile(tmp_path / "a")
    file.write({file.key(FACTS, "very private query"): ANSWER})
    file.close()
    assert b"very private query" not in (tmp_path / "a").read_bytes()


def test_an_encrypted_file_shows_neither_ids_nor_texts(tmp_path, secret):
    file = AnswerFile(tmp_path / "a", secret)
    key = file.key(FACTS, "q")
    file.write({key: ANSWER})
    assert file.read([key]) == {key: ANSWER}
    with sqlite3.connect(tmp_path / "a") as opened:
        ((value,),) = opened.execute("SELECT value FROM answers")
    opened.close()
    import zlib

    with pytest.raises(zlib.error):
        zlib.decompress(value)
    assert b"a secret of some length" not in (tmp_path / "a").read_bytes()


def test_an_encrypted_file_is_opened_by_its_secret_only(tmp_path, secret, monkeypatch):
    file = AnswerFile(tmp_path / "a", secret)
    key = file.key(FACTS, "q")
    file.write({key: ANSWER})
    again = AnswerFile(tmp_path / "a", secret)
    assert again.read([again.key(FACTS, "q")]) == {key: ANSWER}
    with pytest.raises(ConfigError, match=r"cache_key_env= .*cache_key_file=") as caught:
        AnswerFile(tmp_path / "a").read([key])
    assert caught.value.code == "encrypted"
    monkeypatch.setenv("CACHE_KEY", "another secret of some length")
    with pytest.raises(ConfigError) as caught:
        AnswerFile(tmp_path / "a", secret).read([key])
    assert caught.value.code == "other-secret" and "length" not in str(caught.value)


def test_a_file_that_is_not_encrypted_takes_no_secret(tmp_path, secret):
    len(AnswerFile(tmp_path / "a"))
    with pytest.raises(ConfigError) as caught:
        len(AnswerFile(tmp_path / "a", secret))
    assert caught.value.code == "not-encrypted"


def test_an_encrypted_answer_that_was_moved_or_changed_counts_as_absent(tmp_path, secret):
    file = AnswerFile(tmp_path / "a", secret)
    one, two, three = (file.key(FACTS, query) for query in "abc")
    file.write({one: ANSWER, two: [Found("other")], three: ANSWER})
    with sqlite3.connect(tmp_path / "a") as opened:
        opened.execute("UPDATE answers SET value = (SELECT value FROM answers WHERE key = ?) WHERE key = ?", (one, two))
        opened.execute("UPDATE answers SET value = x'00' WHERE key = ?", (three,))
    opened.close()
    assert set(file.read([one, two, three])) == {one}


def test_a_short_secret_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("CACHE_KEY", "short")
    with pytest.raises(ConfigError, match="16 characters or more"):
        len(AnswerFile(tmp_path / "a", SecretSource("cache_key", "CACHE_KEY")))


def test_without_the_extra_an_encrypted_file_is_one_clear_line(tmp_path, secret, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(Exception, match="an encrypted cache needs the extra 'encryption'"):
        len(AnswerFile(tmp_path / "a", secret))


def test_another_file_is_not_taken_for_answers(tmp_path):
    (tmp_path / "a").write_text("d1\ttext\n" * 1000)
    with pytest.raises(StoreError, match="cache=") as caught:
        len(AnswerFile(tmp_path / "a"))
    assert caught.value.code == "unusable" and caught.value.values == {"kind": "DatabaseError"}
    assert (tmp_path / "a").read_text().startswith("d1\ttext")


def test_a_database_of_somebody_else_is_left_alone(tmp_path):
    with sqlite3.connect(tmp_path / "a") as file:
        file.execute("CREATE TABLE theirs (x)")
    file.close()
    with pytest.raises(StoreError, match="cache="):
        len(AnswerFile(tmp_path / "a"))
    with sqlite3.connect(tmp_path / "a") as file:
        assert [table for _, table, *_ in file.execute("PRAGMA table_list") if "sqlite" not in table] == ["theirs"]
    file.close()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        len(AnswerFile(tmp_path / "no" / "a"))


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("the superuser may write everywhere")
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="Permission denied"):
        len(AnswerFile(tmp_path / "a"))
