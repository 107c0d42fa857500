"""The compiled stemmer gives the stems of the readable one, word by word."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.text import PLURALS, STEP_2, STEP_3, STEP_4, stem
from askew.data.collection import demo_files
from askew.search.bm25.analyze import STOP_WORDS, Analyzer, stems

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
ENDINGS = sorted({*PLURALS.endings, *STEP_2.endings, *STEP_3.endings, *STEP_4.endings, "eed", "ed", "ing", "y", "ll"})
LETTERS = st.text("abcdefghijklmnopqrstuvwxyz0'y", max_size=6)
WORDS = st.lists(st.builds(lambda start, *ends: start + "".join(ends), LETTERS, *[st.sampled_from(["", *ENDINGS])] * 2))


def stems_by_rule(words):
    return [stem.__wrapped__(word) for word in words]


@given(WORDS)
def test_words_made_of_endings_have_the_same_stems(words):
    assert stems(words) == stems_by_rule(words)


@given(st.lists(st.text(max_size=8).map(str.lower)))
def test_any_text_has_the_same_stem(words):
    words = [word for word in words if word.isprintable()]
    assert stems(words) == stems_by_rule(words)


def test_the_words_of_the_demo_have_the_same_stems():
    words = sorted(set(re.findall(r"\w+", demo_files().docs.read_text(encoding="utf-8").lower())))
    assert len(words) > 2000 and stems(words) == stems_by_rule(words)


def test_sixty_thousand_words_have_the_same_stems():
    path = DATA / "glove100_60k" / "vocab.txt"
    if not path.is_file():
        pytest.skip("the shared vocabulary of GloVe is not here")
    words = path.read_text(encoding="utf-8").split()
    assert stems(words) == stems_by_rule(words)


def test_the_analyzer_drops_stop_words_and_keeps_the_order():
    words = ["nurses", "the", "caring", "of", "nurse", "naïveté"]
    assert Analyzer().to_terms(words) == ["nurs", None, "care", None, "nurs", stem("naïveté")]
    assert Analyzer("plain").to_terms(words) == [None if word in STOP_WORDS else word for word in words]
    assert stems([]) == []
