"""``askew sensitivity``: the command prints what the library finds."""

import pytest

import askew as library

COMMAND = "sensitivity old.run new.run --docs docs.tsv --cutoffs 1,2 --tokens word"


def test_the_command_prints_tables_that_fit_the_terminal(askew):
    shown = askew(COMMAND).table
    assert "2 systems, measured in 192 combinations of choices." in shown
    assert "mean tau" in shown and "median rank" in shown
    assert "old.run" in shown


def test_json_and_columns_have_every_combination(askew):
    found = askew(f"{COMMAND} --json").json
    report = library.sensitivity(["old.run", "new.run"], docs="docs.tsv", cutoffs=[1, 2], tokens=["word"])
    assert found == report.to_dict()
    head, *lines = askew(f"{COMMAND} --tsv").out.splitlines()
    assert head.split("\t")[:3] == ["combination", "measure", "lexicon"]
    assert len(lines) == 192


def test_a_page_and_a_folder_are_written(askew, files):
    result = askew(f"{COMMAND} --html page.html --out out")
    assert result.code == 0
    assert result.out.endswith("written to page.html\nwritten to out/report.html\n")
    assert files.text("other", "").parent.joinpath("page.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("sensitivity old.run --docs docs.tsv", 2, "give two runs or more, found 1"),
        ("sensitivity old.run new.run", 2, "needs the texts of the documents: give them with --docs"),
        (f"{COMMAND} --signs loud", 2, "--signs: expected one or more of"),
        (f"{COMMAND} --lexicons nothing", 2, "unknown lexicon 'nothing'"),
        (f"{COMMAND} --html .", 2, "--html .: expected a file, found a folder"),
        ("sensitivity old.run absent.run --docs docs.tsv", 3, "absent.run"),
    ],
)
def test_a_mistake_is_one_line(askew, command, code, words):
    askew(command).refused(code, words)
