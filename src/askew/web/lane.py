"""Whole runs are measured by a process of their own: searches do not wait for them, and what lasts too long is ended.

The process starts with the first job, has a lower priority than the service, does one job after the other, and leaves
when it has had nothing to do for a while. A job is a function of a module, called with what is open and with arguments.
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
    """A job ended with an error that is none of the user's: its kind and where it happened."""


class Lane:
    """Does jobs in a process apart. ``waiting`` of them may wait; each has ``seconds`` once it is begun."""

    def __init__(self, sources: Sources, waiting: int, seconds: float) -> None:
        self._sources, self._most, self._seconds = sources, 1 + waiting, seconds
        # Its one thread is the queue: it sends a job to the process and waits for the answer.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="askew-lane")
        self._process: subprocess.Popen[bytes] | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self.taken = 0

    async def run(self, job: Callable[Concatenate[Opened, P], T], *given: P.args, **named: P.kwargs) -> T:
        """The result of a job, or Busy at once where too many wait."""
        if self.taken >= self._most:
            raise Busy(5 * self.taken)
        self.taken += 1
        if self._leaving is not None:
            self._leaving.cancel()
        future = asyncio.get_running_loop().run_in_executor(self._pool, self._do, (job, given, named))
        # What was begun is finished even if whoever asked has left: half a message would spoil the next.
        future.add_done_callback(self._ended)
        return cast(T, await asyncio.shield(future))

    def _ended(self, future: asyncio.Future[Any]) -> None:
        self.taken -= 1
        if not future.cancelled():
            # Whoever waited has heard of an error; if nobody waits any more, nobody needs to.
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
            return Problem(503, "too_long", f"measuring took longer than {self._seconds:g} s and was ended; send fewer "
                           "queries or documents, or use askew measure on your own machine")  # fmt: skip
        return Problem(503, CODES[503], "the process that measures runs has ended, often for want of memory; send "
                       "fewer queries or documents")  # fmt: skip

    def _start(self) -> subprocess.Popen[bytes]:
        share = thread_settings(max(1, cores() // 2))
        # A group of its own: Ctrl-C in a terminal is for the service, which then ends this process.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "askew.web.lane_process"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            process_group=0, env={**share, **os.environ},
        )  # fmt: skip
        try:
            _asked(self._process, (self._sources, self._seconds))
        except (OSError, EOFError):
            self._stop()
            raise Problem(503, CODES[503], "the process that measures runs did not start; the log says why") from None
        return self._process

    def _stop(self) -> None:
        """End the process; it has nothing to lose."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                # Nobody reads what is left to write.
                with contextlib.suppress(OSError):
                    cast(BinaryIO, stream).close()

    def close(self) -> None:
        """End the process and whatever it does."""
        if self._leaving is not None:
            self._leaving.cancel()
        if self._process is not None:
            self._process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._stop()


def _asked(process: subprocess.Popen[bytes], message: object) -> tuple[str, Any]:
    """Send a message and wait for the answer. The other side is our own process, so its bytes are trusted."""
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
    """The next object; EOFError where there is none."""
    return pickle.loads(_exactly(stream, int.from_bytes(_exactly(stream, _HEAD), "big")))


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
