"""Files that are there whole or not at all, also after a power cut: written under another name, then renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HALF_WRITTEN = ".writing-"


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A file to write to, in the same folder, which becomes ``path`` when all went well and disappears when not."""
    temporary = path.with_name(f"{HALF_WRITTEN}{os.getpid()}-{secrets.token_hex(4)}-{path.name}")
    try:
        yield temporary
        flush(temporary)
        temporary.replace(path)
        flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file, a text as UTF-8; folders that are missing are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as temporary:
        temporary.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)


def flush(path: Path) -> None:
    """Wait until a file or the names in a folder are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
