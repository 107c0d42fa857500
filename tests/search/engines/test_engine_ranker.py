"""What every engine gets from the ranker around it, with engines of a few lines."""

import threading
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError
from askew.core.pace import RateLimit
from askew.search.engines import ranker as requester
from askew.search.engines.client import Engine, EngineError, Found
from askew.search.engines.ranker import EnginePlugin, EngineRanker, EngineSettings, falling
from askew.testing.contracts import TOY_DOCS, check_ranker
from search_server import ToyEngine


class Plain:
    """An engine of a dictionary: query to documents; what is an error is raised, or given for its query."""

    id = "plain"

    def __init__(self, answers=None, batch_size=1):
        self.answers, self.batch_size, self.batches = answers or {}, batch_size, []
        self._lock = threading.Lock()

    def settings(self):
        return {}

    def find(self, queries, k):
        with self._lock:
            self.batches.append(list(queries))
        return [self._one(query) for query in queries]

    def _one(self, query):
        found = self.answers.get(query, [])
        return found.pop(0) if found and isinstance(found[0], list | EngineError) else found


class Toy:
    """The toy engine, with or without texts."""

    id = "toy"

    def __init__(self, texts=True, docs=TOY_DOCS):
        self._toy, self._texts = ToyEngine(docs), texts

    def settings(self):
        return {"texts": self._texts}

    def find(self, queries, k):
        return [[Found(d, s, t if self._texts else None) for d, s, t in self._toy.search(q, k)] for q in queries]


def quick(**settings):
    return EngineSettings(**{"backoff_s": 0.0, **settings})


def test_an_engine_keeps_the_contract_of_rankers_without_a_known_collection():
    assert isinstance(Toy(), Engine)
    check_ranker(EngineRanker(Toy()))


def test_an_engine_keeps_the_contract_of_rankers_over_a_known_collection():
    check_ranker(EngineRanker(Toy()).over(pa.array(list(TOY_DOCS))))


@pytest.mark.parametrize("batch_size", [1, 2, 100])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_neither_batches_nor_threads_change_an_answer(batch_size, concurrency):
    ranker = EngineRanker(Toy(), quick(batch_size=batch_size, concurrency=concurrency))
    check_ranker(ranker)
    alone = EngineRanker(Toy(), quick(concurrency=1))
    check_ranker(alone)
    assert ranker.doc_ids.equals(alone.doc_ids)


def test_documents_are_numbered_by_the_queries_and_not_by_when_answers_arrive():
    class Slow(Toy):
        def find(self, queries, k):
            if queries[0] == "station":
                late.wait(5)
            else:
                late.set()
            return super().find(queries, k)

    late = threading.Event()
    ranker = EngineRanker(Slow(), quick(concurrency=2))
    ranker.search(["station", "mother"], 3)
    assert ranker.doc_ids.to_pylist()[0] == "d3"


def test_a_blank_query_is_not_sent_and_equal_ones_are_sent_once():
    engine = Plain({"a": [Found("x")]})
    hits = EngineRanker(engine, quick()).search(["a", "", "  ", "a"], 3)
    assert engine.batches == [["a"]]
    assert hits.offsets.tolist() == [0, 1, 1, 1, 2]


def test_queries_go_in_batches_of_the_engine_unless_the_user_sets_another_size():
    engine = Plain(batch_size=3)
    EngineRanker(engine, quick(concurrency=1)).search(list("abcdefg"), 3)
    assert [len(batch) for batch in engine.batches] == [3, 3, 1]
    engine.batches.clear()
    EngineRanker(engine, quick(concurrency=1, batch_size=5)).search(list("abcdefg"), 3)
    assert [len(batch) for batch in engine.batches] == [5, 2]


def test_an_engine_that_allows_one_thread_is_called_from_one():
    class Single(Plain):
        most_threads = 1
        busy = at_once = 0

        def find(self, queries, k):
            with self._lock:
                self.busy += 1
                self.at_once = max(self.at_once, self.busy)
            found = super().find(queries, k)
            with self._lock:
                self.busy -= 1
            return found

    engine = Single()
    EngineRanker(engine, quick(concurrency=8)).search([str(i) for i in range(50)], 3)
    assert engine.at_once == 1


def test_the_order_of_an_engine_counts_where_scores_tie():
    ranker = EngineRanker(Plain({"a": [Found("z", 1.0), Found("y", 1.0), Found("x", 0.5)]})).over(pa.array(list("xyz")))
    hits = ranker.search(["a"], 3)
    assert [ranker.doc_ids[i].as_py() for i in hits.docs.tolist()] == ["z", "y", "x"]
    assert (np.diff(hits.scores) < 0).all()
    assert hits.scores[1] == pytest.approx(1.0, abs=1e-5)


