"""Mentions are counted once for each document, and are those that counting anew gives."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from askew.core.groups import Groups
from askew.measures.mentions import MentionCounter
from askew.ui.explorer.counting import CountedOnce

TEXTS = ["she is a nurse", "he and his brother", "", "a stone", "her mother and her father", "men"]


class Texts:
    """The texts of a small collection; remembers which were asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, docs):
        self.asked += docs.tolist()
        return pa.array([TEXTS[doc] for doc in docs], pa.large_string())


@given(st.lists(st.lists(st.integers(0, len(TEXTS) - 1), min_size=1, unique=True), max_size=6))
def test_counts_are_the_same_however_often_a_document_is_found(searches):
    counter, texts = MentionCounter(Groups.of("gender:female,male").lexicon), Texts()
    once = CountedOnce(counter)
    for docs in map(sorted, searches):
        found = once.of(np.array(docs, np.int32), len(TEXTS), texts)
        plain = counter.count(pa.array([TEXTS[doc] for doc in docs], pa.large_string()))
        assert found.groups == plain.groups and found.known.all()
        assert found.counts.tolist() == plain.counts.tolist() and found.tokens.tolist() == plain.tokens.tolist()
    assert sorted(texts.asked) == sorted({doc for docs in searches for doc in docs})
