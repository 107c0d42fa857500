"""Files that are there whole or not at all."""

import pytest

from askew.core.files import write_whole, written_whole


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    file = tmp_path / "facts.json"
    write_whole(file, "old")
    with pytest.raises(ValueError, match="half way"), written_whole(file) as temporary:
        temporary.write_text("new")
        raise ValueError("half way")
    assert [path.name for path in tmp_path.iterdir()] == ["facts.json"]
    assert file.read_text() == "old"


def test_texts_are_written_as_utf_8_and_missing_folders_are_made(tmp_path):
    write_whole(tmp_path / "a" / "b" / "text", "é\n")
    write_whole(tmp_path / "a" / "b" / "bytes", b"\x00")
    assert (tmp_path / "a" / "b" / "text").read_bytes() == "é\n".encode()
    assert (tmp_path / "a" / "b" / "bytes").read_bytes() == b"\x00"
