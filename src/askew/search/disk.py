"""The files of an index: memory-mapped strings, headers and checksums.

Every index is a folder with a ``header.json``, which is written last and names its kind, its format and its files, with
one checksum per block of each file and one of the header itself. A block is compared with its checksum before its first
use.
"""

from __future__ import annotations

import json
import shlex
import shutil
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.core.errors import AskewError, ConfigError, DataError, StoreError
from askew.core.files import parse_json, write_whole, written_whole

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


def is_lazy(facts: Known) -> bool:
    """Whether the blocks of a file are checked at first use and not when the index is opened."""
    return int(facts["size"]) > CHECK_WHOLE


def check_size(path: Path, facts: Known) -> None:
    """Raise an error if a file is missing or has the wrong size."""
    try:
        size, expected = path.stat().st_size, int(facts["size"])
    except (OSError, KeyError, TypeError, ValueError):
        raise StoreError(f"{path}: a file of the index is missing or cannot be read; {remedy(path)}") from None
    if size != expected:
        raise StoreError(f"{path}: damaged or cut short (expected {expected} bytes, found {size}); {remedy(path)}")


def check_file(path: Path, facts: Known) -> None:
    """Read a whole file and raise an error if it does not match its checksums."""
    check_size(path, facts)
    sums = _checksums(path, facts)
    try:
        with path.open("rb") as file:
            for number in range(len(sums)):
                _compare(path, number, file.read(BLOCK), sums)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror or error}); {remedy(path)}") from None


def _checksums(path: Path, facts: Known) -> Any:
    try:
        sums = np.frombuffer(bytes.fromhex(facts["blocks"]), ">u4")
    except (KeyError, TypeError, ValueError):
        sums = np.zeros(0, ">u4")
    if len(sums) != -(-int(facts["size"]) // BLOCK):
        raise StoreError(f"{path}: the checksums of the file are damaged; {remedy(path)}")
    return sums


def _compare(path: Path, number: int, data: Any, sums: Any) -> None:
    if zlib.crc32(data) != sums[number]:
        start = number * BLOCK
        raise StoreError(f"{path}: damaged between byte {start} and {start + len(data)}; {remedy(path)}")


def dtype_of(name: str) -> Any:
    """The number type of a file, from the ending of its name: ``offsets.i64``."""
    ending = name.rpartition(".")[2]
    return np.dtype(f"{ending[0]}{int(ending[1:]) // 8}")


class CheckedArray:
    """A memory-mapped array that checks its blocks before it returns elements.

    ``raw`` is the unchecked array for compiled loops; call ``check`` for the ranges that they read first. With
    ``width``, the array has rows of that many numbers. The ending of the name says their type.
    """

    def __init__(self, path: Path, facts: Known, width: int | None = None) -> None:
        check_size(path, facts)
        dtype = dtype_of(path.name)
        flat: Any = np.memmap(path, dtype, "r").view(np.ndarray) if facts["size"] else np.zeros(0, dtype)
        self.raw: Any = flat if width is None else flat.reshape(-1, width)
        self._row = flat.itemsize * (width or 1)
        self._path, self._bytes = path, memoryview(flat.view(np.uint8))
        self._is_checked = not is_lazy(facts)
        self._sums = np.zeros(0, np.uint32) if self._is_checked else _checksums(path, facts)
        self._compared = np.zeros(len(self._sums), np.bool_)

    def check(self, starts: Any, stops: Any) -> None:
        """Verify the checksums of the blocks that hold the given ranges of elements or rows, each block once."""
        if self._is_checked:
            return
        starts, stops = (np.atleast_1d(np.asarray(edges, np.int64)) * self._row for edges in (starts, stops))
        filled = stops > starts
        begins, ends = starts[filled] // BLOCK, (stops[filled] - 1) // BLOCK
        if len(begins) and (begins.min() < 0 or ends.max() >= len(self._sums)):
            raise StoreError(f"{self._path}: another file refers to bytes outside this file; {remedy(self._path)}")
        open_ranges = np.zeros(len(self._sums) + 1, np.int64)
        np.add.at(open_ranges, begins, 1)
        np.subtract.at(open_ranges, ends + 1, 1)
        needed = (np.cumsum(open_ranges)[:-1] > 0) & ~self._compared
        for number in np.flatnonzero(needed).tolist():
            _compare(self._path, number, self._bytes[number * BLOCK : (number + 1) * BLOCK], self._sums)
            self._compared[number] = True
        # A counter would be wrong here: two threads may check the same block at the same time.
        self._is_checked = bool(self._compared.all())

    def whole(self) -> Any:
        """The whole array, after checking every block."""
        self.check(0, len(self.raw))
        return self.raw

    def __getitem__(self, key: Any) -> Any:
        if not self._is_checked:
            if isinstance(key, slice) and key.step in (None, 1):
                self.check(*key.indices(len(self.raw))[:2])
            elif not isinstance(key, slice) and (places := np.asarray(key)).dtype.kind in "iu" and (places >= 0).all():
                self.check(places.ravel(), places.ravel() + 1)
            else:
                self.whole()
        return self.raw[key]

    def __len__(self) -> int:
        return len(self.raw)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.whole(), dtype, copy=copy)


