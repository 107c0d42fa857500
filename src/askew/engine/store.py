"""The store: a folder of finished steps.

Its guarantees, each with a test: a part is there whole or not at all (written under another name, flushed,
renamed); the manifest comes last; nobody else writes to a step while it runs; a damaged part is an error and
never a shorter result. The names of the parts say which input rows they answer for and begin the digest of their
bytes, so the folder itself is the ledger of what is done, a part that was left behind can be trusted or refused, and
a step may go on with parts of another size.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from askew.core.errors import StoreError
from askew.core.fingerprint import digest_file
from askew.engine.manifest import Manifest, Part

_PART = re.compile(r"part-(\d{12})-(\d{12})-([0-9a-f]{16})\.parquet")
_META = b"askew"


class Store:
    """All finished and half-finished steps below one folder."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def folder(self, step: str, key: str) -> Path:
        """Where a step lives."""
        return self.root / f"{step}-{key}"

    def finished(self, step: str, key: str) -> Manifest | None:
        """The manifest of a finished step, or None."""
        path = self.folder(step, key) / "manifest.json"
        return Manifest.read(path) if path.exists() else None

    def steps(self) -> list[Manifest]:
        """All finished steps."""
        return [Manifest.read(path) for path in sorted(self.root.glob("*/manifest.json"))]

    def unfinished(self) -> dict[str, dict[str, int]]:
        """Steps that have parts but no manifest: how many parts, and how many input rows they answer for."""
        found: dict[str, dict[str, int]] = {}
        for path in sorted(self.root.glob("*/part-*")):
            name = _PART.fullmatch(path.name)
            if name and not (path.parent / "manifest.json").exists():
                facts = found.setdefault(path.parent.name, {"parts": 0, "rows in": 0})
                facts["parts"] += 1
                facts["rows in"] += int(name[2]) - int(name[1])
        return found

    @contextlib.contextmanager
    def writing(self, step: str, key: str) -> Iterator[StepWriter]:
        """Hold a step for writing. The lock goes with the process, however it ends."""
        locks = self.root / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        with (locks / f"{step}-{key}").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(f"{self.folder(step, key)}: another process is working on this step") from None
            yield StepWriter(self.folder(step, key))

    def read(self, manifest: Manifest, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """The parts of a finished step in order, each checked against its digest first."""
        folder = self.folder(manifest.step, manifest.key)
        for part in manifest.parts:
            path = folder / part.file
            try:
                data = path.read_bytes()
            except OSError as error:
                raise StoreError(f"{path}: a part of a finished step cannot be read ({error.strerror})") from None
            if len(data) != part.size or hashlib.sha256(data).hexdigest() != part.sha256:
                raise StoreError(f"{path}: the part is damaged (its digest is not the one in the manifest)")
            file = pq.ParquetFile(pa.BufferReader(data))
            if columns_of(file.schema_arrow) != manifest.columns or file.metadata.num_rows != part.rows:
                raise StoreError(
                    f"{path}: the part is not the one that the manifest tells of (expected {part.rows} rows of "
                    f"{', '.join(manifest.columns)}); delete its folder and run again"
                )
            yield file.read(columns=columns)

    def digest(self, path: Path) -> str:
        """The digest of a file, remembered as long as its size and time do not change."""
        stat = path.stat()
        mark = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
        known = self._digests()
        if mark not in known:
            known[mark] = digest_file(path)
            self.root.mkdir(parents=True, exist_ok=True)
            write_whole(self.root / "digests.json", json.dumps(known, indent=0, sort_keys=True).encode())
        return known[mark]

    def _digests(self) -> dict[str, str]:
        try:
            found = json.loads((self.root / "digests.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


class StepWriter:
    """Writes the parts of one step, then its manifest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.columns: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(".writing-*"):
            left.unlink()

    def done(self) -> list[Part]:
        """The parts that are there already, checked, in order."""
        parts = [self._read(path) for path in sorted(self.folder.iterdir()) if _PART.fullmatch(path.name)]
        for before, after in pairwise(parts):
            if after.start < before.stop:
                raise StoreError(f"{self.folder}: {before.file} and {after.file} answer for the same rows")
        return parts

    def write(self, table: pa.Table, start: int, stop: int, kept: int, dropped: dict[str, int]) -> Part:
        """Write one part, whole or not at all."""
        facts = {"start": start, "stop": stop, "kept": kept, "dropped": dict(sorted(dropped.items()))}
        described = table.combine_chunks().replace_schema_metadata({_META: json.dumps(facts, sort_keys=True)})
        sink = pa.BufferOutputStream()
        pq.write_table(described, sink, compression="zstd", write_page_checksum=True)
        data = sink.getvalue().to_pybytes()
        digest = hashlib.sha256(data).hexdigest()
        path = self.folder / f"part-{start:012d}-{stop:012d}-{digest[:16]}.parquet"
        self.columns = columns_of(table.schema)
        write_whole(path, data)
        return Part(path.name, start, stop, table.num_rows, kept, dict(sorted(dropped.items())), digest, len(data))

    def _read(self, path: Path) -> Part:
        """A part that was left behind, if its bytes are those that were written."""
        try:
            part, columns = _read_part(path)
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise StoreError(f"{path}: the part is damaged ({first}); delete it and run again") from None
        if self.columns and columns != self.columns:
            raise StoreError(
                f"{path}: expected the columns of the other parts ({listed(self.columns)}), found {listed(columns)}; "
                "delete the folder and run again"
            )
        self.columns = columns
        return part

    def finish(self, manifest: Manifest, provenance: dict[str, Any]) -> None:
        """The manifest is the last thing written."""
        text = json.dumps(provenance, indent=2, sort_keys=True) + "\n"
        write_whole(self.folder / "provenance.json", text.encode())
        write_whole(self.folder / "manifest.json", manifest.to_json().encode())


def _read_part(path: Path) -> tuple[Part, dict[str, str]]:
    """What a part says of itself and its columns; ValueError where it does not fit its name."""
    name = _PART.fullmatch(path.name)
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if name is None or digest[:16] != name[3]:
        raise ValueError("its digest is not the one in its name")
    metadata = pq.read_metadata(pa.BufferReader(data))
    facts = json.loads(metadata.metadata[_META])
    start, stop = int(name[1]), int(name[2])
    if (facts["start"], facts["stop"]) != (start, stop):
        raise ValueError("it answers for other rows than its name says")
    part = Part(path.name, start, stop, metadata.num_rows, facts["kept"], facts["dropped"], digest, len(data))
    return part, columns_of(metadata.schema.to_arrow_schema())


def columns_of(schema: pa.Schema) -> dict[str, str]:
    """The names of the columns with their types, as the manifest has them."""
    return {field.name: str(field.type) for field in schema}


def listed(columns: dict[str, str]) -> str:
    """Columns for a message."""
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, also after a power cut."""
    temporary = path.with_name(f".writing-{os.getpid()}-{path.name}")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
