"""Checksums of blocks: each block of an index file is compared with its checksum before its first use.

A file has one CRC-32 for every 256 KiB. It detects every change of a single bit, and every change within 32 adjacent
bits of a block. A block is checked once after an index is opened. Later changes on disk are detected when the index is
opened again.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.errors import StoreError

BLOCK = 1 << 18
# Files up to this size are checked completely when an index is opened, larger ones block by block at first use.
CHECK_WHOLE = 1 << 26
Known = dict[str, Any]


def remedy(path: Path) -> str:
    """How to repair a damaged file or folder of an index, for error messages."""
    folder = path if path.is_dir() else path.parent
    while (folder.parent / "header.json").exists():
        folder = folder.parent
    if (folder.parent / "plans").is_dir():  # an index inside a store, which can rebuild it
        folder = folder.parent
    return f"build the index again with: askew verify {folder} --repair"


def describe_file(path: Path) -> Known:
    """The size of a file and the checksum of each of its blocks."""
    with path.open("rb") as file:
        sums = [f"{zlib.crc32(block):08x}" for block in iter(lambda: file.read(BLOCK), b"")]
    return {"size": path.stat().st_size, "blocks": "".join(sums)}


class BlockWriter:
    """Writes a file and computes its checksums on the way. ``known`` equals the result of ``describe_file``."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._sums: list[str] = []
        self._size, self._room, self._sum = 0, BLOCK, 0

    def write(self, array: Any) -> None:
        """Append the bytes of an array."""
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        self._file.write(data)
        self._size += len(data)
        at = 0
        while at < len(data):
            part = data[at : at + self._room]
            self._sum = zlib.crc32(part, self._sum)
            at, self._room = at + len(part), self._room - len(part)
            if not self._room:
                self._end_block()

    def _end_block(self) -> None:
        self._sums.append(f"{self._sum:08x}")
        self._room, self._sum = BLOCK, 0

    @property
    def known(self) -> Known:
        """The size and checksums of the file, after it is closed."""
        return {"size": self._size, "blocks": "".join(self._sums)}

    def close(self) -> None:
        """Close the file."""
        if self._room < BLOCK:
            self._end_block()
        self._file.close()

    def __enter__(self) -> BlockWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_lazy(known: Known) -> bool:
    """Whether the blocks of a file are checked at first use and not when the index is opened."""
    return "blocks" in known and int(known["size"]) > CHECK_WHOLE


def check_size(path: Path, known: Known) -> None:
    """Raise an error if a file is missing or has the wrong size."""
    try:
        size, expected = path.stat().st_size, int(known["size"])
    except (OSError, KeyError, TypeError, ValueError):
        raise StoreError(f"{path}: a file of the index is missing or cannot be read; {remedy(path)}") from None
    if size != expected:
        raise StoreError(
            f"{path}: the file is damaged or cut short (expected {expected} bytes, found {size}); {remedy(path)}"
        )


def check_file(path: Path, known: Known) -> None:
    """Read a whole file and raise an error if it does not match its checksums.

    Before format 2, a file had one checksum of all its bytes.
    """
    check_size(path, known)
    try:
        with path.open("rb") as file:
            if "blocks" in known:
                sums = _checksums(path, known)
                for number in range(len(sums)):
                    _compare(path, number, file.read(BLOCK), sums)
                return
            found = 0
            while block := file.read(BLOCK):
                found = zlib.crc32(block, found)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror or error}); {remedy(path)}") from None
    if found != known.get("crc"):
        raise StoreError(f"{path}: the file is damaged (its checksum is wrong); {remedy(path)}")


