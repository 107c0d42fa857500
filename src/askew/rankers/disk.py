"""The files of an index: strings to be memory-mapped, headers, checksums.

Every index is a folder with a ``header.json``, written last, that names its kind, its format and its files.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import ConfigError, DataError, StoreError

# Files up to this size are checked whole when an index is opened; of larger ones, samples are.
_CHECK_WHOLE = 1 << 26
_SAMPLES, _SAMPLE = 64, 1 << 16
TEXTS = "texts.arrow"


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


def new_folder(folder: Path) -> Path:
    """A folder to write an index to; one that has an index is refused."""
    if (folder / "header.json").exists():
        raise StoreError(f"index {folder}: there is an index already; give another folder or delete it")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_header(folder: Path, kind: str, version: int, files: Iterable[str], facts: dict[str, Any]) -> None:
    """Write the header, which makes the folder an index."""
    names = [*files, *([TEXTS] if (folder / TEXTS).exists() else [])]
    known = {name: fingerprint_file(folder / name) for name in names}
    write_json(folder / "header.json", {"kind": kind, "format": version, "files": known, **facts})


def read_header(folder: Path) -> dict[str, Any]:
    """The header of an index of any kind."""
    path = folder / "header.json"
    if not path.exists():
        raise DataError(f"index {folder}: there is no index (no header.json); make one with askew index")
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
        header = {"kind": "bm25", **header}
        dict(header["files"]), header["format"]
    except (OSError, ValueError, KeyError, TypeError):
        raise StoreError(f"index {folder}: the header is damaged; index anew") from None
    return header


def open_header(folder: Path, kind: str, version: int) -> dict[str, Any]:
    """The header of an index of one kind and format, its files checked."""
    header = read_header(folder)
    if header["kind"] != kind:
        raise ConfigError(f"index {folder}: made for the ranker {header['kind']!r}, not {kind!r}; index for {kind!r}")
    if header["format"] != version:
        raise StoreError(f"index {folder}: format {header['format']}, this askew reads {version}; index anew")
    for name, known in header["files"].items():
        check_file(folder / name, known)
    return header


def refuse_repeats(doc_ids: pa.Array) -> None:
    """A document id is one document."""
    if pc.count_distinct(doc_ids).as_py() < len(doc_ids):
        counts = pc.value_counts(doc_ids)
        twice = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"].as_py()
        raise DataError(f"documents: the document id {twice!r} stands there more than once")


def keeping_texts(batches: Iterable[pa.Table], folder: Path) -> Iterator[pa.Table]:
    """Hand documents on while writing their texts beside the index, for rerankers, feedback and people."""
    schema = pa.schema([("value", pa.large_string())])
    temporary = folder / f".{TEXTS}.writing"
    try:
        with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for batch in batches:
                texts = flat(batch["text"]).cast(pa.large_string()).fill_null("")
                writer.write_batch(pa.record_batch([texts], schema=schema))
                yield batch
        temporary.replace(folder / TEXTS)
    finally:
        temporary.unlink(missing_ok=True)


class Texts:
    """The texts of an index by document ordinal, read from disk as they are asked for."""

    def __init__(self, folder: Path | str, documents: int) -> None:
        path = Path(folder) / TEXTS
        if not path.exists():
            raise DataError(f"index {folder}: the texts were not kept; index again without --no-texts")
        try:
            self._reader = pa.ipc.open_file(pa.memory_map(str(path)))
            self._batches = [self._reader.get_batch(i).column(0) for i in range(self._reader.num_record_batches)]
        except (pa.ArrowInvalid, OSError) as error:
            raise StoreError(f"{path}: the file is damaged ({error}); index anew") from None
        self._starts = np.concatenate([[0], np.cumsum([len(batch) for batch in self._batches])]).astype(np.int64)
        if int(self._starts[-1]) != documents:
            raise StoreError(f"{path}: {int(self._starts[-1])} texts for {documents} documents; index anew")

    def __getitem__(self, doc: int) -> str:
        batch = int(np.searchsorted(self._starts, doc, side="right")) - 1
        return str(self._batches[batch][doc - int(self._starts[batch])].as_py())

    def __len__(self) -> int:
        return int(self._starts[-1])


def places_of(wanted: pa.Array, known: pa.Array, what: str) -> Any:
    """Where the documents of one list stand in another."""
    found = pc.index_in(wanted.cast(pa.string()), value_set=known.cast(pa.string()))
    if found.null_count:
        missing = wanted.filter(pc.is_null(found))
        raise DataError(f"{what}: {len(missing)} documents are not in it, the first is {missing[0].as_py()!r}")
    return found.to_numpy(zero_copy_only=False).astype(np.int64)
