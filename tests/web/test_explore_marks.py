"""Marked words are the words that measures count."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError
from askew.core.lexicon import Lexicon, load_lexicon
from askew.measures.mentions import Mark, Marker, MentionCounter
from askew.ui.explorer.explorer import shortened

WORDS = [
    "she",
    "HE",
    "Women",
    "man's",
    "cis",
    "woman",
    "İ",
    "ſhe",
    "Σ",
    "ΑΣ",
    "girl",
    "x",
    "-",
    "  ",
    "\n",
    "hers;",
    "mothers-in-law",
    "x.he",
    "ΑΣ.he'B",
    "She).man.she",
]
TEXTS = st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=12).map(" ".join)


def test_a_marked_word_is_the_word_in_the_text_whatever_its_case():
    text = "She told HIM that women's work is work."
    found = Marker(load_lexicon("rekabsaz2020")).find(text)
    assert [(text[mark.start : mark.end], mark.groups) for mark in found] == [
        ("She", ("female",)), ("HIM", ("male",)), ("women", ("female",)),
    ]  # fmt: skip


def test_a_phrase_is_one_mark_and_uses_its_words_up():
    lexicon = Lexicon("toy", {"a": ("old man",), "b": ("man", "m*")})
    marker = Marker(lexicon)
    text = "the old  MAN and the man met"
    assert [(text[m.start : m.end], m.groups) for m in marker.find(text)] == [
        ("old  MAN", ("a",)), ("man", ("b",)), ("met", ("b",)),
    ]  # fmt: skip
    assert marker.count(marker.find(text)) == {"a": 1, "b": 2}


def test_characters_that_grow_in_lower_case_do_not_shift_the_marks():
    text = "İİ she İ he"
    assert [text[m.start : m.end] for m in Marker(load_lexicon("rekabsaz2020")).find(text)] == ["she", "he"]


@pytest.mark.parametrize("tokens", ["unclipped", "word", "blank"])
@pytest.mark.parametrize("overlap", ["all", "first"])
@given(text=TEXTS)
def test_there_are_as_many_marks_as_mentions_are_counted(tokens, overlap, text):
    lexicon = Lexicon("toy", {"female": ("she", "women", "cis woman", "girl*"), "male": ("he", "man", "she", "i̇")})
    counted = lexicon.exclusive() if overlap == "first" else lexicon
    counts = MentionCounter(counted, tokens, engine="reference").count(pa.array([text])).counts[0].tolist()
    marker = Marker(lexicon, tokens, overlap)
    marks = marker.find(text)
    assert list(marker.count(marks).values()) == counts
    ends = [0, *(place for mark in marks for place in (mark.start, mark.end)), len(text)]
    assert ends == sorted(ends)


def test_a_word_that_lost_its_first_letter_is_not_marked_and_the_same_word_later_is():
    text = "channels.he remains; he stays"
    marks = Marker(load_lexicon("rekabsaz2020")).find(text)
    assert [(mark.start, mark.end) for mark in marks] == [(21, 23)]
    assert len(Marker(load_lexicon("rekabsaz2020"), "word").find(text)) == 2


def test_a_tokenizer_that_deletes_characters_has_no_places_to_mark():
    with pytest.raises(ConfigError, match="seyedsalehi"):
        Marker(load_lexicon("gender"), "seyedsalehi")


def test_a_long_text_is_cut_at_a_blank_and_never_within_a_mark():
    assert shortened("short", [], 10) == "short"
    assert shortened("eleven long words", [], 12) == "eleven long"
    assert shortened("x" * 30, [], 12) == "x" * 12
    assert shortened("aaaaaaa old man", [Mark(8, 15, ("a",))], 12) == "aaaaaaa"