FORMAT = 3
# The texts of the documents one after the other, as UTF-8, and where each text begins.
TEXTS, TEXT_OFFSETS = "texts.u8", "text_offsets.i64"


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


def new_folder(folder: Path) -> Path:
    """Create a folder for an index. A folder that already has an index is refused."""
    if (folder / "header.json").exists():
        problem = f"index {folder}: it already has an index; give another folder or delete this one"
        raise StoreError(problem, code="index-exists")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_header(folder: Path, kind: str, files: Iterable[str], facts: dict[str, Any]) -> None:
    """Write the header, which makes the folder an index."""
    names = [*files, *([TEXTS, TEXT_OFFSETS] if (folder / TEXTS).exists() else [])]
    checksums = {name: describe_file(folder / name) for name in names}
    write_sealed(folder / "header.json", {**facts, "kind": kind, "format": FORMAT, "files": checksums})


def write_sealed(path: Path, header: dict[str, Any]) -> None:
    """Write a header with a checksum of its content, completely or not at all."""
    write_whole(path, json.dumps({**header, "checksum": _checksum(header)}, indent=1, sort_keys=True))


def _checksum(header: dict[str, Any]) -> int:
    facts = {name: value for name, value in header.items() if name != "checksum"}
    return zlib.crc32(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode())


