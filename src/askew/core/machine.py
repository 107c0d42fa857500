"""What this process may use of the machine."""

from __future__ import annotations

import os
from pathlib import Path


def cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """How many threads to start: as many as there are cores, unless NUMBA_NUM_THREADS says otherwise.

    Several workers on one machine are each told their share by it.
    """
    said = os.environ.get("NUMBA_NUM_THREADS", "")
    return int(said) if said.isdigit() and int(said) else cores()


def home() -> Path | None:
    """The home folder, or None: a container may run under a number that no user has."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def cache_folders() -> list[Path]:
    """Where files that can be made again may be kept, best first; none of them need be writable.

    The variable ASKEW_CACHE names the folder; without it, it is ``askew`` in the user's cache folder.
    """
    if own := os.environ.get("ASKEW_CACHE"):
        return [Path(own)]
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return [Path(shared, "askew")]
    place = home()
    return [] if place is None else [place / ".cache" / "askew"]
