"""Stores elsewhere than in a folder, and what keeps many processes apart."""

import json
import multiprocessing
import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from pool_jobs import Groups, Making, contents, plan_of

from askew.core.errors import MissingExtra, StoreError
from askew.core.files import digest_file
from askew.core.store import store as store_module
from askew.core.store.files import LocalFiles, RemoteFiles, open_files
from askew.core.store.steps import run_step
from askew.core.store.store import Store


@pytest.fixture(params=["folder", "memory", "local"])
def files(request, tmp_path):
    (tmp_path / "f").mkdir()
    where = {"folder": tmp_path / "f", "memory": f"memory://{tmp_path.name}", "local": f"local://{tmp_path / 'f'}"}
    return open_files(where[request.param])


def test_files_are_written_listed_read_and_deleted(files):
    assert files.list() == files.list("step") == []
    assert not files.exists("step/part")
    files.write("step/part", b"one")
    files.write("step/part", b"two")
    files.write("step/other", b"")
    assert files.read("step/part") == b"two"
    assert files.list() == ["step"]
    assert files.list("step") == ["other", "part"]
    assert files.exists("step/part")
    assert not files.exists("step")
    files.delete("step/part")
    files.delete("step/part")
    assert files.list("step") == ["other"]
    with pytest.raises(FileNotFoundError):
        files.read("step/part")


def test_files_travel_to_another_process_by_their_address(files, tmp_path, monkeypatch):
    files.write("a/b", b"there")
    found = pickle.loads(pickle.dumps(files))
    assert (found.read("a/b"), found.shared) == (b"there", files.shared)
    monkeypatch.chdir(tmp_path)
    assert pickle.loads(pickle.dumps(LocalFiles(Path("f")))).root == tmp_path / "f"


def test_a_path_and_a_file_address_are_folders_and_any_other_scheme_is_not(tmp_path):
    assert Store(tmp_path).root == Store(str(tmp_path)).root == Store(f"file://{tmp_path}").root == tmp_path
    assert Store("file:///a%20b").root == Path("/a b")
    assert isinstance(open_files("s3://bucket/work"), RemoteFiles)


def test_a_plan_in_memory_comes_to_the_same_as_in_a_folder(tmp_path):
    here, there = Store(tmp_path / "s"), Store(f"memory://{tmp_path.name}/s", cache=tmp_path / "cache")
    expected = plan_of().run(here, 7)
    found = plan_of().run(there, 7)
    assert {n: o.manifest for n, o in found.items()} == {n: o.manifest for n, o in expected.items()}
    assert there.steps() == here.steps()
    assert there.has("half")
    assert not there.has("whole")
    tables = [pa.concat_tables(s.read(found["groups"].manifest)) for s in (here, there)]
    assert tables[0].equals(tables[1])
    names = [name for name in contents(tmp_path / "s") if name != "digests.json"]
    assert all(there.files.read(name) == here.files.read(name) for name in names)
    assert not any(outcome.ran for outcome in plan_of().run(there, 7).values())


def test_a_store_elsewhere_has_a_folder_of_this_machine_for_what_must_lie_in_files(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one, other = Store("memory://one"), Store("memory://other")
    assert one.local != other.local
    assert one.local.is_relative_to(tmp_path)
    assert one.local == Store("memory://one/").local
    assert Store("memory://one", cache=tmp_path / "c").local == tmp_path / "c"
    assert Store(tmp_path / "s").local == tmp_path / "s"
    with pytest.raises(StoreError, match=r"memory://one:.*a local folder"):
        _ = one.root


def test_an_address_that_nothing_answers_is_one_line(tmp_path, monkeypatch):
    with pytest.raises(StoreError, match=r"nowhere://x: cannot be reached \(Protocol not known"):
        Store("nowhere://x").steps()
    monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
    with pytest.raises(MissingExtra, match=r"\.\[remote\]"):
        Store("memory://y").steps()


def test_keys_in_an_address_are_in_no_message():
    assert open_files("s3://name:secret@bucket/work?secret_key=x").where == "s3://bucket/work"
    assert open_files("abfs://box@account/work").where == "abfs://box@account/work"


def test_a_file_beside_the_steps_is_no_step(tmp_path):
    (tmp_path / "notes.txt").write_text("not a step")
    assert Store(f"local://{tmp_path}").steps() == Store(tmp_path).steps() == []
    with pytest.raises(OSError, match="local://"):
        open_files(f"local://{tmp_path}").read("notes.txt/manifest.json")


def test_a_part_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "step-k").write_text("in the way")
    writer = Store(tmp_path).writer("step", "k")
    with pytest.raises(StoreError, match=r"step-k/part-.* cannot be written"):
        writer.write(pa.table({"x": [1]}), 0, 1, 1, {})


def test_two_drivers_with_shards_of_other_sizes_leave_a_step_that_can_be_finished(tmp_path):
    """As on an object store, where nobody is kept out."""
    store, making = Store(tmp_path), Making()
    first = run_step(store, "step", making(), Groups(), 7).manifest
    folder = store.folder("step", first.key)
    (folder / "manifest.json").unlink()
    aside = {part.file: (folder / part.file).read_bytes() for part in first.parts}
    for name in aside:
        (folder / name).unlink()
    second = run_step(store, "step", making(), Groups(), 10).manifest
    (folder / "manifest.json").unlink()
    for part in second.parts[::3]:
        (folder / part.file).unlink()
    for name, data in aside.items():
        (folder / name).write_bytes(data)
    last = run_step(store, "step", making(), Groups(), 13).manifest
    assert pa.concat_tables(store.read(last)).equals(pa.concat_tables(store.read(first)))
    assert (last.rows_in, last.rows_out, last.dropped) == (first.rows_in, first.rows_out, first.dropped)


def test_two_parts_for_the_same_rows_that_differ_are_an_error(tmp_path):
    with Store(tmp_path).writing("step", "k") as writer:
        writer.write(pa.table({"x": [1]}), 0, 1, 1, {})
        writer.write(pa.table({"x": [2]}), 0, 1, 1, {})
        with pytest.raises(StoreError, match="rows and differ"):
            writer.done()


def add_many(root, number):
    """Adds to a number that is read and written, and remembers digests, as fast as it can."""
    store_module.SETTLED_S = -1.0  # what was written just now is remembered too
    store = Store(root)
    for turn in range(10):
        with store.lock("counter"):
            path = store.local / "counter"
            path.write_text(str(int(path.read_text() or 0) + 1))
        file = store.local.parent / f"file-{number}-{turn}"
        file.write_text(f"{number} {turn}")
        store.digest(file)


def test_processes_that_hold_a_lock_or_remember_digests_at_the_same_time_lose_nothing(tmp_path):
    root = tmp_path / "s"
    root.mkdir()
    (root / "counter").write_text("0")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=add_many, args=(root, number)) for number in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert (root / "counter").read_text() == "30"
    digests = json.loads((root / "digests.json").read_text())
    files = list(tmp_path.glob("file-*"))
    assert sorted(digests.values()) == sorted(map(digest_file, files))
    assert len(files) == 30
    assert sorted(os.listdir(root)) == [".locks", "counter", "digests.json"]  # noqa: PTH208
