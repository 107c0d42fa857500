"""The resources of the machine that this process may use: cores, threads, home and cache folders."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """How many threads to start: the value of NUMBA_NUM_THREADS if it is set, otherwise the number of cores.

    If several workers share a machine, this variable gives each worker its number of threads.
    """
    setting = os.environ.get("NUMBA_NUM_THREADS", "")
    return int(setting) if setting.isdigit() and int(setting) else cores()


def in_order(
    pool: ThreadPoolExecutor, work: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Iterator[Result]:
    """Yield the results in the order of the items, with at most ``ahead`` tasks in progress to bound memory use."""
    waiting: deque[Future[Result]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def home() -> Path | None:
    """The home folder. It is None in a container that runs under a user id without a user."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def cache_folders() -> list[Path]:
    """The folders for cached files, in order of preference. They may not be writable.

    The environment variable ASKEW_CACHE sets the folder. The default is ``askew`` in the user's cache folder.
    """
    if own := os.environ.get("ASKEW_CACHE"):
        return [Path(own)]
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return [Path(shared, "askew")]
    place = home()
    return [] if place is None else [place / ".cache" / "askew"]
