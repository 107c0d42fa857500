"""Ray actors on a real local cluster: the same bytes as one process gives, whatever happens to them."""

import logging
import os
import random
import socket
import subprocess
import sys

import pytest
from pool_jobs import (
    ROWS,
    Dying,
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
)  # fmt: skip

from askew.core.errors import ConfigError, MissingExtra, StageError, UnknownName
from askew.core.store.ray import RayExecutor
from askew.core.store.store import Store


@pytest.fixture(scope="module")
def cluster():
    """A cluster with two cores for all tests here; its address."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: the extra 'ray'")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    found = ray.init("local", num_cpus=2, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    yield found.address_info["gcs_address"]
    ray.shutdown()


@pytest.fixture(scope="module")
def pool(cluster):
    """Two actors for all tests that leave them whole."""
    with RayExecutor() as executor:
        yield executor


@pytest.fixture
def marks(tmp_path):
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("shard_rows", [7, 1000])
def test_actors_leave_the_same_bytes_as_one_process(tmp_path, pool, shard_rows):
    plan_of().run(Store(tmp_path / "one"), shard_rows)
    outcomes = plan_of().run(Store(tmp_path / "two"), shard_rows, executor=pool)
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
    assert outcomes["half"].parts_written == -(-ROWS // shard_rows)
    assert pool.count == 2


def test_actors_killed_at_random_moments_cost_only_their_shards(tmp_path, pool, marks):
    plan_of().run(Store(tmp_path / "calm"), 7)
    plan = plan_of(marks=str(marks), rest=0.05)
    (marks / str(os.getpid())).unlink()
    thread = killer(tmp_path / "rough", marks, random.Random(2), 3)
    thread.start()
    outcomes = plan.run(Store(tmp_path / "rough"), 7, executor=pool)
    thread.join()
    assert contents(tmp_path / "rough") == contents(tmp_path / "calm")
    assert 1 <= sum(outcome.restarts for outcome in outcomes.values()) <= 3


def test_a_shard_that_always_kills_its_actor_ends_with_one_line(tmp_path, pool):
    with pytest.raises(StageError, match=r"step 'step': 3 workers died.*28 to 35") as found:
        run(tmp_path, Dying(row=30), pool)
    assert "\n" not in str(found.value)


def test_an_error_of_ours_comes_through_as_it_is(tmp_path, pool):
    with pytest.raises(UnknownName, match="did you mean 'gender'"):
        run(tmp_path, Raising(), pool)


def test_a_row_that_an_actor_loses_is_found(tmp_path, pool):
    with pytest.raises(StageError, match="'loses' lost rows"):
        run(tmp_path, Making(Losing), pool)


def test_an_actor_keeps_to_its_share_of_the_threads_and_stands_where_the_driver_stands(tmp_path, pool, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "near").mkdir()
    pool.close()
    run("s", Making(marks="near"), pool)
    threads = {int(mark.name): mark.read_text() for mark in (tmp_path / "near").iterdir()}
    del threads[os.getpid()]
    assert set(threads.values()) == {"1"}


def test_a_driver_killed_on_a_cluster_is_gone_on_from_there_or_elsewhere(tmp_path, pool, cluster, marks):
    plan_of().run(Store(tmp_path / "calm"), 7)
    rough = tmp_path / "rough"
    pool.close()
    driver = start_driver(rough, f"ray:{cluster}", marks)
    wait_for(lambda: len(list(rough.rglob("part-*"))) >= 9)
    driver.kill()
    driver.wait()
    wait_for(lambda: not any(map(alive, pids_in(marks))))
    plan_of().run(Store(rough), 7, executor=pool)
    assert contents(rough) == contents(tmp_path / "calm")


def test_a_ray_of_ones_own_says_nothing_not_even_of_a_dead_actor(tmp_path, marks):
    pytest.importorskip("ray", reason="Ray is not installed: the extra 'ray'")
    once = tmp_path / "once"
    driver = start_driver(tmp_path / "s", "ray", marks, 0, once, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = driver.communicate(timeout=120)
    assert (driver.returncode, said) == (0, ("", ""))
    assert once.exists()
    plan_of().run(Store(tmp_path / "one"), 7)
    assert contents(tmp_path / "s") == contents(tmp_path / "one")
    assert not any(map(alive, pids_in(marks)))


def test_without_ray_one_line_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"\.\[ray\]"):
        run(tmp_path, Making(), RayExecutor(workers=1))


def test_an_address_where_nobody_listens_is_one_line(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed: the extra 'ray'")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConfigError, match=f"Ray at 127.0.0.1:{port}: cannot be reached"):
        run(tmp_path, Making(), RayExecutor(f"127.0.0.1:{port}", workers=1))


def test_a_pool_without_workers_is_refused():
    with pytest.raises(ConfigError, match=r"expected 1.*more workers"):
        RayExecutor(workers=0)
