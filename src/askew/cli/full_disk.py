"""The error message for a full disk. Libraries report a full disk in different ways, often without a path."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT)
_SAID = ("No space left on device", "Disk quota exceeded")
_WRITTEN = ("--out", "--html", "--store", "--copy")
_LITTLE = 1 << 20


def is_full(error: BaseException) -> bool:
    """Whether an error says that a disk is full, in its number or in its text."""
    return getattr(error, "errno", None) in _FULL or any(said in str(error) for said in _SAID)


def describe(error: BaseException, arguments: Sequence[str], known: str | None = None) -> str:
    """Return one line that says which disk is full and what to do."""
    named = getattr(error, "filename", None)
    where = known or (named if isinstance(named, str) else _full_place(arguments))
    return (
        f"{where}: no space left on the disk; free some and run the same command again, or give another folder with "
        "--out or --store. Incomplete files are never used"
    )


def _full_place(arguments: Sequence[str]) -> str:
    """Of the places that the command writes to, return the first one that has almost no free space."""
    words = [part for word in arguments for part in word.split("=", 1)]
    written = [value for option, value in pairwise(words) if option in _WRITTEN]
    places = [*written, ".", tempfile.gettempdir()]
    return next((place for place in places if _free(Path(place)) < _LITTLE), places[0])


def _free(place: Path) -> int:
    there = next((folder for folder in (place, *place.absolute().parents) if folder.exists()), Path("/"))
    try:
        return shutil.disk_usage(there).free
    except OSError:
        return _LITTLE
