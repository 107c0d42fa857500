"""Open files, and handle missing files, gzip compression, byte-order marks and wrong encodings."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from askew.core.errors import DataError, place
from askew.core.files import check_file, decode_block

if TYPE_CHECKING:
    import polars as pl

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


def read_text(path: Path, what: str) -> str:
    """Read a whole file as UTF-8 text, with or without a byte-order mark. Line ends become line feeds."""
    data = b"".join(blocks(check_file(path, what)))
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return decode_block(path, 1, data)


def blocks(path: Path, size: int = _BLOCK, meter: Meter | None = None) -> Iterator[bytes]:
    """Read a file in blocks, decompressed and without a byte-order mark. Gzip is detected by its first bytes."""
    try:
        with path.open("rb") as file:
            # Peeking instead of seeking also works for a pipe.
            unpacked = gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == _GZIP_MAGIC else file
            # The first block is at least as long as the byte-order mark, so that the mark is found.
            block = unpacked.read(max(size, len(_BOM))).removeprefix(_BOM)
            read = 0
            while True:
                read += len(block)
                # A pipe has no position to report.
                if file.seekable():
                    packed = file.tell()
                    if read > max(_LITTLE, _MOST_UNPACKED * packed):
                        many = f"{packed:,} bytes unpack to more than {_MOST_UNPACKED} times as many"
                        message = f"{path}: {many}, so this is probably not text; if it is right, unpack it first"
                        raise DataError(message, code="gzip-bomb")
                    if meter is not None:
                        meter.position = packed
                yield block
                block = unpacked.read(size)
                if not block:
                    return
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: the gzip file is damaged or cut short ({error}); fetch or pack it again") from None
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read ({error.strerror or error})") from None


def line_blocks(path: Path, size: int = _BLOCK, meter: Meter | None = None) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines, each with the number of its first line. Memory use does not grow with the file."""
    return _whole_lines(blocks(path, size, meter), path)


def text_blocks(
    path: Path, what: str, size: int = _TEXT_BLOCK, *, data: bytes | None = None
) -> Iterator[tuple[int, str]]:
    """Blocks of whole lines as text, each with the number of its first line.

    The file is UTF-8, with or without a byte-order mark. Line ends become line feeds. ``data`` is the content of the
    file if it was sent; then ``path`` is only its name in messages.
    """
    raw_blocks = blocks(check_file(path, what), size) if data is None else iter([data.removeprefix(_BOM)])
    for line, block in _whole_lines(_line_feeds(raw_blocks), path):
        yield line, decode_block(path, line, block)