def test_minus_the_rank_is_the_score_where_there_is_none_or_scores_rise():
    assert falling([None, None]) == [-1.0, -2.0]
    assert falling([0.1, 0.2, 0.3]) == [-1.0, -2.0, -3.0]
    assert falling([1.0, float("nan")]) == [-1.0, -2.0]
    assert falling([1e300, 1.0]) == [-1.0, -2.0]
    assert falling([3.0, 2.0]) == [3.0, 2.0]
    assert falling([]) == []


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200), st.integers(1, 5))
def test_scores_fall_in_a_run_with_six_decimals_and_as_short_floats(scores, copies):
    scores = sorted(scores * copies, reverse=True)
    made = falling(scores)
    assert (np.diff(np.array(made, np.float32)) < 0).all()
    written = [float(f"{np.float32(score):.6f}") for score in made]
    assert (np.diff(written) < 0).all()


def test_of_a_document_that_is_found_twice_the_best_place_counts():
    ranker = EngineRanker(Plain({"a": [Found("x", 3.0), Found("y", 2.0), Found("x", 1.0)]}))
    hits = ranker.search(["a"], 3)
    assert hits.docs.tolist() == [0, 1]
    assert codes(ranker.notes()) == [("repeated", {"n": 1})]


def test_no_more_documents_are_taken_than_were_asked_for():
    ranker = EngineRanker(Plain({"a": [Found(str(i)) for i in range(10)]}))
    assert len(ranker.search(["a"], 4).docs) == 4


def test_an_unknown_document_is_an_error_that_names_it():
    ranker = EngineRanker(Plain({"a": [Found("x"), Found("q")]})).over(pa.array(["x"]))
    with pytest.raises(EngineError, match=r"'q'.*unknown='skip'") as caught:
        ranker.search(["a"], 3)
    assert caught.value.code == "unknown-documents" and caught.value.values == {"n": 1, "first": "q"}


def test_unknown_documents_may_be_skipped_and_are_counted():
    engine = Plain({"a": [Found("q", 2.0), Found("x", 1.0)]})
    ranker = EngineRanker(engine, quick(unknown="skip")).over(pa.array(["x"]))
    assert ranker.search(["a", "b"], 3).docs.tolist() == [0]
    assert codes(ranker.notes()) == [("unknown", {"n": 1})]


def test_texts_are_kept_without_a_known_collection_and_only_then():
    free, known = EngineRanker(Toy()), EngineRanker(Toy()).over(pa.array(list(TOY_DOCS)))
    for ranker in (free, known):
        ranker.search(["station", "mother and sister"], 3)
    assert free.texts == {doc: TOY_DOCS[doc] for doc in free.doc_ids.to_pylist()}
    assert known.texts == {}


def test_of_several_texts_of_a_document_that_of_the_first_query_counts():
    answers = {query: [Found("x", 1.0, f"text for {query}")] for query in "abc"}
    ranker = EngineRanker(Plain(answers), quick(concurrency=3))
    ranker.search(["a", "b", "c"], 1)
    assert ranker.texts == {"x": "text for a"}
    assert codes(ranker.notes()) == [("other-texts", {"n": 1})]


def test_an_error_that_may_pass_is_tried_again():
    engine = Plain({"a": [EngineError("busy", transient=True), EngineError("busy", transient=True), [Found("x")]]})
    assert EngineRanker(engine, quick()).search(["a"], 3).docs.tolist() == [0]
    assert len(engine.batches) == 3


def test_of_a_batch_only_the_queries_that_failed_are_sent_again():
    engine = Plain({"a": [Found("x")], "b": [EngineError("busy", transient=True), [Found("y")]]}, batch_size=2)
    assert EngineRanker(engine, quick()).search(["a", "b"], 3).docs.tolist() == [0, 1]
    assert engine.batches == [["a", "b"], ["b"]]


def test_attempts_come_to_an_end():
    engine = Plain({"a": [EngineError("plain: busy", transient=True) for _ in range(9)]})
    with pytest.raises(EngineError, match=r"^plain: busy; 0 of 1 queries were answered$"):
        EngineRanker(engine, quick(attempts=3)).search(["a"], 3)
    assert len(engine.batches) == 3


def test_requests_are_as_many_in_a_second_as_allowed(monkeypatch):
    waited = []
    monkeypatch.setattr("askew.core.pace._sleep", lambda seconds, stop: waited.append(seconds))
    monkeypatch.setattr(requester, "RateLimit", partial(RateLimit, clock=lambda: 100.0))
    EngineRanker(Plain(), quick(per_second=2.0, concurrency=1)).search([str(i) for i in range(6)], 3)
    # Two may go at once; each of the others waits half a second longer than the one before it.
    assert waited == [0.0, 0.0, 0.5, 1.0, 1.5, 2.0]


