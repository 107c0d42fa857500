"""Names in queries without capitals: the model and its table."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.rewrite.names import KeptNames, read_table
from askew.rewrite.words import FUNCTION_WORDS, plain_words

TOOLS = str(Path(__file__).resolve().parents[2] / "tools")
if TOOLS not in sys.path:
    sys.path.insert(0, TOOLS)

from make_name_table import features, write_table  # noqa: E402

_WORDS = st.sampled_from(
    ["mark", "jackson", "new", "york", "of", "the", "zzyzx", "pizza", "x", "5km", "b12", "recipe", "paris", "who", "st"]
)


@given(st.lists(_WORDS | st.text("abcdefgh0", min_size=1, max_size=6), max_size=9))
def test_a_score_is_the_sum_of_the_weights_of_the_features(words):
    table = read_table()
    for used, score in zip(features(table, words), table.scores(words), strict=True):
        assert math.isclose(sum(table.weights[i] for i in used) + table.bias, score) if used else score == -math.inf


@given(st.lists(_WORDS, max_size=9), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_a_higher_certainty_finds_fewer_names(words, one, other):
    low, high = sorted((one, other))
    assert set(read_table().names(words, low)) >= set(read_table().names(words, high))
    assert read_table().names(words, 1.0) == []


def test_function_words_numbers_and_single_letters_are_no_names():
    words = ["x", "5km", "12", *sorted(FUNCTION_WORDS)]
    assert read_table().names(words, 0.001) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mark jackson", {"mark", "jackson"}),
        ("where was mark jackson born", {"mark", "jackson"}),
        ("how old is angela merkel", {"angela", "merkel"}),
        ("is new york bigger than los angeles", {"new", "york", "los", "angeles"}),
        ("who wrote harry potter", {"harry", "potter"}),
        ("iphone battery life", {"iphone"}),
        ("how many people live in tokyo", {"tokyo"}),
        ("does machu picchu have snow", {"machu", "picchu"}),
        ("symptoms of a cold", set()),
        ("how do you make a chocolate cake", set()),
        ("average salary of a nurse", set()),
        ("why is the sky blue", set()),
        ("cheap flights", set()),
        ("", set()),
    ],
)
def test_names_are_found_without_capitals(text, found):
    assert KeptNames(text, 0.5).wanted == found


def test_a_table_is_read_as_it_was_written(tmp_path):
    table = read_table()
    write_table(tmp_path / "table.npz", table)
    again = read_table(tmp_path / "table.npz")
    assert (again.words, again.pairs, again.ends, again.bias) == (table.words, table.pairs, table.ends, table.bias)
    assert np.allclose(again.weights, table.weights)


def test_every_word_of_the_table_is_in_the_form_in_which_it_is_looked_up():
    table = read_table()
    assert all(plain_words(word) == [word] for word in table.words)
    assert all(plain_words(pair) == pair.split() for pair in table.pairs)
    assert FUNCTION_WORDS.isdisjoint(table.words)
