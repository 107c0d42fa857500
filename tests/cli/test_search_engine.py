"""askew search with a live engine: a run, what is told of it, and a search that goes on where the engine stopped."""

import pytest

from search_server import SearchServer, ServerFault

DOCS = {"d1": "He is a man.", "d2": "She is a woman.", "d3": "The weather is fine."}


@pytest.fixture
def server(files):
    files.text("queries.tsv", "q1\tis a man.\nq2\tweather\nq3\tzebra\n")
    with SearchServer(DOCS) as server:
        yield server


def command(server, *more):
    url = f"--set=url={server.url}/search?q={{query}}&size={{k}}"
    return ["search", "queries.tsv", "--ranker", "http", url, "--out", "live.run", *more]


def test_a_run_of_an_engine_is_written_and_can_be_measured(askew, server, files, tmp_path):
    done = askew(command(server, "--set=name=live"))
    assert (done.code, done.out) == (0, "3 queries, 4 lines, live: live.run\n")
    assert done.noted("1 of 3 queries") and done.noted(" live.run.answers,")
    lines = [line.split() for line in (tmp_path / "live.run").read_text().splitlines()]
    assert [(line[0], line[2]) for line in lines] == [("q1", "d1"), ("q1", "d2"), ("q1", "d3"), ("q2", "d3")]
    files.docs("live.tsv", DOCS)
    assert askew("measure live.run --docs live.tsv --measures ARaB(tf)@10").code == 0


def test_a_search_goes_on_where_the_engine_stopped(askew, server, tmp_path):
    class Once:
        """Answers two queries, then refuses access."""

        left = 2

        def popleft(self):
            self.left -= 1
            return None if self.left >= 0 else ServerFault(401)

        def __bool__(self):
            return True

    server.failures = Once()
    stopped = askew(command(server, "--set=concurrency=1"))
    stopped.refused(3, "2 of 3 queries were answered, and their answers are in live.run.answers: run again to continue")
    assert not (tmp_path / "live.run").exists()
    server.failures = []
    assert askew(command(server)).code == 0
    assert server.queries == ["is a man.", "weather", "zebra"]


def test_progress_is_told_for_each_query(server, tmp_path):
    from askew.search.engines.http import http
    from askew.search.retrieve import queries_of, search_queries

    told = []
    ranker = http(f"{server.url}/search?q={{query}}", concurrency=1)
    search_queries(queries_of("queries.tsv"), ranker, tmp_path / "a.run", 5, lambda *now: told.append(now))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3), (3, 3)]


def test_an_engine_takes_no_index_and_no_run(askew, server):
    askew(command(server, "--index", "ix")).refused(2, "the ranker 'http' searches a live engine", "--index")


def test_a_run_of_which_no_query_finds_anything_is_refused(askew, server, files):
    files.text("queries.tsv", "q1\tzebra\n")
    askew(command(server)).refused(3, "no query finds a document")
