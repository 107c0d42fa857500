"""Progress where there is no terminal: lines on stderr, at a steady pace, also while a step says nothing."""

import re
import threading
import time

import pytest

from askew.ui.cli import render
from askew.ui.cli.render import Waiting


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(render, "_EVERY", 0.01)
    monkeypatch.delenv("ASKEW_PROGRESS")


def lines_of(capsys, count):
    """The first lines on stderr, as soon as there are so many."""
    found = ""
    while found.count("\n") < count:
        found += capsys.readouterr().err
        time.sleep(0.01)
    return found.splitlines()


def test_a_step_that_says_nothing_still_shows_that_it_runs(often, capsys):
    with Waiting("loading a model"):
        lines = lines_of(capsys, 3)
    assert all(re.fullmatch(r"askew: loading a model \(\d+ s\)", line) for line in lines)


def test_a_line_says_what_is_done_of_how_much(often, capsys):
    with Waiting("searching") as progress:
        progress(3, 20, "reformulating")
        assert any("askew: reformulating: 3 of 20 (" in line for line in lines_of(capsys, 2))
        progress(1500, 0)
        assert any("askew: searching: 1,500 (" in line for line in lines_of(capsys, 3))


def test_nothing_is_printed_after_the_end_also_of_a_failure(often, capsys):
    before = threading.active_count()
    with pytest.raises(ValueError), Waiting("searching"):
        raise ValueError
    capsys.readouterr()
    assert threading.active_count() == before
    assert capsys.readouterr().err == ""


def test_a_stream_that_is_closed_stops_no_work(often, monkeypatch):
    class Closed:
        def isatty(self):
            return False

        def write(self, text):
            raise BrokenPipeError

        flush = write

    monkeypatch.setattr("sys.stderr", Closed())
    with Waiting("searching") as progress:
        time.sleep(0.05)
        progress(1, 2)


def test_progress_can_be_left_out(often, monkeypatch, capsys):
    monkeypatch.setenv("ASKEW_PROGRESS", "off")
    with Waiting("searching"):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""
