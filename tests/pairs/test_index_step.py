"""The index is a step: workers build it in shards, the store has it, and no other machine builds it again."""

import os
from functools import partial

import pyarrow as pa
import pytest

from askew.core.errors import StoreError
from askew.core.store.steps import run_step
from askew.core.store.store import Store
from askew.core.store.workers import Workers
from askew.data.collection import demo_files
from askew.pairs import resources
from askew.pairs import resources as indexing
from askew.pairs.build import build
from askew.pairs.resources import Resources


def files_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


class Rows:
    """A few rows, one for each shard."""

    key = "rows"

    def batches(self):
        yield pa.table({"row": list(range(4))})


class Probe:
    """Opens the index as a worker does, and says where it lies."""

    name, version = "probe", 1

    def __init__(self, source, store):
        self._resources = Resources(source, store)

    def settings(self):
        return {}

    def run(self, rows):
        folder = self._resources.index()
        return pa.table({"folder": [str(folder)] * rows.num_rows}), {}


def probe_of(source, address, log):
    """The stage in a worker; every index that is built from the documents there is a line in a file."""
    real = resources.index_documents

    def counted(*arguments):
        with log.open("a") as file:
            file.write("built\n")
        return real(*arguments)

    resources.index_documents = counted
    return Probe(source, Store(address))


def test_workers_build_the_bytes_of_one_process_and_leave_no_shards(tmp_path, monkeypatch):
    monkeypatch.setattr(indexing, "SHARD_ROWS", 200)
    one, many = (Resources("demo", Store(tmp_path / name)) for name in ("one", "many"))
    with Workers(2) as workers:
        many.executor = workers
        found = many.index()
    assert files_in(found) == files_in(one.index())
    assert not list((tmp_path / "many").rglob("*.parquet"))


def test_a_build_with_workers_comes_to_the_bytes_of_a_build_without(tmp_path, monkeypatch):
    monkeypatch.setattr(indexing, "SHARD_ROWS", 200)
    for name, workers in (("one", None), ("many", 2)):
        build("demo", store=tmp_path / name, workers=workers, until="runs")
    folders = [next((tmp_path / name).glob("runs-*/part-*")) for name in ("one", "many")]
    assert folders[0].read_bytes() == folders[1].read_bytes()


def test_an_index_is_fetched_from_a_store_elsewhere(tmp_path, monkeypatch):
    address = f"local://{tmp_path}/bucket"
    first = Resources("demo", Store(address, cache=tmp_path / "a")).index()
    monkeypatch.setattr(resources, "index_documents", None)
    second = Resources("demo", Store(address, cache=tmp_path / "b")).index()
    assert first != second
    assert files_in(first) == files_in(second)


def test_a_damaged_index_in_the_store_is_refused(tmp_path):
    address = f"local://{tmp_path}/bucket"
    name = Resources("demo", Store(address, cache=tmp_path / "a")).index().name
    piece = tmp_path / "bucket" / name / "doc_ids.arrow.00000"
    piece.write_bytes(piece.read_bytes()[:-1] + b"x")
    with pytest.raises(StoreError, match=r"doc_ids\.arrow is damaged"):
        Resources("demo", Store(address, cache=tmp_path / "b")).index()
    assert not (tmp_path / "b" / name).exists()


def test_two_machines_with_one_store_build_the_index_once(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed: the extra 'ray'")
    from ray.cluster_utils import Cluster

    from askew.core.store.ray import RayExecutor

    monkeypatch.setattr(indexing, "SHARD_ROWS", 200)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("ASKEW_CACHE", str(tmp_path / "driver"))
    address, log, source = f"local://{tmp_path}/bucket", tmp_path / "built", str(demo_files().docs.parent)
    cluster = Cluster(shutdown_at_exit=False)
    try:
        for name in ("first", "second"):
            node = {"ASKEW_CACHE": str(tmp_path / name)}
            cluster.add_node(num_cpus=1, env_vars={**os.environ, **node}, include_dashboard=False)
        with RayExecutor(cluster.address, workers=2) as executor:
            driver = Resources(source, Store(address))
            driver.executor = executor
            made = driver.index()
            stage = Probe(source, Store(address))
            make = partial(probe_of, source, address, log)
            manifest = run_step(driver.store, "probe", stage, Rows(), 1, executor=executor, maker=make).manifest
            folders = {path for part in driver.store.read(manifest) for path in part["folder"].to_pylist()}
    finally:
        ray.shutdown()
        cluster.shutdown()
    # Ray decides which machines take part; each that does has it in its own folder, and none built it.
    machines = {path.split("/stores/")[0] for path in folders}
    assert machines and machines <= {str(tmp_path / "first"), str(tmp_path / "second")}
    assert not log.exists()
    assert all(files_in(type(made)(path)) == files_in(made) for path in folders)


def test_the_index_reports_its_documents_as_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(indexing, "SHARD_ROWS", 100)
    found, seen = Resources("demo", Store(tmp_path / "store")), []
    found.progress = lambda step, rows, _: seen.append((step, rows))
    with Workers(2) as executor:
        found.executor = executor
        found.index()
    documents = len(demo_files().docs.read_text(encoding="utf-8").splitlines())
    assert {step for step, _ in seen} == {"index bm25"}
    assert seen[-1][1] == documents and len({rows for _, rows in seen}) >= 3
