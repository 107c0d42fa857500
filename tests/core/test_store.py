"""The guarantees of the store, each tried for real."""

import json
import os
import random
import signal
import time
from itertools import count, pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pool_jobs import contents, lose_half, start_driver

from askew.core.errors import ConfigError, StageError, StoreError
from askew.core.files import digest_file
from askew.core.store import store as store_module
from askew.core.store.steps import FinishedStep, Plan, Step, run_step
from askew.core.store.store import Store
from askew.measures.counts import Annotate
from askew.testing.contracts import check_stage

# Each example has a store of its own, in memory: a disk that is flushed after every part is slow.
NUMBER = count()


def rows_of(store: Store) -> pa.Table:
    (manifest,) = store.steps()
    return pa.concat_tables(store.read(manifest))


ROWS = 300


class Texts:
    """A fixed source of rows, in batches that do not fit the shards."""

    key = "texts"

    def batches(self):
        rows = [(f"d{i}", "he she her " * (i % 5) + "é") for i in range(ROWS)]
        for start in range(0, ROWS, 31):
            part = rows[start : start + 31]
            yield pa.table({"doc_id": [r[0] for r in part], "text": pa.array([r[1] for r in part], pa.large_string())})


class Keep:
    """Keeps the even numbers; drops the odd ones by reason."""

    name = "keep"
    version = 1

    def __init__(self, offset=0):
        self.offset = offset
        self.calls = 0

    def settings(self):
        return {"offset": self.offset}

    def run(self, rows):
        self.calls += 1
        kept = [x for x in rows["x"].to_pylist() if x % 2 == 0]
        return pa.table({"x": pa.array([x + self.offset for x in kept], pa.int64())}), {
            "odd": rows.num_rows - len(kept)
        }


class Numbers:
    """A source of n numbers in uneven batches."""

    def __init__(self, n, cuts=(3, 10)):
        self.n, self.cuts, self.key = n, cuts, f"numbers-{n}"

    def batches(self):
        edges = [0, *[c for c in self.cuts if c < self.n], self.n]
        for a, b in pairwise(edges):
            yield pa.table({"x": pa.array(range(a, b), pa.int64())})


def test_after_kill_9_at_random_moments_the_same_command_finishes_with_identical_bytes(tmp_path):
    calm, rough, marks = tmp_path / "calm", tmp_path / "rough", tmp_path / "marks"
    marks.mkdir()
    assert start_driver(calm, "", marks, 0).wait() == 0
    rng = random.Random(20)
    killed = 0
    for _ in range(60):
        process = start_driver(rough, "", marks)
        # Somewhere between the start, before anything is written, and a few parts further on.
        until = len(list(rough.rglob("part-*"))) + rng.randint(0, 6)
        while process.poll() is None and len(list(rough.rglob("part-*"))) < until:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.04))
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed += 1
    assert process.returncode == 0
    assert killed >= 5
    assert contents(rough) == contents(calm)


def test_a_step_that_is_finished_is_not_run_again(tmp_path):
    store, stage = Store(tmp_path), Keep()
    first = run_step(store, "evens", stage, Numbers(20), shard_rows=6)
    again = run_step(store, "evens", stage, Numbers(20), shard_rows=6)
    assert first.ran
    assert not again.ran
    assert stage.calls == 4
    assert again.manifest == first.manifest


def test_every_row_in_is_out_or_dropped_by_reason(tmp_path):
    manifest = run_step(Store(tmp_path), "evens", Keep(), Numbers(21), shard_rows=6).manifest
    assert (manifest.rows_in, manifest.rows_out, manifest.dropped) == (21, 11, {"odd": 10})
    totals = json.loads((tmp_path / f"evens-{manifest.key}" / "manifest.json").read_text())["totals"]
    assert totals == {"rows_in": 21, "rows_out": 11, "dropped": {"odd": 10}}


def test_a_stage_that_loses_rows_is_stopped_and_named(tmp_path):
    class Loses(Keep):
        name = "loses"

        def run(self, rows):
            return rows.slice(1), {}

    with pytest.raises(StageError, match="'loses' lost rows: 5 rows in, 4 rows kept"):
        run_step(Store(tmp_path), "x", Loses(), Numbers(5))
    assert Store(tmp_path).steps() == []


