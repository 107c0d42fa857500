"""Word vectors from files, checked and returned as words and a matrix.

Four formats are distinguished by their content:
GloVe text (a word and its numbers on each line), word2vec text (the same after a line "words width"), word2vec binary
(that line, then each word, a blank and its numbers as little-endian float32), and a NumPy matrix (``.npy``) with a file
of words, one per line. Text is UTF-8. A word of a text file may contain blanks (GloVe's largest files have some),
unless its last part is a number: then the line has too many numbers.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import ConfigError, DataError, place

Floats = npt.NDArray[np.float32]
_NUMPY_MAGIC = b"\x93NUMPY"
_GZIP_MAGIC = b"\x1f\x8b"
_HEADER = re.compile(rb"(\d+) (\d+) ?\r?\n")
_BLOCK = 1 << 23
_LARGEST = float(np.finfo(np.float32).max)
# Wider than any file in use. A larger number in a header means a damaged file, and could exhaust the memory.
_WIDEST = 1 << 16
_IN_NUMBERS = frozenset(b"0123456789+-.eE naifNAIF")


def read_vectors(path: Path, vocabulary: Path | None = None) -> tuple[list[str], Floats]:
    """Read the words of a file and their vectors, unchanged."""
    head = _head(path)
    found = vocabulary_of(path, vocabulary)
    if found is not None:
        words = _read_words(found)
        return words, _read_matrix(path, len(words))
    header = _HEADER.match(head)
    if header is None:
        return _read_lines(path, None, None)
    count, width = int(header[1]), int(header[2])
    if not 0 < width <= _WIDEST:
        raise DataError(f"{place(path, 1)}: expected a vector length from 1 to {_WIDEST} in this line, found {width}")
    if _is_binary(head[header.end() :], width):
        return _read_binary(path, header.end(), count, width)
    return _read_lines(path, count, width)


def vocabulary_of(path: Path, vocabulary: Path | None = None) -> Path | None:
    """Return the file with the words of a matrix: the given one, or vocab.txt in its folder; None for other formats."""
    if _head(path).startswith(_NUMPY_MAGIC):
        return vocabulary or path.parent / "vocab.txt"
    if vocabulary is not None:
        raise ConfigError(
            f"vectors {path}: vocabulary= is only for vectors in an .npy file; leave out vocabulary={vocabulary}"
        )
    return None


def check_readable(path: Path, what: str) -> None:
    """Raise a ``DataError`` that names the file if it cannot be read."""
    try:
        with path.open("rb"):
            pass
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise DataError(f"{what} {path}: no such file") from None
    except OSError as error:
        raise DataError(f"{what} {path}: the file cannot be read ({error.strerror or error})") from None


def _head(path: Path) -> bytes:
    check_readable(path, "vectors")
    with path.open("rb") as file:
        head = file.read(1 << 12)
    if not head:
        raise DataError(f"vectors {path}: expected word vectors, found an empty file")
    if head.startswith(_GZIP_MAGIC):
        raise DataError(f"vectors {path}: expected word vectors, found a gzip file; unpack it first")
    return head


def _is_binary(first: bytes, width: int) -> bool:
    """Whether the first vector is binary: not a text line of ``width`` numbers of two characters or more each."""
    rest = first[first.find(b" ") + 1 :]
    line = rest.partition(b"\n")[0].rstrip(b"\r")
    return len(line) < min(2 * width - 1, len(rest)) or not frozenset(line) <= _IN_NUMBERS


def _read_lines(path: Path, count: int | None, width: int | None) -> tuple[list[str], Floats]:
    words: list[str] = []
    parts: list[Floats] = []
    skipped = 0 if count is None else 1
    for first, lines in _blocks_of_lines(path, skipped):
        if width is None:
            width = max(1, lines[0].rstrip(" ").count(" "))
        found, numbers = _parse(path, first, lines, width)
        words += found
        parts.append(numbers)
    if not words or width is None:
        raise DataError(f"vectors {path}: expected word vectors, found no line with a vector")
    if count is not None and len(words) != count:
        raise DataError(
            f"vectors {path}: the first line announces {count} words, found {len(words)}; the file is cut short, or "
            "its first line is wrong"
        )
    _refuse_repeats(words, lambda i: place(path, i + 1 + skipped))
    return words, np.concatenate(parts)


def _blocks_of_lines(path: Path, skipped: int) -> Iterator[tuple[int, list[str]]]:
    """Yield blocks of complete lines, each with the number of its first line."""
    line, waiting = 1 + skipped, b""
    with path.open("rb") as file:
        for _ in range(skipped):
            file.readline()
        while block := file.read(_BLOCK):
            whole, end, waiting = (waiting + block).rpartition(b"\n")
            if end:
                lines = _decode(path, line, whole)
                yield line, lines
                line += len(lines)
    if waiting:
        yield line, _decode(path, line, waiting)


def _decode(path: Path, first: int, block: bytes) -> list[str]:
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first + block.count(b"\n", 0, error.start)
        raise DataError(f"{place(path, line)}: expected UTF-8 text, found byte 0x{block[error.start]:02x}") from None
    if first == 1:
        text = text.removeprefix("\ufeff")
    return text.split("\n")


def _parse(path: Path, first: int, lines: list[str], width: int) -> tuple[list[str], Floats]:
    """Parse all lines of a block at once; if that fails, parse each line by itself."""
    pairs = [line.rstrip(" \r").partition(" ") for line in lines]
    fields = pc.split_pattern(pa.array([rest for _, _, rest in pairs], pa.large_string()), " ")
    if (pc.list_value_length(fields).to_numpy() == width).all() and all(word for word, _, _ in pairs):
        try:
            numbers = pc.cast(fields.flatten(), pa.float32()).to_numpy().reshape(-1, width)
        except pa.ArrowInvalid:
            numbers = None
        if numbers is not None and np.isfinite(numbers).all():
            return [word for word, _, _ in pairs], numbers
    found = [_parse_line(place(path, first + i), line, width) for i, line in enumerate(lines)]
    return [word for word, _ in found], np.array([numbers for _, numbers in found], np.float32)


def _parse_line(where: str, line: str, width: int) -> tuple[str, list[float]]:
    word, *fields = line.rstrip(" \r").rsplit(" ", width)
    if len(fields) != width or not word.strip():
        raise DataError(f"{where}: expected a word and {width} numbers, found {len(line.split())} fields")
    if " " in word and _number(word.rpartition(" ")[2]) is not None:
        raise DataError(f"{where}: expected a word and {width} numbers, found {len(line.split())} fields")
    numbers = []
    for field in fields:
        number = _number(field)
        if number is None or not abs(number) <= _LARGEST:
            raise DataError(f"{where}: expected finite numbers after the word {word!r}, found {field!r}")
        numbers.append(number)
    return word, numbers


def _number(text: str) -> float | None:
    # Python reads 1_000 as a number, but vector files have no such numbers.
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _read_binary(path: Path, start: int, count: int, width: int) -> tuple[list[str], Floats]:
    size = path.stat().st_size
    # The shortest record is one letter, a blank and the numbers, so a count that needs more bytes is wrong.
    if count * (4 * width + 2) > size - start:
        raise DataError(
            f"vectors {path}: the first line announces {count} words of width {width}, but the file is shorter"
        )
    words, vectors = [], np.empty((count, width), "<f4")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = start
        for i in range(count):
            blank = data.find(b" ", at)
            if blank < 0 or blank + 1 + 4 * width > size:
                raise DataError(f"vectors {path}: the file is cut short in word {i + 1} of {count}, at byte {at}")
            words.append(_binary_word(path, i, data[at:blank]))
            at = blank + 1 + 4 * width
            vectors[i] = np.frombuffer(data[blank + 1 : at], "<f4")
        if data[at : at + 64].strip():
            raise DataError(f"vectors {path}: the first line announces {count} words, but more follow at byte {at}")
    _refuse_repeats(words, lambda i: f"vectors {path}: word {i + 1}")
    _refuse_odd(vectors, lambda i: f"vectors {path}: word {i + 1} ({words[i]!r})")
    return words, vectors.astype(np.float32, copy=False)


def _binary_word(path: Path, i: int, data: bytes) -> str:
    try:
        # Some programs end each record with a line feed, which then precedes the next word.
        word = data.lstrip(b"\n").decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"vectors {path}: expected UTF-8 text, found {data[:20]!r} as word {i + 1}") from None
    if not word:
        raise DataError(f"vectors {path}: expected a word, but word {i + 1} is empty")
    return word


def _read_matrix(path: Path, words: int) -> Floats:
    try:
        matrix: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:
        # The header of the file is parsed as Python: a damaged header can raise almost any exception.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(f"vectors {path}: not a complete .npy file ({reason})") from None
    if matrix.ndim != 2 or matrix.dtype.kind != "f":
        raise DataError(f"vectors {path}: expected a matrix of floats, found {matrix.dtype} of shape {matrix.shape}")
    if len(matrix) != words:
        raise DataError(
            f"vectors {path}: expected {words} rows, one for each word of the vocabulary, found {len(matrix)}"
        )
    vectors = np.ascontiguousarray(matrix, np.float32)
    _refuse_odd(vectors, lambda i: f"vectors {path}: row {i + 1}")
    return vectors


def _read_words(path: Path) -> list[str]:
    check_readable(path, "vocabulary")
    data = path.read_bytes().replace(b"\r\n", b"\n").removesuffix(b"\n")
    words = _decode(path, 1, data) if data else []
    for i, word in enumerate(words):
        if not word.strip():
            raise DataError(f"{place(path, i + 1)}: expected one word in each line, found a blank line")
    _refuse_repeats(words, lambda i: place(path, i + 1))
    return words


def _refuse_repeats(words: list[str], where: Callable[[int], str]) -> None:
    if len(set(words)) == len(words):
        return
    seen: set[str] = set()
    for i, word in enumerate(words):
        if word in seen:
            raise DataError(f"{where(i)}: the word {word!r} occurs twice; expected each word once")
        seen.add(word)


def _refuse_odd(vectors: Floats, where: Callable[[int], str]) -> None:
    odd = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(odd):
        raise DataError(f"{where(int(odd[0]))}: expected finite numbers, found NaN or infinity")
