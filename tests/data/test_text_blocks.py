"""Text in blocks of whole lines: the same lines and numbers as the whole file has, whatever the size of a block."""

import gzip

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from askew.core.errors import DataError
from askew.data import files
from askew.data.files import numbered, text_blocks
from askew.data.judgements import read_judgements
from askew.data.runs import read_run

SOME = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def _lines(text):
    """The lines of a text that are not blank, with their numbers."""
    return [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line]


@SOME
@given(st.lists(st.sampled_from(["a", "é", "\n", "\r", "\r\n", "b c"])).map("".join), st.integers(3, 9))
def test_blocks_of_any_size_have_the_lines_of_the_whole_file(tmp_path, text, size):
    (tmp_path / "file").write_bytes(text.encode())
    expected = _lines(text.replace("\r\n", "\n").replace("\r", "\n"))
    assert [(n, line) for n, line in numbered(text_blocks(tmp_path / "file", "run", size)) if line] == expected


@SOME
@given(
    st.lists(
        st.sampled_from(["q1 Q0 d1 1 2.5 t", "q1 Q0 d2 2 2 t", "", "q2\tQ0\td1 1 1 t", "q3 Q0  d 1 0 t"]), unique=True
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_a_run_in_small_blocks_is_the_run_as_a_whole(tmp_path, lines, end, published):
    path = tmp_path / "x.run"
    path.write_bytes(end.join([*lines, "q9 Q0 d9 1 1 t"]).encode())
    whole = read_run(path, published=published)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.text_blocks, "__defaults__", (20,))
        small = read_run(path, published=published)
    assert (small.lines.rows(), small.notes) == (whole.lines.rows(), whole.notes)


def test_repeated_judgements_are_counted_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("askew.data.judgements._AT_ONCE", 3)
    (tmp_path / "qrels").write_text("q 0 d 1\n" * 10 + "q 0 e 0\n")
    found = read_judgements(tmp_path / "qrels")
    assert found.lines.rows() == [("q", "d", 1), ("q", "e", 0)]
    assert [(note.code, note.values) for note in found.notes] == [("repeated-judgements", {"count": 9})]


def test_a_line_over_the_limit_is_refused_and_one_at_the_limit_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    for length, fine in ((1 << 20, True), ((1 << 20) + 1, False)):
        (tmp_path / "file").write_bytes(b"q\n" + b"x" * length)
        if fine:
            assert len(list(text_blocks(tmp_path / "file", "run", 1 << 10))) == 2
        else:
            with pytest.raises(DataError, match=r"file:2:.*of at most 1 MiB"):
                list(text_blocks(tmp_path / "file", "run", 1 << 10))


def test_a_file_that_packs_well_is_read_and_one_that_packs_beyond_belief_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_LITTLE", 1 << 20)
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(b"".join(b"q%d\n" % n for n in range(1 << 18))))
    assert sum(text.count("\n") for _, text in text_blocks(path, "run")) == 1 << 18
    path.write_bytes(gzip.compress(b"q\n" * (1 << 22)))
    with pytest.raises(DataError, match="more than 200"):
        list(text_blocks(path, "run"))
