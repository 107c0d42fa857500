"""The process of ``askew.web.lane``: reads jobs from standard input and writes results to standard output."""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Callable
from functools import cache

from askew.app.explore.opening import Opening, open_sources
from askew.core.errors import AskewError
from askew.web.guard import place_of
from askew.web.lane import Opened, read_message, send_message
from askew.web.problems import Problem, problem_of

_NICE = 5
# The service stops late jobs. If the service was killed, the process ends itself after this many more seconds.
_LATER = 10
Answer = tuple[str, object]


def main() -> None:
    """Run jobs until the input ends."""
    os.nice(_NICE)
    # Send the output of libraries to stderr, so that it does not mix with the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sources, seconds = read_message(sys.stdin.buffer)
    send_message(answers, ("done", None))

    @cache
    def opened() -> Opening:
        return open_sources(sources)

    while True:
        try:
            job = read_message(sys.stdin.buffer)
        except EOFError:
            return
        signal.alarm(math.ceil(seconds) + _LATER)
        send_message(answers, _done(opened, *job))
        signal.alarm(0)


def _done(opened: Opened, job: Callable[..., object], given: list[object], named: dict[str, object]) -> Answer:
    try:
        return "done", job(opened, *given, **named)
    except (Problem, AskewError) as error:
        problem = problem_of(error) if isinstance(error, AskewError) else error
        return "problem", (problem.status, problem.code, problem.message)
    except Exception as error:
        # The message may contain a query, so it is not sent.
        return "error", f"{type(error).__name__} at {place_of(error)}"


if __name__ == "__main__":
    main()
