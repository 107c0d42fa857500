"""The files of an index: memory-mapped strings, headers and checksums.

Every index is a folder with a ``header.json``, which is written last and names its kind, its format and its files.
Format 1 has one checksum per file, and whole files are read when the index is opened. Format 2 has one checksum per
block of each file (see ``askew.rankers.blocks``) and one of the header itself.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import ConfigError, DataError, StoreError
from askew.core.whole_files import write_whole, written_whole
from askew.rankers.blocks import BlockChecker, Known, check_file, check_size, describe_file, is_lazy, remedy

FORMAT = 2
_READ = (1, 2)
TEXTS = "texts.arrow"
_TEXTS_BATCH = 1 << 13


def flat(column: pa.ChunkedArray) -> pa.Array:
    """Convert a chunked column to one array."""
    chunks = column.combine_chunks()
    return pa.concat_arrays(chunks.chunks) if isinstance(chunks, pa.ChunkedArray) else chunks


def write_strings(path: Path, values: pa.Array) -> None:
    """Write strings as an Arrow file that can be memory-mapped."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, pa.schema([("value", values.type)])) as writer:
        writer.write_batch(pa.record_batch([values], names=["value"]))


def read_strings(path: Path) -> pa.Array:
    """Read strings as a memory-mapped array."""
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise StoreError(f"{path}: the file is damaged ({error}); {remedy(path)}") from None
    return flat(table["value"])