def test_a_stage_may_make_several_rows_of_one_if_it_says_which_it_used(tmp_path):
    class Doubles(Keep):
        name = "doubles"

        def rows_used(self, table):
            return table.num_rows // 2

        def run(self, rows):
            return pa.concat_tables([rows, rows]), {}

    manifest = run_step(Store(tmp_path), "x", Doubles(), Numbers(5)).manifest
    assert (manifest.rows_in, manifest.rows_out) == (5, 10)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 40), st.integers(1, 45), st.integers(1, 45), st.lists(st.integers(0, 12), max_size=4), st.randoms()
)
def test_going_on_with_another_shard_size_loses_nothing(n, first, second, cuts, rng):
    store = Store(f"memory://{next(NUMBER)}")
    source = Numbers(n, tuple(sorted(set(cuts) - {0})))
    manifest = run_step(store, "evens", Keep(), source, shard_rows=first).manifest
    lose_half(store, manifest, rng)
    again = run_step(store, "evens", Keep(), source, shard_rows=second).manifest
    assert again.rows_in == n
    assert [x for t in store.read(again) for x in t["x"].to_pylist()] == [x for x in range(n) if x % 2 == 0]


def test_the_size_of_a_shard_does_not_change_the_rows():
    stores = [Store(f"memory://{next(NUMBER)}") for _ in range(3)]
    for store, size in zip(stores, (1, 7, 1000), strict=True):
        run_step(store, "mentions", Annotate(), Texts(), shard_rows=size)
    tables = [rows_of(store) for store in stores]
    assert tables[0].num_rows == ROWS
    assert tables[0].combine_chunks() == tables[1].combine_chunks() == tables[2].combine_chunks()


@pytest.mark.parametrize("where", [10, -10])
def test_a_damaged_part_of_a_finished_step_is_an_error(tmp_path, where):
    store = Store(tmp_path)
    manifest = run_step(store, "evens", Keep(), Numbers(20), shard_rows=6).manifest
    part = tmp_path / f"evens-{manifest.key}" / manifest.parts[1].file
    data = bytearray(part.read_bytes())
    data[where] ^= 1
    part.write_bytes(bytes(data))
    with pytest.raises(StoreError, match="damaged"):
        list(store.read(manifest))


def test_a_part_that_is_cut_short_or_gone_is_an_error(tmp_path):
    store = Store(tmp_path)
    manifest = run_step(store, "evens", Keep(), Numbers(20), shard_rows=6).manifest
    part = tmp_path / f"evens-{manifest.key}" / manifest.parts[0].file
    part.write_bytes(part.read_bytes()[:-5])
    with pytest.raises(StoreError, match="damaged"):
        list(store.read(manifest))
    part.unlink()
    with pytest.raises(StoreError, match="cannot be read"):
        list(store.read(manifest))


def test_a_damaged_part_of_an_unfinished_step_is_an_error_not_a_shorter_result(tmp_path):
    store = Store(tmp_path)
    manifest = run_step(store, "evens", Keep(), Numbers(20), shard_rows=6).manifest
    folder = tmp_path / f"evens-{manifest.key}"
    (folder / "manifest.json").unlink()
    part = folder / manifest.parts[0].file
    part.write_bytes(part.read_bytes()[:50])
    with pytest.raises(StoreError, match="damaged"):
        run_step(store, "evens", Keep(), Numbers(20), shard_rows=6)


def test_any_byte_of_a_part_left_behind_that_is_changed_is_an_error(tmp_path):
    store = Store(tmp_path)
    manifest = run_step(store, "evens", Keep(), Numbers(20), shard_rows=6).manifest
    folder = tmp_path / f"evens-{manifest.key}"
    (folder / "manifest.json").unlink()
    part = folder / manifest.parts[1].file
    whole = part.read_bytes()
    for at in range(len(whole)):
        data = bytearray(whole)
        data[at] ^= 1 << at % 8
        part.write_bytes(bytes(data))
        with pytest.raises(StoreError, match="damaged"):
            run_step(store, "evens", Keep(), Numbers(20), shard_rows=6)
    part.write_bytes(whole)
    assert run_step(store, "evens", Keep(), Numbers(20), shard_rows=6).manifest == manifest


