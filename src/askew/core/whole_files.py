"""Atomic writes: a file is written under a temporary name and then renamed, so that even after a power cut it is
complete or absent.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HALF_WRITTEN = ".writing-"


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary file in the same folder. It is renamed to ``path`` on success and deleted on failure."""
    temporary = path.with_name(f"{HALF_WRITTEN}{os.getpid()}-{secrets.token_hex(4)}-{path.name}")
    try:
        yield temporary
        flush(temporary)
        temporary.replace(path)
        flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file atomically, a text as UTF-8. Missing folders are created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as temporary:
        temporary.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)


def flush(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is written to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
