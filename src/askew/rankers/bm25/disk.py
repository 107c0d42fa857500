"""The files of an index: strings to be memory-mapped, headers, checksums."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from askew.core.errors import StoreError

# Files up to this size are checked whole when an index is opened; of larger ones, samples are.
_CHECK_WHOLE = 1 << 26
_SAMPLES, _SAMPLE = 64, 1 << 16


def flat(column: pa.ChunkedArray) -> pa.Array:
    """One array of a column in pieces."""
    chunks = column.combine_chunks()
    return pa.concat_arrays(chunks.chunks) if isinstance(chunks, pa.ChunkedArray) else chunks


def write_strings(path: Path, values: pa.Array) -> None:
    """Strings as an Arrow file that can be memory-mapped."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, pa.schema([("value", values.type)])) as writer:
        writer.write_batch(pa.record_batch([values], names=["value"]))


def read_strings(path: Path) -> pa.Array:
    """Strings straight from disk."""
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise StoreError(f"{path}: the file is damaged ({error}); index anew") from None
    return flat(table["value"])


def write_json(path: Path, value: Any) -> None:
    """Write a header whole or not at all."""
    temporary = path.with_suffix(".writing")
    temporary.write_text(json.dumps(value, indent=1, sort_keys=True), encoding="utf-8")
    temporary.replace(path)


def crc(path: Path) -> int:
    """The checksum of a whole file."""
    found = 0
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            found = zlib.crc32(block, found)
    return found


def _sample_crc(path: Path, size: int) -> int:
    """A checksum of evenly spaced samples, for files too large to read whole on opening."""
    if size <= _SAMPLES * _SAMPLE:
        return crc(path)
    found = 0
    with path.open("rb") as file:
        for i in range(_SAMPLES):
            file.seek(i * (size - _SAMPLE) // (_SAMPLES - 1))
            found = zlib.crc32(file.read(_SAMPLE), found)
    return found


def fingerprint_file(path: Path) -> dict[str, int]:
    """What is remembered of a file, to know later that it is still the same."""
    size = path.stat().st_size
    return {"size": size, "crc": crc(path), "sample": _sample_crc(path, size)}


def check_file(path: Path, known: dict[str, int]) -> None:
    """Refuse a file that is not as it was written."""
    try:
        size = path.stat().st_size
        same = size == known["size"] and (
            crc(path) == known["crc"] if size <= _CHECK_WHOLE else _sample_crc(path, size) == known["sample"]
        )
    except (OSError, KeyError, TypeError):
        raise StoreError(f"{path}: a file of the index is missing or cannot be read; index anew") from None
    if not same:
        raise StoreError(
            f"{path}: the file is damaged or cut short (expected {known['size']} bytes, found {size}); index anew"
        )
