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

    ``threads`` is the number of threads that the libraries of one worker may use. The default is an equal share of the
    cores; variables that are set in the environment are kept. Use it as
    ``with Workers(4) as workers: plan.run(store, executor=workers)``. In a script, put this under
    ``if __name__ == "__main__":``, because each worker imports the script.
    """

    def __init__(self, count: int, threads: int | None = None) -> None:
        if count < 1 or (threads is not None and threads < 1):
            raise ConfigError(f"expected 1 or more workers and threads, found {count} workers and {threads} threads")
        super().__init__()
        self._count = count
        share = thread_settings(threads or max(1, cores() // count))
        self._environment = {name: n for name, n in share.items() if threads or name not in os.environ}

    @property
    def count(self) -> int:
        """The requested number of workers."""
        return self._count

    def start(self) -> Local:
        """Start a new process. A forked process would share locks and threads with this one."""
        context = multiprocessing.get_context("spawn")
        # The first process would also start Python's resource tracker, which unblocks interrupts.
        resource_tracker.ensure_running()
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs,), daemon=True)
        with _signals_deferred(), _environment(self._environment), _interrupts_blocked():
            process.start()
        # Only the worker has this end open now, so reading our end fails when the worker dies.
        theirs.close()
        return Local(process, ours)

    def pack(self, rows: pa.Table) -> pa.Buffer:
        """Serialize the rows."""
        return pack(rows)

    def send_job(self, worker: Local, job: bytes) -> None:
        """Send a job through the pipe. If the worker is dead, reading the pipe will report it."""
        with contextlib.suppress(OSError):
            worker.pipe.send(job)

    def send_shard(self, worker: Local, shard: Packed, columns: Columns) -> None:
        """Send a shard through the pipe. The worker is waiting to receive, so this does not block the driver."""
        with contextlib.suppress(OSError):
            worker.pipe.send((shard.start, columns))
            worker.pipe.send_bytes(memoryview(shard.rows))

    def answers(self, workers: Sequence[Local], timeout: float | None) -> Iterator[tuple[Local, Answer | Lost]]:
        """Yield the answer of every pipe that is ready, including closed ones."""
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
        """Stop a worker. An idle worker exits when its pipe is closed, and its libraries release their resources.

        A busy worker is killed: the parts that it has written are complete.
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
        return "killed by another process or the system, often because memory ran out"
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while a process starts. A new process copies the environment."""
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
def _signals_deferred() -> Iterator[None]:
    """Act on Ctrl-C and SIGTERM only once a process has started.

    A new process reads what it has to do from its driver. If the driver were interrupted before it has written that,
    the new process would print a traceback. To block the signals would not be enough: any thread can receive one, and
    Python handles it in the main thread.
    """
    if threading.current_thread() is not threading.main_thread():  # signals do not interrupt other threads
        yield
        return
    received: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    changed = [number for number, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    for number in changed:
        signal.signal(number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, before[number])
        for arrived in received:
            signal.raise_signal(arrived)


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block interrupts while a process starts. Ctrl-C reaches all processes of a terminal, but only the driver acts.

    A new process inherits the blocked signals.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve(pipe: Connection) -> None:
    """The main loop of a worker process: open steps and run shards until the driver closes the pipe."""
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
    """Exit when the driver dies. A killed driver cannot stop a worker that is running a shard."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)
