"""A build that SIGTERM stops in the middle: one line, exit code 143, and the same command ends as if never stopped."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_engines import content

from askew.search.engines.answers import AnswerFile
from askew.ui.cli import main as cli

ASKEW = str(Path(sys.executable).with_name("askew"))
BUILD = [ASKEW, "run", "demo", "--set", "reformulate.0.count=3", "--store"]
SAID = "askew: stopped by SIGTERM; finished work is kept, and the same command resumes from there\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of a build that nothing stopped."""
    store = tmp_path_factory.mktemp("whole") / "store"
    subprocess.run([*BUILD, str(store)], check=True, capture_output=True)
    return content(store)


def _stopped(command, store, to_all):
    """Run until the step neutral is finished and the next one has begun, then stop it."""
    job = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )  # fmt: skip
    while job.poll() is None and not list(store.glob("neutral-*/manifest.json")):
        time.sleep(0.01)
    if to_all:
        os.killpg(job.pid, signal.SIGTERM)
    job.send_signal(signal.SIGTERM)
    out, err = job.communicate(timeout=120)
    return job, out, err


def _left(session):
    """Processes of a session that are still there, but for those that are dead and not yet fetched."""
    shown = subprocess.run(["ps", "-eo", "sid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in shown.splitlines() if line.split()[0] == str(session) and line.split()[1][0] != "Z"]


@pytest.mark.parametrize(
    ("engine", "to_all"),
    [("", False), ("--workers 2", False), ("--workers 2", True), ("--engine ray --workers 2", True)],
)
def test_a_build_stopped_by_sigterm_says_so_in_one_line_and_goes_on_from_there(engine, to_all, whole, tmp_path):
    if "ray" in engine:
        pytest.importorskip("ray", reason="the extra ray is not installed")
    store = tmp_path / "store"
    command = [*BUILD, str(store), *engine.split()]
    job, out, err = _stopped(command, store, to_all)
    assert (job.returncode, out, err) == (143, "", SAID)
    assert content(store) != whole
    for _ in range(100):  # what is told to end needs a moment
        if not _left(job.pid):
            break
        time.sleep(0.1)
    assert _left(job.pid) == []
    subprocess.run(command, check=True, capture_output=True)
    assert content(store) == whole


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGTERM, 143, SAID), (signal.SIGINT, 130, SAID.replace("stopped by SIGTERM", "interrupted"))],
)
def test_a_signal_that_arrives_while_a_worker_starts_leaves_no_traceback_of_the_worker(number, code, said, tmp_path):
    # The signal arrives after the worker exists and before the driver has told it what to do. A second thread is
    # there because a signal reaches any thread of the process.
    program = (
        "import os, sys, threading, time\n"
        "from multiprocessing import resource_tracker, util\n"
        "import askew.ui.cli.main as cli\n"
        "def main():\n"
        "    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "    resource_tracker.ensure_running()\n"
        "    launch = util.spawnv_passfds\n"
        "    def launched(*arguments):\n"
        "        worker = launch(*arguments)\n"
        f"        os.kill(os.getpid(), {int(number)})\n"
        "        return worker\n"
        "    util.spawnv_passfds = launched\n"
        "    cli.main()\n"
        "if __name__ == '__main__':\n"
        "    main()\n"
    )
    script = tmp_path / "script.py"
    script.write_text(program)
    command = [sys.executable, str(script), *BUILD[1:], str(tmp_path / "store"), "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


def test_a_stopped_command_waits_for_no_thread_and_still_cleans_up():
    # A native thread cannot be made to abort the process at will; one of Python's shows the same: who waits, hangs.
    program = (
        "import atexit, os, signal, sys, threading, time\n"
        "import askew.ui.cli.main as cli\n"
        "atexit.register(print, 'cleaned up')\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "cli.run = lambda arguments: 128 + signal.SIGTERM\n"
        "cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (143, "cleaned up\n"), done.stderr


def test_a_signal_is_named_though_a_library_raised_the_interruption_anew(monkeypatch, capsys):
    monkeypatch.setattr(cli, "_received", {signal.SIGTERM})

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_unless_full", interrupted)
    assert cli.run(["run", "demo"]) == 143
    assert capsys.readouterr().err == SAID


HANGING = """
import pathlib, threading, time
def find(query, k):
    if "nurse" not in query:
        pathlib.Path("hangs").touch()
        threading.Event().wait()
    return ["0"]
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_a_command_whose_function_hangs_and_answers_are_kept(number, tmp_path):
    (tmp_path / "engine.py").write_text(HANGING)
    lines = "".join(f"q{row}\t{text}\n" for row, text in enumerate(["a nurse", "b nurse", "x"]))
    (tmp_path / "q.tsv").write_text(lines)
    command = [ASKEW, "search", "q.tsv", "--ranker", "callable", "--set", "function=engine.py:find", "--set",
               "cache=answers", "--set", "concurrency=1", "--out", "x.run"]  # fmt: skip
    job = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while job.poll() is None and not (tmp_path / "hangs").exists():
        time.sleep(0.05)
    # Both of these are one signal, that some tools send to the process and to its group.
    os.killpg(job.pid, number)
    job.send_signal(number)
    time.sleep(0.7)
    assert job.poll() is None
    job.send_signal(number)
    _, err = job.communicate(timeout=30)
    assert job.returncode == 128 + number and err.count("\n") == 1
    answers = AnswerFile(tmp_path / "answers")
    assert len(answers) == 2
    answers.close()