def test_parts_left_behind_that_are_not_one_table_are_an_error(tmp_path):
    store = Store(tmp_path)
    with store.writing("evens", "k") as writer:
        writer.write(pa.table({"x": [1]}), 0, 1, 1, {})
        writer.write(pa.table({"y": [1]}), 1, 2, 1, {})
    with store.writing("evens", "k") as writer, pytest.raises(StoreError, match="the other parts"):
        writer.done()


def test_a_part_under_the_name_of_other_rows_is_an_error(tmp_path):
    store = Store(tmp_path)
    with store.writing("evens", "k") as writer:
        part = writer.write(pa.table({"x": [1]}), 0, 1, 1, {})
        folder = store.folder("evens", "k")
        (folder / part.file).rename(folder / part.file.replace("01-", "02-"))
        with pytest.raises(StoreError, match="row numbers in"):
            writer.done()


def test_a_stage_that_changes_its_columns_is_stopped_and_named(tmp_path):
    class Changes(Keep):
        name = "changes"

        def run(self, rows):
            self.calls += 1
            return rows.rename_columns([f"x{self.calls}"]), {}

    with pytest.raises(StageError, match=r"'changes'.*columns at row 6: they were x1 int64 before and.*x2 int64 now"):
        run_step(Store(tmp_path), "x", Changes(), Numbers(20), shard_rows=6)


def test_a_manifest_that_is_not_what_was_written_is_an_error(tmp_path):
    manifest = run_step(Store(tmp_path), "evens", Keep(), Numbers(20)).manifest
    path = tmp_path / f"evens-{manifest.key}" / "manifest.json"
    good = json.loads(path.read_text())
    changes = [{"parts": 3}, {"parts": [3]}, {"parts": [{"file": "x"}]}, {"columns": []}, {"key": None}, {"totals": {}}]
    for change in changes:
        path.write_text(json.dumps({**good, **change}))
        with pytest.raises(StoreError, match="manifest is damaged"):
            Store(tmp_path).steps()


def test_unfinished_steps_are_told_with_what_is_done(tmp_path):
    store = Store(tmp_path)
    manifest = run_step(store, "evens", Keep(), Numbers(20), shard_rows=6).manifest
    assert store.unfinished() == {}
    (tmp_path / f"evens-{manifest.key}" / "manifest.json").unlink()
    (tmp_path / f"evens-{manifest.key}" / manifest.parts[0].file).unlink()
    assert store.unfinished() == {f"evens-{manifest.key}": {"parts": 3, "rows in": 14}}


def test_a_damaged_manifest_is_an_error(tmp_path):
    manifest = run_step(Store(tmp_path), "evens", Keep(), Numbers(20)).manifest
    path = tmp_path / f"evens-{manifest.key}" / "manifest.json"
    path.write_text(path.read_text()[:40])
    with pytest.raises(StoreError, match="manifest is damaged"):
        run_step(Store(tmp_path), "evens", Keep(), Numbers(20))


def test_what_a_killed_writer_left_half_written_is_cleared_away(tmp_path):
    store = Store(tmp_path)
    folder = store.folder("evens", "k")
    folder.mkdir(parents=True)
    (folder / ".writing-1-part").write_bytes(b"half")
    with store.writing("evens", "k"):
        assert list(folder.iterdir()) == []


def test_two_writers_of_one_step_are_kept_apart(tmp_path):
    store = Store(tmp_path)
    with store.writing("evens", "k"), pytest.raises(StoreError, match="another process"), store.writing("evens", "k"):
        pass


def test_an_input_that_grew_shorter_is_noticed(tmp_path):
    store = Store(tmp_path)
    manifest = run_step(store, "evens", Keep(), Numbers(20), shard_rows=6).manifest
    (tmp_path / f"evens-{manifest.key}" / "manifest.json").unlink()
    shorter = Numbers(9)
    shorter.key = "numbers-20"
    with pytest.raises(StoreError, match=r"cover 20.*input has 9"):
        run_step(store, "evens", Keep(), shorter, shard_rows=6)


