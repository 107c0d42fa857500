"""A disk cache for compiled functions. It raises no error if no folder is writable.

By default Numba stores compiled code beside the source file, and fails if neither that folder nor the home folder is
writable. This cache is in ``ASKEW_CACHE``, else ``NUMBA_CACHE_DIR``, else the user's cache folder. Its subfolders are
named after the version of askew and a hash of the sources, so installations with the same sources share compiled code.
A read-only folder, as in a container image, can be used too.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core import event
from numba.core.caching import FunctionCache

from askew.core.machine import cache_folders
from askew.core.version import __version__

LONGEST = 60  # seconds: the longest compile time of a command, on a slow machine
_SLOW = 2.0  # seconds
_LOG = logging.getLogger("askew")
# If several worker processes compile the same function, only one of them logs the notice.
_TALKERS = ("MainProcess", "SpawnProcess-1")


def attach(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Cache a compiled function on disk, if there is a folder for it."""
    with contextlib.suppress(RuntimeError, OSError):  # Numba's settings may allow no folder; sources may be gone
        dispatcher._cache = _Cache(function)


def root() -> Path | None:
    """Return the cache folder of this version of askew, or None if no folder is usable."""
    numba = os.environ.get("NUMBA_CACHE_DIR")
    first = [Path(numba, "askew")] if numba and not os.environ.get("ASKEW_CACHE") else cache_folders()
    return _root(*first)


@functools.cache
def _root(*folders: Path) -> Path | None:
    for folder in (folder.absolute() / "compiled" / __version__ for folder in folders):
        if _writable(folder) or folder.is_dir():
            return folder
    return None


@functools.cache
def _folder(root: Path, package: Path) -> Path:
    # Hash the sources of a folder and of this file's folder: a compiled function may call functions in both.
    digest = hashlib.sha256()
    for path in [*sorted(package.glob("*.py")), *sorted(Path(__file__).parent.glob("*.py"))]:
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    folder = root / f"{package.name}-{digest.hexdigest()[:16]}"
    _writable(folder)  # if the folder cannot be created, the cache stays empty
    return folder


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


class _Locator:
    """Tells Numba where a compiled function is stored, and whether the stored code is out of date."""

    def __init__(self, function: Callable[..., Any], file: str, folder: Path) -> None:
        self._py_file = file
        self._line, self._folder = function.__code__.co_firstlineno, folder

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> _Locator | None:
        """Make a locator, or return None if there is no cache folder."""
        place = root()
        return None if place is None else cls(function, file, _folder(place, Path(file).parent))

    def ensure_cache_path(self) -> None:
        """Do nothing. The folder was created before; if it is gone, saving fails and the error is ignored."""

    def get_cache_path(self) -> str:
        """Return the cache folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Return the name of the folder, which contains a hash of the sources."""
        return self._folder.name

    def get_disambiguator(self) -> str:
        """Return the line number, because two functions of a file may have the same name."""
        return str(self._line)


class _Kept(FunctionCache._impl_class):  # type: ignore[misc]
    _locator_classes = [_Locator]


class _Cache(FunctionCache):  # type: ignore[misc]
    """A disk cache. If it fails, the function is compiled but not cached."""

    _impl_class = _Kept

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load cached code. If it is damaged, delete it and return None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever unpickling a damaged file may raise
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store compiled code. Errors of the file system are ignored."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


class Notice(event.Listener):  # type: ignore[misc]
    """Logs once that compiling takes a while, and where the compiled code is stored."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._depth, self._since, self._before, self._said = clock, 0, 0.0, 0.0, False

    def on_start(self, event: Any) -> None:
        """Handle the start of a compilation, which may be part of the compilation of a caller."""
        self._since = self._since if self._depth else self._clock()
        self._depth += 1
        self._look()

    def on_end(self, event: Any) -> None:
        """Handle the end of a compilation."""
        self._look()
        self._depth -= 1
        if not self._depth:
            self._before += self._clock() - self._since

    def _look(self) -> None:
        if self._said or self._before + self._clock() - self._since < _SLOW:
            return
        self._said = True
        if multiprocessing.current_process().name in _TALKERS and os.environ.get("ASKEW_COMPILE_NOTE") != "off":
            place = root()
            where = f"the compiled code is cached in {place}"
            if place is None or not os.access(place, os.W_OK):
                where = "the compiled code is not cached: set ASKEW_CACHE to a writable folder"
            _LOG.warning("askew: compiling functions for the first use, which takes up to %d s; %s", LONGEST, where)


event.register("numba:compile", Notice())
