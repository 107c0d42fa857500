"""``askew demo``: the first thing a stranger runs."""

import shlex
from pathlib import Path

from askew.pairs.dataset.checking import verify


def test_it_runs_the_recipe_demo_and_says_what_came_of_it(askew):
    result = askew("demo")
    assert result.code == 0 and len(result.err.splitlines()) == 2
    assert result.noted("RR@10, AP@10: grades of 1 ") and result.noted("8 of 72 queries")
    for word in (
        "448 passages, 96 judged queries",
        "neutral",
        "pairs",
        "effective: ",
        "RR@10",
        "|ARaB(tf)@10|",
    ):
        assert word in result.out
    made = askew("run demo --store askew-demo/store --json").json
    assert not any(step["ran"] for step in made["steps"])
    pairs = {row["subset"]: row["pairs"] for row in made["summary"]}
    assert pairs["effective"] >= 5 and pairs["fair"] >= 5
    assert askew("demo --json").json["summary"] == made["summary"]


def test_it_ends_with_the_paths_of_a_dataset_and_a_report(askew):
    lines = askew("demo").out.splitlines()
    dataset, report = (
        Path(next(line for line in lines if line.startswith(word)).split()[1]) for word in ("dataset", "report")
    )
    assert verify(dataset).ok
    page = report.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") or page.startswith("<!doctype html>")
    assert "ARaB(tf)@10" in page


def test_its_tables_fit_eighty_columns(askew):
    lines = askew("demo").out.splitlines()
    assert len(lines) > 20
    assert max(map(len, lines[:-1])) <= 90


def test_once_more_it_changes_nothing_and_says_the_same(askew):
    first = askew("demo").out
    before = {path: path.read_bytes() for path in Path("askew-demo").rglob("*") if path.is_file()}
    again = askew("demo").out
    assert again.replace("   found", "").split() == first.split() or "found" in again
    assert {path: path.read_bytes() for path in Path("askew-demo").rglob("*") if path.is_file()} == before


def test_what_stands_in_its_way_is_left_alone(askew):
    Path("mine/dataset").mkdir(parents=True)
    Path("mine/dataset/letter.txt").write_text("dear")
    result = askew("demo --out mine")
    assert (result.code, result.out) == (3, "")
    said = result.err.splitlines()[-1]
    assert said.startswith("askew: ") and "mine/dataset" in said
    assert Path("mine/dataset/letter.txt").read_text() == "dear"


def test_the_commands_it_suggests_work(askew):
    suggested = askew("demo").out.split("To measure a run of the demo:\n")[1]
    assert len(suggested.splitlines()) == 2
    for command in suggested.splitlines():
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