def test_the_same_plan_again_runs_nothing_and_a_changed_setting_reruns_only_what_lies_below(tmp_path):
    def plan(offset):
        return Plan(
            {"numbers": Numbers(12)},
            [Step("a", Keep(), "numbers"), Step("b", Keep(offset), "a"), Step("c", Keep(), "b")],
        )

    store = Store(tmp_path)
    assert [o.ran for o in plan(0).run(store).values()] == [True, True, True]
    assert [o.ran for o in plan(0).run(store).values()] == [False, False, False]
    assert [o.ran for o in plan(2).run(store).values()] == [False, True, True]


def test_the_keys_of_a_plan_are_known_before_it_runs(tmp_path):
    plan = Plan({"numbers": Numbers(12)}, [Step("a", Keep(), "numbers"), Step("b", Keep(4), "a")])
    keys = plan.keys()
    outcomes = plan.run(Store(tmp_path))
    assert keys == {name: outcome.manifest.key for name, outcome in outcomes.items()}


def test_a_plan_with_a_wrong_wire_fails_before_anything_runs():
    with pytest.raises(ConfigError, match="did you mean 'numbers'"):
        Plan({"numbers": Numbers(2)}, [Step("a", Keep(), "number")])
    with pytest.raises(ConfigError, match="or sources named 'a'"):
        Plan({"numbers": Numbers(2)}, [Step("a", Keep(), "numbers"), Step("a", Keep(), "numbers")])
    with pytest.raises(ConfigError, match=r"or earlier step 'b'.*the step 'a'"):
        Plan({"numbers": Numbers(2)}, [Step("a", Keep(), "b"), Step("b", Keep(), "a")])


def test_a_finished_step_is_a_source(tmp_path):
    store = Store(tmp_path)
    manifest = run_step(store, "evens", Keep(), Numbers(8)).manifest
    source = FinishedStep(store, manifest)
    assert source.key == manifest.key
    assert [x for t in source.batches() for x in t["x"].to_pylist()] == [0, 2, 4, 6]


def test_an_empty_input_makes_an_empty_finished_step(tmp_path):
    manifest = run_step(Store(tmp_path), "evens", Keep(), Numbers(0)).manifest
    assert manifest.rows_in == manifest.rows_out == 0


def test_parts_are_ordinary_parquet(tmp_path):
    manifest = run_step(Store(tmp_path), "evens", Keep(), Numbers(8)).manifest
    assert pq.read_table(tmp_path / f"evens-{manifest.key}" / manifest.parts[0].file)["x"].to_pylist() == [0, 2, 4, 6]


def test_annotate_keeps_the_contract_of_stages():
    check_stage(Annotate(), pa.concat_tables(Texts().batches()))


def test_an_edit_of_the_same_size_and_time_changes_the_digest(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "SETTLED_S", -1.0)
    path = tmp_path / "f"
    path.write_text("one")
    store = Store(tmp_path / "store")
    first, before = store.digest(path), path.stat()
    for replaced in (False, True):
        if replaced:
            path.unlink()
        path.write_text("two")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
        assert store.digest(path) == digest_file(path) != first


def test_a_digest_is_remembered_only_when_the_last_change_lies_some_seconds_back(tmp_path, monkeypatch):
    path = tmp_path / "f"
    path.write_text("one")
    read = []
    monkeypatch.setattr(store_module, "digest_file", lambda file: read.append(file) or digest_file(file))
    store = Store(tmp_path / "store")
    for settled_after, expected in ((3600.0, 2), (-1.0, 3)):
        monkeypatch.setattr(store_module, "SETTLED_S", settled_after)
        assert store.digest(path) == store.digest(path) == digest_file(path)
        assert len(read) == expected


def test_a_file_has_one_remembered_digest(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "SETTLED_S", -1.0)
    path = tmp_path / "f"
    store = Store(tmp_path / "store")
    for text in ("one", "three"):
        path.write_text(text)
        store.digest(path)
    assert list(json.loads((tmp_path / "store" / "digests.json").read_text()).values()) == [digest_file(path)]


def test_digests_are_remembered_until_the_file_changes(tmp_path):
    store, path = Store(tmp_path / "s"), tmp_path / "x"
    path.write_text("one")
    first = store.digest(path)
    assert store.digest(path) == first
    path.write_text("other")
    assert store.digest(path) != first
