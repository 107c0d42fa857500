"""A separate process that measures whole runs, so that searches do not wait and long jobs can be stopped.

The process starts with the first job, has a lower priority than the service, runs one job after the other, and ends
after a period without jobs. A job is a module-level function. Its first argument opens the sources of the service.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from multiprocessing.connection import Connection
from typing import Concatenate, ParamSpec, TypeVar, cast

from askew.core.errors import AskewError
from askew.core.machine import cores
from askew.core.store.workers import thread_settings
from askew.ui.explorer.opening import Opening, Sources, open_sources
from askew.ui.web.replies import Problem, place_of, problem_of
from askew.ui.web.work import Work

T = TypeVar("T")
P = ParamSpec("P")
Opened = Callable[[], Opening]
IDLE_SECONDS = 300.0
_NICE = 5
# The service stops late jobs. If the service was killed, the process ends itself after this many more seconds.
_LATER = 10


class LaneFailed(Exception):
    """A job failed with an internal error. The message has the kind of the error and its place."""


class Lane:
    """Runs jobs in a separate process. At most ``waiting`` jobs wait; each may take ``seconds``."""

    def __init__(self, sources: Sources, waiting: int, seconds: float) -> None:
        self._sources, self._seconds = sources, seconds
        # The single thread of the queue sends a job to the process and waits for the answer.
        self._queue = Work(1, waiting)
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    async def run(self, job: Callable[Concatenate[Opened, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a job and return its result. If too many jobs wait, raise Busy at once."""
        # A started job is finished even if the client is gone: its answer would be taken for that of the next one.
        return cast(T, await self._queue.run(partial(self._do, (job, arguments, named))))

    @property
    def taken(self) -> int:
        """The number of jobs that run or wait."""
        return self._queue.taken

    def _do(self, job: tuple[object, ...]) -> object:
        if self._process is not None and self._process.poll() == 0:
            # The process had no job for some time, and has ended.
            self._stop()
        try:
            pipe = self._pipe or self._start()
            pipe.send(job)
            if not pipe.poll(self._seconds):
                self._stop()
                raise Problem(
                    503,
                    f"measuring took longer than {self._seconds:g} s and was stopped; send fewer queries or documents, "
                    "or use askew measure on your own machine",
                    "too_long",
                )
            # The process is our own, so unpickling its answer is safe.
            answer = pipe.recv()
        except (OSError, EOFError):
            self._stop()
            raise Problem(
                503,
                "the process that computes the measures has ended, probably because memory ran out; send fewer queries "
                "or documents",
            ) from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _start(self) -> Connection:
        self._pipe, theirs = multiprocessing.Pipe()
        # Not a process of multiprocessing, which would import the script of the user again. A process group of its own:
        # Ctrl-C in a terminal stops the service, which then ends this process. Its output must not mix with ours.
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from askew.ui.web.lane import work; work({theirs.fileno()})"], stdout=2,
                pass_fds=[theirs.fileno()], process_group=0,
                env={**thread_settings(max(1, cores() // 2)), **os.environ},
            )  # fmt: skip
        self._pipe.send((self._sources, self._seconds))
        # Imports take seconds, which are not counted as those of the first job.
        self._pipe.recv()
        return self._pipe

    def _stop(self) -> None:
        """End the process. It has no state to save."""
        process, pipe, self._process, self._pipe = self._process, self._pipe, None, None
        if process is not None and pipe is not None:
            process.kill()
            process.wait()
            pipe.close()

    def close(self) -> None:
        """End the process and its current job."""
        if self._process is not None:
            self._process.kill()
        self._queue.close()
        self._stop()


def work(descriptor: int) -> None:
    """Run jobs in the process until the pipe is closed, or no job arrives for some time."""
    os.nice(_NICE)
    pipe: Connection = Connection(descriptor)
    sources, seconds = pipe.recv()
    opened = cache(partial(open_sources, sources))
    pipe.send("ready")
    while pipe.poll(IDLE_SECONDS):
        try:
            job, arguments, named = pipe.recv()
        except EOFError:
            return
        signal.alarm(math.ceil(seconds) + _LATER)
        try:
            answer = job(opened, *arguments, **named)
        except Problem as problem:
            answer = problem
        except AskewError as error:
            answer = problem_of(error)
        except Exception as error:
            # The message may contain a query, so it is not sent.
            answer = LaneFailed(f"{type(error).__name__} at {place_of(error)}")
        pipe.send(answer)
        signal.alarm(0)
