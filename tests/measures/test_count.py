"""Counting mentions: the compiled scan agrees with the plain loop on every text."""

import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from askew.core import plugins as registry
from askew.core.errors import DataError, UnknownName
from askew.core.lexicon import Lexicon, load_lexicon, shipped_lexicons
from askew.core.text import blank, seyedsalehi, unclipped, word
from askew.measures.mentions import MentionCounter

LEXICON = Lexicon(
    "toy",
    {
        "female": ("she", "her", "woman", "fiancée", "cis woman", "mother-in-law", "stewardess*", "ς", "i̇pek", "_x"),
        "male": ("he", "man", "the man", "the old man", "old", "grandfather", "ÉMILE", "lad*", "λόγος"),
        "other": ("they", "woman", "x", "a", "longer-than-eight", "longerthan"),
    },
)
PIECES = [
    *(
        "she",
        "her",
        "woman",
        "Woman's",
        "fiancée",
        "FIANCÉE",
        "cis",
        "cis woman",
        "mother-in-law",
        "mother",
        "in",
        "law",
    ),
    *(
        "stewardess",
        "stewardesses",
        "he",
        "HE",
        "he’s",
        "man",
        "the",
        "old",
        "the old man",
        "grandfather",
        "grandfathers",
    ),
    *("émile", "Émile", "E\u0301mile", "lad", "lady", "ladle", "λόγος", "ΛΌΓΟΣ", "Σ", "İpek", "they", "x", "_x", "a"),
    *("longer-than-eight", "longerthan", "longerthaneight", " ", "  ", "\t", "\u00a0", "-", ".", ",", "’", "<b>", ">"),
    *("日本語", "🙂", "हिन्दी", "\u200d", "Kelvin", "\u212a", "ß", "ẞ", "ﬁ", "١٢", "²", "\x00", "@", "[", "`"),
]
texts = st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.lists(st.sampled_from(PIECES)).map(" ".join)


@pytest.fixture(scope="module")
def counters():
    return {
        name: (MentionCounter(LEXICON, name, engine="compiled"), MentionCounter(LEXICON, name, engine="reference"))
        for name in ("blank", "word", "unclipped", "seyedsalehi")
    }


@settings(max_examples=300, deadline=None)
@given(st.lists(texts | st.text(max_size=30), max_size=6))
@example(["he" * 40, "x" * 63 + " he", "x" * 64 + "he", "x " * 31 + "he", "he", ""])
@example(["Σ he", "İpek", "É she"])
def test_the_compiled_scan_agrees_with_the_plain_loop(counters, batch):
    for fast, plain in counters.values():
        mine, reference = fast.count(pa.array(batch, pa.string())), plain.count(pa.array(batch, pa.string()))
        assert mine.counts.tolist() == reference.counts.tolist()
        assert mine.tokens.tolist() == reference.tokens.tolist()


@settings(max_examples=50, deadline=None)
@given(st.lists(texts, min_size=1, max_size=20), st.integers(1, 5))
def test_a_batch_may_be_cut_anywhere_and_sliced(counters, batch, at):
    array = pa.array(batch, pa.large_string())
    fast = counters["word"][0]
    whole = fast.count(array)
    parts = [fast.count(array[:at]), fast.count(array[at:])]
    assert whole.counts.tolist() == [row for part in parts for row in part.counts.tolist()]


def test_tokens_are_those_of_the_tokenizer():
    text = "He, said:  “man's” re-do_it naïve 3rd"
    assert blank(text) == ["he,", "said:", "", "“man's”", "re-do_it", "naïve", "3rd"]
    assert word(text) == ["he", "said", "man", "s", "re", "do_it", "naïve", "3rd"]
    assert seyedsalehi("and-she <b>He</b> man's 3%") == ["andshe", "he", "man", "s", "3"]


def test_a_combining_mark_belongs_to_its_word():
    assert word("E\u0301mile हिन्दी") == ["e\u0301mile", "हिन्दी"]


def test_curly_apostrophes_and_possessives_are_found_by_words_and_missed_by_blanks():
    lexicon = load_lexicon("rekabsaz2020")
    text = pa.array(["He’s the woman's brother."])
    assert MentionCounter(lexicon, "word").count(text).counts.tolist() == [[1, 2]]
    assert MentionCounter(lexicon, "blank").count(text).counts.tolist() == [[0, 0]]


def test_the_longest_phrase_wins_and_its_words_are_used_up():
    counts = MentionCounter(LEXICON, "word").count(pa.array(["the old man", "the old", "old man the man"])).counts
    assert counts[:, 1].tolist() == [1, 1, 3]


def test_a_term_of_two_groups_counts_for_both():
    assert MentionCounter(LEXICON, "word").count(pa.array(["woman"])).counts.tolist() == [[1, 0, 1]]
    assert MentionCounter(LEXICON.exclusive(), "word").count(pa.array(["woman"])).counts.tolist() == [[1, 0, 0]]


