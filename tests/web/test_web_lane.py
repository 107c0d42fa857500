"""Whole runs are measured by a process apart: one after the other, with a deadline, and searches do not wait."""

import asyncio
import os
import threading
from pathlib import Path

import lane_jobs
import pytest

from askew.ui.explorer.opening import Sources
from askew.ui.web.lane import Lane, LaneFailed
from askew.ui.web.replies import Problem
from askew.ui.web.settings import ServerLimits
from askew.ui.web.work import Busy
from conftest import FREE


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """The process finds the jobs of the tests."""
    monkeypatch.setenv("PYTHONPATH", str(Path(lane_jobs.__file__).parent))


def in_lane(use, waiting=4, seconds=60.0):
    async def go():
        lane = Lane(Sources(), waiting, seconds)
        try:
            return await use(lane)
        finally:
            lane.close()

    return asyncio.run(go())


def test_jobs_are_done_by_one_process_apart_and_errors_come_back():
    async def use(lane):
        first, second = await asyncio.gather(lane.run(lane_jobs.process), lane.run(lane_jobs.process))
        assert first == second != os.getpid()
        assert await lane.run(lane_jobs.chatter) == "quiet"
        with pytest.raises(Problem, match="not a run") as refused:
            await lane.run(lane_jobs.refuse)
        with pytest.raises(LaneFailed, match=r"ValueError at .*lane_jobs") as failed:
            await lane.run(lane_jobs.fail)
        assert "secretword" not in str(failed.value)
        return refused.value.status, await lane.run(lane_jobs.double, 21), lane.taken

    assert in_lane(use) == (400, 42, 0)


def test_a_job_that_lasts_too_long_is_ended_and_the_next_one_is_done():
    async def use(lane):
        await lane.run(lane_jobs.double, 1)
        with pytest.raises(Problem, match=r"longer than 1 s.*askew measure") as late:
            await lane.run(lane_jobs.sleep, 60)
        return late.value.status, await lane.run(lane_jobs.double, 2)

    assert in_lane(use, seconds=1.0) == (503, 4)


def test_a_process_that_dies_is_told_and_replaced():
    async def use(lane):
        with pytest.raises(Problem, match="has ended"):
            await lane.run(lane_jobs.die)
        return await lane.run(lane_jobs.double, 3)

    assert in_lane(use) == 6


def test_more_than_may_wait_is_refused_at_once():
    async def use(lane):
        held = [asyncio.ensure_future(lane.run(lane_jobs.sleep, 0.2)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await lane.run(lane_jobs.double, 1)
        return await asyncio.gather(*held)

    assert in_lane(use, waiting=1) == [0.2, 0.2]


def test_an_asker_who_leaves_does_not_spoil_the_next_answer():
    async def use(lane):
        await lane.run(lane_jobs.double, 1)
        gone = asyncio.ensure_future(lane.run(lane_jobs.sleep, 0.3))
        await asyncio.sleep(0.1)
        gone.cancel()
        return await lane.run(lane_jobs.double, 4)

    assert in_lane(use) == 8


def test_searches_are_answered_while_a_run_is_measured(service, tmp_path):
    client, done = service(limits=FREE), tmp_path / "done"
    site = client.app.state.site
    # What is compiled for the first use is compiled before the deadline of the job runs.
    client.get("/api/search", params={"q": "nurse"})
    held = threading.Thread(target=lambda: client.portal.call(site.lane.run, lane_jobs.wait_for, str(done)))
    held.start()
    found = [client.get("/api/search", params={"q": f"how to become a nurse {n}"}).status_code for n in range(5)]
    assert found == [200] * 5 and held.is_alive()
    done.touch()
    held.join()


def test_an_upload_that_takes_too_long_is_told_what_to_do(service):
    client = service(limits=ServerLimits(rate=1e6, burst=10**6, measure_seconds=0.01))
    reply = client.post("/runs", files=[("files", ("u.run", b"q Q0 d 1 1.0 t\n" * 100_000))])
    assert reply.status_code == 503 and "askew measure" in reply.text
