"""Counts by who the mentions point to: nothing is lost and nothing counted twice."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from askew.core.errors import ConfigError
from askew.core.groups import WHO
from askew.core.lexicon import Lexicon, load_lexicon
from askew.measures.mentions import counter_for
from askew.measures.resolver import Counters, ResolvedCounter

LEXICON = Lexicon(
    "toy",
    {
        "female": ("she", "her", "woman", "old woman", "stewardess*", "fiancée"),
        "male": ("he", "man", "the old man", "old", "lad*"),
        "both": ("woman", "the old man", "lad*", "they"),
    },
)
PIECES = [
    "she", "He", "he", "man", "the old man", "old", "woman", "old woman", "ladder", "Stewardesses", "FIANCÉE", "they",
    "Marie Curie was", "in the film", "a patient", "é", "日", " ", " ", " ", ".", ". ", "-", "\n",
]  # fmt: skip


class ByTheWord:
    """Stands in for a resolver: the class of a mention depends on its word and on the character before it."""

    id = "stub"

    def probabilities(self, texts, text_of, starts, ends):
        read = [texts[text][max(0, start - 1) : end] for text, start, end in zip(text_of, starts, ends, strict=True)]
        return np.eye(len(WHO))[[sum(word.encode()) % len(WHO) for word in read]]


@pytest.fixture(autouse=True, scope="module")
def stub():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("askew.measures.resolver.open_resolver", lambda name: ByTheWord())
        yield


texts = st.none() | st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@given(
    st.lists(texts, max_size=5), st.sampled_from(["unclipped", "word", "blank"]), st.sampled_from(["all", "first"])
)  # fmt: skip
@example([None, "", "nobody", "the old man and the old woman"], "word", "all")
def test_the_counts_of_all_classes_add_up_to_the_plain_counts(batch, tokens, overlap):
    array = pa.array(batch, pa.string())
    found = ResolvedCounter(LEXICON, tokens, overlap, "neural").count(array)
    plain = counter_for(LEXICON, tokens, overlap).count(array)
    assert found.by_class.sum(axis=2).tolist() == plain.counts.tolist() == found.counts.tolist()
    assert found.tokens.tolist() == plain.tokens.tolist()
    assert (found.by_class >= 0).all()


@given(st.lists(texts, max_size=5))
def test_a_text_is_resolved_alike_alone_and_among_others(batch):
    counter = ResolvedCounter(LEXICON, "unclipped", "all", "neural")
    alone = [counter.count(pa.array([text], pa.string())).by_class[0].tolist() for text in batch]
    assert counter.count(pa.chunked_array([batch], pa.string())).by_class.tolist() == alone


def test_the_count_of_several_classes_is_the_sum_of_their_counts():
    texts = pa.array(
        ["Marie Curie won. She was 36. If a person is sad, he or she needs a friend.", "Game Boy, Isle of Man"]
    )
    counters = Counters()
    lexicon = load_lexicon("rekabsaz2020")

    def counts(who):
        return counters.of(lexicon, "unclipped", "all", who, "neural" if who != "any" else "").count(texts).counts

    single = {who: counts(who) for who in WHO}
    assert (counts("real+name") == single["real"] + single["name"]).all()
    assert (counts("any") == sum(single.values())).all()
    assert sum(one.any() for one in single.values()) > 1


def test_counters_that_differ_in_the_class_alone_resolve_a_batch_once(monkeypatch):
    import askew.measures.resolver as module

    resolved = []
    plain = module.class_probabilities

    def noted(resolver, texts, *places):
        resolved.append(len(texts))
        return plain(resolver, texts, *places)

    monkeypatch.setattr(module, "class_probabilities", noted)
    counters, texts = Counters(), pa.array(["he said", "nobody", "she said"])
    for who in ("real", "generic", "real+name"):
        counters.of(LEXICON, "word", "all", who, "neural").count(texts)
    assert resolved == [2]
    counters.of(LEXICON, "word", "all", "real", "neural").count(texts.slice(1))
    assert resolved == [2, 1]


def test_a_tokenizer_whose_words_have_no_place_is_refused():
    expected = "who=: the tokenizer 'seyedsalehi' .*; set tokens= to 'unclipped', 'word' or 'blank', or leave out who="
    with pytest.raises(ConfigError, match=expected):
        ResolvedCounter(LEXICON, "seyedsalehi", "all", "neural")
