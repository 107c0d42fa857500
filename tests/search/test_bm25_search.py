"""Search for many answers: what a sample lets expect and what tables tell never change an answer."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askew.search.bm25 import search
from askew.search.bm25.analyze import Analyzer
from askew.search.bm25.build import build_index
from askew.search.bm25.ranker import Bm25Ranker


def make(folder, texts):
    ids = [f"d{i}" for i in range(len(texts))]
    table = pa.table({"doc_id": ids, "text": pa.array(texts, pa.large_string())})
    return build_index([table], folder, Analyzer("plain"))


def exhaustive(ranker, query, k):
    index, totals = ranker.index, np.zeros(len(ranker.index))
    for term in index.term_numbers(query.split()).tolist():
        part = slice(index.offsets[term], index.offsets[term + 1])
        totals[index.docs[part]] += ranker.weights.arrays["impacts"][part].astype(np.float64)
    scores = totals.astype(np.float32)
    order = np.lexsort((np.arange(len(index)), -scores))[:k]
    return order[scores[order] > 0].tolist()


@pytest.fixture(scope="module")
def clustered(tmp_path_factory):
    """Documents in which the best for ``a1 b1`` are where the sample is, those for ``c1 d1`` elsewhere."""
    rng = np.random.default_rng(5)
    step, texts = search._SAMPLE * search._SHARE, []
    for doc in range(40_000):
        inside = (doc - step // 2) % step < search._SAMPLE
        words = [word for word in ("a1", "b1", "c1", "d1") if rng.random() < 0.5] + [f"w{rng.integers(50)}"] * 3
        if inside and rng.random() < 0.3:
            words += ["a1", "b1"] * 3
        if not inside and rng.random() < 0.3:
            words += ["c1", "d1"] * 3
        texts.append(" ".join(words))
    return Bm25Ranker(make(tmp_path_factory.mktemp("clustered") / "i", texts), threads=1)


@pytest.mark.parametrize("query", ["a1 b1", "c1 d1", "a1 b1 c1 d1", "a1 w1 w2 w3", "w4 w5"])
@pytest.mark.parametrize("k", [101, 700, 1000])
def test_a_misleading_sample_does_not_change_the_answer(clustered, query, k):
    assert clustered.search([query], k).docs.tolist() == exhaustive(clustered, query, k)


def test_the_same_searcher_gives_the_same_answer_again_and_in_any_order(clustered):
    queries = ["a1 b1", "c1 d1", "a1 b1 c1", "a1 b1"]
    first = clustered.search(queries, 500)
    again = clustered.search(queries[::-1], 500)
    assert first.docs[:500].tolist() == again.docs[-500:].tolist() == again.docs[:500].tolist()


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(["a1", "b1", "c1", "d1", *(f"w{i}" for i in range(50))]), min_size=1, max_size=7),
    st.data(),
)
def test_any_query_for_any_number_of_answers_is_searched_exactly(clustered, words, data):
    query, k = " ".join(dict.fromkeys(words)), data.draw(st.integers(1, 1000))
    assert clustered.search([query], k).docs.tolist() == exhaustive(clustered, query, k)
