"""Worker processes: the same bytes as one process gives, whatever happens to them."""

import os
import random
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from pool_jobs import (
    ROWS,
    Changing,
    CountGroups,
    Drifting,
    Dying,
    DyingWhenMade,
    Groups,
    Halve,
    Losing,
    Making,
    Raising,
    alive,
    contents,
    killer,
    pids_in,
    plan_of,
    run,
    start_driver,
    wait_for,
)

from askew.core.errors import ConfigError, StageError, StoreError, UnknownName
from askew.core.store.steps import run_step
from askew.core.store.store import Store
from askew.core.store.workers import Workers, cores


@pytest.fixture(scope="module")
def pool():
    """Two workers for all tests that leave them whole."""
    with Workers(2) as workers:
        yield workers


@pytest.fixture
def marks(tmp_path):
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def test_idle_workers_leave_of_themselves_and_are_not_killed(tmp_path):
    exits = []

    class Recording(Workers):
        goodbye = None  # On a busy machine a process may need longer to exit than a user should wait.

        def stop(self, worker):
            # A worker that is still starting when the last shard is done is not idle, and is killed.
            idle, process, close = worker.idle, worker.process, worker.process.close
            process.close = lambda: (exits.append((idle, process.exitcode)), close())
            super().stop(worker)

    with Recording(2) as workers:
        plan_of().run(Store(tmp_path), 32, executor=workers)
    assert {code for idle, code in exits if idle} == {0}


def test_an_idle_worker_that_does_not_leave_is_killed(tmp_path):
    class Impatient(Workers):
        goodbye = 0.0

    with Impatient(2) as workers:
        outcomes = plan_of().run(Store(tmp_path / "two"), 32, executor=workers)
        processes = [worker.process.pid for worker in workers._running]
    plan_of().run(Store(tmp_path / "one"), 32)
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
    assert processes and not any(map(alive, processes))
    assert sum(outcome.restarts for outcome in outcomes.values()) == 0


