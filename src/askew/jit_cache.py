"""Compiled loops on disk: kept in a folder of the user's, and no error where no folder is writable.

Numba keeps what it compiles beside the source, and gives up where neither that folder nor the home can be written.
Here the folder is ``ASKEW_CACHE``, else ``NUMBA_CACHE_DIR``, else the user's cache folder. Below it, a folder is named
after the version and the content of the sources, so installations of the same askew share it wherever they are. A
folder that can only be read, as in an image of a container, serves as well.
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

LONGEST = 60  # seconds: what a command compiles at most, on a slow machine
_SLOW = 2.0  # seconds
_LOG = logging.getLogger("askew")
# Of several workers that compile the same at the same time, one says so.
_TALKERS = ("MainProcess", "SpawnProcess-1")


def attach(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Have a compiled function kept on disk, where there is a folder for it."""
    with contextlib.suppress(RuntimeError, OSError):  # Numba's own settings may leave no place, and sources may be gone
        dispatcher._cache = _Cache(function)


def root() -> Path | None:
    """The folder of this version, below which everything is kept; None where no folder will do."""
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
    folder = root / f"{package.name}-{_digest(package)}"
    _writable(folder)  # where it cannot be made, nothing is found in it and nothing kept
    return folder


def _digest(package: Path) -> str:
    """Names the sources of a folder. A loop calls others of its folder and of this one: its own file is not enough."""
    digest = hashlib.sha256()
    for path in [*sorted(package.glob("*.py")), *sorted(Path(__file__).parent.glob("*.py"))]:
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


class _Locator:
    """Tells Numba where a function is kept, and when what is kept is out of date."""

    def __init__(self, function: Callable[..., Any], file: str, folder: Path) -> None:
        self._py_file = file
        self._line, self._folder = function.__code__.co_firstlineno, folder

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> _Locator | None:
        """A locator, or None where nothing can be kept."""
        place = root()
        return None if place is None else cls(function, file, _folder(place, Path(file).parent))

    def ensure_cache_path(self) -> None:
        """It was looked for before; where it has gone since, saving fails and is passed over."""

    def get_cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """The folder is named after the sources."""
        return self._folder.name

    def get_disambiguator(self) -> str:
        """Two functions of a file may have one name."""
        return str(self._line)


class _Kept(FunctionCache._impl_class):  # type: ignore[misc]
    _locator_classes = [_Locator]


class _Cache(FunctionCache):  # type: ignore[misc]
    """A cache on disk that may fail: then the function is compiled, and that is all."""

    _impl_class = _Kept

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is kept; nothing where it is damaged, and what is damaged is forgotten."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever unpickling a damaged file may raise
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep it, if the disk allows."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


class Notice(event.Listener):  # type: ignore[misc]
    """Says once that compiling takes a while, and where the result is kept."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._depth, self._since, self._before, self._said = clock, 0, 0.0, 0.0, False

    def on_start(self, event: Any) -> None:
        """A function is being compiled, perhaps on behalf of another one that is."""
        self._since = self._since if self._depth else self._clock()
        self._depth += 1
        self._look()

    def on_end(self, event: Any) -> None:
        """It is compiled."""
        self._look()
        self._depth -= 1
        if not self._depth:
            self._before += self._clock() - self._since

    def _look(self) -> None:
        if self._said or self._before + self._clock() - self._since < _SLOW:
            return
        self._said = True
        if multiprocessing.current_process().name in _TALKERS and os.environ.get("ASKEW_COMPILE_NOTE") != "off":
            _LOG.warning("askew: compiling for the first use, up to %d s; %s", LONGEST, _where())


def _where() -> str:
    place = root()
    if place is None or not os.access(place, os.W_OK):
        return "not kept, for no cache folder can be written: set ASKEW_CACHE to one"
    return f"kept in {place}"


event.register("numba:compile", Notice())