def read_doc_ids(folder: Path) -> pa.Array:
    """Read and check the document ids of an index of any kind, without opening the index."""
    path = folder / "doc_ids.arrow"
    check_file(path, read_header(folder)["files"].get(path.name, {}))
    return read_strings(path)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file completely or not at all."""
    write_whole(path, json.dumps(value, indent=1, sort_keys=True))


def new_folder(folder: Path) -> Path:
    """Create a folder for an index. A folder that already has an index is refused."""
    if (folder / "header.json").exists():
        raise StoreError(f"index {folder}: it already has an index; give another folder or delete this one")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_header(
    folder: Path, kind: str, files: Iterable[str], facts: dict[str, Any], known: Mapping[str, Known] | None = None
) -> None:
    """Write the header, which makes the folder an index. Files that are not ``known`` are read for their checksums."""
    names = [*files, *([TEXTS] if (folder / TEXTS).exists() else [])]
    known = known or {}
    known = {name: known[name] if name in known else describe_file(folder / name) for name in names}
    write_sealed(folder / "header.json", {**facts, "kind": kind, "format": FORMAT, "files": known})


def write_sealed(path: Path, header: dict[str, Any]) -> None:
    """Write a header with a checksum of its content."""
    write_json(path, {**header, "checksum": _checksum(header)})


def _checksum(header: dict[str, Any]) -> int:
    facts = {name: value for name, value in header.items() if name != "checksum"}
    return zlib.crc32(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode())


def read_sealed(path: Path, what: str) -> dict[str, Any]:
    """Read and check a header that names files. Error messages name ``what``."""
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
        number, _ = header.setdefault("format", 1), dict(header["files"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise StoreError(f"{what}: the header is damaged; {remedy(path)}") from None
    if number not in _READ:
        known = " and ".join(map(str, _READ))
        raise StoreError(f"{what}: format {number}, this askew reads formats {known}; {remedy(path)}")
    if ("checksum" in header or number > 1) and header.get("checksum") != _checksum(header):
        raise StoreError(f"{what}: the header is damaged; {remedy(path)}")
    return dict(header)


def read_header(folder: Path) -> dict[str, Any]:
    """Read the header of an index of any kind."""
    path = folder / "header.json"
    if not path.exists():
        raise DataError(f"index {folder}: there is no index (no header.json); make one with askew index")
    return {"kind": "bm25", **read_sealed(path, f"index {folder}")}


def open_header(folder: Path, kind: str, lazily: Collection[str] = ()) -> dict[str, Any]:
    """Read the header of an index of the given kind, and check its files.

    Large files named in ``lazily`` are not checked here: their readers (``CheckedArray``, ``StoredTexts``) check each
    block.
    """
    header = read_header(folder)
    if header["kind"] != kind:
        raise ConfigError(
            f"index {folder}: made for the ranker {header['kind']!r}, not {kind!r}; build an index for {kind!r}"
        )
    check_files(folder, header, lazily)
    return header


def check_files(folder: Path, header: dict[str, Any], lazily: Collection[str] = ()) -> None:
    """Compare the files that a header names with their sizes and checksums."""
    for name, known in header["files"].items():
        check = check_size if name in (*lazily, TEXTS) and is_lazy(known) else check_file
        check(folder / name, known)


def refuse_repeats(doc_ids: pa.Array) -> None:
    """Raise an error if a document id occurs more than once."""
    if pc.count_distinct(doc_ids).as_py() < len(doc_ids):
        counts = pc.value_counts(doc_ids)
        twice = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"].as_py()
        raise DataError(f"documents: the document id {twice!r} occurs more than once")


def keeping_texts(batches: Iterable[pa.Table], folder: Path) -> Iterator[pa.Table]:
    """Yield documents and write their texts beside the index, for rerankers, feedback and display."""
    with written_whole(folder / TEXTS) as temporary, TextsWriter(temporary) as writer:
        for batch in batches:
            writer.write(flat(batch["text"]))
            yield batch


class TextsWriter:
    """Writes texts in batches of a fixed size, so that the file does not depend on the batches of the input."""

    def __init__(self, path: Path) -> None:
        self._schema = pa.schema([("value", pa.large_string())])
        self._sink = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_file(self._sink, self._schema)
        self._waiting: list[pa.Array] = []
        self._rows = 0

    def write(self, texts: pa.Array) -> None:
        """Append texts. A null becomes an empty text."""
        self._waiting.append(texts.cast(pa.large_string()).fill_null(""))
        self._rows += len(texts)
        if self._rows >= _TEXTS_BATCH:
            rest = self._rows % _TEXTS_BATCH
            self._write_waiting(self._rows - rest)

    def _write_waiting(self, rows: int) -> None:
        texts = pa.concat_arrays(self._waiting)
        for start in range(0, rows, _TEXTS_BATCH):
            part = texts.slice(start, min(_TEXTS_BATCH, rows - start))
            self._writer.write_batch(pa.record_batch([part], schema=self._schema))
        self._waiting, self._rows = [texts.slice(rows)], len(texts) - rows

    def __enter__(self) -> TextsWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._rows:
            self._write_waiting(self._rows)
        self._writer.close()
        self._sink.close()


class StoredTexts:
    """The texts of an index by document ordinal. Each text is checked and read from disk on access."""

    def __init__(self, folder: Path | str, documents: int) -> None:
        self._path = path = Path(folder) / TEXTS
        if not path.exists():
            raise DataError(f"index {folder}: it has no texts of documents; build the index again with texts")
        known = _known_texts(path)
        if not is_lazy(known):
            check_file(path, known)
        try:
            self._file = pa.memory_map(str(path)).read_buffer()
            self._guard = BlockChecker(path, memoryview(self._file), known)
            self._check_footer()
            reader = pa.ipc.open_file(pa.BufferReader(self._file))
            self._batches = [reader.get_batch(i).column(0) for i in range(reader.num_record_batches)]
        except (pa.ArrowException, OSError) as error:
            raise StoreError(f"{path}: the file is damaged ({error}); {remedy(path)}") from None
        self._starts = np.concatenate([[0], np.cumsum([len(batch) for batch in self._batches])]).astype(np.int64)
        self._check_layout()
        if int(self._starts[-1]) != documents:
            raise StoreError(f"{path}: {int(self._starts[-1])} texts for {documents} documents; {remedy(path)}")

    def _check_footer(self) -> None:
        """Check the end of the file: the footer with the positions of the batches, its length and Arrow's mark."""
        size = self._file.size
        self._guard.check(size - 10, size)
        self._guard.check(size - 10 - int.from_bytes(self._file[-10:-6].to_pybytes(), "little"), size)

    def _check_layout(self) -> None:
        """Check all bytes except texts and their offsets, which are checked on access."""
        spans = sorted(self._span(batch.buffers()[i]) for batch in self._batches for i in (1, 2) if batch.buffers()[i])
        ends = np.array([0, *(stop for _, stop in spans)])
        begins = np.array([*(start for start, _ in spans), self._file.size])
        self._guard.check(ends, begins)

    def _span(self, buffer: pa.Buffer) -> tuple[int, int]:
        start = buffer.address - self._file.address
        return start, start + buffer.size

    def _check(self, batch: pa.Array, row: int) -> None:
        _, offsets, data = batch.buffers()
        first = self._span(offsets)[0] + 8 * (batch.offset + row)
        self._guard.check(first, first + 16)
        ends = np.frombuffer(offsets, np.int64)[batch.offset + row : batch.offset + row + 2]
        if data is not None:
            self._guard.check(*(self._span(data)[0] + ends)[:, None])

    def __getitem__(self, doc: int) -> str:
        number = int(np.searchsorted(self._starts, doc, side="right")) - 1
        batch, row = self._batches[number], doc - int(self._starts[number])
        if not self._guard.complete:
            self._check(batch, row)
        return str(batch[row].as_py())

    def __len__(self) -> int:
        return int(self._starts[-1])


def _known_texts(path: Path) -> dict[str, Any]:
    """The size and checksums of the texts in the index header. Texts without an index are not checked."""
    if not (path.parent / "header.json").exists():
        return describe_file(path)
    known = read_header(path.parent)["files"].get(TEXTS)
    if known is None:
        raise StoreError(f"{path}: not a file of this index; {remedy(path)}")
    check_size(path, known)
    return dict(known)


def places_of(wanted: pa.Array, known: pa.Array, what: str) -> Any:
    """The position of each wanted document id among the known ids. A missing id is an error."""
    found = pc.index_in(wanted.cast(pa.string()), value_set=known.cast(pa.string()))
    if found.null_count:
        missing = wanted.filter(pc.is_null(found))
        raise DataError(f"{what}: {len(missing)} documents are not in it, the first is {missing[0].as_py()!r}")
    return found.to_numpy(zero_copy_only=False).astype(np.int64)
