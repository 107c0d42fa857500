"""RM3 and Rocchio by hand."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError
from askew.core.plugins import check
from askew.search.bm25.analyze import Analyzer
from askew.search.bm25.build import build_index
from askew.search.bm25.ranker import Bm25Ranker, FeedbackRanker, expand
from askew.search.feedback import EXACT, SINGLE, Rm3, Rocchio, best, is_common, mean_vector

FILLER = [f"other{i} thing{i}" for i in range(40)]


def over(folder, texts):
    """A ranker over texts, without stemming."""
    ids = [f"d{i}" for i in range(len(texts))]
    table = pa.table({"doc_id": ids, "text": pa.array(texts, pa.large_string())})
    return Bm25Ranker(build_index([table], folder, Analyzer("plain")))


@pytest.fixture
def ranker(tmp_path):
    texts = ["apple apple pear x123456789012345678901", "apple plum plum plum", "pear plum fig", *FILLER]
    return over(tmp_path / "i", texts)


def test_rm3_mixes_shares_of_the_query_and_of_the_documents_by_their_scores():
    documents = [({"a": 3.0, "b": 1.0}, 2.0), ({"b": 1.0, "c": 1.0}, 1.0)]
    # a: 3/4 * 2 = 1.5, b: 1/4 * 2 + 1/2 * 1 = 1.0, c: 0.5; the best two: a 0.6, b 0.4
    mixed = Rm3(terms=2, original=0.5).mix({"q": 1.0, "a": 1.0}, documents)
    assert mixed == pytest.approx({"q": 0.25, "a": 0.25 + 0.3, "b": 0.2})


def test_rocchio_adds_the_mean_of_the_documents_to_the_query():
    mixed = Rocchio(terms=1, alpha=1.0, beta=0.75).mix({"q": 2.0}, [({"a": 3.0, "b": 4.0}, 9.0), ({"b": 1.0}, 1.0)])
    # mean: a 0.3, b (0.8 + 1) / 2 = 0.9; the best one alone has length 1
    assert mixed == pytest.approx({"q": 1.0, "b": 0.75})


def test_the_terms_come_from_the_first_documents_and_odd_ones_are_left_out(ranker):
    (query,) = expand(ranker, ["apple"], Rm3(documents=2))
    assert set(query) == {"apple", "pear", "plum"}
    assert sum(query.values()) == pytest.approx(1.0)


def test_rocchio_reads_every_term_of_a_document_and_keeps_the_best_of_the_mean(tmp_path):
    others = ("fig", "kiwi", "plum")
    texts = [f"apple pear pear {fruit} {fruit} {fruit}" for fruit in others]
    # pear: 2 / sqrt(14) in each; the most frequent term of each document is in that document alone.
    (query,) = expand(over(tmp_path / "i", [*texts, *FILLER]), ["apple"], Rocchio(terms=1))
    assert query == pytest.approx({"apple": 1.0, "pear": 0.75})


def test_rocchio_takes_terms_of_any_letters_and_rm3_only_those_of_a_to_z_and_digits(tmp_path):
    ranker = over(tmp_path / "i", ["apple naïve x😀 日 x y " + "ü" * 20 + " " + "ö" * 21, *FILLER])
    (query,) = expand(ranker, ["apple"], Rocchio())
    assert set(query) == {"apple", "naïve", "ü" * 20, "😀"}
    (query,) = expand(ranker, ["apple"], Rm3())
    assert set(query) == {"apple"}


@pytest.mark.parametrize("method", [Rm3(), Rocchio()])
@pytest.mark.parametrize(
    ("empty", "usable"), [([""], False), ([" \t", "\x00\n"], False), (["the of"], True), (["..."], True)]
)
def test_a_document_without_text_is_not_counted_when_common_terms_are_left_out(tmp_path, method, empty, usable):
    # pear is in 4 documents: too many of 39, few enough of 40. Anserini leaves out documents of white space alone;
    # those of stop words or of signs are documents to it.
    texts = ["apple pear", "pear", "pear", "pear", *FILLER[:35], *empty]
    (query,) = expand(over(tmp_path / "i", texts), ["apple"], method)
    assert ("pear" in query) == usable


def test_the_share_of_documents_is_compared_in_32_bits():
    # 10,000,001 is more than a tenth of 100,000,009; as 32-bit floats it is a tenth.
    assert is_common([10_000_001, 10_000_002], 100_000_009).tolist() == [False, True]
    assert is_common([4], 39)
    assert not is_common([4], 40)
    assert not is_common([0], 0)


def test_sums_are_those_of_32_bit_floats_in_the_order_of_the_documents():
    documents = [{"a": 1.0, "b": 3.0, "c": 3.0}, {"a": 3.0, "b": 3.0, "c": 1.0}, {"a": 3.0, "b": 1.0, "c": 3.0}]
    exact = mean_vector(documents)
    assert exact["a"] == exact["b"] == exact["c"]
    sums = dict.fromkeys("abc", np.float32(0))
    for counts in documents:
        for term, count in counts.items():
            sums[term] += np.float32(count) / np.float32(math.sqrt(19))
    # The last place decides: b is a little more than a and c.
    assert mean_vector(documents, SINGLE) == {term: float(value / np.float32(3)) for term, value in sums.items()}
    assert sums["b"] > sums["a"] == sums["c"]
    assert Rocchio(terms=1).mix({"q": 1.0}, [(one, 1.0) for one in documents]) == {"q": 1.0, "b": 0.75}


def test_terms_of_equal_weight_come_in_the_order_of_their_utf_16_units():
    assert list(best({"ﬁ": 1.0, "b": 2.0, "𝐚": 1.0, "a": 1.0}, 4)) == ["b", "a", "𝐚", "ﬁ"]


@given(
    st.lists(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 9).map(float), min_size=1), min_size=1),
    st.integers(1, 6),
)
def test_32_bit_weights_are_the_exact_ones_but_for_rounding(documents, terms):
    scored = [(one, 1.0 + i) for i, one in enumerate(documents)]
    for method in (Rm3(terms=terms), Rocchio(terms=terms)):
        single, exact = (sorted(method.mix({"q": 1.0}, scored, numbers).values()) for numbers in (SINGLE, EXACT))
        assert single == pytest.approx(exact, rel=1e-6)


def test_documents_without_a_usable_term_leave_rm3_the_share_of_the_query(tmp_path):
    assert expand(over(tmp_path / "i", ["x y", *FILLER]), ["x"], Rm3()) == [{"x": 0.5}]


def test_feedback_finds_what_the_query_alone_does_not(ranker):
    alone = ranker.search(["apple"], 10)
    expanded = FeedbackRanker(ranker, Rm3(documents=2), "rm3").search(["apple"], 10)
    assert 2 not in alone.docs.tolist()
    assert 2 in expanded.docs.tolist()


def test_all_weight_on_the_original_gives_the_order_of_the_original(ranker):
    same = FeedbackRanker(ranker, Rm3(original=1.0), "rm3").search(["apple pear"], 10)
    assert same.docs.tolist() == ranker.search(["apple pear"], 10).docs.tolist()


def test_a_query_that_finds_nothing_keeps_its_own_terms(ranker):
    assert expand(ranker, ["unheard"], Rm3()) == [{"unheard": 1.0}]


def test_the_forward_file_is_the_postings_the_other_way_round(ranker):
    index = ranker.index
    for doc in (0, 1, 2):
        terms, counts = index.document_terms(doc)
        found = dict(zip(index.terms.take(pa.array(terms)).to_pylist(), counts.tolist(), strict=True))
        text = ["apple apple pear x123456789012345678901", "apple plum plum plum", "pear plum fig"][doc].split()
        assert found == {word: text.count(word) for word in text}


def test_settings_that_make_no_sense_are_refused():
    for name, wrong in (
        ("rm3", {"documents": 0}), ("rm3", {"original": 2.0}), ("rocchio", {"terms": 0}), ("rocchio", {"beta": -1})
    ):  # fmt: skip
        with pytest.raises(ConfigError):
            check("ranker", name, wrong)


def test_lengths_are_brought_to_one():
    mixed = Rocchio(beta=0.0).mix({"a": 3.0, "b": 4.0}, [({"c": 1.0}, 1.0)])
    assert math.hypot(mixed["a"], mixed["b"]) == pytest.approx(1.0)
