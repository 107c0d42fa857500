"""The compiled stemmer gives the stems of a readable one, word by word."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core import porter
from askew.data.collection import demo_files
from askew.rewrite.stem import ends_in_double, ends_in_short_syllable, has_vowel, mark_consonant_y, region_after, rules
from askew.search.bm25.analyze import STOP_WORDS, Analyzer

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
ENDINGS = sorted({*porter.PLURALS, *porter.STEP_2, *porter.STEP_3, *porter.STEP_4, "eed", "ed", "ing", "y", "ll"})
LETTERS = st.text("abcdefghijklmnopqrstuvwxyz0'yéあ𐐨", max_size=6)
WORDS = st.lists(st.builds(lambda start, *ends: start + "".join(ends), LETTERS, *[st.sampled_from(["", *ENDINGS])] * 2))


def stem(word: str) -> str:
    # Java, and so Lucene, counts a character beyond U+FFFF as two.
    if len(word) + sum(char > "\uffff" for char in word) <= 2:
        return word
    word = mark_consonant_y(word)
    r1 = region_after(word)
    r2 = region_after(word, r1)
    word = _step_1b(rules(porter.PLURALS).apply(word), r1)
    if word[-1] in "yY" and has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = rules(porter.STEP_3).apply(rules(porter.STEP_2).apply(word, r1), r1)
    return _step_5(_step_4(word, r2), r1, r2).replace("Y", "y")


def _step_1b(word: str, r1: int) -> str:
    if word.endswith("eed"):
        return word[:-1] if len(word) - 3 >= r1 else word
    start = word[:-2] if word.endswith("ed") else word[:-3] if word.endswith("ing") else ""
    if not has_vowel(start):
        return word
    # conflat(ed) -> conflate, hopp(ing) -> hop, fil(ing) -> file
    if start.endswith(("at", "bl", "iz")):
        return start + "e"
    if ends_in_double(start) and start[-1] not in "lsz":
        return start[:-1]
    return start + "e" if len(start) == r1 and ends_in_short_syllable(start) else start


def _step_4(word: str, r2: int) -> str:
    # -ion is removed only after s or t, which are kept.
    if word.endswith(("sion", "tion")):
        return word[:-3] if len(word) - 3 >= r2 else word
    return rules(porter.STEP_4).apply(word, r2)


def _step_5(word: str, r1: int, r2: int) -> str:
    at = len(word) - 1
    if word.endswith("e") and (at >= r2 or (at >= r1 and not ends_in_short_syllable(word[:-1]))):
        word, at = word[:-1], at - 1
    return word[:-1] if word.endswith("ll") and at >= r2 else word


def stems_by_rule(words):
    return [stem(word) for word in words]


@given(WORDS)
def test_words_made_of_endings_have_the_same_stems(words):
    assert porter.stems(words) == stems_by_rule(words)


@given(st.lists(st.text(max_size=8).map(str.lower)))
def test_any_text_has_the_same_stem(words):
    words = [word for word in words if word.isprintable()]
    assert porter.stems(words) == stems_by_rule(words)


def test_the_words_of_the_demo_have_the_same_stems():
    words = sorted(set(re.findall(r"\w+", demo_files().docs.read_text(encoding="utf-8").lower())))
    assert len(words) > 2000 and porter.stems(words) == stems_by_rule(words)


def test_sixty_thousand_words_have_the_same_stems():
    path = DATA / "glove100_60k" / "vocab.txt"
    if not path.is_file():
        pytest.skip("the shared vocabulary of GloVe is not here")
    words = path.read_text(encoding="utf-8").split()
    assert porter.stems(words) == stems_by_rule(words)


def test_the_analyzer_drops_stop_words_and_keeps_the_order():
    words = ["nurses", "the", "caring", "of", "nurse", "naïveté"]
    assert Analyzer().to_terms(words) == ["nurs", None, "care", None, "nurs", stem("naïveté")]
    assert Analyzer("plain").to_terms(words) == [None if word in STOP_WORDS else word for word in words]
    assert porter.stems([]) == []
