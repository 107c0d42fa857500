"""A disk that is full: one line that names the place, exit code 3, and nothing half-written is taken for whole."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ASKEW = str(Path(sys.executable).with_name("askew"))
SAID = "no space left on the disk; free some and run the same command again"


@pytest.fixture
def full(tmp_path):
    """A folder on a disk of its own, all but full."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("cannot mount a small disk here")
    (folder / "fill").write_bytes(bytes(1_000_000))
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("engine", [[], ["--workers", "2"]])
def test_a_build_on_a_full_disk_names_the_place_and_goes_on_when_there_is_room(full, tmp_path, engine):
    command = [ASKEW, "run", "demo", "--set", "reformulate.0.count=3", *engine, "--store"]
    done = subprocess.run([*command, str(full / "store")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"askew: {full / 'store'}") and SAID in done.stderr
    assert done.stderr.count("\n") == 1
    shutil.copytree(full / "store", tmp_path / "copy")
    subprocess.run([*command, str(tmp_path / "copy")], capture_output=True, check=True)
    subprocess.run([*command, str(tmp_path / "whole")], capture_output=True, check=True)
    assert _finished(tmp_path / "copy") == _finished(tmp_path / "whole")


def _finished(store):
    """The files of finished steps, but what says when and where they were made."""
    return {
        str(path.relative_to(store)): path.read_bytes()
        for manifest in store.glob("*/manifest.json")
        for path in manifest.parent.iterdir()
        if path.suffix in (".parquet", ".json") and path.name != "provenance.json"
    }


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
        ValueError("parquet: underlying IO error: No space left on device (os error 28)"),
    ],
)
def test_however_a_full_disk_is_reported_the_place_is_named(askew, monkeypatch, error):
    def fail(_):
        raise error

    monkeypatch.delenv("ASKEW_DEBUG", raising=False)
    monkeypatch.setattr("askew.ui.cli.main._invoke", fail)
    result = askew("index docs.tsv --out place")
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith(f"askew: place: {SAID}") and result.err.count("\n") == 1


def test_the_file_is_named_where_it_is_known(askew, monkeypatch):
    def fail(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "some/file")

    monkeypatch.delenv("ASKEW_DEBUG", raising=False)
    monkeypatch.setattr("askew.ui.cli.main._invoke", fail)
    askew("index docs.tsv --out place").refused(3, f"some/file: {SAID}")
