"""Opening files: missing ones, compressed ones, byte-order marks and wrong encodings are dealt with here."""

from __future__ import annotations

import gzip
import io
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np

from askew.core.errors import DataError, place

_GZIP_MAGIC = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_LINE_FEED = 10
# What is noted of each short line takes many times the room of the line.
_BLOCK = 1 << 23
_TEXT_BLOCK = 1 << 22
LONGEST_LINE = 1 << 26
# Text never packs so well; few bytes that unpack to so many were made to fill the memory or the disk.
_MOST_UNPACKED = 200
_LITTLE = 3 << 25


@dataclass
class Meter:
    """How many bytes of some files have been read, as they lie on the disk: of a gzip file the packed ones."""

    finished: int = 0
    position: int = 0

    @property
    def done(self) -> int:
        """All bytes so far."""
        return self.finished + self.position

    def next_file(self) -> None:
        """The file at hand is read."""
        self.finished, self.position = self.done, 0


def check_file(path: Path, what: str) -> Path:
    """The path, or a clear line when there is no such file."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise DataError(f"{what} {path}: no such file") from None
    except OSError as error:
        raise DataError(f"{what} {path}: the file cannot be reached ({error.strerror})") from None
    if stat.S_ISDIR(found.st_mode):
        raise DataError(f"{what} {path}: expected a file, found a folder")
    return path


@contextmanager
def open_bytes(path: Path) -> Iterator[tuple[io.BufferedIOBase, io.BufferedReader]]:
    """The bytes of a file, unpacked when it is gzip (known by its first bytes, not its name); and the file itself."""
    with path.open("rb") as file:
        # Looking ahead instead of going back lets a pipe be read as well.
        if file.peek(2)[:2] == _GZIP_MAGIC:
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked, file
        else:
            yield file, file


def read_text(path: Path, what: str) -> str:
    """A whole file as text: UTF-8, with or without a byte-order mark; every line end becomes one line feed."""
    data = b"".join(blocks(check_file(path, what)))
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return decode_block(path, 1, data)


def blocks(path: Path, size: int = _BLOCK, meter: Meter | None = None) -> Iterator[bytes]:
    """The file in blocks, without a byte-order mark."""
    try:
        with open_bytes(path) as (unpacked, file):
            # The first block is never shorter than the mark, or the mark would be missed.
            block = unpacked.read(max(size, len(_BOM))).removeprefix(_BOM)
            read = 0
            while True:
                read += len(block)
                # A pipe has no place in it to tell.
                if file.seekable():
                    _check_ratio(path, read, file.tell())
                    if meter is not None:
                        meter.position = file.tell()
                yield block
                block = unpacked.read(size)
                if not block:
                    return
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: the gzip file is damaged or cut short ({error}); fetch or pack it again") from None
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read ({error.strerror or error})") from None


def _check_ratio(path: Path, unpacked: int, packed: int) -> None:
    if unpacked > _LITTLE and unpacked > _MOST_UNPACKED * packed:
        raise DataError(
            f"{path}: {packed:,} bytes unpack to {unpacked:,} and more, over {_MOST_UNPACKED} times as many, as text "
            "never does; unpack the file first if it is what it should be"
        )


def line_blocks(path: Path, size: int = _BLOCK, meter: Meter | None = None) -> Iterator[tuple[int, bytes]]:
    """Whole lines, many at a time, each block with the number of its first line. Memory stays flat."""
    return whole_lines(blocks(path, size, meter), LONGEST_LINE, partial(_too_long, path))


def text_blocks(path: Path, what: str, size: int = _TEXT_BLOCK) -> Iterator[tuple[int, str]]:
    """Whole lines as text, many at a time, each block with the number of its first line.

    UTF-8, with or without a byte-order mark; every line end becomes one line feed.
    """
    found = _line_feeds(blocks(check_file(path, what), size))
    for line, block in whole_lines(found, LONGEST_LINE, partial(_too_long, path)):
        yield line, decode_block(path, line, block)


def _line_feeds(found: Iterator[bytes]) -> Iterator[bytes]:
    """The same blocks with one kind of line end. A carriage return at the end waits for the line feed it may have."""
    held = b""
    for block in found:
        joined = held + block
        held = joined[-1:] if joined.endswith(b"\r") else b""
        joined = joined.removesuffix(held)
        yield joined.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in joined else joined
    if held:
        yield b"\n"


def _too_long(path: Path, line: int) -> DataError:
    return DataError(
        f"{place(path, line)}: expected lines of at most {LONGEST_LINE >> 20} MiB, found a longer one; "
        "is this the right file?"
    )


def whole_lines(
    found: Iterable[bytes], longest: int, too_long: Callable[[int], DataError]
) -> Iterator[tuple[int, bytes]]:
    """Blocks cut at the ends of lines, each with the number of its first line. A line that never ends is refused before
    it fills the memory: few bytes may unpack to a great many. ``too_long`` makes the error for the number of a line.
    """
    waiting: list[bytes] = []
    line, held = 1, 0
    for block in found:
        cut = block.rfind(b"\n") + 1
        if cut:
            whole = b"".join([*waiting, block[:cut]])
            yield line, whole
            # Ten times as fast as the count of bytes, which is made for rare ones.
            line += int(np.count_nonzero(np.frombuffer(whole, np.uint8) == _LINE_FEED))
            waiting, held = [], 0
        waiting.append(block[cut:])
        held += len(block) - cut
        if held > longest:
            raise too_long(line)
    if rest := b"".join(waiting):
        yield line, rest


def decode_block(path: Path, first_line: int, block: bytes) -> str:
    """A block of lines as text, or an error that names the line."""
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + block.count(b"\n", 0, error.start)
        raise DataError(
            f"{place(path, line)}: expected UTF-8 text, found the byte 0x{block[error.start]:02x}; "
            "convert the file first, for instance with iconv -f latin1 -t utf-8"
        ) from None


def suffix_of(path: Path) -> str:
    """The ending that says the format, with a final .gz put aside."""
    name = path.name.lower().removesuffix(".gz")
    return "." + name.rpartition(".")[2] if "." in name else ""


def as_file(text: str) -> IO[bytes]:
    """Text as a file of bytes, for libraries that want one."""
    return io.BytesIO(text.encode("utf-8"))
