"""Worker processes on this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

import pyarrow as pa

from askew.core import errors
from askew.core.address import without_secrets
from askew.core.errors import AskewError, ConfigError, StageError, StoreError
from askew.core.machine import cores
from askew.core.protocols import Stage
from askew.core.store.steps import Done, Shard, StepJob, run_shard, step_key
from askew.core.store.store import StepWriter
from askew.core.version import __version__

# The work of a worker in any kind of process: build the stage of a step, and run it on shards.

VERSIONS = {"askew": __version__, "pyarrow": pa.__version__}
# Libraries read these variables at import, so they are set before a worker starts.
_THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
)  # fmt: skip


def thread_settings(threads: int) -> dict[str, str]:
    """The environment variables that limit each library of a worker to this number of threads."""
    return dict.fromkeys(_THREADS, str(threads))


@dataclass(frozen=True)
class Failure:
    """An error in a worker, in a form that can always be pickled."""

    kind: str
    text: str
    facts: dict[str, Any]
    trace: str

    @classmethod
    def of(cls, error: BaseException, where: str) -> Failure:
        """Describe an error: askew's own errors completely, others by their type and first line."""
        trace = without_secrets("".join(traceback.format_exception(error)))
        if isinstance(error, AskewError):
            kind = next(base.__name__ for base in type(error).__mro__ if base.__module__ == errors.__name__)
            values = {
                key: value if isinstance(value, int | float) else str(value) for key, value in error.values.items()
            }
            return cls(kind, str(error), {"code": error.code, "values": values}, trace)
        lines = str(error).splitlines()
        return cls(StageError.__name__, ": ".join([where, type(error).__name__, *lines[:1]]), {}, trace)

    def error(self) -> AskewError:
        """Rebuild the error. Its class is not called, because its constructor may need more than the text."""
        kind: type[AskewError] = getattr(errors, self.kind)
        error = kind.__new__(kind, self.text)
        vars(error).update(self.facts)
        error.add_note(f"in a worker:\n{self.trace}")
        return error


# None: the stage is built, and the worker is ready for shards. A text: the worker has died, and how.
Answer = Done | Failure | str | None


class Worker:
    """Builds the stage of a step once, then runs it on any number of shards. Errors are returned as answers."""

    def __init__(self) -> None:
        self._held: tuple[str, Stage, StepWriter] | None = None

    def open(self, packed: bytes) -> Answer:
        """Build the stage of a step."""
        # Release the stage of the last step first: both stages may be large.
        self._held = None
        where = "a step"
        try:
            job, versions = pickle.loads(packed)  # nosec B301 - from the driver, through a pipe of its own
            where = f"step {job.step!r}"
            self._held = where, _make(job, versions), job.store.writer(job.step, job.key)
        except (Exception, SystemExit) as error:
            return Failure.of(error, f"{where}: a worker could not build its stage")
        return None

    def run(self, start: int, rows: Any) -> Answer:
        """Run the stage on serialized rows."""
        if self._held is None:
            raise RuntimeError("a worker received rows before it received the step to run on them")
        where, stage, writer = self._held
        table = pa.ipc.open_stream(rows).read_all()
        try:
            return run_shard(stage, table, start, writer)
        except (Exception, SystemExit) as error:
            return Failure.of(error, f"{where}, rows {start} to {start + table.num_rows}")


def _make(job: StepJob, versions: dict[str, str]) -> Stage:
    if versions != VERSIONS:
        main, ours = (", ".join(f"{name} {version}" for name, version in have.items()) for have in (versions, VERSIONS))
        differ = f"the main process has {main}, but a worker has {ours}"
        raise StageError(f"step {job.step!r}: {differ}; install the same versions for both", code="other-versions")
    if job.maker is None:
        why = "cannot run in a worker process without a 'maker' (a function that builds its stage there)"
        raise StageError(f"step {job.step!r} {why}; set 'maker', or run without an executor", code="no-maker")
    stage = job.maker()
    if step_key(stage, job.input_key) != job.key:
        differ = f"a worker has other settings of the stage {stage.name!r} than the main process"
        raise StageError(f"step {job.step!r}: {differ}; has a file changed since the start?", code="other-settings")
    return stage


