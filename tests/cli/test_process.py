"""The real process: exit codes, pipes, signals."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from askew.data.collection import demo_files

ASKEW = str(Path(sys.executable).with_name("askew"))
DEMO = demo_files()
PER_QUERY = f"measure {DEMO.runs[0]} --docs {DEMO.docs} --per-query"
MANY = 500_000


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory):
    """The first command that compiles says so on stderr; here it has been said."""
    start("demo", cwd=tmp_path_factory.mktemp("compiled"))


def start(*words, **options):
    return subprocess.run([ASKEW, *words], capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["measure", "--help"], ["compare", "--help"]])
def test_help_is_a_result_and_fits_a_hundred_columns(words):
    done = start(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: askew")
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_help_names_every_command():
    listed = start("--help").stdout
    assert all(f"\n  {name}" in listed for name in ("measure", "compare", "annotate", "demo", "list", "show"))


@pytest.mark.parametrize("words", [[], ["train"]])
def test_the_list_of_commands_fits_a_terminal_and_cuts_no_sentence(words):
    listed = (
        start(*words, "--help", env={**os.environ, "COLUMNS": "80"}).stdout.partition("Commands:\n")[2].splitlines()
    )
    assert len(listed) >= 6
    assert [line for line in listed if len(line) > 80 or (line.endswith("...") and not line.endswith(", ..."))] == []


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("list tokenizers", 0),
        ("list nothing", 2),
        ("measure nowhere.run --docs docs.tsv", 3),
        ("show store nowhere", 5),
    ],
)
def test_the_exit_code_of_the_process_is_that_of_the_error(command, code):
    done = start(*command.split())
    assert done.returncode == code
    if code:
        assert done.stdout == ""
        assert done.stderr.startswith("askew: ") and done.stderr.count("\n") == 1


def test_a_mistake_in_the_options_has_the_exit_code_of_a_wrong_setting():
    done = start("measure", "old.run", "--no-such-option")
    assert done.returncode == 2
    assert "--no-such-option" in done.stderr and "Traceback" not in done.stderr


def test_nothing_is_colored_when_piped():
    environment = {**os.environ, "TERM": "xterm-256color"}
    for command in ("demo", "list measures", "show preset bigdeli2022", "--help", "list nothing"):
        done = start(*command.split(), env=environment)
        assert "\x1b" not in done.stdout + done.stderr


def without_notes(messages):
    return [line for line in messages.splitlines() if not line.startswith("note: ")]


@pytest.mark.parametrize("command", [PER_QUERY, f"{PER_QUERY} --tsv", f"{PER_QUERY} --json", "list measures", "demo"])
def test_a_reader_that_is_gone_is_no_error(command):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [ASKEW, *shlex.split(command)], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, without_notes(done.stderr)) == (0, [])


def test_only_the_first_line_can_be_taken_with_head():
    script = f"{shlex.quote(ASKEW)} {PER_QUERY} --tsv | head -1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "run\tquery_id\tmeasure\tvalue\n", "")


@pytest.mark.parametrize("command", ["list measures", "list measures --json", "demo", "show lexicon gender"])
def test_a_stdout_that_is_closed_is_no_mistake_of_ours(command):
    done = subprocess.run(
        ["bash", "-c", f"{shlex.quote(ASKEW)} {command} >&-"], stderr=subprocess.PIPE, text=True, check=False
    )
    assert (done.returncode, without_notes(done.stderr)) == (0, [])


def test_letters_that_the_terminal_lacks_are_shown_by_their_numbers():
    shutil.copy("old.run", "日.run")
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    words = ["measure", "日.run", "--docs", "docs.tsv", "--measures", "ARaB@10"]
    assert "\\u65e5.run" in start(*words, env=environment).stdout
    assert json.loads(start(*words, "--json", env=environment).stdout)["runs"][0]["run"] == "日.run"


def test_a_full_disk_is_one_line_and_not_success():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [ASKEW, *shlex.split(PER_QUERY), "--tsv"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 3
    assert done.stderr.startswith("askew: ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("form", [[], ["--tsv"], ["--json"]])
def test_a_file_name_that_is_not_utf8_is_measured_all_the_same(form):
    strange = os.fsdecode(b"\xff.run")
    shutil.copy("old.run", strange)
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = start("measure", strange, "--docs", "docs.tsv", "--measures", "ARaB@10", *form, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert ".run" in done.stdout


def test_a_strange_file_name_in_an_error_does_not_steer_the_terminal():
    ours, theirs = os.openpty()
    words = [ASKEW, "measure", "\x1b[31mred.run", "--docs", "docs.tsv"]
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=theirs, check=False)
    shown = os.read(ours, 10_000)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 3
    assert b"red.run" in shown and b"\x1b" not in shown


def test_a_program_behind_a_measure_that_fails_is_one_line():
    done = start("measure", "old.run", "--qrels", "qrels.txt", "--measures", "ERR@10")
    if done.returncode:
        assert done.returncode in (2, 3, 4)
        assert done.stderr.startswith("askew: ") and done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """A folder in which annotate was stopped by Ctrl-C after its first part, and how it ended."""
    folder = tmp_path_factory.mktemp("interrupted")
    (folder / "docs.tsv").write_text("".join(f"d{i}\the met her {i}\n" for i in range(MANY)))
    job = subprocess.Popen(
        [ASKEW, "annotate", "docs.tsv", "--tokens", "word"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 30
    while not list(folder.glob(".askew/*/part-*")) and job.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    job.send_signal(signal.SIGINT)
    out, err = job.communicate(timeout=30)
    return folder, subprocess.CompletedProcess(job.args, job.returncode, out, err)


def test_ctrl_c_ends_with_130_and_nothing_called_finished(interrupted):
    folder, done = interrupted
    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr
    assert list(folder.glob(".askew/mentions-*/part-*"))
    assert not list(folder.glob(".askew/mentions-*/manifest.json"))


def test_ctrl_c_is_answered_with_one_line_that_says_what_is_kept(interrupted):
    _, done = interrupted
    assert done.stderr.startswith("askew: interrupted") and done.stderr.count("\n") == 1


def test_after_ctrl_c_the_same_command_goes_on_and_ends_as_if_never_stopped(interrupted, tmp_path):
    shutil.copytree(interrupted[0], tmp_path / "job")
    (first,) = sorted((tmp_path / "job").glob(".askew/*/part-*"))[:1]
    written = first.stat().st_mtime_ns
    again = start("annotate", "docs.tsv", "--tokens", "word", "--json", cwd=tmp_path / "job")
    assert json.loads(again.stdout)["counts"][0]["rows"] == MANY
    assert first.stat().st_mtime_ns == written
    start("annotate", "docs.tsv", "--tokens", "word", "--store", "fresh", cwd=tmp_path / "job")
    resumed, fresh = (next((tmp_path / "job").glob(f"{s}/*/manifest.json")) for s in (".askew", "fresh"))
    assert resumed.read_bytes() == fresh.read_bytes()
