"""Engines of this machine, for real: the contract of rankers, and the demo built through them, killed and resumed."""

import json
import logging
import os
import signal
import subprocess
import sys

import polars as pl
import pytest

import askew
from askew.core.errors import MissingExtra
from askew.core.plugins import build, load
from askew.data.collection import open_collection
from askew.testing.contracts import TOY_DOCS, check_ranker

WAYS = ["tantivy", "lancedb", "lancedb-vector", "milvus", "postgres", "postgres-vector"]
# One way of each engine is enough where the way to search makes no difference.
ENGINES = {
    "tantivy": "tantivy",
    "lancedb": "lancedb",
    "milvus": "pymilvus",
    "postgres": "psycopg",
}
NASTY = [
    'a "quoted (query', "NOT this AND that OR", "c++ or c#", "half - minus", "back\\slash", "x:y >z <w", "~ * +",
    "who's   there?", "100 %", "{k} {query}", "a&b=c; DROP TABLE docs; --", "\u4e2d\u6587",
    "zero \0 byte", "half \ud800",
    "%s %(a)s $1", "x" * 5000, "naïve façade",
]  # fmt: skip


@pytest.fixture
def place(local_engines_here):
    return local_engines_here


@pytest.mark.parametrize("way", WAYS)
def test_an_engine_of_this_machine_keeps_the_contract_of_rankers(way, place):
    docs = {**TOY_DOCS, "d7": "c++ OR 100 % naïve"}
    ranker = build("ranker", place.ways[way][0], place.load(way, docs))
    check_ranker(ranker)
    assert len(ranker.texts) == len(ranker.doc_ids) > 3
    assert ranker.texts.items() <= docs.items()
    ranker.close()


@pytest.mark.parametrize("way", WAYS)
def test_no_query_is_a_syntax_error_for_an_engine_of_this_machine(way, place):
    ranker = build("ranker", place.ways[way][0], place.load(way, TOY_DOCS))
    hits = ranker.search(NASTY, 3)
    assert len(hits) == len(NASTY)
    best = ranker.doc_ids[hits.docs[hits.offsets[-2]]].as_py()
    assert best == "d6"
    ranker.close()


@pytest.mark.parametrize("way", WAYS)
def test_no_log_has_a_query_or_a_document(way, place, caplog, capfd):
    """Also not at the most talkative level of the engine's own library, nor in lines that bypass Python's logging."""
    settings = place.load(way, TOY_DOCS)
    capfd.readouterr()
    with caplog.at_level(logging.DEBUG):
        ranker = build("ranker", place.ways[way][0], settings)
        ranker.search(["station marple-314159"], 3)
        ranker.close()
    said = capfd.readouterr()
    shown = "\n".join([said.out, said.err, caplog.text, *(repr(vars(one)) for one in caplog.records)])
    assert ranker.texts
    assert "marple-314159" not in shown
    assert not [text for text in TOY_DOCS.values() if text and text in shown]


def demo_texts():
    table = pl.concat(pl.from_arrow(batch) for batch in open_collection("demo").documents())
    return dict(table.select("doc_id", "text").iter_rows())


# A build whose process is killed when the engine gets a query after so many answers. With one request at a time all
# answers before it are on disk. The queries that were answered are written to a file.
KILLED = """
import json, os, signal, sys
import askew
from askew.core.plugins import load

name, settings, store, log, limit = json.loads(sys.argv[1])
engine, answered = load("ranker", name)._engine, []
whole = engine.find

def find(self, queries, k):
    if len(answered) >= limit:
        with open(log, "w") as file:
            json.dump(answered, file)
        os.kill(os.getpid(), signal.SIGKILL)
    found = whole(self, queries, k)
    answered.extend(queries)
    return found

engine.find = find
askew.build("demo", settings=settings, store=store)
"""


@pytest.mark.parametrize("way", ENGINES)
def test_the_demo_is_built_through_an_engine_of_this_machine_killed_and_resumed(way, place, tmp_path, monkeypatch):
    name, log = place.ways[way][0], tmp_path / "answered.json"
    own = {"ranker": name, **place.load(way, demo_texts()), "k": 20, "concurrency": 1}
    settings = {"retrieve": own, "reformulate.0": {"count": 3}}
    given = json.dumps([name, settings, str(tmp_path / "s"), str(log), 40])
    done = subprocess.run([sys.executable, "-c", KILLED, given], capture_output=True, check=False, env=dict(os.environ))
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    answered = json.loads(log.read_text())
    sent = record_queries(monkeypatch, name)
    pairs = askew.build("demo", settings=settings, store=tmp_path / "s")
    assert len(answered) >= 40 and not set(sent) & set(answered)
    assert len({*sent, *answered}) == len(sent) + len(answered) == pairs.table("kept")["text"].n_unique()
    uncached = {**settings, "retrieve": {**own, "cache": "off"}}
    whole = askew.build("demo", settings=uncached, store=tmp_path / "w")
    assert pairs.table().equals(whole.table()) and pairs.summary is not None


def record_queries(monkeypatch, name):
    """Every query that an engine of this process gets."""
    engine, sent = load("ranker", name)._engine, []
    whole = engine.find

    def find(self, queries, k):
        sent.extend(queries)
        return whole(self, queries, k)

    monkeypatch.setattr(engine, "find", find)
    return sent


@pytest.mark.parametrize("way", ENGINES)
def test_without_its_extra_an_engine_is_one_clear_line(way, place, monkeypatch):
    ranker, module, settings = place.ways[way][0], ENGINES[way], place.load(way, TOY_DOCS)
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=f"the ranker '{ranker}' needs the extra '{ranker}'"):
        build("ranker", ranker, settings).search(["station"], 3)
