"""Hostile settings and files end with a message and the exit code of the error, never as an internal error."""

import json
import pickle
import sqlite3
import zlib

import pytest

from askew.core.errors import ConfigError
from askew.core.files import parse_json, parse_toml
from askew.core.lexicon import load_lexicon
from askew.models import load_model
from askew.models.find import cannot_load
from askew.search.engines.answers import AnswerFile
from askew.search.engines.callables import CallableEngine
from askew.search.engines.client import EngineError, Found
from askew.search.engines.http import as_number
from askew.search.engines.ranker import EngineRanker
from askew.ui.cli.main import run

DEEP = "[" * 100_000
DIGITS = "9" * 4300


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs.tsv").write_text("d1\the is a nurse\n")
    (tmp_path / "q.tsv").write_text("q1\tnurse\n")
    (tmp_path / "ok.run").write_text("q1 Q0 d1 1 2.0 t\n")
    (tmp_path / "a.run").write_text("\nq1\t\td1\t\t0\n")
    (tmp_path / "b.run").write_text("a\tb\nc\td\te\tf\n")
    (tmp_path / "e.toml").write_text(f'url = "http://127.0.0.1:1/?q={{query}}"\ntimeout_s = {DIGITS}\n')
    (tmp_path / "deep.toml").write_text(f"a = {DEEP}")
    (tmp_path / "deep.jsonl").write_text(DEEP)


@pytest.mark.parametrize(
    "words",
    [
        "measure b.run --docs docs.tsv", "check docs.tsv --seed -1",
        "check docs.tsv --words 1e21", "audit http:e.toml --queries q.tsv", "plan deep.toml",
        "audit http:deep.toml --queries q.tsv", "measure deep.jsonl --docs docs.tsv", "index deep.jsonl --out i",
        "measure ok.run --docs deep.jsonl", "measure ok.run --docs docs.tsv --lexicon deep.toml",
        f"search q.tsv --ranker http --set url=http://127.0.0.1:1/{{query}} --set timeout_s={DIGITS} --out x.run",
        f"search q.tsv --ranker http --set url=http://127.0.0.1:1/ --set body={DEEP} --out x.run",
        "reformulate q.tsv --method replay --set path=deep.jsonl", f"plan r.toml --set retrieve.k={DIGITS}",
    ],
)  # fmt: skip
def test_hostile_inputs_are_user_errors(words, capsys):
    assert run(words.split()) in (2, 3)
    assert "internal error" not in capsys.readouterr().err


def test_empty_columns_and_an_empty_first_line_of_a_run_are_no_error(capsys):
    assert run(["measure", "a.run", "--docs", "docs.tsv", "--json"]) == 0
    assert "internal error" not in capsys.readouterr().err


def test_more_words_than_there_are_is_no_error(capsys):
    assert run(["check", "docs.tsv", "--words", str(10**21)]) == 0


@pytest.mark.parametrize(
    "text", ["a = 9223372036854775808", "a = [[{b = -99999999999999999999}]]", "a = inf", "a = nan"]
)
def test_toml_has_finite_numbers_of_64_bits(text):
    with pytest.raises(ValueError, match="64 bits"):
        parse_toml(text)
    assert parse_toml("a = [9223372036854775807, 1e300, true]") == {"a": [9223372036854775807, 1e300, True]}


def test_a_number_that_a_float_cannot_hold_is_no_score():
    assert as_number(10**400) is None and as_number(2) == 2.0


def test_a_lone_surrogate_in_a_text_is_replaced_and_in_an_id_is_an_error():
    found = EngineRanker(CallableEngine(lambda query, k: [("d1", 10**400, "a \ud800 nurse")]))
    assert len(found.search(["x"], 1).docs) == 1
    assert found.texts == {"d1": "a \ufffd nurse"}
    with pytest.raises(EngineError) as error:
        EngineRanker(CallableEngine(lambda query, k: [("d\ud800", 1.0)])).search(["x"], 1)
    assert error.value.code == "bad-id"


@pytest.mark.parametrize(
    "value", [3, "text", [1], [["d", "x", None]], [[["d"], 1.0, None]], [["d", 1.0, "no hex"]], {"a": 1}]
)
def test_a_cached_answer_of_another_shape_is_not_used(value, tmp_path):
    answers = AnswerFile(tmp_path / "answers")
    key = answers.key({}, "q")
    answers.write({key: [Found("d", 1.0, None)]})
    assert answers.read([key]) == {key: [Found("d", 1.0, None)]}
    with sqlite3.connect(tmp_path / "answers") as file:
        file.execute("UPDATE answers SET value = ?", (zlib.compress(json.dumps(value).encode()),))
    file.close()
    assert answers.read([key]) == {}
    answers.close()


def test_a_full_disk_does_not_advise_to_delete_the_answers(tmp_path):
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    said = str(AnswerFile(tmp_path / "answers")._unusable(error))
    assert "delete" not in said and "disk" in said


def test_a_pickled_model_is_refused_without_the_advice_to_run_its_code():
    said = str(cannot_load("m", "neural", pickle.UnpicklingError("Weights only load failed; weights_only=False ...")))
    assert "weights_only" not in said and "pickle" in said


@pytest.mark.parametrize(
    "error", [pickle.UnpicklingError("Weights only ..."), EOFError(), type("Safetensor", (Exception,), {})()]
)
def test_any_error_of_a_library_that_loads_a_model_is_an_error_of_the_model(error, monkeypatch, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")

    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", refuse)
    with pytest.raises(ConfigError):
        load_model("dense", str(tmp_path), None)


def test_threads_that_read_lexicons_do_not_share_a_limit(tmp_path):
    import csv
    from concurrent.futures import ThreadPoolExecutor

    before = csv.field_size_limit()
    for size in (10, 200_000):
        (tmp_path / f"l{size}.csv").write_text(f"term,group\n{'x' * size},a\nhe,b\n")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(load_lexicon, [tmp_path / f"l{size}.csv" for size in (10, 200_000)] * 20))
    assert csv.field_size_limit() == before


def test_json_of_any_origin_has_no_lone_surrogate():
    with pytest.raises(ValueError):
        parse_json('"\\ud800"')
