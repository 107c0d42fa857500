"""Where a store keeps its files: a folder, or an object store. One narrow door for both.

A name is a path below the root, with ``/``. What is written is there whole or not at all.
"""

from __future__ import annotations

import errno
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from pyarrow import fs as arrow_fs

from askew.core.address import Address
from askew.core.errors import AskewError, MissingExtra, StoreError
from askew.core.whole_files import flush, write_whole

# Arrow reaches these itself. They have no folders: a name with a slash needs nothing made before it.
_OF_ARROW = {"s3", "gs", "gcs", "abfs", "abfss", "hdfs"}

# What callers tell apart; an error of these kinds may come without its number.
_NUMBERS: dict[type[OSError], int] = {
    FileNotFoundError: errno.ENOENT, NotADirectoryError: errno.ENOTDIR, IsADirectoryError: errno.EISDIR,
    PermissionError: errno.EACCES, FileExistsError: errno.EEXIST,
}  # fmt: skip


class Files(Protocol):
    """Files below one root. ``shared`` says whether another process finds the same files there."""

    @property
    def where(self) -> str:
        """The root, for a message."""

    @property
    def shared(self) -> bool:
        """Whether another process finds the same files there."""

    def read(self, name: str) -> bytes:
        """All bytes of a file; OSError where there is none."""

    def write(self, name: str, data: bytes) -> None:
        """A file whole or not at all, in place of one that has the name."""

    def list(self, folder: str = "") -> list[str]:
        """What lies directly in a folder, sorted; nothing where there is no folder."""

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""

    def delete(self, name: str) -> None:
        """Take a file away, if it is there."""


def open_files(root: Path | str) -> Files:
    """A folder for a path or ``file://``; any other address with a scheme through Arrow or fsspec."""
    address = Address(root)
    if not address.scheme:
        return LocalFiles(Path(address.reveal()))
    if address.scheme == "file":
        return LocalFiles(Path(unquote(urlsplit(address.reveal()).path)))
    return RemoteFiles(address)


class LocalFiles:
    """A folder of this machine, or one that machines share."""

    shared = True

    def __init__(self, root: Path) -> None:
        self.root = root

    def __getstate__(self) -> dict[str, Any]:
        """Another process may stand in another folder."""
        return {"root": self.root.absolute()}

    @property
    def where(self) -> str:
        """The folder."""
        return str(self.root)

    def read(self, name: str) -> bytes:
        """All bytes of a file."""
        return (self.root / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Under another name first, flushed, then renamed."""
        path = self.root / name
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            flush(path.parent.parent)
        write_whole(path, data)

    def list(self, folder: str = "") -> list[str]:
        """Names in a folder."""
        try:
            return sorted(path.name for path in (self.root / folder).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.root / name).is_file()

    def delete(self, name: str) -> None:
        """Unlink a file."""
        (self.root / name).unlink(missing_ok=True)


class RemoteFiles:
    """An object store. A put shows the whole object or none, so nothing is renamed."""

    def __init__(self, address: Address | str) -> None:
        self._address = Address(address)
        self.where = str(self._address).rstrip("/")
        self.shared = self._address.scheme != "memory"

    def __reduce__(self) -> tuple[type[RemoteFiles], tuple[Address]]:
        """Another process opens its own connection."""
        return RemoteFiles, (self._address,)

    def __repr__(self) -> str:
        return f"RemoteFiles({self.where!r})"

    @contextmanager
    def _reaching(self, name: str, what: str) -> Iterator[None]:
        """Errors of a library without what is hidden in the address: what the system has a number for stays that."""
        try:
            yield
        except AskewError:
            raise
        except Exception as error:
            # Each library of a protocol has errors of its own.
            number = next((number for kind, number in _NUMBERS.items() if isinstance(error, kind)), None)
            if number is not None:
                raise OSError(number, os.strerror(number), f"{self.where}/{name}") from None
            raise StoreError(f"{self.where}/{name}: cannot be {what} ({self._said(error)})") from None

    def _said(self, error: Exception) -> str:
        first = str(error).splitlines()[0] if str(error) else ""
        return self._address.scrub(first) or type(error).__name__

    @cached_property
    def _opened(self) -> tuple[arrow_fs.FileSystem, str]:
        try:
            return _open(self._address.reveal())
        except AskewError:
            raise
        except Exception as error:
            raise StoreError(f"store {self.where}: cannot be reached ({self._said(error)})") from None

    def _at(self, name: str) -> tuple[arrow_fs.FileSystem, str]:
        system, root = self._opened
        return system, f"{root}/{name}" if name else root

    def read(self, name: str) -> bytes:
        """All bytes of an object."""
        with self._reaching(name, "read"):
            system, path = self._at(name)
            with system.open_input_stream(path) as stream:
                return bytes(stream.read())

    def write(self, name: str, data: bytes) -> None:
        """Put one object."""
        with self._reaching(name, "written"):
            system, path = self._at(name)
            if isinstance(system, arrow_fs.PyFileSystem):
                system.create_dir(path.rpartition("/")[0], recursive=True)
            with system.open_output_stream(path) as stream:
                stream.write(data)

    def list(self, folder: str = "") -> list[str]:
        """Names under a prefix, down to the next slash."""
        with self._reaching(folder, "listed"):
            system, path = self._at(folder)
            found = system.get_file_info(arrow_fs.FileSelector(path, allow_not_found=True))
            return sorted(info.base_name for info in found)

    def exists(self, name: str) -> bool:
        """Whether there is such an object."""
        with self._reaching(name, "looked for"):
            system, path = self._at(name)
            return bool(system.get_file_info(path).type == arrow_fs.FileType.File)

    def delete(self, name: str) -> None:
        """Delete an object."""
        with self._reaching(name, "deleted"):
            system, path = self._at(name)
            if self.exists(name):
                system.delete_file(path)


def _open(url: str) -> tuple[arrow_fs.FileSystem, str]:
    if url.partition("://")[0] in _OF_ARROW:
        system, path = arrow_fs.FileSystem.from_uri(url)
        return system, str(path).rstrip("/")
    try:
        url_to_fs = importlib.import_module("fsspec.core").url_to_fs
    except ImportError:
        raise MissingExtra(f"a store at {url.partition('://')[0]}://", "remote") from None
    # Another worker may have written since the last look.
    found, path = url_to_fs(url, use_listings_cache=False)
    return arrow_fs.PyFileSystem(arrow_fs.FSSpecHandler(found)), str(path).rstrip("/")
