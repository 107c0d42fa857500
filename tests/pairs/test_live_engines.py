"""A recipe that searches with a live engine: pairs as of any ranker; stopped and resumed, no query is sent twice."""

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import askew
from askew.core.errors import ConfigError, DataError
from askew.core.plugins import names
from askew.core.store.store import Store
from askew.data.collection import open_collection
from askew.pairs.plan import ANSWERS, prepare
from askew.pairs.recipe import read_recipe, with_settings
from askew.search.bm25.ranker import bm25
from askew.search.engines.ranker import EngineRanker
from askew.study.bench.methods import rankers
from search_server import SearchServer, ToyEngine

ASKEW = str(Path(sys.executable).with_name("askew"))
WORDS = "reformulate.0.count=3"


def demo_texts():
    table = pl.concat(pl.from_arrow(batch) for batch in open_collection("demo").documents())
    return dict(table.select("doc_id", "text").iter_rows())


@pytest.fixture(scope="module")
def docs():
    return demo_texts()


@pytest.fixture
def server(docs):
    with SearchServer(docs) as server:
        yield server


def through(server, **more):
    """The settings of [retrieve] for the server."""
    url = f"{server.url}/search?q={{query}}&size={{k}}"
    return {"retrieve": {"ranker": "http", "url": url, "backoff_s": 0.01, **more}, "reformulate.0": {"count": 3}}


class Bm25Engine(ToyEngine):
    """The documents in the order in which a run of BM25 is evaluated: of equal scores the highest id first."""

    def __init__(self, docs, index):
        super().__init__(docs)
        self._ranker = bm25(index)

    def search(self, query, k):
        hits = self._ranker.search([query], k)
        ids = [self._ranker.doc_ids[i].as_py() for i in hits.docs.tolist()]
        found = sorted(zip(hits.scores.tolist(), ids, strict=True), reverse=True)
        return [(doc, score, self.docs[doc]) for score, doc in found]


def test_the_demo_through_an_engine_that_ranks_as_bm25_is_the_demo(server, docs, tmp_path):
    own = askew.build("demo", settings={"reformulate.0": {"count": 3}}, store=tmp_path / "own")
    (index,) = (tmp_path / "own").glob("index-bm25-*")
    server.engine = Bm25Engine(docs, index)
    live = askew.build("demo", settings=through(server), store=tmp_path / "live")
    assert live.table("scores").equals(own.table("scores"))
    assert live.table().equals(own.table())
    texts = live.table("kept")["text"].unique()
    assert sorted(server.queries) == sorted(text for text in texts if text.strip())


def test_a_build_that_is_killed_resumes_and_sends_no_query_twice(server, tmp_path):
    settings = through(server, concurrency=2, timeout_s=60.0)
    command = [ASKEW, "run", "demo", "--store", str(tmp_path / "s"), "--set", WORDS]
    command += [f"--set=retrieve.{name}={value}" for name, value in settings["retrieve"].items()]
    answered = 0
    for more in (40, 40):
        server.answers_left = more
        job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        answered += more
        while len(server.queries) < answered or server.busy < 2:
            assert job.poll() is None, "it ended before it was killed"
            time.sleep(0.01)
        time.sleep(0.3)
        job.send_signal(signal.SIGKILL)
        assert job.wait(60) == -signal.SIGKILL
        assert len(server.queries) == answered
    server.answers_left = None
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(Counter(server.queries).values()) == {1}
    whole = askew.build("demo", settings=through(server, cache="off"), store=tmp_path / "w")
    resumed = askew.build("demo", settings=settings, store=tmp_path / "s")
    assert resumed.table().equals(whole.table())


def test_an_engine_that_stops_in_the_middle_is_one_clear_line_and_the_build_goes_on_later(docs, tmp_path):
    class Stopping(ToyEngine):
        left = 50

        def search(self, query, k):
            self.left -= 1
            if self.left < 0:
                raise ConnectionError
            return super().search(query, k)

    with SearchServer(docs) as server:
        server.engine = Stopping(docs)
        settings = through(server, attempts=2, concurrency=2)
        with pytest.raises(DataError) as caught:
            askew.build("demo", settings=settings, store=tmp_path)
        said = str(caught.value)
        assert "no connection" in said and "queries were answered" in said
        assert "\n" not in said
        first = list(server.queries)
        server.engine.left = 1_000_000
        askew.build("demo", settings=settings, store=tmp_path)
        assert not set(server.queries[len(first) :]) & set(first)


def stage_of(settings, store, step="runs"):
    recipe = with_settings(read_recipe("demo"), settings)
    return next(one for one in prepare(recipe, Store(store)).plan.steps if one.name == step)


def test_what_changes_no_answer_does_not_name_the_step(server, tmp_path):
    plain = stage_of(through(server), tmp_path).stage.settings()
    how = {"concurrency": 9, "auth_env": "TOKEN", "timeout_s": 3.0, "cache": "off", "per_second": 5.0, "attempts": 2}
    assert stage_of(through(server, **how), tmp_path).stage.settings() == plain
    assert stage_of(through(server, snapshot="may"), tmp_path).stage.settings() != plain
    other = through(server)
    other["retrieve"]["url"] += "&size=5"
    assert stage_of(other, tmp_path).stage.settings() != plain


def test_an_engine_is_asked_from_one_process_whatever_the_workers(server, tmp_path):
    step = stage_of(through(server), tmp_path)
    assert (step.maker, step.shard_rows) == (None, EngineRanker.queries_at_once)
    assert stage_of({}, tmp_path).maker is not None
    first = {"first_pass": {"ranker": "http", "url": f"{server.url}/search?q={{query}}&size={{k}}"}}
    assert stage_of(first, tmp_path, "variants").maker is None


def test_answers_of_a_build_are_kept_in_its_store(server, tmp_path):
    askew.build("demo", settings=through(server), store=tmp_path, until="runs")
    assert (tmp_path / ANSWERS).is_file()
    before = len(server.queries)
    askew.build("demo", settings=through(server, k=100, concurrency=1), store=tmp_path, until="runs")
    assert len(server.queries) == before


def test_documents_that_are_not_in_the_collection_stop_a_build(server, docs, tmp_path):
    server.engine = ToyEngine({**docs, "stranger": " ".join(docs.values())})
    with pytest.raises(DataError, match=r"\(the first: 'stranger'\)"):
        askew.build("demo", settings=through(server), store=tmp_path / "a")
    pairs = askew.build("demo", settings=through(server, unknown="skip"), store=tmp_path / "b", until="runs")
    assert any("were skipped" in note for note in pairs.notes)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ranker": "http"}, "the ranker 'http' needs the setting 'url'"),
        ({"ranker": "http", "url": "http://h/?{query}", "concurrency": 0}, "'concurrency' should be 1 or more"),
        ({"ranker": "http", "url": "http://h/?{query}", "index": {}}, "no setting 'index'"),
        ({"ranker": "http", "url": "http://h/?{query}&api_key=abc"}, "'api_key' looks like a secret"),
        ({"ranker": "callable", "function": "askew.no:thing"}, "cannot be loaded"),
    ],
)
def test_settings_of_an_engine_are_checked_before_any_work(tmp_path, settings, words):
    with pytest.raises(ConfigError, match=words):
        askew.build("demo", settings={"retrieve": settings}, store=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_rankers_that_need_only_an_index_do_not_include_engines():
    engines = {"http", "callable", "opensearch", "tantivy", "lancedb", "qdrant", "milvus", "postgres"}
    assert not engines & set(rankers())
    assert {"http", "callable"} <= set(names("ranker"))
