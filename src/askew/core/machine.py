"""What this process may use of the machine."""

from __future__ import annotations

import os


def cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """How many threads to start: as many as there are cores, unless NUMBA_NUM_THREADS says otherwise.

    Several workers on one machine are each told their share by it.
    """
    said = os.environ.get("NUMBA_NUM_THREADS", "")
    return int(said) if said.isdigit() and int(said) else cores()
