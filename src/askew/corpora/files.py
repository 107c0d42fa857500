"""Opening files: missing ones, compressed ones, byte-order marks and wrong encodings are dealt with here."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from askew.core.errors import DataError, place

_GZIP_MAGIC = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_BLOCK = 1 << 24


def check_file(path: Path, what: str) -> Path:
    """The path, or a clear line when there is no such file."""
    if path.is_dir():
        raise DataError(f"{what} {path}: expected a file, found a folder")
    if not path.exists():
        raise DataError(f"{what} {path}: no such file")
    return path


def open_bytes(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked when it is gzip (known by its first bytes, not by its name)."""
    file = path.open("rb")
    packed = file.read(2) == _GZIP_MAGIC
    file.seek(0)
    return gzip.open(file) if packed else file  # type: ignore[return-value]


def read_text(path: Path, what: str) -> str:
    """A whole file as text: UTF-8, with or without a byte-order mark, any line ends."""
    data = b"".join(blocks(check_file(path, what)))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _not_utf8(path, line, data[error.start]) from None
    return text.replace("\r\n", "\n")


def blocks(path: Path, size: int = _BLOCK) -> Iterator[bytes]:
    """The file in blocks, without a byte-order mark."""
    try:
        with open_bytes(path) as file:
            first = file.read(size)
            yield first.removeprefix(_BOM)
            while block := file.read(size):
                yield block
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: the gzip file is damaged or cut short ({error})") from None


def line_blocks(path: Path, size: int = _BLOCK) -> Iterator[tuple[int, bytes]]:
    """Whole lines, many at a time, each block with the number of its first line. Memory stays flat."""
    rest, line = b"", 1
    for block in blocks(path, size):
        joined = rest + block
        cut = joined.rfind(b"\n") + 1
        rest = joined[cut:]
        if cut:
            yield line, joined[:cut]
            line += joined.count(b"\n", 0, cut)
    if rest:
        yield line, rest


def decode_block(path: Path, first_line: int, block: bytes) -> str:
    """A block of lines as text, or an error that names the line."""
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + block.count(b"\n", 0, error.start)
        raise _not_utf8(path, line, block[error.start]) from None


def _not_utf8(path: Path, line: int, byte: int) -> DataError:
    return DataError(
        f"{place(path, line)}: expected UTF-8 text, found the byte 0x{byte:02x}; "
        "convert the file first, for instance with iconv -f latin1 -t utf-8"
    )


def suffix_of(path: Path) -> str:
    """The ending that says the format, with a final .gz put aside."""
    name = path.name.lower().removesuffix(".gz")
    return "." + name.rpartition(".")[2] if "." in name else ""


def as_file(text: str) -> IO[bytes]:
    """Text as a file of bytes, for libraries that want one."""
    return io.BytesIO(text.encode("utf-8"))