def _checksums(path: Path, known: Known) -> Any:
    try:
        sums = np.frombuffer(bytes.fromhex(known["blocks"]), ">u4")
    except (TypeError, ValueError):
        sums = None
    if sums is None or len(sums) != -(-int(known["size"]) // BLOCK):
        raise StoreError(f"{path}: the checksums of the file are damaged; {remedy(path)}")
    return sums


def _compare(path: Path, number: int, data: Any, sums: Any) -> None:
    if zlib.crc32(data) != sums[number]:
        raise StoreError(
            f"{path}: the file is damaged between byte {number * BLOCK} and {number * BLOCK + len(data)}; "
            f"{remedy(path)}"
        )


class BlockChecker:
    """Checks the blocks of a memory-mapped file when they are needed, each block once."""

    def __init__(self, path: Path, data: Any, known: Known) -> None:
        self.path, self._data = path, data
        self.complete = not is_lazy(known)
        self._sums = np.zeros(0, np.uint32) if self.complete else _checksums(path, known)
        self._compared = np.zeros(len(self._sums), np.bool_)

    def check(self, starts: Any, stops: Any) -> None:
        """Check all blocks that overlap the given byte ranges, and raise an error if one is damaged."""
        if self.complete:
            return
        starts, stops = np.atleast_1d(starts), np.atleast_1d(stops)
        filled = stops > starts
        begins, ends = starts[filled] // BLOCK, (stops[filled] - 1) // BLOCK
        if len(begins) and (begins.min() < 0 or ends.max() >= len(self._sums)):
            raise StoreError(
                f"{self.path}: another file of the index refers to bytes outside this file; {remedy(self.path)}"
            )
        open_ranges = np.zeros(len(self._sums) + 1, np.int64)
        np.add.at(open_ranges, begins, 1)
        np.subtract.at(open_ranges, ends + 1, 1)
        needed = (np.cumsum(open_ranges)[:-1] > 0) & ~self._compared
        for number in np.flatnonzero(needed).tolist():
            _compare(self.path, number, self._data[number * BLOCK : (number + 1) * BLOCK], self._sums)
            self._compared[number] = True
        # A counter would be wrong here: two threads may check the same block at the same time.
        self.complete = bool(self._compared.all())

    def check_all(self) -> None:
        """Check every block."""
        self.check(0, len(self._sums) * BLOCK)


class CheckedArray:
    """A memory-mapped array that checks its blocks before it returns elements.

    ``raw`` is the unchecked array for compiled loops; call ``check`` for the ranges that they read first. With
    ``width``, the array has rows of that many numbers.
    """

    def __init__(self, path: Path, dtype: Any, known: Known, width: int | None = None) -> None:
        check_size(path, known)
        flat: Any = np.memmap(path, dtype, "r").view(np.ndarray) if known["size"] else np.zeros(0, dtype)
        self.raw: Any = flat if width is None else flat.reshape(-1, width)
        self._row = flat.itemsize * (width or 1)
        self._guard = BlockChecker(path, memoryview(flat.view(np.uint8)), known)

    @classmethod
    def of(cls, array: Any) -> CheckedArray:
        """Wrap an array in memory, which needs no checks."""
        made = cls.__new__(cls)
        made.raw, made._row, made._guard = array, array.itemsize, BlockChecker(Path(), b"", {})
        return made

    def check(self, starts: Any, stops: Any) -> None:
        """Verify the checksums of the blocks that hold the given ranges of elements or rows."""
        if not self._guard.complete:
            self._guard.check(np.asarray(starts, np.int64) * self._row, np.asarray(stops, np.int64) * self._row)

    def whole(self) -> Any:
        """The whole array, after checking every block."""
        self._guard.check_all()
        return self.raw

    def __getitem__(self, key: Any) -> Any:
        if not self._guard.complete:
            if isinstance(key, slice) and key.step in (None, 1):
                self.check(*key.indices(len(self.raw))[:2])
            elif not isinstance(key, slice) and (places := np.asarray(key)).dtype.kind in "iu" and (places >= 0).all():
                self.check(places.ravel(), places.ravel() + 1)
            else:
                self._guard.check_all()
        return self.raw[key]

    def __len__(self) -> int:
        return len(self.raw)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.whole(), dtype, copy=copy)
