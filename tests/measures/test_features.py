"""What the light resolver reads of a mention. The shipped weights belong to exactly these features."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.measures.resolver import as_bytes
from askew.measures.resolver_features import LEFT_BYTES, MOST_FEATURES, RIGHT_BYTES, START_BYTES, extract

WORDS = ["he", "The", "said", "Paris", "1867", "NASA", ",", ".", "“", "é", "日本", "x" * 12]


def features(*texts_and_places):
    """The features of mentions, each given as a text with * before and after the word."""
    texts = [text.replace("*", "") for text in texts_and_places]
    starts = np.array([text.index("*") for text in texts_and_places])
    ends = np.array([text.rindex("*") - 1 for text in texts_and_places])
    found = np.zeros((len(texts), MOST_FEATURES), np.uint32)
    counts = np.zeros(len(texts), np.int64)
    extract(*as_bytes(texts, np.arange(len(texts)), starts, ends), found, counts)
    return [row[:count].tolist() for row, count in zip(found, counts, strict=True)]


def exactly(size):
    """Texts of so many bytes."""
    return st.lists(st.sampled_from(WORDS), min_size=1, max_size=60).map(lambda words: _fill(" ".join(words), size))


def _fill(text, size):
    kept = text.encode()[:size].decode(errors="ignore")
    return kept + "x" * (size - len(kept.encode()))


anything = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)


@given(exactly(START_BYTES), anything, exactly(LEFT_BYTES), exactly(RIGHT_BYTES), anything)
def test_only_the_beginning_and_the_words_around_are_read(start, between, before, after, beyond):
    near, far = features(f"{start}{before}*she*{after}", f"{start}{between}{before}*she*{after}{beyond}")
    assert near == far


@pytest.mark.parametrize("place", ["beginning", "before", "word", "after"])
def test_each_part_that_is_read_has_features(place):
    parts = {"beginning": "a" * START_BYTES, "before": "b " * (LEFT_BYTES // 2), "word": "*she*", "after": " c"}
    changed = {"beginning": "Paris", "before": "Paris ", "word": "*her*", "after": " Paris"}
    first, second = features("".join(parts.values()), "".join({**parts, place: changed[place]}.values()))
    assert first != second


@given(anything, anything)
def test_texts_before_it_in_the_batch_do_not_move_a_mention(other, before):
    text = f"{before} *she* said"
    assert features(f"{other} *he* ", text)[1] == features(text)[0]


def test_a_mention_is_found_behind_letters_of_several_bytes():
    # The byte positions of a text with é and 日 are not its character positions.
    start, before = "x " * (START_BYTES // 2), "Curie said ".rjust(LEFT_BYTES, ".")
    plain, odd = features(f"{start}{before}*she* won", f"{start}{'é日' * 200}{before}*she* won")
    assert plain == odd


EXAMPLE = "Ida, 19: “go” NASA *she* won."
# Written down once. Other numbers mean that src/askew/shipped/mentions/light.npz has to be trained again.
HASHES = [
    59687836, 2058354, 2700541017, 1227425654, 1141635916, 3969085052, 4015069983, 2548832225, 3941033360,
    446537689, 941469643, 868912425, 3292804086, 438019480, 1800958128, 807907239, 412792918, 2981393231,
    3057466311, 168857286, 2082960309, 1893146023, 3862902497, 3620086340, 2567418343, 3858390054, 1798921859,
    277810691, 3895586878, 1719235826, 3561683639, 2019083877, 2701931278, 4049408710, 3413657643, 137269007,
    801764738, 3279225694, 1732017493, 278271203, 245290565, 470751416, 2226298152, 3002596828, 2510590319,
    989544480, 853827428, 1586526325, 1171539009, 580169286, 3534146099, 2505730863, 864203707, 2234518524,
    3818426510, 1018803794, 3783351861, 2184746367, 3275263303, 3278881864, 322850684,
]  # fmt: skip
DIGESTS = ["0fefad554436014d", "422c252b784587a1", "9c03a4bdbcad294f"]


def test_the_features_are_those_that_the_shipped_weights_were_trained_with():
    assert features(EXAMPLE) == [HASHES]


def test_the_features_of_a_long_text_are_those_of_the_training_too():
    # Long enough for every limit: bytes and tokens at the beginning, before and after the word.
    words = [f"{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(60)]
    short, long = " ".join(words), " ".join(f"Something{word}" for word in words)
    rows = features(f"{short} *he* {short}", f"{long} *he* {long}", f"{long} *girl* {short}")
    assert [hashlib.sha256(np.array(row, "<u4").tobytes()).hexdigest()[:16] for row in rows] == DIGESTS


def test_capitals_and_pronouns_are_told_apart():
    rows = features("said *she* won", "said *She* won", "said *SHE* won", "said *girl* won", "said *9* won")
    assert len({tuple(row) for row in rows}) == len(rows)
