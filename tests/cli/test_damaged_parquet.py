"""Parquet that is damaged or of other types, and names that are not UTF-8: one clear line, never an internal error."""

import os
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS = 200
TABLES = {
    "log": {
        "user": [f"u{i % 20}" for i in range(ROWS)],
        "time": [1_700_000_000_000 + i for i in range(ROWS)],
        "query": [f"she word{i % 7}" for i in range(ROWS)],
    },
    "run": {
        "query_id": [f"q{i // 10}" for i in range(ROWS)],
        "doc_id": [f"d{i}" for i in range(ROWS)],
        "score": [float(-i) for i in range(ROWS)],
    },
    "docs": {"doc_id": [f"d{i}" for i in range(ROWS)], "text": [f"she said {i}" for i in range(ROWS)]},
    "qrels": {
        "query_id": [f"q{i // 10}" for i in range(ROWS)],
        "doc_id": [f"d{i}" for i in range(ROWS)],
        "relevance": [1] * ROWS,
    },
    "queries": {"query_id": [f"q{i}" for i in range(ROWS)], "text": [f"she {i}" for i in range(ROWS)]},
}
COMMANDS = {
    "log": "logs NAME --format parquet --out out",
    "run": "measure NAME --docs docs.tsv",
    "docs": "annotate NAME --store store",
    "qrels": "measure old.run --docs docs.tsv --qrels NAME",
    "queries": "measure old.run --docs docs.tsv --queries NAME",
}


@pytest.fixture(params=COMMANDS)
def kind(request):
    return request.param


def _packed(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def _footer(data):
    """Where the footer begins."""
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def _spoiled(data, start, stop, seed):
    draw, spoiled = random.Random(seed), bytearray(data)
    for _ in range(8):
        spoiled[draw.randrange(start, stop)] = draw.randrange(256)
    return bytes(spoiled)


def _refused_or_read(askew, kind, data, must_fail=False):
    """Some damage cannot be seen; what is seen is a line and the exit code of wrong data or a wrong setting."""
    Path("bad.parquet").write_bytes(data)
    for folder in ("out", "store"):
        shutil.rmtree(folder, ignore_errors=True)
    result = askew(COMMANDS[kind].replace("NAME", "bad.parquet"))
    assert result.code in ((2, 3) if must_fail else (0, 2, 3)), result.err
    assert "internal error" not in result.err and "Traceback" not in result.err
    if must_fail:
        assert "bad.parquet" in result.err and result.err.count("\n") == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"PAR1",
        lambda data: b"no Parquet\n" * 50,
        lambda data: data[: len(data) // 2],
        lambda data: data[:-10],
        lambda data: data[:-4] + b"XXXX",
        lambda data: data[:-8] + b"\xff\xff\xff\x7f" + data[-4:],
        lambda data: data[:-8] + bytes(4) + data[-4:],
    ],
    ids=["empty", "magic alone", "text", "half", "cut", "magic", "footer too long", "footer of no length"],
)
def test_a_file_that_is_not_whole_is_refused(askew, kind, damage):
    _refused_or_read(askew, kind, damage(_packed(pa.table(TABLES[kind]))), must_fail=True)


@pytest.mark.parametrize("where", ["footer", "pages"])
def test_damage_inside_a_file_is_refused_where_it_is_seen(askew, kind, where):
    data = _packed(pa.table(TABLES[kind]))
    begin, end = (_footer(data), len(data) - 8) if where == "footer" else (4, _footer(data))
    for seed in range(12):
        _refused_or_read(askew, kind, _spoiled(data, begin, end, seed))


def _columns():
    """Columns of kinds that no part of a table should have, and of some that it may."""
    return {
        "bool": pa.array([True] * ROWS),
        "null": pa.nulls(ROWS),
        "list": pa.array([["a"]] * ROWS),
        "list of lists": pa.array([[["a"]]] * ROWS),
        "struct": pa.array([{"a": 1}] * ROWS),
        "binary": pa.array([b"\xff\x00"] * ROWS),
        "date": pa.array([0] * ROWS, pa.date32()),
        "duration": pa.array([0] * ROWS, pa.duration("s")),
        "not a number": pa.array([float("nan")] * ROWS),
        "largest": pa.array([2**64 - 1] * ROWS, pa.uint64()),
        "view": pa.array(["a"] * ROWS, pa.string_view()),
        "not UTF-8": pa.array([b"\xff"] * ROWS).view(pa.string()),
    }


def test_columns_of_other_types_are_refused_or_read_as_text(askew, kind):
    table = pa.table(TABLES[kind])
    for number, name in enumerate(table.column_names):
        for column in _columns().values():
            _refused_or_read(askew, kind, _packed(table.set_column(number, name, column)))


@pytest.mark.parametrize("name", ["session", "topic", "entry", "click_rank", "click_doc", "results", "texts"])
def test_other_columns_of_a_log_of_other_types_are_refused_or_read(askew, name):
    for column in _columns().values():
        _refused_or_read(askew, "log", _packed(pa.table(TABLES["log"]).append_column(name, column)))


def test_a_file_whose_name_is_not_utf8_is_refused_in_one_line(askew, kind):
    strange = os.fsdecode(b"x\xff.parquet")
    pq.write_table(pa.table(TABLES[kind]), "good.parquet")
    shutil.move("good.parquet", strange)
    result = askew([word.replace("NAME", strange) for word in COMMANDS[kind].split()])
    result.refused(3, "not valid UTF-8")


@pytest.mark.parametrize("command", ["index docs.tsv --out NAME", "run demo --store NAME", "demo --out NAME"])
def test_a_folder_whose_name_is_not_utf8_is_refused_in_one_line(askew, command):
    strange = os.fsdecode(b"x\xff")
    result = askew([word.replace("NAME", strange) for word in command.split()])
    assert result.code == 3
    assert result.err.count("\n") == 1 and "not valid UTF-8" in result.err


def test_a_damaged_dataset_is_refused_by_training(askew):
    Path("dataset/data").mkdir(parents=True)
    Path("dataset/askew.json").write_text("{}")
    Path("dataset/data/train-00000.parquet").write_bytes(b"PAR1")
    for what in ("rewriter", "selector"):
        result = askew(["train", what, "dataset", "--out", "model"])
        assert result.code in (2, 3, 4), result.err
        assert "internal error" not in result.err