def test_a_prefix_term_matches_all_words_that_start_so():
    counted = MentionCounter(LEXICON, "word").count(pa.array(["stewardess stewardesses steward"]))
    assert counted.counts[0, 0] == 2


def test_a_missing_text_counts_as_empty():
    counted = MentionCounter(LEXICON, "word").count(pa.array([None, "she"]))
    assert counted.counts[:, 0].tolist() == [0, 1]


def test_many_texts_in_several_threads_are_counted_in_their_places():
    batch = pa.array([f"{'he ' * (i % 7)}{'she ' * (i % 3)}é{'x' * 90}" for i in range(60_000)])
    fast = MentionCounter(load_lexicon("rekabsaz2020"), "word", threads=3, engine="compiled")
    counted = fast.count(batch).counts
    assert counted[:, 0].tolist() == [i % 3 for i in range(60_000)]
    assert counted[:, 1].tolist() == [i % 7 for i in range(60_000)]


def test_a_user_may_bring_a_tokenizer():
    assert MentionCounter(LEXICON, lambda text: text.split("|")).count(pa.array(["she|he|x"])).counts.tolist() == [
        [1, 1, 1]
    ]


def test_an_unknown_tokenizer_is_named_with_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'word'"):
        MentionCounter(LEXICON, "words")


def test_a_term_that_no_tokenizer_could_see_is_refused():
    with pytest.raises(DataError, match="never match"):
        MentionCounter(Lexicon("x", {"a": ("♀",), "b": ("he",)}), "word")


def test_a_prefix_of_several_tokens_is_refused():
    with pytest.raises(DataError) as caught:
        MentionCounter(Lexicon("x", {"a": ("cis wom*",)}), "word")
    assert caught.value.code == "long-prefix"


@pytest.mark.parametrize("name", shipped_lexicons())
@pytest.mark.parametrize("tokenizer", ["blank", "seyedsalehi", "unclipped", "word"])
def test_every_shipped_lexicon_finds_each_of_its_own_terms(name, tokenizer):
    lexicon = load_lexicon(name)
    counter = MentionCounter(lexicon, tokenizer, engine="compiled")
    for group, terms in enumerate(lexicon.groups.values()):
        counted = counter.count(pa.array([f"xx {term.upper()} yy" for term in terms])).counts
        assert (counted[:, group] >= 1).all()


def test_the_published_lists_have_their_published_sizes():
    small, large = load_lexicon("rekabsaz2020"), load_lexicon("rekabsaz2021")
    assert [len(t) for t in small.groups.values()] == [32, 32]
    assert [len(t) for t in large.groups.values()] == [163, 163]
    for group in ("female", "male"):
        assert set(small.groups[group]) < set(large.groups[group])
    assert not small.shared_terms()
    assert not large.shared_terms()


def test_the_broad_list_has_non_binary_terms_and_no_term_in_two_groups():
    lexicon = load_lexicon("gender")
    assert set(lexicon.group_names) == {"female", "male", "nonbinary"}
    assert {"nonbinary", "genderqueer", "enby"} <= set(lexicon.groups["nonbinary"])
    assert not lexicon.shared_terms()


def test_a_tokenizer_from_a_plugin_is_found_by_its_name_and_counted_by_the_plain_loop(monkeypatch):
    tokenizers = {("tokenizer", "bars"): lambda text: text.split("|")}
    monkeypatch.setattr(registry, "load", lambda *named: tokenizers[named])
    counter = MentionCounter(LEXICON, "bars", engine="compiled")
    assert counter.engine == "reference"
    assert counter.count(pa.array(["she|he|x"])).counts.tolist() == [[1, 1, 1]]


def test_the_scan_and_its_tables_can_be_laid_out_without_the_compiler():
    code = "import sys, askew.measures.mentions; print('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("channels.he remains", ["channels", "remains"]),
        ("It ends. he goes.He came", ["it", "ends", "he", "goes", "he", "came"]),
        ("(so).his men.com e.g.he", ["so", "men", "e"]),
        ("é.he É.his 9.he 日.her ..he", ["é", "É".lower(), "9", "日", "he"]),
    ],
)
def test_a_lower_case_word_glued_to_a_full_stop_is_no_word(text, left):
    assert unclipped(text) == left
    for engine in ("compiled", "reference"):
        found = MentionCounter(LEXICON, unclipped, engine=engine).count(pa.array([text]))
        assert found.tokens.tolist() == [len(left)]


@given(
    st.lists(st.sampled_from(["he", "He", ".", ". ", ")", "'", "É", "é", "her", " ", "x9", "ﬁ", "_", "-"]), max_size=40)
)
def test_clipped_words_are_found_alike_by_both_engines(parts):
    text = pa.array(["".join(parts)])
    fast, plain = (
        MentionCounter(LEXICON, unclipped, engine=engine).count(text) for engine in ("compiled", "reference")
    )
    assert (fast.counts.tolist(), fast.tokens.tolist()) == (plain.counts.tolist(), plain.tokens.tolist())
