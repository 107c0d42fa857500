"""A flipped bit in an index is refused before an answer is given from it, in files of any size."""

import json
import random

import numpy as np
import pyarrow as pa
import pytest

from askew.core.errors import AskewError, StoreError
from askew.core.plugins import build
from askew.search import disk as blocks
from askew.search.bm25.analyze import Analyzer
from askew.search.bm25.build import build_index
from askew.search.bm25.index import Index
from askew.search.bm25.ranker import Bm25Ranker, FeedbackRanker
from askew.search.disk import (
    CheckedArray,
    StoredTexts,
    check_file,
    describe_file,
    keeping_texts,
    read_doc_ids,
    read_header,
)
from askew.search.feedback import Rm3
from askew.search.neural import SparseRanker
from askew.testing.contracts import toy_documents

WORDS = [f"word{i}" for i in range(60)]


@pytest.fixture
def lazily(monkeypatch):
    """Small blocks, and no file that is small enough to be compared when the index is opened."""
    monkeypatch.setattr(blocks, "BLOCK", 64)
    monkeypatch.setattr(blocks, "CHECK_WHOLE", 0)


def make(folder, size=120):
    chosen = random.Random(5)
    texts = [" ".join(chosen.choices(WORDS, range(60, 0, -1), k=chosen.randint(1, 12))) for _ in range(size)]
    parts = [
        pa.table({"doc_id": [f"d{i}" for i in range(a, b)], "text": pa.array(texts[a:b], pa.large_string())})
        for a, b in ((0, size // 3), (size // 3, size))
    ]
    folder.mkdir()
    build_index(keeping_texts(parts, folder), folder, Analyzer("plain"))
    Bm25Ranker(folder)
    return folder


def flip(path, byte, bit):
    data = bytearray(path.read_bytes())
    data[byte] ^= 1 << bit
    path.write_bytes(bytes(data))


def answers(folder, query):
    """All that a query gives: documents, scores, ids, those after feedback, the text of the best."""
    ranker = Bm25Ranker(folder, threads=1)
    hits, again = ranker.search([query], 5), FeedbackRanker(ranker, Rm3(3, 5), "").search([query], 5)
    texts = StoredTexts(folder)
    ids = ranker.doc_ids.take(pa.array(hits.docs)).to_pylist()
    return [hits.docs.tolist(), hits.scores.tolist(), again.docs.tolist(), again.scores.tolist(), ids,
            [texts[doc] for doc in hits.docs.tolist()]]  # fmt: skip


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_every_flipped_bit_is_refused_or_in_a_block_that_the_answer_does_not_read(tmp_path, lazily):
    folder = make(tmp_path / "i")
    right = {query: answers(folder, query) for query in ("word7 word40", "word50")}
    chosen = random.Random(1)
    refused = 0
    for path in files_of(folder):
        whole = path.read_bytes()
        for _ in range(min(len(whole), 25)):
            flip(path, chosen.randrange(len(whole)), chosen.randrange(8))
            for query, expected in right.items():
                try:
                    assert answers(folder, query) == expected
                except AskewError as error:
                    refused += 1
                    assert str(folder) in str(error)
            path.write_bytes(whole)
    assert refused > 100
    assert answers(folder, "word50") == right["word50"]


def test_a_block_is_refused_when_it_is_first_read_and_others_can_be_read(tmp_path, lazily):
    folder = make(tmp_path / "i")
    index = Index(folder)
    term = int(index.term_numbers(["word3"])[0])
    flip(folder / "docs.i32", 4 * int(index.offsets[term]), 3)
    ranker = Bm25Ranker(folder)
    assert len(ranker.search(["word50"], 5).docs)
    with pytest.raises(StoreError, match=rf"docs\.i32: .*damaged between byte.*askew verify {folder} --repair"):
        ranker.search(["word3"], 5)
    with pytest.raises(StoreError, match="damaged between"):
        ranker.search(["word50 word3"], 5)


def test_a_block_that_was_compared_is_not_read_again(tmp_path, lazily, monkeypatch):
    ranker = Bm25Ranker(make(tmp_path / "i"))
    compared = []
    monkeypatch.setattr(blocks, "_compare", lambda path, number, *_: compared.append((path.name, number)))
    ranker.search(["word3 word9"], 5)
    first = list(compared)
    ranker.search(["word3", "word9"], 5)
    assert compared == first
    assert len(set(first)) == len(first) > 0


def test_damaged_postings_never_become_weights(tmp_path, lazily):
    folder = make(tmp_path / "i")
    flip(folder / "tf.u8", 9, 0)
    with pytest.raises(StoreError, match=r"tf\.u8"):
        Bm25Ranker(folder, "qld")


@pytest.mark.parametrize("name", ["texts.u8", "text_offsets.i64"])
def test_texts_are_compared_before_they_are_read(tmp_path, lazily, name):
    folder = make(tmp_path / "i")
    texts = StoredTexts(folder)
    expected = [texts[i] for i in range(120)]
    whole = (folder / name).read_bytes()
    for byte in range(0, len(whole), 37):
        flip(folder / name, byte, byte % 8)
        kept, wrong = StoredTexts(folder), 0
        for doc in range(120):
            try:
                assert kept[doc] == expected[doc]
            except StoreError:
                wrong += 1
        assert 0 < wrong < 120
        (folder / name).write_bytes(whole)


def test_damaged_ids_are_refused_where_only_they_are_read(tmp_path, lazily):
    folder = make(tmp_path / "i")
    assert len(read_doc_ids(folder)) == 120
    flip(folder / "doc_ids.arrow", 700, 1)
    with pytest.raises(StoreError, match=r"doc_ids\.arrow"):
        read_doc_ids(folder)


def test_a_header_that_says_something_else_is_refused(tmp_path):
    folder = make(tmp_path / "i")
    path = folder / "header.json"
    path.write_text(path.read_text().replace('"filled": 120', '"filled": 124'))
    with pytest.raises(StoreError) as caught:
        read_header(folder)
    assert caught.value.code == "damaged-header"


@pytest.mark.parametrize(("kind", "name"), [("f32", "vectors.f32"), ("i64", "offsets.i64")])
def test_an_array_is_compared_however_it_is_read(tmp_path, lazily, kind, name):
    dtype = {"f32": np.float32, "i64": np.int64}[kind]
    values = np.arange(400).astype(dtype)
    values.tofile(tmp_path / name)
    known = describe_file(tmp_path / name)
    flip(tmp_path / name, 390 * values.itemsize, 1)
    read = CheckedArray(tmp_path / name, known)
    assert read[3:9].tolist() == [3, 4, 5, 6, 7, 8]
    assert read[np.array([5, 1])].tolist() == [5, 1]
    assert read[7] == 7
    for wrong in (
        lambda: read[-10], lambda: read[385:], lambda: read[::-1], lambda: read[np.arange(400) > 380],
        lambda: np.asarray(read), lambda: read[np.array([390])], read.whole, lambda: read[390],
        lambda: check_file(tmp_path / name, known),
    ):  # fmt: skip
        with pytest.raises(StoreError, match="damaged between"):
            wrong()


def test_rows_of_vectors_are_compared_by_row(tmp_path, lazily):
    values = np.arange(400, dtype=np.float16)
    values.tofile(tmp_path / "tokens.f16")
    known = describe_file(tmp_path / "tokens.f16")
    flip(tmp_path / "tokens.f16", 2 * 395, 0)
    read = CheckedArray(tmp_path / "tokens.f16", known, width=8)
    assert read[1:3].tolist() == values.reshape(-1, 8)[1:3].tolist()
    with pytest.raises(StoreError, match="damaged between"):
        read[49:50]


@pytest.mark.parametrize("number", [1, 2, "3", None])
def test_an_index_of_an_unknown_format_is_refused_with_the_command_that_rebuilds_it(tmp_path, number):
    folder = make(tmp_path / "i")
    path = folder / "header.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": number}))
    for read in (Index, read_header, SparseRanker):
        with pytest.raises(StoreError, match=rf"reads format 3; .*askew verify {folder} --repair"):
            read(folder)


@pytest.mark.parametrize(
    ("kind", "model", "name"),
    [
        ("dense", None, "vectors.f32"),
        ("sparse", "tiny_splade", "docs.i32"), ("sparse", "tiny_splade", "weights-model/impacts.f32"),
    ],
)  # fmt: skip
def test_no_ranker_answers_from_a_damaged_block(kind, model, name, tmp_path, lazily, request):
    pytest.importorskip("sentence_transformers", reason="the extra 'neural' is not installed")
    settings = {} if model is None else {"model": request.getfixturevalue(model)}
    build("index", kind, {"documents": [toy_documents()], "folder": tmp_path / "i", **settings})
    expected = build("ranker", kind, {"index": tmp_path / "i"}).search(["mother and sister", "the station opens"], 3)
    path = tmp_path / "i" / name
    for byte in range(0, path.stat().st_size, max(1, path.stat().st_size // 7)):
        flip(path, byte, 6)
        try:
            found = build("ranker", kind, {"index": tmp_path / "i"}).search(
                ["mother and sister", "the station opens"], 3
            )
            assert kind == "sparse"  # the others read all of every file
            assert found.docs.tolist() == expected.docs.tolist()
        except StoreError as error:
            assert path.name in str(error)
        flip(path, byte, 6)
