"""Where compiled loops are kept, and that nothing fails where they cannot be kept."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import askew
from askew.core import jit_cache
from askew.core.compiled import sort_ascending

NOBODY = 65534
RUN = "import sys; from askew.ui.cli.main import main; sys.argv[0] = 'askew'; main()"
NOT_KEPT = (
    "askew: compiling functions for the first use, which takes up to 60 s; "
    "the compiled code is not cached: "
    "set ASKEW_CACHE to a writable folder"
)
ADD = "from askew.core.compiled import compiled\n\n\n@compiled\ndef add(a, b):\n    return a + b\n"


@pytest.fixture
def nobody():
    """Runs askew as a user who owns nothing, with a package that cannot be written to and no home."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv to run as another user")
    folder = Path(tempfile.mkdtemp(prefix="askew-nobody-"))
    shutil.copytree(Path(askew.__file__).parent, folder / "lib" / "askew", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "lib" / "docs.tsv").write_text("d1\tshe is a doctor\nd2\the is a nurse\n", encoding="utf-8")
    subprocess.run(["chmod", "-R", "a+rX,a-w", str(folder)], check=True)
    (folder / "work").mkdir()
    (folder / "work").chmod(0o777)
    folder.chmod(0o755)

    def run(*words, user=NOBODY, **variables):
        switch = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        environment = {"PATH": os.defpath, "PYTHONPATH": str(folder / "lib"), **variables}
        seen = subprocess.run([*switch, sys.executable, "-c", ""], env=environment, capture_output=True, check=False)
        if seen.returncode:
            pytest.skip("another user cannot run this Python")
        return subprocess.run(
            [*switch, sys.executable, "-c", RUN, *words],
            env=environment, cwd=folder / "work", capture_output=True, text=True, check=False,
        )  # fmt: skip

    yield run
    shutil.rmtree(folder)


def test_nothing_fails_without_a_home_and_without_a_folder_that_can_be_written(nobody):
    done = nobody("index", "../lib/docs.tsv", "--out", "index")
    assert done.returncode == 0, done.stderr
    assert "indexed 2 documents" in done.stdout
    said = [line for line in done.stderr.splitlines() if "compiling" in line]
    # A machine that compiles in no time has nothing to say.
    assert said in ([], [NOT_KEPT])


def test_a_user_whom_the_system_does_not_know_has_no_home_and_no_cache(nobody):
    done = nobody("list", "reformulators", user=54321)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"ASKEW_CACHE": "a", "NUMBA_CACHE_DIR": "n", "XDG_CACHE_HOME": "x"}, "a"),
        ({"NUMBA_CACHE_DIR": "n", "XDG_CACHE_HOME": "x"}, "n/askew"),
        ({"XDG_CACHE_HOME": "x"}, "x/askew"),
        ({}, ".cache/askew"),
    ],
)
def test_the_folder_is_named_by_askew_cache_then_numbas_variable_then_the_users_cache(
    variables, expected, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("ASKEW_CACHE", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    assert jit_cache.root() == tmp_path / expected / "compiled" / askew.__version__


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASKEW_CACHE", str(tmp_path / "file" / "below"))
    assert jit_cache.root() is None


def test_installations_with_the_same_sources_share_what_is_compiled_and_others_do_not(tmp_path):
    for name in ("one", "two", "other"):
        (tmp_path / name / "loops").mkdir(parents=True)
        (tmp_path / name / "loops" / "a.py").write_text("a = 1\n" if name != "other" else "a = 2\n")
    one, two, other = (jit_cache._folder(tmp_path, tmp_path / name / "loops") for name in ("one", "two", "other"))
    assert one == two != other


def _added(folder, cache):
    """What add(1, 2) gives in a new process, how often it was compiled there, and how often it was found."""
    counts = "sum(add.stats.cache_misses.values()), sum(add.stats.cache_hits.values())"
    code = f"from loops import add; print(add(1, 2), {counts})"
    environment = {**os.environ, "ASKEW_CACHE": str(cache), "PYTHONPATH": f"{folder}{os.pathsep}{_sources()}"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def _sources():
    return Path(askew.__file__).parent.parent


def test_what_is_compiled_is_found_by_the_next_process_and_made_again_where_it_is_damaged(tmp_path):
    (tmp_path / "loops.py").write_text(ADD)
    cache = tmp_path / "cache"
    assert _added(tmp_path, cache) == ["3", "1", "0"]
    assert _added(tmp_path, cache) == ["3", "0", "1"]
    for ending in ("nbc", "nbi"):
        for file in cache.rglob(f"*.{ending}"):
            file.write_bytes(file.read_bytes()[:50])
        assert _added(tmp_path, cache) == ["3", "1", "0"]
        assert _added(tmp_path, cache) == ["3", "0", "1"]


def test_a_slow_compile_is_announced_once_and_a_fast_one_is_not(caplog, tmp_path, monkeypatch):
    monkeypatch.setenv("ASKEW_CACHE", str(tmp_path))
    monkeypatch.delenv("ASKEW_COMPILE_NOTE")
    now = [0.0]
    notice = jit_cache.Notice(lambda: now[0])
    for seconds in (0.5, 1.0):
        notice.on_start(None)
        now[0] += seconds
        notice.on_end(None)
        now[0] += 100
    assert not caplog.messages
    for _ in range(3):
        notice.on_start(None)
        notice.on_start(None)
        now[0] += 1
        notice.on_end(None)
        notice.on_end(None)
    (notice,) = caplog.messages
    assert notice.startswith("askew: compiling ")
    assert notice.endswith(str(tmp_path / "compiled" / askew.__version__))


@given(st.lists(st.integers(-50, 50), max_size=200), st.sampled_from(["int32", "uint64", "float32"]))
def test_sorting_agrees_with_numpy(numbers, kind):
    values = np.array(numbers, np.int64).astype(kind)
    expected = np.sort(values)
    sort_ascending(values)
    assert values.tolist() == expected.tolist()