def pack_job(job: StepJob, dumps: Callable[[object], bytes]) -> bytes:
    """Serialize a job, with the versions of the libraries that determine its results."""
    try:
        return dumps((job, VERSIONS))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        why = f"its 'maker' cannot be pickled, so it cannot be sent to a worker process ({error})"
        raise StageError(f"step {job.step!r}: {why}", code="not-picklable") from None


# A supervised worker pool: it distributes shards, collects results, and replaces workers that die.

# After this many worker deaths on the same shard, the step fails.
DEATHS = 3


@dataclass(frozen=True)
class Packed:
    """A serialized shard, ready to be sent to a worker."""

    start: int
    stop: int
    rows: Any


class PoolWorker:
    """The driver's record of a worker: the step that it has open or is opening, and its current shard."""

    job: bytes = b""
    opening = False
    # A worker kept from an earlier step may have died for a reason unrelated to this step.
    kept = False
    shard: Packed | None = None

    @property
    def idle(self) -> bool:
        """Whether the worker waits for work."""
        return not self.opening and self.shard is None


H = TypeVar("H", bound=PoolWorker)


class WorkerPool(ABC, Generic[H]):
    """An executor with workers, which are kept between steps. Subclasses implement one kind of worker."""

    def __init__(self) -> None:
        self.restarts = 0
        self._running: list[H] = []

    @property
    @abstractmethod
    def count(self) -> int:
        """The largest number of workers."""

    @abstractmethod
    def start(self) -> H:
        """Start a worker."""

    @abstractmethod
    def send_job(self, worker: H, job: bytes) -> None:
        """Tell a worker to open a step."""

    @abstractmethod
    def send_shard(self, worker: H, shard: Packed) -> None:
        """Send a shard to an idle worker."""

    @abstractmethod
    def answers(self, workers: Sequence[H], timeout: float | None) -> Iterator[tuple[H, Answer]]:
        """Answers of workers. Waits for the first answer, at most ``timeout`` seconds; None means no limit."""

    @abstractmethod
    def stop(self, worker: H) -> None:
        """Stop a worker at once, even if it is busy."""

    def pack(self, rows: pa.Table) -> Any:
        """Serialize rows for a worker. Of a slice of a larger table only the slice is written."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        return sink.getvalue()

    def dumps(self, value: object) -> bytes:
        """Serialize a value for a worker."""
        return pickle.dumps(value)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop all workers."""
        while self._running:
            self.stop(self._running.pop())

    def run(self, job: StepJob, shards: Iterable[Shard]) -> Generator[Done, None, None]:
        """Yield each shard when it is done."""
        if not job.store.files.shared:
            where = job.store.files.where
            raise StoreError(
                f"store {where}: only this process can read it; workers need a shared one", code="not-shared"
            )
        supervision = _Supervision(self, self._running, job)
        whole = False
        try:
            yield from supervision.run(iter(shards))
            whole = True
        finally:
            # A part is written completely or not at all, so a worker can be stopped at any moment.
            unfinished = [worker for worker in self._running if not whole or not worker.idle]
            for worker in sorted(unfinished, key=lambda worker: worker.idle):
                self._running.remove(worker)
                self.stop(worker)


