"""Where words of groups stand: the places of exactly the words that are counted, on the fast path too."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from askew.core.errors import ConfigError
from askew.core.lexicon import Lexicon
from askew.core.text import word
from askew.measures.mentions import Marker, counter_for

SINGLE = Lexicon("toy", {"female": ("she", "her", "woman"), "male": ("he", "man", "x_1"), "both": ("woman", "they")})
PHRASES = Lexicon(
    "toy",
    {
        "female": ("she", "cis woman", "woman", "stewardess*", "fiancée", "i̇pek", "ς"),
        "male": ("he", "man", "the old man", "old", "lad*"),
        "both": ("woman", "the old man", "lad*", "they"),
    },
)
PIECES = [
    "they", "she", "She", "HER", "he", "He", "man", "old", "the", "The old", "woman", "cis", "lad",
    "ladder", "m.d", "x_1", "_", "stewardesses", "FIANCÉE", "İpek", "ΛΌΓΟΣ", "Σ",
    "é", "日", "9", " ", "  ", "\t", ".", ". ", ")", "'", "-", "’",
]  # fmt: skip


def texts_of(pieces):
    """Pieces with blanks between them, and without."""
    listed = st.lists(st.sampled_from(pieces), max_size=30)
    return listed.map("".join) | listed.map(" ".join)


texts = texts_of(PIECES)
ascii_texts = texts_of([piece for piece in PIECES if piece.isascii()])


@given(ascii_texts, st.sampled_from(["unclipped", "word"]))
@example("channels.he said", "unclipped")
def test_the_fast_path_gives_the_places_of_the_general_path(text, tokens):
    marker = Marker(SINGLE, tokens)
    # One word beyond ASCII at the end is enough for the general path.
    assert marker.spans(text) == marker.spans(f"{text} é")


@given(
    texts, st.sampled_from(["unclipped", "word", "blank"]), st.sampled_from([SINGLE, PHRASES]),
    st.sampled_from(["all", "first"]),
)  # fmt: skip
def test_exactly_the_words_that_are_counted_have_a_place(text, tokens, lexicon, overlap):
    spans = Marker(lexicon, tokens, overlap).spans(text)
    counted = counter_for(lexicon, tokens, overlap, engine="reference").count(pa.array([text], pa.string()))
    bits = range(len(counted.groups))
    assert [sum(mask >> bit & 1 for _, _, mask in spans) for bit in bits] == counted.counts[0].tolist()
    assert all(end <= start for (_, end, _), (start, _, _) in pairwise(spans))


@given(texts)
@example("The old man and a cis woman")
@example("he'Σ")
def test_at_each_place_stands_a_term_of_the_lexicon(text):
    # A sigma in lower case depends on the letters around it, which the part alone does not have.
    terms = {tuple(word(term.rstrip("*"))) for terms in PHRASES.groups.values() for term in terms}
    for start, end, _ in Marker(PHRASES, "word").spans(text):
        found = tuple(one.replace("σ", "ς") for one in word(text[start:end]))
        assert found in terms or found[0].startswith(("lad", "stewardess"))


def test_a_clipped_word_has_a_place_for_word_alone():
    text = "channels.he remains. He said"
    assert Marker(SINGLE, "unclipped").spans(text) == [(21, 23, 2)]
    assert Marker(SINGLE, "word").spans(text) == [(9, 11, 2), (21, 23, 2)]


def test_a_tokenizer_that_deletes_characters_is_refused_with_those_that_do_not():
    with pytest.raises(ConfigError, match="unclipped, word, blank, found 'seyedsalehi'"):
        Marker(SINGLE, "seyedsalehi")
