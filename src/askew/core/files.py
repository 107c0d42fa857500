"""Atomic writes: a file is written under a temporary name and then renamed, so that even after a power cut it is
complete or absent.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from askew.core.errors import DataError, place

# Short hashes of content: the same content has the same fingerprint on every machine.


def fingerprint(value: Any, length: int = 16) -> str:
    """The fingerprint of a JSON-like value; dictionary order does not matter."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:length]


def digest_file(path: Path) -> str:
    """The SHA-256 of a file, read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def parse_json(text: str | bytes, **more: Any) -> Any:
    """Parse JSON of any origin; ValueError for NaN, infinite and huge numbers, deep nesting and lone surrogates."""
    try:
        found = json.loads(text, parse_constant=_number, parse_float=_number, parse_int=_number, **more)
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML of any origin; ValueError also for deep nesting and for numbers that are not finite or of 64 bits."""
    try:
        found = tomllib.loads(text, parse_float=_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    waiting: list[Any] = [found]
    while waiting:
        one = waiting.pop()
        if isinstance(one, int) and abs(one) >= 2**63:
            raise ValueError("a whole number has more than 64 bits")
        waiting.extend(one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
    return found


def _number(text: str) -> int | float:
    number: int | float = int(text) if text.lstrip("-").isdigit() else float(text)
    if not (math.isfinite(number) if isinstance(number, float) else abs(number) < 2**64):
        raise ValueError(f"{text[:20]} is no finite number of 64 bits")
    return number


# The folder of the package's data files.

DATA = Path(__file__).parent.parent / "shipped"


HALF_WRITTEN = ".writing-"


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary file in the same folder. It is renamed to ``path`` on success and deleted on failure."""
    temporary = path.with_name(f"{HALF_WRITTEN}{os.getpid()}-{secrets.token_hex(4)}-{path.name}")
    try:
        yield temporary
        flush(temporary)
        temporary.replace(path)
        flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file atomically, a text as UTF-8. Missing folders are created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as temporary:
        temporary.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)


def check_file(path: Path, what: str) -> Path:
    """Return the path, or raise an error if it is not a file that can be reached."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise DataError(f"{what} {path}: no such file", code="missing-file") from None
    except OSError as error:
        raise DataError(f"{what} {path}: the file cannot be reached ({error.strerror})") from None
    if stat.S_ISDIR(status.st_mode):
        raise DataError(f"{what} {path}: expected a file, found a folder")
    return path


def decode_block(path: Path, first_line: int, block: bytes) -> str:
    """Decode a block of lines, or raise an error that names the line."""
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + block.count(b"\n", 0, error.start)
        problem = f"expected UTF-8 text, found the byte 0x{block[error.start]:02x}"
        message = f"{place(path, line)}: {problem}; convert the file first, as with iconv -f latin1 -t utf-8"
        raise DataError(message, code="not-utf-8", line=line) from None


def flush(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is written to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
