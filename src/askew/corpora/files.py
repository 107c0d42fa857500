"""Open files, and handle missing files, gzip compression, byte-order marks and wrong encodings."""

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
# The data kept for each short line takes many times the memory of the line itself.
_BLOCK = 1 << 23
_TEXT_BLOCK = 1 << 22
LONGEST_LINE = 1 << 26
# Text never compresses this well. A file above this ratio may be a gzip bomb, made to fill the memory or the disk.
_MOST_UNPACKED = 200
_LITTLE = 3 << 25


@dataclass
class Meter:
    """Counts the bytes that have been read of some files, as stored on disk: for gzip, the compressed bytes."""

    finished: int = 0
    position: int = 0

    @property
    def done(self) -> int:
        """The number of bytes read so far."""
        return self.finished + self.position

    def next_file(self) -> None:
        """Mark the current file as completely read."""
        self.finished, self.position = self.done, 0


def check_file(path: Path, what: str) -> Path:
    """Return the path, or raise an error if it is not a file that can be reached."""
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
    """Open a file and return its decompressed stream and the file itself. Gzip is detected by its first bytes."""
    with path.open("rb") as file:
        # Peeking instead of seeking also works for a pipe.
        if file.peek(2)[:2] == _GZIP_MAGIC:
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked, file
        else:
            yield file, file


def read_text(path: Path, what: str) -> str:
    """Read a whole file as UTF-8 text, with or without a byte-order mark. Line ends become line feeds."""
    data = b"".join(blocks(check_file(path, what)))
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return decode_block(path, 1, data)


def blocks(path: Path, size: int = _BLOCK, meter: Meter | None = None) -> Iterator[bytes]:
    """Read a file in blocks, decompressed and without a byte-order mark."""
    try:
        with open_bytes(path) as (unpacked, file):
            # The first block is at least as long as the byte-order mark, so that the mark is found.
            block = unpacked.read(max(size, len(_BOM))).removeprefix(_BOM)
            read = 0
            while True:
                read += len(block)
                # A pipe has no position to report.
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
            f"{path}: {packed:,} bytes unpack to {unpacked:,} bytes or more, over {_MOST_UNPACKED} times as many, so "
            "the file is probably not text; if it is the right file, unpack it first"
        )


def line_blocks(path: Path, size: int = _BLOCK, meter: Meter | None = None) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines, each with the number of its first line. Memory use does not grow with the file."""
    return whole_lines(blocks(path, size, meter), LONGEST_LINE, partial(_too_long, path))


def text_blocks(path: Path, what: str, size: int = _TEXT_BLOCK) -> Iterator[tuple[int, str]]:
    """Blocks of whole lines as text, each with the number of its first line.

    The file is UTF-8, with or without a byte-order mark. Line ends become line feeds.
    """
    found = _line_feeds(blocks(check_file(path, what), size))
    for line, block in whole_lines(found, LONGEST_LINE, partial(_too_long, path)):
        yield line, decode_block(path, line, block)


def _line_feeds(found: Iterator[bytes]) -> Iterator[bytes]:
    """Convert all line ends to line feeds. A final carriage return is held back: a line feed may follow it."""
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
    """Cut blocks at line ends and return each with the number of its first line.

    A line of more than ``longest`` bytes, as in a gzip bomb, is an error before it fills the memory. ``too_long`` makes
    the error for a line number.
    """
    waiting: list[bytes] = []
    line, held = 1, 0
    for block in found:
        cut = block.rfind(b"\n") + 1
        if cut:
            whole = b"".join([*waiting, block[:cut]])
            yield line, whole
            # Ten times as fast as bytes.count, which is made for rare bytes.
            line += int(np.count_nonzero(np.frombuffer(whole, np.uint8) == _LINE_FEED))
            waiting, held = [], 0
        waiting.append(block[cut:])
        held += len(block) - cut
        if held > longest:
            raise too_long(line)
    if rest := b"".join(waiting):
        yield line, rest


def decode_block(path: Path, first_line: int, block: bytes) -> str:
    """Decode a block of lines, or raise an error that names the line."""
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + block.count(b"\n", 0, error.start)
        raise DataError(
            f"{place(path, line)}: expected UTF-8 text, found the byte 0x{block[error.start]:02x}; "
            "convert the file first, for instance with iconv -f latin1 -t utf-8"
        ) from None


def suffix_of(path: Path) -> str:
    """The file name ending that determines the format, ignoring a final .gz."""
    name = path.name.lower().removesuffix(".gz")
    return "." + name.rpartition(".")[2] if "." in name else ""


def as_file(text: str) -> IO[bytes]:
    """Wrap a text as a binary file object, for libraries that need one."""
    return io.BytesIO(text.encode("utf-8"))
