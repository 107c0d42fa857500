"""A report replaces an earlier one, and nothing else."""

import pytest

from askew.core.errors import ConfigError
from askew.report.page import LIST, check_out, write_report

FILES = {"report.html": b"<p>", "tables/a.csv": b"x\n1\n", "figures/a.svg": b"<svg/>"}


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_are_written_and_listed(tmp_path):
    out = tmp_path / "new" / "folder"
    assert write_report(out, FILES) == [out / name for name in FILES]
    found = contents(out)
    assert len(found.pop(LIST).splitlines()) == 3
    assert found == FILES


def test_an_earlier_report_is_replaced_and_what_is_no_longer_in_it_goes(tmp_path):
    write_report(tmp_path, FILES)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "tables" / "mine.csv").write_text("mine")
    write_report(tmp_path, {"report.html": b"<p>2"})
    found = contents(tmp_path)
    found.pop(LIST)
    assert found == {"report.html": b"<p>2", "notes.txt": b"mine", "tables/mine.csv": b"mine"}


@pytest.mark.parametrize("name", ["report.html", "tables/a.csv"])
def test_a_file_that_was_there_before_is_not_written_over(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(ConfigError) as error:
        write_report(tmp_path, FILES)
    assert error.value.code == "in-the-way"
    assert contents(tmp_path) == {name: b"mine"}


def test_a_file_that_was_changed_since_is_not_written_over(tmp_path):
    write_report(tmp_path, FILES)
    (tmp_path / "tables" / "a.csv").write_text("my own numbers")
    with pytest.raises(ConfigError) as error:
        write_report(tmp_path, {**FILES, "tables/a.csv": b"new"})
    assert error.value.code == "in-the-way"
    assert (tmp_path / "tables" / "a.csv").read_text() == "my own numbers"


def test_a_changed_file_that_is_no_longer_in_the_report_stays(tmp_path):
    write_report(tmp_path, FILES)
    (tmp_path / "figures" / "a.svg").write_text("mine")
    write_report(tmp_path, {"report.html": b"<p>2"})
    assert (tmp_path / "figures" / "a.svg").read_text() == "mine"


def test_the_same_report_again_changes_nothing_even_without_its_list(tmp_path):
    write_report(tmp_path, FILES)
    (tmp_path / LIST).unlink()
    write_report(tmp_path, FILES)
    assert {name: contents(tmp_path)[name] for name in FILES} == FILES


def test_links_are_not_followed(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    out = tmp_path / "out"
    out.mkdir()
    (out / "tables").symlink_to(other)
    with pytest.raises(ConfigError, match="expected a folder"):
        write_report(out, FILES)
    (tmp_path / "link").symlink_to(other)
    with pytest.raises(ConfigError, match="expected a folder"):
        check_out(tmp_path / "link")
    assert list(other.iterdir()) == []


def test_a_list_cannot_point_at_other_files(tmp_path):
    victim = tmp_path / "victim.txt"
    victim.write_text("keep me")
    out = tmp_path / "out"
    write_report(out, {"report.html": b"<p>"})
    digest = "0" * 64
    (out / LIST).write_text(f"{digest}  ../victim.txt\n")
    with pytest.raises(ConfigError, match=r"\.\./victim\.txt"):
        write_report(out, FILES)
    assert victim.read_text() == "keep me"


def test_where_a_report_cannot_go_is_told_before_any_work(tmp_path):
    check_out(tmp_path / "new")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="expected a folder"):
        check_out(tmp_path / "file")
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(ConfigError) as error:
        check_out(tmp_path)
    assert error.value.code == "in-the-way"


def test_a_name_outside_the_report_is_a_mistake_of_ours(tmp_path):
    with pytest.raises(ValueError, match=r"'\.\./x\.html'"):
        write_report(tmp_path, {"../x.html": b""})
