"""A process that is killed in the middle loses nothing that was paid for."""

import json
import signal
import subprocess
import sys
import zlib
from functools import partial
from pathlib import Path

from killed_llm_job import QUERIES, asked
from llm_server import Reply, echo, fails, wait_until

JOB = Path(__file__).parent / "killed_llm_job.py"


class Moody:
    """Some requests fail at first. After so many good answers the others have to wait: the kill finds them waiting."""

    def __init__(self, server):
        self.server, self.answers_left, self.faults = server, 0, 0
        server.times_seen.clear()

    def __call__(self, body, nth):
        if zlib.crc32(body["messages"][1]["content"].encode()) % 10 == 0 and nth == 0:
            self.faults += 1
            return fails(500)
        with self.server.lock:
            self.answers_left -= 1
            late = self.answers_left < 0
        return Reply(echo(body, nth).body, sleep=30.0 if late else 0.0)


def _has_come_to(cache, entries, job):
    return len(list(cache.glob("??/[0-9a-f]*.json"))) >= entries or job.poll() is not None


def start(server, cache, out):
    return subprocess.Popen([sys.executable, str(JOB), server.url, str(cache), str(out)])


def test_after_a_kill_the_rest_is_asked_and_the_outcome_is_that_of_an_undisturbed_run(make, server, tmp_path):
    undisturbed = make().reformulate(asked())
    assert len(undisturbed) == 2 * QUERIES
    server.script = moody = Moody(server)
    cache, out = tmp_path / "cache", tmp_path / "out.json"

    finished: set[str] = set()
    for entries in (50, 100):
        before, moody.answers_left = len(server.bodies), 50
        job = start(server, cache, out)
        try:
            wait_until(partial(_has_come_to, cache, entries, job))
        finally:
            job.send_signal(signal.SIGKILL)
            job.wait()
        assert job.returncode == -signal.SIGKILL, "it was killed in the middle"
        asked_again = {body["messages"][1]["content"] for body in server.bodies[before:]}
        assert not asked_again & finished, "what was finished is not asked again"
        finished = {
            json.loads(path.read_text())["request"]["messages"][1]["content"]
            for path in cache.glob("??/[0-9a-f]*.json")
        }
        assert len(finished) == entries and not out.exists()

    before, moody.answers_left = len(server.bodies), QUERIES
    job = start(server, cache, out)
    assert job.wait(60) == 0
    asked_again = [body["messages"][1]["content"] for body in server.bodies[before:]]
    assert not set(asked_again) & finished
    assert len(set(asked_again)) == QUERIES - len(finished)
    assert moody.faults > 5
    assert json.loads(out.read_text()) == [undisturbed.rows, undisturbed.texts, {}]

    before = len(server.bodies)
    free = make(cache=cache, concurrency=1)
    assert free.reformulate(asked()).texts == undisturbed.texts
    assert len(server.bodies) == before


def test_two_processes_may_share_a_cache(server, tmp_path):
    outs = [tmp_path / "one.json", tmp_path / "two.json"]
    jobs = [start(server, tmp_path / "cache", out) for out in outs]
    assert [job.wait(60) for job in jobs] == [0, 0]
    assert outs[0].read_text() == outs[1].read_text()
    assert len(list((tmp_path / "cache").glob("??/[0-9a-f]*.json"))) == QUERIES
