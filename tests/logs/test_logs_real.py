"""Real sessions and real vectors, where they are; the page about logs shows what the command prints for them."""

import contextlib
import io
import re
from pathlib import Path

import polars as pl
import pytest

from askew.logs.analyze import logs
from askew.logs.association import Association, load_pairs
from askew.logs.settings import LogSettings
from askew.rewrite.embedding import read_vectors

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "logs.md"
BLOCK = re.compile(r"<!-- real: (?P<words>[^\n]*) -->\n```text\n(?P<text>.*?)```", re.DOTALL)
SESSIONS = "trec_session2013/sessiontrack2013.xml"


@pytest.fixture(scope="module")
def sessions(data):
    return logs([data / SESSIONS], format="trec-session", settings=LogSettings())


def test_the_trec_sessions_of_2013_are_read_whole(sessions):
    # As the track counts them: 133 sessions, 401 interactions and 87 last queries.
    assert sessions.rejected == {}
    assert (sessions.counts["sessions"], sessions.counts["rows_read"]) == (133, 401 + 87)
    assert sessions.counts["specializing"] > 60


def printed(words, data):
    from askew.ui.cli.logs import show

    paths, settings = words.split(), {}
    if "--lexicon" in paths:
        at = paths.index("--lexicon")
        settings["groups"] = ROOT / paths[at + 1]
        paths = [*paths[:at], *paths[at + 2 :]]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        report = logs([data / path for path in paths], format="trec-session", **settings)
        show(report, None, None)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def test_the_page_shows_what_the_command_prints_for_real_sessions(data, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert blocks
    for words, text in blocks:
        assert printed(words, data) == text, "run: python tests/logs/test_logs_real.py"


def test_glove_knows_which_words_lean_to_which_gender(data):
    words, vectors = read_vectors(data / "glove100_60k" / "vectors.f16.npy")
    texts = pl.Series(
        ["nurse", "engineer", "baby doll dress", "paul malone tie", "ballet", "football", "queen", "king"]
    )
    made = Association(words, vectors, load_pairs())
    assert made.pairs_known == 10
    found = dict(zip(texts, made.of(texts), strict=True))
    assert found["nurse"] > found["engineer"]
    assert found["baby doll dress"] > 0 > found["paul malone tie"]
    assert found["ballet"] > found["football"]
    assert found["queen"] > 0


def main():
    """Write the blocks of real data in the page anew."""
    import os

    from conftest import DATA

    os.environ["COLUMNS"] = "80"
    text = PAGE.read_text(encoding="utf-8")
    made = BLOCK.sub(lambda m: f"<!-- real: {m['words']} -->\n```text\n{printed(m['words'], DATA)}```", text)
    PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