def test_an_engine_that_asks_for_a_longer_wait_than_allowed_is_not_waited_for():
    engine = Plain({"a": [EngineError("plain: busy", transient=True, retry_after=3600.0)]})
    with pytest.raises(EngineError, match="max_wait_s=") as caught:
        EngineRanker(engine, quick()).search(["a"], 3)
    assert caught.value.code == "wait-too-long"
    assert caught.value.values == {"wanted": 3600.0, "most": 60.0, "answered": 0, "queries": 1}


def test_a_refused_query_is_an_error():
    engine = Plain({"a": [Found("x")], "b": [EngineError("plain: refused")]})
    with pytest.raises(EngineError, match=r"^plain: refused .*refused='empty'") as caught:
        EngineRanker(engine, quick(concurrency=1)).search(["a", "b", "c"], 3)
    assert caught.value.code == "query-refused" and caught.value.values == {"answered": 1, "queries": 3}
    assert engine.batches == [["a"], ["b"]]


def test_an_engine_that_refuses_every_query_is_not_said_to_refuse_some():
    engine = Plain({"a": [EngineError("plain: refused")]})
    with pytest.raises(EngineError, match=r"^plain: refused; 0 of 1 queries were answered$"):
        EngineRanker(engine, quick()).search(["a"], 3)
    assert len(engine.batches) == 1


def test_refused_queries_may_count_as_finding_nothing_and_are_counted():
    engine = Plain({"a": [EngineError("plain: refused")], "b": [Found("x")]})
    ranker = EngineRanker(engine, quick(refused="empty"))
    assert ranker.search(["a", "b"], 3).offsets.tolist() == [0, 0, 1]
    assert codes(ranker.notes()) == [("refused", {"n": 1})]


def test_the_message_of_another_library_is_not_shown():
    class Broken(Plain):
        def find(self, queries, k):
            raise ValueError(f"cannot parse {queries[0]}")

    with pytest.raises(EngineError, match=r"^engine plain: ") as caught:
        EngineRanker(Broken(), quick()).search(["private words"], 3)
    assert caught.value.code == "request-failed"
    assert caught.value.values == {"kind": "ValueError", "answered": 0, "queries": 1}
    assert "private words" not in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)


def test_an_answer_for_each_query_or_an_error():
    class Careless(Plain):
        def find(self, queries, k):
            return []

    with pytest.raises(EngineError) as caught:
        EngineRanker(Careless(), quick()).search(["a"], 3)
    assert caught.value.code == "number-of-answers"
    assert (caught.value.values["expected"], caught.value.values["found"]) == (1, 0)


def test_progress_counts_the_queries_that_are_answered():
    ranker, told = EngineRanker(Toy(), quick(concurrency=1)), []
    ranker.progress = lambda done, total: told.append((done, total))
    ranker.search(["station", "mother", "station"], 3)
    assert told == [(0, 2), (1, 2), (2, 2)]


def test_more_documents_than_an_engine_gives_are_refused():
    class Shallow(Plain):
        most = 10

    with pytest.raises(ConfigError, match="at most 10 documents"):
        EngineRanker(Shallow()).search(["a"], 11)


def test_the_name_of_an_engine_can_be_set():
    assert EngineRanker(Toy(), quick(name="our search")).id == "our_search"


def codes(notes):
    return [(note.code, note.values) for note in notes]


class Small:
    """An engine with two settings."""

    id, how_asked = "small", frozenset({"timeout_s"})

    def __init__(self, url: str, timeout_s: float = 3.0) -> None:
        self.given = (url, timeout_s)

    def settings(self):
        return {}

    def find(self, queries, k):
        return [[] for _ in queries]


def test_a_plugin_has_the_settings_of_its_engine_and_those_of_all():
    plugin = EnginePlugin(Small)
    made = plugin("here", timeout_s=1.0, concurrency=2)
    assert made.engine.given == ("here", 1.0)
    assert plugin.named({"url": "here", "timeout_s": 1.0, "concurrency": 2, "snapshot": "may"}) == {
        "url": "here", "snapshot": "may",
    }  # fmt: skip


def test_a_setting_that_means_something_else_for_rankers_is_refused():
    class Wrong(Small):
        def __init__(self, index: str) -> None: ...

    with pytest.raises(AssertionError, match="index"):
        EnginePlugin(Wrong)
