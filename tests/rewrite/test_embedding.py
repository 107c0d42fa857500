"""Word vectors: files in four forms, nearest words by hand and by brute force, and queries expanded with them."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError
from askew.core.protocols import QueryBatch
from askew.rewrite.embedding import STOP_WORDS, Embedding, WordVectors, read_vectors, rough_stem
from askew.testing.contracts import check_reformulator

GLOVE = Path(__file__).resolve().parents[3] / "shared" / "data" / "glove100_60k"
# Angles in degrees, lengths: the nearest by cosine are not the nearest by distance.
PLANE = {
    "nurse": (0, 1.0), "nurses": (1, 1.0), "nursing": (2, 1.0), "doctor": (10, 9.0), "medic": (20, 1.0),
    "surgeon": (30, 2.0), "the": (4, 1.0), ",": (3, 1.0), "1980s": (5, 1.0), "ward_sister": (40, 1.0),
    "station": (180, 1.0), "depot": (190, 1.0), "terminal": (200, 1.0), "halt": (210, 1.0), "Paris": (300, 1.0),
    "london": (310, 1.0),
}  # fmt: skip


def points(plane):
    return np.array(
        [(r * math.cos(math.radians(a)), r * math.sin(math.radians(a))) for a, r in plane.values()], np.float32
    )


def write_npy(folder, words, vectors, name="vectors.npy"):
    np.save(folder / name, vectors)
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    return folder / name


def write_text(path, words, vectors, header=False, end="\n"):
    lines = [f"{word} {' '.join(repr(float(x)) for x in row)}" for word, row in zip(words, vectors, strict=True)]
    first = [f"{len(words)} {vectors.shape[1]}"] if header else []
    path.write_bytes("".join(line + end for line in [*first, *lines]).encode())
    return path


def write_binary(path, words, vectors, between=b""):
    records = [
        between + word.encode() + b" " + row.astype("<f4").tobytes() for word, row in zip(words, vectors, strict=True)
    ]
    path.write_bytes(f"{len(words)} {vectors.shape[1]}\n".encode() + b"".join(records))
    return path


def asked(*texts):
    return QueryBatch(tuple(f"q{i}" for i in range(len(texts))), texts)


@pytest.fixture
def plane(tmp_path):
    return str(write_npy(tmp_path, list(PLANE), points(PLANE)))


def expand(path, text, **settings):
    return Embedding(vectors=path, **settings).reformulate(asked(text)).texts


# Files


@pytest.mark.parametrize("form", ["glove", "word2vec", "crlf", "trailing blank", "binary", "binary with line feeds"])
def test_every_form_of_a_file_holds_the_same_words_and_vectors(tmp_path, form):
    words, vectors = ["fig", "naïve", "1984", ",", "."], np.arange(1, 51, dtype=np.float32).reshape(5, 10) / 7
    path = tmp_path / "file"
    if form.startswith("binary"):
        write_binary(path, words, vectors, b"\n" if "line" in form else b"")
    else:
        ends = {"crlf": "\r\n", "trailing blank": " \n"}
        write_text(path, words, vectors, form == "word2vec", ends.get(form, "\n"))
    found, matrix = read_vectors(path)
    assert found == words
    assert matrix.dtype == np.float32
    assert np.array_equal(matrix, vectors)


@given(st.integers(2, 8), st.integers(1, 6), st.randoms(use_true_random=False), st.booleans())
def test_a_binary_file_is_never_taken_for_a_text_nor_a_text_for_a_binary(tmp_path_factory, width, count, random, text):
    folder = tmp_path_factory.mktemp("v")
    words = [f"w{i}" for i in range(count)]
    vectors = np.array([[random.uniform(-2, 2) for _ in range(width)] for _ in words], np.float32)
    path = folder / "v"
    _ = write_text(path, words, vectors, True) if text else write_binary(path, words, vectors)
    found, matrix = read_vectors(path)
    assert found == words
    assert np.array_equal(matrix, vectors)


def test_a_number_whose_first_byte_is_a_line_feed_is_still_binary(tmp_path):
    vectors = np.frombuffer(b"\n\x00\x00\x3f" * 4, "<f4").reshape(1, 4)
    assert np.array_equal(read_vectors(write_binary(tmp_path / "v", ["fig"], vectors))[1], vectors)


def test_a_matrix_of_half_floats_comes_with_its_vocabulary_beside_it_or_elsewhere(tmp_path):
    vectors = np.array([[1, 0.5], [0.25, 2]], np.float16)
    path = write_npy(tmp_path, ["fig", "kiwi"], vectors)
    (tmp_path / "others.txt").write_bytes(b"kiwi\r\nfig\r\n")
    assert read_vectors(path)[0] == ["fig", "kiwi"]
    words, matrix = read_vectors(path, tmp_path / "others.txt")
    assert words == ["kiwi", "fig"]
    assert matrix.dtype == np.float32
    assert np.array_equal(matrix, vectors)


def test_a_word_of_a_text_file_may_hold_blanks(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("fig 1 2\n. . . 3 4\nat me@here 5 6\n", encoding="utf-8")
    words, matrix = read_vectors(path)
    assert words == ["fig", ". . .", "at me@here"]
    assert matrix.tolist() == [[1, 2], [3, 4], [5, 6]]


TEXT_FAULTS = {
    "too few numbers": (b"fig 1 2\nkiwi 3\n", r"v\.txt:2: expected a word and 2 numbers, found 2 fields"),
    "too many numbers": (b"fig 1 2\nkiwi 3 4 5\n", r"v\.txt:2: expected a word and 2 numbers, found 4 fields"),
    "NaN": (b"fig 1 2\nkiwi 3 nan\n", r"v\.txt:2: expected finite numbers after the word 'kiwi', found 'nan'"),
    "too large": (b"fig 1 2\nkiwi 3 1e60\n", r"v\.txt:2: expected finite numbers .* found '1e60'"),
    "no number": (b"fig 1 2\nkiwi 3 x\n", r"v\.txt:2: expected finite numbers .* found 'x'"),
    "grouped digits": (b"fig 1 2\nkiwi 3 1_0\n", r"v\.txt:2: expected finite numbers .* found '1_0'"),
    "no word": (b"fig 1 2\n 3 4\n", r"v\.txt:2: expected a word and 2 numbers"),
    "a word twice": (b"fig 1 2\nkiwi 1 2\nfig 3 4\n", r"v\.txt:3: the word 'fig' occurs twice"),
    "a word twice after a header": (b"2 2\nfig 1 2\nfig 3 4\n", r"v\.txt:3: the word 'fig'"),
    "not UTF-8": (b"fig 1 2\nki\xffwi 3 4\n", r"v\.txt:2: expected UTF-8 text, found the byte 0xff"),
    "fewer words than the header says": (b"3 2\nfig 1 2\n", r"v\.txt: the first line announces 3 words, found 1"),
    "a header of no width": (b"3 0\nfig\n", r"v\.txt:1: expected a vector length from 1"),
    "nothing": (b"", r"v\.txt: expected word vectors, found an empty file"),
    "a header alone": (b"0 2\n", r"v\.txt: expected word vectors, found no line with a vector"),
    "gzip": (b"\x1f\x8b\x08 packed", r"v\.txt: .* gzip file; unpack it first"),
}


@pytest.mark.parametrize("fault", TEXT_FAULTS)
def test_a_damaged_text_file_is_one_line_that_says_where(tmp_path, fault):
    data, message = TEXT_FAULTS[fault]
    path = tmp_path / "v.txt"
    path.write_bytes(data)
    with pytest.raises(DataError, match=message) as error:
        read_vectors(path)
    assert "\n" not in str(error.value)


def test_a_fault_far_down_a_large_file_has_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr("askew.rewrite.embedding._VECTORFILES_BLOCK", 64)
    lines = [f"word{i} {i} 1" for i in range(100)]
    path = tmp_path / "v.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert read_vectors(path)[1][:, 0].tolist() == list(range(100))
    path.write_text("\n".join([*lines[:70], "odd 1", *lines[70:]]), encoding="utf-8")
    with pytest.raises(DataError, match=r"v\.txt:71: "):
        read_vectors(path)


def test_a_damaged_binary_file_is_one_line_that_says_where(tmp_path):
    vectors = np.arange(12, dtype=np.float32).reshape(3, 4)
    path = write_binary(tmp_path / "v.bin", ["fig", "kiwi", "plum"], vectors)
    whole = path.read_bytes()
    for data, message in (
        (whole[:-1], "cut short in word 3 of 3, at byte"),
        (whole[:40], "the first line announces 3 words of width 4, but the file is shorter"),
        (
            b"999999999 300\nfig " + whole,
            "the first line announces 999999999 words of width 300, but the file is shorter",
        ),
        (whole + b"pear", "announces 3 words, but more follow at byte"),
        (whole.replace(b"kiwi", b"\xff\xffwi"), "expected UTF-8 text, found .* as word 2"),
        (whole.replace(b"plum", b"kiwi"), "word 3: the word 'kiwi' occurs twice"),
        (whole.replace(np.float32(5).tobytes(), np.float32(np.nan).tobytes()), r"word 2 \('kiwi'\): expected finite"),
    ):
        path.write_bytes(data)
        with pytest.raises(DataError, match=message):
            read_vectors(path)


def test_a_damaged_matrix_or_vocabulary_is_one_line_that_says_where(tmp_path):
    path = write_npy(tmp_path, ["fig", "kiwi"], np.ones((2, 3), np.float32))
    whole = path.read_bytes()
    vocabulary = tmp_path / "vocab.txt"
    for text, message in (
        ("fig\n", "expected 1 rows, one for each word of the vocabulary, found 2"),
        ("fig\n\n", r"vocab\.txt:2: expected one word in each line, found a blank line"),
        ("fig\nfig\n", r"vocab\.txt:2: the word 'fig' occurs twice"),
    ):
        vocabulary.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=message):
            read_vectors(path)
    vocabulary.write_text("fig\nkiwi\n", encoding="utf-8")
    path.write_bytes(whole[:-4])
    with pytest.raises(DataError) as damaged:
        read_vectors(path)
    assert damaged.value.code == "damaged-matrix"
    np.save(path, np.array([[1, 2], [np.inf, 1]], np.float32))
    with pytest.raises(DataError, match="row 2: expected finite numbers"):
        read_vectors(path)
    np.save(path, np.ones(2, np.float32))
    with pytest.raises(DataError) as damaged:
        read_vectors(path)
    assert damaged.value.code == "no-floats"
    np.save(path, np.array([{"code": 1}], object), allow_pickle=True)
    with pytest.raises(DataError) as damaged:
        read_vectors(path)
    assert damaged.value.code == "damaged-matrix"
    vocabulary.unlink()
    with pytest.raises(DataError, match=r"vocabulary .*vocab\.txt: no such file"):
        read_vectors(path)


def test_a_vocabulary_goes_with_a_matrix_only(tmp_path):
    path = write_text(tmp_path / "v.txt", ["fig"], np.ones((1, 2)))
    with pytest.raises(ConfigError) as refused:
        read_vectors(path, tmp_path / "vocab.txt")
    assert refused.value.code == "no-matrix"


def test_a_file_that_has_changed_is_read_again(tmp_path):
    path = str(write_text(tmp_path / "v.txt", ["fig", "plum"], np.ones((2, 2))))
    assert expand(path, "fig") == ["fig plum"]
    write_text(Path(path), ["fig", "kiwi"], np.ones((2, 3)))
    assert expand(path, "fig") == ["fig kiwi"]


# Nearest words


def test_the_nearest_words_by_angle_and_by_distance_are_those_computed_by_hand():
    vectors = WordVectors(list(PLANE), points(PLANE))
    (near,) = vectors.nearest(["station"], 2)
    assert [word for word, _ in near] == ["depot", "terminal"]
    assert [value for _, value in near] == pytest.approx([math.cos(math.radians(10)), math.cos(math.radians(20))])
    two = WordVectors(["a", "far", "near"], np.array([[1, 0], [9, 0], [1, 1]], np.float32))
    assert two.nearest(["a"], 2) == [[("far", pytest.approx(1.0)), ("near", pytest.approx(math.sqrt(0.5)))]]
    assert two.nearest(["a"], 2, "euclidean") == [[("near", pytest.approx(1 / 2)), ("far", pytest.approx(1 / 9))]]


@given(
    st.integers(0, 1000), st.integers(1, 40), st.integers(1, 50), st.sampled_from(["cosine", "euclidean"])
)  # fmt: skip
def test_nearest_words_are_those_of_brute_force_whatever_the_company(seed, size, count, similarity):
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(size, 3)).astype(np.float32)
    vectors = WordVectors([f"w{i}" for i in range(size)], matrix)
    together = vectors.nearest(vectors.words, count, similarity)
    for i, near in enumerate(together):
        assert vectors.nearest([f"w{i}"], count, similarity) == [near]
        wide = matrix.astype(np.float64)
        lengths = np.linalg.norm(wide, axis=1)
        value = (
            wide @ wide[i] / lengths / lengths[i]
            if similarity == "cosine"
            else 1 / (1 + np.linalg.norm(wide - wide[i], axis=1))
        )
        others = sorted((j for j in range(size) if j != i), key=lambda j: -value[j])[:count]
        assert [v for _, v in near] == pytest.approx([value[j] for j in others], abs=1e-5)
        assert [word for word, _ in vectors.nearest([f"w{i}"], count + 1, similarity)[0]][:count] == [
            w for w, _ in near
        ]


def test_equal_vectors_come_in_the_order_of_the_file_and_zeros_are_near_nothing():
    vectors = WordVectors(["a", "c", "b", "none"], np.array([[1, 0], [1, 0], [1, 0], [0, 0]], np.float32))
    assert vectors.nearest(["a"], 3) == [[("c", 1.0), ("b", 1.0), ("none", 0.0)]]


def test_a_word_without_a_vector_has_no_neighbors():
    assert WordVectors(["a", "b"], np.eye(2, dtype=np.float32)).nearest(["zzz"], 3) == [[]]


def test_neighbors_are_sought_in_parts_when_the_vocabulary_is_large(monkeypatch):
    vectors = WordVectors(list(PLANE), points(PLANE))
    whole = vectors.nearest(list(PLANE), 3)
    monkeypatch.setattr("askew.rewrite.embedding._AT_A_TIME", 1)
    assert vectors.nearest(list(PLANE), 3) == whole


# Stems


@pytest.mark.parametrize(
    "forms",
    ["nurse nurses nursed nursing", "make makes making", "city cities", "run runs running", "educate education",
     "care caring cared", "build buildings building", "gas", "stop stopped stopping stops", "fill filled filling"],
)  # fmt: skip
def test_forms_of_a_word_have_one_stem(forms):
    assert len({rough_stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize("pair", ["car care", "station state", "string strings'", "mother moth", "king kin", "bus bu"])
def test_other_words_have_another_stem(pair):
    one, other = pair.split()
    assert rough_stem(one) != rough_stem(other)


@given(st.text(alphabet="abeginoprsty", min_size=1, max_size=12))
def test_a_stem_is_never_empty_nor_longer_than_its_word_by_more_than_an_e(word):
    assert 1 <= len(rough_stem(word)) <= len(word) + 1


# The reformulator


def test_the_query_comes_first_and_then_the_neighbors_of_each_word(plane):
    assert expand(plane, "The  nurse\tat the Station") == [
        "The nurse at the Station doctor medic surgeon depot terminal halt"
    ]


def test_forms_of_the_word_stop_words_numbers_and_signs_are_no_neighbors(plane):
    (text,) = expand(plane, "nurse", topn=100, minimum=-1.0)
    assert text.split()[:6] == ["nurse", "doctor", "medic", "surgeon", "ward", "sister"]
    assert not {"nurses", "nursing", "the", ",", "1980s"} & set(text.split())


def test_more_neighbors_are_the_fewer_and_others_after_them(plane):
    texts = [expand(plane, "nurse", topn=n)[0] for n in range(1, 5)]
    assert all(more.startswith(fewer + " ") for fewer, more in pairwise(texts))


def test_neighbors_below_the_minimum_are_left_out(plane):
    assert expand(plane, "nurse", minimum=math.cos(math.radians(20.5))) == ["nurse doctor medic"]
    assert expand(plane, "nurse", minimum=0.9999) == []


def test_distance_chooses_others_than_the_angle(plane):
    assert expand(plane, "nurse", similarity="euclidean", topn=2) == ["nurse medic ward sister"]


def test_replacing_keeps_words_without_neighbors_as_they_are(plane):
    assert expand(plane, "A nurse, 1984 Unheard-of!", replace=True, topn=1) == ["A doctor 1984 Unheard-of!"]


def test_what_the_query_or_another_word_has_is_not_repeated(plane):
    assert expand(plane, "nurse doctor", topn=2) == ["nurse doctor medic"]
    assert expand(plane, "doctor", topn=2) == ["doctor nursing medic"]


def test_a_word_in_capitals_in_the_file_is_found(plane):
    assert expand(plane, "paris", topn=1) == ["paris london"]
    assert expand(plane, "london", topn=1) == ["london paris"]


def test_a_query_of_unknown_words_is_counted(plane):
    found = Embedding(vectors=plane).reformulate(asked("zzz", "", "of the 1984"))
    assert (len(found), found.rejected) == (0, {"nothing found": 3})


def test_it_looks_further_when_all_that_is_near_is_left_out(tmp_path):
    words = ["nurse", *(f"x{i}," for i in range(300)), "doctor"]
    angles = {word: (i / 10, 1.0) for i, word in enumerate(words)}
    path = str(write_npy(tmp_path, words, points(angles)))
    assert expand(path, "nurse") == ["nurse doctor"]


def test_embedding_keeps_the_contract_of_reformulators(tmp_path):
    words = ["good", "nurse", "doctor", "history", "railway", "station", "brother", "sister", "past", "line"]
    vectors = np.random.default_rng(7).normal(size=(len(words), 6)).astype(np.float32)
    path = str(write_npy(tmp_path, words, vectors))
    for settings in ({}, {"replace": True}, {"similarity": "euclidean", "topn": 1}):
        assert len(check_reformulator(Embedding(vectors=path, **settings))) >= 3


def test_settings_name_the_content_of_the_files(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one = write_npy(tmp_path / "a", ["fig", "kiwi"], np.eye(2, dtype=np.float32))
    same = write_npy(tmp_path / "b", ["fig", "kiwi"], np.eye(2, dtype=np.float32))
    assert Embedding(vectors=str(one)).settings() == Embedding(vectors=str(same)).settings()
    (tmp_path / "b" / "vocab.txt").write_text("fig\nplum\n", encoding="utf-8")
    assert Embedding(vectors=str(one)).settings() != Embedding(vectors=str(same)).settings()


def test_a_file_that_is_not_there_is_refused(plane):
    with pytest.raises(DataError, match=r"vectors .*: no such file"):
        Embedding(vectors="nowhere.txt")
    with pytest.raises(DataError, match=r"vocabulary .*: no such file"):
        Embedding(vectors=plane, vocabulary="nowhere.txt")


def test_stop_words_are_words_in_lower_case():
    assert all(word.isalpha() and word == word.lower() for word in STOP_WORDS)


def test_real_vectors_give_sensible_neighbors():
    if not GLOVE.is_dir():
        pytest.skip("the real data is not there: expected ../shared/data/glove100_60k beside the checkout")
    found = check_reformulator(Embedding(vectors=str(GLOVE / "vectors.f16.npy")))
    assert found.texts[0].endswith("doctor physician dentist")
    assert "railroad" in found.texts[1]
