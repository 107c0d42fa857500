"""``askew demo``: the first thing a stranger runs."""

import shlex
from pathlib import Path

from askew.corpora.demo import demo_files


def test_it_measures_two_runs_for_lean_and_effectiveness(askew):
    result = askew("demo")
    assert (result.code, result.err) == (0, "")
    for word in ("bm25.run", "minilm.run", "RR@10", "nDCG@10", "ARaB(tf)@10", "NFaiRR@10", "n=96"):
        assert word in result.out


def test_its_tables_fit_eighty_columns(askew):
    rows = [line for line in askew("demo").out.splitlines() if "[" in line or "@" in line]
    assert len(rows) > 8
    assert max(map(len, rows)) <= 80


def test_it_tells_what_the_numbers_mean(askew):
    out = askew("demo").out
    assert "448 passages, 96 judged queries" in out
    assert "0 is balanced" in out and "leans male" in out and "leans female" in out


def test_its_json_is_that_of_measure(askew):
    files = demo_files()
    runs = " ".join(map(str, files.runs))
    measured = askew(f"measure {runs} --docs {files.docs} --qrels {files.qrels} --json").json
    assert askew("demo --json").json == measured


def test_the_commands_it_suggests_work(askew):
    suggested = askew("demo").out.split("Next: ")[1]
    for command in suggested.split(", then "):
        program, *words = shlex.split(command)
        assert program == "askew"
        assert askew(words).code == 0


def test_a_copy_holds_all_that_is_needed_to_measure_and_compare(askew):
    result = askew("demo --copy some/where")
    assert (result.code, result.err) == (0, "")
    assert {path.name for path in Path("some/where").iterdir()} >= {"docs.tsv", "qrels.txt", "queries.tsv", "bm25.run"}
    runs = "some/where/bm25.run some/where/minilm.run"
    assert askew(f"compare {runs} --docs some/where/docs.tsv --qrels some/where/qrels.txt --json").json


def test_a_copy_never_writes_over_what_is_there(askew):
    before = {path: path.read_bytes() for path in Path().iterdir()}
    askew("demo --copy docs.tsv").refused(2, "docs.tsv")
    askew("demo --copy .").refused(2, "--copy")
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_it_leaves_no_file_behind_and_needs_no_store(askew):
    before = sorted(Path().iterdir())
    assert askew("demo").code == 0
    assert sorted(Path().iterdir()) == before


def test_it_says_the_same_every_time(askew):
    assert askew("demo --json").out == askew("demo --json").out
