"""Worker processes on this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import cast

import pyarrow as pa

from askew.core.errors import ConfigError
from askew.core.machine import cores
from askew.engine.pool import Lost, Packed, PoolWorker, WorkerPool
from askew.engine.shard import Columns
from askew.engine.worker import Answer, Worker, pack, thread_settings

_GOODBYE = 5.0  # seconds


class Local(PoolWorker):
    """A process and the pipe to it."""

    def __init__(self, process: BaseProcess, pipe: Connection) -> None:
        self.process, self.pipe = process, pipe


class Workers(WorkerPool[Local]):
    """Runs shards in processes of this machine, each with its own copy of the stage.

    ``threads`` is how many threads the libraries of one worker may use: a fair share of the cores, unless it is given
    or the environment says it already. Use as ``with Workers(4) as workers: plan.run(store, executor=workers)``, in a
    program under ``if __name__ == "__main__":``, for a worker reads the program's file too.
    """

    def __init__(self, count: int, threads: int | None = None) -> None:
        if count < 1 or (threads is not None and threads < 1):
            raise ConfigError(f"expected 1 or more workers and threads, found {count} and {threads}")
        super().__init__()
        self._count = count
        share = thread_settings(threads or max(1, cores() // count))
        self._environment = {name: n for name, n in share.items() if threads or name not in os.environ}

    @property
    def count(self) -> int:
        """As many as were asked for."""
        return self._count

    def start(self) -> Local:
        """Begin a process from nothing: one that is forked would share locks and threads that are not its own."""
        context = multiprocessing.get_context("spawn")
        # The first process starts Python's tracker of resources as well, and that lets interrupts through again.
        resource_tracker.ensure_running()
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs,), daemon=True)
        with _environment(self._environment), _no_interrupts():
            process.start()
        # Only the worker holds its end now: when it dies, ours says so.
        theirs.close()
        return Local(process, ours)

    def pack(self, rows: pa.Table) -> pa.Buffer:
        """The rows as bytes."""
        return pack(rows)

    def send_job(self, worker: Local, job: bytes) -> None:
        """Down the pipe. If the worker is dead the pipe will say so when it is read."""
        with contextlib.suppress(OSError):
            worker.pipe.send(job)

    def send_shard(self, worker: Local, shard: Packed, columns: Columns) -> None:
        """Down the pipe: the worker is waiting there, so this does not hold up the others."""
        with contextlib.suppress(OSError):
            worker.pipe.send((shard.start, columns))
            worker.pipe.send_bytes(memoryview(shard.rows))

    def answers(self, workers: Sequence[Local], timeout: float | None) -> Iterator[tuple[Local, Answer | Lost]]:
        """From every pipe that has something, also an end."""
        by_pipe = {worker.pipe: worker for worker in workers}
        for pipe in wait(list(by_pipe), timeout):
            worker = by_pipe[cast(Connection, pipe)]
            try:
                answer: Answer | Lost = worker.pipe.recv()
            except (EOFError, OSError):
                worker.process.join(5)
                answer = Lost(_how(worker.process.exitcode))
            yield worker, answer

    def stop(self, worker: Local) -> None:
        """An idle one leaves when its pipe ends, and puts away what its libraries hold (locks of progress bars, say).
        Any other is killed: what it has written is whole, and it has nothing else to lose.
        """
        worker.pipe.close()
        if worker.idle:
            worker.process.join(_GOODBYE)
        if worker.process.exitcode is None:
            worker.process.kill()
        worker.process.join()
        worker.process.close()


def _how(code: int | None) -> str:
    if code == -signal.SIGKILL:
        return "killed from outside, often for want of memory"
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """A new process takes the environment as it is when it begins."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal; a worker leaves it to the driver. What is blocked is inherited."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve(pipe: Connection) -> None:
    """The life of a worker process: open steps and run shards until the driver is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_the_driver, daemon=True).start()
    worker = Worker()
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            message = pipe.recv()
            pipe.send(worker.open(message) if isinstance(message, bytes) else _run(worker, pipe, *message))


def _run(worker: Worker, pipe: Connection, start: int, columns: Columns) -> Answer:
    return worker.run(start, pipe.recv_bytes(), columns)


def _leave_with_the_driver() -> None:
    """A driver that was killed cannot say goodbye; a worker in the middle of a shard must not go on without it."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)
