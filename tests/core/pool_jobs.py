"""Stages, makers and sources that a worker process can import; run as a program, a driver that can be killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import UnknownName
from askew.core.store.ray import RayExecutor
from askew.core.store.steps import Plan, Step, run_step
from askew.core.store.store import Store
from askew.core.store.workers import Workers

ROWS = 240
SIZES = (3, 1, 8, 2, 5, 1, 1, 13, 4, 2)


def contents(root):
    """Everything that belongs to the result; provenance says when and where, and may differ."""
    return {
        str(p.relative_to(root)): p.read_bytes()
        for p in sorted(Path(root).rglob("*"))
        if p.is_file() and ".locks" not in p.parts and p.name != "provenance.json"
    }


def lose_half(store, manifest, rng):
    """As after a crash: no manifest, and some parts are not there."""
    name = f"{manifest.step}-{manifest.key}"
    store.files.delete(f"{name}/manifest.json")
    for part in manifest.parts:
        if rng.random() < 0.5:
            store.files.delete(f"{name}/{part.file}")


def pids_in(marks):
    return {int(path.name) for path in Path(marks).iterdir()}


def alive(pid):
    """Whether a process lives; one that is dead and not yet buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(happened, seconds=120):
    """Wait for something that another process does; an error if it never does."""
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.005)


class Groups:
    """Rows in groups of uneven size, in batches that fit neither the groups nor the shards."""

    key = "groups"

    def __init__(self, rows=ROWS, batch=31):
        groups = [i for n in range(rows) for i in [n] * SIZES[n % len(SIZES)]][:rows]
        text = [f"row {n} é" * (n % 4) for n in range(rows)]
        self.table, self.batch = pa.table({"group": groups, "n": range(rows), "text": text}), batch

    def batches(self):
        for start in range(0, self.table.num_rows, self.batch):
            yield self.table.slice(start, self.batch)


class Halve:
    """Keeps every second row, and marks which process made it."""

    name, version = "halve", 1

    def __init__(self, maker):
        self.maker = maker
        if maker.marks:
            (Path(maker.marks) / str(os.getpid())).write_text(os.environ.get("NUMBA_NUM_THREADS", ""))

    def settings(self):
        return {"offset": self.maker.offset}

    def run(self, rows):
        time.sleep(self.maker.rest)
        self.maker.happens(rows)
        kept = rows.filter(pc.equal(pc.bit_wise_and(rows["n"], 1), 0))
        return kept.set_column(1, "n", pc.add(kept["n"], self.maker.offset)), {"odd": rows.num_rows - kept.num_rows}


class CountGroups(Halve):
    """One row for each group: wrong if a group is cut apart."""

    name, together = "groups", "group"

    def run(self, rows):
        self.maker.happens(rows)
        counts = pc.value_counts(rows["group"])
        table = pa.table({"group": counts.field("values"), "size": counts.field("counts")})
        return table, {"counted": rows.num_rows - table.num_rows}


@dataclass(frozen=True)
class Making:
    """Builds a stage. Whatever is not the offset makes no difference to the result."""

    kind: type = Halve
    offset: int = 0
    marks: str = ""
    rest: float = 0.0

    def __call__(self):
        return self.kind(self)

    def happens(self, rows):
        """What befalls a worker at some row."""


@dataclass(frozen=True)
class Dying(Making):
    """The worker that gets the row dies there: always, or once where a file says that it has been."""

    row: int = 0
    once: str = ""

    def happens(self, rows):
        if self.row in rows["n"].to_pylist() and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class DyingWhenMade(Making):
    """Dies wherever it is made but in one process."""

    driver: int = 0

    def __call__(self):
        if os.getpid() != self.driver:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__()


@dataclass(frozen=True)
class Raising(Making):
    """Raises at some row."""

    error: str = "unknown"
    row: int = 100

    def happens(self, rows):
        if self.row in rows["n"].to_pylist():
            if self.error == "unknown":
                raise UnknownName("lexicon", "gendr", ["gender"])
            if self.error == "exit":
                sys.exit(3)
            raise ValueError("no such thing\nand more")


class Losing(Halve):
    """Loses a row in silence."""

    name = "loses"

    def run(self, rows):
        kept, dropped = super().run(rows)
        return kept.slice(1) if 100 in rows["n"].to_pylist() else kept, dropped


class Changing(Halve):
    """Changes its columns at some row."""

    name = "changes"

    def run(self, rows):
        kept, dropped = super().run(rows)
        return kept.drop_columns(["text"]) if 100 in rows["n"].to_pylist() else kept, dropped


@dataclass(frozen=True)
class Drifting(Making):
    """Makes another stage in a worker than in the driver."""

    driver: int = field(default_factory=os.getpid)

    def __call__(self):
        return Halve(Making(offset=self.offset if os.getpid() == self.driver else 5))


def plan_of(making=None, shard_rows=None, **facts):
    """Two steps: half of the rows, then the groups that they are in."""
    first = making or Making(**facts)
    second = Making(CountGroups, marks=first.marks)
    return Plan(
        {"rows": Groups()},
        [Step("half", first(), "rows", first, shard_rows), Step("groups", second(), "half", second, shard_rows)],
    )


def executor_of(text):
    """``workers:2``, ``ray:ADDRESS``, ``ray``, or nothing for this process."""
    kind, _, rest = text.partition(":")
    return {"workers": lambda: Workers(int(rest)), "ray": lambda: RayExecutor(rest or None, 2), "": lambda: None}[
        kind
    ]()


def run(root, making, executor=None, shard_rows=7, **more):
    """One step of a stage."""
    return run_step(Store(root), "step", making(), Groups(), shard_rows, executor=executor, maker=making, **more)


def killer(root, marks, rng, times):
    """Kills one of the workers, some parts later another, and so on.

    By then the shard of the last one is done: it goes first, and a shard may cost two workers only.
    """

    def kill():
        for _ in range(times):
            done = len(list(root.rglob("part-*"))) + rng.randint(3, 6)
            wait_for(lambda done=done: len(list(root.rglob("part-*"))) >= done and pids_in(marks))
            pid = rng.choice(sorted(pids_in(marks)))
            (marks / str(pid)).unlink()
            os.kill(pid, signal.SIGKILL)

    return threading.Thread(target=kill)


def start_driver(root, executor, marks, rest=0.02, once="", **more):
    """This file as a program."""
    command = [sys.executable, __file__, root, executor, marks, str(rest), once]
    return subprocess.Popen(command, text=True, **more)


if __name__ == "__main__":
    root, executor, marks, rest, once = sys.argv[1:]
    running = executor_of(executor)
    making = Dying(marks=marks, rest=float(rest), row=30, once=once) if once else Making(marks=marks, rest=float(rest))
    try:
        plan_of(making).run(Store(root), shard_rows=7, executor=running)
    finally:
        if running is not None:
            running.close()