class _Supervision(Generic[H]):
    def __init__(self, pool: WorkerPool[H], workers: list[H], job: StepJob) -> None:
        self._pool, self._running = pool, workers
        self._step, self._job = job.step, pack_job(job, pool.dumps)
        self._waiting: deque[Packed] = deque()
        self._deaths: Counter[int | None] = Counter()

    def run(self, shards: Iterator[Shard]) -> Iterator[Done]:
        more = True
        while more or self._waiting or any(worker.shard for worker in self._running):
            self._hand_out()
            fetching = more and len(self._waiting) < self._pool.count
            if fetching and (shard := next(shards, None)) is not None:
                start, rows = shard
                self._waiting.append(Packed(start, start + rows.num_rows, self._pool.pack(rows)))
            elif fetching:
                more = False
            yield from self._listen(0 if fetching else None)

    def _hand_out(self) -> None:
        """Send waiting shards to idle workers. Let more workers open the step if shards are left."""
        for worker in self._running:
            if self._waiting and worker.idle and worker.job == self._job:
                worker.shard = self._waiting.popleft()
                self._pool.send_shard(worker, worker.shard)
        missing = len(self._waiting) - sum(worker.opening for worker in self._running)
        others = [worker for worker in self._running if worker.idle and worker.job != self._job][: max(0, missing)]
        for _ in range(min(missing - len(others), self._pool.count - len(self._running))):
            others.append(self._pool.start())
            self._running.append(others[-1])
        for worker in others:
            worker.kept, worker.job, worker.opening = bool(worker.job), self._job, True
            self._pool.send_job(worker, self._job)

    def _listen(self, timeout: float | None) -> Iterator[Done]:
        busy = [worker for worker in self._running if not worker.idle]
        for worker, answer in self._pool.answers(busy, timeout) if busy else ():
            if isinstance(answer, str):
                self._retire(worker, answer)
            elif isinstance(answer, Failure):
                raise answer.error()
            elif isinstance(answer, Done):
                worker.shard = None
                yield answer
            else:
                worker.opening = worker.kept = False

    def _retire(self, worker: H, death: str) -> None:
        """Handle the death of a worker. Its shard is sent again, unless too many workers have died on it."""
        self._running.remove(worker)
        self._pool.stop(worker)
        self._pool.restarts += 1
        shard = worker.shard
        about = None if shard is None else shard.start
        self._deaths[about] += not worker.kept
        if self._deaths[about] >= DEATHS:
            at = "before they read any rows" if shard is None else f"on rows {shard.start} to {shard.stop}"
            hint = "if memory is short, try fewer workers or smaller shards"
            rows = None if shard is None else (shard.start, shard.stop)
            message = f"step {self._step!r}: {DEATHS} workers died {at} ({death}); {hint}"
            raise StageError(message, code="deaths", rows=rows)
        if shard is not None:
            self._waiting.appendleft(shard)


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

    # The seconds that an idle worker has to exit; then it is killed. None: as long as it takes.
    goodbye: float | None = 5.0

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
        # Ctrl-C reaches all processes of a terminal, but only the driver acts: a new process inherits blocked signals.
        with _signals_deferred(), _environment(self._environment):
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        # Only the worker has this end open now, so reading our end fails when the worker dies.
        theirs.close()
        return Local(process, ours)

    def send_job(self, worker: Local, job: bytes) -> None:
        """Send a job through the pipe. If the worker is dead, reading the pipe will report it."""
        with contextlib.suppress(OSError):
            worker.pipe.send(job)

    def send_shard(self, worker: Local, shard: Packed) -> None:
        """Send a shard through the pipe. The worker is waiting to receive, so this does not block the driver."""
        with contextlib.suppress(OSError):
            worker.pipe.send(shard.start)
            worker.pipe.send_bytes(memoryview(shard.rows))

    def answers(self, workers: Sequence[Local], timeout: float | None) -> Iterator[tuple[Local, Answer]]:
        """Yield the answer of every pipe that is ready, including closed ones."""
        by_pipe = {worker.pipe: worker for worker in workers}
        for pipe in wait(list(by_pipe), timeout):
            worker = by_pipe[cast(Connection, pipe)]
            try:
                answer: Answer = worker.pipe.recv()
            except (EOFError, OSError):
                worker.process.join(5)
                code = worker.process.exitcode
                how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
                killed = "killed by another process or the system, often because memory ran out"
                answer = killed if code == -signal.SIGKILL else how
            yield worker, answer

    def stop(self, worker: Local) -> None:
        """Stop a worker. An idle worker exits when its pipe is closed, and its libraries release their resources.

        A busy worker is killed: the parts that it has written are complete.
        """
        worker.pipe.close()
        if worker.idle:
            worker.process.join(self.goodbye)
        if worker.process.exitcode is None:
            worker.process.kill()
        worker.process.join()
        worker.process.close()


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
            # The signal is not raised again, because the program would count it as a second one.
            handler = before[signal.Signals(arrived)]
            handler(arrived, None) if callable(handler) else signal.raise_signal(arrived)


def serve(pipe: Connection) -> None:
    """The main loop of a worker process: open steps and run shards until the driver closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_the_driver, daemon=True).start()
    worker = Worker()
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            message = pipe.recv()
            if isinstance(message, bytes):
                pipe.send(worker.open(message))
            else:
                pipe.send(worker.run(message, pipe.recv_bytes()))


def _leave_with_the_driver() -> None:
    """Exit when the driver dies. A killed driver cannot stop a worker that is running a shard."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)
