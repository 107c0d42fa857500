"""Analysis as Lucene does it: word breaks, possessives, stop words, Porter stems."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import UnknownName
from askew.search.bm25.analyze import Analyzer


def tokens(text):
    words, ids, _ = Analyzer().split(pa.array([text], pa.large_string()))
    return [words[i] for i in ids.tolist()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A:B A::B", ["a:b", "a", "b"]),
        ("1.2 A.B 1..2 A..B", ["1.2", "a.b", "1", "2", "a", "b"]),
        ("1,2 1,,2 a,b", ["1,2", "1", "2", "a", "b"]),
        ("A.:B 1,.2", ["a", "b", "1", "2"]),
        ("A:B_A:B A:B_A::B", ["a:b_a:b", "a:b_a", "b"]),
        ("_ __ __a b_", ["__a", "b_"]),
        ("don't O'Neil's dog’s dogs'", ["don't", "o'neil", "dog", "dogs"]),
        ("end. Next", ["end", "next"]),
        ("R2D2 3rd 21.35", ["r2d2", "3rd", "21.35"]),
        ("日本語テスト", ["日", "本", "語", "テスト"]),
        ("ひら カタ_カナ", ["ひ", "ら", "カタ_カナ"]),
        ("สวัสดี", ["สวัสดี"]),
        ('שלום צה"ל', ["שלום", 'צה"ל']),
        ("🙂👍🏽 👨‍👩‍👧 🇩🇪", ["🙂", "👍🏽", "👨‍👩‍👧", "🇩🇪"]),
        ("e\u0301a naïve ΑΣΣ İ", ["e\u0301a", "naïve", "ασσ", "i"]),
        ("", []),
        ("... --- !!!", []),
        ("x" * 600, ["x" * 255, "x" * 255, "x" * 90]),
    ],
)
def test_words_break_as_in_unicode_annex_29(text, expected):
    assert tokens(text) == expected


def test_english_drops_stop_words_and_stems_and_plain_does_not_stem():
    text = "The runners' shoes are running in the city's streets"
    assert Analyzer().terms(text) == ["runner", "shoe", "run", "citi", "street"]
    assert Analyzer("plain").terms(text) == ["runners", "shoes", "running", "city", "streets"]


def test_a_user_may_bring_a_function():
    assert Analyzer("mine", str.split).terms("The X the") == ["The", "X", "the"]


def test_an_unknown_analyzer_is_named_with_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'english'"):
        Analyzer("englisch")


@given(st.lists(st.text(max_size=60), max_size=8))
def test_a_batch_is_analysed_as_its_texts_one_by_one(texts):
    words, ids, _ = Analyzer().split(pa.array(texts, pa.large_string()))
    assert [words[i] for i in ids.tolist()] == [word for text in texts for word in tokens(text)]


def test_more_distinct_words_than_expected_make_the_table_grow():
    text = " ".join(f"w{i}" for i in range(50_000))
    assert len(tokens(text)) == len(set(tokens(text))) == 50_000


@pytest.mark.parametrize(
    ("text", "terms"),
    [("_\u1082", ["\u1082"]), ("__\u1082_", ["\u1082"]), ("_\u1082a", ["_\u1082a"]), ("___", []), ("_\u0301", [])],
)
def test_underscores_alone_do_not_swallow_a_mark_that_is_a_word(text, terms):
    # As Lucene has it; found by the comparison in test_lucene_parity.py.
    assert Analyzer().terms(text) == terms


def test_a_long_run_of_underscores_and_marks_is_read_once():
    assert len(Analyzer().terms("_\u1082" * 200_000)) == 200_000
