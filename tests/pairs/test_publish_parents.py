"""Where something is to be written: which folder is missing, by its own name."""

import polars as pl
import pytest

from askew.core.errors import ConfigError
from askew.core.folders import new_folder
from askew.search.retrieve import write_run

LINES = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "rank": [1], "score": [1.0]})


@pytest.mark.parametrize("name", ["x.run", "x.parquet"])
def test_a_run_for_a_folder_that_is_not_there_names_the_folder(tmp_path, name):
    out = tmp_path / "nowhere" / name
    with pytest.raises(ConfigError) as found:
        write_run([LINES], out, "tag")
    assert (found.value.code, found.value.values) == ("no-parent", {"folder": str(out.parent)})
    assert not list(tmp_path.iterdir())


def test_a_run_for_the_folder_we_are_in_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert write_run([LINES], type(tmp_path)("x.run"), "tag") == 1
    assert (tmp_path / "x.run").read_text().startswith("q Q0 d 1 ")


@pytest.mark.parametrize("below", ["x", "deep/x"])
def test_a_folder_below_a_file_names_the_file(tmp_path, below):
    (tmp_path / "afile").touch()
    says = f"expected a folder {tmp_path / 'afile'}, found a file"
    with pytest.raises(ConfigError, match=says), new_folder(tmp_path / "afile" / below):
        pass
    with pytest.raises(ConfigError, match="found a file"):
        write_run([LINES], tmp_path / "afile" / below, "tag")


def test_folders_above_a_new_one_are_made(tmp_path):
    with new_folder(tmp_path / "one" / "two") as folder:
        (folder / "x").touch()
    assert (tmp_path / "one" / "two" / "x").exists()