@pytest.mark.parametrize("shard_rows", [5, 32, 1000])
def test_workers_leave_the_same_bytes_as_one_process(tmp_path, pool, shard_rows):
    plan_of().run(Store(tmp_path / "one"), shard_rows)
    outcomes = plan_of().run(Store(tmp_path / "two"), shard_rows, executor=pool)
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
    assert [outcome.ran for outcome in outcomes.values()] == [True, True]
    assert outcomes["half"].parts_written == -(-ROWS // shard_rows)
    assert outcomes["half"].restarts == 0


def test_the_shards_are_run_by_the_workers_each_with_one_stage_for_a_step_and_kept_for_the_next(tmp_path, marks):
    with Workers(2) as workers:
        run(tmp_path / "s", Making(marks=str(marks)), workers)
        first = pids_in(marks) - {os.getpid()}
        for mark in marks.iterdir():
            mark.unlink()
        run(tmp_path / "s", Making(CountGroups, marks=str(marks)), workers)
        assert len(first) == 2
        assert pids_in(marks) - {os.getpid()} == first
    assert not any(map(alive, first))


def test_workers_killed_at_random_moments_cost_only_their_shards(tmp_path, marks):
    plan_of().run(Store(tmp_path / "calm"), 7)
    rng = random.Random(3)
    plan = plan_of(marks=str(marks), rest=0.02)
    (marks / str(os.getpid())).unlink()
    thread = killer(tmp_path / "rough", marks, rng, 4)
    thread.start()
    with Workers(2) as workers:
        outcomes = plan.run(Store(tmp_path / "rough"), 7, executor=workers)
    thread.join()
    assert contents(tmp_path / "rough") == contents(tmp_path / "calm")
    assert 1 <= sum(outcome.restarts for outcome in outcomes.values()) <= 4


def test_an_interrupt_that_reaches_a_worker_does_not_stop_it(tmp_path, marks):
    """Ctrl-C reaches every process of a terminal; what follows from it is for the driver to say."""
    plan_of().run(Store(tmp_path / "calm"), 7)
    plan = plan_of(marks=str(marks), rest=0.02)
    (marks / str(os.getpid())).unlink()

    def interrupt():
        wait_for(lambda: pids_in(marks) and len(list((tmp_path / "rough").rglob("part-*"))) >= 2)
        for pid in pids_in(marks):
            os.kill(pid, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with Workers(2) as workers:
        outcomes = plan.run(Store(tmp_path / "rough"), 7, executor=workers)
    thread.join()
    assert contents(tmp_path / "rough") == contents(tmp_path / "calm")
    assert sum(outcome.restarts for outcome in outcomes.values()) == 0


def test_a_shard_that_always_kills_its_worker_ends_with_one_line_that_names_step_and_rows(tmp_path, marks):
    with Workers(1) as workers, pytest.raises(StageError) as found:
        run(tmp_path / "s", Dying(marks=str(marks), row=30), workers)
    assert (found.value.code, found.value.values["rows"]) == ("deaths", (28, 35))
    assert "step 'step'" in str(found.value)
    assert "\n" not in str(found.value)
    assert not any(alive(pid) for pid in pids_in(marks) - {os.getpid()})
    # What the others did is kept, and the step can go on.
    assert Store(tmp_path / "s").unfinished()
    run(tmp_path / "s", Making())
    run(tmp_path / "one", Making())
    assert contents(tmp_path / "s") == contents(tmp_path / "one")


def test_a_worker_that_dies_while_it_makes_its_stage_is_told_so(tmp_path):
    with Workers(1) as workers, pytest.raises(StageError, match="'step'") as found:
        run(tmp_path, DyingWhenMade(driver=os.getpid()), workers)
    assert (found.value.code, found.value.values["rows"]) == ("deaths", None)


def test_workers_that_died_between_two_steps_are_no_fault_of_the_next(tmp_path, marks):
    with Workers(3) as workers:
        run(tmp_path, Making(marks=str(marks), rest=0.05), workers)
        pids = pids_in(marks) - {os.getpid()}
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        outcome = run(tmp_path, Making(offset=2), workers)
    assert len(pids) == 3
    assert outcome.restarts == 3


def test_an_error_of_ours_comes_through_as_it_is_and_the_other_workers_are_stopped(tmp_path, marks):
    with Workers(2) as workers:
        with pytest.raises(UnknownName, match="did you mean 'gender'") as found:
            run(tmp_path, Raising(marks=str(marks)), workers)
        assert found.value.values["name"] == "gendr"
        assert not any(alive(pid) for pid in pids_in(marks) - {os.getpid()})


@pytest.mark.parametrize(("error", "said"), [("other", "ValueError: no such thing"), ("exit", "SystemExit: 3")])
def test_any_other_error_of_a_stage_is_one_line_with_step_and_rows(tmp_path, error, said):
    with Workers(1) as workers, pytest.raises(StageError) as found:
        run(tmp_path, Raising(error=error), workers)
    assert str(found.value) == f"step 'step', rows 98 to 105: {said}"


def test_a_row_that_a_worker_loses_is_found(tmp_path):
    with (
        Workers(1) as workers,
        pytest.raises(StageError, match=r"'loses' lost rows: 7 rows in, 3.*rows dropped"),
    ):
        run(tmp_path, Making(Losing), workers)
    assert Store(tmp_path).steps() == []


@pytest.mark.parametrize("shard_rows", [7, 100])
def test_columns_that_change_between_workers_are_found(tmp_path, pool, shard_rows):
    with pytest.raises(StageError, match=r"'changes'.*columns at row"):
        run(tmp_path, Making(Changing), pool, shard_rows)
    assert Store(tmp_path).steps() == []


def test_a_maker_that_makes_another_stage_is_refused(tmp_path):
    with Workers(1) as workers, pytest.raises(StageError, match=r"other settings of.*'halve'"):
        run(tmp_path, Drifting(), workers)


def test_a_maker_that_cannot_travel_is_refused_in_one_line(tmp_path):
    maker = lambda: Halve(Making())  # noqa: E731
    with (
        Workers(1) as workers,
        pytest.raises(StageError, match="a worker process") as found,
    ):
        run_step(Store(tmp_path), "step", maker(), Groups(), executor=workers, maker=maker)
    assert "\n" not in str(found.value)


def test_a_step_without_a_maker_runs_here(tmp_path, pool, marks):
    run_step(Store(tmp_path), "step", Halve(Making(marks=str(marks))), Groups(), 7, executor=pool)
    assert pids_in(marks) == {os.getpid()}


def test_a_store_that_only_this_process_sees_is_refused(pool):
    with pytest.raises(StoreError, match="process can read"):
        run_step(Store("memory://workers"), "step", Halve(Making()), Groups(), executor=pool, maker=Making())


def test_a_worker_keeps_to_its_share_of_the_threads(tmp_path, marks, monkeypatch):
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    with Workers(1, threads=3) as workers:
        run(tmp_path, Making(marks=str(marks)), workers)
    assert {mark.read_text() for mark in marks.iterdir()} == {"", "3"}
    assert "NUMBA_NUM_THREADS" not in os.environ


def test_what_the_environment_says_of_threads_stands_unless_a_number_is_given(monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "5")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert "NUMBA_NUM_THREADS" not in Workers(1)._environment
    assert Workers(1)._environment["OMP_NUM_THREADS"] == str(cores())
    assert Workers(1, threads=2)._environment["NUMBA_NUM_THREADS"] == "2"


@pytest.mark.parametrize("wrong", [(0, None), (2, 0)])
def test_a_pool_without_workers_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"expected 1.*more workers"):
        Workers(*wrong)


def test_progress_counts_rows_that_are_done_and_little_is_read_ahead(tmp_path, pool):
    read, done = [0], []

    class Watched(Groups):
        def batches(self):
            for batch in super().batches():
                read.append(read[-1] + batch.num_rows)
                yield batch

    def told(rows):
        done.append(rows)
        # Two shards at work, two that wait, one on its way to be cut.
        assert read[-1] - rows <= 5 * 10

    making = Making()
    run_step(Store(tmp_path), "step", making(), Watched(batch=10), 10, told, pool, making)
    assert done == sorted(done)
    assert done[-1] == ROWS == read[-1]


def test_progress_begins_with_the_rows_that_are_found(tmp_path, pool):
    manifest = run(tmp_path, Making(), shard_rows=10).manifest
    folder = Store(tmp_path).folder("step", manifest.key)
    (folder / "manifest.json").unlink()
    (folder / manifest.parts[3].file).unlink()
    told = []
    outcome = run(tmp_path, Making(), pool, 10, progress=told.append)
    assert (outcome.parts_found, outcome.parts_written) == (23, 1)
    assert (told[0], told[-1]) == (ROWS - 10, ROWS)


def test_what_a_stage_prepares_is_made_once_in_the_driver_before_any_shard(tmp_path, pool):
    class Prepares(Halve):
        prepared = 0

        def prepare(self):
            assert not list(tmp_path.rglob("part-*"))
            Prepares.prepared += 1

    def stage():
        return Prepares(Making())

    run_step(Store(tmp_path), "step", stage(), Groups(), 50, executor=pool, maker=Making())
    assert Prepares.prepared == 1
    run_step(Store(tmp_path), "step", stage(), Groups(), 50, executor=pool, maker=Making())
    assert Prepares.prepared == 1
    with pytest.raises(AssertionError):
        run_step(Store(tmp_path), "again", stage(), Groups(), 50)


def test_a_driver_killed_at_random_moments_takes_its_workers_along_and_another_executor_goes_on(tmp_path, marks):
    plan_of().run(Store(tmp_path / "calm"), 7)
    rough, rng, killed = tmp_path / "rough", random.Random(5), 0
    for turn in range(40):
        done = len(list(rough.rglob("part-*"))) + rng.randint(6, 16)
        driver = start_driver(rough, ["workers:2", "", "workers:3"][turn % 3], marks)
        wait_for(lambda done=done, it=driver: len(list(rough.rglob("part-*"))) >= done or it.poll() is not None)
        if driver.poll() is not None:
            break
        driver.kill()
        driver.wait()
        killed += 1
        wait_for(lambda: not any(map(alive, pids_in(marks))))
    assert driver.returncode == 0
    assert killed >= 3
    assert contents(rough) == contents(tmp_path / "calm")


def test_ctrl_c_ends_all_workers_in_silence_and_leaves_what_was_done(tmp_path, marks):
    root = tmp_path / "s"
    driver = start_driver(root, "workers:2", marks, 0.05, stderr=subprocess.PIPE, start_new_session=True)
    wait_for(lambda: len(list(root.rglob("part-*"))) >= 3)
    os.killpg(driver.pid, signal.SIGINT)
    _, said = driver.communicate(timeout=120)
    assert driver.returncode == -signal.SIGINT
    assert said.count("Traceback") == 1
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert not any(map(alive, pids_in(marks)))
    plan_of().run(Store(root), 7)
    plan_of().run(Store(tmp_path / "calm"), 7)
    assert contents(root) == contents(tmp_path / "calm")


def test_workers_write_to_a_store_that_is_reached_by_an_address(tmp_path, pool):
    run(tmp_path / "one", Making())
    (tmp_path / "two").mkdir()
    store = Store(f"local://{tmp_path / 'two'}", cache=tmp_path / "cache")
    making = Making()
    outcome = run_step(store, "step", making(), Groups(), 7, executor=pool, maker=making)
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
    assert sum(table.num_rows for table in store.read(outcome.manifest)) == ROWS // 2


def test_parts_that_cannot_be_seen_from_here_are_noticed(tmp_path, pool, monkeypatch):
    class Elsewhere(Store):
        def __reduce__(self):
            return Store, (tmp_path / "elsewhere",)

    making = Making()
    with pytest.raises(StoreError, match="processes share"):
        run_step(Elsewhere(tmp_path / "here"), "step", making(), Groups(), executor=pool, maker=making)
    assert Path(tmp_path / "elsewhere").exists()
