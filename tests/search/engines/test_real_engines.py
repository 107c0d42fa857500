"""Engines that run on this machine: the contract of rankers, and the demo built through them, stopped and resumed."""

import threading

import polars as pl
import pytest

import askew
from askew.core.errors import DataError
from askew.data.collection import open_collection
from askew.search.engines.http import HttpEngine, http
from askew.testing.contracts import TOY_DOCS, check_ranker
from real_engines import AnseriniServer, GroongaServer

SERVERS = {"groonga": GroongaServer, "anserini": AnseriniServer}
SETTINGS = {"groonga": {"params": {"table": "Docs"}}, "anserini": {}}
MISSING = {
    "groonga": "groonga is not installed: apt-get install groonga-bin",
    "anserini": "the extra 'lucene' is not installed",
}
NASTY = [
    'a "quoted (query', "NOT this AND that OR", "c++ or c#", "half - minus", "back\\slash", "x:y >z <w", "~ * +",
    "naïve façade", "who's   there?", "100 %", "{k} {query}", "a&b=c", "\u4e2d\u6587",
]  # fmt: skip


@pytest.fixture(params=SERVERS)
def kind(request):
    if not SERVERS[request.param].is_available():
        pytest.skip(MISSING[request.param])
    return request.param


@pytest.fixture
def toy(kind, tmp_path):
    with SERVERS[kind](tmp_path, {**TOY_DOCS, "d7": "c++ OR 100 % naïve"}) as server:
        yield server


def test_a_real_engine_keeps_the_contract_of_rankers(kind, toy):
    ranker = http(toy.url, template=kind, **SETTINGS[kind])
    check_ranker(ranker)
    assert {doc: TOY_DOCS[doc] for doc in ranker.texts if doc != "d7"}.items() <= ranker.texts.items()
    assert len(ranker.texts) == len(ranker.doc_ids) > 3


def test_no_query_is_a_syntax_error_for_a_real_engine(kind, toy):
    ranker = http(toy.url, template=kind, **SETTINGS[kind])
    hits = ranker.search(NASTY, 3)
    assert len(hits) == len(NASTY)
    assert hits.offsets[NASTY.index("naïve façade") + 1] > hits.offsets[NASTY.index("naïve façade")]


def demo_texts():
    table = pl.concat(pl.from_arrow(batch) for batch in open_collection("demo").documents())
    return dict(table.select("doc_id", "text").iter_rows())


def test_the_demo_is_built_through_a_real_engine_that_stops_in_the_middle(kind, tmp_path, monkeypatch):
    """The engine is ended after some answers; the build says so in one line, and resumes when it is back."""
    (tmp_path / "engine").mkdir()
    with SERVERS[kind](tmp_path / "engine", demo_texts()) as server:
        own = {"ranker": "http", "url": server.url, "template": kind, **SETTINGS[kind]}
        patience = {"attempts": 2, "backoff_s": 0.01, "concurrency": 2}
        settings = {"retrieve": {**own, **patience, "k": 20}, "reformulate.0": {"count": 3}}
        sent = count_requests(monkeypatch, 30, server.stop)
        with pytest.raises(DataError) as caught:
            askew.build("demo", settings=settings, store=tmp_path / "s")
        assert caught.value.code == "no-connection" and caught.value.values["answered"] >= 30
        assert "\n" not in str(caught.value)
        answered = [query for query, was_answered in sent if was_answered]
        assert len(answered) >= 30
        server.start()
        before = len(sent)
        pairs = askew.build("demo", settings=settings, store=tmp_path / "s")
        again = [query for query, _ in sent[before:]]
        assert not set(again) & set(answered)
        assert len(set(again) | set(answered)) == pairs.table("kept")["text"].n_unique()
        assert pairs.summary is not None
        whole = askew.build("demo", settings={**settings, "retrieve": {**settings["retrieve"], "cache": "off"}},
                            store=tmp_path / "w")  # fmt: skip
    assert pairs.table().equals(whole.table())


def count_requests(monkeypatch, limit, act):
    """Every query with whether it was answered; after so many answers a function is called, once."""
    sent, acts, whole, lock = [], [act], HttpEngine._find, threading.Lock()

    def counted(self, query, k):
        with lock:
            if sum(was_answered for _, was_answered in sent) >= limit and acts:
                acts.pop()()
        try:
            found = whole(self, query, k)
        except Exception:
            sent.append((query, False))
            raise
        sent.append((query, True))
        return found

    monkeypatch.setattr(HttpEngine, "_find", counted)
    return sent