def read_sealed(path: Path, what: str) -> dict[str, Any]:
    """Read and check a header that names files. Error messages name ``what``."""
    try:
        header = parse_json(path.read_bytes())
        number, is_whole = header["format"], header["checksum"] == _checksum(header)
        dict(header["files"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        number, is_whole = FORMAT, False
    if number != FORMAT:
        raise StoreError(f"{what}: format {number}, this askew reads format {FORMAT}; {remedy(path)}")
    if not is_whole:
        raise StoreError(f"{what}: the header is damaged; {remedy(path)}", code="damaged-header")
    return dict(header)


def read_header(folder: Path) -> dict[str, Any]:
    """Read the header of an index of any kind."""
    path = folder / "header.json"
    if not path.exists():
        raise DataError(f"index {folder}: there is no index (no header.json); make one with askew index")
    return {"kind": "bm25", **read_sealed(path, f"index {folder}")}


def open_header(folder: Path, kind: str, lazily: Collection[str] = ()) -> dict[str, Any]:
    """Read the header of an index of the given kind, and check its files.

    Large files named in ``lazily`` are not checked here: ``CheckedArray`` checks each block at first use.
    """
    header = read_header(folder)
    if header["kind"] != kind:
        raise ConfigError(
            f"index {folder}: made for the ranker {header['kind']!r}, not {kind!r}; build an index for {kind!r}",
            code="other-ranker",
            kind=header["kind"],
        )
    check_files(folder, header, lazily)
    return header


def check_files(folder: Path, header: dict[str, Any], lazily: Collection[str] = ()) -> None:
    """Compare the files that a header names with their sizes and checksums."""
    for name, facts in header["files"].items():
        check = check_size if name in (*lazily, TEXTS, TEXT_OFFSETS) and is_lazy(facts) else check_file
        check(folder / name, facts)


def refuse_repeats(doc_ids: pa.Array) -> None:
    """Raise an error if a document id occurs more than once."""
    if pc.count_distinct(doc_ids).as_py() < len(doc_ids):
        counts = pc.value_counts(doc_ids)
        twice = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"].as_py()
        raise DataError(f"documents: the document id {twice!r} occurs more than once", code="repeated-id", id=twice)


def batches_of(documents: Iterable[pa.Table], ids: list[pa.Array]) -> Iterator[list[str]]:
    """The texts of each batch of documents. Their ids are appended to ``ids``."""
    for batch in documents:
        ids.append(flat(batch["doc_id"]).cast(pa.string()))
        yield flat(batch["text"]).fill_null("").to_pylist()


def finish_index(
    folder: Path, kind: str, files: Iterable[str], ids: list[pa.Array], facts: dict[str, Any]
) -> dict[str, Any]:
    """Write the document ids and the header of an index, and return its facts."""
    doc_ids = pa.concat_arrays(ids) if ids else pa.array([], pa.string())
    refuse_repeats(doc_ids)
    write_strings(folder / "doc_ids.arrow", doc_ids)
    facts = {"documents": len(doc_ids), **facts}
    write_header(folder, kind, [*files, "doc_ids.arrow"], facts)
    return facts


def keeping_texts(batches: Iterable[pa.Table], folder: Path) -> Iterator[pa.Table]:
    """Yield documents and write their texts beside the index, for rerankers, feedback and display."""
    with (
        written_whole(folder / TEXTS) as data_path, data_path.open("wb") as data_file,
        written_whole(folder / TEXT_OFFSETS) as offsets_path, offsets_path.open("wb") as offsets_file,
    ):  # fmt: skip
        end = np.zeros(1, np.int64)
        offsets_file.write(end.tobytes())
        for batch in batches:
            data, offsets = bytes_of(flat(batch["text"]).cast(pa.large_string()).fill_null(""))
            data_file.write(data[offsets[0] : offsets[-1]])
            offsets_file.write((offsets[1:] - offsets[0] + end).tobytes())
            end += offsets[-1] - offsets[0]
            yield batch


def bytes_of(texts: pa.Array) -> tuple[Any, Any]:
    """The bytes of an array of texts, and the offset of each text with the end of the last one. Nothing is copied."""
    buffers = texts.buffers()
    size = np.int64 if texts.type == pa.large_string() else np.int32
    data = np.frombuffer(buffers[2], np.uint8) if buffers[2] is not None else np.zeros(0, np.uint8)
    return data, np.frombuffer(buffers[1], size)[texts.offset : texts.offset + len(texts) + 1]


class StoredTexts:
    """The texts of an index by document ordinal. Each text is checked and read from disk on access."""

    def __init__(self, folder: Path | str) -> None:
        folder = Path(folder)
        if not (folder / TEXTS).exists():
            raise DataError(
                f"index {folder}: it has no texts of documents; build the index again with texts", code="no-texts"
            )
        header = read_header(folder)
        check_files(folder, {"files": {name: header["files"].get(name, {}) for name in (TEXTS, TEXT_OFFSETS)}})
        self._texts, self._offsets = (
            CheckedArray(folder / name, header["files"][name]) for name in (TEXTS, TEXT_OFFSETS)
        )
        if len(self) != header["documents"]:
            path = folder / TEXT_OFFSETS
            raise StoreError(f"{path}: {len(self)} texts for {header['documents']} documents; {remedy(path)}")

    def __getitem__(self, doc: int) -> str:
        start, stop = self._offsets[doc : doc + 2].tolist()
        return str(self._texts[start:stop].tobytes(), "utf-8")

    def __len__(self) -> int:
        return len(self._offsets) - 1


def places_of(ids: pa.Array, ids_of_index: pa.Array, what: str) -> Any:
    """The position of each wanted document id among the known ids. A missing id is an error."""
    places = pc.index_in(ids.cast(pa.string()), value_set=ids_of_index.cast(pa.string()))
    if places.null_count:
        missing = ids.filter(pc.is_null(places))
        raise DataError(f"{what}: {len(missing)} documents are not in it, the first is {missing[0].as_py()!r}")
    return places.to_numpy(zero_copy_only=False).astype(np.int64)


SOURCE = "source.json"
# These files identify the documents of an index of any kind: equal files mean equal documents.
_DOCUMENTS = ("doc_ids.arrow", TEXTS, TEXT_OFFSETS)


@dataclass
class IndexCheck:
    """The result of a check. ``damaged`` has a message for each damaged file, by the folder of its header."""

    kind: str = "unknown"
    files: int = 0
    damaged: dict[Path, list[str]] = field(default_factory=dict)

    @property
    def messages(self) -> list[str]:
        """One message for each damaged file."""
        return [line for lines in self.damaged.values() for line in lines]


def check_index(folder: Path) -> IndexCheck:
    """Compare every file of an index and of its weights with its checksums."""
    check = IndexCheck()
    for path in sorted(folder.rglob("header.json")):
        try:
            header = read_header(folder) if path.parent == folder else read_sealed(path, f"weights {path.parent}")
        except AskewError as error:
            check.damaged.setdefault(path.parent, []).append(str(error))
            continue
        if path.parent == folder:
            check.kind = str(header["kind"])
        for name, facts in header["files"].items():
            check.files += 1
            try:
                check_file(path.parent / name, facts)
            except StoreError as error:
                check.damaged.setdefault(path.parent, []).append(str(error))
    return check


def write_source(folder: Path, source: dict[str, Any]) -> None:
    """Save the source and the settings of an index, so that it can be rebuilt."""
    write_sealed(folder / SOURCE, {**source, "format": FORMAT, "files": {}})


def read_source(folder: Path) -> dict[str, Any] | None:
    """The source and the settings of an index; None if they are not known."""
    try:
        return read_sealed(folder / SOURCE, f"index {folder}")
    except StoreError:
        return None


def rebuild_command(folder: Path, kind: str) -> str:
    """The command that rebuilds an index, as far as its source is known."""
    source = read_source(folder)
    if source is None:
        more = "" if kind in ("bm25", "unknown") else f" --ranker {kind}"
        return f"askew index DOCS --out {shlex.quote(str(folder))}{more}"
    words = ["askew", "index", source["docs"], "--out", str(folder), "--ranker", source["ranker"]]
    words += ["--fields", ",".join(source["fields"])] if source["fields"] else []
    words += [] if source["texts"] else ["--no-texts"]
    for name, value in source["settings"].items():
        words += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)


def same_documents(first: Path, other: Path) -> bool:
    """Whether two indexes have the same documents; True if a header cannot be read."""
    try:
        files = [read_header(folder)["files"] for folder in (first, other)]
    except AskewError:
        return True
    return all(files[0].get(name) == files[1].get(name) for name in _DOCUMENTS)


def put_in_place(rebuilt: Path, folder: Path) -> None:
    """Replace a damaged index by a new one."""
    retired = folder.with_name(f".{folder.name}.damaged")
    shutil.rmtree(retired, ignore_errors=True)
    folder.rename(retired)
    rebuilt.rename(folder)
    shutil.rmtree(retired)