def _line_feeds(raw_blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Convert all line ends to line feeds. A final carriage return is held back: a line feed may follow it."""
    held = b""
    for block in raw_blocks:
        joined = held + block
        held = joined[-1:] if joined.endswith(b"\r") else b""
        joined = joined.removesuffix(held)
        yield joined.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in joined else joined
    if held:
        yield b"\n"


def _whole_lines(raw_blocks: Iterable[bytes], path: Path) -> Iterator[tuple[int, bytes]]:
    """Cut blocks at line ends. A line that is too long, as in a gzip bomb, is an error before it fills the memory."""
    waiting: list[bytes] = []
    line, held = 1, 0
    for block in raw_blocks:
        cut = block.rfind(b"\n") + 1
        if cut:
            whole = b"".join([*waiting, block[:cut]])
            yield line, whole
            # Ten times as fast as bytes.count, which is made for rare bytes.
            line += int(np.count_nonzero(np.frombuffer(whole, np.uint8) == _LINE_FEED))
            waiting, held = [], 0
        waiting.append(block[cut:])
        held += len(block) - cut
        if held > LONGEST_LINE:
            message = f"expected lines of at most {LONGEST_LINE >> 20} MiB; is this the right file?"
            raise DataError(f"{place(path, line)}: {message}", code="long-line", line=line)
    if rest := b"".join(waiting):
        yield line, rest


def suffix_of(path: Path) -> str:
    """The file name ending that determines the format, ignoring a final .gz."""
    name = path.name.lower().removesuffix(".gz")
    return "." + name.rpartition(".")[2] if "." in name else ""


# Lines of text and their columns. Only ASCII white space separates columns: a no-break space is part of an id.

WHITE = " \t\n\r\x0b\x0c"
_WORD = re.compile(r"\S+", re.ASCII)
_SHOWN = 60
_NAMES_SHOWN = 20


def words(line: str) -> list[str]:
    """The parts of a line between ASCII white space."""
    return _WORD.findall(line)


def split_columns(line: str, widths: tuple[int, ...]) -> list[str]:
    """The columns of a line. If TABs alone give a right number of columns, blanks are part of the columns."""
    if "\t" in line:
        fields = tab_columns(line.strip(WHITE))
        if len(fields) in widths and all(fields):
            return fields
    return words(line)


def tab_columns(line: str) -> list[str]:
    """The columns of a line between TABs, without the blanks around them."""
    return [field.strip(WHITE) for field in line.split("\t")]


def numbered(blocks: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines of blocks of whole lines, each with its number. An extra blank line may follow each block."""
    for first, text in blocks:
        yield from enumerate(text.split("\n"), start=first)


def first_line(text: str) -> tuple[int, int, str] | None:
    """The first line that is not blank: its number, the position where the next line begins, and its text."""
    word = _WORD.search(text)
    if word is None:
        return None
    start = text.rfind("\n", 0, word.start()) + 1
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    return text.count("\n", 0, start) + 1, end + 1, text[start:end]


def fast_columns(text: str, separator: str, width: int, first: int = 1) -> pl.DataFrame | None:
    """Parse the columns line, column_1, column_2, ... with the columnar parser; None for irregular text.

    Regular text has the same number of columns in all lines, no blank line and no empty column.
    """
    import polars as pl

    lines = text.count("\n") + (not text.endswith("\n"))
    if not text or "\n\n" in text or text.count(separator) != (width - 1) * lines:
        return None
    # The parser takes the number of columns from the first line.
    if text.partition("\n")[0].count(separator) != width - 1:
        return None
    regular: Any = {"has_header": False, "quote_char": None, "infer_schema": False, "truncate_ragged_lines": True}
    frame = pl.read_csv(io.BytesIO(text.encode("utf-8")), separator=separator, new_columns=_names(width), **regular)
    # The total of the separators may be right although a line is too short: then its last column is null.
    if frame.shape != (lines, width) or sum(frame.null_count().row(0)):
        return None
    return frame.with_row_index("line", offset=first).with_columns(pl.col("line").cast(pl.Int64))


def careful_columns(
    text: str, split: Callable[[str], list[str]], width: int, wrong: Callable[[int, int, str], DataError],
    first: int = 1,
) -> pl.DataFrame:  # fmt: skip
    """Parse the same columns line by line and skip blank lines. ``wrong`` makes the error for a wrong column count."""
    import polars as pl

    rows = []
    for number, line in enumerate(text.split("\n"), start=first):
        if not line.strip(WHITE):
            continue
        fields = split(line)
        if len(fields) != width:
            raise wrong(number, len(fields), line)
        rows.append((number, *fields))
    schema = {"line": pl.Int64(), **dict.fromkeys(_names(width), pl.String())}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _names(width: int) -> list[str]:
    return [f"column_{number}" for number in range(1, width + 1)]


def no_value(path: Path, line: int, name: str) -> DataError:
    """The error for a missing value."""
    message = f"{place(path, line)}: the column {name} has no value; every line needs one"
    return DataError(message, code="no-value", line=line, column=name)


def reason(error: BaseException) -> str:
    """Why something failed, on one line: what the system says, or the first line of what a library says."""
    said = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
    return str(said).splitlines()[0][:200]


def shown(value: object) -> str:
    """A value as quoted in a message, cut to a fixed length."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def listing(names: Iterable[object]) -> str:
    """Names from a file as listed in a message: on one line, printable, and limited in number and length."""
    texts = [text if text.isprintable() else repr(text)[1:-1] for text in map(str, names)]
    more = f" and {len(texts) - _NAMES_SHOWN} more" if len(texts) > _NAMES_SHOWN else ""
    return (", ".join(text[:_SHOWN] for text in texts[:_NAMES_SHOWN]) or "none") + more
