"""A separate process that measures whole runs, so that searches do not wait and long jobs can be stopped.

The process starts with the first job, has a lower priority than the service, runs one job after the other, and ends
after a period without jobs. A job is a module-level function. Its first argument opens the sources of the service.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Concatenate, ParamSpec, TypeVar, cast

from askew.app.explore.opening import Opening, Sources
from askew.core.machine import cores
from askew.engine.worker import thread_settings
from askew.web.problems import CODES, Problem
from askew.web.work import Busy

T = TypeVar("T")
P = ParamSpec("P")
Opened = Callable[[], Opening]
IDLE_SECONDS = 300.0
_HEAD = 8


class LaneFailed(Exception):
    """A job failed with an internal error. The message has the kind of the error and its place."""


class Lane:
    """Runs jobs in a separate process. At most ``waiting`` jobs wait; each may take ``seconds``."""

    def __init__(self, sources: Sources, waiting: int, seconds: float) -> None:
        self._sources, self._most, self._seconds = sources, 1 + waiting, seconds
        # A single thread is the queue: it sends a job to the process and waits for the answer.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="askew-lane")
        self._process: subprocess.Popen[bytes] | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self.taken = 0

    async def run(self, job: Callable[Concatenate[Opened, P], T], *given: P.args, **named: P.kwargs) -> T:
        """Run a job and return its result. If too many jobs wait, raise Busy at once."""
        if self.taken >= self._most:
            raise Busy(5 * self.taken)
        self.taken += 1
        if self._leaving is not None:
            self._leaving.cancel()
        future = asyncio.get_running_loop().run_in_executor(self._pool, self._do, (job, given, named))
        # A started job is finished even if the client is gone: half a message would corrupt the next one.
        future.add_done_callback(self._ended)
        return cast(T, await asyncio.shield(future))

    def _ended(self, future: asyncio.Future[Any]) -> None:
        self.taken -= 1
        if not future.cancelled():
            # Mark the error as retrieved: a waiting client has received it already.
            future.exception()
        if not self.taken and self._process is not None:
            loop = future.get_loop()
            self._leaving = loop.call_later(IDLE_SECONDS, lambda: loop.run_in_executor(self._pool, self._stop))

    def _do(self, job: tuple[object, ...]) -> object:
        process = self._process or self._start()
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(self._seconds, end)
        timer.start()
        try:
            kind, found = _asked(process, job)
        except (OSError, EOFError):
            self._stop()
            raise self._lost(late.is_set()) from None
        finally:
            timer.cancel()
        if kind == "problem":
            raise Problem(*found)
        if kind == "error":
            raise LaneFailed(found)
        return found

    def _lost(self, late: bool) -> Problem:
        if late:
            return Problem(503, "too_long", f"measuring took longer than {self._seconds:g} s and was stopped; send "
                           "fewer queries or documents, or use askew measure on your own machine")  # fmt: skip
        return Problem(503, CODES[503], "the process that computes the measures has ended, probably because memory ran "
                       "out; send fewer queries or documents")  # fmt: skip

    def _start(self) -> subprocess.Popen[bytes]:
        share = thread_settings(max(1, cores() // 2))
        # A process group of its own: Ctrl-C in a terminal stops the service, which then ends this process.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "askew.web.lane_process"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            process_group=0, env={**share, **os.environ},
        )  # fmt: skip
        try:
            _asked(self._process, (self._sources, self._seconds))
        except (OSError, EOFError):
            self._stop()
            raise Problem(
                503,
                CODES[503],
                "the process that computes the measures did not start; the log of the service has the reason",
            ) from None
        return self._process

    def _stop(self) -> None:
        """End the process. It has no state to save."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                # The process is gone, so buffered data cannot be written.
                with contextlib.suppress(OSError):
                    cast(BinaryIO, stream).close()

    def close(self) -> None:
        """End the process and its current job."""
        if self._leaving is not None:
            self._leaving.cancel()
        if self._process is not None:
            self._process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._stop()


def _asked(process: subprocess.Popen[bytes], message: object) -> tuple[str, Any]:
    """Send a message and wait for the answer. The process is our own, so unpickling its answer is safe."""
    assert process.stdin is not None and process.stdout is not None
    send_message(cast(BinaryIO, process.stdin), message)
    found: tuple[str, Any] = read_message(cast(BinaryIO, process.stdout))
    return found


def send_message(stream: BinaryIO, message: object) -> None:
    """Write an object with its length before it."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(len(data).to_bytes(_HEAD, "big"))
    stream.write(data)
    stream.flush()


def read_message(stream: BinaryIO) -> Any:
    """Read the next object; raise EOFError if there is none."""
    return pickle.loads(_exactly(stream, int.from_bytes(_exactly(stream, _HEAD), "big")))


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
