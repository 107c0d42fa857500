"""The files of a store, in a folder or an object store, behind one small interface.

A name is a path below the root, separated by ``/``. A file is written completely or not at all.
"""

from __future__ import annotations

import errno
import hashlib
import importlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from pyarrow import fs as arrow_fs

from askew.core.address import Address
from askew.core.errors import AskewError, MissingExtra, StoreError
from askew.core.files import HALF_WRITTEN, flush, parse_json, write_whole

# Protocols that Arrow supports itself. They need no folder to be created before a file is written.
_OF_ARROW = {"s3", "gs", "gcs", "abfs", "abfss", "hdfs"}

# The errors that callers distinguish. Libraries may raise them without an error number.
_NUMBERS: dict[type[OSError], int] = {
    FileNotFoundError: errno.ENOENT, NotADirectoryError: errno.ENOTDIR, IsADirectoryError: errno.EISDIR,
    PermissionError: errno.EACCES, FileExistsError: errno.EEXIST,
}  # fmt: skip


def open_files(root: Path | str) -> Files:
    """Open a path or ``file://`` address as a local folder, and any other address through Arrow or fsspec."""
    address = Address(root)
    if not address.scheme:
        return LocalFiles(Path(address.reveal()))
    if address.scheme == "file":
        return LocalFiles(Path(unquote(urlsplit(address.reveal()).path)))
    return RemoteFiles(address)


class LocalFiles:
    """A folder of this machine or of a shared file system."""

    # Whether other processes see the same files.
    shared = True

    def __init__(self, root: Path) -> None:
        self.root = root

    def __getstate__(self) -> dict[str, Any]:
        """Make the path absolute: another process may have another working directory."""
        return {"root": self.root.absolute()}

    @property
    def where(self) -> str:
        """The root, as shown in messages."""
        return str(self.root)

    def read(self, name: str) -> bytes:
        """All bytes of a file; OSError if there is none."""
        return (self.root / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Write under a temporary name, flush, then rename."""
        path = self.root / name
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            flush(path.parent.parent)
        write_whole(path, data)

    def list(self, folder: str = "") -> list[str]:
        """The sorted names directly in a folder; an empty list if there is no such folder."""
        try:
            return sorted(path.name for path in (self.root / folder).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.root / name).is_file()

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        (self.root / name).unlink(missing_ok=True)


class RemoteFiles:
    """An object store. Writing an object is atomic there, so no renaming is needed."""

    def __init__(self, address: Address | str) -> None:
        self._address = Address(address)
        self.where = str(self._address).rstrip("/")
        self.shared = self._address.scheme != "memory"

    def __reduce__(self) -> tuple[type[RemoteFiles], tuple[Address]]:
        """Pickle only the address: another process opens its own connection."""
        return RemoteFiles, (self._address,)

    def __repr__(self) -> str:
        return f"RemoteFiles({self.where!r})"

    @contextmanager
    def _reaching(self, name: str, what: str) -> Iterator[None]:
        """Convert library errors to messages without secrets of the address. Common OSErrors keep their type."""
        try:
            yield
        except AskewError:
            raise
        except Exception as error:
            # Each protocol's library has its own exceptions.
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
            entries = system.get_file_info(arrow_fs.FileSelector(path, allow_not_found=True))
            return sorted(info.base_name for info in entries)

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
        raise MissingExtra(f"a store whose address begins with '{url.partition('://')[0]}://'", "remote") from None
    # No listings cache: another worker may have written files in the meantime.
    filesystem, path = url_to_fs(url, use_listings_cache=False)
    return arrow_fs.PyFileSystem(arrow_fs.FSSpecHandler(filesystem)), str(path).rstrip("/")


Files: TypeAlias = LocalFiles | RemoteFiles

# Copy a folder, such as an index, to a store once, and fetch it on every machine that lacks it.

# Written last: without this file the folder is incomplete and ignored.
CONTENTS = "contents.json"
_PIECE = 1 << 26


def has_folder(files: Files, name: str) -> bool:
    """Whether the store has the complete folder."""
    return files.exists(f"{name}/{CONTENTS}")


def put_folder(files: Files, name: str, folder: Path) -> None:
    """Copy the files of a folder to a store, in pieces."""
    contents: dict[str, list[str]] = {}
    for path in sorted(entry for entry in folder.rglob("*") if entry.is_file()):
        place = path.relative_to(folder).as_posix()
        digests: list[str] = []
        with path.open("rb") as file:
            while (data := file.read(_PIECE)) or not digests:
                files.write(f"{name}/{place}.{len(digests):05d}", data)
                digests.append(hashlib.sha256(data).hexdigest())
        contents[place] = digests
    files.write(f"{name}/{CONTENTS}", json.dumps(contents, indent=1, sort_keys=True).encode())


def fetch_folder(files: Files, name: str, folder: Path) -> None:
    """Fetch a folder and check each piece. The folder appears only when it is complete."""
    where = f"{files.where}/{name}"
    half = folder.with_name(f"{HALF_WRITTEN}{folder.name}")
    shutil.rmtree(half, ignore_errors=True)
    try:
        contents = parse_json(files.read(f"{name}/{CONTENTS}"))
        for place, digests in contents.items():
            path = half / place
            _refuse_outside(half, path)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                for number, digest in enumerate(digests):
                    file.write(_checked(files.read(f"{name}/{place}.{number:05d}"), digest, place))
        # An interrupted build may have left an incomplete folder here.
        shutil.rmtree(folder, ignore_errors=True)
        half.rename(folder)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise StoreError(f"{where}: cannot be fetched ({error}); delete it there and run again") from None
    finally:
        shutil.rmtree(half, ignore_errors=True)


def _refuse_outside(folder: Path, path: Path) -> None:
    if folder.resolve() not in path.resolve().parents:
        raise ValueError(f"{path.name!r} is outside the folder")


def _checked(data: bytes, digest: str, place: str) -> bytes:
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError(f"a block of {place} is damaged")
    return data
